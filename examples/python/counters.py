"""What can be read while programs run: counters of messages, sessions, contexts, the queue to Python; the log."""

from __future__ import annotations

import dataclasses
import logging

from um_cffi import Context, Receiver, Source, logs, object_counts

logging.basicConfig(level=logging.WARNING, format="%(name)s %(levelname)s %(message)s")
logs.logger.setLevel(logging.INFO)  # the library's own lines, under um_cffi.library

with Context() as sending, Context() as receiving:
    receiver, source = Receiver(receiving, "Counted"), Source(sending, "Counted")
    source.wait_receivers()
    source.send_many([b"1", b"22", b"333"], flush=True)
    for _ in range(3):
        receiver.recv(timeout=10)
    for what, counts in (
        ("source", source.counts()),
        ("receiver", receiver.counts()),
        ("sending session", source.stats()),
        ("receiving session", receiver.stats()[0]),
        ("sending context", sending.stats()),
        ("receiving context", receiving.counts()),
        ("queue to Python", receiver.queue_stats()),
        ("objects", object_counts()),
    ):
        values = {name: value for name, value in dataclasses.asdict(counts).items() if value}
        print(f"{what}: {values}")
    receiving.reset_stats()
