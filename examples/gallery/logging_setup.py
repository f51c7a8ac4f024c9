"""Log lines of the library go through the logging module: here as JSON, together with those of the application."""

import json
import logging

from um_cffi import Context

lines: list[str] = []


class Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps({"level": record.levelname, "logger": record.name, "text": record.getMessage()})


class Collect(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        lines.append(self.format(record))


handler = Collect()
handler.setFormatter(Json())
logger = logging.getLogger("um_cffi")
logger.addHandler(handler)
logger.setLevel(logging.DEBUG)
logger.propagate = False

with Context() as ctx:
    logger.warning("the application uses the same logger: %s", ctx.getopt("transport_tcp_port_low"))

records = [json.loads(line) for line in lines]  # ours among those of the library, which come from its threads
ours = next(record for record in records if record["text"].startswith("the application"))
print(ours["level"], all(record["logger"].startswith("um_cffi") for record in records))
