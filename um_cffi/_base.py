"""What all objects of the binding share: closing in any order, exceptions of callbacks, fork and interpreter exit."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import logging
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from um_cffi.errors import InvalidArgument

if TYPE_CHECKING:
    from typing_extensions import Never, Self

log = logging.getLogger("um_cffi")

SLICE_MS = 100  # longest time spent in C without a look at signals
EXIT_PATIENCE = 2.0  # seconds that the interpreter's exit waits for a callback that is still running

_numbers = itertools.count(1)
_calling = threading.local()  # .back: this thread is inside a callback, which the closing of an object may wait for
_living: weakref.WeakSet[Closing] = weakref.WeakSet()
_exiting = False
_exit_order: list[Callable[[], None]] = []


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
        """Give up the library's object. Called once; `patience` bounds waiting for callbacks, None does not."""
        raise NotImplementedError

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
        raised by raise_pending() before; the object is closed all the same.
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
        with self._guard:
            first, self._closed = not self._closed, True
        if first:
            self._closer = threading.get_ident()
            _living.discard(self)
            try:
                if not self._inherited:
                    self._close(patience)
            finally:
                self._finished.set()
        elif not self._inherited and not getattr(_calling, "back", False) and self._closer != threading.get_ident():
            self._finished.wait(patience)  # another thread is at it

    def _failed(self, error: BaseException) -> None:
        """Log an exception of a callback and keep the first one."""
        log.error("callback of %s raised", self._name, exc_info=error)
        if self._error is None:
            self._error = error

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
            with contextlib.suppress(Exception):
                self._shut(EXIT_PATIENCE)

    def __repr__(self) -> str:
        state = " (closed)" if self._closed else ""
        return f"<um_cffi {self._name}{state}>"


class Part(Closing):
    """Base of what is made in a context, which deletes the library's object before its own."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._giving_up = threading.RLock()
        self._given_up = False

    def _delete(self) -> None:
        """Delete the library's object. Called once, without waiting for callbacks."""
        raise NotImplementedError

    def _give_up(self) -> None:
        """The first part of closing, done by whoever comes first: the thread that closes the object, or a callback that
        closes its context while that thread waits for the callback."""
        with self._giving_up:
            if not self._given_up:
                self._given_up = True
                self._delete()


def milliseconds(timeout: float | None, what: str = "timeout") -> int:
    """Seconds to milliseconds, rounded up so that a short time does not become none; None is -1, without bound."""
    if timeout is None:
        return -1
    if not timeout >= 0:
        raise InvalidArgument(f"{what} {timeout}: must be None or a number of seconds, 0 or more")
    return min(int(timeout * 1000 + 0.999), 2**31 - 1)


def at_exit(call: Callable[[], None]) -> None:
    """Have something done at the interpreter's exit, after all objects have been closed."""
    _exit_order.append(call)


def _objects() -> list[Closing]:
    """All open objects, those that depend on others first."""
    return sorted(list(_living), key=lambda each: each._number, reverse=True)


def _close_all() -> None:
    global _exiting
    _exiting = True
    for each in _objects():
        if each._internal:
            continue  # closed by the object it belongs to
        try:
            each._shut(EXIT_PATIENCE)
        except Exception:
            log.exception("closing the %s at exit", each._name)
    for call in _exit_order:
        call()


def _after_fork() -> None:
    for each in _objects():
        each._inherited = True
        each._guard = threading.RLock()  # a thread of the parent may have held it
        each._finished.set()  # or have been closing
    for call in _fork_calls:
        call()


_fork_calls: list[Callable[[], None]] = []


def after_fork(call: Callable[[], None]) -> None:
    """Have something done in every child of fork()."""
    _fork_calls.append(call)


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_close_all)
