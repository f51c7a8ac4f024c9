"""Sources: publishers of one topic each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import numpy.typing as npt

from um_cffi._attributes import Attributes, check_option, merged, read_option, sorted_out
from um_cffi._base import SLICE_MS, Part, milliseconds
from um_cffi._native import ffi, lib
from um_cffi.batch import Batch, Slot, make_slot
from um_cffi.context import Context
from um_cffi.dispatch import Dispatcher, EventQueue
from um_cffi.errors import InvalidArgument, NotSupported, OutOfMemory, TimedOut, check, raise_last
from um_cffi.events import SourceEvent
from um_cffi.stats import NakCounts, SourceCounts, SourceStats, read_counts, read_naks, source_stats

if TYPE_CHECKING:
    from typing_extensions import Buffer, Unpack

    from um_cffi._options import SourceOptions

    Payload = Union[Buffer, Sequence[Buffer]]
    Payloads = Union[npt.NDArray[Any], Batch, Iterable[Buffer]]

_FLUSH: int = lib.LBM_MSG_FLUSH
_WOULD_BLOCK: int = lib.LBM_EWOULDBLOCK
_ROOM_CHECK = 0.1  # seconds between attempts of asend() when no WAKEUP comes
_READY_CHECK = 0.005  # seconds between looks of await_receivers()
_CHUNK = 65536  # messages that send_many() joins at a time when they lie in many buffers
_SEGMENTS_MAX = 1024

_try_send = lib.um_py_try_send


class Source(Part):
    """A publisher of one topic in the context `ctx`.

    `on_event(event)` is told who connects and disconnects (SourceEvent), on the context's callback thread or where
    `queue` is dispatched. Options of the scope source may be given as keywords, or as a mapping in `options`. All
    methods may be called from any thread, callbacks included; messages of one thread keep their order.

    A source without receivers drops what is sent: wait_receivers() tells when the first one is there. InvalidArgument
    names an unknown option or a wrong value, and what is allowed; it is also what every method raises once the source
    is closed.
    """

    def __init__(
        self,
        ctx: Context,
        topic: str,
        on_event: Callable[[SourceEvent], object] | None = None,
        queue: EventQueue | None = None,
        *,
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[SourceOptions],
    ) -> None:
        chosen = sorted_out(("source",), merged(options, keywords))["source"]
        self._state: Any = None
        self._slot: Slot | None = None  # of acquire()
        self._queue: Dispatcher | None = ctx._queue_for(queue) if on_event is not None else None
        super().__init__(f"source of {topic}")
        self._ctx = ctx
        self._topic = topic
        self._waiting: list[asyncio.Future[None]] = []
        try:
            self._create(ctx, topic, chosen, on_event)
        except BaseException:
            self._closed = True  # nothing to delete
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
                check(lib.lbm_src_topic_alloc(topic_holder, ctx._ctx, topic.encode(), attributes.pointer))
            callback = lib.um_py_source_proc()
            check(lib.lbm_src_create(holder, ctx._ctx, topic_holder[0], callback, self._state, ffi.NULL))
            self._src: Any = holder[0]
            self._transport = read_option(lib.lbm_src_str_getopt, self._src, "transport")
            self._turn = ctx._turn_of(self._src) if self._transport == "lbtsmx" else ffi.NULL
            lib.um_py_source_open(self._state, self._src, self._turn)
            if self._transport == "lbtsmx":  # straight to C, without a frame of Python for each message
                self._slot = self._make_slot(0)
                vars(self).update(acquire=self._slot._view, complete=self._slot.complete, cancel=self._slot.cancel)
            ctx._adopt(self)

    @property
    def context(self) -> Context:
        """The context the source was made in."""
        return self._ctx

    @property
    def topic(self) -> str:
        """The topic."""
        return self._topic

    # -- sending --

    def send(self, data: Payload, flush: bool = False) -> None:
        """Send one message, `data`: anything with a buffer (bytes, array, memoryview), or a list of such as one
        message.

        Nothing is copied before the library has it. Waits while the session has no room; signals are handled
        meanwhile, so that Ctrl-C ends it (the message is not sent then). `flush` sends out now what implicit batching
        holds back. InvalidArgument when `data` has no buffer, or the source is closed, also while waiting.
        """
        if self._attempt(data, flush):
            return
        buffer, size, segments, count, _keep = self._prepare(data)
        flags = _FLUSH if flush else 0
        while True:
            self._check_open()
            if lib.um_py_send(self._state, buffer, size, segments, count, flags, SLICE_MS) == 0:
                return
            if lib.lbm_errnum() != _WOULD_BLOCK:
                raise_last()

    def send_nowait(self, data: Payload, flush: bool = False) -> None:
        """Send `data` as send() does, but WouldBlock instead of waiting: nothing is sent then.

        The event WAKEUP tells when to try again. `flush` sends out now what implicit batching holds back.
        """
        if not self._attempt(data, flush):
            raise_last()

    async def asend(self, data: Payload, flush: bool = False) -> None:
        """Send `data` as send() does, for asyncio: waits without blocking the event loop.

        Cancelled while waiting: nothing is sent. `flush` sends out now what implicit batching holds back. Any event
        loop, several tasks at a time; their messages are not in any order.
        """
        while True:
            room = self._room_descriptor()  # before the attempt, so that no WAKEUP after it is missed
            if self._attempt(data, flush):
                return
            await self._wait_for_room(room)

    def _attempt(self, data: Payload, flush: bool) -> bool:
        """Send without waiting; False when there is no room."""
        if self._inherited or self._closed:
            self._check_open()
        flags = _FLUSH if flush else 0
        if type(data) is bytes:
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

    def send_many(self, messages: Payloads, flush: bool = False) -> int:
        """Send many messages with one call that loops in C; returns their number.

        `messages` is an array, each element along its first axis a message (rows of a 2-D array, elements of a
        structured array); a Batch, whose messages are sent on without events and losses; or any iterable of buffers.
        Waits for room as send() does; `flush` applies to the last. On an exception, also of Ctrl-C, those before it
        have been sent; the exception has their number as `sent`.
        """
        if isinstance(messages, Batch):
            return self._send_batch(messages, flush)
        if isinstance(messages, np.ndarray):
            return self._send_array(messages, flush)
        total = 0
        part: list[Buffer] = []
        try:
            for message in messages:
                part.append(message)
                if len(part) == _CHUNK:
                    total += self._send_parts(part, False)
                    part = []
            return total + self._send_parts(part, flush)
        except BaseException as error:
            error.sent = total + getattr(error, "sent", 0)  # type: ignore[attr-defined]
            raise

    def _send_parts(self, parts: Sequence[Buffer], flush: bool) -> int:
        """Messages that lie in many buffers: joined, which is cheaper than a call for each."""
        if not parts:
            if flush:
                self.flush()
            return 0
        joined = b"".join(parts)
        lengths = np.fromiter(
            (len(part) if isinstance(part, (bytes, bytearray)) else memoryview(part).nbytes for part in parts),
            np.uint32,
            len(parts),
        )
        offsets = np.zeros(len(parts), np.uint64)
        np.cumsum(lengths[:-1], out=offsets[1:])
        return self._send_all(joined, offsets, lengths, 0, 0, len(parts), flush)

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
        base = ffi.cast("char *", data.ctypes.data) if isinstance(data, np.ndarray) else ffi.from_buffer(data)
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
        if size < 0:
            raise InvalidArgument(f"slot of {size} bytes: must be 0 or more")
        return self._make_slot(size)

    def acquire_rows(self, count: int, dtype: npt.DTypeLike, wait: bool = True) -> npt.NDArray[Any]:
        """A writable numpy array of up to `count` messages in shared memory, an element of type `dtype` each.

        dtype may be structured, or a tuple such as ("u1", 64) for rows of a 2-D array. There are fewer elements, at
        least one, where the ring ends or has no more room: look at len(). Fill the array, `del` it and everything made
        of it, then complete(). Nothing else may be acquired from the source at that time. Otherwise as acquire(),
        `wait` and errors included; InvalidArgument also for a dtype with Python objects.
        """
        kind = np.dtype(dtype)
        if count < 1 or kind.hasobject:
            raise InvalidArgument(f"{count} rows of {kind}: must be 1 or more, of a type without Python objects")
        slot = self._acquiring()
        number, stride, view = slot._rows(count, kind.itemsize, wait)
        return np.ndarray((number, *kind.shape), kind.base, view, strides=(stride, *_strides(kind)))

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

    def _shut(self, patience: float | None) -> None:
        if self._slot is not None and not self._closed and not self._inherited:
            self._slot._seal()  # BufferError while views are in use: the memory has to stay
        super()._shut(patience)

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
        """Number of receiving contexts connected to the session of the source now. NotSupported except TCP, LBT-RU."""
        with self._using():
            return check(lib.um_src_receivers(self._src))

    def wait_receivers(self, count: int = 1, timeout: float | None = 10.0) -> None:
        """Wait until `count` receiving contexts are connected: they get every later message.

        TimedOut after `timeout` seconds; None waits without bound. Defined for TCP and LBT-RU, NotSupported on other
        transports. Signals are handled while waiting. InvalidOperation is not raised in callbacks: they do not run on
        the library's thread.
        """
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

        TimedOut after `timeout` seconds; None waits without bound. NotSupported except on TCP and LBT-RU.
        """
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
        stats = ffi.new("lbm_src_transport_stats_t *")
        with self._using():
            check(lib.lbm_src_retrieve_transport_stats(self._src, stats))
        return source_stats(stats)

    def naks(self) -> list[NakCounts]:
        """Which receiving contexts ask the session for repairs, and how much: the one that asks most first.

        Empty on transports without NAKs. InvalidArgument when the source is closed.
        """
        with self._using():
            return read_naks(lambda array, count: lib.um_src_naks(self._src, array, count))

    def counts(self) -> SourceCounts:
        """What became of the messages of this source: sent, and what its session discarded."""
        with self._using():
            return read_counts(SourceCounts, "um_src_stats_t", lambda out: lib.um_src_stats(self._src, out))

    def _close(self, patience: float | None) -> None:
        try:
            self._give_up()
        finally:
            if self._queue is not None:
                self._queue._remove_source(self)
            self._ctx._release(self)

    def _delete(self) -> None:
        check(lib.um_py_source_close(self._state))


def _buffer(data: Buffer) -> Any:
    """A view of the bytes of an object, without a copy."""
    try:
        return ffi.from_buffer(data)
    except (TypeError, BufferError, ValueError) as error:
        raise InvalidArgument(f"{type(data).__name__} cannot be sent: {error}; give a contiguous buffer") from error


def _strides(kind: np.dtype[Any]) -> tuple[int, ...]:
    """Of the dimensions within one element."""
    return np.empty(kind.shape, kind.base).strides


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
