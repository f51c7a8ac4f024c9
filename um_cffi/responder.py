"""Answering requests on a topic: Responder, and the requests that it hands to its handler."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

from um_cffi._room import sent
from um_cffi.answering import buffer_of
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import expect_context, name_bytes, whole
from um_cffi.binding.attributes import Attributes, merged, sorted_out
from um_cffi.binding.callbacks import check_callback, is_coroutine
from um_cffi.binding.deferred import asyncio
from um_cffi.binding.lifetime import Part, milliseconds
from um_cffi.errors import InvalidArgument, OutOfMemory, TimedOut, check, text
from um_cffi.properties import NO_PROPERTIES, Properties, properties_of
from um_cffi.requests import TAKE_MAX, new_inbox

if TYPE_CHECKING:
    from typing_extensions import Buffer, Unpack

    from um_cffi.binding.option_types import ReceiverOptions
    from um_cffi.context import Context
    from um_cffi.dispatch import Dispatcher

    Answer = Union[Buffer, None]
    Handler = Callable[["RequestMessage"], Union[Answer, Awaitable[Answer]]]

_ANSWERING_MAX = 1024  # requests being answered by coroutines; more of them wait in the inbox
_READY_CHECK = 0.005  # seconds between looks of wait_ready()


class RequestMessage:
    """A request that was received: its data, and the way back. Made by the `responder`, of a `letter` it has taken. Any
    thread may use it.
    """

    __slots__ = ("_msg", "_properties", "_responder", "data", "sequence_number", "source", "timestamp_ns", "topic")

    def __init__(self, responder: Responder, letter: Any) -> None:
        """Made by responders, of a `letter` they have taken."""
        self._responder = responder
        self._msg = ffi.gc(letter.msg, lib.um_py_message_free)
        self._properties: Properties | None = None
        self.data: bytes = ffi.buffer(letter.data, letter.len)[:] if letter.len else b""
        """The payload."""
        self.topic: str = responder.topic
        """The topic."""
        self.source: str = text(letter.source)
        """The source that sent it."""
        self.sequence_number: int = letter.sequence_number
        """Of the message, among those of its source."""
        self.timestamp_ns: int = letter.timestamp_ns
        """Arrival in this process, in nanoseconds since 1970."""

    def __bytes__(self) -> bytes:
        return self.data

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<RequestMessage {self.topic!r} #{self.sequence_number} {len(self.data)} bytes from {self.source}>"

    @property
    def properties(self) -> Properties:
        """Named values that came with the request; an empty mapping where it has none. Read when first looked at."""
        if self._properties is None:
            where, size = ffi.new("const void **"), ffi.new("size_t *")
            found = lib.um_py_request_properties(self._msg, where, size)
            self._properties = properties_of(bytes(ffi.buffer(where[0], size[0]))) if found else NO_PROPERTIES
        return self._properties

    def _attempt_of(self, data: Any) -> Callable[[], bool]:
        buffer = data if type(data) is bytes else buffer_of("respond()", data)

        def attempt() -> bool:
            self._responder._check_open()
            return sent(lib.um_py_respond(self._msg, buffer, len(buffer)))

        return attempt

    def respond(self, data: Buffer, timeout: float | None = None) -> None:
        """Answer with `data`; as often as you like, from any thread, also after the handler has returned.

        Waits while the connection to the requester has no room (response_session_maximum_buffer): TimedOut after
        `timeout` seconds. That it returns says that the answer is on its way, not that it arrived. In a coroutine
        await arespond() instead. InvalidArgument for a requester that cannot be answered (it has
        request_tcp_bind_request_port 0), or when the responder is closed.
        """
        attempt = self._attempt_of(data)
        if timeout is not None or not attempt():
            self._responder._ctx._room.retry(attempt, timeout, f"respond() to {self.source}")

    async def arespond(self, data: Buffer) -> None:
        """Answer as respond() does, for asyncio: waits without blocking the event loop."""
        await self._responder._ctx._room.aretry(self._attempt_of(data))


class Responder(Part):
    """Answers the requests on a topic in the context `ctx`: `handler(message)` is called with each RequestMessage.

    What the handler returns, unless None, is sent as the answer; it may also call `message.respond()`, now or later,
    once or often. A coroutine function runs as a task of the event loop in which the responder was made, many of them
    at a time; a plain function on the context's callback thread, one call after the other. An exception in it is
    logged, raised by raise_pending() and close(), and leaves the request without an answer. Messages that are no
    requests are ignored. Options of the scope receiver may be given as keywords, or as a mapping in `options`.

    Requests wait in 64 MiB of memory; beyond, the newest are dropped, see `dropped`. InvalidArgument names an unknown
    option or a wrong value, and what is allowed; it is also what every method raises once the responder is closed.
    """

    def __init__(
        self,
        ctx: Context,
        topic: str,
        handler: Handler,
        *,
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[ReceiverOptions],
    ) -> None:
        expect_context("Responder(ctx, topic, handler)", ctx)
        topic_bytes = name_bytes("Responder(ctx, topic, handler)", "topic", topic)
        name = f"responder of {topic}"
        check_callback(name, "handler", handler, coroutine=True)
        chosen = sorted_out(("receiver",), merged(options, keywords))["receiver"]
        self._loop = self._loop_of(name, handler)
        self._rcv: Any = None
        self._inbox: Any = None
        self._queue: Dispatcher | None = ctx._queue_for(None) if self._loop is None else None
        super().__init__(name)
        self._ctx = ctx
        self._topic = topic
        self._handler = handler
        self._letters = ffi.new("um_py_letter_t[]", TAKE_MAX)
        self._answering: set[asyncio.Task[None]] = set()
        self._reading = False
        try:
            self._create(ctx, topic_bytes, chosen)
        except BaseException:
            self._closed = True
            self._withdraw()
            raise

    @staticmethod
    def _loop_of(name: str, handler: Any) -> asyncio.AbstractEventLoop | None:
        if not is_coroutine(handler):
            return None
        try:
            return asyncio.get_running_loop()
        except RuntimeError:
            raise InvalidArgument(
                f"{name}: handler is a coroutine function, and no event loop runs here that could await it: make the "
                "responder in a coroutine, or give a plain function"
            ) from None

    def _create(self, ctx: Context, topic: bytes, chosen: Mapping[str, str]) -> None:
        self._inbox = new_inbox()
        self._fd: int = lib.um_py_inbox_fd(self._inbox)
        if self._fd < 0:
            raise OutOfMemory("no descriptor for waiting for requests")
        topic_holder, holder = ffi.new("lbm_topic_t **"), ffi.new("lbm_rcv_t **")
        with ctx._using():
            if self._queue is not None:
                self._queue._add_feed(self._fd, self)
            elif self._loop is not None:
                self._read(True)
            with Attributes("receiver", chosen) as attributes:
                check(lib.lbm_rcv_topic_lookup(topic_holder, ctx._ctx, topic, attributes.pointer))
            callback = lib.um_py_responder_proc()
            check(lib.lbm_rcv_create(holder, ctx._ctx, topic_holder[0], callback, self._inbox, ffi.NULL))
            self._rcv = holder[0]
            ctx._adopt(self)

    @property
    def context(self) -> Context:
        """The context it was made in."""
        return self._ctx

    @property
    def topic(self) -> str:
        """The topic."""
        return self._topic

    @property
    def dropped(self) -> int:
        """Requests thrown away because too many were waiting."""
        with self._using():
            return int(lib.um_py_inbox_dropped(self._inbox))

    def wait_ready(self, sources: int = 1, timeout: float | None = None) -> None:
        """Return when so many sources are received, whose requests all reach this responder from then on.

        TimedOut when that takes longer than `timeout` seconds. Signals are handled meanwhile.
        """
        wanted, end_ms = whole("wait_ready() sources", sources, 1), milliseconds(timeout)
        end = float("inf") if end_ms < 0 else time.monotonic() + end_ms / 1000
        while True:
            with self._using():
                if lib.um_rcv_wait_ready(self._rcv, wanted, 0) == 0:
                    return
            if time.monotonic() >= end:
                raise TimedOut(f"wait_ready() of the {self._name}: fewer than {wanted} sources after {timeout} s")
            time.sleep(_READY_CHECK)

    async def await_ready(self, sources: int = 1) -> None:
        """As wait_ready() without a timeout, for asyncio: `sources` is how many are received then, of a number."""
        wanted = whole("await_ready() sources", sources, 1)
        while True:
            with self._using():
                if lib.um_rcv_wait_ready(self._rcv, wanted, 0) == 0:
                    return
            await asyncio.sleep(_READY_CHECK)

    # -- requests --

    def _take(self, most: int) -> list[RequestMessage]:
        count = lib.um_py_inbox_take(self._inbox, self._letters, min(most, TAKE_MAX), 0)
        return [RequestMessage(self, self._letters[i]) for i in range(count)]

    def _dispatch(self) -> int:
        """On the context's callback thread."""
        messages = self._take(TAKE_MAX)
        for message in messages:
            if self._closed:
                break
            try:
                answer: Any = self._handler(message)
                if answer is not None:
                    message.respond(answer)
            except Exception as error:
                self._failed(error)
        return len(messages)

    def _waiting(self) -> tuple[int, float]:
        return 0, 0.0

    def _read(self, on: bool) -> None:
        assert self._loop is not None
        if on and not self._reading:
            self._loop.add_reader(self._fd, self._on_readable)
        elif self._reading and not on and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._reading = on

    def _on_readable(self) -> None:
        assert self._loop is not None
        if self._closed:
            return
        room = _ANSWERING_MAX - len(self._answering)
        for message in self._take(room) if room > 0 else ():
            task = self._loop.create_task(self._answer(message))
            self._answering.add(task)
            task.add_done_callback(self._answered)
        if len(self._answering) >= _ANSWERING_MAX:
            self._read(False)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        if not self._closed and not self._reading:
            self._read(True)

    async def _answer(self, message: RequestMessage) -> None:
        try:
            answer: Any = await self._handler(message)  # type: ignore[misc]
            if answer is not None:
                await message.arespond(answer)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not self._closed:
                self._failed(error)

    # -- its end --

    def _delete(self) -> None:
        check(lib.lbm_rcv_delete(self._rcv))

    def _withdraw(self) -> None:
        """Nothing is dispatched any more, and what waits is thrown away."""
        if self._queue is not None:
            self._queue._remove_feed(getattr(self, "_fd", -1))
        if self._loop is not None:
            self._leave_loop(self._loop)
        elif self._inbox is not None:
            lib.um_py_inbox_delete(self._inbox)

    def _leave_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            inside = asyncio.get_running_loop() is loop
        except RuntimeError:
            inside = False
        if inside or loop.is_closed():
            self._end_reading()
        else:
            loop.call_soon_threadsafe(self._end_reading)

    def _end_reading(self) -> None:
        """In its event loop, or without one."""
        if self._inbox is None:
            return
        self._read(False)
        for task in list(self._answering):
            task.cancel()
        lib.um_py_inbox_delete(self._inbox)

    def _close(self, patience: float | None) -> None:
        self._give_up()
        if self._queue is not None:
            self._queue._remove_feed(self._fd)
            self._queue._await_idle(patience)
        self._withdraw()
        self._ctx._release(self)
