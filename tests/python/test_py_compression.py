"""Compressed TCP connections: between contexts, and with an independent peer on either side."""

from __future__ import annotations

import contextlib
import logging
import random
import re
import struct
from collections.abc import Iterator

import lz4_peers
import pytest
from fixtures import WITHOUT_MULTICAST
from lz4_peers import HELLO, Peer, frame, message
from pairs import HANG, until

from um_cffi import Context, ImmediateReceiver, Message, MessageType, Receiver, ReceiverEvent, Source, logs

pytestmark = pytest.mark.skipif(WITHOUT_MULTICAST, reason="what is advertised here goes by multicast")

PLAIN: dict[str, object] = {
    "default_interface": "127.0.0.1",
    "resolver_multicast_interface": "127.0.0.1",
    "request_tcp_port_low": 0,
    "request_tcp_port_high": 0,
    "transport_tcp_port_low": 0,
    "transport_tcp_port_high": 0,
}
LZ4 = {**PLAIN, "compression": "lz4"}
IMPATIENT = {**LZ4, "tls_compression_negotiation_timeout": 300}
TEXT = b"symbol=IBM bid=100.25 ask=100.50 size=700 " * 40


def taken(receiver: Receiver | ImmediateReceiver) -> Message:
    found = receiver.recv(timeout=HANG)
    assert found is not None
    return found


def port_of(source: Source) -> int:
    found = re.match(r"TCP:[^:]*:(\d+)", source.stats().source)
    assert found is not None
    return int(found.group(1))


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, "um_cffi"):
        yield caplog


def wait_said(said: pytest.LogCaptureFixture, words: str) -> str:
    """The first line with these words."""
    lines: list[str] = []

    def there() -> bool:
        logs.flush()
        lines[:] = [line for line in said.messages if words in line]
        return bool(lines)

    until(there)
    return lines[0]


# -- between contexts --


def test_everything_arrives_whatever_its_size_and_contents() -> None:
    rng = random.Random(17)
    sent = [TEXT[: rng.randrange(len(TEXT))] for _ in range(300)]
    sent += [rng.randbytes(rng.randrange(3000)) for _ in range(100)]
    sent += [bytes(1_000_000), rng.randbytes(300_000), TEXT * 100]
    with Context(LZ4) as sending, Context(LZ4) as receiving:
        receiver = Receiver(receiving, "all")
        source = Source(sending, "all")
        source.wait_receivers(1, HANG)
        for data in sent:
            source.send(data, flush=len(data) % 3 == 0)
        source.flush()
        assert [bytes(taken(receiver)) for _ in sent] == sent
        assert source.counts().session_unopened == 0


def test_a_response_of_one_megabyte_is_compressed_like_all_unicast_connections() -> None:
    answer = random.Random(1).randbytes(500_000) + bytes(500_000)
    with Context(LZ4) as asks, Context(LZ4) as responds, Source(asks, "big") as source:
        responder = responds.responder("big")(lambda request: answer)
        responder.wait_ready(timeout=HANG)
        assert asks.request(source, b"?", timeout=HANG).result().data == answer


def test_what_was_sent_before_is_replayed_over_compressed_connections() -> None:
    with Context(LZ4) as sending, Context(LZ4) as receiving:
        source = Source(sending, "late", late_join=1, retransmit_retention_size_threshold=1_000_000)
        for i in range(200):
            source.send(TEXT + b"%d" % i)
        source.flush()
        receiver = Receiver(receiving, "late", use_late_join=1)
        assert [bytes(taken(receiver)) for _ in range(200)] == [TEXT + b"%d" % i for i in range(200)]


def test_contexts_with_and_without_compression_never_connect_and_count_each_others_datagrams() -> None:
    with Context(LZ4) as compressed, Context(PLAIN) as plain, Context(PLAIN) as friend:
        ours, theirs = Source(compressed, "either"), Source(plain, "either")
        deaf, hears = Receiver(compressed, "either"), Receiver(friend, "either")
        theirs.wait_receivers(1, HANG)
        ours.wait_receivers(1, HANG)  # the receiver of its own context
        for source, data in ((ours, b"compressed"), (theirs, b"plain")):
            source.send(data, flush=True)
        assert bytes(taken(deaf)) == b"compressed"
        assert bytes(taken(hears)) == b"plain"
        until(lambda: min(ctx.stats().tr_dgrams_dropped_type for ctx in (compressed, plain, friend)) >= 3)
        assert (ours.receivers(), theirs.receivers()) == (1, 1)
        assert [source.counts().session_unopened for source in (ours, theirs)] == [0, 0]
        assert [receiver.recv(timeout=0) for receiver in (deaf, hears)] == [None, None]


# -- an independent receiver --


def subscribe(source: Source) -> Peer:
    """As a client of the source, with its session id."""
    peer = lz4_peers.connect(port_of(source))
    peer.greet()
    session = re.search(r":([0-9a-f]{8})(?:\[|$)", source.stats().source)
    assert session is not None
    peer.send(frame(struct.pack(">BBHBBH", 8, 0x6B, 12, 0xFF, 8, 0) + bytes.fromhex(session.group(1))))
    source.wait_receivers(1, HANG)
    return peer


def test_an_independent_receiver_reads_every_frame() -> None:
    rng = random.Random(3)
    sent = [TEXT, b"x", rng.randbytes(700), bytes(5000), TEXT[:100]]
    with Context(LZ4) as ctx, Source(ctx, "peer") as source, subscribe(source) as peer:
        for data in sent:
            source.send(data, flush=True)
        got: list[bytes] = []
        messages = peer.messages()
        while len(got) < len(sent):
            each = next(messages)
            if each[0] == 0:
                got.append(each[12:])
        assert got == sent
        assert any(compressed * 20 < original for original, compressed in peer.frames), "zeros are very short"
        assert any(compressed == original > 700 for original, compressed in peer.frames), "noise is stored"


def test_one_datagram_is_one_frame_and_a_batch_one_datagram() -> None:
    with Context(LZ4) as ctx, Source(ctx, "batch") as source, subscribe(source) as peer:
        source.send_many([b"%03d" % i for i in range(100)], flush=True)
        messages, before = peer.messages(), 0
        got: list[bytes] = []
        while len(got) < 100:
            each = next(messages)
            before = len(peer.frames) - 1 if each[0] == 8 else before  # control messages come first
            got += [each[12:]] if each[0] == 0 else []
        assert got == [b"%03d" % i for i in range(100)]
        assert len(peer.frames) - 1 - before == 1


@pytest.mark.parametrize(
    "words", [b"\x21\x00\x00\x0c", b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x02", b"UMZ2", b"UMZ1\x02"]
)
def test_a_stranger_without_the_hello_is_closed_and_named(words: bytes, said: pytest.LogCaptureFixture) -> None:
    with Context(LZ4) as ctx, Source(ctx, "strangers") as source, lz4_peers.connect(port_of(source)) as peer:
        peer.send(words)
        assert peer.closed() in (HELLO, b"")
        assert "Core-9565-38" in wait_said(said, "connection given up before its first byte")
        assert (source.receivers(), source.counts().session_unopened) == (0, 1)


@pytest.mark.parametrize("greets", [False, True])
def test_a_silent_stranger_is_closed_in_time_and_holds_up_nobody(greets: bool, said: pytest.LogCaptureFixture) -> None:
    with Context(IMPATIENT) as ctx, Source(ctx, "silent") as source, Receiver(ctx, "silent") as receiver:
        source.wait_receivers(1, HANG)
        before = source.counts().session_unopened  # the receiver may have been late, too, and have come again
        with lz4_peers.connect(port_of(source)) as peer:
            if greets:
                peer.send(HELLO[:7])
            source.send(b"meanwhile", flush=True)
            assert bytes(taken(receiver)) == b"meanwhile"
            assert peer.closed() == HELLO
        wait_said(said, "negotiate timeout with peer")
        assert (source.receivers(), source.counts().session_unopened) == (1, before + 1)


@pytest.mark.parametrize(
    "wrong",
    [
        b"\0\0\0\0",
        struct.pack(">HH", 5, 9) + bytes(9),
        struct.pack(">HH", 9, 3) + b"abc",
        struct.pack(">HH", 300, len(frame(bytes(60000))) - 4) + frame(bytes(60000))[4:],
    ],
    ids=["nothing", "longer", "garbage", "bomb"],
)
def test_a_receiver_whose_frames_are_wrong_is_closed_and_named(wrong: bytes, said: pytest.LogCaptureFixture) -> None:
    with Context(LZ4) as ctx, Source(ctx, "wrong") as source, subscribe(source) as peer:
        peer.send(wrong)
        peer.closed()
        assert "TCP:127.0.0.1" in wait_said(said, "CoreApi-9565-23")
        until(lambda: source.receivers() == 0)


# -- an independent source --


def publish(receiving: Context, topic: str, listening_port: int) -> None:
    """Advertise until the context has heard of it."""

    def known() -> bool:
        lz4_peers.advertise(topic, listening_port, 77)
        return any(found.topic == topic for found in receiving.topics())

    until(known)


def test_an_independent_source_is_received_in_splits_of_any_length() -> None:
    rng = random.Random(5)
    sent = [rng.choice((TEXT, rng.randbytes(400), bytes(9000)))[: rng.randrange(1, 9000)] for _ in range(60)]
    with Context(LZ4) as ctx, Receiver(ctx, "forged") as receiver, lz4_peers.listener() as listening:
        publish(ctx, "forged", listening.getsockname()[1])
        with lz4_peers.accept(listening) as peer:
            peer.greet()
            stream = b"".join(message(77, i, data) for i, data in enumerate(sent))
            wire = b""
            while stream:  # messages may lie in several frames, and frames hold several messages
                part = rng.randrange(1, 4000)
                wire += frame(stream[:part], stored=rng.random() < 0.3)
                stream = stream[part:]
            peer.send_split(wire, rng)
            assert [bytes(taken(receiver)) for _ in sent] == sent


def test_a_source_that_ends_within_a_frame_delivers_no_part_of_it(said: pytest.LogCaptureFixture) -> None:
    events: list[ReceiverEvent] = []
    got: list[bytes] = []
    with Context(LZ4) as ctx, lz4_peers.listener() as listening:
        Receiver(ctx, "cut", lambda each: got.append(bytes(each)), events.append)
        publish(ctx, "cut", listening.getsockname()[1])
        with lz4_peers.accept(listening) as peer:
            peer.greet()
            peer.send(frame(message(77, 0, b"whole")) + frame(message(77, 1, TEXT))[:-5])
            peer.finish()
            until(lambda: any(event.type == MessageType.END_OF_SESSION for event in events))
            wait_said(said, "ended within a compressed frame")
            assert got == [b"whole"]


@pytest.mark.parametrize("speaks", [b"", HELLO[:4], b"\0\0\0\x11"], ids=["silent", "half", "plain"])
def test_a_source_that_does_not_negotiate_is_left_and_tried_again(speaks: bytes) -> None:
    with Context(IMPATIENT) as ctx, Receiver(ctx, "stalls") as receiver, lz4_peers.listener() as listening:
        publish(ctx, "stalls", listening.getsockname()[1])
        with lz4_peers.accept(listening) as peer:
            peer.send(speaks)
            assert peer.closed() == HELLO
        while True:
            lz4_peers.advertise("stalls", listening.getsockname()[1], 77)
            with lz4_peers.accept(listening) as peer, contextlib.suppress(EOFError, ConnectionError):
                peer.greet()  # within the time, or again
                peer.send(frame(message(77, 0, b"at last")))
                assert bytes(taken(receiver)) == b"at last"
                break


# -- independent request ports, and clients of ours --


def test_an_independent_request_port_reads_immediate_messages() -> None:
    with Context(LZ4) as ctx, lz4_peers.listener() as listening:
        ctx.send_immediate(f"TCP:127.0.0.1:{listening.getsockname()[1]}", TEXT)
        with lz4_peers.accept(listening) as peer:
            peer.greet()
            assert next(peer.messages()).endswith(TEXT)
            assert peer.frames[0][1] < peer.frames[0][0] / 4


def test_a_request_port_that_stalls_is_left_and_tried_again() -> None:
    with Context(IMPATIENT) as ctx, lz4_peers.listener() as listening:
        ctx.send_immediate(f"TCP:127.0.0.1:{listening.getsockname()[1]}", b"kept")
        with lz4_peers.accept(listening) as peer:
            assert peer.closed() == HELLO
        while True:
            with lz4_peers.accept(listening) as peer, contextlib.suppress(EOFError, ConnectionError):
                peer.greet()  # within the time, or again
                assert next(peer.messages()).endswith(b"kept")
                break


def test_our_request_port_takes_frames_of_others_and_closes_those_that_are_wrong(
    said: pytest.LogCaptureFixture,
) -> None:
    with Context(LZ4) as ctx, ImmediateReceiver(ctx) as receiver:
        port = int(ctx.immediate_target.split(":")[2])
        with lz4_peers.connect(port) as peer:
            peer.greet()
            peer.send(frame(struct.pack(">BBHII", 0, 0, 16, 0, 0) + b"here"))
            assert bytes(taken(receiver)) == b"here"
            peer.send(struct.pack(">HH", 9, 3) + b"abc")
            peer.closed()
            wait_said(said, "CoreApi-9565-23")
        with lz4_peers.connect(port) as plain:
            plain.send(message(0, 0, b"plain"))
            assert plain.closed() in (HELLO, b"")
            wait_said(said, "Core-9565-38")
        assert receiver.recv(timeout=0) is None


def test_our_request_port_closes_who_says_nothing(said: pytest.LogCaptureFixture) -> None:
    with Context(IMPATIENT) as ctx, ImmediateReceiver(ctx) as receiver:
        with lz4_peers.connect(int(ctx.immediate_target.split(":")[2])) as silent:
            assert silent.closed() == HELLO
        wait_said(said, "negotiate timeout with peer")
        assert receiver.recv(timeout=0) is None
