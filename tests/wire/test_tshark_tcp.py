"""Captures of real runs over TCP, one per feature, judged by the stock dissectors of tshark (requirement O4)."""

from __future__ import annotations

from collections.abc import Callable

from capture import Capture
from hosts import Host

Config = Callable[..., str]


BEGIN = "Beginning of Transport Session"
WAITS = ("-d", 3600, "-L", 3600)  # until it is told to go on


def run_pair(host: Host, source_config: str, receiver_config: str, messages: int, *source_arguments: object) -> None:
    """One lbmrcv that leaves at the end of the session, one lbmsrc that sends it so many messages, both to their
    ends."""
    receiver = host.start("lbmrcv", "-c", receiver_config, "-S", "-v", "orders")
    receiver.expect("Immediate messaging target")
    source = host.start("lbmsrc", "-c", source_config, *WAITS, "-M", messages, *source_arguments, "orders")
    receiver.expect(BEGIN)
    source.go_on()
    receiver.expect_times(r"\[\d+\], \d+ bytes$", messages)
    source.stop_lingering()
    receiver.finish()


def test_o4_plain_messages(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config()
    run_pair(host, config, config, 20, "-P", 2)
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
    run_pair(host, config, config, 3, "-l", 9000)
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
    run_pair(host, config, config, 2000, "-P", 1)
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
    source = host.start("lbmmsrc", "-c", config, *WAITS, "-S", 4, "-M", 400)
    receiver = host.start("lbmrcv", "-c", config, "-r", 100, "29west.example.multi.2")
    receiver.expect(BEGIN)
    source.go_on()
    receiver.finish()  # it leaves while the source is there to be told
    source.stop_lingering()
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
    source = host.start("lbmmsrc", "-c", config, *WAITS, "-S", 3, "-r", "Market", "-M", 30)
    receiver.expect_times("^new topic ", 3)
    source.go_on()
    receiver.finish()
    source.stop_lingering()
    wire.stop()
    wire.judge()
    assert wire.count("lbmr.tqr.pattern_type == 1") > 0
    assert any(pattern.endswith("^Market.*$") for pattern in wire.values("lbmr.tqr.pattern"))
    assert set(wire.values("lbmr.tir.name")) == {"Market.0", "Market.1", "Market.2"}


def test_o4_unicast_resolution_through_lbmrd(host: Host, loopback_config: Config, wire: Capture) -> None:
    daemon = host.start("lbmrd", "-i", "127.0.0.1", "-p", 15380)
    daemon.expect("lbmrd started on 127.0.0.1:15380")
    config = loopback_config("context resolver_unicast_daemon 127.0.0.1:15380")
    run_pair(host, config, config, 20)
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
    receiver = host.start("lbmmrcv", "-c", config, "-R", 500, "-v")
    receiver.expect("Will start")
    source = host.start("lbmmsrc", "-c", config, *WAITS, "-S", 500, "-M", 5000)
    receiver.expect_times(BEGIN, 500)
    source.go_on()
    receiver.expect_times(", 25 bytes$", 5000)
    source.stop_lingering()
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


def test_o4_late_join(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config()
    # These are also the ports of a protocol that tshark knows by them.
    host.run("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=48896 48899")
    source = host.start("lbmsrc", "-c", config, "-d", 0, "-M", 60, "-L", 3600, "-j", 50000000, "orders")
    source.expect("^Lingering")
    host.start("lbmrcv", "-c", config, "-r", 60, "orders").finish()
    source.stop_lingering()
    wire.stop()
    wire.judge()
    assert wire.count("lbmc.lji_req") > 0
    assert wire.count("lbmc.ume_lj_info") > 0
    asked = list(dict.fromkeys(wire.values("lbmc.ume_rxreq.seqnum")))  # again if the answer is late
    assert asked == [str(number) for number in range(len(asked))] and len(asked) > 5
    assert wire.count("lbmc.type == 10") > 0


def test_o4_unicast_immediate_messages(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-v", "-r", 16, "orders")
    target = receiver.expect(r"^Immediate messaging target: (TCP:[\d.]+:\d+)$").group(1)
    port = target.rsplit(":", 1)[1]
    sender = host.start("lbmimsg", "-c", config, "-M", 5, "-L", 3600, "-o", "-T", target)
    receiver.expect(r"^IM \[.*\]\[4\], 25 bytes$")
    sender.stop_lingering()
    sender = host.start("lbmimsg", "-c", config, "-M", 10, "-L", 3600, "-l", 2000, "-T", target, "orders")
    receiver.expect(r"\[9\], 2000 bytes$")
    sender.stop_lingering()
    requester = host.start("lbmireq", "-c", config, "-p", 0, "-P", 1, "-L", 3600, "-T", target, "orders")
    receiver.expect(r"\[orders\]\[TCP:[\d.:]+\]\[\d+\], Request")
    requester.expect("Done waiting for responses")
    wire.stop()  # while both are there: each holds a connection to the other, and would try it again
    requester.stop_lingering()
    receiver.finish()
    wire.judge()
    assert wire.values("lbmc.sqn", f"lbmc.stream && tcp.dstport == {port}") == [
        *map(str, range(5)),
        *map(str, range(10)),
        "0",
    ]
    assert set(wire.values("lbmc.topicname.topic")) == {"orders"}
    assert wire.count("lbmc.destination") > 0
    assert wire.count("lbmc.tcp_request.qidx") > 0


def test_o4_requests_and_responses(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config()
    responder = host.start("lbmresp", "-c", config, "-E", "-r", 2, "orders")
    requester = host.start("lbmreq", "-c", config, "-R", 3, "-P", 3600, *WAITS, "-v", "orders")
    responder.expect(BEGIN)
    for number in (1, 2, 3):
        requester.go_on()
        requester.expect_times("^Response ", 2 * number)
        responder.expect_times("^Done sending responses", number)
    requester.go_on()
    requester.expect("^Lingering")
    wire.stop()  # while the connection to the requester is there
    requester.stop_lingering()
    responder.finish()
    wire.judge()
    assert [int(index, 0) for index in wire.values("lbmc.tcp_request.qidx")] == [1, 2, 3]
    assert {int(port, 0) for port in wire.values("lbmc.tcp_request.port")} == {14392}
    (instance,) = set(wire.values("lbmc.ctxinst.ctxinst", "lbmc.ctxinstr"))
    answers = "lbmc.ctxinstd && tcp.dstport == 14392"
    assert set(wire.values("lbmc.ctxinst.ctxinst", answers)) == {instance}
    assert sorted(int(index, 0) for index in wire.values("lbmc.tidx", answers)) == [1, 1, 2, 2, 3, 3]
