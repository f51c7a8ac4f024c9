"""Receiving: callbacks, async for, batches; equal results, nothing lost, memory that stays alive under its views."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pairs import HANG, collect, loopback, numbered, pair, payloads, same, until

from um_cffi import (
    Batch,
    Context,
    EventQueue,
    InvalidArgument,
    InvalidOperation,
    Message,
    MessageType,
    Receiver,
    ReceiverEvent,
    Source,
    WildcardReceiver,
)

COUNT = 20000
NUMBER = np.dtype([("number", "<u8"), ("rest", "V56")])


def send_numbered(source: Source, count: int = COUNT) -> list[bytes]:
    rows = numbered(count)
    assert source.send_many(rows, flush=True) == count
    return [row.tobytes() for row in rows]


def all_at_once(source: Source, receiver: Receiver, count: int) -> Batch:
    """One batch of so many messages; the beginning of the session is in it or before it."""
    send_numbered(source, count)
    until(lambda: receiver.queue_stats().messages == count)
    batch = receiver.recv_batch(timeout=0)
    assert batch is not None
    return batch


def test_p1_async_for_gives_the_messages_that_callbacks_get() -> None:
    called: list[bytes] = []
    awaited: list[bytes] = []

    async def main() -> None:
        with pair(lambda message: called.append(bytes(message.data))) as (source, receiver):
            other = Receiver(receiver._ctx, "news")
            await other.await_ready(1, HANG)
            sent = send_numbered(source)
            async for message in other:
                awaited.append(bytes(message.data))
                if len(awaited) == COUNT:
                    break
            assert same(awaited, sent)
            until(lambda: len(called) == COUNT)
            assert same(called, sent)

    asyncio.run(main())


def test_p2_batches_hold_what_single_messages_do() -> None:
    singles: list[tuple[Any, ...]] = []

    def keep(message: Message) -> None:
        singles.append((bytes(message.data), message.topic, message.source, message.sequence_number, message.type))

    with pair(keep) as (source, receiver):
        other = Receiver(receiver._ctx, "news")
        other.wait_ready(1, HANG)
        send_numbered(source)
        batches = collect(other, COUNT)
        until(lambda: len(singles) == COUNT)
    rows = [
        (
            batch.data[record["offset"] : record["offset"] + record["length"]].tobytes(),
            batch.topics[record["topic"]],
            batch.sources[record["source"]],
            record["sequence_number"],
            record["type"],
        )
        for batch in batches
        for record in batch.records[batch.records["type"] == MessageType.DATA]
    ]
    assert same(rows, singles)
    numbers = np.concatenate([batch.decode(NUMBER)["number"] for batch in batches])
    assert (numbers == np.arange(COUNT)).all()


def test_p2_at_most_the_wanted_number_of_records_and_no_waiting_for_more() -> None:
    with pair() as (source, receiver):
        send_numbered(source, 1000)
        batches = collect(receiver, 1000, max_messages=64)
        assert max(len(batch) for batch in batches) <= 64
        assert receiver.recv_batch(timeout=0) is None
        begin = time.monotonic()
        assert receiver.recv_batch(timeout=0.05) is None
        assert time.monotonic() - begin >= 0.05
        empty = next(receiver.batches(timeout=0))
        assert not empty and len(empty) == len(empty.data) == len(empty.records) == 0 and payloads(empty) == []


def test_p3_slow_callback_loses_nothing_and_the_context_goes_on() -> None:
    """While the first of 25 messages is in the callback, the queue takes the others, and the context answers others."""
    got: list[int] = []
    quick: list[bytes] = []
    go_on = threading.Event()

    def slow(message: Message) -> None:
        assert go_on.wait(HANG)
        got.append(int.from_bytes(message.data, "little"))

    with pair(slow) as (source, receiver):
        other = Receiver(receiver._ctx, "quick")
        quick_source = Source(source._ctx, "quick")
        quick_source.wait_receivers(1, HANG)
        other.wait_ready(1, HANG)
        for number in range(25):
            source.send(number.to_bytes(4, "little"), flush=True)
            quick_source.send(b"x", flush=True)
        while len(quick) < 25:
            batch = other.recv_batch(timeout=HANG / 2)
            assert batch is not None, "the other receiver has to wait for the slow callback"
            quick += payloads(batch)
        until(lambda: receiver.queue_stats().messages == 25)
        assert got == []
        go_on.set()
        until(lambda: len(got) == 25)
        assert receiver.queue_stats().dropped == 0
    assert got == list(range(25))


def test_p3_full_queue_holds_up_tcp_and_loses_nothing() -> None:
    count = 200000
    with pair(queue_bytes=1 << 20) as (source, receiver):
        sender = threading.Thread(target=lambda: source.send_many(numbered(count), flush=True))
        sender.start()
        until(lambda: receiver.queue_stats().pauses > 0)
        assert receiver.queue_stats().queued_bytes < 3 << 20
        numbers = np.concatenate([batch.decode(NUMBER)["number"] for batch in collect(receiver, count)])
        sender.join()
        assert (numbers == np.arange(count)).all()
        stats = receiver.queue_stats()
        assert (stats.messages, stats.dropped) == (count, 0)


def test_p3_full_queue_of_datagrams_drops_the_newest_and_reports_it() -> None:
    """LBT-RM cannot be held up: what does not fit is dropped, counted, and stands in the batch as a loss."""
    count = 5000
    fast = {"um_profile": "low_latency", "transport_lbtrm_datagram_max_size": 1400}
    with loopback(fast) as sending, loopback(fast) as receiving:
        receiver = Receiver(receiving, "news", queue_bytes=100_000)
        source = Source(sending, "news", transport="lbtrm")
        source.send(b"first", flush=True)  # opens the session; may be gone before the receiver has joined it
        receiver.wait_ready(1, HANG)
        source.send(b"second", flush=True)
        while bytes(receiver.recv() or b"") != b"second":
            pass
        before = receiver.counts().delivered
        source.send_many(numbered(count), flush=True)
        until(lambda: receiver.counts().delivered == before + count)
        dropped = receiver.queue_stats().dropped
        assert dropped > 0 and receiver.queue_stats().pauses == 0
        batch = receiver.recv_batch(timeout=HANG)
        assert batch is not None
        kinds = batch.records["type"].tolist()
        assert sum(message.count for message in batch) == dropped == receiver.counts().lost
        assert MessageType.BURST_LOSS in kinds
        assert kinds.count(MessageType.DATA) + dropped == count
        source.send(b"again", flush=True)
        batch = receiver.recv_batch(timeout=HANG)
        assert batch is not None and payloads(batch) == [b"again"]


def test_p4_views_outlive_batch_receiver_and_context() -> None:
    for _ in range(20):
        with pair() as (source, receiver):
            batch = all_at_once(source, receiver, 500)
            sent = [row.tobytes() for row in numbered(500)]
            messages = list(batch.messages())
            first, last = messages[0].data, messages[-1].data
            column, numbers = batch.records["sequence_number"], batch.decode(NUMBER)
            data = batch.data[:64]
        del source, receiver, batch, messages
        gc.collect()
        junk = [bytearray(1 << 16) for _ in range(64)]  # what is freed would be written over
        assert bytes(first) == sent[0]
        assert bytes(last)[:8] == (int(numbers["number"][-1])).to_bytes(8, "little")
        assert data.tobytes() == sent[0]
        assert (np.diff(column[column > 0].astype(np.int64)) == 1).all()
        del junk


def test_p4_views_are_read_only() -> None:
    with pair() as (source, receiver):
        batch = all_at_once(source, receiver, 1)
        (message,) = batch.messages()
        writes: list[Callable[[], object]] = [
            lambda: message.data.__setitem__(0, 1),
            lambda: batch.data.__setitem__(0, 1),
            lambda: batch.records.__setitem__("type", 1),
        ]
        for writing in writes:
            with pytest.raises((TypeError, ValueError)):
                writing()


def test_p4_retained_message_gives_up_its_batch() -> None:
    import weakref

    with pair() as (source, receiver):
        batch = all_at_once(source, receiver, 10)
        sent = [row.tobytes() for row in numbered(10)]
        kept = [message.retain() for message in batch.messages()]
        before = (kept[3].topic, kept[3].source, kept[3].sequence_number, kept[3].type)
        gone = weakref.ref(batch.data)
        del batch
        gc.collect()
        assert gone() is None
        assert [bytes(message.data) for message in kept] == sent
        assert (kept[3].topic, kept[3].source, kept[3].sequence_number, kept[3].type) == before


def test_batch_memory_is_released() -> None:
    from um_cffi import object_counts

    with pair() as (source, receiver):
        gc.collect()  # what earlier tests kept
        before = object_counts().batches
        send_numbered(source, 1000)
        batches = collect(receiver, 1000, 100)
        assert object_counts().batches > before
        views = [batch.data for batch in batches]
        del batches
        gc.collect()
        assert object_counts().batches > before
        del views
        gc.collect()
        assert object_counts().batches == before


def test_events_and_losses_go_to_on_event() -> None:
    events: list[ReceiverEvent] = []
    with loopback() as sending, loopback() as receiving:
        receiver = Receiver(receiving, "news", lambda message: None, events.append)
        with Source(sending, "news") as source:
            source.wait_receivers(1, HANG)
            receiver.wait_ready(1, HANG)
        until(lambda: len(events) == 2)
    assert [event.type for event in events] == [MessageType.BEGIN_OF_SESSION, MessageType.END_OF_SESSION]
    assert events[0].topic == "news" and events[0].source.startswith("TCP:127.0.0.1:")


def test_events_are_records_of_batches_and_messages_are_not_confused_with_them() -> None:
    events: list[ReceiverEvent] = []
    with loopback() as sending, loopback() as receiving:
        receiver = Receiver(receiving, "news", None, events.append)
        with Source(sending, "news") as source:
            source.wait_receivers(1, HANG)
            receiver.wait_ready(1, HANG)
            source.send(b"12345678", flush=True)
            batches = collect(receiver, 1)
        while batches[-1].records["type"][-1] != MessageType.END_OF_SESSION:
            batch = receiver.recv_batch(timeout=HANG)
            assert batch is not None
            batches.append(batch)
        kinds = [message.type for batch in batches for message in batch]
        assert kinds == [MessageType.BEGIN_OF_SESSION, MessageType.DATA, MessageType.END_OF_SESSION]
        assert [event.type for event in events] == [kinds[0], kinds[2]]
        assert [data for batch in batches for data in payloads(batch)] == [b"12345678"]
        assert [int(x) for batch in batches for x in batch.decode("<u8")] == [int.from_bytes(b"12345678", "little")]


def test_async_for_can_be_left_cancelled_and_taken_up_again() -> None:
    async def main() -> None:
        with pair() as (source, receiver):
            sent = send_numbered(source, 3000)
            got: list[bytes] = []

            async def some(number: int) -> None:
                async for message in receiver:
                    got.append(bytes(message.data))
                    if len(got) == number:
                        return

            await some(10)
            await some(1500)
            await some(3000)
            waiting = asyncio.ensure_future(some(3001))
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(some(3001), 0.05)
            source.send(b"last", flush=True)
            await some(3001)
            assert got == [*sent, b"last"]
            assert await receiver.arecv_batch(timeout=0.01) is None

    asyncio.run(main())


def test_async_for_ends_when_the_receiver_is_closed() -> None:
    async def main() -> None:
        with pair() as (_, receiver):

            async def read() -> int:
                return len([message async for message in receiver])

            reading = asyncio.ensure_future(read())
            await asyncio.sleep(0.05)
            receiver.close()
            assert await asyncio.wait_for(reading, HANG) == 0
            with pytest.raises(InvalidArgument, match="closed"):
                await read()

    asyncio.run(main())


def test_async_for_lets_other_tasks_run() -> None:
    async def main() -> None:
        with pair() as (source, receiver):
            send_numbered(source, 50000)
            turns = 0
            going = True

            async def other() -> None:
                nonlocal turns
                while going:
                    turns += 1
                    await asyncio.sleep(0)

            task = asyncio.ensure_future(other())
            got = 0
            async for _ in receiver:
                got += 1
                if got == 50000:
                    break
            going = False
            await task
            assert turns >= 20  # at least every 1024 messages, whether they came one by one or all at once

    asyncio.run(main())


def test_closing_ends_a_wait_in_another_thread() -> None:
    with pair() as (_, receiver):
        collect(receiver, 0)

        def read() -> None:
            with contextlib.suppress(InvalidArgument):  # closed before it begins to wait
                list(receiver.batches())

        thread = threading.Thread(target=read)
        thread.start()
        time.sleep(0.05)
        receiver.close()
        thread.join(HANG)
        assert not thread.is_alive()


def test_wildcard_receiver_names_topics() -> None:
    with loopback() as sending, loopback() as receiving, WildcardReceiver(receiving, "^Market/") as receiver:
        sources = [Source(sending, f"Market/{name}") for name in "ABC"]
        other = Source(sending, "Weather")
        receiver.wait_ready(3, HANG)
        for source in [*sources, other]:
            source.send(source.topic.encode(), flush=True)
        got: dict[str, bytes] = {}
        while len(got) < 3:
            batch = receiver.recv_batch(timeout=HANG)
            assert batch is not None
            got.update({message.topic: bytes(message.data) for message in batch.messages()})
        assert got == {f"Market/{name}": f"Market/{name}".encode() for name in "ABC"}


def test_event_queue_runs_callbacks_where_it_is_dispatched() -> None:
    threads: set[int] = set()
    with (
        EventQueue() as queue,
        pair(lambda message: threads.add(threading.get_ident()), None, queue) as (source, _),
    ):
        send_numbered(source, 100)
        until(lambda: queue.size() > 100)  # and the beginning of the session
        assert not threads
        done = 0
        while done < 101:
            done += queue.dispatch(0.2)
        assert threads == {threading.get_ident()}
        with pytest.raises(InvalidOperation, match="in use"):
            queue.close()
        thread = threading.Thread(target=queue.dispatch)
        thread.start()
        queue.unblock()
        thread.join(HANG)
        assert not thread.is_alive()


def test_event_queue_goes_on_after_an_interrupt_in_a_callback() -> None:
    got: list[int] = []

    def on_message(message: Message) -> None:
        got.append(int.from_bytes(message.data[:8], "little"))
        if got[-1] == 5:
            raise KeyboardInterrupt

    with EventQueue() as queue, pair(on_message, None, queue) as (source, _):
        send_numbered(source, 10)
        until(lambda: queue.size() > 10)
        with pytest.raises(KeyboardInterrupt):
            while True:
                queue.dispatch(1)
        while len(got) < 10:
            queue.dispatch(0.1)
    assert got == list(range(10))


def test_event_queue_warns() -> None:
    warnings: list[str] = []
    with EventQueue(warnings.append, queue_size_warning=10) as queue:
        with pair(lambda message: None, None, queue) as (source, _):
            send_numbered(source, 20000)
            until(lambda: queue.size() > 20000)
            queue.dispatch(0)
        assert warnings and "queue_size_warning 10" in warnings[0]


def test_callbacks_may_create_and_close_everything() -> None:
    done = threading.Event()

    def on_message(message: Message) -> None:
        with Source(source._ctx, "inner") as inner:
            inner.send(b"x")
        with loopback():
            pass
        receiver.close()
        done.set()

    with pair(on_message) as (source, receiver):
        source.send(b"x", flush=True)
        assert done.wait(HANG)
        assert receiver.closed


def test_receiver_with_callback_refuses_to_be_read() -> None:
    with loopback() as ctx, Receiver(ctx, "news", lambda message: None) as receiver:
        with pytest.raises(InvalidOperation, match="callback"):
            receiver.recv_batch(timeout=0)
        with pytest.raises(InvalidOperation, match="callback"):
            asyncio.run(receiver.arecv_batch())
    with loopback() as ctx, pytest.raises(InvalidArgument, match="on_message"), EventQueue() as queue:
        Receiver(ctx, "news", queue=queue)


def test_decode_names_the_message_that_does_not_fit() -> None:
    with pair() as (source, receiver):
        source.send(b"12345678")
        source.send(b"123", flush=True)
        until(lambda: receiver.queue_stats().messages == 2)
        batch = receiver.recv_batch()
        assert batch is not None
        with pytest.raises(InvalidArgument, match=r"message 1 of 2 .* has 3 bytes: the dtype needs 8"):
            batch.decode("<u8")


def test_arrow_without_a_copy() -> None:
    pa = pytest.importorskip("pyarrow")
    with pair() as (source, receiver):
        sent = [b"x" * (number % 40) for number in range(1000)]
        source.send_many(sent, flush=True)
        for batch in collect(receiver, 1000):
            table = batch.to_arrow()
            column = table.column("payload")
            where = batch.data.__array_interface__["data"][0]
            assert where <= column.buffers()[2].address < where + max(1, len(batch.data))
            types = table.column("type").to_pylist()
            got = [value for value, kind in zip(column.to_pylist(), types) if kind == MessageType.DATA]
            assert got == payloads(batch)
            assert set(table.column("topic").to_pylist()) == {"news"}
            assert table.schema.field("timestamp").type == pa.timestamp("ns", "UTC")
            del batch
            gc.collect()
            assert len(column.to_pylist()) == table.num_rows


def test_no_message_is_lost_between_the_ways(tmp_path: object) -> None:
    """One receiver read in turn by every way of taking."""

    async def main() -> None:
        with pair() as (source, receiver):
            sent = send_numbered(source, 3000)
            got: list[bytes] = []
            while len(got) < 1000:
                batch = receiver.recv_batch(max_messages=100, timeout=HANG)
                assert batch is not None
                got += payloads(batch)
            while len(got) < 2000:
                batch = await receiver.arecv_batch(max_messages=100, timeout=HANG)
                assert batch is not None
                got += payloads(batch)
            async for message in receiver:
                got.append(bytes(message.data))
                if len(got) == 3000:
                    break
            assert same(got, sent)

    asyncio.run(main())


def test_many_receivers_share_the_callback_thread() -> None:
    got: dict[str, list[bytes]] = {}

    def keep(message: Message) -> None:
        got.setdefault(message.topic, []).append(bytes(message.data))

    with loopback() as sending, loopback() as receiving:
        topics = [f"topic {number}" for number in range(50)]
        receivers = [Receiver(receiving, topic, keep) for topic in topics]
        sources = [Source(sending, topic) for topic in topics]
        for source, receiver in zip(sources, receivers):
            source.wait_receivers(1, HANG)
            receiver.wait_ready(1, HANG)
        for number in range(20):
            for source in sources:
                source.send(b"%d" % number)
        sending.flush()
        until(lambda: sum(map(len, got.values())) == 1000)
        assert all(got[topic] == [b"%d" % number for number in range(20)] for topic in topics)
        assert sum(thread.name.startswith("um_cffi context") for thread in threading.enumerate()) == 1


def test_context_argument_is_checked() -> None:
    ctx = loopback()
    ctx.close()
    with pytest.raises(InvalidArgument, match="context is closed"):
        Receiver(ctx, "news")
    with pytest.raises(InvalidArgument, match="context is closed"):
        Receiver(ctx, "news", lambda message: None)
    assert isinstance(ctx, Context)
