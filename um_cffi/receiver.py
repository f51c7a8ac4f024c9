"""Receivers of a topic or of a pattern, and the three ways to get their messages: callbacks, `async for`, batches.

Messages are gathered in C, in memory bounded by `queue_bytes`, so that the library never waits for Python. When it is
full, sessions over TCP are read no further until half of it has been taken (their sources feel it); on other
transports the newest messages are dropped, counted, and reported as loss. queue_stats() has the counters.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from um_cffi._attributes import Attributes, check_option, merged, read_option, sorted_out
from um_cffi._base import SLICE_MS, Part, milliseconds
from um_cffi._native import ffi, lib
from um_cffi.batch import Batch, Direct, Intake, Message, Stream, event_of
from um_cffi.context import Context
from um_cffi.dispatch import Dispatcher, EventQueue
from um_cffi.errors import InvalidArgument, InvalidOperation, TimedOut, check, raise_last
from um_cffi.events import ReceiverEvent
from um_cffi.stats import QueueStats, ReceiverCounts, ReceiverStats, read_counts, read_sessions, receiver_stats

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from um_cffi._options import PatternOptions, ReceiverOptions

OnMessage = Callable[[Message], object]
OnEvent = Callable[[ReceiverEvent], object]

QUEUE_BYTES = 64 << 20
"""Default bound of what waits for Python in one receiver: payloads and records."""

_DISPATCH_MAX = 8192  # messages of one receiver before the others of its queue have their turn
_ASYNC_MAX = 1024  # messages before the event loop has its turn
_READY_CHECK = 0.005  # seconds between looks of await_ready()


class _Receiving(Part):
    """What receivers of a topic and of a pattern have in common."""

    def __init__(
        self,
        name: str,
        ctx: Context,
        on_message: OnMessage | None,
        on_event: OnEvent | None,
        queue: EventQueue | None,
        queue_bytes: int,
        direct: bool,
    ) -> None:
        if queue is not None and on_message is None:
            raise InvalidArgument("a queue dispatches callbacks: give on_message too")
        if direct and (on_message is None or queue is not None):
            raise InvalidArgument("direct callbacks run on the library's thread: give on_message, and no queue")
        if queue_bytes < 1:
            raise InvalidArgument(f"queue_bytes {queue_bytes}: must be 1 or more")
        self._rcv: Any = None
        self._fd = -1
        self._collector: Any = None
        dispatched = on_message is not None and not direct
        self._queue: Dispatcher | None = ctx._queue_for(queue) if dispatched else None
        self._direct: Direct | None = None
        super().__init__(name)
        self._ctx = ctx
        self._on_message = on_message
        self._on_event = on_event
        self._topics: list[str] = []
        self._sources: list[str] = []
        self._newest_ns = 0  # arrival of the newest message taken for callbacks
        self._waiters: set[asyncio.Future[None]] = set()
        try:
            if direct:
                assert on_message is not None
                self._direct = Direct(on_message, self._tell_message, self._failed, self._topics, self._sources)
            self._create(ctx, queue_bytes)
        except BaseException:
            self._closed = True
            self._drop_collector()
            raise

    def _create(self, ctx: Context, queue_bytes: int) -> None:
        holder = ffi.new("um_collector_t **")
        with ctx._using():
            check(lib.um_collector_create(holder, queue_bytes))
            self._collector = holder[0]
            self._intake = Intake(int(ffi.cast("uintptr_t", holder[0])), self._topics, self._sources)
            callback, told = lib.um_py_collector_proc(), self._collector
            if self._direct is not None:
                callback, told = lib.um_py_direct_proc(), ffi.cast("void *", self._direct.address)
            self._rcv = self._create_receiver(ctx, callback, told)
            if self._queue is not None:
                self._queue._add_feed(self._descriptor(), self)
            ctx._adopt(self)

    def _descriptor(self) -> int:
        """The guard is held. Readable while messages wait; made when first wanted, because it costs system calls."""
        if self._fd < 0:
            self._fd = check(lib.um_collector_fd(self._collector))
        return self._fd

    def _create_receiver(self, ctx: Context, callback: Any, collector: Any) -> Any:
        raise NotImplementedError

    def _delete_receiver(self) -> int:
        raise NotImplementedError

    # -- callbacks --

    def _dispatch(self) -> int:
        """On the dispatching thread: give what waits to the callbacks. Returns how many there were."""
        intake = self._intake
        try:
            with self._guard:
                if self._closed or not intake.fill(_DISPATCH_MAX):
                    return 0
            self._newest_ns = intake.newest_ns
            return self._give()
        except BaseException:
            if intake.pending and self._queue is not None:  # the next dispatch goes on with the message after
                self._queue._interrupted(self)
            raise

    def _give(self) -> int:
        """Give what is pending to the callbacks, each kind to its own. Returns how many there were."""
        call, done = self._on_message, 0
        assert call is not None
        while True:
            done += self._intake.run(call, self._failed)
            event = self._intake.event()
            if event is None:
                return done
            done += 1
            self._tell(event_of(event))

    def _tell(self, event: ReceiverEvent) -> None:
        """Give an event to on_event."""
        call = self._on_event
        if call is None:
            return
        try:
            call(event)
        except Exception as error:
            self._failed(error)

    def _tell_message(self, message: Message) -> None:
        self._tell(event_of(message))

    def _waiting(self) -> tuple[int, float]:
        """Messages that wait for dispatch, and by how many seconds the last dispatched one was late."""
        waiting = self.queue_stats().queued_messages
        behind = (time.time_ns() - self._newest_ns) / 1e9 if waiting and self._newest_ns else 0.0
        return waiting, behind

    @property
    def context(self) -> Context:
        """The context the receiver was made in."""
        return self._ctx

    def _check_pull(self, call: str) -> None:
        if self._on_message is not None:
            raise InvalidOperation(f"{call} of the {self._name}: it has a callback that gets the messages")

    # -- batches --

    def recv_batch(self, max_messages: int | None = None, timeout: float | None = None) -> Batch | None:
        """Take what has arrived: up to `max_messages` records (None: all), waiting for the first one.

        None after `timeout` seconds (None: wait without bound, 0: not at all) or when the receiver is closed meanwhile.
        The batch is the fast way to get many messages: nothing is copied or made for each of them. Losses and ends of
        sessions are records too, and go to `on_event` as well if given. Signals are handled while waiting; any thread,
        one at a time gets a batch. InvalidOperation when the receiver has a callback.
        """
        self._check_pull("recv_batch()")
        if max_messages is not None and max_messages < 1:
            raise InvalidArgument(f"max_messages {max_messages}: must be None, or 1 or more")
        wait = milliseconds(timeout)
        end = None if timeout is None else time.monotonic() + wait / 1000
        self._check_open()
        while True:
            left = SLICE_MS if end is None else min(SLICE_MS, max(0, round((end - time.monotonic()) * 1000)))
            with self._guard:
                if self._closed:
                    return None
                memory = self._intake.batch(max_messages or 0, left)
            if memory is not None:
                batch = Batch(memory, self._topics, self._sources)
                if self._on_event is not None:
                    self._tell_events(batch)
                return batch
            if end is not None and time.monotonic() >= end:
                return None

    def batches(self, max_messages: int | None = None, timeout: float | None = None) -> Iterator[Batch]:
        """Batches as they come, of up to `max_messages` records each if given.

        Ends when the receiver is closed, or nothing has come for `timeout` seconds if given. Errors as of recv_batch().
        """
        while not self._closed:
            batch = self.recv_batch(max_messages, timeout)
            if batch is not None:
                yield batch
            elif timeout is not None:
                return

    def _tell_events(self, batch: Batch) -> None:
        for at in batch.events():
            self._tell(event_of(batch[at]))

    # -- asyncio --

    async def arecv_batch(self, max_messages: int | None = None, timeout: float | None = None) -> Batch | None:
        """Take up to `max_messages` records as recv_batch() does, for asyncio: waits without blocking the event loop.

        None after `timeout` seconds (None: wait without bound). No other thread is involved. InvalidOperation when the
        receiver has a callback or another task is waiting. Cancelled while waiting: nothing is lost, the messages stay
        for the next call.
        """
        self._check_pull("arecv_batch()")
        if max_messages is not None and max_messages < 1:
            raise InvalidArgument(f"max_messages {max_messages}: must be None, or 1 or more")
        end = None if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        while True:
            with self._guard:
                if self._inherited:
                    self._check_open()
                memory = None if self._closed else self._intake.batch(max_messages or 0, 0)
            if memory is not None:
                batch = Batch(memory, self._topics, self._sources)
                if self._on_event is not None:
                    self._tell_events(batch)
                return batch
            left = None if end is None else end - time.monotonic()
            if self._closed or (left is not None and left <= 0):
                return None
            await self._readable(left)

    async def _readable(self, timeout: float | None) -> None:
        """Until messages wait, the receiver is closed, or the time has passed."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        if self._waiters:
            raise InvalidOperation(f"the {self._name} is awaited by another task already")
        with self._using():
            descriptor = self._descriptor()
        timer = loop.call_later(timeout, _resolve, ready) if timeout is not None else None
        loop.add_reader(descriptor, _resolve, ready)
        self._waiters.add(ready)
        try:
            await ready
        finally:
            self._waiters.discard(ready)
            if not self._closed:
                loop.remove_reader(descriptor)
            if timer is not None:
                timer.cancel()

    def __aiter__(self) -> AsyncIterator[Message]:
        """Messages as they come: `async for message in receiver`, until the receiver is closed.

        No thread is involved: the event loop watches a descriptor, and messages are handed out of batches. Leaving the
        loop, or being cancelled in it, loses nothing: the next loop goes on with the message after. While the body is
        slow, messages wait in the bounded queue. The event loop gets its turn at least every 1024 messages. Events go
        to `on_event`, on the event loop. One task at a time.
        """
        self._check_pull("async for")
        self._check_open()
        return Stream(self._intake, self._next_message)

    async def _next_message(self) -> Message:
        """The next message for `async for` when it is not simply the next that is pending."""
        intake = self._intake
        while True:
            message = intake.message()
            if message is not None:
                return message
            event = intake.event()
            if event is not None:
                self._tell(event_of(event))
            elif self._fill():
                await asyncio.sleep(0)
            elif self._closed:
                raise StopAsyncIteration
            else:
                await self._readable(None)

    def _fill(self) -> bool:
        """For `async for`: whether messages or events are pending now."""
        with self._guard:
            if self._inherited:
                self._check_open()
            return not self._closed and self._intake.fill(_ASYNC_MAX)

    # -- statistics --

    def queue_stats(self) -> QueueStats:
        """The queue between the library and Python: gathered, taken, dropped, times TCP had to wait, waiting now."""
        with self._using():
            return read_counts(
                QueueStats, "um_collector_stats_t", lambda out: lib.um_collector_stats(self._collector, out)
            )

    # -- closing --

    def _drop_collector(self) -> None:
        collector, self._collector = self._collector, None
        if collector is not None:
            check(lib.um_collector_delete(collector))

    def _close(self, patience: float | None) -> None:
        if self._on_message is not None:
            self._intake.stop()
        try:
            self._give_up()
            if self._queue is not None:
                self._queue._await_idle(patience)
            self._wake_waiters()
            self._drop_collector()
        finally:
            self._ctx._release(self)

    def _delete(self) -> None:
        check(self._delete_receiver())
        if self._queue is not None:
            self._queue._remove_feed(self._fd)

    def _wake_waiters(self) -> None:
        for waiter in list(self._waiters):
            loop = waiter.get_loop()
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_forget_reader, loop, self._fd, waiter)


class Receiver(_Receiving):
    """A subscriber of one topic in the context `ctx`.

    With `on_message(message)` every message is given to it, on the context's callback thread or where `queue` is
    dispatched. Without it, take messages with recv_batch(), batches(), `async for`, or arecv_batch(). `on_event(event)`
    gets everything that is not a message: beginning and end of sessions, losses (ReceiverEvent). Options of the scope
    receiver may be given as keywords, or as a mapping in `options`. `queue_bytes` bounds what waits for Python, in
    bytes.

    `direct` calls back on the thread of the library that receives, without queue and without a change of threads: the
    shortest way, for LBT-SMX above all. The whole context waits for such a callback, its sources may be held up by it,
    and it must not close or wait for anything of its context; keep it short. Messages are copies, free to keep.

    All methods may be called from any thread, callbacks included. InvalidArgument names an unknown option or a wrong
    value, and what is allowed; it is also what every method raises once the receiver is closed.
    """

    def __init__(
        self,
        ctx: Context,
        topic: str,
        on_message: OnMessage | None = None,
        on_event: OnEvent | None = None,
        queue: EventQueue | None = None,
        *,
        queue_bytes: int = QUEUE_BYTES,
        direct: bool = False,
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[ReceiverOptions],
    ) -> None:
        self._topic = topic
        self._chosen = sorted_out(("receiver",), merged(options, keywords))["receiver"]
        super().__init__(f"receiver of {topic}", ctx, on_message, on_event, queue, queue_bytes, direct)

    def _create_receiver(self, ctx: Context, callback: Any, collector: Any) -> Any:
        topic_holder, holder = ffi.new("lbm_topic_t **"), ffi.new("lbm_rcv_t **")
        with Attributes("receiver", self._chosen) as attributes:
            check(lib.lbm_rcv_topic_lookup(topic_holder, ctx._ctx, self._topic.encode(), attributes.pointer))
        check(lib.lbm_rcv_create(holder, ctx._ctx, topic_holder[0], callback, collector, ffi.NULL))
        return holder[0]

    def _delete_receiver(self) -> int:
        return int(lib.lbm_rcv_delete(self._rcv))

    @property
    def topic(self) -> str:
        """The topic."""
        return self._topic

    def ready(self) -> int:
        """Number of sources whose sessions have begun and are alive: what they send from now on arrives here.

        InvalidArgument when the receiver is closed.
        """
        with self._using():
            return check(lib.um_rcv_ready(self._rcv))

    def wait_ready(self, sources: int = 1, timeout: float | None = 10.0) -> None:
        """Wait until the sessions of so many `sources` have begun.

        TimedOut after `timeout` seconds; None waits without bound. Signals are handled while waiting.
        """
        end = None if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        while True:
            left = SLICE_MS if end is None else min(SLICE_MS, max(0, milliseconds(max(0.0, end - time.monotonic()))))
            with self._using():
                if lib.um_rcv_wait_ready(self._rcv, sources, left) == 0:
                    return
                if lib.lbm_errnum() != lib.LBM_ETIMEDOUT:
                    raise_last()
            if end is not None and time.monotonic() >= end:
                raise self._too_few(sources, timeout)

    async def await_ready(self, sources: int = 1, timeout: float | None = 10.0) -> None:
        """Wait until the sessions of so many `sources` have begun, as wait_ready(), for asyncio.

        TimedOut after `timeout` seconds; None waits without bound.
        """
        end = None if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        while self.ready() < sources:
            if end is not None and time.monotonic() >= end:
                raise self._too_few(sources, timeout)
            await asyncio.sleep(_READY_CHECK)

    def _too_few(self, sources: int, timeout: float | None) -> TimedOut:
        return TimedOut(f"{self._name}: sessions of {self.ready()} of {sources} sources have begun after {timeout} s")

    def getopt(self, name: str) -> str:
        """The value in force of the receiver option `name`, as text. InvalidArgument for an unknown one."""
        with self._using():
            return read_option(lib.lbm_rcv_str_getopt, self._rcv, name)

    def setopt(self, name: str, value: object) -> None:
        """Set the option `name`, one that may change while the receiver exists, to `value`.

        InvalidArgument for others.
        """
        _, written = check_option(("receiver",), name, value)
        with self._using():
            check(lib.lbm_rcv_str_setopt(self._rcv, name.encode(), written.encode()))

    def counts(self, source: str | None = None) -> ReceiverCounts:
        """What became of the messages for this receiver, from all sources, or from one that is joined now.

        InvalidArgument when there is no such source.
        """
        name = ffi.NULL if source is None else source.encode()
        with self._using():
            return read_counts(ReceiverCounts, "um_rcv_stats_t", lambda out: lib.um_rcv_stats(self._rcv, name, out))

    def stats(self) -> list[ReceiverStats]:
        """One entry for each transport session that brings messages to this receiver."""
        with self._using():
            return read_sessions(
                "lbm_rcv_transport_stats_t",
                receiver_stats,
                lambda count, array: lib.lbm_rcv_retrieve_all_transport_stats(self._rcv, count, array),
            )


class WildcardReceiver(_Receiving):
    """A subscriber of all topics in the context `ctx` whose names match `pattern` (PCRE, see the option pattern_type).

    `on_message`, `on_event`, `queue`, `direct` and the ways to take messages are those of Receiver, and so are threads
    and errors. `queue_bytes` bounds what waits for Python, in bytes, of all topics together. Options of the scopes
    receiver and wildcard_receiver may be given as keywords or in `options`; a name that both have means the receiver's.
    """

    def __init__(
        self,
        ctx: Context,
        pattern: str,
        on_message: OnMessage | None = None,
        on_event: OnEvent | None = None,
        queue: EventQueue | None = None,
        *,
        queue_bytes: int = QUEUE_BYTES,
        direct: bool = False,
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[PatternOptions],
    ) -> None:
        self._pattern = pattern
        self._chosen = sorted_out(("receiver", "wildcard_receiver"), merged(options, keywords))
        super().__init__(f"wildcard receiver of {pattern}", ctx, on_message, on_event, queue, queue_bytes, direct)

    def _create_receiver(self, ctx: Context, callback: Any, collector: Any) -> Any:
        holder = ffi.new("lbm_wildcard_rcv_t **")
        with (
            Attributes("receiver", self._chosen["receiver"]) as receivers,
            Attributes("wildcard_receiver", self._chosen["wildcard_receiver"]) as attributes,
        ):
            check(
                lib.lbm_wildcard_rcv_create(
                    holder,
                    ctx._ctx,
                    self._pattern.encode(),
                    receivers.pointer,
                    attributes.pointer,
                    callback,
                    collector,
                    ffi.NULL,
                )
            )
        return holder[0]

    def _delete_receiver(self) -> int:
        return int(lib.lbm_wildcard_rcv_delete(self._rcv))

    @property
    def pattern(self) -> str:
        """The pattern."""
        return self._pattern

    def getopt(self, name: str) -> str:
        """The value in force of the wildcard_receiver option `name`, as text. InvalidArgument for an unknown one."""
        with self._using():
            return read_option(lib.lbm_wildcard_rcv_str_getopt, self._rcv, name)

    def counts(self) -> ReceiverCounts:
        """What became of the messages on all topics matched so far; `sources` is how many are joined now."""
        with self._using():
            return read_counts(ReceiverCounts, "um_rcv_stats_t", lambda out: lib.um_wildcard_rcv_stats(self._rcv, out))


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _forget_reader(loop: asyncio.AbstractEventLoop, descriptor: int, waiter: asyncio.Future[None]) -> None:
    loop.remove_reader(descriptor)
    _resolve(waiter)
