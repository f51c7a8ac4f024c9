"""Sources: publishers of one topic each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from um_cffi._many import Many, nothing_sent
from um_cffi.batch import Batch, Slot, make_slot
from um_cffi.binding._fast import send_each
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import channel_number, dtype_of, expect_context, name_bytes, shown, whole
from um_cffi.binding.attributes import Attributes, check_option, merged, read_option, sorted_out
from um_cffi.binding.callbacks import check_callback
from um_cffi.binding.deferred import asyncio, is_array, np, stats
from um_cffi.binding.frames import is_arrow, is_pandas, pandas_messages, spans
from um_cffi.binding.lifetime import SLICE_MS, Part, counted, expect_left_objects, milliseconds
from um_cffi.binding.replaying import retention, with_meaning
from um_cffi.binding.sent_columns import SentColumns
from um_cffi.context import Context
from um_cffi.dispatch import Dispatcher, EventQueue
from um_cffi.errors import InvalidArgument, NotSupported, OutOfMemory, TimedOut, check, raise_last
from um_cffi.events import SourceEvent
from um_cffi.properties import Extras, extras_of, made_of

if TYPE_CHECKING:
    from datetime import timedelta

    import numpy.typing as npt
    from typing_extensions import Buffer, Unpack

    from um_cffi.binding.frames import ArrowArray, ArrowStream, DataFrame, Span
    from um_cffi.binding.option_types import SourceOptions
    from um_cffi.binding.sent_columns import ChannelColumn, PropertyColumns
    from um_cffi.pdm import Definition
    from um_cffi.properties import PropertyValue
    from um_cffi.stats import NakCounts, SourceCounts, SourceStats

    Piece = Union[Buffer, npt.NDArray[Any]]  # before Python 3.12 arrays are not known to be buffers
    Payload = Union[Piece, Sequence[Piece]]
    Payloads = Union[npt.NDArray[Any], Batch, ArrowArray, ArrowStream, DataFrame, Iterable[Buffer]]

_FLUSH: int = lib.LBM_MSG_FLUSH
_WOULD_BLOCK: int = lib.LBM_EWOULDBLOCK
_ROOM_CHECK = 0.1  # seconds between attempts of asend() when no WAKEUP comes
_READY_CHECK = 0.005  # seconds between looks of await_receivers()
_SEGMENTS_MAX = 1024
_CHANNELS_MAX = 4096  # that a source keeps what it needs for

_try_send = lib.um_py_try_send


class Source(Part):
    """A publisher of one topic in the context `ctx`.

    `on_event(event)` is told who connects and disconnects (SourceEvent), on the context's callback thread or where
    `queue` is dispatched. Options of the scope source may be given as keywords, or as a mapping in `options`. All
    methods may be called from any thread, callbacks included; messages of one thread keep their order.

    A source without receivers drops what is sent: wait_receivers() tells when the first one is there. Unless it keeps
    some of it for receivers that come later: `retain` is a number of messages, a size as a str ("64 MB", "1 GiB";
    messages count 64 bytes beside their own), or a timedelta, and what is kept at least, the newest messages first.
    Messages and times are held to 24 MiB: `retransmit_retention_size_limit` raises that. Receivers get what is kept
    first, as their `replay` wants it. All transports but LBT-SMX. InvalidArgument
    names an unknown option or a wrong value, and what is allowed; it is also what every method raises once the source
    is closed.
    """

    _create_source: Any = lib.lbm_src_create

    def __init__(
        self,
        ctx: Context,
        topic: str,
        on_event: Callable[[SourceEvent], object] | None = None,
        queue: EventQueue | None = None,
        *,
        retain: int | str | timedelta | None = None,
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[SourceOptions],
    ) -> None:
        expect_context("Source(ctx, topic)", ctx)
        self._topic_bytes = name_bytes("Source(ctx, topic)", "topic", topic)
        if on_event is not None:
            check_callback(f"source of {topic}", "on_event", on_event)
        kept = retention(f"source of {topic}", retain)
        wanted = with_meaning(f"source of {topic}", "retain", kept, merged(options, keywords))
        chosen = sorted_out(("source",), wanted)["source"]
        self._state: Any = None
        self._slot: Slot | None = None  # of acquire()
        self._queue: Dispatcher | None = ctx._queue_for(queue) if on_event is not None else None
        super().__init__(f"source of {topic}")
        self._ctx = ctx
        self._topic = topic
        self._waiting: list[asyncio.Future[None]] = []
        self._channels: dict[int, Extras] = {}
        try:
            self._create(ctx, topic, chosen, on_event)
        except BaseException:
            self._closed = True
            if self._state is not None:
                lib.um_py_source_close(self._state)
            if self._queue is not None:
                self._queue._remove_source(self)
            raise

    def _create(
        self,
        ctx: Context,
        topic: str,
        chosen: Mapping[str, str],
        on_event: Callable[[SourceEvent], object] | None,
    ) -> None:
        events = ffi.NULL
        if self._queue is not None and on_event is not None:
            events = self._queue._add_source(self, topic, on_event)
        state = lib.um_py_source_create(self._number, events)
        if state == ffi.NULL:
            raise OutOfMemory(f"no memory for the {self._name}")
        self._state = ffi.gc(state, lib.um_py_source_delete)
        topic_holder, holder = ffi.new("lbm_topic_t **"), ffi.new("lbm_src_t **")
        with ctx._using():
            with Attributes("source", chosen) as attributes:
                check(lib.lbm_src_topic_alloc(topic_holder, ctx._ctx, self._topic_bytes, attributes.pointer))
            callback = lib.um_py_source_proc()
            check(self._create_source(holder, ctx._ctx, topic_holder[0], callback, self._state, ffi.NULL))
            lib.um_py_source_open(self._state, holder[0])
            self._src: Any = holder[0]
            self._transport = read_option(lib.lbm_src_str_getopt, self._src, "transport")
            if self._transport == "lbtsmx":
                self._share_session(ctx._turn_of(self._src))
            ctx._adopt(self)

    def _share_session(self, turn: Any) -> None:
        """Over LBT-SMX: `turn` is what the sources of the session take turns with."""
        expect_left_objects()  # views of messages keep the memory, and with it the source
        self._turn = turn
        lib.um_py_source_take_turns(self._state, turn)
        self._slot = self._make_slot(0)  # straight to C, without a frame of Python for each message
        vars(self).update(acquire=self._slot._view, complete=self._slot.complete, cancel=self._slot.cancel)

    @property
    def context(self) -> Context:
        """The context the source was made in."""
        return self._ctx

    @property
    def topic(self) -> str:
        """The topic."""
        return self._topic

    # -- sending --

    def send(
        self,
        data: Payload,
        flush: bool = False,
        *,
        properties: Mapping[str, PropertyValue] | None = None,
        channel: int | None = None,
    ) -> None:
        """Send one message, `data`: anything with a buffer (bytes, array, memoryview), or a list of such as one
        message.

        Nothing is copied before the library has it. Waits while the session has no room; signals are handled
        meanwhile, so that Ctrl-C ends it (the message is not sent then). `flush` sends out now what implicit batching
        holds back. `properties` are named values that go with the message: a mapping, or Properties made before, which
        is cheaper for many messages. A Message that is sent on goes without its own unless they are given here.
        `channel` is the number of the channel it goes on, 0 to 2**32 - 1: receivers may take some channels only.
        InvalidArgument when `data` has no buffer, properties cannot be sent, or the source is closed, also while
        waiting. There are no properties over LBT-SMX (InvalidArgument), and no channels (NotSupported).
        """
        extras = None if properties is None and channel is None else self._extras(properties, channel)
        if not self._attempt(data, flush, extras):
            self._send_waiting(data, flush, extras)

    def _send_waiting(self, data: Payload, flush: bool, extras: Extras | None) -> None:
        """Send what has found no room, as soon as there is some."""
        buffer, size, segments, count, _keep = self._prepare(data)
        flags = _FLUSH if flush else 0
        while True:
            self._check_open()
            if extras is None:
                result = lib.um_py_send(self._state, buffer, size, segments, count, flags, SLICE_MS)
            else:
                result = lib.um_py_send_with(self._state, buffer, size, segments, count, flags, extras.sent, SLICE_MS)
            if result == 0:
                return
            if lib.lbm_errnum() != _WOULD_BLOCK:
                raise_last()

    def send_nowait(
        self,
        data: Payload,
        flush: bool = False,
        *,
        properties: Mapping[str, PropertyValue] | None = None,
        channel: int | None = None,
    ) -> None:
        """Send `data` as send() does, but WouldBlock instead of waiting: nothing is sent then.

        The event WAKEUP tells when to try again. `flush` sends out now what implicit batching holds back; `properties`
        and `channel` are those of send().
        """
        extras = None if properties is None and channel is None else self._extras(properties, channel)
        if not self._attempt(data, flush, extras):
            raise_last()

    async def asend(
        self,
        data: Payload,
        flush: bool = False,
        *,
        properties: Mapping[str, PropertyValue] | None = None,
        channel: int | None = None,
    ) -> None:
        """Send `data` as send() does, for asyncio: waits without blocking the event loop.

        Cancelled while waiting: nothing is sent. `flush` sends out now what implicit batching holds back; `properties`
        and `channel` are those of send(). Any event loop, several tasks at a time; their messages are not in any order.
        """
        extras = None if properties is None and channel is None else self._extras(properties, channel)
        await self._asend(data, flush, extras)

    def _extras(self, properties: Mapping[str, PropertyValue] | None, channel: int | None) -> Extras | None:
        """What goes with a message beside its payload; None: nothing."""
        if channel is None:
            return None if properties is None else extras_of(properties)
        if properties is None:
            found = self._channels.get(channel) if type(channel) is int else None
            return found if found is not None else self._extras_of_channel(channel)
        return Extras(made_of(properties), self._extras_of_channel(channel)._channel)

    def _extras_of_channel(self, channel: int) -> Extras:
        """Those of messages that have a channel alone: made once for each number."""
        number = channel_number(self._name, channel)
        found = self._channels.get(number)
        if found is None:
            holder = ffi.new("lbm_src_channel_info_t **")
            with self._using():
                check(lib.lbm_src_channel_create(holder, self._src, number))
            found = Extras(None, ffi.gc(holder[0], lib.lbm_src_channel_delete))
            if len(self._channels) >= _CHANNELS_MAX:
                self._channels.clear()  # sends that are on their way hold on to theirs
            self._channels[number] = found
        return found

    async def _asend(self, data: Payload, flush: bool, extras: Extras | None) -> None:
        while True:
            room = self._room_descriptor()  # before the attempt, so that no WAKEUP after it is missed
            if self._attempt(data, flush, extras):
                return
            await self._wait_for_room(room)

    def _attempt(self, data: Payload, flush: bool, extras: Extras | None = None) -> bool:
        """Send without waiting; False when there is no room."""
        if self._inherited or self._closed:
            self._check_open()
        flags = _FLUSH if flush else 0
        if extras is not None:
            buffer, size, segments, count, _keep = self._prepare(data)
            result = lib.um_py_send_with(self._state, buffer, size, segments, count, flags, extras.sent, 0)
        elif type(data) is bytes:
            result = _try_send(self._state, data, len(data), flags)
        else:
            buffer, size, segments, count, _keep = self._prepare(data)
            if segments == ffi.NULL:
                result = _try_send(self._state, buffer, size, flags)
            else:
                result = lib.um_py_try_sendv(self._state, segments, count, flags)
        if result == 0:
            return True
        if lib.lbm_errnum() != _WOULD_BLOCK:
            self._check_open()
            raise_last()
        return False

    @staticmethod
    def _prepare(data: Any) -> tuple[Any, int, Any, int, Any]:
        """Address and size of a buffer, or segments and their number; and what keeps them alive."""
        if isinstance(data, (list, tuple)):
            if not 0 < len(data) <= _SEGMENTS_MAX:
                raise InvalidArgument(f"{len(data)} segments: must be 1..{_SEGMENTS_MAX}")
            views = [_buffer(part) for part in data]
            segments = ffi.new("lbm_iovec_t[]", len(views))
            for segment, view in zip(segments, views):
                segment.iov_base = view
                segment.iov_len = len(view)
            return ffi.NULL, 0, segments, len(views), views
        view = _buffer(data)
        return view, len(view), ffi.NULL, 0, view

    def send_many(
        self,
        messages: Payloads | Mapping[Any, Any],
        flush: bool = False,
        *,
        dtype: npt.DTypeLike | None = None,
        definition: Definition | None = None,
        channels: ChannelColumn | None = None,
        properties: PropertyColumns | None = None,
    ) -> int:
        """Send many messages with one call that loops in C; returns their number.

        `messages` is an array, each element along its first axis a message (rows of a 2-D array, elements of a
        structured array); a Batch, whose messages are sent on, without their properties, channels, events and losses;
        Arrow data (of pyarrow, polars, DuckDB, ...) or a pandas frame; or any iterable of buffers. Of a frame the
        column `payload` is sent, or its rows are packed by `dtype`, whose fields are names of columns, or made
        pre-defined messages of `definition`, as its encode_many() does, which also takes mappings of columns. Iterators
        are sent as they come: nothing is gathered. Waits for room as send() does; `flush` applies to the last. On an
        exception, also of Ctrl-C, those before it have been sent; the exception has their number as `sent`.
        InvalidArgument for a frame without the columns, with nulls in them, or with values that do not fit into the
        dtype.

        `channels` is the number of a channel for all messages, or a column with one for each: an array, Arrow data or a
        list; -1, None and null are no channel. `properties` is a mapping of names to values for all messages or to
        such columns, whose types say how they travel (bool, int8 to int64, float32, float64, texts; ints of a list are
        int64), and in which None or null is a message that has none of that name; or a list with a mapping, or None,
        for each message. What is wrong in them, or is not as many as the messages, is an InvalidArgument before
        anything is sent, where the number of messages is known before; otherwise `sent` tells.
        """
        if channels is not None or properties is not None:
            with nothing_sent():
                columns = SentColumns(self._name, channels, properties)
            return Many(self, columns).send(messages, flush, dtype, definition)
        if definition is not None:
            if dtype is not None:
                raise InvalidArgument("send_many() with dtype and definition: give the one that makes the messages")
            return self._send_spans(definition._spans(messages), flush)
        if isinstance(messages, Batch):
            return self._send_batch(messages, flush)
        if is_array(messages):
            return self._send_array(messages, flush)
        layout = None if dtype is None else dtype_of("send_many()", dtype)
        if is_pandas(messages):
            found = pandas_messages(messages, layout)
            if isinstance(found, list):
                return self._send_each(iter(found), flush)
            return self._send_spans(found, flush)
        if is_arrow(messages):
            return self._send_spans(spans(messages, layout), flush)
        if layout is not None:
            raise InvalidArgument(f"dtype={layout} with {type(messages).__name__}: it packs the rows of frames")
        if isinstance(messages, (str, bytes, bytearray)) or not isinstance(messages, Iterable):
            raise InvalidArgument(
                f"send_many() of {shown(messages)}: give messages, as a list of bytes, an array, a frame or a Batch; "
                "send() takes a single one"
            )
        return self._send_each(iter(messages), flush)

    def _send_each(self, messages: Iterator[Buffer], flush: bool) -> int:
        """Messages of an iterator, each sent before the next is asked for."""
        self._check_open()
        state, sent = int(ffi.cast("uintptr_t", self._state)), ffi.new("size_t *")
        counter = int(ffi.cast("uintptr_t", sent))
        try:
            while True:
                left = send_each(state, messages, counter)
                if not left:
                    break
                self.send(left[0])
                sent[0] += 1
            if flush:
                self.flush()
        except BaseException as error:
            error.sent = int(sent[0])  # type: ignore[attr-defined]
            raise
        return int(sent[0])

    def _send_spans(self, found: Iterator[Span], flush: bool) -> int:
        """Messages where they lie, part by part."""
        total = 0
        try:
            for base, offsets, lengths, _kept in found:
                total += self._send_all(base, offsets, lengths, 0, 0, len(offsets), False)
            if flush:
                self.flush()
            return total
        except BaseException as error:
            error.sent = total + getattr(error, "sent", 0)  # type: ignore[attr-defined]
            raise

    def _send_batch(self, batch: Batch, flush: bool) -> int:
        records = batch._message_records()
        offsets = np.ascontiguousarray(records["offset"])
        lengths = np.ascontiguousarray(records["length"])
        return self._send_all(batch.data, offsets, lengths, 0, 0, len(records), flush)

    def _send_array(self, messages: npt.NDArray[Any], flush: bool) -> int:
        if messages.ndim == 0 or (messages.ndim == 1 and messages.dtype.itemsize == 1):
            raise InvalidArgument(
                f"array of shape {messages.shape} and type {messages.dtype}: each element along the first axis is a "
                "message; give rows (reshape to 2 dimensions) or structured elements"
            )
        if messages.dtype.hasobject:
            raise InvalidArgument(f"array of type {messages.dtype}: Python objects cannot be sent")
        length = messages.nbytes // len(messages) if len(messages) else 0
        if not messages[:1].flags.c_contiguous or messages.strides[0] < length:
            messages = np.ascontiguousarray(messages)
        stride = messages.strides[0] if len(messages) > 1 else length
        return self._send_all(messages, None, None, stride, length, len(messages), flush)

    def _send_all(
        self,
        data: Any,
        offsets: npt.NDArray[np.uint64] | None,
        lengths: npt.NDArray[np.uint32] | None,
        stride: int,
        length: int,
        count: int,
        flush: bool,
    ) -> int:
        self._check_open()
        where = data.ctypes.data if is_array(data) else data
        base = ffi.cast("char *", where) if isinstance(where, int) else ffi.from_buffer(where)
        at = ffi.NULL if offsets is None else ffi.from_buffer("uint64_t[]", offsets)
        sizes = ffi.NULL if lengths is None else ffi.from_buffer("uint32_t[]", lengths)
        sent = ffi.new("size_t *")
        flags = _FLUSH if flush else 0
        try:
            while lib.um_py_send_many(self._state, base, at, sizes, stride, length, count, flags, SLICE_MS, sent) != 0:
                if lib.lbm_errnum() != _WOULD_BLOCK:
                    self._check_open()
                    raise_last()
        except BaseException as error:
            error.sent = int(sent[0])  # type: ignore[attr-defined]
            raise
        return count

    def flush(self) -> None:
        """Send out now what implicit batching holds back. InvalidArgument when the source is closed."""
        with self._using():
            check(lib.um_py_flush(self._state))

    # -- messages written in shared memory --

    def acquire(self, size: int, wait: bool = True) -> memoryview:
        """A writable view, straight into shared memory, of the next message of `size` bytes; LBT-SMX only.

        Write the message into the view, then call complete(). Several may be acquired, to be published together, in
        their order. What lies in the view at first is undefined. Waits until receivers have made room, handling
        signals; without `wait` WouldBlock instead.

        complete() releases the view: using it then raises ValueError. numpy arrays, casts and slices made of it must be
        gone when complete() is called, which otherwise raises BufferError. Acquire and complete on one thread at a
        time; meanwhile sends on this source, and on others that share its session, raise InvalidOperation.

        NotSupported on other transports. InvalidArgument when `size` is beyond transport_lbtsmx_datagram_max_size minus
        16, or the source is closed; InvalidOperation when what is acquired fills the window, or when another source of
        the session has acquired messages. After fork() neither views nor sources may be used in the child.
        """
        return self._acquiring()._view(size, wait)

    def complete(self) -> int:
        """Publish the messages acquired, and release their views; returns how many messages that were.

        BufferError while something else made of a view is in use, such as a numpy array: delete it and call again;
        nothing has been published. NotSupported and InvalidArgument as of acquire().
        """
        return self._acquiring().complete()

    def cancel(self) -> int:
        """Give back the messages acquired without publishing them; returns how many messages that were.

        Errors as of complete().
        """
        return self._acquiring().cancel()

    def slot(self, size: int) -> Slot:
        """A buffer for messages of `size` bytes that is reused: after each slot.acquire() it is the next one.

        The cheapest way to write single messages: no view has to be made for each. It acquires and completes for the
        source as acquire() and complete() do. LBT-SMX only; errors as of acquire().
        """
        self._acquiring()
        return self._make_slot(whole("slot() of a size", size))

    def acquire_rows(self, count: int, dtype: npt.DTypeLike, wait: bool = True) -> npt.NDArray[Any]:
        """A writable numpy array of up to `count` messages in shared memory, an element of type `dtype` each.

        dtype may be structured, or a tuple such as ("u1", 64) for rows of a 2-D array. There are fewer elements, at
        least one, where the ring ends or has no more room: look at len(). Fill the array, `del` it and everything made
        of it, then complete(). Nothing else may be acquired from the source at that time. Otherwise as acquire(),
        `wait` and errors included; InvalidArgument also for a dtype with Python objects.
        """
        kind = dtype_of("acquire_rows()", dtype)
        if whole("acquire_rows() of a count", count) < 1 or kind.hasobject:
            raise InvalidArgument(f"{count} rows of {kind}: must be 1 or more, of a type without Python objects")
        slot = self._acquiring()
        number, stride, view = slot._rows(count, kind.itemsize, wait)
        rows: npt.NDArray[Any] = np.ndarray((number, *kind.shape), kind.base, view, strides=(stride, *_strides(kind)))
        return rows

    def _acquiring(self) -> Slot:
        self._check_open()
        if self._slot is None:
            raise NotSupported(
                f"{self._name} has the transport {self._transport}: only sources with transport lbtsmx have buffers in "
                "shared memory; use send()",
                lib.LBM_EOP,
            )
        return self._slot

    def _make_slot(self, size: int) -> Slot:
        return make_slot((self._state, self._turn), int(ffi.cast("uintptr_t", self._state)), size)

    def _check_closing(self, patience: float | None) -> None:
        super()._check_closing(patience)
        if self._slot is not None:
            self._slot._seal()  # BufferError while views are in use: the memory has to stay

    def _reopen(self) -> None:
        if self._slot is not None:
            self._slot._unseal()
        super()._reopen()

    # -- waiting in asyncio --

    def _room_descriptor(self) -> int:
        self._check_open()
        descriptor: int = lib.um_py_source_fd(self._state)
        if descriptor < 0:
            raise OutOfMemory(f"no descriptor for waiting in the {self._name}")
        return descriptor

    async def _wait_for_room(self, descriptor: int) -> None:
        """Until a WAKEUP comes, or it is time to look anyway."""
        loop = asyncio.get_running_loop()
        room: asyncio.Future[None] = loop.create_future()
        if not self._waiting:
            loop.add_reader(descriptor, self._room_comes, descriptor)
        self._waiting.append(room)
        timer = loop.call_later(_ROOM_CHECK, _resolve, room)
        try:
            await room
        finally:
            timer.cancel()
            self._waiting.remove(room)
            if not self._waiting:
                loop.remove_reader(descriptor)

    def _room_comes(self, descriptor: int) -> None:
        lib.um_py_clear_fd(descriptor)
        for room in self._waiting:
            _resolve(room)

    # -- readiness --

    def receivers(self) -> int:
        """Number of receiving contexts that the session of the source has now.

        Over TCP and LBT-RU: connected; over LBT-IPC and LBT-SMX: reading. A session carries many topics, so a context
        that is counted may receive another topic of it. NotSupported over LBT-RM: a multicast source does not know who
        listens; the receiver does, see Receiver.wait_session().
        """
        with self._using():
            self._check_countable("receivers()")
            return check(lib.um_src_receivers(self._src))

    def _check_countable(self, call: str) -> None:
        if self._transport == "lbtrm":
            raise NotSupported(
                f"{call} of the {self._name}: a source over LBT-RM does not know who receives; ask the receiver "
                "(wait_session()), or use another transport"
            )

    def wait_receivers(self, count: int = 1, timeout: float | None = 10.0) -> None:
        """Wait until `count` receiving contexts are connected: they get every later message.

        TimedOut after `timeout` seconds; None waits without bound. What is counted is told at receivers(); NotSupported
        over LBT-RM. Signals are handled while waiting. InvalidOperation is not raised in callbacks: they do not run on
        the library's thread.
        """
        self._check_countable("wait_receivers()")
        whole("receivers", count)
        end = None if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        while True:
            left = SLICE_MS if end is None else min(SLICE_MS, max(0, milliseconds(max(0.0, end - time.monotonic()))))
            with self._using():
                if lib.um_src_wait_receivers(self._src, count, left) == 0:
                    return
                errnum = lib.lbm_errnum()
                if errnum != lib.LBM_ETIMEDOUT:
                    raise_last()
            if end is not None and time.monotonic() >= end:
                raise self._too_few(count, timeout)

    async def await_receivers(self, count: int = 1, timeout: float | None = 10.0) -> None:
        """Wait until `count` receiving contexts are connected, as wait_receivers(), for asyncio.

        TimedOut after `timeout` seconds; None waits without bound. NotSupported over LBT-RM.
        """
        self._check_countable("await_receivers()")
        whole("receivers", count)
        end = None if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        while self.receivers() < count:
            if end is not None and time.monotonic() >= end:
                raise self._too_few(count, timeout)
            await asyncio.sleep(_READY_CHECK)

    def _too_few(self, count: int, timeout: float | None) -> TimedOut:
        return TimedOut(f"{self._name}: {self.receivers()} of {count} receivers connected after {timeout} s")

    # -- options and statistics --

    def getopt(self, name: str) -> str:
        """The value in force of the source option `name`, as text. InvalidArgument for an unknown one."""
        with self._using():
            return read_option(lib.lbm_src_str_getopt, self._src, name)

    def setopt(self, name: str, value: object) -> None:
        """Set the option `name`, one that may change while the source exists, to `value`.

        InvalidArgument for others.
        """
        _, written = check_option(("source",), name, value)
        with self._using():
            check(lib.lbm_src_str_setopt(self._src, name.encode(), written.encode()))

    def stats(self) -> SourceStats:
        """Statistics of the transport session that carries the topic; the class depends on the transport.

        NotSupported where the transport has none.
        """
        out = ffi.new("lbm_src_transport_stats_t *")
        with self._using():
            check(lib.lbm_src_retrieve_transport_stats(self._src, out))
        return stats.source_stats(out)

    def naks(self) -> list[NakCounts]:
        """Which receiving contexts ask the session for repairs, and how much: the one that asks most first.

        Empty on transports without NAKs. InvalidArgument when the source is closed.
        """
        with self._using():
            return stats.read_naks(lambda array, count: lib.um_src_naks(self._src, array, count))

    def counts(self) -> SourceCounts:
        """What became of the messages of this source: sent, and what its session discarded."""
        with self._using():
            return stats.read_counts(stats.SourceCounts, "um_src_stats_t", lambda out: lib.um_src_stats(self._src, out))

    def _facts(self) -> str:
        known = lib.um_src_receivers(self._src) if self._transport != "lbtrm" else -1  # which nobody can count
        return self._transport + (f", {counted(known, 'receiver')}" if known >= 0 else "")

    def _close(self, patience: float | None) -> None:
        self._give_up()
        if self._queue is not None:
            self._queue._remove_source(self)
        self._ctx._release(self)

    def _delete(self) -> None:
        check(lib.um_py_source_close(self._state))


def _buffer(data: Buffer) -> Any:
    """A view of the bytes of an object, without a copy."""
    if isinstance(data, str):
        raise InvalidArgument(f"send() of the str {shown(data)}: messages are bytes; give text.encode()")
    try:
        return ffi.from_buffer(data)
    except (TypeError, BufferError, ValueError) as error:
        raise InvalidArgument(
            f"send() of {shown(data)}, of type {type(data).__name__}: {error}; give bytes, or another contiguous buffer"
        ) from error


def _strides(kind: np.dtype[Any]) -> tuple[int, ...]:
    """Of the dimensions within one element."""
    strides: tuple[int, ...] = np.empty(kind.shape, kind.base).strides
    return strides


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
