"""Captures of real runs over LBT-RM and LBT-RU, judged by the stock dissectors of tshark (requirement O4).

Each capture is taken where the source's cable ends, behind the impairment relay, which makes the packets that a clean
network never shows. Datagrams leave one by one (um_udp_segmentation_offload 0): what is sent in segments appears as one
datagram before it is cut.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from capture import Capture, Packets, is_on, numbers
from fixtures import needs_namespaces
from relay import Star
from streams import LATE, Setting, Sink, Source, Stream

pytestmark = needs_namespaces
WHOLE = "context um_udp_segmentation_offload 0"


@pytest.fixture
def star() -> Iterator[Star]:
    star = Star(3, seed=5)
    try:
        yield star
    finally:
        star.close()


@pytest.fixture
def cable(star: Star, tmp_path: Path) -> Iterator[Capture]:
    """A running capture at the source's end."""
    capture = Capture(star.hosts[0], tmp_path / "run.pcap", "eth0")
    try:
        yield capture
    finally:
        capture.close()


FIELDS = {
    "lbtrm": {
        "again": "lbtrm.data.flags_fec_type.rx",
        "lead": "lbtrm.sm.lead_sqn",
        "session": "lbtrm.hdr.session_id",
        "tir": "lbmr.tir.lbtrm.sessid",
    },
    "lbtru": {
        "again": "lbtru.hdr.flags.rx",
        "lead": "lbtru.sm.lead",
        "session": "lbtru.opt_sid.session_id",
        "tir": "lbmr.tir.lbtru.session_id",
    },
}


def judged(capture: Capture, transport: str, *fields: str) -> Packets:
    """What both transports have, and `fields`, of a capture without complaints."""
    capture.stop()
    capture.judge()
    common = (
        FIELDS[transport]["again"],
        *(f"{transport}.{each}" for each in ("data.sqn", "nak", "nak.list.nak", "ncf")),
    )
    packets = capture.read("ip.src", "ip.dst", "lbmc", *common, f"{transport}.ncf.reason", *fields)
    assert not packets.where(lambda packet: bool(packet[f"{transport}.data.sqn"]) and not packet["lbmc"]), "no message"
    return packets


def again(packets: Packets, transport: str) -> Packets:
    """Datagrams that are sent again."""
    return packets.where(lambda packet: is_on(packet, FIELDS[transport]["again"]))


@pytest.mark.parametrize("transport", ["lbtrm", "lbtru"])
def test_o4_data_and_session_messages(star: Star, cable: Capture, tmp_path: Path, transport: str) -> None:
    config = Setting(tmp_path, transport).write(WHOLE, "source transport_topic_sequence_number_info_interval 300")
    stream = Stream(star, config, 50, "-s", 100, "-r", 200, "-f", 1)
    stream.go()
    stream.source.sent()
    star.wait_for(rf"{Setting(tmp_path, transport).lead}\.sm", from_=0)
    for receiver in (1, 2) if transport == "lbtru" else ():
        star.wait_for(r"ru\.ack", from_=receiver)
    result = stream.finish()
    fields = FIELDS[transport]
    creqs = ("lbtru.hdr.request", "lbtru.ack.sqn")
    wanted = (fields["tir"], fields["session"], fields["lead"], f"{transport}.sm", "lbmc.sqn", "lbmc.tsni", *creqs)
    packets = judged(cable, transport, *wanted)
    (session,) = set(packets.numbers(fields["tir"]))
    assert set(packets.numbers(fields["session"])) == {session}
    assert f":{session:08x}" in result.source["source"]
    sent = packets.where(lambda packet: not is_on(packet, fields["again"])).numbers(f"{transport}.data.sqn")
    before = {(number - 1) % 2**32 for number in sent} - {*sent}  # what the first number of a stream follows
    assert before == {0xFFFFFFFF} if transport == "lbtrm" else len(before) == 2  # each client has numbers of its own
    assert packets.having(f"{transport}.sm")
    assert set(packets.numbers(fields["lead"])) <= {*sent, *before}  # told before any data, in the answer to a CREQ
    assert len(set(packets.where(lambda packet: not packet["lbmc.tsni"]).values("lbmc.sqn"))) == 50
    if transport == "lbtru":
        receivers = {Star.address(1), Star.address(2)}
        for what in creqs:  # a CREQ from each; again if the answer is late
            assert set(packets.having(what).values("ip.src")) == receivers


@pytest.mark.parametrize("transport", ["lbtrm", "lbtru"])
def test_o4_naks_confirmations_and_retransmissions(star: Star, cable: Capture, tmp_path: Path, transport: str) -> None:
    # Repairs are few a second, so that NAKs are refused for each reason but "do not retry".
    setting = Setting(tmp_path, transport, repair_rate=200_000)
    config = setting.write(
        WHOLE,
        "source transport_{t}_ignore_interval 200",
        "receiver transport_{t}_nak_generation_interval 20000",
    )
    stream = Stream(star, config, 1500, "-s", 200, "-r", 1000, "-f", 1)
    star.rule("loss", kinds=f"{setting.lead}.data,{setting.lead}.rx", from_=0, loss="8%")
    stream.go()
    result = stream.finish(lead=setting.lead)
    for report in result.reports:
        report.assert_complete(1500)
    packets = judged(cable, transport)
    repairs = again(packets, transport)
    assert len(repairs) == result.source["rxs_sent"] > 50
    naks = result.counters.flow("sent", rf"{setting.lead}\.nak", to=0)
    assert len(packets.having(f"{transport}.nak")) == naks > 10
    asked = packets.numbers(f"{transport}.nak.list.nak")
    assert len(asked) == result.source["naks_rcved"]
    assert set(repairs.numbers(f"{transport}.data.sqn")) <= set(asked)
    assert packets.having(f"{transport}.ncf")
    reasons = set(packets.numbers(f"{transport}.ncf.reason"))
    assert reasons and reasons <= {1, 2, 3}


@pytest.mark.parametrize("transport", ["lbtrm", "lbtru"])
def test_o4_receivers_on_xsps_ask_for_repairs_and_heed_refusals(
    star: Star, cable: Capture, tmp_path: Path, transport: str
) -> None:
    """What a receiver on an XSP does by its timers: NAKs, and the waits that confirmations (NCFs) ask it for."""
    setting = Setting(tmp_path, transport, repair_rate=200_000)
    config = setting.write(
        WHOLE,
        "context request_tcp_port_low 0",
        "context request_tcp_port_high 0",
        "source transport_{t}_ignore_interval 400",
        "receiver transport_{t}_nak_generation_interval 30000",
    )
    stream = Stream(star, config, 1000, "-s", 200, "-r", 1000, "-f", 1, sink=("-x",))
    star.rule("loss", kinds=f"{setting.lead}.data,{setting.lead}.rx", from_=0, loss="8%")
    stream.go()
    result = stream.finish(lead=setting.lead)
    for report in result.reports:
        report.assert_complete(1000)
        assert report.data["xsp_begins"] == report.total("begins") == 1
        refusals = [f"ncfs_{kind}" for kind in ("ignored", "shed", "rx_delay", "unknown")]
        assert sum(report.transport(kind) for kind in refusals) > 0
    packets = judged(cable, transport)
    asked = packets.numbers(f"{transport}.nak.list.nak")
    assert len(asked) == result.source["naks_rcved"]
    naks = len(packets.having(f"{transport}.nak"))
    # A sink tells its counts once it has all messages; its XSP may ask for an announcement that is lost after that.
    for captured, count in ((len(asked), "naks_sent"), (naks, "nak_pckts_sent")):
        assert captured >= sum(report.transport(count) for report in result.reports) >= captured - LATE > 10
    assert packets.having(f"{transport}.ncf")
    assert result.source["naks_ignored"] + result.source["naks_shed"] + result.source["naks_rx_delay_ignored"] > 0


def test_o4_receivers_on_xsps_send_no_naks_while_they_are_cut_off(star: Star, cable: Capture, tmp_path: Path) -> None:
    config = Setting(tmp_path, "lbtrm").write(
        WHOLE,
        "context request_tcp_port_low 0",
        "context request_tcp_port_high 0",
        "receiver transport_lbtrm_nak_generation_interval 60000",
    )
    stream = Stream(star, config, 500, "-s", 200, "-r", 1000, "-f", 1, sink=("-x",))
    for sink in stream.sinks:
        sink.process.signal(signal.SIGUSR2)
        sink.process.expect("^naks off")
    star.rule("loss", kinds="rm.data", from_=0, loss="8%")
    stream.go()
    stream.source.sent()
    time.sleep(1)  # several times what a first NAK waits
    assert star.counters().flow("lost", r"rm\.data") > 0
    assert star.counters().flow("seen", r"rm\.nak") == 0
    for sink in stream.sinks:
        sink.process.signal(signal.SIGUSR2)
        sink.process.expect("^naks on")
    result = stream.finish()
    for report in result.reports:
        report.assert_complete(500)
        assert report.data["xsp_begins"] == 1
        assert report.transport("naks_sent") > 0
    assert judged(cable, "lbtrm").having("lbtrm.nak")


@pytest.mark.parametrize("transport", ["lbtrm", "lbtru"])
def test_o4_refusal_of_what_left_the_window(star: Star, cable: Capture, tmp_path: Path, transport: str) -> None:
    """A receiver that asks for datagrams the source no longer has is told not to ask again."""
    setting = Setting(tmp_path, transport)
    config = setting.write(
        WHOLE,
        "source transport_{t}_transmission_window_size 65536",
        "receiver transport_{t}_nak_generation_interval 2000",
    )
    lead = setting.lead
    stream = Stream(star, config, 3000, "-s", 200, "-r", 2000, "-f", 1)
    # NAKs arrive half a second late, when the window of 0.16 s has moved on; the trail in the data would tell the
    # receiver as well, so its data is late too.
    star.rule("loss", kinds=f"{lead}.data", from_=0, to=1, loss="2%")
    star.rule("late", kinds=f"{lead}.nak", delay="500ms")
    star.rule("data", kinds=f"{lead}.data,{lead}.sm", to=1, delay="400ms")
    stream.go()
    result = stream.finish()
    assert result.reports[0].total("lost_single") > 0
    for report in result.reports:
        report.assert_exact()
    assert 0 in judged(cable, transport).numbers(f"{transport}.ncf.reason")


def test_o4_reset_of_a_client_that_was_given_up(star: Star, cable: Capture, tmp_path: Path) -> None:
    config = Setting(tmp_path, "lbtru").write(WHOLE, "source transport_lbtru_client_activity_timeout 5000")
    sinks = [Sink(host, config) for host in star.hosts[1:]]
    source = Source(star.hosts[0], config, "-n", 1 << 60, "-s", 100, "-r", 100)
    for sink in sinks:
        sink.ready()
    source.go()
    sinks[0].process.suspend()
    source.process.expect("^disconnect ")
    sinks[0].process.signal(signal.SIGCONT)
    sinks[0].process.expect(r"^end ")
    sinks[0].process.expect(r"^begin .*\n(.*\n)*begin ")
    for sink in sinks:
        sink.stop().assert_exact()
    source.finish()
    packets = judged(cable, "lbtru", "lbtru.hdr.type", "lbtru.hdr.request", "lbtru.hdr.flags.syn")
    first = Star.address(1)
    resets = packets.where(lambda packet: 7 in numbers(packet, "lbtru.hdr.type"))
    assert set(resets.values("ip.dst")) == {first}
    creqs = packets.having("lbtru.hdr.request")
    assert set(creqs.values("ip.src")) == {first, Star.address(2)}
    answers = packets.where(lambda packet: is_on(packet, "lbtru.hdr.flags.syn"))
    assert creqs.values("ip.src").count(first) >= 2  # it connected twice, and was answered
    assert answers.values("ip.dst").count(first) >= 2
