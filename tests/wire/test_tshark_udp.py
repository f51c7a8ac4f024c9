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
from capture import Capture
from fixtures import needs_namespaces
from relay import Star
from streams import Setting, Sink, Source, Stream

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
        "again": "lbtrm.data.flags_fec_type.rx == 1",
        "lead": "lbtrm.sm.lead_sqn",
        "session": "lbtrm.hdr.session_id",
        "tir": "lbmr.tir.lbtrm.sessid",
    },
    "lbtru": {
        "again": "lbtru.hdr.flags.rx == 1",
        "lead": "lbtru.sm.lead",
        "session": "lbtru.opt_sid.session_id",
        "tir": "lbmr.tir.lbtru.session_id",
    },
}


def judge(capture: Capture, transport: str) -> None:
    capture.stop()
    capture.judge()
    assert capture.count(f"{transport}.data.sqn && !lbmc") == 0, "payload that is no message"


def numbers(capture: Capture, field: str, display_filter: str = "") -> list[int]:
    return [int(value, 0) for value in capture.values(field, display_filter)]


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
    judge(cable, transport)
    fields = FIELDS[transport]
    (session,) = set(numbers(cable, fields["tir"]))
    assert set(numbers(cable, fields["session"])) == {session}
    assert f":{session:08x}" in result.source["source"]
    sent = numbers(cable, f"{transport}.data.sqn", f"!({fields['again']})")
    before = {(number - 1) % 2**32 for number in sent} - {*sent}  # what the first number of a stream follows
    assert before == {0xFFFFFFFF} if transport == "lbtrm" else len(before) == 2  # each client has numbers of its own
    assert cable.count(f"{transport}.sm") > 0
    assert set(numbers(cable, fields["lead"])) <= {*sent, *before}  # told before any data, in the answer to a CREQ
    assert len(set(cable.values("lbmc.sqn", "!lbmc.tsni"))) == 50
    if transport == "lbtru":
        receivers = {Star.address(1), Star.address(2)}
        for what in ("lbtru.hdr.request", "lbtru.ack.sqn"):  # a CREQ from each; again if the answer is late
            assert set(cable.values("ip.src", what)) == receivers


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
    judge(cable, transport)
    flow, again = result.counters.flow, FIELDS[transport]["again"]
    # The source's count is taken when its last client has left, and may miss what was then on its way.
    assert result.source["rxs_sent"] + 5 >= cable.count(again) >= result.source["rxs_sent"] > 50
    assert cable.count(f"{transport}.nak") == flow("sent", rf"{setting.lead}\.nak", to=0) > 10
    asked = numbers(cable, f"{transport}.nak.list.nak")
    assert len(asked) == result.source["naks_rcved"]
    assert set(numbers(cable, f"{transport}.data.sqn", again)) <= set(asked)
    assert cable.count(f"{transport}.ncf") > 0
    reasons = set(numbers(cable, f"{transport}.ncf.reason"))
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
    judge(cable, transport)
    asked = numbers(cable, f"{transport}.nak.list.nak")
    assert len(asked) == result.source["naks_rcved"] == sum(report.transport("naks_sent") for report in result.reports)
    assert cable.count(f"{transport}.nak") == sum(report.transport("nak_pckts_sent") for report in result.reports) > 10
    assert cable.count(f"{transport}.ncf") > 0
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
    judge(cable, "lbtrm")
    assert cable.count("lbtrm.nak") > 0


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
    judge(cable, transport)
    assert 0 in numbers(cable, f"{transport}.ncf.reason")


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
    judge(cable, "lbtru")
    first = Star.address(1)
    assert set(cable.values("ip.dst", "lbtru.hdr.type == 7")) == {first}  # the reset
    assert set(cable.values("ip.src", "lbtru.hdr.request")) == {first, Star.address(2)}
    for what in (f"lbtru.hdr.request && ip.src == {first}", f"lbtru.hdr.flags.syn == 1 && ip.dst == {first}"):
        assert cable.count(what) >= 2  # it connected twice, and was answered
