"""One message at a time, readiness for other event loops, coroutine callbacks, and what wildcard receivers can do."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import select
import selectors
import signal
import threading
import time
from typing import Any

import pytest
from pairs import HANG, loopback, numbered, pair, payloads, run_python, same, until

from um_cffi import (
    Context,
    EventQueue,
    InvalidArgument,
    InvalidOperation,
    Message,
    MessageType,
    Receiver,
    ReceiverEvent,
    Source,
    TimedOut,
    WildcardReceiver,
)

COUNT = 5000


def send_numbered(source: Source, count: int = COUNT) -> list[bytes]:
    rows = numbered(count)
    assert source.send_many(rows, flush=True) == count
    return [row.tobytes() for row in rows]


def take(receiver: Receiver | WildcardReceiver) -> bytes:
    message = receiver.recv(HANG)
    assert message is not None
    return bytes(message)


# ---- recv() ----


def test_recv_gives_every_message_in_order_and_none_when_the_time_is_over() -> None:
    with pair() as (source, receiver):
        assert receiver.recv(0) is None
        begin = time.monotonic()
        assert receiver.recv(timeout=0.05) is None
        assert time.monotonic() - begin >= 0.05
        sent = send_numbered(source)
        assert same([take(receiver) for _ in range(COUNT)], sent)
        assert receiver.recv(0) is None


def test_recv_leaves_events_to_on_event_in_their_turn() -> None:
    seen: list[object] = []
    with loopback() as sending, loopback() as receiving:
        receiver = Receiver(receiving, "news", None, lambda event: seen.append(event.type))
        with Source(sending, "news") as source:
            source.wait_receivers(1, HANG)
            receiver.wait_ready(1, HANG)
            source.send(b"one", flush=True)
            seen.append(take(receiver))

        def ended() -> bool:
            assert receiver.recv(0.01) is None
            return len(seen) == 3

        until(ended)
    assert seen == [MessageType.BEGIN_OF_SESSION, b"one", MessageType.END_OF_SESSION]


def test_recv_of_a_closed_receiver_raises_also_when_it_is_closed_while_waiting() -> None:
    raised: list[BaseException] = []
    with pair() as (source, receiver):
        source.send_many([b"1", b"2"], flush=True)
        assert take(receiver) == b"1"
        receiver.close()
        with pytest.raises(InvalidArgument, match="receiver of news is closed"):
            receiver.recv(0)
        other = Receiver(receiver.context, "news")

        def wait() -> None:
            try:
                other.recv()
            except InvalidArgument as error:
                raised.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.05)
        other.close()
        thread.join(HANG)
        assert not thread.is_alive()
    assert len(raised) == 1 and "is closed" in str(raised[0])


def read_all(receiver: Receiver, into: list[bytes] | None = None) -> None:
    """Until the receiver is closed, which it may be before the thread that calls this begins."""
    with contextlib.suppress(InvalidArgument):
        for message in receiver:
            if into is not None:
                into.append(bytes(message))


def test_closing_does_not_wait_for_a_thread_that_receives_without_end() -> None:
    """Who waits is sent away; who takes all the time leaves others their turn."""
    for _ in range(20):
        with pair() as (_, receiver):
            threads = [threading.Thread(target=read_all, args=(receiver,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            receiver.close()
            for thread in threads:
                thread.join(HANG)
                assert not thread.is_alive()


def test_threads_share_the_messages() -> None:
    got: list[bytes] = []
    with pair() as (source, receiver):
        threads = [threading.Thread(target=read_all, args=(receiver, got)) for _ in range(4)]
        for thread in threads:
            thread.start()
        sent = send_numbered(source)
        until(lambda: len(got) == COUNT)
        receiver.close()
        for thread in threads:
            thread.join(HANG)
    assert same(sorted(got), sorted(sent))


def test_wrong_timeout_is_named() -> None:
    with pair() as (_, receiver), pytest.raises(InvalidArgument, match="timeout -1: must be None or a number of"):
        receiver.recv(-1)


def test_signals_are_handled_while_recv_waits() -> None:
    class Alarm(Exception):
        pass

    def ring(number: int, frame: Any) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with pair() as (source, receiver):
            with pytest.raises(Alarm):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                receiver.recv()
            source.send(b"after", flush=True)
            assert take(receiver) == b"after"
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_child_of_fork_gets_nothing_of_its_parent() -> None:
    with pair() as (source, receiver):
        source.send_many([b"1", b"2", b"3"], flush=True)
        assert take(receiver) == b"1"  # the others are pending
        child = os.fork()
        if child == 0:
            try:
                receiver.recv(0)
            except InvalidArgument as error:
                os._exit(0 if "before fork" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert [take(receiver), take(receiver)] == [b"2", b"3"]


# ---- for ----


def test_for_gives_every_message_can_be_left_and_ends_when_closed() -> None:
    with pair() as (source, receiver):
        sent = send_numbered(source)
        got: list[bytes] = []
        for message in receiver:
            got.append(bytes(message))
            if len(got) == 10:
                break
        got.append(take(receiver))
        for message in receiver:
            got.append(bytes(message))
            if len(got) == COUNT:
                receiver.close()
        assert same(got, sent)
        with pytest.raises(InvalidArgument, match="closed"):
            iter(receiver)


def test_ways_to_take_may_be_mixed() -> None:
    with pair() as (source, receiver):
        sent = send_numbered(source, 100)
        until(lambda: receiver.queue_stats().messages == 100)
        got = [take(receiver)]
        batch = receiver.recv_batch(max_messages=10)
        assert batch is not None and len(batch) == 10 and len(batch.data) == 640
        got += payloads(batch)
        kept = [message.retain() for message in batch.messages()]
        got.append(bytes(next(iter(receiver))))
        batch = receiver.recv_batch()
        assert batch is not None
        assert batch.decode("V64").tobytes() == b"".join(sent[12:])
        got += payloads(batch)
        assert same(got, sent)
        assert [bytes(message) for message in kept] == sent[1:11]


def test_batches_are_empty_at_each_timeout_and_end_when_closed() -> None:
    with pair() as (source, receiver):
        empty = got = 0
        for batch in receiver.batches(timeout=0.02, events=False):
            if batch:
                got += len(payloads(batch))
                receiver.close()
                continue
            assert len(batch) == 0 and list(batch) == [] and len(batch.decode("<u8")) == 0
            empty += 1
            if empty == 3:
                source.send(b"12345678", flush=True)
        assert empty >= 3 and got == 1


@pytest.mark.parametrize("as_keyword", [True, False])
def test_batches_without_events_are_runs_of_messages_and_on_event_has_the_events(as_keyword: bool) -> None:
    seen: list[object] = []
    with loopback() as sending, loopback() as receiving:
        made: Any = {} if as_keyword else {"events": False}
        asked: Any = {"events": False} if as_keyword else {}
        receiver = Receiver(receiving, "news", None, lambda event: seen.append(event.type), **made)
        for number in range(2):
            with Source(sending, "news") as source:
                source.wait_receivers(1, HANG)
                until(lambda: receiver.ready() == 1)
                source.send(b"%08d" % number, flush=True)
                batch = receiver.recv_batch(timeout=HANG, **asked)
                assert batch is not None
                assert batch.records["type"].tolist() == [MessageType.DATA]
                assert batch.data.tobytes() == b"%08d" % number
                seen.append(number)
            until(lambda: receiver.recv_batch(timeout=0, **asked) is None and len(seen) % 3 == 0)
    begin, end = MessageType.BEGIN_OF_SESSION, MessageType.END_OF_SESSION
    assert seen == [begin, 0, end, begin, 1, end]


def test_numbers_of_batch_calls_go_by_keyword() -> None:
    with pair() as (_, receiver):
        calls: list[Any] = [receiver.recv_batch, receiver.batches, receiver.arecv_batch]
        for call in calls:
            with pytest.raises(TypeError, match="positional"):
                call(10)
        with pytest.raises(InvalidArgument, match="max_messages 0: must be None, or 1 or more"):
            receiver.recv_batch(max_messages=0)


# ---- fileno() ----


def readable(receiver: Receiver) -> bool:
    return bool(select.select([receiver], [], [], 0)[0])


def test_descriptor_is_readable_exactly_while_recv_need_not_wait() -> None:
    with pair() as (source, receiver):
        until(lambda: readable(receiver))  # the beginning of the session
        assert receiver.recv(0) is None and not readable(receiver)
        source.send_many([b"%d" % number for number in range(5)], flush=True)
        assert select.select([receiver], [], [], HANG)[0]
        until(lambda: receiver.queue_stats().messages == 5)
        for number in range(5):
            assert readable(receiver)  # also when the library's queue is empty and the rest is pending here
            assert take(receiver) == b"%d" % number
        assert not readable(receiver) and receiver.recv(0) is None


def test_descriptor_asked_for_late_knows_what_is_pending() -> None:
    with pair() as (source, receiver):
        source.send_many([b"1", b"2"], flush=True)
        until(lambda: receiver.queue_stats().messages == 2)
        assert take(receiver) == b"1"
        assert readable(receiver)
        batch = receiver.recv_batch()
        assert batch is not None and payloads(batch) == [b"2"]
        assert not readable(receiver)


def test_descriptor_serves_a_selector() -> None:
    with pair() as (source, receiver), selectors.DefaultSelector() as selector:
        selector.register(receiver, selectors.EVENT_READ, "news")
        sent = send_numbered(source)
        got: list[bytes] = []
        while len(got) < COUNT:
            assert selector.select(HANG)
            message = receiver.recv(0)
            if message is not None:  # the beginning of the session was there first
                got.append(bytes(message))
        assert same(got, sent)
        assert not selector.select(0)
        selector.unregister(receiver)
        receiver.close()
        with pytest.raises(InvalidArgument, match="closed"):
            receiver.fileno()


def test_descriptor_serves_asyncio_beside_recv() -> None:
    async def main() -> None:
        with pair() as (source, receiver):
            loop, done = asyncio.get_running_loop(), asyncio.Event()
            got: list[bytes] = []

            def on_readable() -> None:
                message = receiver.recv(0)
                if message is not None:
                    got.append(bytes(message))
                if len(got) == COUNT:
                    done.set()

            loop.add_reader(receiver, on_readable)
            sent = send_numbered(source)
            await asyncio.wait_for(done.wait(), HANG)
            loop.remove_reader(receiver)
            assert same(got, sent)

    asyncio.run(main())


# ---- callbacks that are coroutines, or nothing that can be called ----


def test_the_next_receiver_is_awaited_though_one_was_closed_while_it_was_waited_for() -> None:
    """The event loop lets go of the one closed when it comes to it: not of the other, which has its descriptor now."""

    async def following(receiver: Receiver) -> bytes | None:
        async for message in receiver:
            return bytes(message)
        return None

    async def main() -> None:
        with pair() as (source, receiver), loopback() as ctx:
            while receiver.recv_batch(timeout=0) is not None:
                pass
            first = Receiver(ctx, "nothing")
            waiting = asyncio.ensure_future(following(first))
            while not first._waiters:
                await asyncio.sleep(0)
            running = asyncio.get_running_loop()
            running.call_soon(lambda: running.call_later(0, source.send, b"here", True))
            first.close()
            assert await following(receiver) == b"here"  # at once: the event loop has had no turn
            assert await waiting is None

    asyncio.run(asyncio.wait_for(main(), HANG))


def test_coroutine_callbacks_are_awaited_one_after_the_other_on_the_event_loop() -> None:
    got: list[bytes] = []
    events: list[object] = []
    inside = 0

    async def on_message(message: Message) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        await asyncio.sleep(0)
        got.append(bytes(message))
        inside -= 1

    async def on_event(event: ReceiverEvent) -> None:
        await asyncio.sleep(0)
        events.append(event.type)

    async def main() -> None:
        with loopback() as sending:
            async with loopback() as receiving, Receiver(receiving, "news", on_message, on_event) as receiver:
                assert set(threading.enumerate()) <= before
                with Source(sending, "news") as source:
                    await source.await_receivers(1, HANG)
                    await receiver.await_ready(1, HANG)
                    sent = send_numbered(source, 1000)
                    while len(got) < 1000:
                        await asyncio.sleep(0.005)
                    assert same(got, sent)
                while len(events) < 2:
                    await asyncio.sleep(0.005)
                with pytest.raises(InvalidOperation, match="on_message"):
                    receiver.recv(0)
            assert receiver.closed

    before = set(threading.enumerate())
    asyncio.run(main())
    assert events == [MessageType.BEGIN_OF_SESSION, MessageType.END_OF_SESSION]


def test_error_of_a_coroutine_callback_is_raised_by_close_and_the_others_go_on() -> None:
    got: list[bytes] = []

    async def on_message(message: Message) -> None:
        await asyncio.sleep(0)
        got.append(bytes(message))
        if len(got) == 1:
            raise KeyError("first")

    async def main() -> None:
        with pair(on_message) as (source, receiver):
            source.send_many([b"1", b"2"], flush=True)
            while len(got) < 2:
                await asyncio.sleep(0.005)
            with pytest.raises(KeyError, match="first"):
                await receiver.aclose()

    asyncio.run(main())


def test_aclose_waits_for_the_coroutine_that_is_running() -> None:
    order: list[str] = []

    async def main() -> None:
        started = asyncio.Event()

        async def on_message(message: Message) -> None:
            started.set()
            await asyncio.sleep(0.1)
            order.append("callback")

        with pair(on_message) as (source, receiver):
            source.send_many([b"1", b"2"], flush=True)
            await started.wait()
            await receiver.aclose()
            order.append("closed")
            await asyncio.sleep(0.15)
        assert order == ["callback", "closed"]

    asyncio.run(main())


def test_coroutine_on_event_goes_with_async_ways_only() -> None:
    events: list[object] = []

    async def on_event(event: ReceiverEvent) -> None:
        await asyncio.sleep(0)
        events.append(event.type)

    async def main() -> None:
        with pair(None, on_event) as (source, receiver):
            for call in (receiver.recv, receiver.recv_batch, receiver.__iter__):
                with pytest.raises(InvalidOperation, match="on_event is a coroutine function, which this call cannot"):
                    call()
            source.send(b"1", flush=True)
            async for message in receiver:
                assert bytes(message) == b"1"
                break
        assert events == [MessageType.BEGIN_OF_SESSION]

    asyncio.run(main())


async def awaited(message: object) -> None: ...


class AwaitedObject:
    async def __call__(self, message: object) -> None: ...


@pytest.mark.parametrize("call", [awaited, functools.partial(awaited), AwaitedObject()])
def test_coroutine_callbacks_are_refused_where_nobody_awaits_them(call: Any) -> None:
    def plain(message: object) -> None: ...

    with loopback() as ctx, EventQueue() as queue:
        with pytest.raises(
            InvalidArgument, match=r"receiver of x: on_message is a coroutine function, but no event loop"
        ):
            Receiver(ctx, "x", call)
        with pytest.raises(
            InvalidArgument, match=r"wildcard receiver of x: on_event is a coroutine function, but no ev"
        ):
            WildcardReceiver(ctx, "x", None, call)

        async def main() -> None:
            with pytest.raises(InvalidArgument, match="callbacks of an EventQueue"):
                Receiver(ctx, "x", call, queue=queue)
            with pytest.raises(InvalidArgument, match="library's thread"):
                Receiver(ctx, "x", call, direct=True)
            with pytest.raises(InvalidArgument, match="on_event is a coroutine function, but on_message is a plain"):
                Receiver(ctx, "x", plain, call)

        asyncio.run(main())
        with pytest.raises(InvalidArgument, match=r"source of x: on_event .* coroutine function"):
            Source(ctx, "x", call)
        for timer in (ctx.call_later, ctx.call_every, queue.call_later):
            with pytest.raises(InvalidArgument, match="coroutine function"):
                timer(1, call)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (7, "7, which cannot be called: give a function"),
        ("handler", "'handler', which cannot be called"),
        (lambda: None, r"cannot be called with 1 argument, as it will be \(too many positional"),
        (lambda a, b: None, r"cannot be called with 1 argument, as it will be \(missing a required"),
        (lambda message: (yield), "generator function"),
    ],
)
def test_what_cannot_be_called_is_refused_at_creation(call: Any, why: str) -> None:
    with loopback() as ctx:
        with pytest.raises(InvalidArgument, match=f"receiver of x: on_message .*{why}"):
            Receiver(ctx, "x", call)
        with pytest.raises(InvalidArgument, match=f"receiver of x: on_event .*{why}"):
            Receiver(ctx, "x", None, call)
        with pytest.raises(InvalidArgument, match=f"source of x: on_event .*{why}"):
            Source(ctx, "x", call)
        kept: list[Message] = []
        usual: list[Any] = [print, kept.append, lambda *all: None, lambda message, more=1: None]
        for each in (*usual, functools.partial(print, 1)):
            Receiver(ctx, "x", each).close()


# ---- wildcard receivers ----


def test_wildcard_receiver_has_everything_a_receiver_has() -> None:
    public = {name for name in dir(Receiver) if not name.startswith("_")} - {"topic"}
    assert public <= set(dir(WildcardReceiver))
    with loopback() as sending, loopback() as receiving, WildcardReceiver(receiving, "^Market/") as receiver:
        assert receiver.ready() == 0 and receiver.stats() == []
        with pytest.raises(TimedOut, match=r"0 of 1 sources"):
            receiver.wait_ready(1, 0.05)
        sources = [Source(sending, f"Market/{name}") for name in "ABC"]
        Source(sending, "Weather")
        other = Receiver(receiving, "Weather")
        receiver.wait_ready(3, HANG)
        other.wait_ready(1, HANG)
        assert receiver.ready() == 3
        sessions = receiver.stats()
        assert 1 <= len(sessions) <= 3 and {each.transport.name for each in sessions} == {"TCP"}
        for source in sources:
            source.send(source.topic.encode(), flush=True)
        assert {take(receiver) for _ in range(3)} == {b"Market/A", b"Market/B", b"Market/C"}
        assert receiver.recv(0) is None and not select.select([receiver], [], [], 0)[0]
        with pytest.raises(InvalidArgument, match="pattern_type"):
            receiver.setopt("pattern_type", "pcre")
        asyncio.run(receiver.await_ready(3, HANG))
        sources[0].close()
        until(lambda: receiver.ready() == 2)


def test_readme_example_of_recv_ends_with_the_program() -> None:
    """A daemon thread in recv() does not keep the interpreter from ending."""
    run_python(
        "import threading, time\n"
        "from pairs import loopback\n"
        "from um_cffi import Receiver\n"
        "receiver = Receiver(loopback(), 'x')\n"
        "threading.Thread(target=receiver.recv, daemon=True).start()\n"
        "time.sleep(0.1)\n"
    )


def test_context_closes_receivers_that_wait() -> None:
    ctx = Context({"default_interface": "127.0.0.1", "request_tcp_port_low": 0, "request_tcp_port_high": 0})
    receiver = Receiver(ctx, "x")
    thread = threading.Thread(target=read_all, args=(receiver,))
    thread.start()
    ctx.close()
    thread.join(HANG)
    assert not thread.is_alive()


# ---- on_full ----


def fill(source: Source, receiver: Receiver, count: int) -> None:
    """Send numbered messages, none of which is taken meanwhile."""
    assert source.send_many(numbered(count), flush=True) == count
    until(lambda: receiver.counts().delivered == count)


def number_of(message: Message) -> int:
    return int.from_bytes(bytes(message)[:8], "little")


def take_all(receiver: Receiver, events: list[ReceiverEvent]) -> list[int]:
    got: list[int] = []
    while (message := receiver.recv(0)) is not None:
        got.append(number_of(message))
    events[:] = [event for event in events if event.type != MessageType.BEGIN_OF_SESSION]
    return got


@pytest.mark.parametrize("on_full", ["drop_newest", "drop_oldest"])
def test_full_queue_over_tcp_drops_and_tells_how_many(on_full: Any) -> None:
    events: list[ReceiverEvent] = []
    with pair(None, events.append, queue_bytes=100_000, on_full=on_full) as (source, receiver):
        fill(source, receiver, COUNT)
        stats = receiver.queue_stats()
        assert stats.dropped > 0 and stats.pauses == stats.conflated == 0 and stats.queued_bytes < 100_100
        assert receiver.counts().lost == stats.dropped
        kept = COUNT - stats.dropped
        got = take_all(receiver, events)
        assert same(got, list(range(kept) if on_full == "drop_newest" else range(COUNT - kept, COUNT)))
        (event,) = events
        assert (event.type, event.topic, event.text) == (MessageType.BURST_LOSS, "news", "")
        assert event.count == stats.dropped
        assert event.sequence_number == (kept if on_full == "drop_newest" else 0)
        assert source.send_many([b"again"], flush=True) == 1
        assert take(receiver) == b"again"


@pytest.mark.parametrize("on_full", ["drop_newest", "drop_oldest"])
def test_counts_of_one_source_have_what_the_full_queue_dropped_of_it(on_full: Any) -> None:
    with (
        loopback() as ours,
        loopback() as theirs,
        loopback() as receiving,
        Receiver(receiving, "news", queue_bytes=100_000, on_full=on_full) as receiver,
    ):
        few, many = Source(ours, "news"), Source(theirs, "news")
        receiver.wait_ready(2, HANG)
        few.send(b"first", flush=True)
        first = receiver.recv(HANG)
        assert first is not None
        assert many.send_many(numbered(COUNT), flush=True) == COUNT
        until(lambda: receiver.counts().delivered == COUNT + 1)
        batch = receiver.recv_batch(timeout=HANG)
        assert batch is not None
        (other,) = set(batch.sources) - {first.source}
        dropped = receiver.queue_stats().dropped
        assert receiver.counts(other).lost == receiver.counts().lost == dropped > 0
        assert receiver.counts(first.source).lost == 0


def test_conflate_gives_the_newest_of_each_topic_and_nothing_is_lost() -> None:
    topics, rounds = 200, 20
    with (
        loopback() as sending,
        loopback() as receiving,
        WildcardReceiver(receiving, "^Price/", on_full="conflate", events=False) as receiver,
    ):
        sources = [Source(sending, f"Price/{number}") for number in range(topics)]
        receiver.wait_ready(topics, HANG)
        for value in range(rounds):
            for source in sources:
                source.send(value.to_bytes(8, "little"))
        for source in sources:
            source.send(rounds.to_bytes(8, "little"), flush=True)
        until(lambda: receiver.counts().delivered == topics * (rounds + 1))
        stats = receiver.queue_stats()
        assert stats.conflated == topics * rounds and stats.dropped == receiver.counts().lost == 0
        first = receiver.recv(HANG)
        assert first is not None and number_of(first) == rounds
        assert source.topic == f"Price/{topics - 1}"
        source.send((rounds + 1).to_bytes(8, "little"), flush=True)  # replaces what waits, although others were taken
        until(lambda: receiver.queue_stats().conflated == topics * rounds + 1)
        newest = {first.topic: number_of(first)}
        while (batch := receiver.recv_batch(timeout=0)) is not None:
            newest.update({message.topic: number_of(message) for message in batch.messages()})
        assert newest == {each.topic: rounds + (each is source) for each in sources}


def test_conflate_is_newest_for_callbacks_too() -> None:
    got: list[int] = []
    entered, leave = threading.Event(), threading.Event()

    def on_message(message: Message) -> None:
        got.append(number_of(message))
        entered.set()
        leave.wait(HANG)

    with pair(on_message, on_full="conflate") as (source, receiver):
        source.send_many(numbered(1), flush=True)
        assert entered.wait(HANG)
        source.send_many(numbered(COUNT), flush=True)
        until(lambda: receiver.queue_stats().messages == COUNT + 1)
        leave.set()
        until(lambda: len(got) == 2 and receiver.queue_stats().queued_messages == 0)
    assert got == [0, COUNT - 1]


def test_conflate_keeps_memory_flat() -> None:
    with pair(on_full="conflate") as (source, receiver):
        fill(source, receiver, COUNT)
        stats = receiver.queue_stats()
        assert stats.queued_messages <= 2 and stats.queued_bytes < 1000
        assert stats.conflated == COUNT - 1


def test_wrong_on_full_is_named() -> None:
    wrong: Any = "drop"
    with loopback() as ctx:
        with pytest.raises(InvalidArgument, match="receiver of x: on_full 'drop': must be 'pause' or 'drop_newest' or"):
            Receiver(ctx, "x", on_full=wrong)
        with pytest.raises(InvalidArgument, match="direct callbacks have no queue"):
            Receiver(ctx, "x", print, direct=True, on_full="conflate")


def test_top_and_sub_count_every_message_of_a_burst(capsys: pytest.CaptureFixture[str]) -> None:
    import argparse

    from um_cffi.commands._top import Watch
    from um_cffi.commands.sub import _Printer

    printer = _Printer(argparse.Namespace(count=None, events=False, format="text", verbose=False, pdm=False))
    with pair(None, printer.event, queue_bytes=100_000, on_full="drop_oldest") as (source, receiver):
        fill(source, receiver, COUNT)
        dropped, watch = receiver.queue_stats().dropped, Watch()
        watch.naks.close()
        while (batch := receiver.recv_batch(timeout=0)) is not None:
            watch.add(batch)
        (flow,) = watch.flows.values()
        assert flow.lost == printer.lost == dropped and flow.messages == COUNT - dropped
    assert f"um sub: lost {dropped} messages from 0 of news" in capsys.readouterr().err
