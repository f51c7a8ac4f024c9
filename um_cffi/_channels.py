"""Channels that receivers are subscribed to, and who is called for the messages of each.

Made by receivers on the thread that makes them; callbacks are looked up on the thread that calls back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Optional, Union

from um_cffi.batch import Message
from um_cffi.binding._native import ffi
from um_cffi.binding.arguments import channel_number, channel_numbers, shown
from um_cffi.binding.callbacks import check_callback, is_coroutine
from um_cffi.errors import InvalidArgument, InvalidOperation

OnMessage = Callable[[Message], Union[object, Awaitable[object]]]
Channels = Union[Mapping[int, Optional[OnMessage]], Iterable[int]]
"""Numbers, or numbers with the callbacks of their messages; None: the receiver's own."""


class Router:
    """The callback of a receiver some of whose channels have callbacks of their own."""

    __slots__ = ("calls", "rest")

    def __init__(self, rest: OnMessage) -> None:
        self.calls: dict[int | None, OnMessage] = {}  # replaced as a whole or by one key at a time
        self.rest = rest

    def __call__(self, message: Message) -> object:
        return self.calls.get(message.channel, self.rest)(message)


class Subscriptions:
    """What a receiver `name` is subscribed to. Changed while its guard is held."""

    def __init__(self, name: str, channels: Channels) -> None:
        self._name = name
        self._router: Router | None = None
        self._numbers: set[int] = set()
        self._first: dict[int, OnMessage | None] = {}
        self._routed = isinstance(channels, Mapping)
        if isinstance(channels, Mapping):
            for number, call in channels.items():
                self._first[channel_number(name, number)] = call
        else:
            self._first = dict.fromkeys(channel_numbers(name, channels))

    def route(self, on_message: OnMessage | None) -> OnMessage | None:
        """The callback to call instead of the receiver's, which is checked already. InvalidArgument for others that
        cannot be called as it is."""
        if on_message is None:
            given = [number for number, call in self._first.items() if call is not None]
            if given:
                raise InvalidArgument(
                    f"{self._name}: channel {given[0]} has a callback, the receiver has none: give on_message, too, "
                    "which gets all other messages"
                )
            return None
        if not self._routed:
            return on_message
        self._router = Router(on_message)
        for number, call in self._first.items():
            if call is not None:
                self._router.calls[number] = self._checked(number, call)
        return self._router

    def _checked(self, number: int, call: OnMessage) -> OnMessage:
        assert self._router is not None
        check_callback(self._name, f"the callback of channel {number}", call, coroutine=is_coroutine(self._router.rest))
        return call

    def first(self) -> tuple[Any, int]:
        """An array of um_channel_subscription_t and its length, for the making of the receiver."""
        array = ffi.new("um_channel_subscription_t[]", max(1, len(self._first)))
        for at, number in enumerate(self._first):
            array[at].channel = number
        self._numbers = set(self._first)
        return array, len(self._first)

    def add(self, number: int, call: OnMessage | None, subscribe: Callable[[int], object]) -> None:
        """Subscribe to one more, whose callback is in force when its first message comes."""
        if call is not None and self._router is None:
            raise InvalidOperation(
                f"{self._name}: channel {number} with the callback {shown(call)}: make the receiver with on_message, "
                "and with a mapping as channels, which may be empty"
            )
        routed = self._router is not None and call is not None and number not in self._numbers
        if self._router is not None and call is not None:
            checked = self._checked(number, call)
            if routed:
                self._router.calls[number] = checked
        try:
            subscribe(number)
        except BaseException:
            if routed and self._router is not None:
                self._router.calls.pop(number, None)
            raise
        self._numbers.add(number)

    def remove(self, number: int, unsubscribe: Callable[[int], object]) -> None:
        """End a subscription; what waits of its messages comes to the receiver's callback."""
        unsubscribe(number)
        self._numbers.discard(number)
        if self._router is not None:
            self._router.calls.pop(number, None)
