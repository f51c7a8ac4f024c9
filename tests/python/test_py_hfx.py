"""Hot failover over several contexts: networks that know nothing of each other, and one receiver over all of them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pairs import HANG, collect, loopback, scaled, until

from um_cffi import (
    HFX,
    HFSource,
    InvalidArgument,
    Message,
    MessageFlags,
    MessageType,
    ReceiverEvent,
    TimedOut,
)


def network(number: int) -> Any:
    """A context that hears only those of the same number."""
    return loopback(resolver_multicast_port=13100 + number)


@contextlib.contextmanager
def merged(paths: int = 2, **keywords: Any) -> Iterator[tuple[list[HFSource], HFX]]:
    """A source on each path, and a receiver over all of them."""
    with contextlib.ExitStack() as stack:
        receiving = [stack.enter_context(network(number)) for number in range(paths)]
        receiver = stack.enter_context(HFX(receiving, "merged", **keywords))
        sources = [
            stack.enter_context(HFSource(stack.enter_context(network(number)), "merged")) for number in range(paths)
        ]
        for source in sources:
            source.wait_receivers(1, HANG)
        receiver.wait_ready(paths, HANG)
        yield sources, receiver


def send(source: HFSource, *numbers: int) -> None:
    for number in numbers:
        source.send(b"%d" % number, number=number)
    source.flush()


def take(receiver: HFX, count: int) -> list[int | None]:
    numbers: list[int | None] = []
    for _ in range(count):
        message = receiver.recv(HANG)
        assert message is not None, f"{len(numbers)} of {count} messages came"
        assert bytes(message) == str(message.hf_number).encode()
        numbers.append(message.hf_number)
    return numbers


def test_what_two_paths_bring_comes_once_and_in_order() -> None:
    count = scaled(3000)
    with merged() as (sources, receiver):
        send(sources[0], 0)
        assert take(receiver, 1) == [0]  # where numbers begin
        threads = [threading.Thread(target=send, args=(source, *range(1, count))) for source in sources]
        for thread in threads:
            thread.start()
        assert take(receiver, count - 1) == list(range(1, count))
        for thread in threads:
            thread.join(HANG)
        send(sources[1], count)
        send(sources[0], count, count + 1)
        assert take(receiver, 2) == [count, count + 1]
        assert receiver.counts().lost == 0


def test_what_became_of_the_numbers_is_counted() -> None:
    with merged() as (sources, receiver):
        for source in sources:
            send(source, 1, 2)
        assert take(receiver, 2) == [1, 2]
        until(lambda: receiver.merge_counts().duplicates == 2)
        counts = receiver.merge_counts()
        assert (counts.delivered, counts.lost, counts.waiting, counts.refused) == (2, 0, 0, 0)


def test_one_path_may_go() -> None:
    with merged() as (sources, receiver):
        send(sources[0], *range(50))
        assert take(receiver, 50) == list(range(50))
        sources[0].close()
        send(sources[1], *range(100))
        assert take(receiver, 50) == list(range(50, 100))


def test_batches_callbacks_and_events_are_those_of_other_receivers() -> None:
    heard: list[Message] = []
    told: list[ReceiverEvent] = []
    with merged(3, on_message=heard.append, on_event=told.append) as (sources, _):
        for source in sources:
            send(source, 1, 2, 3)
        until(lambda: len(heard) == 3)
        assert [message.hf_number for message in heard] == [1, 2, 3]
        until(lambda: [event.type for event in told].count(MessageType.BEGIN_OF_SESSION) == 3)
    with merged(2) as (sources, receiver):
        for source in sources:
            send(source, *range(10))
        batches = [batch.records for batch in collect(receiver, 10)]
        numbers = [n for each in batches for n in each["sequence_number"][each["type"] == MessageType.DATA]]
        assert numbers == list(range(10))


def test_copies_and_arrival_order_come_on_request() -> None:
    with merged(ordered=False, duplicates=True, max_delay=HANG) as (sources, receiver):
        send(sources[0], 1)
        assert take(receiver, 1) == [1]
        send(sources[1], 5)  # the first of its source: what is before it may still come
        assert take(receiver, 1) == [5]
        send(sources[0], 2, 5)
        second, copy = receiver.recv(HANG), receiver.recv(HANG)
        assert second is not None and second.hf_number == 2
        assert copy is not None and copy.hf_number == 5 and copy.flags & MessageFlags.HF_DUPLICATE


def test_losses_and_resets_are_events() -> None:
    told: list[ReceiverEvent] = []
    with merged(max_delay=0.001, on_event=told.append) as (sources, receiver):
        send(sources[0], 1)
        assert take(receiver, 1) == [1]
        send(sources[1], 3)
        assert take(receiver, 1) == [3]
        sources[0].send_rcv_reset(1)
        send(sources[0], 1)
        assert take(receiver, 1) == [1]
        until(lambda: MessageType.HF_RESET in [event.type for event in told])
        losses = [event for event in told if event.type == MessageType.LOSS]
        assert [event.hf_number for event in losses] == [2]


def test_counts_and_statistics_are_of_all_contexts() -> None:
    with merged() as (sources, receiver):
        for source in sources:
            send(source, 1, 2)
        assert take(receiver, 2) == [1, 2]
        until(lambda: receiver.counts().delivered == 4)  # copies are counted where they came
        assert receiver.ready() == 2
        assert len(receiver.stats()) == 2
        assert receiver.topic == "merged"
        assert len(receiver.contexts) == 2 and receiver.context is receiver.contexts[0]
        with pytest.raises(TimedOut):
            receiver.wait_ready(3, 0.01)
        with pytest.raises(InvalidArgument, match="must be None"):
            receiver.counts("TCP:1.2.3.4:5")
        assert receiver.getopt("hf_optional_messages") == "1"
        with pytest.raises(InvalidArgument):
            receiver.setopt("hf_optional_messages", 0)


def test_it_is_closed_with_any_of_its_contexts() -> None:
    for first in range(2):
        contexts = [network(number) for number in range(2)]
        receiver = HFX(contexts, "closed")
        contexts[first].close()
        assert receiver.closed
        contexts[1 - first].close()


def test_wrong_arguments_say_what_is_allowed() -> None:
    with network(0) as ctx:
        for contexts in ([], [ctx, ctx], None, ["ctx"]):
            with pytest.raises(InvalidArgument):
                HFX(contexts, "t")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="max_delay"):
            HFX([ctx], "t", max_delay=-1)
        with pytest.raises(InvalidArgument):
            HFX([ctx], "t", no_such_option=1)  # type: ignore[call-arg]
        with HFX([ctx], "t", hf_optional_messages=0) as receiver:
            assert "1 contexts" in repr(receiver) or "1 context" in repr(receiver)
