"""What receivers of a topic and of a pattern have in common: how they are made and closed, and who is told of events.

The ways to get messages are built on it: taking them in _pulling.py, being called back in _calling.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, Union

from um_cffi._channels import OnMessage, Subscriptions
from um_cffi.batch import Direct, Intake, Message, event_of
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import channel_number, number
from um_cffi.binding.callbacks import check_callback, is_coroutine
from um_cffi.binding.deferred import asyncio, running_loop, stats
from um_cffi.binding.lifetime import Part, expect_left_objects
from um_cffi.context import Context
from um_cffi.dispatch import Dispatcher, EventQueue
from um_cffi.errors import InvalidArgument, InvalidOperation, OutOfMemory, check
from um_cffi.events import ReceiverEvent

if TYPE_CHECKING:
    from um_cffi.stats import QueueStats, ReceiverCounts

OnEvent = Callable[[ReceiverEvent], Union[object, Awaitable[object]]]

OnFull = Literal["pause", "drop_newest", "drop_oldest", "conflate"]

_ON_FULL = {
    "pause": lib.UM_ON_FULL_PAUSE,
    "drop_newest": lib.UM_ON_FULL_DROP_NEWEST,
    "drop_oldest": lib.UM_ON_FULL_DROP_OLDEST,
    "conflate": lib.UM_ON_FULL_CONFLATE,
}

_QUEUE_BYTES_MAX = 2**62
_PULL_MAX = 1024  # messages taken at once to be given one by one; then the event loop has its turn


def _nothing() -> None:
    """What is pending for recv() where callbacks get the messages."""


class Watched:
    """A descriptor of the same as another one for event loops, who hold on to it while they watch: its number is not
    given to anything else before they have let go, whenever the other is closed."""

    __slots__ = ("number",)

    def __init__(self, name: str, descriptor: int) -> None:
        self.number = -1
        try:
            self.number = os.dup(descriptor)
        except OSError as error:
            raise OutOfMemory(f"no descriptor for waiting in the {name}: {error.strerror}") from None

    def __del__(self) -> None:
        if self.number >= 0:
            os.close(self.number)


class Receiving(Part):
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
        events: bool,
        on_full: OnFull,
    ) -> None:
        if queue is not None and on_message is None:
            raise InvalidArgument("a queue dispatches callbacks: give on_message too")
        if direct and (on_message is None or queue is not None):
            raise InvalidArgument("direct callbacks run on the library's thread: give on_message, and no queue")
        if not 1 <= number("queue_bytes", queue_bytes) < _QUEUE_BYTES_MAX:
            raise InvalidArgument(f"queue_bytes {queue_bytes}: must be 1 or more, below {_QUEUE_BYTES_MAX}")
        if not isinstance(on_full, str) or on_full not in _ON_FULL:
            raise InvalidArgument(f"{name}: on_full {on_full!r}: must be {' or '.join(map(repr, _ON_FULL))}")
        if direct and on_full != "pause":
            raise InvalidArgument(
                f"{name}: on_full {on_full!r}: direct callbacks have no queue that could be full; leave one of them out"
            )
        # What is taken ahead is not replaced by newer messages any more.
        self._ahead = 1 if on_full == "conflate" else _PULL_MAX
        self._loop = _loop_of_callbacks(name, on_message, on_event, queue, direct)
        self._awaits = is_coroutine(on_message)
        if self._subscriptions is not None:
            on_message = self._subscriptions.route(on_message)
        self._rcv: Any = None
        self._fd = -1
        self._watched: Watched | None = None  # by event loops, once one has waited
        self._collector: Any = None
        dispatched = on_message is not None and not direct and not self._awaits
        self._queue: Dispatcher | None = ctx._queue_for(queue) if dispatched else None
        self._direct: Direct | None = None
        super().__init__(name)
        self._ctx = ctx
        self._on_message = on_message
        self._on_event = on_event
        self._events = events
        self._newest_ns = 0  # arrival of the newest message taken for callbacks
        self._taking = threading.RLock()  # held by the thread that takes from the collector, waiting included
        self._waiters: set[asyncio.Future[None]] = set()
        self._pending: Callable[[], Message | None] = _nothing
        try:
            if direct:
                assert on_message is not None
                self._direct = Direct(on_message, self._tell_message, self._failed)
            self._create(ctx, int(queue_bytes), _ON_FULL[on_full])  # 64e6 is a number of bytes, too
        except BaseException:
            self._closed = True
            self._withdraw()
            self._drop_collector()
            raise
        if on_message is None:
            self._pending = self._intake.message
        self._begin()

    def _begin(self) -> None:
        """The library's object is there."""

    def _create(self, ctx: Context, queue_bytes: int, on_full: int) -> None:
        holder = ffi.new("um_collector_t **")
        with ctx._using():
            check(lib.um_collector_create_ex(holder, queue_bytes, on_full))
            self._collector = holder[0]
            home = weakref.ref(ctx)  # for the answers to requests
            self._intake = Intake(int(ffi.cast("uintptr_t", holder[0])), home)
            callback, told = lib.um_py_collector_proc(), self._collector
            if self._direct is not None:
                expect_left_objects()
                self._direct.hold(int(ffi.cast("uintptr_t", ctx._ctx)), home)
                callback, told = lib.um_py_direct_proc(), ffi.cast("void *", self._direct.address)
            if self._queue is not None:
                self._queue._add_feed(self._descriptor(), self)
            self._rcv = self._create_receiver(ctx, callback, told)
            ctx._adopt(self)

    def _descriptor(self) -> int:
        """The guard is held. Readable while messages wait; made when first wanted, because it costs system calls."""
        if self._fd < 0:
            self._fd = check(lib.um_collector_fd(self._collector))
        return self._fd

    def _watched_descriptor(self) -> Watched:
        """The guard is held. The descriptor for an event loop."""
        if self._watched is None:
            self._watched = Watched(self._name, self._descriptor())
        return self._watched

    def _dispatch(self) -> int:
        raise NotImplementedError

    def _waiting(self) -> tuple[int, float]:
        raise NotImplementedError

    _subscriptions: Subscriptions | None = None  # of those that can have some; before it is made

    def _on_channel(self, number: int) -> int:
        raise NotImplementedError

    def _off_channel(self, number: int) -> int:
        raise NotImplementedError

    def _beginning(self) -> tuple[Any, int]:
        """What it is subscribed to before its first message."""
        return (ffi.NULL, 0) if self._subscriptions is None else self._subscriptions.first()

    def _channels(self, call: str) -> Subscriptions:
        if self._subscriptions is None:
            raise InvalidOperation(f"{call} of the {self._name}: it has no channels")
        return self._subscriptions

    def subscribe_channel(self, channel: int, on_message: OnMessage | None = None) -> None:
        """Take what is sent on `channel`, too, from the messages on that are given to the receiver next.

        `on_message` gets its messages instead of that of the receiver, which must have been made with a mapping as
        `channels` then (InvalidOperation). InvalidArgument when it is subscribed already, InvalidOperation in a
        callback with direct=True.
        """
        taken = channel_number(self._name, channel)
        with self._using():
            subscriptions = self._channels("subscribe_channel()")
            subscriptions.add(taken, on_message, lambda number: check(self._on_channel(number)))

    def unsubscribe_channel(self, channel: int) -> None:
        """End the subscription to `channel`. What waits for Python already still comes, to the receiver's callback.

        InvalidArgument when it is not subscribed, InvalidOperation in a callback with direct=True.
        """
        left = channel_number(self._name, channel)
        with self._using():
            subscriptions = self._channels("unsubscribe_channel()")
            subscriptions.remove(left, lambda number: check(self._off_channel(number)))

    def _create_receiver(self, ctx: Context, callback: Any, collector: Any) -> Any:
        raise NotImplementedError

    def _delete_receiver(self) -> int:
        raise NotImplementedError

    @property
    def context(self) -> Context:
        """The context the receiver was made in."""
        return self._ctx

    def _check_pull(self, call: str) -> None:
        if self._on_message is not None:
            raise InvalidOperation(
                f"{call} of the {self._name}: its callback on_message gets the messages; "
                "make a receiver without on_message to take them"
            )

    def _check_blocking_pull(self, call: str) -> None:
        self._check_pull(call)
        if self._loop is not None:
            raise InvalidOperation(
                f"{call} of the {self._name}: its on_event is a coroutine function, which this call cannot await; "
                "use `async for` or arecv_batch(), or give a plain function as on_event"
            )

    # -- events --

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

    async def _tell_awaiting(self, event: ReceiverEvent) -> None:
        """Give an event to on_event, and await it if it is a coroutine function."""
        call = self._on_event
        if call is None:
            return
        try:
            result = call(event)
            if inspect.isawaitable(result):
                await result
        except Exception as error:
            self._failed(error)

    # -- statistics --

    def queue_stats(self) -> QueueStats:
        """The queue between the library and Python: gathered, taken, dropped, times TCP had to wait, waiting now."""
        with self._using():
            return stats.read_counts(
                stats.QueueStats, "um_collector_stats_t", lambda out: lib.um_collector_stats(self._collector, out)
            )

    def _with_dropped(self, counts: ReceiverCounts, source: Any) -> ReceiverCounts:
        """With what the full queue to Python dropped, of one source or (NULL) of all."""
        if source == ffi.NULL:
            return dataclasses.replace(counts, lost=counts.lost + self.queue_stats().dropped)
        dropped = ffi.new("uint64_t *")
        with self._using():
            check(lib.um_collector_dropped(self._collector, source, dropped))
        return dataclasses.replace(counts, lost=counts.lost + int(dropped[0]))

    # -- closing --

    def _withdraw(self) -> None:
        """The library does not call back any more."""
        if self._direct is not None:
            self._direct.release()
        if self._queue is not None:
            self._queue._remove_feed(self._fd)

    def _drop_collector(self) -> None:
        collector, self._collector = self._collector, None
        if collector is not None:
            check(lib.um_collector_delete(collector))

    def _close(self, patience: float | None) -> None:
        self._give_up()
        try:
            self._intake.stop()
            if self._queue is not None:
                self._queue._await_idle(patience)
            self._wake_waiters()
            self._await_callbacks(patience)
            self._drop_collector()
        finally:
            self._ctx._release(self)

    def _await_callbacks(self, patience: float | None) -> None:
        """Until the callback that is running has come to its end."""

    def _forked(self) -> None:
        super()._forked()
        self._taking = threading.RLock()
        intake = getattr(self, "_intake", None)  # in the middle of its making
        if intake is not None:
            intake.forget()

    def _delete(self) -> None:
        check(self._delete_receiver())
        self._withdraw()

    def _wake_waiters(self) -> None:
        self._watched = None
        for waiter in list(self._waiters):
            with contextlib.suppress(RuntimeError):  # the loop is closed
                waiter.get_loop().call_soon_threadsafe(resolve, waiter)


def _loop_of_callbacks(
    name: str, on_message: OnMessage | None, on_event: OnEvent | None, queue: EventQueue | None, direct: bool
) -> asyncio.AbstractEventLoop | None:
    """The event loop that awaits callbacks which are coroutine functions; None: none of them is one.

    InvalidArgument for callbacks that could not be called or awaited.
    """
    given = [(what, call) for what, call in (("on_message", on_message), ("on_event", on_event)) if call is not None]
    for what, call in given:
        check_callback(name, what, call, coroutine=True)
    awaited = [what for what, call in given if is_coroutine(call)]
    if not awaited:
        return None
    where = ""
    if queue is not None:
        where = "callbacks of an EventQueue run where it is dispatched"
    elif direct:
        where = "direct callbacks run on the library's thread"
    elif on_message is not None and not is_coroutine(on_message):
        where = "on_message is a plain function, and callbacks run on the context's callback thread"
    if where:
        raise InvalidArgument(
            f"{name}: {awaited[0]} is a coroutine function, but {where}, where nobody awaits it: give a plain function"
        )
    loop = running_loop()
    if loop is None:
        raise InvalidArgument(
            f"{name}: {awaited[0]} is a coroutine function, but no event loop runs here that could await it: "
            "make the receiver inside a coroutine (asyncio.run), or give a plain function"
        )
    return loop


def resolve(future: asyncio.Future[None]) -> None:
    """The future has come, if nothing else has."""
    if not future.done():
        future.set_result(None)
