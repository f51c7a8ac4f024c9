"""What the model of a fleet knows of each monitored object and each process, and the log of what happened to them.

Owned by a Fleet, on whatever one thread that is used on. Nothing here reads a clock or waits.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from um_cffi.monitoring._fields import is_level

#: host, application, process, kind, context, object id, source string or topic, of immediate messages
Key = tuple[str, str, int, str, str, int, str, bool]
#: host, application, process
ProcessKey = tuple[str, str, int]

SHORTEST = 0.2  # seconds between two records that a rate is taken from
SMOOTH = 10.0  # seconds over which trouble is averaged
TROUBLES = (("unrecovered_txw", 100.0), ("unrecovered_tmo", 100.0), ("lost", 10.0), ("naks_sent", 1.0))


def link_of(*parts: object) -> str:
    """16 hexadecimal digits that mean the same object in every process that watches, and after a restart of it."""
    return hashlib.blake2s(repr(parts).encode(errors="replace"), digest_size=8).hexdigest()


class MonitoredObject:
    """One object of a process, as its last records tell. Read it only; a Fleet changes it."""

    __slots__ = (
        "_before",
        "_before_at",
        "_values",
        "_values_at",
        "application",
        "context",
        "first_seen",
        "gone",
        "host",
        "immediate",
        "key",
        "kind",
        "last_seen",
        "link",
        "names",
        "object_id",
        "origin",
        "pattern_type",
        "process",
        "records",
        "sessions",
        "source",
        "timestamp",
        "transport",
        "trouble",
    )

    def __init__(self, key: Key, process: Process, transport: str, names: tuple[str, ...], now: float) -> None:
        self.key = key
        (self.host, self.application, _, self.kind, self.context, self.object_id, self.source, self.immediate) = key
        self.link = link_of(*key)  #: for a permanent link to it
        self.process = process
        self.transport = transport  #: "tcp", "lbtrm", ... of sources and receivers, else ""
        self.names = names  #: of its numbers
        self.first_seen = self.last_seen = now
        self.timestamp = 0  #: of the last record, as its sender told: seconds since 1970
        self.records = 0  #: so far
        self.origin = ""  #: what has told of it first
        self.sessions: tuple[str, ...] = ()  #: topics: source strings without topic index
        self.pattern_type = ""  #: wildcard receivers: "pcre" or "regex"
        self.trouble = 0.0  #: receivers: weighted losses and NAKs a second, averaged over some ten seconds
        self.gone = False  #: it was removed from the fleet
        self._values: tuple[int, ...] = ()
        self._values_at = now
        self._before: tuple[int, ...] = ()
        self._before_at = now

    @property
    def process_id(self) -> int:
        """Of the operating system."""
        return self.key[2]

    @property
    def values(self) -> dict[str, int]:
        """The last numbers by name."""
        return dict(zip(self.names, self._values))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The last numbers, in the order of `names`."""
        return self._values

    def value(self, name: str) -> int:
        """The last number of this name; 0 where there is none."""
        return self._values[self.names.index(name)] if name in self.names and self._values else 0

    def rate(self, name: str) -> float:
        """How much the number has grown for each second between the last two records; 0 where that is not known."""
        if name not in self.names or not self._before:
            return 0.0
        at = self.names.index(name)
        return self._grown(at) / (self._values_at - self._before_at)

    @property
    def rates(self) -> dict[str, float]:
        """For each number that counts: how much it has grown for each second between the last two records."""
        return {name: self.rate(name) for name in self.names if not is_level(name)} if self._before else {}

    def grown(self, name: str) -> int:
        """How much the number has grown between the last two records."""
        return self._grown(self.names.index(name)) if name in self.names and self._before else 0

    def _grown(self, at: int) -> int:
        now, before = self._values[at], self._before[at]
        return now - before if now >= before else now  # it was reset meanwhile

    def update(self, values: Mapping[str, int], timestamp: int, now: float) -> bool:
        """Take a record. False if it came so soon after the one before that it only replaces that."""
        numbers = tuple(map(values.get, self.names, _ZEROS)) if self.names else ()
        fresh = not self._values or now - self._values_at >= SHORTEST
        if fresh and self._values:
            self._before, self._before_at = self._values, self._values_at
        if fresh:
            self._values_at = now
        self._values = numbers
        self.timestamp, self.last_seen = timestamp, now
        self.records += 1
        return fresh

    def judge(self) -> None:
        """Receivers: average what this interval says of them."""
        weighted = sum(weight * self.rate(name) for name, weight in TROUBLES)
        seconds = self._values_at - self._before_at
        share = seconds / (seconds + SMOOTH) if self._before else 1.0
        self.trouble += (weighted - self.trouble) * share
        if self.trouble < 1e-3:
            self.trouble = 0.0


_ZEROS = (0,) * 64  # for numbers that a record of an older version does not have


LINES_KEPT = 64  # of a process, as many as it keeps for those who have not told of them yet


class Process:
    """A process that sends records. Read it only; a Fleet changes it."""

    __slots__ = (
        "first_seen",
        "interval",
        "key",
        "last_lines",
        "last_seen",
        "link",
        "objects",
        "origin",
        "records",
        "silent",
        "told_lines",
    )

    def __init__(self, key: ProcessKey, now: float, origin: str) -> None:
        self.key = key
        self.origin = origin  #: what has told of it first
        self.link = link_of("process", *key)  #: for a permanent link to it
        self.first_seen = self.last_seen = now
        self.interval = 0.0  #: usual seconds between records of one object; 0 where that is not known
        self.objects: dict[Key, MonitoredObject] = {}
        self.records = 0  #: so far
        self.silent = False  #: nothing came for longer than usual
        self.last_lines: dict[str, int] = {}  #: by sender of records, the number of the last line of its log
        self.told_lines: deque[int] = deque(maxlen=LINES_KEPT)  #: hashes of the last lines: number and text

    @property
    def host(self) -> str:
        """IPv4 address its records tell."""
        return self.key[0]

    @property
    def application(self) -> str:
        """The name that monitor_appid gives; may be empty."""
        return self.key[1]

    @property
    def process_id(self) -> int:
        """Of the operating system."""
        return self.key[2]

    @property
    def contexts(self) -> list[str]:
        """Instances of the contexts that it has told of."""
        return sorted({each.context for each in self.objects.values() if each.context})

    def patience(self, shortest: float, intervals: float) -> float:
        """Seconds without a record after which something is to be concluded."""
        return max(shortest, intervals * self.interval)


@dataclass(frozen=True)
class Event:
    """Something that has happened in the fleet."""

    number: int  #: 1, 2, ...; grows by one with each event
    time: float  #: of the clock that the fleet is used with
    kind: str  #: see KINDS
    host: str  #: where
    application: str  #: which application
    process_id: int  #: which process
    link: str  #: of the object, or of the process
    source: str  #: source string, or topic; "" for processes
    topics: tuple[str, ...]  #: that the session is known to carry
    amount: int  #: how many were lost, or how many objects are gone
    text: str  #: for people
    line: bool = False  #: it is a line of a log


#: What happens: a receiver missed datagrams; lost them for good; a source ended; an object, a process appeared or went;
#: a process was silent for longer than usual, spoke again, or took the place of another one of the same name; its log
#: has an error (or worse), a warning, a notice, or says that a network interface went down or came up.
KINDS = (
    "loss",
    "unrecovered",
    "source_gone",
    "object_gone",
    "process_started",
    "process_restarted",
    "process_silent",
    "process_back",
    "process_gone",
    "log_error",
    "log_warning",
    "log_notice",
    "interface_change",
)

INTERFACES = ("Core-9030-1:", "Core-9030-2:")  # how lines begin that tell of interfaces


def kind_of_line(level: int, text: str) -> str:
    """The kind of event that a line of a log is."""
    if text.startswith(INTERFACES):
        return "interface_change"
    return "log_notice" if level >= 6 else "log_warning" if level == 5 else "log_error"


class EventLog:
    """The last events, at most so many; those of one kind about one object in quick succession are one."""

    def __init__(self, limit: int, merge: float) -> None:
        self._events: deque[Event] = deque(maxlen=limit)
        self._limit = limit
        self._merge = merge  # seconds
        self._last: dict[tuple[str, str, str], Event] = {}  # by kind, link, text of a line
        self.count = 0  #: events so far, those no longer kept included

    def add(self, event: Event) -> None:
        """Append an event, whose number is given here, unless it goes on with one of a moment ago."""
        name = (event.kind, event.link, event.text if event.line else "")
        before: Event | None = self._last.get(name)
        if before is not None and event.time - before.time < self._merge:
            return
        self.count += 1
        self._events.append(event)
        if len(self._last) >= self._limit:
            self._last.clear()  # more than can be kept happens within seconds: some of it is told twice
        self._last[name] = event

    def forget(self, now: float) -> None:
        """Drop what is needed no longer to see that an event goes on."""
        old = [name for name, event in self._last.items() if now - event.time >= self._merge]
        for name in old:
            del self._last[name]

    def since(self, number: int, limit: int) -> list[Event]:
        """The events after the one with this number, the oldest first; the newest `limit` if there are more."""
        found: list[Event] = []
        for event in reversed(self._events):
            if event.number <= number or len(found) >= limit:
                break
            found.append(event)
        return found[::-1]
