"""Waiting for room to send what has no source: immediate messages, requests among them, and responses."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.deferred import asyncio
from um_cffi.binding.lifetime import SLICE_MS, milliseconds
from um_cffi.errors import OutOfMemory, TimedOut, WouldBlock, check, raise_last

_WOULD_BLOCK: int = lib.LBM_EWOULDBLOCK
_CHECK = 0.1  # seconds between attempts in an event loop when nothing tells of room


def sent(result: int) -> bool:
    """Whether a send that does not wait has done it; False: there is no room."""
    if result == 0:
        return True
    if lib.lbm_errnum() != _WOULD_BLOCK:
        raise_last()
    return False


class Room:
    """Of one context, made before it: its thread tells here that who was refused may try again. Any thread, any event
    loop; the context deleted, nobody waits any more.
    """

    def __init__(self) -> None:
        state = lib.um_py_room_create()
        if state == ffi.NULL:
            raise OutOfMemory("no memory for a context")
        self.state: Any = ffi.gc(state, lib.um_py_room_delete)
        self._fd = -1
        self._waiting: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}

    def install(self, attributes: Any) -> None:
        """Into the attributes of the context."""
        check(lib.um_py_room_install(self.state, attributes))

    def wake(self) -> None:
        """Whoever waits looks again: the context is being closed."""
        lib.um_py_room_wake(self.state)

    # -- on a thread --

    def retry(self, attempt: Callable[[], bool], timeout: float | None, what: str) -> None:
        """Attempt until there was room, each time that the context tells of some; TimedOut after `timeout` seconds,
        saying `what`.

        WouldBlock inside a direct callback: its context, which makes room, waits for it.
        """
        milliseconds(timeout)
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            seen = lib.um_py_room_seen(self.state)
            if attempt():
                return
            if lib.um_py_in_callback(ffi.NULL):
                raise WouldBlock(
                    f"{what}: there is no room, and callbacks with direct=True must not wait", _WOULD_BLOCK
                )
            left = end - time.monotonic()
            if left <= 0:
                raise TimedOut(f"{what}: its connection has taken nothing for {timeout} s")
            self.wait(seen, SLICE_MS if left > SLICE_MS / 1000 else max(1, round(left * 1000)))

    def wait(self, seen: int, wait_ms: int) -> None:
        """Until the context has told of room since `seen` was taken, or so many milliseconds."""
        lib.um_py_room_wait(self.state, seen, wait_ms)

    # -- in asyncio --

    def _descriptor(self) -> int:
        """What tells event loops of room."""
        if self._fd < 0:
            self._fd = lib.um_py_room_fd(self.state)
            if self._fd < 0:
                raise OutOfMemory("no descriptor for waiting for room")
        return self._fd

    async def aretry(self, attempt: Callable[[], bool]) -> None:
        """Attempt until there was room, in an event loop."""
        while True:
            seen = lib.um_py_room_seen(self.state)
            if attempt():
                return
            await self.comes(seen)

    async def comes(self, seen: int) -> None:
        """Until the context has told of room since `seen` was taken, or it is time to look anyway."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        waiting = self._waiting.setdefault(loop, [])
        if not waiting:
            loop.add_reader(self._descriptor(), self._on_readable)
        waiting.append(future)
        timer = loop.call_later(_CHECK, _resolve, [future])
        try:
            if lib.um_py_room_seen(self.state) == seen:  # else another loop may have been told, and this one not
                await future
        finally:
            timer.cancel()
            waiting.remove(future)
            if not waiting:
                self._waiting.pop(loop, None)
                loop.remove_reader(self._fd)

    def _on_readable(self) -> None:
        """In one of the loops: all of them are told."""
        lib.um_py_clear_fd(self._fd)
        here = asyncio.get_running_loop()
        for loop, waiting in list(self._waiting.items()):
            if loop is here:
                _resolve(waiting)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, waiting)


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
