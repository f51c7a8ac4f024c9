"""Answers to requests: what sends them, for the messages of receivers and for those of responders."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from um_cffi._room import Room, sent
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import shown
from um_cffi.errors import InvalidArgument, InvalidOperation, raise_last

if TYPE_CHECKING:
    from um_cffi.binding._fast import Message


def buffer_of(call: str, data: Any) -> Any:
    """The bytes to be sent by `call`, where they lie."""
    try:
        return ffi.from_buffer(data)
    except (TypeError, BufferError, ValueError) as error:
        hint = "give text.encode()" if isinstance(data, str) else "give bytes, or another contiguous buffer"
        raise InvalidArgument(f"{call} with {shown(data)}, of type {type(data).__name__}: {error}; {hint}") from error


# -- messages of receivers --


def _attempt_of(message: Message, data: Any) -> tuple[Room, Callable[[], bool]]:
    """What sends the answer without waiting, and what tells when it is worth trying again."""
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
    return ctx._room, lambda: sent(lib.um_py_answer_send(handle, buffer, len(buffer)))


def answer(message: Message, data: Any, timeout: float | None) -> None:
    """Message.respond()."""
    room, attempt = _attempt_of(message, data)
    room.retry(attempt, timeout, f"respond() to {message.source}")


async def aanswer(message: Message, data: Any) -> None:
    """Message.arespond()."""
    room, attempt = _attempt_of(message, data)
    await room.aretry(attempt)
