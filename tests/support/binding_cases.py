"""What test_binding.py runs, each case in a process of its own: python binding_cases.py NAME."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable

from um_cffi import (
    Context,
    Message,
    MessageType,
    Receiver,
    ReceiverEvent,
    Source,
    SourceEvent,
    SourceEventType,
    TimedOut,
    UmError,
    WildcardReceiver,
)
from um_cffi.stats import TcpReceiverStats, TcpSourceStats

LOOPBACK = {"default_interface": "127.0.0.1"}
HANG = 300.0 if os.environ.get("UM_SANITIZED") else 60.0  # seconds; only catches hangs


def until(condition: Callable[[], object], seconds: float = HANG) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def case_l1_messages_sent_once_ready_all_arrive() -> None:
    got: list[bytes] = []
    with Context(LOOPBACK) as sending, Context(LOOPBACK) as receiving:
        receiver = Receiver(receiving, "news", lambda message: got.append(bytes(message.data)))
        source = Source(sending, "news")
        source.wait_receivers(1, HANG)
        for number in range(1000):
            source.send(b"%d" % number)
        source.flush()
        until(lambda: len(got) == 1000)
        receiver.wait_ready(1, HANG)
    assert got == [b"%d" % number for number in range(1000)]


def case_s2_sent_delivered_lost_and_discarded_can_be_read() -> None:
    got: list[Message] = []
    with Context(LOOPBACK) as sending, Context(LOOPBACK) as receiving:
        receiver = Receiver(receiving, "news", got.append)
        everything = WildcardReceiver(receiving, "^news$", lambda message: None)
        source = Source(sending, "news")
        source.wait_receivers(1, HANG)
        receiver.wait_ready(1, HANG)
        everything.wait_ready(1, HANG)
        for number in range(100):
            source.send(b"%03d" % number)
        source.flush()
        until(lambda: len(got) == 100)
        sent = source.counts()
        assert (sent.messages_sent, sent.bytes_sent, sent.receivers) == (100, 300, 1)
        until(lambda: everything.counts().delivered == 100)  # the other receiver may have had it first
        for counts in (receiver.counts(), receiver.counts(got[0].source), everything.counts()):
            assert (counts.delivered, counts.sources) == (100, 1)
            assert [counts.missing, counts.lost, counts.late, counts.duplicates, counts.discarded] == [0] * 5
        assert set(dataclasses.astuple(receiving.counts())) == {0}
        try:
            receiver.counts("TCP:1.2.3.4:5:00000006[7]")
        except UmError as error:
            assert "1.2.3.4" in str(error)
        else:
            raise AssertionError("counts of a source that is not there")


def case_wildcard_receiver_gets_all_matching_topics() -> None:
    got: set[str] = set()
    begun: set[str] = set()

    def on_event(message: ReceiverEvent) -> None:
        if message.type == MessageType.BEGIN_OF_SESSION:
            begun.add(message.topic)

    with Context(LOOPBACK) as sending, Context(LOOPBACK) as receiving:
        WildcardReceiver(receiving, "^Market/.*$", lambda message: got.add(message.topic), on_event)
        sources = [Source(sending, name) for name in ("Market/A", "Market/B", "Weather")]
        until(lambda: begun == {"Market/A", "Market/B"})
        for source in sources:
            source.send(b"x", flush=True)
        until(lambda: len(got) == 2)
        time.sleep(0.2)
    assert got == {"Market/A", "Market/B"}


def case_events_come_to_the_source() -> None:
    events: list[SourceEvent] = []
    with Context(LOOPBACK) as sending:
        Source(sending, "news", events.append)
        with Context(LOOPBACK) as receiving:
            Receiver(receiving, "news", lambda message: None)
            until(lambda: events)
        until(lambda: len(events) >= 2)
    assert events[0].type == SourceEventType.CONNECT and events[0].text.startswith("TCP:127.0.0.1:")
    assert events[1].type == SourceEventType.DISCONNECT


def case_statistics_count() -> None:
    got: list[bytes] = []
    with Context(LOOPBACK) as sending, Context(LOOPBACK) as receiving:
        Receiver(receiving, "news", lambda message: got.append(bytes(message.data)))
        source = Source(sending, "news")
        source.wait_receivers(1, HANG)
        for _ in range(10):
            source.send(b"12345", flush=True)
        until(lambda: len(got) == 10)
        sent = source.stats()
        assert isinstance(sent, TcpSourceStats) and sent.num_clients == 1
        (stats,) = receiving.receiver_stats()
        assert isinstance(stats, TcpReceiverStats) and stats.lbm_msgs_rcved >= 10
        assert stats.source.startswith("TCP:127.0.0.1:")


def case_errors_carry_number_and_text() -> None:
    try:
        Context(options={"no_such_option": 1})
    except UmError as error:
        assert error.errnum == 1 and "no_such_option" in str(error)
    else:
        raise AssertionError("an unknown option was accepted")
    with Context(LOOPBACK) as ctx:
        source = Source(ctx, "news")
        try:
            source.wait_receivers(1, 0.1)
        except TimedOut:
            pass
        else:
            raise AssertionError("a receiver out of nothing")
        source.close()
        try:
            source.send(b"x")
        except ValueError as error:
            assert "news" in str(error)


def case_a_raising_callback_is_raised_again_by_close() -> None:
    got: list[bytes] = []

    def on_message(message: Message) -> None:
        got.append(bytes(message.data))
        raise RuntimeError("from the callback")

    with Context(LOOPBACK) as sending, Context(LOOPBACK) as receiving:
        receiver = Receiver(receiving, "news", on_message)
        source = Source(sending, "news")
        source.wait_receivers(1, HANG)
        source.send(b"1", flush=True)
        source.send(b"2", flush=True)
        until(lambda: len(got) == 2)
        try:
            receiver.close()
        except RuntimeError as error:
            assert str(error) == "from the callback"
        else:
            raise AssertionError("the exception was swallowed")


def case_exit_with_live_contexts_is_clean() -> None:
    ctx = Context(LOOPBACK)
    Receiver(ctx, "news", lambda message: None)
    Source(ctx, "news")


def case_big_messages_travel_in_fragments() -> None:
    got: list[bytes] = []
    with Context(LOOPBACK) as sending, Context(LOOPBACK) as receiving:
        Receiver(receiving, "news", lambda message: got.append(bytes(message.data)))
        source = Source(sending, "news")
        source.wait_receivers(1, HANG)
        data = bytes(range(256)) * 40000
        source.send(memoryview(data), flush=True)
        until(lambda: got)
        assert got == [data]


if __name__ == "__main__":
    globals()[f"case_{sys.argv[1]}"]()
