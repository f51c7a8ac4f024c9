"""What all objects of the binding share: closing in any order, exceptions of callbacks, fork and interpreter exit."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import os
import queue
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import number
from um_cffi.binding.deferred import asyncio
from um_cffi.errors import InvalidArgument, InvalidOperation

if TYPE_CHECKING:
    from typing_extensions import Never, Self

    from um_cffi.context import Context

log = logging.getLogger("um_cffi")

SLICE_MS = 100  # longest time spent in C without a look at signals
EXIT_PATIENCE = 1.5  # seconds that the interpreter's exit waits for callbacks that are still running, all together

_numbers = itertools.count(1)
_calling = threading.local()  # .back: this thread is inside a callback, which the closing of an object may wait for
_living: weakref.WeakSet[Closing] = weakref.WeakSet()
_exiting = False
_exit_end = 0.0  # when the waits of the exit are over, by the monotonic clock
_exit_order: list[Callable[[], None]] = []
# What was forgotten where it could not be closed, or all of it at the exit; put() is for __del__.
_left: queue.SimpleQueue[Closing | Callable[[], None]] = queue.SimpleQueue()
_closes_left: threading.Thread | None = None
_starting = threading.Lock()  # of that thread


class Closing:
    """Base of everything that must be closed. Usable in `with`; closes once, from any thread, in any order."""

    _internal = False  # made and closed by another object of the binding

    def __init__(self, name: str) -> None:
        self._name = name
        self._number = next(_numbers)
        self._guard = threading.RLock()  # held around every call on the library's object that may not outlive it
        self._closed = False
        self._finished = threading.Event()  # set when closing has come to its end
        self._closer = 0  # the thread that closes
        self._inherited = False  # the process forked: the library's object belongs to the parent
        self._error: BaseException | None = None
        _living.add(self)

    def _close(self, patience: float | None) -> None:
        """Give up the library's object; `patience` bounds waiting for callbacks, None does not.

        Called once, or again after it raised an exception with the library's object not deleted: this one stays open.
        """
        raise NotImplementedError

    def _check_closing(self, patience: float | None) -> None:
        """Raise what stands in the way of closing. The guard is held, the object open."""

    def _is_deleted(self) -> bool:
        """Whether the library's object is gone, or there is none."""
        return True

    def _forked(self) -> None:
        """In a child of fork(): the library's object is the parent's, whose threads may have held any lock."""
        self._inherited = True
        self._guard = threading.RLock()
        self._finished.set()

    def _reopen(self) -> None:
        """Closing has failed before the library's object was deleted."""
        self._closed = False
        self._closer = 0
        _living.add(self)

    @property
    def closed(self) -> bool:
        """Whether close() has been called."""
        return self._closed

    def close(self) -> None:
        """Release what the object holds. Safe to call again, from any thread.

        It is no error that the object is closed already, or that another thread is closing it or its context at the
        same time. No callback of the object runs after the return, except the one that calls close(): whoever closes
        waits for the callback that is running, also when another thread closed first; inside a callback close() does
        not wait for others. Raises the first exception that a callback of this object raised and that has not been
        raised by raise_pending() before; the object is closed all the same. InvalidOperation, and the object stays
        open, inside a callback of the same context with direct=True, which its thread would have to wait for.
        """
        self._shut(None)
        self.raise_pending()

    def raise_pending(self) -> None:
        """Raise the first exception that a callback has raised since the last call, if any: that Exception itself.

        It was logged when it was raised; later ones until this call were logged only. Any thread.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def aclose(self) -> None:
        """As close(), for asyncio: the event loop goes on while a callback that is running comes to its end."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def _shut(self, patience: float | None) -> None:
        while True:
            with self._guard:
                first = not self._closed
                if first:
                    if not self._inherited:
                        self._check_closing(patience)
                    self._closed = True
                    self._closer = threading.get_ident()
                    self._finished = threading.Event()
                finished = self._finished
            if first:
                self._shut_first(patience, finished)
                return
            if self._inherited or getattr(_calling, "back", False) or self._closer == threading.get_ident():
                return
            finished.wait(bounded(patience))  # another thread is at it
            if self._closed or not finished.is_set():
                return  # and if the library refused that thread, this one may succeed

    def _shut_first(self, patience: float | None, finished: threading.Event) -> None:
        _living.discard(self)
        try:
            if not self._inherited:
                self._close(patience)
        except Exception:
            if not self._is_deleted():
                self._reopen()
            raise
        finally:
            finished.set()

    def _failed(self, error: BaseException) -> None:
        """Keep the first exception of a callback, and log each: what the log tells can be raised."""
        if self._error is None:
            self._error = error
        log.error("callback of %s raised", self._name, exc_info=error)

    def _check_open(self) -> None:
        if self._inherited:
            raise InvalidArgument(
                f"the {self._name} was made before fork(): only the parent process may use it; make a new one here"
            )
        if self._closed:
            if _exiting and threading.current_thread() is not threading.main_thread():
                raise SystemExit  # a daemon thread at the interpreter's exit: nobody is left to be told
            raise InvalidArgument(f"the {self._name} is closed")

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        """Inside the block the object stays open."""
        if self._inherited:
            self._check_open()
        with self._guard:
            self._check_open()
            yield

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:  # the exception on its way is the better story; those of callbacks have been logged
            self._shut(None)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.__exit__, kind, value, traceback)

    def __reduce__(self) -> Never:
        raise TypeError(
            f"the {self._name} cannot be pickled or copied: it belongs to this process; "
            "send what is needed to make one, and make it there"
        )

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or self._inherited or sys.is_finalizing():
            return
        try:
            warnings.warn(f"{self._name} was not closed", ResourceWarning, stacklevel=2, source=self)
        finally:  # where warnings are errors, too
            self._shut_or_leave()

    def _shut_or_leave(self) -> None:
        """Close what nobody refers to any more; where that cannot be now, it stays alive until it can."""
        if not lib.um_py_in_callback(ffi.NULL):
            with contextlib.suppress(Exception):
                self._shut(EXIT_PATIENCE)
        if not self._closed:
            _living.add(self)
            _left.put(self)

    def _facts(self) -> str:
        """What repr() tells beside the name. The guard is held, the object open."""
        return ""

    def __repr__(self) -> str:
        facts = "(closed)" if self._closed else "(made before fork)" if self._inherited else ""
        if not facts and self._guard.acquire(blocking=False):  # in use by another thread: the name has to do
            try:
                facts = "(closed)" if self._closed else self._facts()
            except Exception:  # of an object that is not whole yet
                facts = ""
            finally:
                self._guard.release()
        return f"<um_cffi {self._name}{' ' if facts.startswith('(') else ', ' if facts else ''}{facts}>"


def counted(number: int, noun: str) -> str:
    """1 source, 2 sources."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Part(Closing):
    """Base of what is made in a context, which deletes the library's object before its own."""

    _closes_last = False  # other parts of the context use it

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._giving_up = threading.RLock()
        self._given_up = False

    _ctx: Context

    def _delete(self) -> None:
        """Delete the library's object, without waiting for callbacks. Called again after an exception."""
        raise NotImplementedError

    def _check_closing(self, patience: float | None) -> None:
        check_outside(self._name, self._ctx._ctx)

    def _is_deleted(self) -> bool:
        return self._given_up

    def _give_up(self) -> None:
        """The first part of closing, done by whoever comes first: the thread that closes the object, or a callback that
        closes its context while that thread waits for the callback."""
        with self._giving_up:
            if not self._given_up:
                self._delete()
                self._given_up = True


def check_outside(name: str, ctx: Any) -> None:
    """InvalidOperation inside a direct callback of the context `ctx` of the library, which would wait for itself."""
    if lib.um_py_in_callback(ctx):
        raise InvalidOperation(
            f"the {name} cannot be closed inside a callback of its context with direct=True, for the context waits for "
            "that callback: close it on another thread; it stays open",
            lib.LBM_EOP,
        )


def expect_left_objects() -> None:
    """Before objects are made that may be forgotten where they cannot be closed: start the thread that closes them."""
    global _closes_left
    with _starting:
        if _closes_left is None:
            _closes_left = threading.Thread(target=_close_left, name="um_cffi forgotten objects", daemon=True)
            _closes_left.start()


def _close_left() -> None:
    while True:
        each = _left.get()
        if not isinstance(each, Closing):
            each()
            continue
        with contextlib.suppress(Exception):
            each._shut(EXIT_PATIENCE)
        if not each._closed:
            _left.put(each)
            time.sleep(SLICE_MS / 1000)
        del each


def milliseconds(timeout: float | None, what: str = "timeout") -> int:
    """Seconds to milliseconds, rounded up so that a short time does not become none; None is -1, without bound."""
    if timeout is None:
        return -1
    if not number(what, timeout) >= 0:
        raise InvalidArgument(f"{what} {timeout}: must be None or a number of seconds, 0 or more")
    return int(min(timeout * 1000 + 0.999, 2**31 - 1))


def at_exit(call: Callable[[], None]) -> None:
    """Have something done at the interpreter's exit, after all objects have been closed."""
    _exit_order.append(call)


def _objects() -> list[Closing]:
    """All open objects, those that depend on others first."""
    return sorted(list(_living), key=lambda each: each._number, reverse=True)


def bounded(patience: float | None) -> float | None:
    """How long to wait for callbacks: at the interpreter's exit all waits share one time."""
    if patience is None or not _exiting:
        return patience
    return max(0.0, min(patience, _exit_end - time.monotonic()))


def _at_exit() -> None:
    """Close what is open. Deleting what has callbacks on the library's threads waits for these in C, so another thread
    does that, and is left behind when one does not return."""
    global _exiting, _exit_end
    _exit_end = time.monotonic() + EXIT_PATIENCE
    _exiting = True
    closed = threading.Event()

    def close() -> None:
        _close_all()
        closed.set()

    if _closes_left is None:
        close()
    else:
        _left.put(close)
        if not closed.wait(EXIT_PATIENCE):
            log.warning("objects are abandoned at exit: a callback with direct=True does not return")
    for call in _exit_order:
        call()


def _close_all() -> None:
    for each in _objects():
        if each._internal:
            continue  # closed by the object it belongs to
        try:
            each._shut(EXIT_PATIENCE)
        except Exception:
            log.exception("closing the %s at exit", each._name)


def _after_fork() -> None:
    global _closes_left, _left, _starting
    _closes_left, _left, _starting = None, queue.SimpleQueue(), threading.Lock()
    for each in _objects():
        each._forked()
    for call in _fork_calls:
        call()


_fork_calls: list[Callable[[], None]] = []


def after_fork(call: Callable[[], None]) -> None:
    """Have something done in every child of fork()."""
    _fork_calls.append(call)


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
