"""Channels of receivers that hold from the first message on, those of a replay included; callbacks of channels."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pairs import HANG, loopback

from um_cffi import (
    Context,
    HFReceiver,
    HFSource,
    ImmediateReceiver,
    InvalidArgument,
    InvalidOperation,
    Message,
    Receiver,
    Source,
    WildcardReceiver,
)

MESSAGES = 200
DISCARD: dict[str, Any] = {"unrecognized_channel_behavior": "discard"}
CHANNELS = (None, 7, 8, 4294967295)


def send_all(source: Source) -> None:
    for number in range(MESSAGES + 1):
        channel = CHANNELS[number % 4]
        if isinstance(source, HFSource):
            source.send(b"%d" % number, number=number, channel=channel)
        else:
            source.send(b"%d" % number, channel=channel)
    source.flush()


WANTED = [(CHANNELS[number % 4], b"%d" % number) for number in range(MESSAGES + 1) if number % 4 < 2]


def plain(ctx: Context, *arguments: Any, **keywords: Any) -> Receiver:
    return Receiver(ctx, "first", *arguments, **keywords)


def merged(ctx: Context, *arguments: Any, **keywords: Any) -> Receiver:
    return HFReceiver(ctx, "first", *arguments, **keywords)


def pattern(ctx: Context, *arguments: Any, **keywords: Any) -> WildcardReceiver:
    return WildcardReceiver(ctx, "^first$", *arguments, **keywords)


MAKERS = [plain, merged, pattern]
Maker = Callable[..., Any]


@pytest.mark.parametrize("make", MAKERS)
def test_a_replay_comes_as_the_channels_say_from_its_first_message_on(make: Maker) -> None:
    with loopback() as sending:
        source = (HFSource if make is merged else Source)(sending, "first", retain=1000)
        send_all(source)
        for _ in range(3):
            with loopback() as receiving:
                receiver = make(receiving, channels=[7, 9], options=DISCARD)
                messages = [receiver.recv(HANG) for _ in WANTED]
                assert [(message.channel, bytes(message)) for message in messages] == WANTED
                assert receiver.recv(0) is None


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("direct", [False, True])
def test_each_channel_may_have_a_callback(make: Maker, direct: bool) -> None:
    heard: list[tuple[str, int | None, bytes]] = []
    done = threading.Event()

    def told(name: str) -> Callable[[Message], None]:
        def call(message: Message) -> None:
            heard.append((name, message.channel, bytes(message)))
            if bytes(message) == b"%d" % MESSAGES:
                done.set()

        return call

    channels = {7: told("seven"), 8: None}
    names = {None: "rest", 7: "seven", 8: "rest"}
    with loopback() as sending, loopback() as receiving:
        source = (HFSource if make is merged else Source)(sending, "first", retain=1000)
        send_all(source)
        make(receiving, told("rest"), channels=channels, options=DISCARD, direct=direct)
        assert done.wait(HANG)
    sent = [(CHANNELS[number % 4], b"%d" % number) for number in range(MESSAGES + 1) if number % 4 < 3]
    assert heard == [(names[channel], channel, data) for channel, data in sent]


def test_callbacks_of_channels_come_and_go_with_their_subscriptions() -> None:
    heard: list[tuple[str, bytes]] = []
    came = threading.Semaphore(0)

    def told(name: str) -> Callable[[Message], None]:
        def call(message: Message) -> None:
            heard.append((name, bytes(message)))
            came.release()

        return call

    with loopback() as sending, loopback() as receiving:
        receiver = plain(receiving, told("rest"), channels={})
        source = Source(sending, "first")
        source.wait_receivers(1, HANG)

        def say(text: bytes, channel: int) -> None:
            source.send(text, channel=channel, flush=True)
            assert came.acquire(timeout=HANG)

        say(b"a", 7)
        receiver.subscribe_channel(7, told("seven"))
        say(b"b", 7)
        with pytest.raises(InvalidArgument, match="is subscribed already"):
            receiver.subscribe_channel(7, told("again"))
        say(b"c", 7)
        receiver.unsubscribe_channel(7)
        say(b"d", 7)
        receiver.subscribe_channel(7)
        say(b"e", 7)
        with pytest.raises(InvalidArgument, match="the callback of channel 8"):
            receiver.subscribe_channel(8, 1)  # type: ignore[arg-type]
    assert heard == [("rest", b"a"), ("seven", b"b"), ("seven", b"c"), ("rest", b"d"), ("rest", b"e")]


def test_callbacks_of_channels_may_be_coroutines_where_the_receiver_has_one() -> None:
    heard: list[tuple[str, bytes]] = []

    async def run() -> None:
        done = asyncio.Event()

        async def rest(message: Message) -> None:
            await asyncio.sleep(0)
            heard.append(("rest", bytes(message)))

        async def seven(message: Message) -> None:
            await asyncio.sleep(0)
            heard.append(("seven", bytes(message)))

        def eight(message: Message) -> None:
            heard.append(("eight", bytes(message)))
            done.set()

        with loopback() as sending, loopback() as receiving:
            plain(receiving, rest, channels={7: seven, 8: eight})
            source = Source(sending, "first")
            await source.await_receivers(1, HANG)
            source.send(b"a", channel=7)
            source.send(b"b")
            source.send(b"c", channel=8, flush=True)
            await asyncio.wait_for(done.wait(), HANG)

    asyncio.run(run())
    assert heard == [("seven", b"a"), ("rest", b"b"), ("eight", b"c")]


def test_wrong_callbacks_of_channels_are_named() -> None:
    async def coroutine(message: Message) -> None: ...

    def call(message: Message) -> None: ...

    with loopback() as ctx:
        for make in MAKERS:
            with pytest.raises(InvalidArgument, match="channel 7 has a callback, the receiver has none"):
                make(ctx, channels={8: None, 7: call})
            with pytest.raises(InvalidArgument, match=r"the callback of channel 7 .*coroutine"):
                make(ctx, call, channels={7: coroutine})
            with pytest.raises(InvalidArgument, match="the callback of channel 7 is 5"):
                make(ctx, call, channels={7: 5})
            with pytest.raises(InvalidArgument, match="channel -1: must be an int"):
                make(ctx, call, channels={-1: None})
            with pytest.raises(InvalidOperation, match="with a mapping as channels"):
                make(ctx, call, channels=[7]).subscribe_channel(8, call)
            with pytest.raises(InvalidOperation, match="make the receiver with on_message"):
                make(ctx, channels={7: None}).subscribe_channel(8, call)
        with pytest.raises(InvalidOperation, match="it has no channels"):
            ImmediateReceiver(ctx).subscribe_channel(7)
