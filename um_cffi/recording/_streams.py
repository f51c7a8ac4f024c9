"""What one source brings on one topic: numbers of 64 bits made of those of 32, what is new of it, what is missing.

Used by the thread that writes the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from um_cffi.events import MessageFlags
from um_cffi.recording import _layout
from um_cffi.recording._rows import Ints, Part, lost_part
from um_cffi.recording._segment import OpenSegment

_RETRANSMIT = int(MessageFlags.RETRANSMIT | MessageFlags.OTR)
_IMMEDIATE = int(MessageFlags.IMMEDIATE)
_FRAGMENT_MIN = 400  # bytes of a message in a fragment, at least: each fragment has a number, the last one's is told


@dataclass
class Stream:
    """A source of a topic. Rows wait in `waiting` until they are put into its segment."""

    topic: str
    source: str
    generation: int = 0
    """How often its numbers have begun again."""
    next: int | None = None
    """The number behind the last one known; None: nothing has come yet."""
    watchful: bool = False
    """Numbers that are missing before the next row have been told of by nobody."""
    waiting: list[tuple[Part, Ints]] = field(default_factory=list)
    waiting_bytes: int = 0
    waiting_since: float = 0.0
    """By the monotonic clock, seconds."""
    segment: OpenSegment | None = None
    repeated: int = 0
    """Messages that were recorded already."""
    unfilled: int = 0
    """Messages missing that nobody told of, since recording was interrupted or the source was away."""
    epoch: int = 0
    """How often it has turned out when it was joined that another source has the same source string now; as rows
    show, which come later than `latest_epoch` knows it."""
    latest_epoch: Callable[[], int] = lambda: 0

    @property
    def session(self) -> str:
        """The session that rows are of now."""
        return _layout.session_of(self.source, self.generation)

    def begin(self) -> None:
        """A session with the source has begun."""
        self.watchful = self.next is not None

    def take(self, part: Part, now: float) -> Part | None:
        """Rows have come. What is returned belongs to the next session: flush what waits, call renew(), and give it
        again."""
        immediate = (part.flags & _IMMEDIATE) != 0
        if immediate.any():
            self._take_immediate(part, now)
            return None
        sequence, end, reach = self._numbered(part)
        old = sequence < reach
        if old.any():
            at = self._first_of_another(part, old)
            new = ~old[:at]
            self.repeated += int(old[:at].sum())
            self._add(part.cut(0, at).only(new), sequence[:at][new], end[:at][new], now)
            return part.cut(at, len(part)) if at < len(part) else None
        self._add(part, sequence, end, now)
        return None

    def _first_of_another(self, part: Part, old: npt.NDArray[np.bool_]) -> int:
        """The row with which numbers begin again, among those that were passed already. Retransmitted ones mostly are
        repetitions."""
        epoch = self.latest_epoch()
        if epoch != self.epoch:
            self.epoch = epoch
            return int(old.argmax())
        again = old & ((part.flags & _RETRANSMIT) == 0)
        if part.kinds is not None:
            again &= (part.kinds == _layout.MESSAGE) | (part.kinds == _layout.RESET)
        return int(again.argmax()) if again.any() else len(part)

    def renew(self) -> None:
        """Its numbers begin again."""
        self.generation += 1
        self.next = None
        self.watchful = False

    def _numbered(self, part: Part) -> tuple[Ints, Ints, Ints]:
        """Numbers in full, the numbers behind each, and how far the stream had come before each."""
        base = self.next if self.next is not None else int(part.numbers[0])
        sequence = base + (part.numbers - np.uint32(base & 0xFFFFFFFF)).view(np.int32).astype(np.int64)
        end = sequence + (1 if part.count is None else part.count)
        reach = np.empty_like(end)
        reach[0] = base
        np.maximum.accumulate(end[:-1], out=reach[1:])
        np.maximum(reach, base, out=reach)
        return sequence, end, reach

    def _add(self, part: Part, sequence: Ints, end: Ints, now: float) -> None:
        if len(part) == 0:
            return
        if self.watchful and self.next is not None:
            self._tell_gap(part, int(sequence[0]), now)
        self.watchful = False
        self._wait(part, sequence, now)
        self.next = int(end.max())

    def _tell_gap(self, part: Part, first: int, now: float) -> None:
        assert self.next is not None
        length = len(part.payload[0].as_py() or b"") if part.kinds is None or part.kinds[0] == _layout.MESSAGE else 0
        missing = first - self.next - length // _FRAGMENT_MIN
        if missing > 0:
            self.unfilled += missing
            gap = lost_part(_layout.LOSS, self.next, missing, int(part.time[0]))
            self._wait(gap, np.array([self.next], np.int64), now)

    def _take_immediate(self, part: Part, now: float) -> None:
        """Immediate messages have no numbers of their own: they are counted here."""
        begin = self.next or 0
        sequence = np.arange(begin, begin + len(part), dtype=np.int64)
        self._wait(part, sequence, now)
        self.next = begin + len(part)

    def drop(self, first: int, last: int, count: int, time_ns: int, now: float) -> None:
        """So many messages, with numbers from `first` to `last`, were dropped before they came here."""
        span = (last - first + 1) & 0xFFFFFFFF
        part = lost_part(_layout.DROPPED, first, span if count <= span < 1 << 31 else count, time_ns)
        sequence, end, _ = self._numbered(part)
        if self.next is not None and sequence[0] < self.next:  # in part recorded already, or the numbers began again
            end += self.next - sequence[0]
            sequence = np.array([self.next], np.int64)
        self._wait(part, sequence, now)
        self.next = int(end[0])
        self.watchful = False

    def _wait(self, part: Part, sequence: Ints, now: float) -> None:
        if not self.waiting:
            self.waiting_since = now
        self.waiting.append((part, sequence))
        self.waiting_bytes += part.size()
