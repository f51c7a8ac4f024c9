"""Contexts, sources, timers, descriptors, logging and statistics as objects."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import socket
import threading
import time

import pytest
from pairs import HANG, loopback, pair, until

import um_cffi
from um_cffi import (
    Context,
    EventQueue,
    InvalidArgument,
    NotSupported,
    Receiver,
    Source,
    SourceEvent,
    SourceEventType,
    TimedOut,
    Transport,
    logs,
)


def test_l1_messages_sent_once_ready_all_arrive() -> None:
    """No sleep anywhere: what is sent after the wait returns is received, however the wait is made."""

    async def main() -> None:
        for number in range(10):
            with loopback() as sending, loopback() as receiving:
                receiver = Receiver(receiving, "news")
                source = Source(sending, "news")
                if number % 2:
                    await source.await_receivers(1, HANG)
                else:
                    source.wait_receivers(1, HANG)
                source.send_many([b"%d" % n for n in range(100)], flush=True)
                await receiver.await_ready(1, HANG)
                got: list[bytes] = []
                async for message in receiver:
                    got.append(bytes(message.data))
                    if len(got) == 100:
                        break
                assert got == [b"%d" % n for n in range(100)]
                assert source.receivers() == 1 and receiver.ready() == 1

    asyncio.run(main())


def test_l1_waiting_in_vain_tells_what_is_missing() -> None:
    with loopback() as ctx, Source(ctx, "news") as source, Receiver(ctx, "other") as receiver:
        begin = time.monotonic()
        with pytest.raises(TimedOut, match=r"source of news: 0 of 2 receivers connected after 0\.25 s"):
            source.wait_receivers(2, 0.25)
        assert time.monotonic() - begin >= 0.25
        with pytest.raises(TimeoutError, match="receiver of other: sessions of 0 of 1 sources"):
            receiver.wait_ready(1, 0)
        with pytest.raises(TimedOut):
            asyncio.run(source.await_receivers(1, 0.02))
        with pytest.raises(InvalidArgument, match="timeout -1"):
            source.wait_receivers(1, -1)


def test_source_events() -> None:
    events: list[SourceEvent] = []
    threads: set[str] = set()

    def on_event(event: SourceEvent) -> None:
        events.append(event)
        threads.add(threading.current_thread().name)

    with loopback() as sending:
        source = Source(sending, "news", on_event)
        with loopback() as receiving, Receiver(receiving, "news"):
            source.wait_receivers(1, HANG)
            until(lambda: events)
        until(lambda: len(events) == 2)
    assert [event.type for event in events] == [SourceEventType.CONNECT, SourceEventType.DISCONNECT]
    assert events[0].text.startswith("TCP:127.0.0.1:") and events[0].topic == "news"
    (name,) = threads
    assert name.startswith("um_cffi context")


def test_source_events_go_to_an_event_queue() -> None:
    events: list[SourceEvent] = []
    with EventQueue() as queue, loopback() as sending, Source(sending, "news", events.append, queue) as source:
        with loopback() as receiving, Receiver(receiving, "news"):
            source.wait_receivers(1, HANG)
            assert not events
            while not events:
                queue.dispatch(0.1)
        assert events[0].type == SourceEventType.CONNECT


def test_timers() -> None:
    calls: list[tuple[str, float]] = []
    begin = time.monotonic()

    def call(name: str) -> None:
        calls.append((name, time.monotonic() - begin))

    def called(name: str) -> bool:
        return name in [each for each, _ in calls]

    def let_them_run(ctx: Context, name: str) -> None:
        """Until timers that were due have been looked at: callbacks of a context run one after the other."""
        ctx.call_later(0.05, call, name)
        until(lambda: called(name))

    with loopback() as ctx:
        tries = 0
        while True:  # until it is cancelled before its time
            tries += 1
            due = time.monotonic() + 0.05
            never = ctx.call_later(0.05, call, f"never {tries}")
            never.cancel()
            if time.monotonic() < due:
                break
        ctx.call_later(0.06, call, "later")
        ctx.call_later(0.02, call, "soon")
        every = ctx.call_every(0.01, call, "every")
        until(lambda: [name for name, _ in calls].count("every") >= 5 and called("later"))
        every.cancel()
        let_them_run(ctx, "the call that was running")
        count = len(calls)
        let_them_run(ctx, "nothing")
        assert len(calls) == count + 1 and never.cancelled and every.cancelled
    times = {name: at for name, at in reversed(calls)}
    assert times["soon"] >= 0.02 and times["later"] >= 0.06 and f"never {tries}" not in times
    with pytest.raises(InvalidArgument, match="closed"):
        ctx.call_later(1, call, "closed")
    with loopback() as ctx, pytest.raises(InvalidArgument, match="timer -1"):
        ctx.call_later(-1, call, "negative")


def test_timers_of_an_event_queue() -> None:
    calls: list[int] = []
    with EventQueue() as queue:
        queue.call_later(0.01, calls.append, 1)
        timer = queue.call_every(0.02, calls.append, 2)
        until(lambda: queue.dispatch(0.05) >= 0 and calls.count(2) >= 2)
        timer.cancel()
        assert calls.count(1) == 1 and calls[0] == 1
        count = len(calls)
        queue.dispatch(0.1)
        assert len(calls) == count


def test_a_timer_that_cannot_keep_up_leaves_room_for_everything_else() -> None:
    """Its callback takes longer than its interval: dispatch() ends all the same, and messages have their turn."""
    calls: list[bytes] = []
    for interval in (0.0, 0.001):
        with EventQueue() as queue, pair(lambda message: calls.append(bytes(message)), queue=queue) as (source, _):
            timer = queue.call_every(interval, time.sleep, 0.01)
            source.send(b"message", flush=True)
            until(lambda: queue.dispatch(0) >= 0 and calls)
            timer.cancel()
        calls.clear()


def test_timers_and_timeouts_may_be_without_bound() -> None:
    fired = threading.Event()
    with loopback() as ctx, EventQueue() as queue, pair() as (source, receiver):
        ctx.call_later(math.inf, fired.set)
        ctx.call_later(1e12, fired.set)
        queue.call_later(math.inf, fired.set)
        queue.call_later(0, queue.unblock)
        assert queue.dispatch(math.inf) == 1 and not fired.is_set()
        ctx.call_later(0, fired.set)
        assert fired.wait(HANG)
        source.wait_receivers(timeout=math.inf)
        receiver.wait_ready(timeout=math.inf)
        receiver.wait_session(timeout=math.inf)
        source.send(b"x", flush=True)
        message = receiver.recv(math.inf)
        assert message is not None and bytes(message) == b"x"
        source.send(b"y", flush=True)
        assert receiver.recv_batch(timeout=math.inf) is not None


def test_descriptors() -> None:
    left, right = socket.socketpair()
    got: list[bytes] = []
    writable = threading.Event()
    with left, right, loopback() as ctx:
        ctx.add_reader(left, lambda: got.append(left.recv(100)))
        right.send(b"one")
        until(lambda: got == [b"one"])
        ctx.add_writer(left.fileno(), writable.set)
        assert writable.wait(HANG)
        ctx.remove_writer(left)
        right.send(b"two")
        until(lambda: got == [b"one", b"two"])
        ctx.remove_reader(left)
        right.send(b"three")
        looked = threading.Event()
        ctx.call_later(0.05, looked.set)
        assert looked.wait(HANG)
        assert got == [b"one", b"two"]


def test_exception_of_a_timer_is_raised_by_close(caplog: pytest.LogCaptureFixture) -> None:
    def bad() -> None:
        raise LookupError("of the timer")

    ctx = loopback()
    ctx.call_later(0, bad)
    until(lambda: "callback of context raised" in caplog.text)
    with pytest.raises(LookupError, match="of the timer"):
        ctx.close()
    ctx.close()
    assert ctx.closed and "(closed)" in repr(ctx)


def test_library_lines_go_to_logging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "um_cffi.library"):
        logs.enable()
        for number in range(1000):
            um_cffi.binding._native.lib.lbm_logf(
                um_cffi.binding._native.lib.LBM_LOG_WARNING, b"line %s", ffi_text(b"%d" % number)
            )
        until(lambda: any(record.getMessage().endswith("line 999") for record in caplog.records[-10:]))
    lines = [record for record in caplog.records if record.name == "um_cffi.library" and "line" in record.getMessage()]
    assert len(lines) == 1000
    assert {record.levelno for record in lines} == {logging.WARNING}
    assert lines[-1].getMessage().endswith("line 999")


def ffi_text(words: bytes) -> object:
    return um_cffi.binding._native.ffi.new("char[]", words)


def test_log_never_waits_for_python() -> None:
    """While Python is busy in a handler, lines are dropped and counted beyond the bound, and nobody waits."""
    go_on, begun = threading.Event(), threading.Event()
    got: list[str] = []

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            begun.set()
            go_on.wait(HANG)
            got.append(record.getMessage())

    handler = Slow()
    logs.enable()
    logger = logging.getLogger("um_cffi.library")
    logger.addHandler(handler)
    try:
        for _ in range(20000):
            um_cffi.binding._native.lib.lbm_logf(um_cffi.binding._native.lib.LBM_LOG_WARNING, b"much")
        assert begun.wait(HANG)
        go_on.set()
        until(lambda: any("dropped" in line for line in got))
    finally:
        go_on.set()
        logger.removeHandler(handler)
    assert len(got) >= 10000


def test_statistics_are_objects() -> None:
    got: list[str] = []
    with pair(lambda message: got.append(message.source)) as (source, receiver):
        for _ in range(10):
            source.send(b"12345", flush=True)
        until(lambda: len(got) == 10)
        stats = source.stats()
        assert (stats.transport, stats.num_clients) == (Transport.TCP, 1)  # type: ignore[union-attr]
        (session,) = receiver.stats()
        assert session.lbm_msgs_rcved >= 10 and session.source == stats.source  # type: ignore[union-attr]
        until(lambda: receiver._ctx.receiver_stats() == receiver.stats())  # a packet of the transport may come between
        until(lambda: source._ctx.source_stats() == [source.stats()])
        assert source.counts().bytes_sent == 50
        assert receiver.counts(got[0]).delivered == 10
        assert receiver._ctx.stats().tr_rcv_topics == 1
        with pytest.raises(AttributeError):
            stats.num_clients = 5  # type: ignore[misc, union-attr]


def test_sequential_context_is_run_by_the_application() -> None:
    with loopback(operational_mode="sequential") as ctx:
        stop = threading.Event()

        def run() -> None:
            while not stop.is_set():
                ctx.process_events(0.01)

        thread = threading.Thread(target=run)
        thread.start()
        got: list[bytes] = []
        receiver = Receiver(ctx, "news", lambda message: got.append(bytes(message.data)))
        with loopback() as sending, Source(sending, "news") as source:
            source.wait_receivers(1, HANG)
            source.send(b"x", flush=True)
            until(lambda: got == [b"x"])
        receiver.close()
        stop.set()
        thread.join(HANG)
    with loopback() as ctx, pytest.raises(InvalidArgument, match="operational_mode"):
        ctx.process_events()


def test_event_queue_options() -> None:
    with pytest.raises(NotSupported, match="queue_enqueue_notification"):
        EventQueue(queue_enqueue_notification=1)
    with pytest.raises(InvalidArgument, match="did you mean queue_size_warning"):
        EventQueue(options={"queue_size_warnings": 1})
    with EventQueue() as queue:
        assert queue.dispatch(0) == 0
        queue.unblock()
        assert queue.dispatch() == 0


def test_context_closes_its_children_and_may_be_closed_twice() -> None:
    ctx = loopback()
    source, receiver = Source(ctx, "news"), Receiver(ctx, "news")
    ctx.close()
    assert source.closed and receiver.closed
    ctx.close()
    source.close()
    with pytest.raises(InvalidArgument, match="context is closed"):
        ctx.stats()
    with pytest.raises(InvalidArgument), Context({"default_interface": "127.0.0.1", "no such": 1}):
        pass


def test_failing_creations_leave_nothing_behind() -> None:
    gc.collect()  # what earlier tests kept
    before = um_cffi.object_counts()
    descriptors = len(os.listdir("/proc/self/fd"))
    with loopback() as ctx:
        for _ in range(20):
            with pytest.raises(um_cffi.UmError):
                Source(ctx, "x" * 300, lambda event: None)
            with pytest.raises(um_cffi.UmError):
                Receiver(ctx, "x" * 300, lambda message: None)
            with pytest.raises(um_cffi.UmError):
                um_cffi.WildcardReceiver(ctx, "(", lambda message: None)
    until(lambda: um_cffi.object_counts() == before)
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1


def test_resolution_can_be_asked_for_again() -> None:
    with loopback() as ctx, loopback() as other, Source(other, "news"):
        before = ctx.stats().tr_dgrams_sent
        ctx.request_resolution(interval=0.01, duration=0)
        until(lambda: ctx.stats().tr_dgrams_sent > before)
        for wrong in ({"advertisements": False}, {"interval": -1}, {"duration": -1}):
            with pytest.raises(InvalidArgument):
                ctx.request_resolution(**wrong)


def test_counters_can_be_reset() -> None:
    with pair() as (source, receiver):
        ctx = receiver.context
        assert ctx is not source.context and ctx.stats().tr_dgrams_rcved > 0

        def reset() -> bool:
            ctx.reset_stats()
            return ctx.stats().tr_dgrams_rcved == 0  # unless one has just come

        until(reset)


@pytest.mark.parametrize("transport", ["lbtrm", "lbtru"])
def test_loss_on_purpose_is_repaired_and_counted(transport: str) -> None:
    """What is lost comes all the same, in order; the counts of both sides tell."""
    count = 2000
    datas = [(b"%d" % number).ljust(400) for number in range(count)]  # 1000 datagrams: 5 % of them are never none
    small = {"um_profile": "low_latency", f"transport_{transport}_datagram_max_size": 1000}
    patient = {f"transport_{transport}_nak_generation_interval": 60_000}  # asks as long as a test may take
    with loopback(small) as sending, loopback(small) as receiving:
        receiver = Receiver(receiving, "news", options=patient)
        source = Source(sending, "news", options={"transport": transport})
        source.send(b"first", flush=True)
        receiver.wait_ready(1, HANG)
        um_cffi.testing.set_loss_rate(**{transport: 5})
        try:
            source.send_many(datas, flush=True)
            got: list[bytes] = []
            while not got or got[-1] != datas[-1]:
                batch = receiver.recv_batch(timeout=HANG)
                assert batch is not None
                got += [bytes(message.data) for message in batch.messages() if bytes(message.data) != b"first"]
        finally:
            um_cffi.testing.set_loss_rate(**{transport: 0})
        assert got == datas
        assert receiving.counts().udp_injected > 0
        (asked,) = source.naks()
        assert asked.naks > 0 and asked.receiver.startswith("127.0.0.1:")
        assert source.counts().messages_sent == count + 1
    with pytest.raises(InvalidArgument, match="percent"):
        um_cffi.testing.set_loss_rate(lbtru=101)
