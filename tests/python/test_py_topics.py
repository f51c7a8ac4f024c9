"""Topics are found without joining: Context.topics() and what it tells of each source."""

from __future__ import annotations

import asyncio
import struct

import pytest
from pairs import HANG, loopback, until

from um_cffi import InvalidArgument, NotSupported, Receiver, Source, TimedOut
from um_cffi.commands import _naks


def test_topics_tell_sources_transports_and_ages_without_joining() -> None:
    with loopback() as sending, loopback() as looking:
        tcp = Source(sending, "prices.one")
        Source(sending, "prices.two", transport="lbtrm")
        Source(sending, "news", transport="lbtipc")
        until(lambda: len(looking.topics()) == 3)
        found = looking.topics("^prices")
        assert [(each.topic, each.transport, each.in_use) for each in found] == [
            ("prices.one", "tcp", False),
            ("prices.two", "lbtrm", False),
        ]
        assert found[0].source.startswith("TCP:127.0.0.1:") and all(each.age >= 0 for each in found)
        assert tcp.receivers() == 0
        assert len(looking.topics(limit=2)) == 2 and looking.topics(limit=0) == []
        receiver = Receiver(looking, "prices.one")
        receiver.wait_ready(1, HANG)
        until(lambda: looking.topics("one")[0].in_use)
        tcp.close()
        until(lambda: [each.topic for each in looking.topics()] == ["news", "prices.two"])


def test_many_topics_are_all_told() -> None:
    with loopback() as ctx:
        kept = [Source(ctx, f"many.{number}") for number in range(300)]
        until(lambda: len(ctx.topics(r"^many\.")) == 300)
        assert len({each.topic for each in ctx.topics()}) == len(kept)


def test_a_request_makes_quiet_sources_known_to_a_new_context() -> None:
    silence = {"resolver_advertisement_minimum_initial_interval": 0, "resolver_advertisement_sustain_interval": 0}
    with loopback() as sending, Source(sending, "quiet", options=silence), loopback() as looking:

        def asked() -> bool:
            looking.request_resolution(duration=0)
            return len(looking.topics("^quiet$")) == 1

        until(asked)


def test_wrong_patterns_and_closed_contexts_are_refused() -> None:
    with loopback() as ctx:
        with pytest.raises(InvalidArgument, match="does not compile"):
            ctx.topics("(")
        with pytest.raises(InvalidArgument, match="limit -1"):
            ctx.topics(limit=-1)
    with pytest.raises(InvalidArgument, match="closed"):
        ctx.topics()


def test_a_multicast_receiver_that_has_joined_gets_everything_from_then_on() -> None:
    with loopback() as sending, loopback() as receiving:
        source = Source(sending, "group", transport="lbtrm")
        receiver = Receiver(receiving, "group")
        receiver.wait_session(1, HANG)
        asyncio.run(receiver.await_session(1, HANG))
        for number in range(10):
            source.send(b"%d" % number, flush=True)
        got: list[bytes] = []
        while len(got) < 10:
            batch = receiver.recv_batch(timeout=HANG)
            assert batch is not None
            got += [bytes(message.data) for message in batch.messages()]
        assert got == [b"%d" % number for number in range(10)]
        with pytest.raises(TimedOut, match="1 of 2 sources are joined"):
            receiver.wait_session(2, 0)
        for call in (source.receivers, source.wait_receivers, lambda: asyncio.run(source.await_receivers())):
            with pytest.raises(NotSupported, match=r"does not know who receives; .*wait_session\(\)"):
                call()


@pytest.mark.parametrize("transport", ["tcp", "lbtru", "lbtipc", "lbtsmx"])
def test_other_sources_know_how_many_contexts_receive(transport: str) -> None:
    with loopback() as sending, loopback() as receiving:
        source = Source(sending, "counted", options={"transport": transport})
        assert source.receivers() == 0
        receiver = Receiver(receiving, "counted")
        source.wait_receivers(1, HANG)
        assert source.receivers() == 1 and asyncio.run(source.await_receivers(1, HANG)) is None
        receiver.close()
        until(lambda: source.receivers() == 0)


def test_naks_of_a_session_id_that_begins_with_zeros_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """`um top` left out one LBT-RM session in sixteen."""
    monkeypatch.setattr(_naks, "_open", lambda: None)
    watch = _naks.NakWatch()
    source = "LBTRM:127.0.0.1:14390:05d40e73:224.10.10.10:14400[1]"
    nak = bytes([0x03, 0, 0, 0]) + struct.pack("!IHH", 0x05D40E73, 2, 0) + bytes(8)
    ip = bytes([0x45]) + bytes(11) + bytes([127, 0, 0, 1]) * 2
    packet = ip + struct.pack("!HHHH", 14360, 14390, 8 + len(nak), 0) + nak
    watch._count(packet, dict(_naks._key(source)))
    assert [(receiver, asking.naks) for receiver, _, asking in watch.ranking()] == [("127.0.0.1:14360", 2)]
