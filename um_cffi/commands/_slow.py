"""Who does not keep up, as monitoring records tell: the part of `um top` that names host, process and topic.

Listens to the topic of statistics in the context of the command, and is read on its thread, once for each table.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from um_cffi import Context
from um_cffi.commands._fleet_watch import of_this_process
from um_cffi.monitoring import Monitor
from um_cffi.monitoring.fleet import Fleet, SlowReceiver

LINES = 10  # of the table, and topics of a process that are told
RANKED = 200  # objects that these are made of
TURNS = 40  # polls for one table: what a flood leaves is dropped by the monitor, and counted


class Slow(NamedTuple):
    """A process, or one of its objects, that does not keep up."""

    host: str
    application: str
    process: int
    topics: tuple[str, ...]
    reasons: tuple[str, ...]
    silent: bool


class SlowWatch:
    """The fleet that records tell of, as long as it is open; without a context it knows of nobody."""

    def __init__(self, ctx: Context | None) -> None:
        self._monitor = None if ctx is None else Monitor(ctx)
        self._fleet = Fleet()

    def read(self) -> None:
        """Take what has come, and see who has become silent."""
        if self._monitor is None:
            return
        for _ in range(TURNS):
            arrivals = self._monitor.poll(0.0)
            now = time.monotonic()
            for record, origin in arrivals:
                if not of_this_process(record.attributes):
                    self._fleet.add(record, now, origin)
            if not arrivals:
                break
        self._fleet.expire(time.monotonic())

    def heard(self) -> dict[str, int]:
        """How many processes, receivers and topics of them records tell of: nobody else can have a line."""
        summary = self._fleet.summary()
        return {name: summary[name] for name in ("processes", "receivers", "topics")}

    def ranking(self) -> list[Slow]:
        """The worst first; a silent process is one line, whatever the number of its receivers."""
        return ranked(self._fleet.slow_receivers(RANKED))

    def close(self) -> None:
        """Listen no more."""
        if self._monitor is not None:
            self._monitor.close()


def ranked(slow: list[SlowReceiver]) -> list[Slow]:
    """The lines of a ranking."""
    lines: dict[object, Slow] = {}
    for each in slow:
        process = each.object.process
        name = process.link if process.silent else each.object.link
        before = lines.get(name)
        topics = sorted({*(before.topics if before else ()), *each.topics})[:LINES]
        reasons = before.reasons if before else each.reasons
        lines[name] = Slow(*process.key, tuple(topics), reasons, process.silent)
    return list(lines.values())[:LINES]
