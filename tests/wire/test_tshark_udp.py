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
    time.sleep(1)
    result = stream.finish()
    judge(cable, transport)
    fields = FIELDS[transport]
    (session,) = set(numbers(cable, fields["tir"]))
    assert set(numbers(cable, fields["session"])) == {session}
    assert f":{session:08x}" in result.source["source"]
    sent = numbers(cable, f"{transport}.data.sqn", f"!({fields['again']})")
    assert sorted(set(sent)) == list(range(max(sent) + 1))
    assert cable.count(f"{transport}.sm") > 0
    assert set(numbers(cable, fields["lead"])) <= {*sent, 0xFFFFFFFF}  # the answer to a CREQ before any data
    assert len(set(cable.values("lbmc.sqn", "!lbmc.tsni"))) == 50
    if transport == "lbtru":
        assert cable.count("lbtru.hdr.request") == 2  # a CREQ from each receiver
        assert cable.count("lbtru.ack.sqn") >= 2


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
    result = stream.finish()
    for report in result.reports:
        report.assert_complete(1500)
    judge(cable, transport)
    flow, again = result.counters.flow, FIELDS[transport]["again"]
    assert cable.count(again) == result.source["rxs_sent"] > 50
    assert cable.count(f"{transport}.nak") == flow("sent", rf"{setting.lead}\.nak", to=0) > 10
    asked = numbers(cable, f"{transport}.nak.list.nak")
    assert len(asked) == result.source["naks_rcved"]
    assert set(numbers(cable, f"{transport}.data.sqn", again)) <= set(asked)
    assert cable.count(f"{transport}.ncf") > 0
    reasons = set(numbers(cable, f"{transport}.ncf.reason"))
    assert reasons and reasons <= {1, 2, 3}


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
    config = Setting(tmp_path, "lbtru").write(WHOLE, "source transport_lbtru_client_activity_timeout 1500")
    sinks = [Sink(host, config) for host in star.hosts[1:]]
    source = Source(star.hosts[0], config, "-n", 1 << 60, "-s", 100, "-r", 100)
    for sink in sinks:
        sink.ready()
    source.go()
    sinks[0].process.signal(signal.SIGSTOP)
    source.process.expect("^disconnect ")
    sinks[0].process.signal(signal.SIGCONT)
    sinks[0].process.expect(r"^end ")
    sinks[0].process.expect(r"^begin .*\n(.*\n)*begin ")
    time.sleep(0.5)
    for sink in sinks:
        sink.stop().assert_exact()
    source.finish()
    judge(cable, "lbtru")
    assert cable.count("lbtru.hdr.type == 7") == 1
    assert cable.count("lbtru.hdr.request") == 3
    assert cable.count("lbtru.hdr.flags.syn == 1") == 3  # the source's answers
