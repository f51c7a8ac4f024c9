"""Answers to requests: what sends them, for the messages of receivers and for those of responders."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import shown
from um_cffi.binding.lifetime import milliseconds
from um_cffi.errors import InvalidArgument, InvalidOperation, TimedOut, WouldBlock, raise_last

if TYPE_CHECKING:
    from um_cffi.binding._fast import Message

RETRY = 0.005  # seconds between attempts to send over a connection that has no room

_WOULD_BLOCK: int = lib.LBM_EWOULDBLOCK


def buffer_of(call: str, data: Any) -> Any:
    """The bytes to be sent by `call`, where they lie."""
    try:
        return ffi.from_buffer(data)
    except (TypeError, BufferError, ValueError) as error:
        hint = "give text.encode()" if isinstance(data, str) else "give bytes, or another contiguous buffer"
        raise InvalidArgument(f"{call} with {shown(data)}, of type {type(data).__name__}: {error}; {hint}") from error


def sent(result: int) -> bool:
    """Whether a send that does not wait has done it; False: there is no room."""
    if result == 0:
        return True
    if lib.lbm_errnum() != _WOULD_BLOCK:
        raise_last()
    return False


def retry(attempt: Callable[[], bool], timeout: float | None, what: str) -> None:
    """Attempt again and again, on this thread, until there was room; TimedOut after `timeout` seconds, saying `what`.

    WouldBlock inside a direct callback: its context, which makes room, waits for it.
    """
    milliseconds(timeout)
    end = float("inf") if timeout is None else time.monotonic() + timeout
    while not attempt():
        if lib.um_py_in_callback(ffi.NULL):
            raise WouldBlock(f"{what}: there is no room, and callbacks with direct=True must not wait", _WOULD_BLOCK)
        if time.monotonic() >= end:
            raise TimedOut(f"{what}: its connection has taken nothing for {timeout} s")
        time.sleep(RETRY)


async def aretry(attempt: Callable[[], bool]) -> None:
    """Attempt again and again, in an event loop, until there was room."""
    while not attempt():
        await asyncio.sleep(RETRY)


# -- messages of receivers --


def _attempt_of(message: Message, data: Any) -> Callable[[], bool]:
    buffer, handle = buffer_of("respond()", data), message._answer
    way_back = message._way_back
    if way_back is None:
        raise InvalidOperation(
            f"respond() to {message!r}: only messages of the type REQUEST can be answered; ask with ctx.request()"
        )
    ctx = way_back[0]()
    if ctx is None or ctx.closed:
        raise InvalidArgument(f"respond() to {message!r}: the context that received it is closed")
    if handle is None:
        opened = lib.um_py_answer_open(ctx._gate_of(), way_back[1])
        if opened == ffi.NULL:
            raise_last()
        handle = message._answer = ffi.gc(opened, lib.um_py_answer_free)
    return lambda: sent(lib.um_py_answer_send(handle, buffer, len(buffer)))


def answer(message: Message, data: Any, timeout: float | None) -> None:
    """Message.respond()."""
    retry(_attempt_of(message, data), timeout, f"respond() to {message.source}")


async def aanswer(message: Message, data: Any) -> None:
    """Message.arespond()."""
    await aretry(_attempt_of(message, data))
