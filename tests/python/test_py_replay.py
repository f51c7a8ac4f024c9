"""What a source keeps (retain) and what a receiver that comes late wants of it (replay)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pairs import SLOW, loopback, until

from um_cffi import Context, InvalidArgument, Receiver, Source, WildcardReceiver


@pytest.fixture
def contexts() -> Iterator[tuple[Context, Context]]:
    with loopback() as sending, loopback() as receiving:
        yield sending, receiving


def send(source: Source, first: int, end: int) -> None:
    for number in range(first, end):
        source.send(b"%d" % number)
    source.flush()


def take(receiver: Receiver | WildcardReceiver, count: int) -> list[tuple[int, bool]]:
    """Numbers of messages, and whether each was retransmitted."""
    taken: list[tuple[int, bool]] = []
    while len(taken) < count:
        message = receiver.recv(30 * SLOW)
        assert message is not None, f"{len(taken)} of {count} messages came"
        assert bytes(message) == b"%d" % message.sequence_number
        taken.append((message.sequence_number, message.retransmit))
    return taken


@pytest.mark.parametrize("transport", ["tcp", "lbtrm", "lbtru", "lbtipc"])
def test_what_was_kept_comes_first_and_is_marked(contexts: tuple[Context, Context], transport: Any) -> None:
    source = Source(contexts[0], "news", retain=100, transport=transport)
    send(source, 0, 50)
    receiver = Receiver(contexts[1], "news", replay="all")
    assert take(receiver, 50) == [(number, True) for number in range(50)]
    receiver.wait_ready(1, 30 * SLOW)
    send(source, 50, 60)
    assert [number for number, _ in take(receiver, 10)] == list(range(50, 60))
    assert receiver.counts().lost == 0


@pytest.mark.parametrize(
    ("retain", "replay", "first"),
    [(30, "all", 70), (30, None, 70), (30, 5, 95), (1000, 5, 95), ("1 kB", "all", 88), (timedelta(hours=1), "all", 0)],
)
def test_source_and_receiver_say_how_much(
    contexts: tuple[Context, Context], retain: Any, replay: Any, first: int
) -> None:
    """A message counts 64 bytes beside its own, which are 12 and two digits: 12 of them in 1 kB."""
    source = Source(contexts[0], "news", retain=retain)
    send(source, 0, 100)
    receiver = Receiver(contexts[1], "news", replay=replay)
    assert take(receiver, 100 - first) == [(number, True) for number in range(first, 100)]


def test_nothing_is_replayed_where_nothing_is_wanted(contexts: tuple[Context, Context]) -> None:
    source = Source(contexts[0], "news", retain=30)
    send(source, 0, 100)
    receiver = Receiver(contexts[1], "news", replay=0)
    receiver.wait_ready(1, 30 * SLOW)
    source.wait_receivers(1, 30 * SLOW)
    send(source, 100, 103)
    assert take(receiver, 3) == [(100, False), (101, False), (102, False)]


def test_a_pattern_replays_each_of_its_topics(contexts: tuple[Context, Context]) -> None:
    sources = [Source(contexts[0], f"news.{name}", retain="1 MB") for name in "ab"]
    for source in sources:
        send(source, 0, 10)
    receiver = WildcardReceiver(contexts[1], "^news", replay=4)
    assert sorted(take(receiver, 8)) == [(number, True) for number in range(6, 10) for _ in "ab"]


def test_a_replay_longer_than_the_queue_waits_and_loses_nothing(contexts: tuple[Context, Context]) -> None:
    source = Source(contexts[0], "news", retain="1 MB", transport="tcp")
    send(source, 0, 3000)
    receiver = Receiver(contexts[1], "news", queue_bytes=10_000, replay="all")
    until(lambda: receiver.queue_stats().queued_bytes > 9_000)
    assert take(receiver, 3000) == [(number, True) for number in range(3000)]
    assert receiver.queue_stats().dropped == 0 and receiver.counts().lost == 0


def test_what_multicast_repairs_behind_a_full_queue_is_counted(contexts: tuple[Context, Context]) -> None:
    """The replay waits for room. What LBT-RM still repairs when it is over cannot, and is dropped with a count."""
    source = Source(contexts[0], "news", retain="1 MB", transport="lbtrm")
    send(source, 0, 3000)
    receiver = Receiver(contexts[1], "news", queue_bytes=10_000, replay="all")
    until(lambda: receiver.queue_stats().queued_bytes > 9_000)
    taken: list[int] = []
    while len(taken) + receiver.queue_stats().dropped < 3000:
        message = receiver.recv(30 * SLOW)
        assert message is not None, f"{len(taken)} taken, {receiver.queue_stats()}"
        taken.append(message.sequence_number)
    assert taken == sorted(set(taken)) and taken[0] == 0


@pytest.mark.parametrize(
    ("retain", "text"),
    [
        (0, "must be 1 or more"),
        (-1, "must be 1 or more"),
        (True, "must be a number of messages, a size as a str"),
        (1.5, "must be a number of messages, a size as a str"),
        ("many", "must be a size such as '64 MB'"),
        ("64 mb", "must be a size such as '64 MB'"),
        ("0 MB", "more than nothing"),
        (timedelta(0), "more than no time"),
    ],
)
def test_what_cannot_be_kept_is_refused(contexts: tuple[Context, Context], retain: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        Source(contexts[0], "news", retain=retain)


@pytest.mark.parametrize(
    ("replay", "text"),
    [
        (-1, "must be 0 or more"),
        (True, "must be 'all' or a number"),
        ("everything", "must be 'all' or a number"),
        (timedelta(seconds=5), "let the source keep as much"),
    ],
)
def test_what_cannot_be_replayed_is_refused(contexts: tuple[Context, Context], replay: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        Receiver(contexts[0], "news", replay=replay)
    with pytest.raises(InvalidArgument, match=text):
        WildcardReceiver(contexts[0], "news", replay=replay)


def test_an_option_is_not_given_twice(contexts: tuple[Context, Context]) -> None:
    with pytest.raises(InvalidArgument, match="retain sets the option late_join, which is given too"):
        Source(contexts[0], "news", retain=5, late_join=True)
    with pytest.raises(InvalidArgument, match="replay sets the option retransmit_request_maximum"):
        Receiver(contexts[0], "news", replay=5, retransmit_request_maximum=7)
