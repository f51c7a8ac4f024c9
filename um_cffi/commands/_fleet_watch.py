"""What `um doctor --fleet` looks at: monitoring records of some seconds, and how much each number has grown meanwhile.

Used by the command on its own thread. The checks themselves are in _fleet_checks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from um_cffi.commands._checks import interfaces
from um_cffi.monitoring import Arrival, Attributes, Monitor, MonitorCounts
from um_cffi.monitoring.fleet import Fleet, MonitoredObject, session_of

LOOK = 0.5  # seconds between looks for silent processes
LATE = 0.5  # seconds that records of one moment may come apart, and messages be under way
SAMPLES = 64  # of what a source has sent, that are kept
NOTHING = MonitorCounts(0, 0, {}, 0, 0)


class Watched:
    """A fleet, the numbers of its objects when they were first heard of, and the time in which they have changed."""

    def __init__(self, own: Callable[[Attributes], bool] = lambda _: False) -> None:
        self._own = own
        self.fleet = Fleet()
        self.counts = NOTHING
        self.seconds = 0.0  #: in which records were taken
        self._first: dict[str, tuple[int, ...]] = {}
        self._sent: dict[str, list[tuple[float, int]]] = {}

    def add(self, arrivals: Iterable[Arrival], now: float) -> None:
        """Take records that came at `now`, but those of who looks."""
        for record, origin in arrivals:
            if self._own(record.attributes):
                continue
            found = self.fleet.add(record, now, origin)
            if found is not None:
                self._first.setdefault(found.link, found.numbers)
                if found.kind == "source" and "msgs_sent" in found.names:
                    self._sample(self._sent.setdefault(found.link, []), now, found.value("msgs_sent"))

    def _sample(self, samples: list[tuple[float, int]], now: float, sent: int) -> None:
        if len(samples) >= SAMPLES:
            del samples[1::2]
        samples.append((now, sent))

    def known(self, each: MonitoredObject) -> bool:
        """Whether more than one record told of it, so that what did not grow has not grown."""
        return each.records > 1

    def grown(self, each: MonitoredObject, *names: str) -> int:
        """How much numbers have grown while it was looked at; 0 where that is not known."""
        first = self._first.get(each.link, ())
        total = 0
        for name in names:
            if name in each.names and first:
                before, now = first[each.names.index(name)], each.value(name)
                total += now - before if now >= before else now  # it was reset meanwhile
        return total

    def sent(self, source: MonitoredObject, hearer: MonitoredObject) -> int:
        """Datagrams or messages that a source sent, for sure, between the first and the last that is known of who
        should have heard them."""
        begin, end = hearer.first_seen, hearer.last_seen - LATE
        within = [sent for at, sent in self._sent.get(source.link, ()) if begin <= at <= end]
        return max(0, within[-1] - within[0]) if within else 0

    def sessions(self) -> dict[str, tuple[list[MonitoredObject], list[MonitoredObject]]]:
        """Sources and receivers by transport session."""
        found: dict[str, tuple[list[MonitoredObject], list[MonitoredObject]]] = {}
        for each in self.fleet.objects():
            if each.kind in ("source", "receiver"):
                sides = found.setdefault(session_of(each.source), ([], []))
                sides[each.kind == "receiver"].append(each)
        return found


def of_this_process(attributes: Attributes) -> bool:
    """Whether a record is about the process that looks: it may have the configuration of those that it looks at."""
    return attributes.process_id == os.getpid() and attributes.host in {each.address for each in interfaces()}


def watch(monitor: Monitor, seconds: float, clock: Callable[[], float] = time.monotonic) -> Watched:
    """Listen for so long."""
    watched = Watched(of_this_process)
    begin = clock()
    looked = now = begin
    while now < begin + seconds:
        watched.add(monitor.poll(max(0.0, min(LOOK, begin + seconds - now))), clock())
        now = clock()
        if now >= looked + LOOK:
            watched.fleet.expire(now)
            looked = now
    watched.fleet.expire(now)
    watched.seconds = now - begin
    watched.counts = monitor.counts()
    return watched
