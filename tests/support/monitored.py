"""A process that sends or receives, and publishes monitoring records of itself twice a second.

python tests/support/monitored.py send|receive NAME TOPIC INTERFACE TRANSPORT
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from um_cffi import Context, Receiver, Source
from um_cffi.monitoring import TOPIC, Attributes, ReceiverRecord, Record, SourceRecord, TopicRecord, TopicState, encode

INTERVAL = 0.5
RATE = 2_000  # messages a second


def numbers(stats: Any) -> dict[str, int]:
    """The counters of a snapshot of the library, under the names that records have."""
    return {name: value for name, value in dataclasses.asdict(stats).items() if name not in ("transport", "source")}


def records(name: str, topic: str, interface: str, this: Source | Receiver) -> Iterator[Record]:
    """What there is to tell of the object now."""
    about = Attributes(interface, int(time.monotonic()), name, 1, os.getpid(), False, f"{os.getpid():016x}")
    if isinstance(this, Source):
        stats: Any = this.stats()
        yield SourceRecord(about, stats.transport.name.lower(), stats.source, numbers(stats))
        return
    sessions = this.stats()
    for each in sessions:
        yield ReceiverRecord(about, each.transport.name.lower(), each.source, numbers(each))
    yield TopicRecord(about, topic, tuple(TopicState(each.source) for each in sessions))


def main() -> None:
    """Until somebody ends it."""
    role, name, topic, interface, transport = sys.argv[1:]
    options: dict[str, Any] = {"default_interface": interface, "transport_lbtrm_data_rate_limit": 100_000_000}
    buffers = {f"resolver_{kind}_receiver_socket_buffer": 131072 for kind in ("multicast", "unicast")}
    with Context(options={**options, **buffers}) as ctx:
        telling = Source(ctx, TOPIC)
        source = Source(ctx, topic, options={"transport": transport}) if role == "send" else None
        receiver = Receiver(ctx, topic, lambda message: None) if role == "receive" else None
        this = source or receiver
        assert this is not None
        print("ready", flush=True)
        begin, sent, told = time.monotonic(), 0, 0
        while True:
            passed = time.monotonic() - begin
            while source and sent < passed * RATE:
                source.send(b"x" * 100)
                sent += 1
            if passed >= told * INTERVAL:
                told = int(passed / INTERVAL) + 1
                for record in records(name, topic, interface, this):
                    telling.send(encode(record))
            time.sleep(0.005)


if __name__ == "__main__":
    main()
