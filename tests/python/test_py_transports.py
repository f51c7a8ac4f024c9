"""Sources and receivers of Python over every transport: what arrives, statistics, time stamps, losses, repairs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from pairs import HANG, loopback, numbered, payloads, scaled, until

from um_cffi import (
    Context,
    MessageFlags,
    MessageType,
    Receiver,
    ReceiverEvent,
    Source,
    SourceEvent,
    SourceEventType,
    Transport,
)
from um_cffi import stats as statistics
from um_cffi.testing import set_loss_rate

NAMES = {
    "lbtrm": ("Lbtrm", Transport.LBTRM, "LBTRM:"),
    "lbtru": ("Lbtru", Transport.LBTRU, "LBT-RU:"),
    "lbtipc": ("Lbtipc", Transport.LBTIPC, "LBT-IPC:"),
    "lbtsmx": ("Lbtsmx", Transport.LBTSMX, "LBT-SMX:"),
}
UDP = ("lbtrm", "lbtru")
COUNT = scaled(20000)
CONTEXT = {
    "um_profile": "low_latency",
    "resolver_multicast_interface": "127.0.0.1/32",
    "transport_lbtsmx_message_statistics_enabled": 1,
}


@pytest.fixture(autouse=True)
def no_loss() -> Iterator[None]:
    yield
    set_loss_rate(0, 0, 0, 0)


def options_for(transport: str) -> dict[str, object]:
    more: dict[str, object] = {"transport": transport}
    if transport == "lbtipc":
        more["transport_lbtipc_behavior"] = "receiver_paced"
    return more


def connected(sending: Context, receiving: Context, transport: str) -> tuple[Source, Receiver]:
    """A source and a receiver that is ready; LBT-RM has no way to tell the source, but a first message does.

    Over UDP the receiver asks for what the kernel drops as long as a test may take.
    """
    patience = {f"transport_{transport}_nak_generation_interval": 60_000} if transport in UDP else {}
    into = Receiver(receiving, "news", options=patience)
    source = Source(sending, "news", options=options_for(transport))
    begin(source, into)
    return source, into


def begin(source: Source, receiver: Receiver) -> None:
    """Send until the session has begun for the receiver."""
    end = time.monotonic() + HANG
    while receiver.ready() == 0:
        assert time.monotonic() < end, "no session begins"
        source.send(b"", flush=True)
        time.sleep(0.01)


def udp_queues() -> tuple[int, int]:
    """Bytes that wait in the UDP sockets of this process, and datagrams that the kernel dropped at them."""
    own = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            own.add(os.readlink(f"/proc/self/fd/{number}"))
    rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    ours = [row for row in rows if f"socket:[{row[9]}]" in own]
    return sum(int(row[4].split(":")[1], 16) for row in ours), sum(int(row[12]) for row in ours)


def send_in_vain(source: Source, receiver: Receiver, count: int, data: bytes) -> None:
    """Send messages, a datagram each, of which the receiver gets none, and return when each is lost."""

    def lost() -> int:
        return receiver.context.counts().udp_injected + udp_queues()[1]

    before, sent = lost(), source.stats().msgs_sent  # type: ignore[union-attr]
    set_loss_rate(lbtrm=100)
    for _ in range(count):
        source.send(data, flush=True)
    until(lambda: source.stats().msgs_sent >= sent + count)  # type: ignore[union-attr]
    until(lambda: lost() >= before + count and udp_queues()[0] == 0)
    receiver.counts()  # when this has been to the context's thread, what that had taken from the socket is lost
    set_loss_rate(lbtrm=0)


@pytest.mark.parametrize("transport", NAMES)
def test_everything_arrives_and_the_statistics_tell_the_story(transport: str) -> None:
    with loopback(CONTEXT) as sending, loopback(CONTEXT) as receiving:
        source, receiver = connected(sending, receiving, transport)
        rows = numbered(COUNT)
        source.send_many(rows, flush=True)
        got: list[bytes] = []
        name = ""
        while len(got) < COUNT:
            batch = receiver.recv_batch(timeout=HANG)
            assert batch is not None, f"{len(got)} of {COUNT}"
            got += [each for each in payloads(batch) if each]
            name = batch.sources[-1]
            assert not batch.data.flags.writeable and not batch.records.flags.writeable
        assert got == [row.tobytes() for row in rows]
        prefix, kind, text = NAMES[transport]
        assert name.startswith(text)
        sent, received = source.stats(), receiver.stats()[0]
        assert type(sent) is getattr(statistics, f"{prefix}SourceStats")
        assert type(received) is getattr(statistics, f"{prefix}ReceiverStats")
        for each in (sent, received):
            assert each.transport == kind and name.startswith(each.source)
            assert all(isinstance(getattr(each, field.name), int) for field in fields(each)[2:])
        assert sent.msgs_sent > 0 and sent.bytes_sent > 64 * COUNT  # type: ignore[union-attr]
        assert received.msgs_rcved > 0  # type: ignore[union-attr]
        assert received.lbm_msgs_rcved >= COUNT  # type: ignore[union-attr]
        assert source.counts().messages_sent >= COUNT
        assert receiver.counts().delivered >= COUNT
        assert receiver.counts().lost == 0
        assert transport in UDP or receiver.counts().kernel_drops == 0  # those of UDP were repaired
        assert sending.source_stats()[0].source == receiving.receiver_stats()[0].source == sent.source
        assert sending.getopt("um_profile") == "low_latency"


@pytest.mark.parametrize("transport", UDP)
def test_injected_loss_is_repaired_and_naks_are_told_by_receiver(transport: str) -> None:
    with loopback(CONTEXT) as sending, loopback(CONTEXT) as receiving:
        source, receiver = connected(sending, receiving, transport)
        set_loss_rate(lbtrm=10, lbtru=10)
        rows = numbered(COUNT)
        for at in range(0, COUNT, 20):
            source.send_many(rows[at : at + 20], flush=True)
        got: list[bytes] = []
        while len(got) < COUNT:
            batch = receiver.recv_batch(timeout=HANG)
            assert batch is not None, f"{len(got)} of {COUNT}"
            got += [each for each in payloads(batch) if each]
        set_loss_rate(lbtrm=0, lbtru=0)
        assert got == [row.tobytes() for row in rows]
        assert receiving.counts().udp_injected > 0
        naks, received, sent = source.naks(), receiver.stats()[0], source.stats()  # in this order: NAKs may still come
        assert received.lost > 0 and received.naks_sent > 0  # type: ignore[union-attr]
        assert sent.rxs_sent > 0  # type: ignore[union-attr]
        assert len(naks) == 1 and naks[0].receiver.startswith("127.0.0.1")
        assert 0 < naks[0].naks <= sent.naks_rcved  # type: ignore[union-attr]


@pytest.mark.parametrize(("missed", "burst"), [(200, False), (2000, True)])
def test_what_has_left_the_window_is_reported_in_its_place(missed: int, burst: bool) -> None:
    """Losses one by one, or one event for a gap beyond delivery_control_maximum_burst_loss (1024)."""
    window = {"transport_lbtrm_transmission_window_size": 100_000}
    with loopback(CONTEXT) as sending, loopback(CONTEXT) as receiving:
        events: list[tuple[MessageType | int, int]] = []
        receiver = Receiver(
            receiving,
            "news",
            on_event=lambda event: events.append((event.type, event.sequence_number)),
            transport_lbtrm_nak_generation_interval=3000,
        )
        source = Source(sending, "news", options={**options_for("lbtrm"), **window})
        begin(source, receiver)
        source.send(b"before", flush=True)
        story: list[tuple[MessageType | int, int, bytes, int]] = []

        def take_until(last: bytes) -> None:
            while not story or story[-1][2] != last:
                batch = receiver.recv_batch(timeout=HANG)
                assert batch is not None, story[-3:]
                story.extend((each.type, each.sequence_number, bytes(each), each.count) for each in batch)

        take_until(b"before")
        first = story[-1][1] + 1
        send_in_vain(source, receiver, missed, bytes(1000))
        source.send(b"after", flush=True)
        story.clear()
        take_until(b"after")
        lost = [(kind, number) for kind, number, _, _ in story if kind in (MessageType.LOSS, MessageType.BURST_LOSS)]
        repaired = [number for kind, number, data, _ in story if kind == MessageType.DATA and len(data) == 1000]
        assert lost, f"{len(repaired)} of {missed} were repaired"
        assert lost[0][1] == first
        kinds = [kind for kind, _ in lost]
        assert kinds[0] == (MessageType.BURST_LOSS if burst else MessageType.LOSS)
        assert set(kinds[1:]) <= {MessageType.LOSS}  # behind a burst, too, if a repair came too late
        assert not burst or next(count for *_, count in story if count) >= 1024
        told = [number + i for kind, number, _, count in story for i in range(count or 1)]
        assert told == list(range(first, first + missed + 1))  # each in its place, once, up to the one after
        assert [each for each in events if each[0] in (MessageType.LOSS, MessageType.BURST_LOSS)] == lost
        assert receiver.counts().lost == missed - len(repaired)

        def given_up() -> bool:
            stats = receiver.stats()[0]
            return stats.unrecovered_txw + stats.unrecovered_tmo > 0  # type: ignore[union-attr]

        until(given_up)


def test_a_direct_callback_is_told_how_many_a_burst_lost() -> None:
    events: list[ReceiverEvent] = []
    got: list[bytes] = []
    gap = {"delivery_control_maximum_burst_loss": 10}
    with loopback(CONTEXT) as sending, loopback(CONTEXT) as receiving:
        receiver = Receiver(
            receiving, "news", lambda message: got.append(bytes(message)), events.append, direct=True, options=gap
        )
        source = Source(sending, "news", options=options_for("lbtrm"))
        begin(source, receiver)
        source.send(b"before", flush=True)
        until(lambda: b"before" in got)
        send_in_vain(source, receiver, 50, b"missed")
        source.send(b"after", flush=True)
        until(lambda: b"after" in got)
        bursts = [event for event in events if event.type == MessageType.BURST_LOSS]
        assert bursts and max(event.count for event in bursts) >= 10
        losses = [event.count for event in events if event.type in (MessageType.LOSS, MessageType.BURST_LOSS)]
        assert sum(losses) == receiver.counts().lost


def test_arrival_times_of_the_kernel_in_messages_and_batches() -> None:
    stamping = {**CONTEXT, "transport_lbtrm_receiver_timestamp": 1}
    with loopback(CONTEXT) as sending, loopback(stamping) as receiving:
        source, receiver = connected(sending, receiving, "lbtrm")
        before = time.time_ns()
        source.send(b"stamped", flush=True)
        while True:
            batch = receiver.recv_batch(timeout=HANG)
            assert batch is not None
            stamped = [each for each in batch if bytes(each) == b"stamped"]
            if stamped:
                break
        message = stamped[0]
        assert message.hr_timestamp is not None, "no time stamp over LBT-RM"
        assert before - 10**9 < message.hr_timestamp < time.time_ns() + 10**9
        assert message.hr_timestamp == message.timestamp_ns
        assert message.flags & MessageFlags.HR_TIMESTAMP
        data = batch.records[batch.records["length"] == 7]
        assert (data["flags"] & MessageFlags.HR_TIMESTAMP).all()
        assert int(data["timestamp_ns"][0]) == message.hr_timestamp


def test_the_source_is_told_when_datagrams_left() -> None:
    events: list[SourceEvent] = []
    with loopback({**CONTEXT, "transport_lbtrm_source_timestamp": 1}) as sending:
        source = Source(sending, "news", events.append, options=options_for("lbtrm"))
        before = time.time_ns()
        for _ in range(10):
            source.send(b"x", flush=True)
        until(lambda: sum(each.type == SourceEventType.TIMESTAMP for each in events) == 10)
        stamps = [each for each in events if each.type == SourceEventType.TIMESTAMP]
        numbers = [each.first_sequence_number for each in stamps]
        assert numbers == list(range(numbers[0], numbers[0] + 10))
        assert all(before - 10**9 < each.timestamp_ns < time.time_ns() + 10**9 for each in stamps)
        assert [each.timestamp_ns for each in stamps] == sorted(each.timestamp_ns for each in stamps)


@pytest.mark.parametrize("transport", ["lbtru", "lbtipc", "lbtsmx"])
def test_receivers_that_come_and_go_are_known(transport: str) -> None:
    events: list[SourceEventType | int] = []
    options: dict[str, object] = {**options_for(transport)}
    if transport == "lbtru":
        options["transport_lbtru_client_activity_timeout"] = 3000  # how a source learns that a client has gone
    with loopback(CONTEXT) as sending, loopback(CONTEXT) as receiving:
        source = Source(sending, "news", lambda event: events.append(event.type), options=options)
        with Receiver(receiving, "news") as receiver:
            source.wait_receivers(1, HANG)
            if transport == "lbtru":
                until(lambda: SourceEventType.CONNECT in events)
            else:
                receiver.wait_ready(1, HANG)
            until(lambda: source.receivers() == 1)  # over LBT-RU one that was late comes again
        until(lambda: source.receivers() == 0)
        if transport == "lbtru":
            until(lambda: SourceEventType.DISCONNECT in events)


def test_messages_of_several_datagrams_over_udp() -> None:
    payload = np.random.default_rng(1).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
    for transport in UDP:
        with loopback(CONTEXT) as sending, loopback(CONTEXT) as receiving:
            source, receiver = connected(sending, receiving, transport)
            source.send(payload, flush=True)
            got: list[bytes] = []
            while payload not in got:
                batch = receiver.recv_batch(timeout=HANG)
                assert batch is not None
                got += payloads(batch)
