"""The library's log lines in Python's `logging`, under the logger `um_cffi.library`.

Started with the first context. A line may be written on any thread of the library, so it is put into a bounded queue
in C (10000 lines; what does not fit is counted and reported) and logged by a thread of its own: the library never
waits for Python. Without any logging configuration Python prints warnings and errors to standard error.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
from typing import Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.lifetime import after_fork, at_exit
from um_cffi.errors import check, text

__all__ = ["LEVELS", "disable", "enable", "flush", "logger"]

logger = logging.getLogger("um_cffi.library")
"""Gets the library's lines. Configure it like any logger; `um_cffi` itself logs exceptions of callbacks."""

LEVELS: dict[int, int] = {
    lib.LBM_LOG_EMERG: logging.CRITICAL,
    lib.LBM_LOG_ALERT: logging.CRITICAL,
    lib.LBM_LOG_CRIT: logging.CRITICAL,
    lib.LBM_LOG_ERR: logging.ERROR,
    lib.LBM_LOG_WARNING: logging.WARNING,
    lib.LBM_LOG_NOTICE: logging.INFO,
    lib.LBM_LOG_INFO: logging.INFO,
    lib.LBM_LOG_DEBUG: logging.DEBUG,
}
"""The level of `logging` for each level of the library (LBM_LOG_*)."""


class _Bridge:
    """The queue of lines and the thread that logs them."""

    def __init__(self) -> None:
        self._queue: Any = lib.um_py_log_queue_create()
        if self._queue == ffi.NULL:
            raise MemoryError("no memory for the log queue")
        self._fd: int = lib.um_py_queue_fd(self._queue)
        self._stop = False
        self._dropped = 0
        self._draining = threading.RLock()  # a line is logged before another thread finds the queue empty
        self._thread = threading.Thread(target=self._run, name="um_cffi log", daemon=True)
        check(lib.um_py_log_to(self._queue))
        self._thread.start()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while not self._stop:
            poll.poll()
            with contextlib.suppress(Exception):
                self.drain()

    def drain(self) -> None:
        """Log what waits, and return when nothing is on its way to the logger on another thread either."""
        alone = self._draining.acquire(timeout=10)  # a handler of `logging` over there may wait for this thread
        try:
            self._drain()
        finally:
            if alone:
                self._draining.release()

    def _drain(self) -> None:
        holder = ffi.new("um_py_item_t **")
        while lib.um_py_queue_take(self._queue, holder):
            item = holder[0]
            try:
                level, line = LEVELS.get(item.kind, logging.INFO), text(item.text)
            finally:
                lib.um_py_item_free(item)
            logger.log(level, "%s", line)
        dropped: int = lib.um_py_queue_dropped(self._queue)
        if dropped != self._dropped:
            logger.warning("%d log lines were dropped: more than 10000 waited", dropped - self._dropped)
            self._dropped = dropped

    def stop(self) -> None:
        """Give the log back to the library and log what is left. The queue stays: a line may be on its way to it."""
        lib.um_py_log_to(ffi.NULL)
        self._stop = True
        lib.um_py_queue_wake(self._queue)
        self._thread.join(1)
        self._drain()


_bridge: _Bridge | None = None
_wanted = not os.environ.get("UM_CFFI_LOG_STDERR")
_lock = threading.Lock()


def enable() -> None:
    """Send the library's lines to `logger`. Done by the first context, unless disable() has been called before."""
    global _bridge, _wanted
    with _lock:
        _wanted = True
        if _bridge is None:
            _bridge = _Bridge()


def disable() -> None:
    """Let the library write its lines to standard error, also from contexts made later."""
    global _bridge, _wanted
    with _lock:
        _wanted = False
        bridge, _bridge = _bridge, None
    if bridge is not None:
        bridge.stop()


def flush() -> None:
    """Log what the library has written so far; returns when it has been handed to `logger`."""
    bridge = _bridge
    if bridge is not None:
        bridge.drain()


def start_unless_disabled() -> None:
    """What a context does."""
    if _wanted:
        enable()


def _forget() -> None:
    """In a child of fork(): the thread is gone, the queue's lock may be held. Lines go to a new queue, if any."""
    global _bridge, _lock
    _lock = threading.Lock()
    if _bridge is not None:
        _bridge = None
        lib.um_py_log_to(ffi.NULL)


after_fork(_forget)
at_exit(disable)
