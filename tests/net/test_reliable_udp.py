"""LBT-RM and LBT-RU between real processes, one source and three receivers, behind the impairment relay.

Every message carries its number and bytes that follow from it (tests/net/programs); the library's counters are held
against those of the relay. `make soak` sends a million messages for each cell, `make test` 200,000.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from figures import record
from fixtures import needs_namespaces
from relay import Star
from streams import LATE, SOAK, Result, Setting, Sink, Source, Stream

pytestmark = needs_namespaces
MESSAGES = 1_000_000 if SOAK else 200_000
SINKS = 3
IMPAIRMENTS = {
    "5 % random loss": {"loss": "5%"},
    "1 % loss in bursts of 8": {"burst": "1%/8"},
    "5 % duplicates": {"duplicate": "5%"},
    "25 % reordered by 2 ms": {"reorder": "25%/2ms"},
    "10 ms jitter": {"jitter": "10ms"},
    "all of these": {"loss": "5%", "burst": "1%/8", "duplicate": "5%", "reorder": "25%/2ms", "jitter": "10ms"},
}


@pytest.fixture(params=["lbtrm", "lbtru"])
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Setting:
    return Setting(tmp_path, request.param)


@pytest.fixture
def star() -> Iterator[Star]:
    star = Star(SINKS + 1, seed=20)
    try:
        yield star
    finally:
        star.close()


def check_counters(result: Result, setting: Setting) -> None:
    """The library counted what the relay saw, but for a little that comes after a sink has told its counts."""
    lead, source, counters = setting.lead, result.source, result.counters
    copies = [counters.flow("seen", f"{lead}.rx", 0, port + 1) for port in range(SINKS)]
    passed = max(copies) if lead == "rm" else sum(copies)
    dropped = result.dropped_unseen() + LATE
    assert passed - LATE <= source["rxs_sent"] <= passed + dropped
    passed = counters.flow("sent", f"{lead}.nak", to=0)
    assert source["nak_pckts_rcved"] - LATE <= passed <= source["nak_pckts_rcved"] + dropped
    sent = sum(report.transport("nak_pckts_sent") for report in result.reports)
    passed = counters.flow("seen", f"{lead}.nak", to=0)
    assert passed - LATE <= sent <= passed + dropped
    for port, report in enumerate(result.reports, 1):
        lost = counters.flow("lost", f"{lead}.data", 0, port)
        assert report.transport("lost") >= lost * 0.99 - LATE
        assert report.transport("unrecovered_txw") + report.transport("unrecovered_tmo") == 0


@pytest.mark.parametrize("impairment", IMPAIRMENTS)
def test_everything_arrives_in_order_once(star: Star, setting: Setting, impairment: str) -> None:
    config = setting.write(
        # All can be repaired at any time, and all can wait for it: the defaults are less than the long run sends, and a
        # busy machine may hold a receiver up for as long.
        f"source transport_{{t}}_transmission_window_size {MESSAGES * 200}",
        f"context delivery_control_maximum_total_map_entries {MESSAGES}",
        f"receiver delivery_control_maximum_burst_loss {MESSAGES}",
        "receiver transport_{t}_nak_generation_interval 60000",
    )
    stream = Stream(star, config, MESSAGES, "-s", 100, "-r", 40000, "-f", 5)
    star.rule("everything", **IMPAIRMENTS[impairment])
    stream.go()
    result = stream.finish(300, setting.lead)
    for report in result.reports:
        report.assert_complete(MESSAGES)
    check_counters(result, setting)
    if "loss" in impairment or impairment == "all of these":
        assert result.counters.rule("everything", "lost") > MESSAGES / 5 * SINKS * 0.005
        assert result.source["rxs_sent"] > 0
    if "duplicates" in impairment:
        doubled = result.counters.rule("everything", "duplicated") - result.counters.rule("everything", "duplicated", 0)
        heard = sum(report.transport("duplicate_data") for report in result.reports)
        assert heard >= doubled * 0.99 - result.dropped_unseen()
    record(
        f"{setting.transport}, {impairment}: {MESSAGES} messages to {SINKS} receivers",
        f"all in order, none twice, none unrecoverable; {result.story(setting.lead)}",
    )


@pytest.mark.parametrize("overtaken", [False, True])
def test_l1_the_first_messages_are_repaired_however_late(star: Star, setting: Setting, overtaken: bool) -> None:
    """A receiver that was ready gets every message, although repairs of the first take half a second and 20,000 others
    come meanwhile; also when the very first datagram comes behind some later ones."""
    messages = 40000
    config = setting.write("receiver delivery_control_maximum_burst_loss 100000")
    stream = Stream(star, config, messages, "-s", 100, "-r", 40000, "-f", 5)
    data = f"{setting.lead}.data"
    if overtaken:
        star.rule("first", kinds=data, from_=0, frames="1-1", delay="20ms")
    star.rule("lost", kinds=data, from_=0, frames="2-3" if overtaken else "1-2")
    star.rule("late", kinds=f"{setting.lead}.rx", delay="500ms")
    stream.go()
    for report in stream.finish().reports:
        report.assert_complete(messages)


def send_with_a_hole(star: Star, stream: Stream, rule: dict[str, object], frames: int) -> Result:
    """Sends; behind the first thousand frames a rule holds for so many."""
    star.rule("hole", **rule, frames=f"1001-{1000 + frames}")
    stream.go()
    return stream.finish()


def test_without_repairs_each_lost_message_is_reported(star: Star, setting: Setting) -> None:
    """Repairs are cut off for longer than the NAK generation interval while a tenth of the datagrams is lost."""
    messages = 15000
    config = setting.write("receiver transport_{t}_nak_generation_interval 1000")
    stream = Stream(star, config, messages, "-s", 100, "-r", 2000, "-f", 1)
    star.rule("repairs", kinds="repair", loss="100%")
    result = send_with_a_hole(star, stream, {"kinds": f"{setting.lead}.data", "loss": "10%", "from": 0}, 5000)
    reported = 0
    for port, report in enumerate(result.reports, 1):
        report.assert_exact()
        lost = result.counters.rule("hole", "lost", port)
        assert report.total("bursts") == 0
        # Of the datagrams lost, some only carried the source's announcement of its number.
        most = lost + result.dropped_unseen()
        assert lost * 0.9 <= report.total("lost_single") <= most
        assert report.total("delivered") + report.total("lost_single") == messages
        assert lost <= report.transport("unrecovered_tmo") + report.transport("unrecovered_txw") <= most
        assert report.data["sources"][0]["begins"] == 1 and report.data["sources"][0]["ends"] == 0
        reported += report.total("lost_single")
    record(
        f"{setting.transport}, repairs cut off for longer than the NAK generation interval, 10 % loss",
        f"{reported} messages lost, each reported in order, the others delivered",
    )


def test_a_long_hole_is_reported_as_one_burst(star: Star, setting: Setting) -> None:
    messages = 15000
    stream = Stream(star, setting.write(), messages, "-s", 100, "-r", 4000, "-f", 1)
    hole = {"kinds": "lbt", "loss": "100%", "to": 1}
    result = send_with_a_hole(star, stream, hole, 3000)  # the limit is 1024
    for number, report in enumerate(result.reports):
        report.assert_exact()
        assert report.total("bursts") == (1 if number == 0 else 0)
        assert len(report.missing) == (1 if number == 0 else 0)
        assert report.total("delivered") + report.total("lost_burst") == messages
    assert result.reports[0].total("lost_burst") > 2500


def test_an_outage_that_outlasts_the_window_costs_exactly_what_left_it(star: Star, setting: Setting) -> None:
    """No burst limit: the receiver gets what the source still has and a report for each message that it has not."""
    messages = 16000
    config = setting.write(
        "source transport_{t}_transmission_window_size 1000000",  # 5000 messages
        "receiver delivery_control_maximum_burst_loss 1000000",
        "receiver transport_{t}_nak_generation_interval 60000",
        # What is lost is told on traffic, and an idle source tells its number for 60 s only: where the receiver is late
        # there is none any more by then.
        "receiver delivery_control_loss_check_interval 500",
    )
    stream = Stream(star, config, messages, "-s", 200, "-r", 4000, "-f", 1)
    result = send_with_a_hole(star, stream, {"kinds": "lbt", "loss": "100%", "to": 1}, 10000)
    for report in result.reports[1:]:
        report.assert_complete(messages)
    hit = result.reports[0]
    hit.assert_exact()
    assert hit.total("bursts") == 0
    assert hit.total("delivered") + hit.total("lost_single") == messages
    assert 2000 < hit.total("lost_single") < 12000
    # What left the window is the oldest of the hole: one stretch where the source keeps its pace, and never what the
    # window holds in the end.
    assert hit.missing[0][0] <= 1000 and hit.missing[-1][1] < messages - 4000
    record(
        f"{setting.transport}, an outage of twice the transmission window",
        f"{hit.total('lost_single')} messages lost, one stretch, each reported; {hit.total('delivered')} delivered",
    )


def test_a_killed_source_ends_its_session_and_the_next_begins_another(star: Star, setting: Setting) -> None:
    config = setting.write(
        "receiver transport_{t}_activity_timeout 5000", "source transport_{t}_sm_maximum_interval 500"
    )
    sinks = [Sink(host, config, "-i", 20) for host in star.hosts[1:]]
    first = Source(star.hosts[0], config, "-n", 100_000_000, "-r", 2000)
    for sink in sinks:
        sink.ready()
    first.go()
    for sink in sinks:
        sink.wait_until(lambda delivered, lost, awaited: delivered > 500)
    first.process.signal(signal.SIGKILL)
    second = Source(star.hosts[0], config, "-n", 2000, "-r", 2000)
    for sink in sinks:
        sink.process.expect(r"^begin .*\n(.*\n)*begin ", 60)
    second.go()
    second.sent()
    for sink in sinks:
        sink.process.expect("^end ", 60)
        sink.wait_until(lambda delivered, lost, awaited: awaited == 2000)
        report = sink.stop()
        report.assert_exact()
        old, new = report.data["sources"]
        assert (old["begins"], old["ends"], new["begins"], new["ends"]) == (1, 1, 1, 0)
        assert old["delivered"] > 500 and new["delivered"] == 2000
        assert re.match(r"LBT-?R[MU]:", old["source"]) and old["source"] != new["source"]
    second.finish()
