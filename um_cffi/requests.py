"""Requests and their responses: asking on a topic. What answers there is in responder.py.

A request goes to every receiver of the topic, each of which may answer it as often as it likes. Responses come on
connections of their own and wait in memory that is bounded by 64 MiB for each event loop, or each request of a thread.
"""

from __future__ import annotations

import heapq
import threading
import time
import weakref
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import number, shown, whole
from um_cffi.binding.deferred import asyncio, running_loop
from um_cffi.binding.lifetime import SLICE_MS, Part
from um_cffi.errors import InvalidArgument, OutOfMemory, TimedOut, raise_last, text
from um_cffi.properties import Properties, made_of

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

    from um_cffi.context import Context
    from um_cffi.properties import PropertyValue
    from um_cffi.source import Source

_FLUSH: int = lib.LBM_MSG_FLUSH
_WOULD_BLOCK: int = lib.LBM_EWOULDBLOCK
_INBOX_BYTES = 64 << 20
TAKE_MAX = 256  # messages taken at once


class Response:
    """One answer to a request; made by requests, of a `letter` they have taken. Any thread may use it."""

    __slots__ = ("data", "sequence_number", "source", "timestamp_ns")

    def __init__(self, letter: Any) -> None:
        """Made by requests, of a `letter` they have taken."""
        self.data: bytes = ffi.buffer(letter.data, letter.len)[:] if letter.len else b""
        """The payload."""
        self.source: str = text(letter.source)
        """Who answered, as "TCP:address:port" of its connection."""
        self.sequence_number: int = letter.sequence_number
        """Counts the answers of one responder to this request, or their fragments."""
        self.timestamp_ns: int = letter.timestamp_ns
        """Arrival in this process, in nanoseconds since 1970."""

    def __bytes__(self) -> bytes:
        return self.data

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<Response #{self.sequence_number} {len(self.data)} bytes from {self.source}>"


def _taken(inbox: Any, letters: Any, wait_ms: int) -> list[tuple[int, Response]]:
    """What has come, each with the number of its request."""
    count = lib.um_py_inbox_take(inbox, letters, TAKE_MAX, wait_ms)
    found: list[tuple[int, Response]] = []
    try:
        for i in range(count):
            letter = letters[i]
            found.append((letter.owner, Response(letter)))
    finally:
        lib.um_py_letters_free(letters, count)
    return found


class _Deadlines:
    """When the requests of one event loop must be woken, if nothing has come by then. One timer of the loop for all."""

    def __init__(self, loop: asyncio.AbstractEventLoop, waiting: Mapping[int, weakref.ref[Request]]) -> None:
        self.loop = loop
        self._waiting = waiting  # those of the context that are open
        self._due: list[tuple[float, int]] = []  # heap: time, number; some are over
        self._timer: asyncio.TimerHandle | None = None
        self._armed = float("inf")  # what it is set to

    def add(self, end: float, number: int) -> None:
        if len(self._due) > 64 + 2 * len(self._waiting):  # most are over
            self._due = [each for each in self._due if each[1] in self._waiting]
            heapq.heapify(self._due)
        heapq.heappush(self._due, (end, number))
        if end < self._armed:
            self._arm()

    def _arm(self) -> None:
        self.stop()
        self._armed = self._due[0][0]
        self._timer = self.loop.call_later(max(0.0, self._armed - time.monotonic()), self._pass)

    def _pass(self) -> None:
        self._timer, self._armed = None, float("inf")
        now = time.monotonic()
        while self._due and (self._due[0][0] <= now or self._due[0][1] not in self._waiting):
            known = self._waiting.get(heapq.heappop(self._due)[1])
            request = None if known is None else known()
            if request is not None:
                request._wake()
        if self._due:
            self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def new_inbox() -> Any:
    inbox = lib.um_py_inbox_create(_INBOX_BYTES)
    if inbox == ffi.NULL:
        raise OutOfMemory("no memory for responses")
    return inbox


class _LoopInbox:
    """Where the responses of all requests of one event loop arrive."""

    def __init__(self, requests: Requests, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.inbox = new_inbox()
        self.deadlines = _Deadlines(loop, requests._open)
        self._requests = requests
        self._letters = ffi.new("um_py_letter_t[]", TAKE_MAX)
        self._fd: int = lib.um_py_inbox_fd(self.inbox)
        if self._fd < 0:
            lib.um_py_inbox_delete(self.inbox)
            raise OutOfMemory("no descriptor for waiting for responses")
        loop.add_reader(self._fd, self._drain)

    def _drain(self) -> None:
        waiting = self._requests._open
        for owner, response in _taken(self.inbox, self._letters, 0):
            known = waiting.get(owner)
            request = None if known is None else known()
            if request is not None:  # not given up meanwhile
                request._arrived.append(response)
                request._wake()

    def _dispose(self) -> None:
        if not self.loop.is_closed():
            self.loop.remove_reader(self._fd)
            self.deadlines.stop()
        lib.um_py_inbox_delete(self.inbox)

    def close(self) -> None:
        """Any thread."""
        if running_loop() is self.loop or self.loop.is_closed():
            self._dispose()
        else:
            self.loop.call_soon_threadsafe(self._dispose)


class Requests(Part):
    """The requests of one context. Made by it, with the first request."""

    _internal = True

    def __init__(self, ctx: Context) -> None:
        super().__init__("requests")
        self._ctx = ctx
        self._open: dict[int, weakref.ref[Request]] = {}  # who drops a request closes it
        self._last = 0
        self._numbering = threading.Lock()
        self._loops: dict[asyncio.AbstractEventLoop, _LoopInbox] = {}

    def _enter(self, request: Request) -> int:
        self._check_open()
        with self._numbering:
            self._last += 1
            self._open[self._last] = weakref.ref(request)
            return self._last

    def _inbox_of(self, loop: asyncio.AbstractEventLoop) -> _LoopInbox:
        known = self._loops.get(loop)
        if known is None:
            with self._guard:
                self._check_open()
                for closed in [each for each in self._loops if each.is_closed()]:
                    self._loops.pop(closed).close()
                known = self._loops[loop] = _LoopInbox(self, loop)
        return known

    def _delete(self) -> None:
        for known in list(self._open.values()):
            request = known()
            if request is not None:
                request._abandon()
        for each in list(self._loops.values()):
            each.close()
        self._loops.clear()

    def _close(self, patience: float | None) -> None:
        self._give_up()
        self._ctx._release(self)


class Way:
    """How a request goes out."""

    name: str  # for texts

    def prepare(self, data: Any) -> Any:
        """The bytes of the request, or InvalidArgument."""
        raise NotImplementedError

    def send(self, inbox: Any, number: int, payload: Any, wait_ms: int) -> Any:
        """The request of the library, waiting for room up to so many milliseconds; NULL with an error."""
        raise NotImplementedError

    async def room(self) -> None:
        """Until it is worth trying again."""
        raise NotImplementedError


class _FromSource(Way):
    """On a topic, to its receivers."""

    def __init__(self, source: Source, flush: bool, properties: Properties | None, channel: int | None) -> None:
        self.name = f"on {source.topic!r}"
        self._source = source
        self._properties = properties  # as long as the library may read them
        extras = None if properties is None and channel is None else source._extras(properties, channel)
        self._extras = ffi.NULL if extras is None else extras.sent
        self._kept = extras
        self._flags = _FLUSH if flush else 0

    def prepare(self, data: Any) -> Any:
        if type(data) is bytes:
            return data
        buffer, _size, segments, _count, parts = self._source._prepare(data)
        return buffer if segments == ffi.NULL else ffi.from_buffer(b"".join(bytes(part) for part in parts))

    def send(self, inbox: Any, number: int, payload: Any, wait_ms: int) -> Any:
        self._source._check_open()
        state = self._source._state
        return lib.um_py_request_send(state, inbox, number, payload, len(payload), self._flags, self._extras, wait_ms)

    async def room(self) -> None:
        await self._source._wait_for_room(self._source._room_descriptor())


class Request:
    """A request on its way. Made by Context.request() and its kin, of whose `requests` it is one, with their arguments:
    `data` goes out by `way`; `timeout` is in seconds, `responses` how many are wanted. It is sent when it is first
    awaited or iterated.

    Await it for the first response. Iterate it (`async for`, or `for` on a thread) for all that come until the timeout,
    or until as many have come as were asked for. Leave it with close(), or use it in `with`: later responses are
    dropped. It is closed when its iteration has ended, and when nobody refers to it any more. Use it in one way, on one
    thread or event loop.
    """

    def __init__(
        self,
        requests: Requests,
        way: Way,
        data: Buffer,
        timeout: float | None,
        responses: int | None,
    ) -> None:
        self._requests = requests
        self._way = way
        self._data = data
        self._timeout = timeout
        self._left = -1 if responses is None else responses
        self._number = 0  # once it is sent
        self._handle: Any = None
        self._inbox: Any = None  # of a thread
        self._letters: Any = None
        self._end = 0.0
        self._arrived: deque[Response] = deque()
        self._future: asyncio.Future[None] | None = None
        self._deadlines: _Deadlines | None = None  # of the event loop; None: on a thread, or not sent
        self._timed = False  # they know of this one, until its time is over
        self._over = False  # nothing more comes: closed, or the deadline has passed
        self._closed_with_context = False

    # -- its life --

    def close(self) -> None:
        """Wait for no more responses. Safe to call again."""
        self._over = True
        self._requests._open.pop(self._number, None)
        handle, self._handle = self._handle, None
        if handle is not None and not self._requests._inherited:
            lib.um_py_request_delete(handle)
        inbox, self._inbox = self._inbox, None
        if inbox is not None and not self._requests._inherited:
            lib.um_py_inbox_delete(inbox)

    def _abandon(self) -> None:
        """The context is being closed, on any thread: wake who waits, who then finds it over."""
        self._requests._open.pop(self._number, None)
        handle, self._handle = self._handle, None
        if handle is not None:
            lib.um_py_request_delete(handle)
        self._closed_with_context = True
        if self._inbox is not None:
            lib.um_py_inbox_wake(self._inbox)
        if self._deadlines is not None and not self._deadlines.loop.is_closed():
            self._deadlines.loop.call_soon_threadsafe(self._wake)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_number", 0) and not self._over:
            self.close()

    def __repr__(self) -> str:
        state = "over" if self._over else "open" if self._number else "not sent"
        return f"<Request {self._way.name} {state}>"

    def _begin(self) -> None:
        if self._over:
            raise InvalidArgument(f"{self!r}: it is over; make another one")
        self._end = float("inf") if self._timeout is None else time.monotonic() + self._timeout
        self._number = self._requests._enter(self)

    def _timed_out(self) -> TimedOut:
        return TimedOut(
            f"request {self._way.name}: no response in {self._timeout} s; is a responder there that answers? "
            "Source.wait_receivers() tells of receivers"
        )

    def _next_arrived(self) -> Response | None:
        if not self._arrived:
            return None
        self._left -= 1
        return self._arrived.popleft()

    def _check_context(self) -> None:
        if self._closed_with_context:
            self.close()
            raise InvalidArgument(f"request {self._way.name}: its context was closed while it waited")

    # -- on a thread --

    def _send_waiting(self) -> None:
        self._begin()
        try:
            self._inbox = new_inbox()
            self._letters = ffi.new("um_py_letter_t[]", TAKE_MAX)
            payload = self._way.prepare(self._data)
            while True:
                handle = self._way.send(self._inbox, self._number, payload, SLICE_MS)
                if handle != ffi.NULL:
                    self._handle = handle
                    return
                if lib.lbm_errnum() != _WOULD_BLOCK:
                    raise_last()
                if time.monotonic() >= self._end:
                    raise TimedOut(f"request {self._way.name}: no room to send it in {self._timeout} s")
                self._check_context()
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Response]:
        """The responses as they come, on this thread."""
        return self

    def __next__(self) -> Response:
        if self._over:
            raise StopIteration
        if self._number == 0:
            self._send_waiting()
        while self._left != 0:
            response = self._next_arrived()
            if response is not None:
                return response
            self._check_context()
            left = self._end - time.monotonic()
            wait_ms = 0 if left <= 0 else SLICE_MS if left > SLICE_MS / 1000 else max(1, round(left * 1000))
            self._arrived.extend(response for _, response in _taken(self._inbox, self._letters, wait_ms))
            if left <= 0 and not self._arrived:
                break
        self.close()
        raise StopIteration

    def result(self) -> Response:
        """The first response, waiting for it on this thread; TimedOut when none comes in time. Ends the request."""
        try:
            for response in self:
                return response
            raise self._timed_out()
        finally:
            self.close()

    # -- in asyncio --

    async def _send_awaiting(self) -> None:
        self._begin()
        try:
            known = self._requests._inbox_of(asyncio.get_running_loop())
            self._deadlines = known.deadlines
            payload = self._way.prepare(self._data)
            while True:
                handle = self._way.send(known.inbox, self._number, payload, 0)
                if handle != ffi.NULL:
                    self._handle = handle
                    return
                if lib.lbm_errnum() != _WOULD_BLOCK:
                    raise_last()
                if time.monotonic() >= self._end:
                    raise TimedOut(f"request {self._way.name}: no room to send it in {self._timeout} s")
                await self._way.room()
                self._check_context()
        except BaseException:
            self.close()
            raise

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def _wait(self) -> bool:
        """Until something happens; False when the time is over."""
        assert self._deadlines is not None
        if self._timeout is not None and (not self._timed or time.monotonic() >= self._end):
            self._timed = True
            self._deadlines.add(self._end, self._number)
        future = self._future = self._deadlines.loop.create_future()
        try:
            await future
        finally:
            self._future = None
        return bool(self._arrived) or time.monotonic() < self._end

    def __aiter__(self) -> Self:
        """The responses as they come, in an event loop."""
        return self

    async def __anext__(self) -> Response:
        if self._over:
            raise StopAsyncIteration
        try:
            if self._number == 0:
                await self._send_awaiting()
            while self._left != 0:
                response = self._next_arrived()
                if response is not None:
                    return response
                self._check_context()
                if not await self._wait():
                    break
        except asyncio.CancelledError:
            self.close()
            raise
        self.close()
        raise StopAsyncIteration

    async def _first(self) -> Response:
        try:
            if self._number == 0 and not self._over:
                await self._send_awaiting()
            while not self._over:
                if self._arrived:
                    self._left -= 1
                    return self._arrived.popleft()
                if self._left == 0:
                    break
                self._check_context()
                if not await self._wait():
                    break
            raise self._timed_out()
        finally:
            self.close()

    def __await__(self) -> Generator[Any, None, Response]:
        return self._first().__await__()


def make_request(ctx: Context, way: Way, data: Buffer, timeout: float | None, responses: int | None) -> Request:
    """Context.request() and its kin, arguments checked."""
    if timeout is not None and not number("request() timeout", timeout) >= 0:
        raise InvalidArgument(f"request() timeout {timeout}: must be None or a number of seconds, 0 or more")
    if responses is not None:
        responses = whole("request() responses", responses, 1)
    return Request(ctx._requests_of(), way, data, timeout, responses)


def from_source(
    ctx: Context,
    source: Source,
    flush: bool,
    properties: Mapping[str, PropertyValue] | None,
    channel: int | None,
) -> Way:
    """The way of requests on the topic of a source."""
    from um_cffi.source import Source

    if not isinstance(source, Source):
        raise InvalidArgument(f"request(source, data): {shown(source)} is not a Source, which is the first argument")
    if source.context is not ctx:
        raise InvalidArgument(f"request(source, data): the {source._name} belongs to another context: ask that one")
    return _FromSource(source, flush, made_of(properties), channel)
