"""Where callbacks run: event queues that the application dispatches, and the thread each context has for its own.

A queue waits in epoll for collectors with messages, for source events, descriptors and timers. Callbacks never run on
a thread of the library, so a slow one delays other callbacks of its queue and nothing else.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import select
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import number
from um_cffi.binding.attributes import Attributes, merged, sorted_out
from um_cffi.binding.callbacks import check_callback
from um_cffi.binding.lifetime import Closing, _calling, bounded, log, milliseconds
from um_cffi.errors import InvalidArgument, InvalidOperation, NotSupported, OutOfMemory, text
from um_cffi.events import SourceEvent, source_event_type

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from um_cffi.binding.option_types import EventQueueOptions

READ = select.EPOLLIN
WRITE = select.EPOLLOUT
_IDLE_CHECK = 0.1  # seconds between looks of a close() at the callback it waits for, should a notice have been cut off
_WARNING_PERIOD = 1.0  # seconds between warnings of one kind
_WAIT_MAX = 3600.0  # seconds in one wait: timers may be farther away than epoll can count
_SUPPORTED = ("event_queue_name", "queue_delay_warning", "queue_size_warning")


class Fed(Protocol):
    """What puts messages into a queue: a receiver with a callback."""

    def _dispatch(self) -> int: ...

    def _waiting(self) -> tuple[int, float]: ...


class Timer:
    """A call in the future. Made by `call_later` and `call_every`; may be used from any thread."""

    __slots__ = ("_call", "_interval", "_owner", "_queue")

    def __init__(
        self, queue: Dispatcher, owner: Closing, call: Callable[[], object] | None, interval: float | None
    ) -> None:
        self._queue = weakref.ref(queue)
        self._owner = owner
        self._call = call
        self._interval = interval

    @property
    def cancelled(self) -> bool:
        """Whether the timer will not call any more: cancelled, or called for the last time."""
        return self._call is None

    def cancel(self) -> None:
        """Do not call any more; any thread. A call that runs on another thread at this moment goes on."""
        self._call = None

    def _fire(self) -> None:
        call = self._call
        if call is None:
            return
        if self._interval is None:
            self._call = None
        try:
            call()
        except Exception as error:
            self._owner._failed(error)


class Dispatcher(Closing):
    """The machinery of a queue. One thread at a time dispatches."""

    def __init__(self, name: str) -> None:
        self._epoll = select.epoll()
        self._events = lib.um_py_event_queue_create()
        if self._events == ffi.NULL:
            raise OutOfMemory(f"no memory or descriptor for the {name}")
        self._deleted = False  # guard: _events is no more
        super().__init__(name)
        self._events_fd: int = lib.um_py_queue_fd(self._events)
        self._epoll.register(self._events_fd, READ)
        self._feeds: dict[int, Fed] = {}
        self._sources: dict[int, tuple[Closing, str, Callable[[SourceEvent], object]]] = {}
        self._watched: dict[int, tuple[Closing, Callable[[], object] | None, Callable[[], object] | None]] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        # Bare locks, because a signal's exception may come anywhere in code that is Python, also in Condition's own.
        self._dispatching = threading.Lock()  # held by the thread inside _dispatch_once()
        self._changing = threading.Lock()  # of the following
        self._changed = threading.Condition(self._changing)
        self._thread_id: int | None = None  # the thread inside _dispatch_once()
        self._running = False  # it is past its waiting
        self._turn = 0  # how often it has been
        self._unblocked = False
        self._again: list[Fed] = []  # a callback was interrupted in the middle of their messages

    # -- what is dispatched; called from any thread --

    def _wake(self) -> None:
        """Make a waiting dispatch look again, if there is one that might."""
        with self._guard:
            if not self._deleted:
                lib.um_py_queue_wake(self._events)

    def _add_feed(self, descriptor: int, feed: Fed) -> None:
        """Dispatch the messages of a collector."""
        with self._using():
            self._epoll.register(descriptor, READ)
            self._feeds[descriptor] = feed

    def _remove_feed(self, descriptor: int) -> None:
        """Dispatch no more of them."""
        feed = self._feeds.pop(descriptor, None)
        if feed is not None:
            with contextlib.suppress(ValueError):  # the queue is closed
                self._epoll.unregister(descriptor)
            with contextlib.suppress(ValueError):
                self._again.remove(feed)

    def _add_source(self, owner: Closing, topic: str, call: Callable[[SourceEvent], object]) -> Any:
        """Dispatch the events of a source; returns the C queue they are to be put into."""
        with self._using():
            self._sources[owner._number] = (owner, topic, call)
            return self._events

    def _remove_source(self, owner: Closing) -> None:
        """Dispatch no more of them."""
        self._sources.pop(owner._number, None)

    def _add_timer(self, owner: Closing, seconds: float, call: Callable[[], object], interval: float | None) -> Timer:
        """Call after so many seconds, and then every `interval` seconds."""
        if not number("timer", seconds) >= 0:
            raise InvalidArgument(f"timer {seconds}: must be a number of seconds, 0 or more")
        timer = Timer(self, owner, call, interval)
        with self._guard:
            self._check_open()
            heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), timer))
        self._wake()
        return timer

    def _watch(
        self, owner: Closing, descriptor: int, read: Callable[[], object] | None, write: Callable[[], object] | None
    ) -> None:
        """Set the callbacks of a descriptor of the application; None, None ends it."""
        mask = (READ if read is not None else 0) | (WRITE if write is not None else 0)
        with self._guard:
            self._check_open()
            known = descriptor in self._watched
            if mask == 0:
                if known:
                    del self._watched[descriptor]
                    with contextlib.suppress(OSError, ValueError):  # the application may have closed it before
                        self._epoll.unregister(descriptor)
            elif known:
                self._watched[descriptor] = (owner, read, write)
                self._epoll.modify(descriptor, mask)
            else:
                if descriptor in self._feeds or descriptor == self._events_fd:
                    raise InvalidArgument(f"descriptor {descriptor} belongs to the library")
                try:
                    self._epoll.register(descriptor, mask)
                except OSError as error:
                    words = f"descriptor {descriptor} cannot be watched: {error.strerror}"
                    raise InvalidArgument(f"{words}; open sockets and pipes can") from None
                self._watched[descriptor] = (owner, read, write)

    def _callbacks_of(self, descriptor: int) -> tuple[Callable[[], object] | None, Callable[[], object] | None]:
        """The read and write callbacks of a descriptor."""
        return self._watched.get(descriptor, (self, None, None))[1:]

    def _await_idle(self, patience: float | None) -> None:
        """Return when the callbacks that are running now have returned; at once inside one of them."""
        if self._inside():
            return
        patience = bounded(patience)
        turn, end = self._turn, None if patience is None else time.monotonic() + patience
        while self._running and self._turn == turn and (end is None or time.monotonic() < end):
            with self._changing:
                if self._running and self._turn == turn:
                    self._changed.wait(_IDLE_CHECK)

    def _in_use(self) -> bool:
        """Whether receivers or sources depend on the queue."""
        return bool(self._feeds or self._sources)

    def _inside(self) -> bool:
        """Whether the calling thread is inside a dispatch."""
        return self._thread_id == threading.get_ident()

    # -- dispatching --

    def _dispatch_once(self, timeout: float | None) -> int:
        """Wait up to `timeout` seconds for something to do, and do it. Returns the number of callbacks made."""
        if self._inside():
            raise InvalidOperation(f"dispatch of the {self._name} inside one of its callbacks")
        with self._dispatching:
            if self._closed:
                return 0
            outer, _calling.back = getattr(_calling, "back", False), True
            try:
                self._thread_id = threading.get_ident()
                return self._dispatch_ready(timeout)
            finally:
                _calling.back = outer
                self._thread_id = None
                self._running = False
                with self._changing:
                    self._changed.notify_all()

    def _dispatch_ready(self, timeout: float | None) -> int:
        ready = self._epoll.poll(0 if self._again else self._patience(timeout))
        with self._changing:
            self._running = True
            self._turn += 1
        done = self._run_again() if self._again else 0
        done += self._run_timers()
        for descriptor, mask in ready:
            if self._closed:
                break
            feed = self._feeds.get(descriptor)
            if feed is not None:
                done += feed._dispatch()
            elif descriptor == self._events_fd:
                done += self._run_source_events()
            else:
                done += self._run_watched(descriptor, mask)
        return done

    def _patience(self, timeout: float | None) -> float | None:
        with self._guard:
            if not self._timers:
                return timeout if timeout is None else min(timeout, _WAIT_MAX)
            wait = min(max(0.0, self._timers[0][0] - time.monotonic()), _WAIT_MAX)
        return wait if timeout is None else min(wait, timeout)

    def _run_again(self) -> int:
        done = 0
        for feed in list(self._again):
            done += feed._dispatch()
            with contextlib.suppress(ValueError):  # closed by a callback
                self._again.remove(feed)
        return done

    def _run_timers(self) -> int:
        """Those that are due now; what falls due while they run is for the next turn, after messages and events."""
        done, now = 0, time.monotonic()
        while self._timers and not self._closed:
            with self._guard:
                if not self._timers or self._timers[0][0] > now:
                    break
                when, _, timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            done += 1
            try:
                timer._fire()
            finally:
                if timer._interval is not None and not timer.cancelled:
                    due = max(when + timer._interval, time.monotonic() - timer._interval)  # drop what is long past
                    with self._guard:
                        heapq.heappush(self._timers, (due, next(self._order), timer))
        return done

    def _run_source_events(self) -> int:
        done = 0
        holder = ffi.new("um_py_item_t **")
        while not self._closed and lib.um_py_queue_take(self._events, holder):
            item = holder[0]
            try:
                number, kind, words = item.owner, item.kind, text(item.text)
                first, last, timestamp_ns = item.first, item.last, item.timestamp_ns
            finally:
                lib.um_py_item_free(item)
            known = self._sources.get(number)
            if known is None:
                continue  # closed meanwhile
            owner, topic, call = known
            done += 1
            try:
                call(SourceEvent(source_event_type(kind), topic, words, first, last, timestamp_ns))
            except Exception as error:
                owner._failed(error)
        return done

    def _run_watched(self, descriptor: int, mask: int) -> int:
        done = 0
        for at, bits in ((1, ~WRITE), (2, ~READ)):
            known = self._watched.get(descriptor)
            call = known[at] if known is not None else None
            if known is None or call is None or not mask & bits:
                continue
            done += 1
            try:
                call()  # type: ignore[operator]
            except Exception as error:
                known[0]._failed(error)
        return done

    def _interrupted(self, feed: Fed) -> None:
        """The rest of the messages of a feed is to be dispatched first next time."""
        if feed not in self._again:
            self._again.append(feed)

    def _close(self, patience: float | None) -> None:
        self._wake()
        patience = bounded(patience)
        if not self._inside():
            if not self._dispatching.acquire(timeout=-1 if patience is None else patience):
                log.warning("the %s is abandoned: one of its callbacks does not return", self._name)
                return
            self._dispatching.release()  # who comes now sees that the queue is closed
        self._timers.clear()
        self._watched.clear()
        self._epoll.close()
        with self._guard:  # whoever wakes a queue does not ask before whether it is open
            self._deleted = True
            lib.um_py_queue_delete(self._events)


class EventQueue(Dispatcher):
    """A queue of callbacks that the application's own thread runs: give it to receivers and sources as `queue`.

    Messages wait in the receivers' own bounded memory until they are dispatched. Options of the scope event_queue:
    `queue_size_warning` (messages) and `queue_delay_warning` (microseconds) call `on_warning(text)`, which logs unless
    given; `event_queue_name`. The others concern C programs: NotSupported. They are keywords, or a mapping in
    `options`. Close the queue after what uses it.
    """

    def __init__(
        self,
        on_warning: Callable[[str], object] | None = None,
        *,
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[EventQueueOptions],
    ) -> None:
        if on_warning is not None:
            check_callback("event queue", "on_warning", on_warning)
        chosen = sorted_out(("event_queue",), merged(options, keywords))["event_queue"]
        for name in chosen:
            if name not in _SUPPORTED:
                raise NotSupported(f"event_queue option {name} has no meaning for Python; these have: {_SUPPORTED}")
        with Attributes("event_queue", chosen) as attributes:
            self._size_warning = int(attributes.get("queue_size_warning"))
            self._delay_warning = int(attributes.get("queue_delay_warning")) / 1e6
        super().__init__("event queue")
        self._on_warning = on_warning if on_warning is not None else log.warning
        self._last_warning = float("-inf")

    def dispatch(self, timeout: float | None = None) -> int:
        """Run callbacks on this thread for up to `timeout` seconds (0: what is ready now; None: until unblock()).

        Returns the number of callbacks made. Exceptions of callbacks are logged and kept for raise_pending() of their
        object; KeyboardInterrupt and SystemExit end the dispatch at once, and the next one goes on with the message
        after. InvalidOperation inside a callback of this queue. One thread at a time: others wait.
        """
        end = None if timeout is None else time.monotonic() + milliseconds(timeout) / 1000
        done = 0
        while True:
            self._check_open()
            left = None if end is None else max(0.0, end - time.monotonic())
            done += self._dispatch_once(left)
            self._warn()
            if self._unblocked or self._closed or (end is not None and time.monotonic() >= end):
                self._unblocked = False
                return done

    def unblock(self) -> None:
        """Make the running dispatch(), or else the next, return after the callbacks that are ready. Any thread."""
        self._check_open()
        self._unblocked = True
        self._wake()

    def size(self) -> int:
        """Messages that wait to be dispatched."""
        return sum(feed._waiting()[0] for feed in list(self._feeds.values()))

    def call_later(self, seconds: float, call: Callable[..., object], *arguments: object) -> Timer:
        """Call `call(*arguments)` once, `seconds` from now, in dispatch().

        The Timer that is returned can be cancelled.
        """
        check_callback("call_later() of the event queue", "call", call, arguments)
        return self._add_timer(self, seconds, lambda: call(*arguments), None)

    def call_every(self, seconds: float, call: Callable[..., object], *arguments: object) -> Timer:
        """Call `call(*arguments)` every `seconds` seconds, in dispatch(), until the timer is cancelled."""
        check_callback("call_every() of the event queue", "call", call, arguments)
        return self._add_timer(self, seconds, lambda: call(*arguments), seconds)

    def _warn(self) -> None:
        if not (self._size_warning or self._delay_warning) or time.monotonic() < self._last_warning + _WARNING_PERIOD:
            return
        waiting = [feed._waiting() for feed in list(self._feeds.values())]
        size, delay = sum(each[0] for each in waiting), max((each[1] for each in waiting), default=0.0)
        words = ""
        if self._size_warning and size > self._size_warning:
            words = f"event queue holds {size} messages: more than queue_size_warning {self._size_warning}"
        elif self._delay_warning and delay > self._delay_warning:
            words = f"event queue is {delay:.6f} s behind: more than queue_delay_warning {self._delay_warning:.6f} s"
        if words:
            self._last_warning = time.monotonic()
            try:
                self._on_warning(words)
            except Exception as error:
                self._failed(error)

    def _check_closing(self, patience: float | None) -> None:
        if patience is None and self._in_use():
            raise InvalidOperation("the event queue is in use: close its receivers and sources first")


class DispatchThread:
    """The thread that runs the callbacks of a context."""

    def __init__(self, name: str) -> None:
        self.queue = Dispatcher(f"callback queue of the {name}")
        self.queue._internal = True
        self._stop = False
        self._thread = threading.Thread(target=self._run, name=f"um_cffi {name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop:
            try:
                self.queue._dispatch_once(None)
            except BaseException:  # SystemExit of a callback, for example: this thread has no one to tell
                log.exception("callback thread: an exception that is not an error ends the callback only")

    def stop(self, patience: float | None) -> None:
        """End the thread and close its queue."""
        self._stop = True
        self.queue._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join(bounded(patience))
        self.queue._shut(patience if patience is not None else 1e6)
