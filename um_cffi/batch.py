"""Messages as they lie in the library's memory: a Batch of many, a Message as a light handle on one of them.

A batch owns memory that the library filled. Arrays and memoryviews made from it keep that memory alive on their own:
the batch, its receiver and its context may go first, in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from um_cffi._native import ffi, lib
from um_cffi.errors import InvalidArgument
from um_cffi.events import MessageFlags, MessageType, ReceiverEvent, message_type

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]

RECORD = np.dtype(
    [
        ("offset", np.uint64),
        ("length", np.uint32),
        ("sequence_number", np.uint32),
        ("flags", np.int32),
        ("type", np.int32),
        ("topic", np.uint32),
        ("source", np.uint32),
        ("timestamp_ns", np.int64),
    ]
)
"""Columns of Batch.records: the layout of um_record_t."""
assert RECORD.itemsize == ffi.sizeof("um_record_t")

CHUNK = 512  # messages turned into objects at a time: bounds what is made before the first of them is looked at
_DATA = int(MessageType.DATA)
_REQUEST = int(MessageType.REQUEST)
_MESSAGES = (_DATA, _REQUEST)

_forked = False


def forget_memory() -> None:
    """In a child of fork(): the memory of batches belongs to the parent's library; leave it alone."""
    global _forked
    _forked = True


class _Memory:
    """A part of a taken batch, for numpy. The batch is released when no part of it is referenced any more."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, owner: object, address: int, size: int) -> None:
        self._owner = owner
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, True)}


class _Owner:
    """Releases a taken batch when it goes."""

    __slots__ = ("_pointer", "_release")

    def __init__(self, pointer: Any) -> None:
        self._pointer = pointer
        self._release = lib.um_batch_release

    def __del__(self) -> None:
        if not _forked:
            self._release(self._pointer)


def _bytes_at(owner: _Owner, pointer: Any, size: int) -> npt.NDArray[np.uint8]:
    if size == 0:
        return np.empty(0, np.uint8)
    return np.asarray(_Memory(owner, int(ffi.cast("uintptr_t", pointer)), size))


class _Chunk:
    """The records of some messages; columns become lists when the first of them is asked for."""

    __slots__ = ("_lists", "records", "sources", "topics")

    def __init__(self, records: npt.NDArray[np.void], topics: Sequence[str], sources: Sequence[str]) -> None:
        self.records = records
        self.topics = topics
        self.sources = sources
        self._lists: dict[str, list[int]] = {}

    def value(self, column: str, at: int) -> int:
        """One value of a column."""
        values = self._lists.get(column)
        if values is None:
            values = self._lists[column] = self.records[column].tolist()
        return values[at]


class Message:
    """One received message. Cheap to make; stays valid for as long as it is referenced.

    It keeps the whole batch it came in alive; call `retain()` on the few that are kept for long. May be handed to any
    thread.
    """

    __slots__ = ("_at", "_chunk", "data")

    data: memoryview
    """The payload, read-only, without a copy. The view keeps its memory alive by itself."""

    def __init__(self, data: memoryview, chunk: _Chunk, at: int) -> None:
        self.data = data
        self._chunk = chunk
        self._at = at

    @property
    def topic(self) -> str:
        """The topic it was sent on."""
        chunk = self._chunk
        return chunk.topics[chunk.value("topic", self._at)]

    @property
    def source(self) -> str:
        """Source string of the session it came from."""
        chunk = self._chunk
        return chunk.sources[chunk.value("source", self._at)]

    @property
    def sequence_number(self) -> int:
        """Number of the message in its topic and session; of the last fragment if it has several. Wraps at 2**32."""
        return self._chunk.value("sequence_number", self._at)

    @property
    def flags(self) -> MessageFlags:
        """How it came: retransmitted, immediate, ..."""
        return MessageFlags(self._chunk.value("flags", self._at))

    @property
    def type(self) -> MessageType | int:
        """DATA or REQUEST; other types are events and losses, when iterating over a Batch only."""
        return message_type(self._chunk.value("type", self._at))

    @property
    def timestamp_ns(self) -> int:
        """Arrival in the library: wall clock, nanoseconds since 1970, of the granularity of one read of the socket."""
        return self._chunk.value("timestamp_ns", self._at)

    @property
    def hr_timestamp(self) -> int | None:
        """Arrival at the network card, nanoseconds since 1970; None where the card gives none."""
        return None

    def retain(self) -> Message:
        """Copy the message out of its batch, so that keeping it does not keep the batch. Returns itself."""
        chunk, at = self._chunk, self._at
        self.data = memoryview(bytes(self.data))
        self._chunk = _Chunk(chunk.records[at : at + 1].copy(), chunk.topics, chunk.sources)
        self._at = 0
        return self

    def is_event(self) -> bool:
        """Whether it is a loss or another event, as only iterating over a Batch gives them."""
        return self._chunk.value("type", self._at) not in _MESSAGES

    def __len__(self) -> int:
        """Length of the payload in bytes."""
        return len(self.data)

    def __bool__(self) -> bool:
        return True

    def __bytes__(self) -> bytes:
        """A copy of the payload."""
        return bytes(self.data)

    def __repr__(self) -> str:
        kind = self.type
        name = kind.name if isinstance(kind, MessageType) else str(kind)
        return f"<Message {name} {self.topic!r} #{self.sequence_number} {len(self)} bytes from {self.source}>"


class Batch:
    """Many messages in one piece of memory, gathered in C: `data` holds the payloads, `records` describes them.

    Losses and ends of sessions are records too, in their place (column `type`, see MessageType). Iterating gives a
    Message for each record. All arrays are read-only views of the library's memory and keep it alive; any thread may
    use them, several at a time.
    """

    __slots__ = ("__weakref__", "_view", "data", "records", "sources", "topics")

    def __init__(self, pointer: Any, topics: list[str], sources: list[str]) -> None:
        """Takes over a um_batch_t. `topics` and `sources` are shared by the batches of a receiver and only grow."""
        owner = _Owner(pointer)
        self.data: npt.NDArray[np.uint8] = _bytes_at(owner, pointer.data, pointer.data_len)
        """All payloads in one buffer; `offset` and `length` of the records tell where each one is."""
        size = pointer.count * RECORD.itemsize
        self.records: npt.NDArray[np.void] = _bytes_at(owner, pointer.records, size).view(RECORD)
        """One row for each message, loss or event, in order of arrival; see RECORD for the columns."""
        self.topics: Sequence[str] = topics
        """Topic names; the column `topic` holds indexes into it. The same for all batches of a receiver."""
        self.sources: Sequence[str] = sources
        """Source strings; the column `source` holds indexes into it."""
        self._view: memoryview | None = None

    @property
    def view(self) -> memoryview:
        """`data` as a read-only memoryview."""
        view = self._view
        if view is None:
            view = self._view = memoryview(self.data)  # type: ignore[arg-type]
        return view

    def __len__(self) -> int:
        """Number of records."""
        return len(self.records)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Message]:
        """A Message for each record, events and losses included."""
        count = len(self.records)
        if count <= CHUNK:
            return self._messages_from(0)
        return itertools.chain.from_iterable(map(self._messages_from, range(0, count, CHUNK)))

    def _part(self, begin: int, end: int) -> tuple[_Chunk, list[int], list[int]]:
        """Some records: their chunk, and where their payloads begin and end."""
        records = self.records[begin:end]
        begins = records["offset"]
        ends = begins + records["length"]
        return _Chunk(records, self.topics, self.sources), begins.tolist(), ends.tolist()

    def _messages_from(self, at: int) -> Iterator[Message]:
        """The messages of one chunk; all of it lazily: objects that die young do not wake the garbage collector."""
        chunk, begins, ends = self._part(at, at + CHUNK)
        payloads = map(self.view.__getitem__, map(slice, begins, ends))
        return map(Message, payloads, itertools.repeat(chunk), range(len(begins)))

    def __getitem__(self, at: int) -> Message:
        """The message or event of one record."""
        records = self.records[at : at + 1 or None]
        if len(records) == 0:
            raise IndexError(f"record {at} of {len(self.records)}")
        begin = int(records["offset"][0])
        data = self.view[begin : begin + int(records["length"][0])]
        return Message(data, _Chunk(records, self.topics, self.sources), 0)

    def __repr__(self) -> str:
        return f"<Batch of {len(self.records)} records, {len(self.data)} bytes>"

    def events(self) -> list[int]:
        """Positions of the records that are something other than a message: losses, ends of sessions, ..."""
        types = self.records["type"]
        found: list[int] = np.flatnonzero((types != _DATA) & (types != _REQUEST)).tolist()
        return found

    def messages(self) -> Iterator[Message]:
        """A Message for each message; events and losses are left out."""
        if not self.events():
            return iter(self)
        return (message for message in self if not message.is_event())

    def _message_records(self) -> npt.NDArray[np.void]:
        types = self.records["type"]
        wanted = (types == _DATA) | (types == _REQUEST)
        return self.records if wanted.all() else self.records[wanted]

    def decode(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The payloads as an array of a fixed layout, one element for each message (events and losses left out).

        `dtype` is anything numpy understands; give byte orders explicitly (`"<u4"`). A view without a copy where the
        payloads lie one behind the other, which is the rule; otherwise they are gathered. InvalidArgument when a
        payload does not have the size of the dtype.
        """
        layout = np.dtype(dtype)
        records = self._message_records()
        if len(records) == 0:
            return np.empty((0, *layout.shape), layout.base)
        wrong = np.flatnonzero(records["length"] != layout.itemsize)
        if len(wrong) or layout.itemsize == 0:
            at = int(wrong[0]) if len(wrong) else 0
            raise InvalidArgument(
                f"message {at} of {len(records)} (sequence number {records['sequence_number'][at]}) has "
                f"{records['length'][at]} bytes: the dtype needs {layout.itemsize}; choose the messages by length first"
            )
        offsets = records["offset"]
        begin = int(offsets[0])
        if len(records) == 1 or bool((np.diff(offsets) == layout.itemsize).all()):
            payloads = self.data[begin : begin + len(records) * layout.itemsize]
        else:
            payloads = self.data[offsets[:, None] + np.arange(layout.itemsize, dtype=np.uint64)].reshape(-1)
        return payloads.view(layout.base).reshape(len(records), *layout.shape)

    def to_arrow(self) -> pa.RecordBatch:
        """An Arrow RecordBatch with columns payload, topic, source, sequence_number, flags, type, timestamp.

        `payload` is large_binary over the batch's own memory: no payload is copied, and the Arrow data keeps the memory
        alive. (If payloads do not follow each other the column is binary_view, again without a copy, except of payloads
        of up to 12 bytes, which that format holds inline.) topic and source are dictionary columns. Needs pyarrow.
        """
        from um_cffi import _arrow

        return _arrow.record_batch(self)


def event_of(message: Message) -> ReceiverEvent:
    """The event that a record other than a message stands for; see Message.is_event()."""
    return ReceiverEvent(
        message.type,
        message.topic,
        message.source,
        message.sequence_number,
        message.timestamp_ns,
        bytes(message.data).rstrip(b"\0").decode("utf-8", "replace"),
    )
