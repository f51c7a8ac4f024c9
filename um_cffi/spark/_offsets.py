"""How far each session of a source has been read: offsets, and where a batch begins and ends.

Used by the process that plans, on the driver. Numbers are those of the recording; an offset is the next one wanted.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from um_cffi.errors import InvalidArgument
from um_cffi.recording import _layout
from um_cffi.recording._manifest import Segment, State
from um_cffi.spark._columns import values
from um_cffi.spark._options import EARLIEST, LATEST, Offsets, Place, ReadOptions
from um_cffi.spark._store import Store

Key = tuple[str, str, str]
"""Topic, source, session."""
Flat = dict[Key, int]
_INDEXES_KEPT = 4
_EARLIEST_NUMBER = -2


def flat(offsets: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Flat:
    """Offsets by (topic, source, session)."""
    return {
        (topic, source, session): following
        for topic, sources in offsets.items()
        for source, sessions in sources.items()
        for session, following in sessions.items()
    }


def nested(offsets: Flat) -> Offsets:
    """Offsets as Spark keeps them, sorted, so that equal ones have equal texts."""
    found: Offsets = {}
    for topic, source, session in sorted(offsets):
        found.setdefault(topic, {}).setdefault(source, {})[session] = offsets[topic, source, session]
    return found


@dataclass
class Session:
    """What the manifest tells of one session."""

    key: Key
    next: int
    """The number behind the last one recorded."""
    segments: list[Segment] = field(default_factory=list)
    """In the order of their numbers."""
    begun: int | None = None
    """The first number of segments that are gone, as far as that is known."""

    @property
    def first(self) -> int:
        """The first number that is there; `next` when there is none."""
        return self.segments[0].first if self.segments else self.next


Sessions = dict[Key, Session]


def sessions_of(state: State, options: ReadOptions) -> Sessions:
    """The sessions that are to be read."""
    found: Sessions = {}
    for key, following in state.positions.items():
        if options.wants(key[0], key[1]):
            found[key] = Session(key, following)
    for segment in state.segments.values():
        key = (segment.topic, segment.source, segment.session)
        if key not in found:
            if not options.wants(key[0], key[1]):
                continue
            found[key] = Session(key, segment.next)  # forgotten by the recorder, not yet by the disk
        found[key].segments.append(segment)
        found[key].next = max(found[key].next, segment.next)
    gone = _gone(state)
    for key, session in found.items():
        session.segments.sort(key=lambda each: (each.first, each.next))
        session.begun = gone.get(_layout.folder_of(*key))
    return found


def _gone(state: State) -> dict[str, int]:
    """The first numbers of segments that were dropped, by folder: file names begin with them."""
    found: dict[str, int] = {}
    for path in state.dropped:
        folder, _, name = path.rpartition("/")
        number = name.partition("-")[0]
        if number.isdigit():
            found[folder] = min(found.get(folder, int(number)), int(number))
    return found


class Index:
    """The rows of one segment that are delivered: their numbers, and how much payload lies before each."""

    def __init__(self, store: Store, segment: Segment, losses: bool, payload: bool) -> None:
        numbers: list[npt.NDArray[np.int64]] = []
        sizes: list[npt.NDArray[np.int64]] = []
        for batch in store.columns(segment, ("kind", "sequence", "payload") if payload else ("kind", "sequence")):
            kept = (
                np.ones(len(batch), bool)
                if losses
                else values(batch.column("kind").indices, np.int8) == _layout.MESSAGE
            )
            numbers.append(values(batch.column("sequence"), np.int64)[kept])
            if payload:
                sizes.append(payload_lengths(batch.column("payload"))[kept])
        self.numbers = np.concatenate(numbers) if numbers else np.empty(0, np.int64)
        self.ends = np.cumsum(np.concatenate(sizes)) if sizes else np.empty(0, np.int64)

    def at(self, number: int) -> int:
        """How many rows have smaller numbers."""
        return int(np.searchsorted(self.numbers, number))

    def before(self, row: int) -> int:
        """Bytes of payload before a row."""
        return int(self.ends[row - 1]) if row else 0


def payload_lengths(column: Any) -> npt.NDArray[np.int64]:
    """Bytes of each row of a binary array; those of null are 0."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    return np.diff(offsets).astype(np.int64)


@dataclass
class Left:
    """How much still fits into a batch; None: anything."""

    rows: int | None
    bytes: int | None
    begun: bool = False
    """Something is in it."""

    def take(self, rows: int, size: int) -> None:
        """Put rows in."""
        self.begun = self.begun or rows > 0
        self.rows = None if self.rows is None else self.rows - rows
        self.bytes = None if self.bytes is None else self.bytes - size

    @property
    def none(self) -> bool:
        """It is full."""
        return self.rows == 0 or (self.bytes is not None and self.bytes <= 0)


class Catalog:
    """A recording as one query sees it. One thread at a time."""

    def __init__(self, store: Store, options: ReadOptions) -> None:
        self.store = store
        self.options = options
        self._known: tuple[int, Sessions] | None = None
        self._indexes: OrderedDict[tuple[str, bool], Index] = OrderedDict()

    def sessions(self) -> Sessions:
        """The sessions as the manifest tells of them now. InvalidArgument, OSError."""
        state = self.store.state()
        if self._known is None or self._known[0] != self.store.changes:
            self._known = self.store.changes, sessions_of(state, self.options)
        return self._known[1]

    # -- offsets that options name --

    def starting(self) -> Flat:
        """Where reading begins. InvalidArgument, OSError."""
        sessions = self.sessions()
        if self.options.starting_ns is not None:
            return {key: self._at_time(each, self.options.starting_ns) for key, each in sessions.items()}
        return self._placed("startingOffsets", self.options.starting, EARLIEST)

    def ending(self) -> Flat:
        """Where reading once ends. InvalidArgument, OSError."""
        return self._placed("endingOffsets", self.options.ending, LATEST)

    def _placed(self, name: str, place: Place, usual: str) -> Flat:
        sessions = self.sessions()
        word = place if isinstance(place, str) else usual
        found = {key: each.first if word == EARLIEST else each.next for key, each in sessions.items()}
        for key, number in {} if isinstance(place, str) else flat(place).items():
            session = sessions.get(key)
            if session is None:
                raise InvalidArgument(
                    f"option {name}: {self.options.recording} has no topic {key[0]} with source {key[1]} and session "
                    f"{key[2]}, or it is not subscribed to: take names from columns topic, source and session"
                )
            found[key] = (session.first if number == _EARLIEST_NUMBER else session.next) if number < 0 else number
        return found

    def _at_time(self, session: Session, time_ns: int) -> int:
        """The number of the first row that came then or later."""
        for segment in session.segments:
            if segment.last_ns < time_ns:
                continue
            if segment.first_ns >= time_ns:
                return segment.first
            for batch in self.store.columns(segment, ("sequence", "timestamp")):
                later = values(batch.column("timestamp"), np.int64) >= time_ns
                if later.any():
                    return int(values(batch.column("sequence"), np.int64)[later.argmax()])
        return session.next

    # -- where a batch ends --

    def latest(self) -> Flat:
        """Behind everything that is recorded."""
        return {key: each.next for key, each in self.sessions().items()}

    def begin(self, start: Flat, key: Key) -> int:
        """Where a session begins that a batch may not know yet: at its first message, though it be gone."""
        known = start.get(key)
        if known is not None:
            return known
        session = self.sessions()[key]
        return session.first if session.begun is None else min(session.begun, session.first)

    def bounded(self, start: Flat, target: Flat, max_rows: int | None, max_bytes: int | None) -> Flat:
        """Offsets up to `target`: exactly so many rows, or as many as have so many bytes of payload and one at least.

        Segments are taken in the order of time, whatever session they are of: what came together is read together.
        """
        end = dict(start)
        left = Left(max_rows, max_bytes)
        heap: list[tuple[int, Key, int]] = []
        for key, following in target.items():
            if start.get(key, -1) < following:
                self._go_on(heap, end, target, key, 0)
        while heap:
            _, key, at = heapq.heappop(heap)
            segment = self.sessions()[key].segments[at]
            low, high = max(end.get(key, 0), segment.first), min(target[key], segment.next)
            end[key] = self._take(segment, low, high, left)
            if end[key] < high or left.none:
                break
            self._go_on(heap, end, target, key, at + 1)
        return end

    def _go_on(self, heap: list[tuple[int, Key, int]], end: Flat, target: Flat, key: Key, at: int) -> None:
        """The next segment of a session waits for its turn; where there is none the session is read, or it is lost."""
        session = self.sessions().get(key)
        segments = [] if session is None else session.segments
        begin = end.get(key, -1)
        while at < len(segments) and segments[at].next <= begin:
            at += 1
        if at < len(segments) and segments[at].first < target[key]:
            heapq.heappush(heap, (segments[at].first_ns, key, at))
        else:
            end[key] = target[key]

    def _take(self, segment: Segment, low: int, high: int, left: Left) -> int:
        """Take what fits of a segment; the number behind it."""
        if left.bytes is None:
            there = segment.rows if self.options.losses else segment.messages
            if low <= segment.first and high >= segment.next and (left.rows is None or there <= left.rows):
                left.take(there, 0)
                return high
            if segment.rows == segment.messages == segment.next - segment.first:
                taken = high - low if left.rows is None else min(left.rows, high - low)
                left.take(taken, 0)
                return low + taken
        index = self._index(segment, left.bytes is not None)
        first, last = index.at(low), index.at(high)
        stop = last if left.rows is None else min(last, first + left.rows)
        size = 0
        if left.bytes is not None:
            fits = int(np.searchsorted(index.ends, index.before(first) + left.bytes, "right"))
            stop = min(stop, fits if left.begun else max(fits, first + 1))
            size = index.before(stop) - index.before(first)
        left.take(stop - first, size)
        if stop >= last:
            return high
        return int(index.numbers[stop - 1]) + 1 if stop > first else low

    def _index(self, segment: Segment, payload: bool) -> Index:
        name = segment.path, payload
        found = self._indexes.get(name)
        if found is None:
            found = self._indexes[name] = Index(self.store, segment, self.options.losses, payload)
            while len(self._indexes) > _INDEXES_KEPT:
                self._indexes.popitem(last=False)
        self._indexes.move_to_end(name)
        return found
