"""Immediate messages: sent without a source, to one context or by multicast, and those without a topic received.

A receiver of a topic gets immediate messages to it like all others; ImmediateReceiver is for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from um_cffi._calling import Calling
from um_cffi._channels import OnMessage
from um_cffi._receiving import OnEvent, OnFull
from um_cffi._room import sent
from um_cffi.answering import buffer_of
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import expect_context, name_bytes
from um_cffi.context import Context
from um_cffi.dispatch import EventQueue
from um_cffi.errors import InvalidOperation, check
from um_cffi.receiver import QUEUE_BYTES
from um_cffi.requests import Way

if TYPE_CHECKING:
    from um_cffi.context import Target

_FLUSH: int = lib.LBM_MSG_FLUSH


class Address:
    """Where an immediate message of the call `call` goes: to `target`, None: by multicast, and there to `topic`."""

    def __init__(self, call: str, target: bytes | None, topic: str | None) -> None:
        self._call = call
        self._target = ffi.NULL if target is None else target
        self._topic = ffi.NULL if topic is None else name_bytes(call, "topic", topic)
        by = "by multicast" if target is None else f"to {target.decode()}"
        self.name = f"{by} without a topic" if topic is None else f"{by} on {topic!r}"

    def attempt_of(self, ctx: Context, data: Any, flush: bool) -> Callable[[], bool]:
        """What sends `data` without waiting, and says whether it could."""
        buffer, flags = buffer_of(self._call, data), _FLUSH if flush else 0
        gate, target, topic = ctx._gate_of(), self._target, self._topic

        def attempt() -> bool:
            ctx._check_open()
            return sent(lib.um_py_immediate_send(gate, target, topic, buffer, len(buffer), flags))

        return attempt


def unicast(call: str, target: Target, topic: str | None) -> Address:
    """To one context."""
    return Address(call, _target_bytes(call, target), topic)


def multicast(call: str, topic: str | None) -> Address:
    """To all contexts that listen."""
    return Address(call, None, topic)


def _target_bytes(call: str, target: Target) -> bytes:
    return name_bytes(call, "target", target.immediate_target if isinstance(target, Context) else target)


class ImmediateWay(Way):
    """Requests as immediate messages."""

    def __init__(self, ctx: Context, address: Address, flush: bool) -> None:
        self.name = address.name
        self._ctx = ctx
        self._address = address
        self._flags = _FLUSH if flush else 0
        self._seen = 0  # wakeups of the context before the last attempt

    def prepare(self, data: Any) -> Any:
        return buffer_of(self._address._call, data)

    def send(self, inbox: Any, number: int, payload: Any, wait_ms: int) -> Any:
        ctx = self._ctx
        ctx._check_open()
        seen = self._seen = lib.um_py_room_seen(ctx._room.state)
        request = self._attempt(inbox, number, payload)
        if request == ffi.NULL and wait_ms > 0 and lib.lbm_errnum() == lib.LBM_EWOULDBLOCK:
            ctx._room.wait(seen, wait_ms)
            ctx._check_open()
            return self._attempt(inbox, number, payload)
        return request

    def _attempt(self, inbox: Any, number: int, payload: Any) -> Any:
        gate, target, topic = self._ctx._gate_of(), self._address._target, self._address._topic
        return lib.um_py_immediate_request(gate, inbox, number, target, topic, payload, len(payload), self._flags)

    async def room(self) -> None:
        await self._ctx._room.comes(self._seen)


class ImmediateReceiver(Calling):
    """A receiver of the immediate messages without a topic that come to the context `ctx`; a context has one.

    With `other_topics` also of those to topics for which the context has no receiver. Immediate messages to topics that
    it has receivers for go to these, and to wildcard receivers whose pattern matches when there is no other. Unicast
    ones come to the context's `immediate_target`; multicast ones where its option mim_incoming_address (or mim_address)
    names the group. A message of the type REQUEST is answered with its respond().

    Messages are taken, or given to `on_message`, as with Receiver: recv(), `for message in receiver`, recv_batch(),
    `async for` and so on, and `on_message`, `queue`, `queue_bytes`, `direct` and `on_full` mean what they mean there.
    Their `topic` is empty, their `source` the sender: "TCP:address:port", where an answer can be sent as an immediate
    message, or of a multicast message the source string of its session. There are no sessions to begin or end;
    `on_event(event)` and, with `events`, batches get a LOSS or BURST_LOSS for multicast messages that the network lost
    for good, whatever their topic, and a BURST_LOSS for what a full queue dropped.

    All methods may be called from any thread, callbacks included. InvalidOperation when the context has one already;
    InvalidArgument is what every method raises once it is closed.
    """

    def __init__(
        self,
        ctx: Context,
        on_message: OnMessage | None = None,
        on_event: OnEvent | None = None,
        queue: EventQueue | None = None,
        *,
        other_topics: bool = False,
        queue_bytes: int = QUEUE_BYTES,
        direct: bool = False,
        events: bool = True,
        on_full: OnFull = "pause",
    ) -> None:
        expect_context("ImmediateReceiver(ctx)", ctx)
        self._others = bool(other_topics)
        super().__init__("immediate receiver", ctx, on_message, on_event, queue, queue_bytes, direct, events, on_full)

    def _create_receiver(self, ctx: Context, callback: Any, collector: Any) -> Any:
        if any(isinstance(child, ImmediateReceiver) for child in list(ctx._children.values())):
            raise InvalidOperation(
                "the context has an immediate receiver already: take messages from that one, or close it first"
            )
        check(lib.um_py_immediate_receive(ctx._ctx, collector, self._direct is not None, self._others))
        return ctx._ctx

    def _delete_receiver(self) -> int:
        return int(lib.um_py_immediate_ignore(self._ctx._ctx, self._others))
