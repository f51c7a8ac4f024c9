"""Hot failover: numbered messages of several sources, merged by receivers, with every way to receive."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from pairs import HANG, collect, loopback, scaled, until

import um_cffi
from um_cffi import (
    HFReceiver,
    HFSource,
    InvalidArgument,
    Message,
    MessageFlags,
    MessageType,
    Receiver,
    ReceiverEvent,
    Source,
    TimedOut,
    UmError,
    WildcardReceiver,
    WouldBlock,
    pdm,
)

COPIES = MessageFlags.HF_DUPLICATE


@contextlib.contextmanager
def merged(
    sources: int = 2, bits: Any = 32, make: Any = HFReceiver, topic: str = "merged", **keywords: Any
) -> Iterator[tuple[list[HFSource], Any]]:
    """Sources in contexts of their own, and a receiver that hears all of them."""
    with contextlib.ExitStack() as stack:
        receiver = make(stack.enter_context(loopback()), topic, **keywords)
        made = [HFSource(stack.enter_context(loopback()), "merged", bits=bits) for _ in range(sources)]
        for source in made:
            source.wait_receivers(1, HANG)
        receiver.wait_ready(sources, HANG)
        yield made, receiver


def send(source: HFSource, *numbers: int) -> None:
    for number in numbers:
        source.send(b"%d" % number, number=number)
    source.flush()


def take(receiver: Any, count: int) -> list[Message]:
    messages: list[Message] = []
    for _ in range(count):
        message = receiver.recv(HANG)
        assert message is not None, f"{len(messages)} of {count} messages came"
        messages.append(message)
    return messages


def numbers(messages: list[Message]) -> list[int | None]:
    for message in messages:
        assert bytes(message) == str(message.hf_number).encode()
    return [message.hf_number for message in messages]


# -- sources and receivers --


def test_what_two_sources_send_comes_once_and_in_order() -> None:
    count = scaled(3000)
    with merged() as (sources, receiver):
        threads = [threading.Thread(target=send, args=(source, *range(count))) for source in sources]
        for thread in threads:
            thread.start()
        assert numbers(take(receiver, count)) == list(range(count))
        for thread in threads:
            thread.join(HANG)
        send(sources[1], count)  # behind everything else of this source, and the first is done as well
        send(sources[0], count)
        assert numbers(take(receiver, 1)) == [count]


def test_what_became_of_the_numbers_is_counted() -> None:
    with merged() as (sources, receiver):
        for source in sources:
            send(source, 1, 2)
        assert numbers(take(receiver, 2)) == [1, 2]
        until(lambda: receiver.merge_counts().duplicates == 2)
        counts = receiver.merge_counts()
        assert (counts.delivered, counts.lost, counts.waiting, counts.refused) == (2, 0, 0, 0)


def test_one_source_may_go() -> None:
    with merged() as (sources, receiver):
        send(sources[0], *range(50))
        assert numbers(take(receiver, 50)) == list(range(50))
        sources[0].close()
        send(sources[1], *range(100))
        assert numbers(take(receiver, 50)) == list(range(50, 100))


@pytest.mark.parametrize("bits", [32, 64])
def test_numbers_of_both_widths(bits: int) -> None:
    last = 2**bits - 1
    with merged(1, bits) as ((source,), receiver):
        assert source.bits == bits
        send(source, last - 1, last)
        messages = take(receiver, 2)
        assert numbers(messages) == [last - 1, last]
        width = MessageFlags.HF_32 if bits == 32 else MessageFlags.HF_64
        assert all(message.flags & width for message in messages)
        assert [message.sequence_number for message in messages] == ([last - 1, last] if bits == 32 else [0, 0])


def test_copies_come_on_request() -> None:
    with merged(hf_duplicate_delivery=1) as (sources, receiver):
        send(sources[0], 1, 2, 3)
        first = take(receiver, 3)
        send(sources[1], 1, 2, 3)
        second = take(receiver, 3)
        assert numbers(first) == numbers(second) == [1, 2, 3]
        assert not any(message.flags & COPIES for message in first)
        assert all(message.flags & COPIES for message in second)
        assert {message.source for message in first}.isdisjoint(message.source for message in second)


@pytest.mark.parametrize("wanted", [1, 0])
def test_optional_messages_as_the_specification_prints_them(wanted: int) -> None:
    with merged(1, hf_optional_messages=wanted) as ((source,), receiver):
        for number in (10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20):
            source.send(b"%d" % number, number=number, optional=number in (13, 14, 16, 17, 18, 19))
        source.flush()
        kept = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20] if wanted else [10, 11, 12, 15, 20]
        messages = take(receiver, len(kept))
        assert numbers(messages) == kept
        marked = [message.hf_number for message in messages if message.flags & MessageFlags.HF_OPTIONAL]
        assert marked == ([13, 14, 16, 17, 18, 19] if wanted else [])


def test_gaps_that_are_meant_come_without_delay() -> None:
    with merged() as (sources, receiver):
        for source in sources:
            send(source, 10, 11, 12, 13, 25, 26, 38)
        assert numbers(take(receiver, 7)) == [10, 11, 12, 13, 25, 26, 38]


@pytest.mark.parametrize("bits", [32, 64])
def test_a_reset_is_an_event_and_lets_lower_numbers_through(bits: int) -> None:
    told: list[ReceiverEvent] = []
    with merged(1, bits, on_event=told.append) as ((source,), receiver):
        send(source, 100, 101)
        source.send_rcv_reset(1)
        send(source, 1, 2)
        assert numbers(take(receiver, 4)) == [100, 101, 1, 2]
        (reset,) = [event for event in told if event.type is MessageType.HF_RESET]
        assert reset.hf_number == 1
        assert all(event.hf_number is None for event in told if event is not reset)


def test_what_has_no_number_passes() -> None:
    with merged() as (sources, receiver), loopback() as other, Source(other, "merged") as plain:
        plain.wait_receivers(1, HANG)
        receiver.wait_ready(3, HANG)
        send(sources[0], 1)
        (first,) = take(receiver, 1)
        assert first.hf_number == 1 and not first.flags & MessageFlags.HF_PASS_THROUGH
        for source in (plain, *sources):
            source.send(b"bare", flush=True)
            sources[0].send_many([b"bare"], flush=True)
            for message in take(receiver, 2):
                assert bytes(message) == b"bare" and message.hf_number is None
                assert message.flags & MessageFlags.HF_PASS_THROUGH


def test_plain_receivers_get_every_copy() -> None:
    with merged(make=Receiver) as (sources, receiver):
        for source in sources:
            send(source, 1, 2)
        messages = take(receiver, 4)
        assert sorted(bytes(message) for message in messages) == [b"1", b"1", b"2", b"2"]
        assert [message.hf_number for message in messages] == [None] * 4


def test_wildcard_receivers_merge_too() -> None:
    with merged(make=WildcardReceiver, topic="^mer", hf_receiver=1) as (sources, receiver):
        for source in sources:
            send(source, *range(20))
            source.send(b"end", flush=True)
        messages = take(receiver, 22)
        assert sorted(bytes(message) for message in messages)[-2:] == [b"end", b"end"]
        assert numbers([message for message in messages if bytes(message) != b"end"]) == list(range(20))
        assert {message.topic for message in messages} == {"merged"}


# -- every way to receive --


def whole(messages: list[Message]) -> bool:
    assert numbers(messages) == [1, 2, 3]
    assert [dict(message.properties) for message in messages] == [{}, {"n": 2}, {}]
    return True


def send_three(source: HFSource) -> None:
    source.send(b"1", number=1)
    source.send(b"2", number=2, properties={"n": 2})
    source.send([b"3"], number=3, flush=True)


@pytest.mark.parametrize("direct", [False, True])
def test_given_to_callbacks(direct: bool) -> None:
    got: list[Message] = []
    with merged(on_message=got.append, direct=direct) as (sources, _):
        for source in sources:
            send_three(source)
        until(lambda: len(got) == 3)
    gc.collect()
    assert whole(got)


def test_taken_in_batches() -> None:
    with merged(events=False) as (sources, receiver):
        for source in sources:
            send_three(source)
        assert whole([message for batch in collect(receiver, 3, 1) for message in batch.messages()])


def test_in_asyncio_both_ways() -> None:
    async def run() -> list[Message]:
        with merged() as (sources, receiver):
            got: list[Message] = []
            for source in sources:
                await source.asend(b"1", number=1)
                await source.asend(b"2", number=2, properties={"n": 2})
                await source.asend(b"3", number=3, flush=True)
            async for message in receiver:
                got.append(message)
                if len(got) == 3:
                    break
            await sources[0].asend_rcv_reset(1)
            await sources[0].asend(b"1", number=1, flush=True)
            async for message in receiver:
                assert message.hf_number == 1
                break
            return got

    assert whole(asyncio.run(run()))


def test_messages_outlive_everything() -> None:
    with merged(bits=64) as (sources, receiver):
        for source in sources:
            send_three(source)
        kept = take(receiver, 3)
        retained = [message.retain() for message in kept[:2]]
    del sources, source, receiver
    gc.collect()
    assert whole(kept) and numbers(retained) == [1, 2]
    assert whole([copy.copy(message) for message in kept])
    assert whole([pickle.loads(pickle.dumps(message)) for message in kept])


# -- many at once --


def many(kind: str) -> Any:
    """Three messages, b"1" to b"3", in one of the shapes that send_many() takes."""
    payloads = [b"1", b"2", b"3"]
    if kind == "array":
        return np.frombuffer(b"".join(payloads), "u1").reshape(3, 1)[:, :]
    if kind == "pandas":
        return pytest.importorskip("pandas").DataFrame({"payload": payloads})
    if kind == "arrow":
        return pytest.importorskip("pyarrow").table({"payload": payloads})
    return payloads if kind == "list" else iter(payloads)


@pytest.mark.parametrize("kind", ["list", "iterator", "array", "pandas", "arrow"])
@pytest.mark.parametrize("bits", [32, 64])
def test_send_many_numbers_from_the_first_or_by_a_column(kind: str, bits: Any) -> None:
    with merged(bits=bits) as (sources, receiver):
        assert sources[0].send_many(many(kind), numbers=1, flush=True) == 3
        assert sources[1].send_many(many(kind), numbers=np.array([1, 2, 3]), flush=True) == 3
        got = take(receiver, 3)
        assert [message.hf_number for message in got] == [1, 2, 3]
        assert [bytes(message) for message in got] == [b"1", b"2", b"3"]
        column = np.array([4, 9, 2**bits - 1], np.uint64)
        assert sources[1].send_many(many(kind), numbers=column, flush=True) == 3
        assert [message.hf_number for message in take(receiver, 1)] == [4]


def test_send_many_of_batches_and_definitions_numbers_them() -> None:
    trade = pdm.Definition.from_schema({"price": "DOUBLE"}, id=3)
    with merged(events=False) as (sources, receiver):
        assert sources[0].send_many({"price": [1.5, 2.5]}, definition=trade, numbers=7, flush=True) == 2
        assert sources[1].send_many({"price": [1.5, 2.5]}, definition=trade, numbers=7, flush=True) == 2
        batches = collect(receiver, 2, 1)
        got = [message for batch in batches for message in batch.messages()]
        assert [(message.hf_number, trade.parse(message.data)["price"]) for message in got] == [(7, 1.5), (8, 2.5)]
        for batch in batches:
            sources[1].send_many(batch, numbers=9 + batch.records["sequence_number"], flush=True)
        again = [message for batch in collect(receiver, 2, 1) for message in batch.messages()]
        assert [message.hf_number for message in again] == [16, 17]
        assert [message.data for message in again] == [message.data for message in got]


def test_send_many_gives_up_when_nobody_makes_room() -> None:
    rows = np.zeros((40_000, 1000), np.uint8)
    with merged(1, events=False, queue_bytes=1 << 20) as ((source,), receiver):
        with pytest.raises(TimedOut, match=r"no room for 0\.2 s") as caught:
            source.send_many(rows, numbers=0, timeout=0.2)
        sent = caught.value.sent  # type: ignore[attr-defined]
        assert 0 < sent < len(rows)
        collect(receiver, sent)
        with pytest.raises(InvalidArgument, match="only with numbers"):
            source.send_many(rows, timeout=0.2)


def test_many_thousand_numbered_messages_wait_for_room() -> None:
    count = scaled(100_000)
    rows = np.arange(count, dtype="<u8").reshape(-1, 1)
    with merged(1, bits=64, events=False) as ((source,), receiver):
        sender = threading.Thread(target=source.send_many, args=(rows, True), kwargs={"numbers": 5})
        sender.start()
        got = [message for batch in collect(receiver, count, 1) for message in batch.messages()]
        sender.join()
        assert [message.hf_number for message in got] == list(range(5, count + 5))
        assert bytes(got[-1].data) == rows[-1].tobytes()


@pytest.mark.parametrize(
    "wrong", [-1, 2**32 - 2, 2**70, [1, 2], [1, 2, 3, 4], [1.0, 2.0, 3.0], [[1, 2, 3]], [-1, 0, 1], "1"]
)
@pytest.mark.parametrize("kind", ["list", "array"])
def test_wrong_numbers_of_send_many_are_refused(wrong: Any, kind: str) -> None:
    with loopback() as ctx, HFSource(ctx, "numbers") as source:
        with pytest.raises(InvalidArgument, match="number") as caught:
            source.send_many(many(kind), numbers=wrong)
        assert 0 <= caught.value.sent <= 3  # type: ignore[attr-defined]
        with pytest.raises(InvalidArgument, match="list of bytes"):
            source.send_many("text", numbers=1)  # type: ignore[arg-type]


# -- mistakes --


@pytest.mark.parametrize("bits", [0, 16, 33, "32", None])
def test_widths_are_32_or_64(bits: Any) -> None:
    with loopback() as ctx, pytest.raises(InvalidArgument, match="32 or 64"):
        HFSource(ctx, "width", bits=bits)


@pytest.mark.parametrize("bits", [32, 64])
def test_numbers_that_do_not_fit_are_refused(bits: Any) -> None:
    with loopback() as ctx, HFSource(ctx, "numbers", bits=bits) as source:
        for wrong in (-1, 2**bits, 2**70, 1.5, "1"):
            with pytest.raises(InvalidArgument, match="number"):
                source.send(b"", number=wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidArgument, match="number"):
                source.send_nowait(b"", number=wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidArgument, match="number"):
                source.send_rcv_reset(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="number"):
            source.send_rcv_reset(None)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="optional"):
            source.send(b"", optional=True)
        source.send_nowait(b"", number=2**bits - 1, optional=True)


def test_lbtsmx_is_refused() -> None:
    with loopback() as ctx, pytest.raises(UmError, match="LBT-SMX"):
        HFSource(ctx, "ring", transport="lbtsmx")


# -- life --


def test_closing_in_any_order_leaves_nothing() -> None:
    for order in range(3):
        with merged() as (sources, receiver):
            send(sources[0], 1)
            closing = [*sources, receiver]
            for each in closing[order:] + closing[:order]:
                each.close()
                each.close()
            with pytest.raises(InvalidArgument, match="closed"):
                sources[0].send(b"", number=5)
            with pytest.raises(InvalidArgument, match="closed"):
                sources[1].send_rcv_reset(5)
            with pytest.raises(InvalidArgument, match="closed"):
                receiver.recv()
    gc.collect()
    counts = um_cffi.object_counts()
    assert (counts.contexts, counts.sources, counts.receivers, counts.collectors, counts.messages) == (0, 0, 0, 0, 0)


def test_closing_ends_a_send_that_waits() -> None:
    full, ended = threading.Event(), threading.Event()
    with merged(1, queue_bytes=10000) as ((source,), _):

        def fill() -> None:
            number = 0
            with contextlib.suppress(WouldBlock):
                while True:
                    source.send_nowait(bytes(60000), number=number)
                    number += 1
            full.set()
            with contextlib.suppress(InvalidArgument):
                while True:
                    source.send(bytes(60000), number=number)
                    number += 1
            ended.set()

        thread = threading.Thread(target=fill)
        thread.start()
        assert full.wait(HANG)
        source.close()
        assert ended.wait(HANG)
        thread.join(HANG)


def test_context_managers_and_forgotten_objects() -> None:
    with loopback() as ctx:
        with HFSource(ctx, "managed") as source, HFReceiver(ctx, "managed") as receiver:
            source.wait_receivers(1, HANG)
            receiver.wait_ready(1, HANG)
            send(source, 7)
            assert numbers(take(receiver, 1)) == [7]
        HFReceiver(ctx, "forgotten")
        HFSource(ctx, "forgotten")
    gc.collect()
    counts = um_cffi.object_counts()
    assert (counts.contexts, counts.sources, counts.receivers, counts.collectors) == (0, 0, 0, 0)
