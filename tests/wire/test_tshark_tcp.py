"""Captures of real runs over TCP, one per feature, judged by the stock dissectors of tshark (requirement O4)."""

from __future__ import annotations

from collections.abc import Callable

from capture import Capture
from hosts import Host

Config = Callable[..., str]


def run_pair(host: Host, source_config: str, receiver_config: str, *source_arguments: object) -> None:
    """One lbmrcv that leaves at the end of the session, one lbmsrc with the given arguments, both to their ends."""
    receiver = host.start("lbmrcv", "-c", receiver_config, "-S", "orders")
    receiver.expect("Immediate messaging target")
    host.start("lbmsrc", "-c", source_config, "-d", 2, "-L", 1, *source_arguments, "orders").finish()
    receiver.finish()


def test_o4_plain_messages(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config()
    run_pair(host, config, config, "-M", 20, "-P", 2)
    wire.stop()
    wire.judge()
    assert wire.count('lbmr.tqr.name == "orders"') > 0
    assert set(wire.values("lbmr.tir.name")) == {"orders"}
    (index,) = set(wire.values("lbmr.tir.index"))
    (port,) = set(wire.values("lbmr.tir.tcp.port"))
    assert 14371 <= int(port) <= 14390
    assert set(wire.values("lbmr.hdr.ver")) == {"0"}
    (session,) = set(wire.values("lbmr.tir.tcp.session_id"))
    assert set(wire.values("lbmc.tcp_sid.sid")) == {session}
    data = f"lbmc.tidx == {index} && lbmc.sqn && tcp.srcport == {port} && !lbmc.tsni"
    numbers = [int(number, 0) for number in wire.values("lbmc.sqn", data)]
    assert numbers == list(range(numbers[0], numbers[0] + 20))


def test_o4_fragmented_message(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config("context transport_tcp_datagram_max_size 2000")
    run_pair(host, config, config, "-M", 3, "-l", 9000)
    wire.stop()
    wire.judge()
    lengths = {int(length, 0) for length in wire.values("lbmc.frag.len")}
    assert lengths == {9000}
    offsets = [int(offset, 0) for offset in wire.values("lbmc.frag.offset")]
    assert offsets.count(0) == 3
    assert offsets == sorted(offsets[: len(offsets) // 3]) * 3


def test_o4_implicit_batches(host: Host, loopback_config: Config, wire: Capture) -> None:
    # Paced: Wireshark decodes at most some 500 messages of one segment, and complains of full TCP windows.
    config = loopback_config()
    run_pair(host, config, config, "-M", 2000, "-P", 1)
    wire.stop()
    wire.judge()
    numbers = [int(number, 0) for number in wire.values("lbmc.sqn", "lbmc && !lbmc.tsni")]
    assert len(numbers) == 2000
    assert numbers == list(range(numbers[0], numbers[0] + 2000))


def test_o4_source_side_filtering(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config(
        "source transport_source_side_filtering_behavior inclusion",
        "source transport_tcp_port 14375",
        "context request_tcp_port 0",
    )
    source = host.start("lbmmsrc", "-c", config, "-S", 4, "-M", 400, "-d", 4, "-L", 12)
    receiver = host.start("lbmrcv", "-c", config, "-r", 100, "29west.example.multi.2")
    receiver.finish()  # it leaves while the source is there to be told
    source.finish()
    wire.stop()
    wire.judge()
    assert wire.count("lbmc.ssf_init.transport_idx") > 0
    assert wire.count("lbmc.ssf_creq.topic_idx") > 0
    indexes = dict(zip(wire.values("lbmr.tir.name"), wire.values("lbmr.tir.index")))
    wanted = indexes["29west.example.multi.2"]
    assert set(wire.values("lbmc.ssf_creq.topic_idx")) == {wanted}
    assert set(wire.values("lbmc.tidx", "lbmc.sqn && !lbmc.tsni")) == {wanted}


def test_o4_wildcard_queries(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config()
    receiver = host.start("lbmwrcv", "-c", config, "-r", 30, "^Market.*$")
    receiver.expect("Creating wildcard receiver")
    host.start("lbmmsrc", "-c", config, "-S", 3, "-r", "Market", "-M", 30, "-d", 3, "-L", 2).finish()
    receiver.finish()
    wire.stop()
    wire.judge()
    assert wire.count("lbmr.tqr.pattern_type == 1") > 0
    assert any(pattern.endswith("^Market.*$") for pattern in wire.values("lbmr.tqr.pattern"))
    assert set(wire.values("lbmr.tir.name")) == {"Market.0", "Market.1", "Market.2"}


def test_o4_unicast_resolution_through_lbmrd(host: Host, loopback_config: Config, wire: Capture) -> None:
    daemon = host.start("lbmrd", "-i", "127.0.0.1", "-p", 15380)
    daemon.expect("lbmrd started on 127.0.0.1:15380")
    config = loopback_config("context resolver_unicast_daemon 127.0.0.1:15380")
    run_pair(host, config, config, "-M", 20)
    wire.stop()
    wire.judge()
    assert wire.count("lbmr && ip.dst == 224.0.0.0/4") == 0
    assert (
        wire.count("lbmr && udp.dstport == 15380 && lbmr.hdr.type == 2")
        + wire.count("lbmr && udp.dstport == 15380 && lbmr.hdr.type == 3")
        > 0
    )
    assert set(wire.values("lbmr.tir.name", "udp.srcport == 15380")) == {"orders"}
    assert "0.0.0.0" not in wire.values("lbmr.tir.tcp.ip", "udp.srcport == 15380")


def test_o4_many_topics(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config()
    receiver = host.start("lbmmrcv", "-c", config, "-R", 500)
    receiver.expect("Will start")
    host.start("lbmmsrc", "-c", config, "-S", 500, "-M", 5000, "-d", 5, "-L", 2).finish()
    receiver.signal(15)
    assert "received 5000 messages" in receiver.finish()
    wire.stop()
    wire.judge()
    assert len(set(wire.values("lbmr.tir.name"))) == 500
    assert len(set(wire.values("lbmr.tir.index"))) == 500


def test_o4_topic_resolution_request(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config()
    host.start("lbmtrreq", "-c", config, "-a", "-q", "-w", "-i", 200, "-d", 1, "-L", 2).finish()
    wire.stop()
    wire.judge()
    assert wire.count("lbmr.hdr.ext_type == 4") >= 1
