"""Channels from Python: every way to send and to receive, subscriptions, requests, hot failover, smart sources; and the
properties of requests and of smart sources."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from pairs import HANG, collect, loopback, pair

import um_cffi
from um_cffi import (
    HFReceiver,
    HFSource,
    InvalidArgument,
    Message,
    MessageFlags,
    NotSupported,
    Properties,
    Receiver,
    RequestMessage,
    SlotSource,
    Source,
    UmError,
    WildcardReceiver,
)

ONLY: dict[str, Any] = {"unrecognized_channel_behavior": "discard", "null_channel_behavior": "discard"}
LAST = 4294967295


def came(messages: list[Message]) -> list[tuple[int | None, bytes]]:
    return [(message.channel, bytes(message)) for message in messages]


def send_all(source: Source) -> None:
    """On no channel, on three, and with properties."""
    source.send(b"none")
    source.send(b"a", channel=7)
    source.send([b"b", b"b"], channel=LAST)
    source.send_nowait(b"c", channel=0)
    source.send(b"d", channel=7, properties={"n": 1})
    source.send(b"e", channel=np.uint32(8))  # type: ignore[arg-type]
    source.send(b"last", flush=True)


def take(receiver: Any, count: int) -> list[Message]:
    messages = [receiver.recv(HANG) for _ in range(count)]
    assert None not in messages
    return messages


def messages_of(receiver: Any, count: int) -> list[Message]:
    return [message for batch in collect(receiver, count) for message in batch if not message.is_event()]


def test_a_receiver_without_channels_gets_everything_and_sees_no_channel() -> None:
    with pair() as (source, receiver):
        send_all(source)
        messages = take(receiver, 7)
        assert came(messages) == [(None, data) for data in (b"none", b"a", b"bb", b"c", b"d", b"e", b"last")]
        assert dict(messages[4].properties) == {"n": 1}


def test_a_receiver_with_channels_sees_all_and_their_numbers() -> None:
    with pair(channels=[7]) as (source, receiver):
        send_all(source)
        numbers = [None, 7, LAST, 0, 7, 8, None]
        messages = take(receiver, 7)
        assert [message.channel for message in messages] == numbers
        assert dict(messages[4].properties) == {"n": 1}
        assert [bool(message.flags & MessageFlags.CHANNEL) for message in messages] == [n is not None for n in numbers]


def test_options_leave_out_other_channels_and_those_without() -> None:
    with pair(channels=(7, 0, 7), **ONLY) as (source, receiver):
        send_all(source)
        source.send(b"end", flush=True, channel=7)
        assert came(take(receiver, 4)) == [(7, b"a"), (0, b"c"), (7, b"d"), (7, b"end")]


@pytest.mark.parametrize("direct", [False, True])
def test_callbacks_get_channels(direct: bool) -> None:
    messages: list[Message] = []
    done = threading.Event()

    def on_message(message: Message) -> None:
        messages.append(message)
        if bytes(message) == b"last":
            done.set()

    with pair(on_message, channels=[7], direct=direct) as (source, _):
        send_all(source)
        assert done.wait(HANG)
    assert [message.channel for message in messages] == [None, 7, LAST, 0, 7, 8, None]


def test_batches_and_copies_keep_the_channel() -> None:
    with pair(channels=[7]) as (source, receiver):
        source.send(b"a", channel=7)
        source.send(b"b", flush=True, channel=LAST, properties={"p": "q"})
        (message, other) = messages_of(receiver, 2)
        for each in (message, copy.copy(message), pickle.loads(pickle.dumps(message)), message.retain()):
            assert (each.channel, bytes(each), dict(each.properties)) == (7, b"a", {})
        for each in (other, pickle.loads(pickle.dumps(other))):
            assert (each.channel, bytes(each), dict(each.properties)) == (LAST, b"b", {"p": "q"})


def test_subscriptions_change_while_messages_come() -> None:
    with pair(channels=[1], **ONLY) as (source, receiver):
        for number in (2, 1):  # what is not wanted has come when the other has
            source.send(b"before", flush=True, channel=number)
        assert came(take(receiver, 1)) == [(1, b"before")]
        receiver.subscribe_channel(2)
        source.send(b"both", flush=True, channel=2)
        assert came(take(receiver, 1)) == [(2, b"both")]
        receiver.unsubscribe_channel(1)
        for number in (1, 2):
            source.send(b"after", flush=True, channel=number)
        assert came(take(receiver, 1)) == [(2, b"after")]
        with pytest.raises(InvalidArgument, match="is subscribed already"):
            receiver.subscribe_channel(2)
        with pytest.raises(InvalidArgument, match="must have been subscribed"):
            receiver.unsubscribe_channel(1)


def test_wildcard_receivers_and_hot_failover_have_channels() -> None:
    with loopback() as sending, loopback() as receiving:
        pattern = WildcardReceiver(receiving, "^ne.s$", channels=[7], options=ONLY)
        merged = HFReceiver(receiving, "news", channels=[7], options=ONLY)
        source = HFSource(sending, "news")
        pattern.wait_ready(1, HANG)
        merged.wait_ready(1, HANG)
        for number in range(4):
            source.send(b"%d" % number, flush=True, number=number, channel=7 + number % 2)
        source.send(b"bare", flush=True, channel=7)
        assert came(take(merged, 3)) == came(take(pattern, 3)) == [(7, b"0"), (7, b"2"), (7, b"bare")]
        pattern.subscribe_channel(8)
        source.send(b"8", flush=True, number=4, channel=8)
        assert came(take(pattern, 1)) == [(8, b"8")]
        pattern.unsubscribe_channel(8)


def test_asyncio_sends_and_receives_on_channels() -> None:
    async def run() -> None:
        with pair(channels=[7]) as (source, receiver):
            await source.asend(b"a", flush=True, channel=7)
            async for message in receiver:
                assert came([message]) == [(7, b"a")]
                break

    asyncio.run(run())


def test_a_source_makes_a_channel_once() -> None:
    with pair(channels=[1]) as (source, receiver):
        for number in range(5000):  # more than it keeps
            source.send(b"x", channel=number)
        made = source._extras(None, 4999)
        assert made is not None and source._extras(None, 4999) is made
        assert len(source._channels) < 5000
        source.flush()
        messages = messages_of(receiver, 5000)
        assert [message.channel for message in messages] == list(range(5000))


def test_properties_that_are_reused_cost_one_object() -> None:
    with pair(channels=[1]) as (source, receiver):
        properties = Properties({"a": 1})
        assert source._extras(properties, None) is source._extras(properties, None)
        assert source._extras(Properties(), None) is None
        source.send(b"x", flush=True, properties=properties)
        source.send(b"y", flush=True, properties=properties, channel=1)
        assert [(m.channel, dict(m.properties)) for m in take(receiver, 2)] == [(None, {"a": 1}), (1, {"a": 1})]


@pytest.mark.parametrize("wrong", [-1, LAST + 1, "7", 1.0, True])
def test_there_is_no_other_channel(wrong: Any) -> None:
    with loopback() as ctx:
        source = Source(ctx, "news")
        for call in (source.send, source.send_nowait):
            with pytest.raises(InvalidArgument, match=r"channel .*: must be an int, 0 to 4294967295"):
                call(b"x", channel=wrong)
        with pytest.raises(InvalidArgument, match="must be an int"):
            Receiver(ctx, "news", channels=[1, wrong])
        with pytest.raises(InvalidArgument, match="must be an int"):
            Receiver(ctx, "news").subscribe_channel(wrong)
    with loopback() as ctx, pytest.raises(InvalidArgument, match="give the numbers, as a list"):
        Receiver(ctx, "news", channels=7)  # type: ignore[arg-type]


def test_closed_sources_and_shared_memory_have_no_channels() -> None:
    with loopback() as ctx:
        source = Source(ctx, "news")
        source.send(b"x", channel=1)
        source.close()
        for number in (1, 2):
            with pytest.raises(InvalidArgument, match="closed"):
                source.send(b"x", channel=number)
        with pytest.raises(NotSupported, match="LBT-SMX carries no channels"):
            Source(ctx, "memory", transport="lbtsmx").send(b"x", channel=1)


# -- requests --


def test_requests_have_properties_and_channels() -> None:
    seen: list[dict[str, Any]] = []
    cases: list[tuple[Any, int | None]] = [(None, None), ({"a": 1, "b": "c"}, None), (Properties({"d": 2.5}), 7)]

    async def run() -> None:
        with loopback() as asking, loopback() as answering:
            taker = Receiver(answering, "prices", channels=[7])

            @answering.responder("prices")
            async def price(message: RequestMessage) -> bytes:
                assert message.properties is message.properties
                seen.append(dict(message.properties))
                return b"3"

            source = Source(asking, "prices")
            await source.await_receivers(1, HANG)
            await asyncio.wait_for(price.await_ready(), HANG)
            await asyncio.to_thread(taker.wait_ready, 1, HANG)
            for properties, channel in cases:
                response = await asking.request(source, b"pears", HANG, properties=properties, channel=channel)
                assert response.data == b"3"
            messages = await asyncio.to_thread(take, taker, 3)
            assert [message.channel for message in messages] == [None, None, 7]
            assert [dict(message.properties) for message in messages] == seen

    asyncio.run(run())
    assert seen == [{}, {"a": 1, "b": "c"}, {"d": 2.5}]


def test_wrong_extras_of_requests_are_named() -> None:
    with loopback() as ctx:
        source = Source(ctx, "prices")
        with pytest.raises(InvalidArgument, match="channel -1"):
            ctx.request(source, b"x", channel=-1)
        with pytest.raises(InvalidArgument, match="mapping"):
            ctx.request(source, b"x", properties=[1])  # type: ignore[arg-type]


# -- smart sources --


def test_slots_go_out_on_channels_and_with_properties() -> None:
    options = {"smart_src_enable_spectrum_channel": 1, "smart_src_message_property_int_count": 2}
    with loopback() as sending, loopback() as receiving:
        receiver = Receiver(receiving, "quotes", channels=[7])
        source = SlotSource(sending, "quotes", "i4", transport="lbtru", options=options)
        receiver.wait_ready(1, HANG)
        for at in (0, 1, 0):
            source.slots[at] = at
        source.send(0, channel=7, properties={"size": 5, "px": -1})
        source.send(0, channel=8, properties={"size": 6, "px": 2147483647})
        source.send(1, channel=LAST, properties={"one": 1})
        source.send(1)
        source.send(0, channel=7, properties={"size": 5, "px": -1})
        got = [(message.channel, dict(message.properties)) for message in take(receiver, 5)]
        assert got == [
            (7, {"size": 5, "px": -1}),
            (8, {"size": 6, "px": 2147483647}),
            (LAST, {"one": 1}),
            (None, {}),
            (7, {"size": 5, "px": -1}),
        ]
        for channel, properties, said in (
            (7, None, "both or neither"),
            (7, {"too long": 1}, "1 to 7 ASCII"),
            (7, {"a": 1, "b": 2, "c": 3}, "must be 1 to 2"),
            (7, {"a": 2**31}, "properties"),
            (7, {"a": "1"}, "properties"),
            (-1, {"a": 1}, "channel -1"),
        ):
            with pytest.raises(UmError, match=said):
                source.send(0, channel=channel, properties=properties)  # type: ignore[arg-type]
        source.send(0, channel=7, properties={"size": 7, "px": 0})
        assert dict(take(receiver, 1)[0].properties) == {"size": 7, "px": 0}


def test_the_public_names_are_documented() -> None:
    assert um_cffi.MessageFlags.CHANNEL
    assert "channel" in (Message.channel.__doc__ or "")
