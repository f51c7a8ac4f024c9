"""Messages as they lie in the library's memory: a Batch of many, a Message as a light handle on one of them.

A batch owns memory that the library filled. Arrays and memoryviews made from it keep that memory alive on their own:
the batch, its receiver and its context may go first, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from um_cffi.answering import aanswer, answer
from um_cffi.binding import arrow
from um_cffi.binding._fast import (
    Direct,
    Intake,
    Memory,
    Message,
    Slot,
    Stream,
    Walk,
    forget_memory,
    set_python_parts,
)
from um_cffi.binding._fast import slot as make_slot
from um_cffi.binding._native import ffi
from um_cffi.binding.arguments import dtype_of
from um_cffi.binding.deferred import np
from um_cffi.binding.tails import CHANNEL, tails_of
from um_cffi.errors import InvalidArgument, raise_last
from um_cffi.events import MessageFlags, MessageType, ReceiverEvent, message_type
from um_cffi.properties import NO_PROPERTIES, Properties, properties_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]

_COLUMNS = (
    ("offset", "u8"),
    ("length", "u4"),
    ("sequence_number", "u4"),
    ("flags", "i4"),
    ("type", "i4"),
    ("topic", "u4"),
    ("source", "u4"),
    ("timestamp_ns", "i8"),
)
assert sum(int(kind[1]) for _, kind in _COLUMNS) == ffi.sizeof("um_record_t")


@cache
def record_dtype() -> np.dtype[np.void]:
    """Columns of Batch.records: the layout of um_record_t."""
    return np.dtype(list(_COLUMNS))


_DATA = int(MessageType.DATA)
_REQUEST = int(MessageType.REQUEST)


def _describe(message: Message) -> str:
    """The repr() of a message."""
    name = message.type.name
    return f"<Message {name} {message.topic!r} #{message.sequence_number} {len(message)} bytes from {message.source}>"


__all__ = [
    "Batch",
    "Direct",
    "Intake",
    "Memory",
    "Message",
    "Slot",
    "Stream",
    "Walk",
    "event_of",
    "forget_memory",
    "make_slot",
    "record_dtype",
]
set_python_parts(MessageFlags, message_type, _describe, raise_last, answer, aanswer, properties_of, NO_PROPERTIES)


class Batch:
    """Many messages in one piece of memory, gathered in C: `data` holds the payloads, `records` describes them.

    Losses and ends of sessions are records too, in their place (column `type`, see MessageType), unless the receiver
    was asked for `events=False`; the payload of a BURST_LOSS is the number of messages lost (`<u8`). What few messages
    have are columns that are made when they are asked for: channels(), hf_numbers(), properties(), and the extra
    columns of to_arrow(). Iterating gives a Message for each record. All arrays are read-only views of the library's
    memory and keep it alive; any thread may use them, several at a time.
    """

    __slots__ = ("__weakref__", "_memory", "_view", "data", "records", "sources", "topics")

    def __init__(self, memory: Memory) -> None:
        """Made by receivers, of a `memory` they have taken."""
        self._memory = memory
        self.data: npt.NDArray[np.uint8] = np.frombuffer(memory.data, np.uint8)
        """All payloads in one buffer; `offset` and `length` of the records tell where each one is."""
        self.records: npt.NDArray[np.void] = np.frombuffer(memory.records, record_dtype())
        """One row for each message, loss or event, in order of arrival; see um_cffi.RECORD for the columns."""
        self.topics: Sequence[str] = memory.topics
        """Topic names; the column `topic` holds indexes into it. Batches of a receiver share a list, which grows; a new
        one is begun after 16384 names."""
        self.sources: Sequence[str] = memory.sources
        """Source strings; the column `source` holds indexes into it."""
        self._view: memoryview | None = None

    @property
    def view(self) -> memoryview:
        """`data` as a read-only memoryview."""
        view = self._view
        if view is None:
            view = self._view = self.data.data
        return view

    def __len__(self) -> int:
        """Number of records; 0, and the batch is false, where batches() tells that the time is over."""
        return len(self.records)

    def __iter__(self) -> Iterator[Message]:
        """A Message for each record, events and losses included."""
        return self._memory.messages(True)

    def __getitem__(self, at: int) -> Message:
        """The message or event of one record; IndexError when there is no such record."""
        return self._memory.message(at)

    def __repr__(self) -> str:
        return f"<Batch of {len(self.records)} records, {len(self.data)} bytes>"

    def events(self) -> list[int]:
        """Positions of the records that are something other than a message: losses, ends of sessions, ..."""
        types = self.records["type"]
        found: list[int] = np.flatnonzero((types != _DATA) & (types != _REQUEST)).tolist()
        return found

    def messages(self) -> Iterator[Message]:
        """A Message for each message; events and losses are left out."""
        return self._memory.messages(False)

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
        return self._decode(self._message_records(), dtype_of("decode()", dtype))

    def _decode(self, records: npt.NDArray[np.void], layout: np.dtype[Any]) -> npt.NDArray[Any]:
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

    def channels(self) -> npt.NDArray[np.int64]:
        """The number of the channel of each message, events and losses left out; -1 for those of none.

        As Message.channel, -1 for all where the receiver has no channels. Made with each call, as is what hf_numbers()
        and properties() give; send_many() takes it as its `channels`.
        """
        records = self._message_records()
        found = tails_of(self, records).channel
        if found is None:
            return np.full(len(records), -1, np.int64)
        found[(records["flags"] & CHANNEL) == 0] = -1
        return found

    def hf_numbers(self) -> npt.NDArray[np.uint64]:
        """The number of hot failover of each message, events and losses left out; 0 for those that have none.

        The column `flags` tells which have one: those with MessageFlags.HF_32 or HF_64.
        """
        records = self._message_records()
        found = tails_of(self, records).hf_number
        return np.zeros(len(records), np.uint64) if found is None else found

    def properties(self) -> list[Properties]:
        """The properties of each message, events and losses left out; empty ones for those that have none.

        Messages with the same ones share an object. send_many() takes the list as its `properties`. InvalidArgument
        when those of a message are malformed.
        """
        records = self._message_records()
        written = tails_of(self, records).properties
        if written is None:
            return [NO_PROPERTIES] * len(records)
        made: dict[bytes | None, Properties] = {each: properties_of(each) for each in set(written) if each is not None}
        made[None] = NO_PROPERTIES
        return [made[each] for each in written]

    def to_arrow(self, extra: Iterable[arrow.Extra] = ()) -> pa.RecordBatch:
        """An Arrow RecordBatch with columns payload, topic, source, sequence_number, flags, type, timestamp.

        A row for each record, events included. `payload` is large_binary over the batch's own memory: no payload is
        copied, and the Arrow data keeps the memory alive. (If payloads do not follow each other the column is
        binary_view, again without a copy, except of payloads of up to 12 bytes, which that format holds inline.) topic
        and source are dictionary columns, timestamp is of nanoseconds in UTC. `extra` are names of further columns,
        as recordings have them, null where a message has none: `channel` (int64), `hf_number` (uint64), `properties`
        (a map of texts to texts) and `properties_bytes` (as they travel). InvalidArgument for another name. ImportError
        without pyarrow; others take the batch as it is, such as `polars.DataFrame(batch)`, without extra columns.
        """
        try:
            import pyarrow as pa
        except ImportError as error:
            raise ImportError("Batch.to_arrow() needs pyarrow: pip install pyarrow") from error
        names = arrow.extra_names("to_arrow()", extra)
        return pa.record_batch(_Wider(self, names) if names else self)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The columns of to_arrow(), as capsules of Arrow's PyCapsule interface; `requested_schema` is left alone."""
        return arrow.capsules(arrow.batch_column(self))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The columns of to_arrow(), as a stream of one; `requested_schema` is left alone."""
        column = arrow.batch_column(self)
        return arrow.stream(column, iter((column, None)).__next__)


class _Wider:
    """A batch with extra columns, for who takes Arrow data."""

    def __init__(self, batch: Batch, extra: tuple[arrow.Extra, ...]) -> None:
        self._column = arrow.batch_column(batch, extra)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return arrow.capsules(self._column)


def event_of(message: Message) -> ReceiverEvent:
    """The event that a record other than a message stands for; see Message.is_event()."""
    count = message.count
    text = "" if count else bytes(message.data).rstrip(b"\0").decode("utf-8", "replace")
    return ReceiverEvent(
        message.type,
        message.topic,
        message.source,
        message.sequence_number,
        message.timestamp_ns,
        text,
        count,
        message.hf_number,
    )
