"""Captures of real runs over TCP, one per feature, judged by the stock dissectors of tshark (requirement O4)."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

from capture import Capture, Packet, numbers
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
    told = ("lbmr.tqr.name", "lbmr.tir.name", "lbmr.tir.index", "lbmr.tir.tcp.port", "lbmr.tir.tcp.session_id")
    packets = wire.read(*told, "lbmr.hdr.ver", "lbmc.tcp_sid.sid", "lbmc.tidx", "lbmc.sqn", "lbmc.tsni", "tcp.srcport")
    assert "orders" in packets.values("lbmr.tqr.name")
    assert set(packets.values("lbmr.tir.name")) == {"orders"}
    (index,) = set(packets.numbers("lbmr.tir.index"))
    (port,) = set(packets.numbers("lbmr.tir.tcp.port"))
    assert 14371 <= port <= 14390
    assert set(packets.numbers("lbmr.hdr.ver")) == {0}
    (session,) = set(packets.values("lbmr.tir.tcp.session_id"))
    assert set(packets.values("lbmc.tcp_sid.sid")) == {session}

    def is_data(packet: Packet) -> bool:
        return (
            index in numbers(packet, "lbmc.tidx") and port in numbers(packet, "tcp.srcport") and not packet["lbmc.tsni"]
        )

    sent = packets.where(is_data).numbers("lbmc.sqn")
    assert sent == list(range(sent[0], sent[0] + 20))


def test_o4_fragmented_message(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config("context transport_tcp_datagram_max_size 2000")
    run_pair(host, config, config, 3, "-l", 9000)
    wire.stop()
    wire.judge()
    packets = wire.read("lbmc.frag.len", "lbmc.frag.offset")
    assert set(packets.numbers("lbmc.frag.len")) == {9000}
    offsets = packets.numbers("lbmc.frag.offset")
    assert offsets.count(0) == 3
    assert offsets == sorted(offsets[: len(offsets) // 3]) * 3


def test_o4_implicit_batches(host: Host, loopback_config: Config, wire: Capture) -> None:
    # Paced: Wireshark decodes at most some 500 messages of one segment, and complains of full TCP windows.
    config = loopback_config()
    run_pair(host, config, config, 2000, "-P", 1)
    wire.stop()
    wire.judge()
    sent = wire.read("lbmc.sqn", "lbmc.tsni").where(lambda packet: not packet["lbmc.tsni"]).numbers("lbmc.sqn")
    assert len(sent) == 2000
    assert sent == list(range(sent[0], sent[0] + 2000))


def test_o4_source_side_filtering(host: Host, loopback_config: Config, wire: Capture) -> None:
    """What is sent before the source has been told that its receiver includes the topic, which takes a connection of
    its own, does not reach it: eight seconds of messages are sent, and the receiver leaves with a fortieth of its own.
    """
    config = loopback_config(
        "source transport_source_side_filtering_behavior inclusion",
        "source transport_tcp_port 14375",
        "context request_tcp_port 0",
    )
    source = host.start("lbmmsrc", "-c", config, *WAITS, "-S", 4, "-M", 16000, "-b", 4, "-P", 2)
    receiver = host.start("lbmrcv", "-c", config, "-r", 100, "29west.example.multi.2")
    receiver.expect(BEGIN)
    source.go_on()
    receiver.finish()  # it leaves while the source is there to be told
    source.stop_lingering()
    wire.stop()
    wire.judge()
    told = ("lbmr.tir.name", "lbmr.tir.index", "lbmc.ssf_init.transport_idx", "lbmc.ssf_creq.topic_idx")
    packets = wire.read(*told, "lbmc.tidx", "lbmc.sqn", "lbmc.tsni")
    assert packets.having("lbmc.ssf_init.transport_idx")
    assert packets.having("lbmc.ssf_creq.topic_idx")
    indexes = dict(zip(packets.values("lbmr.tir.name"), packets.values("lbmr.tir.index")))
    wanted = indexes["29west.example.multi.2"]
    assert set(packets.values("lbmc.ssf_creq.topic_idx")) == {wanted}
    data = packets.having("lbmc.sqn").where(lambda packet: not packet["lbmc.tsni"])
    assert set(data.values("lbmc.tidx")) == {wanted}


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
    packets = wire.read("lbmr.tqr.pattern_type", "lbmr.tqr.pattern", "lbmr.tir.name")
    assert 1 in packets.numbers("lbmr.tqr.pattern_type")
    assert any(pattern.endswith("^Market.*$") for pattern in packets.values("lbmr.tqr.pattern"))
    assert set(packets.values("lbmr.tir.name")) == {"Market.0", "Market.1", "Market.2"}


def test_o4_unicast_resolution_through_lbmrd(host: Host, loopback_config: Config, wire: Capture) -> None:
    daemon = host.start("lbmrd", "-i", "127.0.0.1", "-p", 15380)
    daemon.expect("lbmrd started on 127.0.0.1:15380")
    config = loopback_config("context resolver_unicast_daemon 127.0.0.1:15380")
    run_pair(host, config, config, 20)
    wire.stop()
    wire.judge()
    ports = ("udp.srcport", "udp.dstport")
    packets = wire.read(*ports, "ip.dst", "lbmr", "lbmr.hdr.type", "lbmr.tir.name", "lbmr.tir.tcp.ip").having("lbmr")
    assert packets and not any(ip_address(address).is_multicast for address in packets.values("ip.dst"))
    asked = packets.where(lambda packet: 15380 in numbers(packet, "udp.dstport"))
    assert {2, 3} & set(asked.numbers("lbmr.hdr.type"))
    answers = packets.where(lambda packet: 15380 in numbers(packet, "udp.srcport"))
    assert set(answers.values("lbmr.tir.name")) == {"orders"}
    assert "0.0.0.0" not in answers.values("lbmr.tir.tcp.ip")


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
    packets = wire.read("lbmr.tir.name", "lbmr.tir.index")
    assert len(set(packets.values("lbmr.tir.name"))) == 500
    assert len(set(packets.values("lbmr.tir.index"))) == 500


def test_o4_topic_resolution_request(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config()
    host.start("lbmtrreq", "-c", config, "-a", "-q", "-w", "-i", 200, "-d", 1, "-L", 2).finish()
    wire.stop()
    wire.judge()
    assert 4 in wire.read("lbmr.hdr.ext_type").numbers("lbmr.hdr.ext_type")


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
    packets = wire.read("lbmc.lji_req", "lbmc.ume_lj_info", "lbmc.ume_rxreq.seqnum", "lbmc.type")
    assert packets.having("lbmc.lji_req")
    assert packets.having("lbmc.ume_lj_info")
    asked = list(dict.fromkeys(packets.numbers("lbmc.ume_rxreq.seqnum")))  # again if the answer is late
    assert asked == list(range(len(asked))) and len(asked) > 5
    assert 10 in packets.numbers("lbmc.type")


def test_o4_unicast_immediate_messages(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-v", "-r", 16, "orders")
    target = receiver.expect(r"^Immediate messaging target: (TCP:[\d.]+:\d+)$").group(1)
    port = int(target.rsplit(":", 1)[1])
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
    others = ("lbmc.topicname.topic", "lbmc.destination", "lbmc.tcp_request.qidx")
    packets = wire.read("tcp.dstport", "lbmc.stream", "lbmc.sqn", *others)
    sent = packets.having("lbmc.stream").where(lambda packet: port in numbers(packet, "tcp.dstport"))
    assert sent.numbers("lbmc.sqn") == [*range(5), *range(10), 0]
    assert set(packets.values("lbmc.topicname.topic")) == {"orders"}
    assert packets.having("lbmc.destination")
    assert packets.having("lbmc.tcp_request.qidx")


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
    instances = ("lbmc.ctxinst.ctxinst", "lbmc.ctxinstr", "lbmc.ctxinstd")
    packets = wire.read("tcp.dstport", "lbmc.tcp_request.qidx", "lbmc.tcp_request.port", "lbmc.tidx", *instances)
    assert packets.numbers("lbmc.tcp_request.qidx") == [1, 2, 3]
    assert set(packets.numbers("lbmc.tcp_request.port")) == {14392}
    (instance,) = set(packets.having("lbmc.ctxinstr").values("lbmc.ctxinst.ctxinst"))
    answers = packets.having("lbmc.ctxinstd").where(lambda packet: 14392 in numbers(packet, "tcp.dstport"))
    assert set(answers.values("lbmc.ctxinst.ctxinst")) == {instance}
    assert sorted(answers.numbers("lbmc.tidx")) == [1, 1, 2, 2, 3, 3]
