"""The last hour of every object in rings of fixed size, and that of the whole fleet.

Owned by the Watch, on its thread. Memory has a bound: rows are made in blocks up to a number of objects, and those of
objects that are gone are used again, the ones that went first before others. Time is given.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from um_cffi.monitoring.fleet import MonitoredObject

HOUR = 3600.0
STEP = 5.0  # seconds of one place in a ring
PLACES = int(HOUR / STEP)
COLUMNS = 4
BLOCK = 128  # rows made at a time
NOTHING = 1 << 63  # numbers from here on mean that nothing was measured yet
PATIENCE = 24  # places in which an object may bring nothing new before its rates end
FLEET = "fleet"  # the row of all objects together


class Column(NamedTuple):
    """What is kept of an object: `names` of its numbers, the first that it has; how much they grow, or their level."""

    title: str
    unit: str
    names: tuple[str, ...]
    level: bool = False


COLUMN = {
    "receiver": (
        Column("messages", "/s", ("lbm_msgs_rcved", "msgs_rcved")),
        Column("bytes", "B/s", ("bytes_rcved",)),
        Column("missed", "/s", ("lost",)),
        Column("NAKs", "/s", ("naks_sent",)),
    ),
    "source": (
        Column("datagrams", "/s", ("msgs_sent",)),
        Column("bytes", "B/s", ("bytes_sent",)),
        Column("bytes waiting", "B", ("bytes_buffered", "txw_bytes"), True),
        Column("NAKs", "/s", ("naks_rcved",)),
    ),
    "context": (
        Column("sends that waited", "/s", ("send_blocked",)),
        Column("topics without a source", "", ("tr_rcv_unresolved_topics",), True),
        Column("lost for good", "/s", ("fragments_unrecoverably_lost",)),
        Column("callback, mean", "µs", ("rcv_cb_svc_time_mean",), True),
    ),
    "event_queue": (
        Column("events", "/s", ("events_tot",)),
        Column("events waiting", "", ("events",), True),
        Column("age, mean", "µs", ("age_mean",), True),
        Column("callback, mean", "µs", ("data_msgs_svc_mean", "callback_events_svc_mean"), True),
    ),
    FLEET: (
        Column("messages", "/s", ()),
        Column("bytes", "B/s", ()),
        Column("missed", "/s", ()),
        Column("NAKs", "/s", ()),
    ),
}


class _Last(NamedTuple):
    """What an object told at the last look that brought news."""

    numbers: tuple[int | None, ...]
    rates: tuple[float, ...]
    seen: float
    place: int


def _rates(numbers: tuple[int | None, ...], before: _Last, seen: float) -> tuple[float, ...]:
    """How fast each number has grown since; those that were begun anew count from 0."""
    grown = [
        0 if now is None or was is None else now - was if now >= was else now
        for now, was in zip(numbers, before.numbers)
    ]
    return tuple(each / (seen - before.seen) for each in grown)


def _first_rates(each: MonitoredObject, columns: tuple[Column, ...]) -> tuple[float, ...]:
    """Those between its last two records: all that is known at the first look."""
    return tuple(next((each.rate(name) for name in column.names if name in each.names), 0.0) for column in columns)


class History:
    """Rings by link of the object."""

    def __init__(self, objects: int) -> None:
        self._most = objects + 1  # and the fleet
        self._blocks: list[np.ndarray[Any, Any]] = []
        self._rows: OrderedDict[str, int] = OrderedDict()  # of live objects
        self._gone: OrderedDict[str, tuple[int, float]] = OrderedDict()  # row and time, those that went first in front
        self._free: list[int] = []
        self._last: dict[str, _Last] = {}  # by link
        self._place = -1  # STEPs since the beginning of the clock
        self._pending: list[MonitoredObject] = []
        self._sums = np.zeros(COLUMNS)
        self.refused = 0  # objects without a ring, as there were too many

    # ---- taking ----

    def due(self, now: float) -> bool:
        """Whether a new place begins."""
        return int(now / STEP) > self._place and not self._pending

    def begin(self, objects: list[MonitoredObject], now: float) -> None:
        """Begin a new place; the objects are looked at by the next calls of go_on()."""
        place = int(now / STEP)
        passed = min(place - self._place, PLACES) if self._place >= 0 else PLACES
        for at in range(place - passed + 1, place + 1):
            for block in self._blocks:
                block[:, :, at % PLACES] = np.nan
        self._place = place
        self._pending = objects[::-1]
        self._sums[:] = np.nan
        while self._gone and now - next(iter(self._gone.values()))[1] > HOUR:
            _, (row, _) = self._gone.popitem(last=False)
            self._free.append(row)

    def go_on(self, count: int) -> bool:
        """Look at so many objects. True when that was all for this place."""
        if not self._pending:
            return True
        for _ in range(min(count, len(self._pending))):
            self._look(self._pending.pop())
        if self._pending:
            return False
        row = self._row(FLEET)
        if row is not None:
            self._blocks[row // BLOCK][row % BLOCK, :, self._place % PLACES] = self._sums
        return True

    def _look(self, each: MonitoredObject) -> None:
        columns = COLUMN.get(each.kind)
        if columns is None or each.gone or each.process.silent:
            return
        row = self._row(each.link)
        if row is None:
            self.refused += 1
            return
        values = each.values
        numbers = tuple(next((values[name] for name in column.names if name in values), None) for column in columns)
        before = self._last.get(each.link)
        if before is None or before.seen != each.last_seen:
            rates = _rates(numbers, before, each.last_seen) if before else _first_rates(each, columns)
            self._last[each.link] = _Last(numbers, rates, each.last_seen, self._place)
            known = before is not None or bool(each.rates)
        else:
            rates, known = before.rates, self._place - before.place <= PATIENCE
        ring = self._blocks[row // BLOCK][row % BLOCK, :, self._place % PLACES]
        for at, (column, value) in enumerate(zip(columns, numbers)):
            if value is not None and value < NOTHING and (column.level or known):
                ring[at] = value if column.level else rates[at]
                if each.kind == "receiver":
                    self._sums[at] = rates[at] + (0.0 if np.isnan(self._sums[at]) else self._sums[at])

    def _row(self, link: str) -> int | None:
        row = self._rows.get(link)
        if row is not None:
            return row
        if link in self._gone:
            row, _ = self._gone.pop(link)
        elif self._free:
            row = self._free.pop()
            self._blocks[row // BLOCK][row % BLOCK] = np.nan
        elif len(self._blocks) * BLOCK < self._most:
            first = len(self._blocks) * BLOCK
            self._blocks.append(np.full((BLOCK, COLUMNS, PLACES), np.nan, dtype=np.float32))
            self._free += range(first + BLOCK - 1, first, -1)
            row = first
        elif self._gone:
            _, (row, _) = self._gone.popitem(last=False)
            self._blocks[row // BLOCK][row % BLOCK] = np.nan
        else:
            return None
        self._rows[link] = row
        return row

    def leave(self, link: str, now: float) -> None:
        """The object is gone; its ring is kept until it is needed, for an hour at most."""
        row = self._rows.pop(link, None)
        self._last.pop(link, None)
        if row is not None:
            self._gone[link] = (row, now)

    # ---- telling ----

    def __len__(self) -> int:
        return len(self._rows) + len(self._gone)

    @property
    def nbytes(self) -> int:
        """Of memory for the rings."""
        return sum(block.nbytes for block in self._blocks)

    def links(self) -> list[str]:
        """Of the objects that are not gone, the fleet included."""
        return list(self._rows)

    def series(self, link: str, kind: str, wall: float) -> dict[str, Any] | None:
        """Times (seconds since 1970, where `wall` is the time of day of clock 0) and values, None where there is none;
        without those before the first one."""
        row = self._rows.get(link)
        if row is None:
            row = self._gone.get(link, (None, 0.0))[0]
        if row is None:
            return None
        ring = np.roll(self._blocks[row // BLOCK][row % BLOCK], -(self._place % PLACES) - 1, axis=1)
        used = np.flatnonzero(~np.isnan(ring).all(axis=0))
        first = int(used[0]) if used.size else PLACES
        times = (self._place - PLACES + 1 + np.arange(first, PLACES)) * STEP + wall
        columns = COLUMN[kind]
        found = [
            {
                "title": column.title,
                "unit": column.unit,
                "values": [None if np.isnan(each) else float(f"{each:.4g}") for each in ring[at, first:]],
            }
            for at, column in enumerate(columns)
            if not np.isnan(ring[at]).all()
        ]
        return {"t": [round(float(each)) for each in times], "series": found}
