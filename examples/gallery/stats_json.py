"""Statistics as JSON lines, for a file or a log collector: what was sent, what arrived, what waits."""

import dataclasses
import json
import sys

from um_cffi import Context, Receiver, Source

with Context() as ctx, Receiver(ctx, "metrics") as receiver, Source(ctx, "metrics") as source:
    source.wait_receivers()
    reported: list[str] = []

    def report() -> None:
        for name, counts in (("source", source.counts()), ("receiver", receiver.counts())):
            reported.append(json.dumps({"name": name, "topic": source.topic, **dataclasses.asdict(counts)}))

    timer = ctx.call_every(0.1, report)
    source.send_many([b"x" * 100] * 1000, flush=True)
    for _, _message in zip(range(1000), receiver):
        pass
    timer.cancel()
    report()
    sys.stderr.write("\n".join(reported) + "\n")

last = [json.loads(line) for line in reported[-2:]]
print(last[0]["messages_sent"], last[1]["delivered"], last[1]["lost"])
