"""From batches of a receiver to rows of Arrow data: everything for many messages at once, no payload copied twice.

A batch is split by topic and source; the rows of one such stream are a Part, which may be cut before it becomes a
record batch. Used by the thread that writes the recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

import numpy as np
import numpy.typing as npt

from um_cffi.binding.tails import CHANNEL, HF, PROPERTIES, PropertyTexts, plain_text, tails_of, words
from um_cffi.events import MessageFlags, MessageType
from um_cffi.recording import _layout

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from typing_extensions import TypeAlias

    from um_cffi.batch import Batch

_BINARY_REACH = (1 << 31) - 1  # bytes of one Arrow array of binary values
_RESET = int(MessageFlags.HF_RESET)
_BURST = int(MessageType.BURST_LOSS)
_LOSS = int(MessageType.LOSS)
_MESSAGES = (int(MessageType.DATA), int(MessageType.REQUEST))

Ints: TypeAlias = "npt.NDArray[np.int64]"
Texts = Optional[list[Optional[bytes]]]


@dataclass
class Part:
    """Rows of one stream: messages and losses, in order."""

    numbers: npt.NDArray[np.uint32]
    """Sequence numbers as they came, of 32 bits."""
    kinds: npt.NDArray[np.int8] | None
    """What each row is, see KINDS; None: all are messages."""
    count: Ints | None
    """Messages that each row stands for; None: one."""
    flags: npt.NDArray[np.int32]
    time: Ints
    payload: pa.Array
    hf_number: npt.NDArray[np.uint64] | None = None
    properties: Texts = None
    """Of each row the bytes as they travel; None: no row has any."""
    channel: Ints | None = None
    """Of rows with the flag CHANNEL; None: no row has any."""

    def __len__(self) -> int:
        return len(self.numbers)

    def cut(self, begin: int, end: int) -> Part:
        """The rows [begin, end)."""
        rows = slice(begin, end)
        return Part(
            self.numbers[rows],
            None if self.kinds is None else self.kinds[rows],
            None if self.count is None else self.count[rows],
            self.flags[rows],
            self.time[rows],
            self.payload[rows],
            None if self.hf_number is None else self.hf_number[rows],
            None if self.properties is None else self.properties[rows],
            None if self.channel is None else self.channel[rows],
        )

    def only(self, chosen: npt.NDArray[np.bool_]) -> Part:
        """The rows that are chosen."""
        return Part(
            self.numbers[chosen],
            None if self.kinds is None else self.kinds[chosen],
            None if self.count is None else self.count[chosen],
            self.flags[chosen],
            self.time[chosen],
            self.payload.filter(_layout.arrow().array(chosen)),
            None if self.hf_number is None else self.hf_number[chosen],
            None
            if self.properties is None
            else [each for each, is_chosen in zip(self.properties, chosen.tolist()) if is_chosen],
            None if self.channel is None else self.channel[chosen],
        )

    def size(self) -> int:
        """Bytes of it in memory, about."""
        return len(self) * 64 + int(self.payload.nbytes)


@dataclass
class Arrived:
    """What a batch brings to one stream."""

    topic: str
    source: str
    part: Part
    begins: bool
    """A session has begun before the first row."""
    ends: bool
    """The source is gone."""


def arrived(batch: Batch, dropped: bool = False) -> Iterator[Arrived]:
    """A batch by topic and source; `dropped` says that the queue of the library has dropped some, as bursts tell."""
    records = batch.records
    keys = records["topic"].astype(np.uint64) << np.uint64(32) | records["source"]
    if len(keys) == 0:
        return
    if (keys == keys[0]).all():
        order, bounds = None, [0, len(keys)]
    else:
        order = np.argsort(keys, kind="stable")
        records, keys = records[order], keys[order]
        bounds = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
    types = records["type"]
    kept = np.isin(types, (*_MESSAGES, _LOSS, _BURST))
    whole = bool(kept.all())
    chosen = np.ascontiguousarray(records) if whole else records[kept]
    # where the chosen rows of a group begin and end
    places = bounds if whole else np.concatenate(([0], np.cumsum(kept)))[bounds].tolist()
    part = _part(batch, chosen, dropped)
    for at in range(len(bounds) - 1):
        begin, end = bounds[at], bounds[at + 1]
        mine = types[begin:end]
        key = int(keys[begin])
        yield Arrived(
            batch.topics[key >> 32],
            batch.sources[key & 0xFFFFFFFF],
            part.cut(places[at], places[at + 1]),
            not whole and bool((mine == int(MessageType.BEGIN_OF_SESSION)).any()),
            not whole and bool((mine == int(MessageType.END_OF_SESSION)).any()),
        )


def _part(batch: Batch, records: npt.NDArray[np.void], dropped: bool) -> Part:
    types, flags = records["type"], np.ascontiguousarray(records["flags"])
    lost = (types == _LOSS) | (types == _BURST)
    some = int(np.bitwise_or.reduce(flags, initial=0))
    count: Ints | None = None
    kinds: npt.NDArray[np.int8] | None = None
    if lost.any() or some & _RESET:
        kinds = np.where(lost, _layout.LOSS, _layout.MESSAGE).astype(np.int8)
        kinds[(flags & _RESET) != 0] = _layout.RESET
        if dropped:
            kinds[types == _BURST] = _layout.DROPPED
        count = np.ones(len(records), np.int64)
        bursts = np.flatnonzero((types == _BURST) & (records["length"] == 8))
        count[bursts] = np.minimum(words(batch, records["offset"][bursts]), np.uint64(1 << 62)).astype(np.int64)
    part = Part(
        np.ascontiguousarray(records["sequence_number"]),
        kinds,
        count,
        flags,
        np.ascontiguousarray(records["timestamp_ns"]),
        _payload(batch, records, None if kinds is None else kinds != _layout.MESSAGE),
    )
    if some & (HF | PROPERTIES | CHANNEL):
        _add_tails(batch, records, part)
    return part


def _add_tails(batch: Batch, records: npt.NDArray[np.void], part: Part) -> None:
    tails = tails_of(batch, records)
    part.hf_number, part.properties, part.channel = tails.hf_number, tails.properties, tails.channel


def _payload(batch: Batch, records: npt.NDArray[np.void], lost: npt.NDArray[np.bool_] | None) -> pa.Array:
    """The payloads as binary values over the memory of the batch where they lie in a row; else one copy of them."""
    pa = _layout.arrow()
    count = len(records)
    begins = records["offset"].astype(np.int64)
    ends = begins + records["length"]
    data = pa.py_buffer(batch.data)
    valid = None if lost is None else pa.py_buffer(np.packbits(~lost, bitorder="little"))
    if count == 0:
        return pa.array([], pa.binary())
    if bool((begins[1:] == ends[:-1]).all()) and ends[-1] < _BINARY_REACH:
        offsets = np.empty(count + 1, np.int32)
        offsets[:-1], offsets[-1] = begins, ends[-1]
        return pa.Array.from_buffers(pa.binary(), count, [valid, pa.py_buffer(offsets), data])
    # What lies between two payloads is a value as well, which is not taken; only ascending offsets make values.
    ascending = np.argsort(begins, kind="stable")
    spread = np.empty(2 * count + 1, np.int64)
    spread[0:-1:2], spread[1:-1:2], spread[-1] = begins[ascending], ends[ascending], ends[ascending[-1]]
    all_values = pa.Array.from_buffers(pa.large_binary(), 2 * count, [None, pa.py_buffer(spread), data])
    places = np.empty(count, np.int64)
    places[ascending] = np.arange(0, 2 * count, 2)
    chosen = pa.array(places, mask=lost)
    return all_values.take(chosen).cast(pa.binary())


# -- record batches --


class Batches:
    """Makes record batches of the rows of one session."""

    def __init__(self, topic: str, source: str, session: str, known: PropertyTexts, time_property: str | None) -> None:
        pa = _layout.arrow()
        self._names = [pa.array([plain_text(name)]) for name in (topic, source, session)]
        self._kinds = pa.array(_layout.KINDS)
        self._schema = _layout.schema()
        self._known = known
        self._time_property = time_property

    def of(self, part: Part, sequence: Ints) -> pa.RecordBatch:
        """A record batch of a part, with its sequence numbers in full."""
        pa = _layout.arrow()
        rows = len(part)
        zeros = np.zeros(rows, np.int32)
        kinds = zeros.astype(np.int8) if part.kinds is None else part.kinds
        count = np.ones(rows, np.int64) if part.count is None else part.count
        time = pa.array(part.time).cast(self._schema.field("timestamp").type)
        by_kernel = (part.flags & int(MessageFlags.HR_TIMESTAMP)) != 0
        numbered = (part.flags & HF) != 0
        texts = (
            None
            if part.properties is None
            else [None if each is None else self._known.texts(each) for each in part.properties]
        )
        return pa.record_batch(
            [
                pa.DictionaryArray.from_arrays(kinds, self._kinds),
                *(pa.DictionaryArray.from_arrays(zeros, name) for name in self._names),
                pa.array(sequence),
                pa.array(count),
                pa.array(part.flags),
                pa.nulls(rows, pa.int64())
                if part.channel is None
                else pa.array(part.channel, mask=(part.flags & CHANNEL) == 0),
                pa.nulls(rows, pa.uint64()) if part.hf_number is None else pa.array(part.hf_number, mask=~numbered),
                time,
                self._source_time(texts, rows),
                pa.array(part.time, mask=~by_kernel).cast(time.type) if by_kernel.any() else pa.nulls(rows, time.type),
                pa.nulls(rows, self._schema.field("properties").type)
                if texts is None
                else pa.array(texts, self._schema.field("properties").type),
                pa.nulls(rows, pa.binary()) if part.properties is None else pa.array(part.properties, pa.binary()),
                part.payload,
            ],
            schema=self._schema,
        )

    def _source_time(self, texts: Sequence[list[tuple[str, str]] | None] | None, rows: int) -> pa.Array:
        """When messages were sent, where a property says so."""
        pa = _layout.arrow()
        kind = self._schema.field("source_timestamp").type
        if texts is None or self._time_property is None:
            return pa.nulls(rows, kind)
        values = [None if each is None else _number(dict(each).get(self._time_property)) for each in texts]
        return pa.array(values, pa.int64()).cast(kind)


def _number(text: str | None) -> int | None:
    try:
        value = int(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else None


def joined(parts: Sequence[Part]) -> Part:
    """Parts behind each other as one."""
    if len(parts) == 1:
        return parts[0]
    pa = _layout.arrow()
    some_lost = any(part.kinds is not None for part in parts)
    some_hf = any(part.hf_number is not None for part in parts)
    some_channel = any(part.channel is not None for part in parts)
    texts: Texts = None
    if any(part.properties is not None for part in parts):
        texts = [each for part in parts for each in part.properties or [None] * len(part)]

    def kinds(part: Part) -> npt.NDArray[np.int8]:
        return np.zeros(len(part), np.int8) if part.kinds is None else part.kinds

    def counts(part: Part) -> Ints:
        return np.ones(len(part), np.int64) if part.count is None else part.count

    def hf_numbers(part: Part) -> npt.NDArray[np.uint64]:
        return np.zeros(len(part), np.uint64) if part.hf_number is None else part.hf_number

    def channels(part: Part) -> Ints:
        return np.zeros(len(part), np.int64) if part.channel is None else part.channel

    return Part(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([kinds(part) for part in parts]) if some_lost else None,
        np.concatenate([counts(part) for part in parts]) if some_lost else None,
        np.concatenate([part.flags for part in parts]),
        np.concatenate([part.time for part in parts]),
        pa.concat_arrays([part.payload for part in parts]),
        np.concatenate([hf_numbers(part) for part in parts]) if some_hf else None,
        texts,
        np.concatenate([channels(part) for part in parts]) if some_channel else None,
    )


def lost_part(kind: int, number: int, count: int, time_ns: int) -> Part:
    """One row of a kind: so many messages are missing from a number on."""
    pa = _layout.arrow()
    return Part(
        np.array([number & 0xFFFFFFFF], np.uint32),
        np.array([kind], np.int8),
        np.array([count], np.int64),
        np.zeros(1, np.int32),
        np.array([time_ns], np.int64),
        pa.nulls(1, pa.binary()),
    )
