"""What waits between the thread that takes batches and the one that writes them: bounded in bytes, and counted.

Who puts something in never waits. What there is no room for is counted by topic and source, and told of in its place.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from um_cffi.batch import Batch
from um_cffi.events import MessageType

_TOLD_MAX = 4096  # topics and sources whose dropped messages are counted each for itself
_MESSAGES = (int(MessageType.DATA), int(MessageType.REQUEST))


@dataclass
class Dropped:
    """Messages of one source on one topic that there was no room for."""

    first: int
    """Sequence number of 32 bits."""
    last: int
    count: int


@dataclass
class Item:
    """A batch, or what was dropped before the next one."""

    batch: Batch | None
    size: int
    by_collector: int = 0
    """Messages that the queue of the library dropped before the end of the batch."""
    dropped: dict[tuple[str, str], Dropped] = field(default_factory=dict)


def size_of(batch: Batch) -> int:
    """Bytes that a batch takes up."""
    return int(batch.data.nbytes) + int(batch.records.nbytes)


class Queue:
    """Batches on their way. Any thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._items: deque[Item] = deque()
        self._closed = False
        self._missing: dict[tuple[str, str], Dropped] = {}
        self.bytes = 0
        """Waiting now."""
        self.dropped = 0
        """Messages dropped so far."""

    def put(self, batch: Batch, by_collector: int = 0) -> bool:
        """Add a batch; False: there was no room, and it is counted."""
        size = size_of(batch)
        with self._changed:
            fits = self.bytes == 0 or self.bytes + size <= self._limit
            if fits:
                self._tell_missing()
                self._items.append(Item(batch, size, by_collector))
                self.bytes += size
                self._changed.notify()
        if not fits:
            self._count(batch)
        return fits

    def tell_missing(self) -> None:
        """Pass on what was dropped, which otherwise waits for the next batch."""
        with self._changed:
            self._tell_missing()
            self._changed.notify()

    def close(self) -> None:
        """Nothing is put in any more."""
        with self._changed:
            self._closed = True
            self._tell_missing()
            self._changed.notify()

    def take(self, timeout: float) -> list[Item]:
        """Everything that waits, waiting for something if nothing does. Its room is given back by done()."""
        with self._changed:
            if not self._items and not self._closed:
                self._changed.wait(timeout)
            items = list(self._items)
            self._items.clear()
            return items

    def done(self, items: list[Item]) -> None:
        """These have been written."""
        with self._changed:
            self.bytes -= sum(item.size for item in items)

    @property
    def over(self) -> bool:
        """Nothing waits, and nothing will."""
        with self._changed:
            return self._closed and not self._items

    def _tell_missing(self) -> None:
        if self._missing:
            self._items.append(Item(None, 0, dropped=self._missing))
            self._missing = {}

    def _count(self, batch: Batch) -> None:
        """Only the thread that puts in counts."""
        records = batch.records[np.isin(batch.records["type"], _MESSAGES)]
        keys = records["topic"].astype(np.uint64) << np.uint64(32) | records["source"]
        order = np.argsort(keys, kind="stable")
        keys, numbers = keys[order], records["sequence_number"][order]
        bounds = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)] if len(keys) else [0]
        for begin, end in zip(bounds, bounds[1:]):
            key = int(keys[begin])
            name = (batch.topics[key >> 32], batch.sources[key & 0xFFFFFFFF])
            if name not in self._missing and len(self._missing) >= _TOLD_MAX:
                name = ("", "")
            known = self._missing.get(name)
            if known is None:
                self._missing[name] = Dropped(int(numbers[begin]), int(numbers[end - 1]), end - begin)
            else:
                known.last = int(numbers[end - 1])
                known.count += end - begin
        self.dropped += len(records)
