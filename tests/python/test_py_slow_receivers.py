"""TCP sources that drop for a slow receiver instead of waiting for it: bounded_latency (TCP-LB) and source_paced.

What a receiver is told of is what it did not get, whole messages of it, and nobody else is told of anything.
"""

from __future__ import annotations

import logging
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

import pytest
from pairs import HANG, until

from um_cffi import Context, MessageType, Receiver, ReceiverEvent, Source, WouldBlock, logs

Behavior = Literal["bounded_latency", "source_paced"]
Compression = Literal["none", "lz4"]
NEVER_HELD = 200_000  # messages a source would never take without reading or dropping
DROPS = {"bounded_latency": "Core-5688-3928", "source_paced": "Core-5688-3927"}
LIMIT = 65536


def context(compression: Compression = "none") -> Context:
    """With small buffers in the kernel, so that a receiver that stops is soon felt."""
    return Context(
        default_interface="127.0.0.1",
        resolver_multicast_interface="127.0.0.1",
        request_tcp_port_low=0,
        request_tcp_port_high=0,
        transport_tcp_port_low=0,
        transport_tcp_port_high=0,
        transport_tcp_receiver_socket_buffer=65536,
        transport_tcp_datagram_max_size=4000,  # messages of more than that have fragments
        compression=compression,
    )


def publisher(ctx: Context, behavior: Behavior) -> Source:
    return Source(
        ctx,
        "prices",
        transport_tcp_multiple_receiver_behavior=behavior,
        transport_session_maximum_buffer=LIMIT,
        transport_tcp_sender_socket_buffer=16384,
    )


def payload(number: int) -> bytes:
    """Every third has fragments; the check sum is of the whole, which does not compress."""
    body = number.to_bytes(4, "big") + b"".join(
        zlib.crc32(struct.pack(">II", number, i)).to_bytes(4, "big") for i in range(2500 if number % 3 == 2 else 100)
    )
    return body + zlib.crc32(body).to_bytes(4, "big")


def number_of(data: bytes) -> int:
    """Of a message that is whole."""
    assert zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "big"), "a part of a message"
    return int.from_bytes(data[:4], "big")


class Slow:
    """A receiver whose callback stops when told; then its context reads no more."""

    def __init__(self, ctx: Context) -> None:
        self.numbers: list[int] = []
        self.missing: list[int] = []
        self.events: list[str] = []
        self.go = threading.Event()
        self.go.set()
        self.receiver = Receiver(
            ctx, "prices", self._take, self._tell, queue_bytes=1, delivery_control_maximum_burst_loss=1 << 30
        )

    def wait_for(self, count: int) -> None:
        until(lambda: len(self.numbers) >= count)

    def _take(self, message: object) -> None:
        self.go.wait(HANG)
        self.numbers.append(number_of(bytes(message)))  # type: ignore[call-overload]

    def _tell(self, event: ReceiverEvent) -> None:
        self.events.append(event.type.name)
        if event.type in (MessageType.LOSS, MessageType.BURST_LOSS):
            self.missing += range(event.sequence_number, event.sequence_number + event.count)


@contextmanager
def slow_and_fast(behavior: Behavior, compression: Compression) -> Iterator[tuple[Source, Slow, Slow]]:
    with ExitStack() as stack:
        source = publisher(stack.enter_context(context(compression)), behavior)
        slow, fast = (Slow(stack.enter_context(context(compression))) for _ in range(2))
        source.wait_receivers(2, HANG)
        yield source, slow, fast
        slow.go.set()


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("behavior", ["bounded_latency", "source_paced"])
def test_who_is_slow_misses_whole_messages_and_nobody_else_is_told(
    behavior: Behavior, compression: Compression, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "um_cffi"), slow_and_fast(behavior, compression) as (source, slow, fast):
        slow.go.clear()
        sent = 0
        while source.counts().session_dropped < 100:
            source.send_nowait(payload(sent), flush=True)  # the slow one never makes it wait, nor refuse
            sent += 1
            fast.wait_for(sent - 5)
        slow.go.set()
        source.send(payload(sent), flush=True)  # behind the gap: what was lost before it is told at once
        sent += 1
        fast.wait_for(sent)
        until(lambda: slow.numbers[-1:] == [fast.numbers[-1]])
        assert fast.numbers == list(range(sent))
        assert fast.missing == [] and not any("LOSS" in event for event in fast.events)
        assert slow.numbers == sorted(set(slow.numbers))
        lost = sent - len(slow.numbers)
        assert 0 < lost < sent
        assert set(slow.missing) == fragments_missing(slow.numbers, sent)
        counts = source.counts()
        assert (counts.receivers, counts.session_unsent_bytes) == (2, 0)
        logs.flush()
        assert DROPS[behavior] in caplog.text
        assert "whole messages dropped for slow receivers" in caplog.text


def fragments_missing(numbers: list[int], sent: int) -> set[int]:
    """Topic sequence numbers of the messages that are not among these: of three messages, one has three."""
    missing = set(range(sent)) - set(numbers)
    return {n // 3 * 5 + n % 3 + i for n in missing for i in range(3 if n % 3 == 2 else 1)}


def test_the_fastest_receiver_paces_the_source() -> None:
    """With one that reads nobody waits; with none that reads a source waits, until one reads or leaves."""
    with ExitStack() as stack:
        source = publisher(stack.enter_context(context()), "bounded_latency")
        contexts = [stack.enter_context(context()) for _ in range(2)]
        both = [Slow(ctx) for ctx in contexts]
        source.wait_receivers(2, HANG)
        for each in both:
            each.go.clear()
        with pytest.raises(WouldBlock):
            for number in range(NEVER_HELD):
                source.send_nowait(payload(number), flush=True)
        refused = number
        both[0].go.set()
        source.send(payload(refused), flush=True)  # waits for the one that reads, not for the other
        until(lambda: refused in both[0].numbers)
        assert refused not in both[1].numbers
        both[1].go.set()
        until(lambda: refused in both[1].numbers)
        for each in both:  # what was dropped before the second was full, too
            assert set(each.missing) == fragments_missing(each.numbers, refused + 1)
        for each in both:
            each.receiver.close()
        until(lambda: source.receivers() == 0)
        for number in range(refused + 1, refused + 200):
            source.send_nowait(payload(number), flush=True)  # nobody is there: nobody is waited for
        assert source.counts().session_unheard_bytes > 0


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_the_only_receiver_is_waited_for_and_misses_nothing(compression: Compression) -> None:
    with ExitStack() as stack:
        source = publisher(stack.enter_context(context(compression)), "bounded_latency")
        only = Slow(stack.enter_context(context(compression)))
        source.wait_receivers(1, HANG)
        only.go.clear()
        with pytest.raises(WouldBlock):
            for number in range(NEVER_HELD):
                source.send_nowait(payload(number), flush=True)
        only.go.set()
        for more in range(number, number + 100):
            source.send(payload(more), flush=True)
        only.wait_for(number + 100)
        assert only.numbers == list(range(number + 100))
        assert (only.missing, source.counts().session_dropped) == ([], 0)
