"""`um sub`: print what arrives on topics or on topics that match a pattern, as text, hexadecimal or JSON lines, and
of pre-defined messages the fields."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from um_cffi import InvalidArgument, Message, MessageType, Receiver, ReceiverEvent, WildcardReceiver
from um_cffi.commands import _common

if TYPE_CHECKING:
    from um_cffi.commands._pdm import Decoder


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "sub", help="print what arrives", description="Print the messages of topics until interrupted."
    )
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="topic, or pattern with --pattern")
    parser.add_argument("-p", "--pattern", action="store_true", help="TOPIC is a regular expression (PCRE)")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--text", dest="format", action="store_const", const="text", help="payload as a line (default)")
    kinds.add_argument("--hex", dest="format", action="store_const", const="hex", help="payload as hexadecimal digits")
    kinds.add_argument(
        "--json", dest="format", action="store_const", const="json", help="one JSON object for each line"
    )
    parser.add_argument(
        "--pdm", action="store_true", help="payloads are pre-defined messages: their fields, as text or with --json"
    )
    parser.add_argument(
        "--definition",
        action="append",
        default=[],
        metavar="FILE",
        help="with --pdm: a definition, as Definition.to_bytes() made it, for messages that have none with them",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="time, topic and sequence number before the payload"
    )
    parser.add_argument("-e", "--events", action="store_true", help="also beginnings and ends of sessions, and losses")
    parser.add_argument("-n", "--count", type=_common.positive, help="end after so many messages")
    parser.add_argument(
        "-t", "--timeout", type=_common.seconds, help="end after so many seconds; status 1 short of COUNT"
    )
    _common.add_library_options(parser)
    parser.set_defaults(run=run, format="text")


def stamp(timestamp_ns: int) -> str:
    """Wall-clock time with microseconds."""
    second, rest = divmod(timestamp_ns, 1_000_000_000)
    return f"{time.strftime('%H:%M:%S', time.localtime(second))}.{rest // 1000:06d}"


def _decoder(definitions: Sequence[str]) -> Decoder:
    from um_cffi.commands import _pdm  # not for those who print other messages: it takes a tenth of their start

    return _pdm.Decoder(definitions)


class _Printer:
    """Writes lines; called on the context's callback thread."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self.count = 0
        self.lost = 0
        self.done = threading.Event()
        self.error: BaseException | None = None
        self._decoder = _decoder(arguments.definition) if arguments.pdm else None

    def message(self, message: Message) -> None:
        limit = self._arguments.count
        if self.done.is_set() or (limit is not None and self.count >= limit):
            return
        self.count += 1
        self._write(self._line(message))
        if limit is not None and self.count >= limit:
            self.done.set()

    def event(self, event: ReceiverEvent) -> None:
        if event.type in (MessageType.LOSS, MessageType.BURST_LOSS):
            self.lost += event.count
            if not self._arguments.events:
                what = "message" if event.count == 1 else f"{event.count} messages from"
                print(f"um sub: lost {what} {event.sequence_number} of {event.topic}", file=sys.stderr)
        if not self._arguments.events:
            return
        name = event.type.name
        if self._arguments.format == "json":
            values = {"event": name, "topic": event.topic, "source": event.source, "timestamp_ns": event.timestamp_ns}
            lost = {"count": event.count} if event.count else {}
            self._write(json.dumps({**values, "sequence_number": event.sequence_number, **lost}))
        else:
            many = f" {event.count} messages" if event.count > 1 else ""
            self._write(f"[{name} {event.topic} {event.source} #{event.sequence_number}{many}]")

    def _line(self, message: Message) -> str:
        data = bytes(message.data)
        if self._arguments.format == "json":
            values: dict[str, object] = {
                "topic": message.topic,
                "source": message.source,
                "sequence_number": message.sequence_number,
                "timestamp_ns": message.timestamp_ns,
            }
            return json.dumps({**values, **self._payload(data)}, ensure_ascii=False)
        text = data.hex() if self._arguments.format == "hex" else self._text(data)
        if not self._arguments.verbose:
            return text
        return f"{stamp(message.timestamp_ns)} {message.topic} #{message.sequence_number} {text}"

    def _payload(self, data: bytes) -> dict[str, Any]:
        """For JSON; with --pdm `fields`, or `error` and the payload."""
        if self._decoder is None:
            return _common.payload_fields(data)
        from um_cffi.pdm import PDMError

        try:
            return {"fields": self._decoder.decode(data)}
        except PDMError as error:
            return {"error": str(error), **_common.payload_fields(data)}

    def _text(self, data: bytes) -> str:
        if self._decoder is None:
            return data.decode("utf-8", "backslashreplace")
        from um_cffi.commands._pdm import as_text
        from um_cffi.pdm import PDMError

        try:
            return as_text(self._decoder.decode(data))
        except PDMError as error:
            return f"[{error}] {data.hex()}"

    def _write(self, line: str) -> None:
        try:
            # names that are no UTF-8 are surrogates here
            sys.stdout.write(line.encode("utf-8", "backslashreplace").decode() + "\n")
            sys.stdout.flush()
        except BrokenPipeError as error:
            self.error = error
            self.done.set()


def run(arguments: argparse.Namespace) -> int:
    """Print until COUNT, TIMEOUT or an interrupt."""
    if (arguments.definition and not arguments.pdm) or (arguments.pdm and arguments.format == "hex"):
        raise InvalidArgument("--definition needs --pdm, and --pdm is not for --hex")
    settings = _common.settings(arguments)
    printer = _Printer(arguments)
    with settings.context() as ctx:
        for topic in arguments.topics:
            if arguments.pattern:
                WildcardReceiver(ctx, topic, printer.message, printer.event, options=settings.wildcard())
            else:
                Receiver(ctx, topic, printer.message, printer.event, options=settings.receiver())
        printer.done.wait(arguments.timeout)
    if printer.error is not None:
        raise printer.error
    return 1 if arguments.count is not None and printer.count < arguments.count else 0
