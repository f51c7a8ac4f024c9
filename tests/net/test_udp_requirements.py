"""What users ask of LBT-RM and LBT-RU, on real processes behind the impairment relay: M2, M7, M8, M9, S3, H5.

Each test bears the id of its requirement (docs/reliability.md). The simulator scenarios of the same ids prove the
figures in virtual time; here the limits only catch what is broken, and the figures are recorded.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from figures import record
from fixtures import needs_namespaces
from hosts import SLOW
from relay import Star
from streams import SOAK, Setting, Sink, Stream

pytestmark = needs_namespaces

STOCK_BUFFER = 212992  # rmem_max of a stock kernel: what a program gets there whatever it asks for
BOTH = ("lbtrm", "lbtru")


@pytest.fixture(params=BOTH)
def transport(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


@pytest.fixture
def setting(transport: str, tmp_path: Path) -> Setting:
    return Setting(tmp_path, transport)


@pytest.fixture
def star(request: pytest.FixtureRequest) -> Iterator[Star]:
    star = Star(request.param, seed=30)
    try:
        yield star
    finally:
        star.close()


def with_hosts(count: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("star", [count], indirect=True, ids=[f"{count}-hosts"])


def assert_not_held_up(sent: dict[str, Any]) -> None:
    """A source that waits for a receiver does so inside one call, for as long as that is away: five seconds and more.
    The sum over all calls would grow with the load of the machine; the time of one does not."""
    assert sent["call_us"]["max"] < 4_000_000 * SLOW, f"the source was held up: {sent}"


# ---- M2: bursts into a small socket buffer -------------------------------------------------------------------------


@with_hosts(2)
@pytest.mark.parametrize("megabytes", [2, 20])
def test_m2_bursts_at_the_stock_socket_buffer_lose_nothing(star: Star, setting: Setting, megabytes: int) -> None:
    messages = megabytes * 1_000_000 // 1000
    config = setting.write(
        f"context transport_{{t}}_receiver_socket_buffer {STOCK_BUFFER}",
        "receiver transport_{t}_nak_generation_interval 30000",
        "receiver delivery_control_maximum_burst_loss 1000000",
    )
    # 20 us for each message are slower than the burst comes, so that the buffer must overflow.
    stream = Stream(star, config, messages, "-s", 1000, "-f", 1, sink=("-u", 20))
    stream.go()
    result = stream.finish()
    (report,) = result.reports
    report.assert_complete(messages)
    assert result.counters.flow("lost", ".*") == 0, "only the kernel drops here"
    assert report.transport("lost") > 0, "the burst was to overflow the socket buffer: the test is too gentle"
    record(
        f"{setting.transport}, M2: {megabytes} MB at once, socket buffer {STOCK_BUFFER} bytes",
        f"all delivered; {report.transport('lost')} datagrams of {messages} dropped by the kernel and repaired",
    )


@with_hosts(2)
def test_m2_a_smaller_socket_buffer_than_asked_for_is_told_once(star: Star, setting: Setting) -> None:
    config = setting.write("context transport_{t}_receiver_socket_buffer 1000000000")
    stream = Stream(star, config, 100, "-f", 1)
    stream.go()
    assert stream.finish().reports[0].total("delivered") == 100
    option = f"transport_{setting.transport}_receiver_socket_buffer"
    lines = [line for line in stream.sinks[0].process.output.splitlines() if option in line]
    assert len(lines) == 1, lines
    limit = int(Path("/proc/sys/net/core/rmem_max").read_text())
    assert re.search(rf"\b{limit}\b", lines[0]), f"the granted size {limit} is to be named: {lines[0]}"


# ---- M7: loss ladder -----------------------------------------------------------------------------------------------


def goodput(sink: Sink, begin: float, end: float) -> float:
    """Messages delivered per second between two times."""
    steps = [(at, delivered) for at, delivered, _ in sink.progress() if begin <= at <= end]
    (first, before), (last, after) = steps[0], steps[-1]
    return (after - before) / (last - first)


@pytest.mark.alone
@with_hosts(2)
@pytest.mark.parametrize("share", [50, 90, 100] if SOAK else [100], ids=lambda share: f"{share}-percent-of-the-limit")
def test_m7_goodput_falls_in_proportion_to_loss(tmp_path: Path, star: Star, transport: str, share: int) -> None:
    limit, step = 16_000_000, 5.0 if SOAK else 1.5
    setting = Setting(tmp_path, transport, rate=limit, repair_rate=limit // 2)
    # In-order delivery waits for repairs: they are to be short beside a step.
    config = setting.write(
        "source transport_{t}_ignore_interval 20",
        "receiver transport_{t}_nak_initial_backoff_interval 20",
        "receiver transport_{t}_nak_backoff_interval 40",
        "receiver transport_{t}_nak_suppress_interval 40",
        "receiver transport_{t}_nak_generation_interval 30000",
        "receiver delivery_control_maximum_burst_loss 1000000",
    )
    pace = () if share == 100 else ("-r", limit * share // 100 // 8 // 1050)
    stream = Stream(star, config, None, "-s", 1000, "-f", 1, *pace, sink=("-i", 20))
    (sink,) = stream.sinks
    stream.go()
    time.sleep(0.5)
    rates = {}
    for loss in (0, 0.001, 0.1, 1, 5, 10) if SOAK else (0, 0.1, 1, 5, 10):
        star.rule("ladder", kinds="lbt", loss=f"{loss}%")
        begin = time.monotonic()
        time.sleep(step)
        rates[loss] = goodput(sink, begin + 0.2, begin + step)
    star.say("clear")
    time.sleep(2)
    recovered = time.monotonic()
    time.sleep(step)
    after = goodput(sink, recovered, recovered + step)
    result = stream.stop()
    (report,) = result.reports
    report.assert_exact()
    assert report.total("delivered") + report.total("lost_single") == result.sent["sent"]
    assert report.total("bursts") == 0
    record(
        f"{transport}, M7: goodput at {share} % of a limit of {limit // 1_000_000} Mb/s",
        ", ".join(f"{loss} % loss: {rate:.0f}/s" for loss, rate in rates.items()) + f", 2 s after: {after:.0f}/s",
    )
    # The simulator holds the goodput to its proportion; on a shared machine a collapse is what can be told for sure.
    for loss, rate in rates.items():
        assert rate >= rates[0] * (0.6 - 2 * loss / 100), f"a collapse at {loss} %: {rates}"
    assert after >= 0.6 * rates[0], f"not normal 2 s after the loss: {rates}, {after}"


# ---- M8: arrival order without repair ------------------------------------------------------------------------------


@with_hosts(2)
def test_m8_without_repair_only_what_the_wire_lost_is_missing(star: Star, setting: Setting) -> None:
    messages = 20000
    config = setting.write(
        "receiver ordered_delivery 0",
        "receiver transport_{t}_send_naks 0",
        "receiver transport_{t}_nak_generation_interval 10000",
    )
    stream = Stream(star, config, messages, "-s", 100, "-r", 5000, "-f", 1, sink=("-a",))
    star.rule("wire", kinds=f"{setting.lead}.data", from_=0, loss="0.3%", frames="1-19000")  # the last is to come
    stream.go()
    result = stream.finish()
    (report,) = result.reports
    lost = result.counters.rule("wire", "lost")
    assert 20 < lost < 150
    for what in ("repeated", "mixed", "corrupt"):
        assert report.total(what) == 0
    least = messages - lost - result.dropped_unseen()
    assert least <= report.total("delivered") <= messages - lost + 1  # one may have been an announcement
    assert report.transport("naks_sent") == 0
    pause = report.data["sources"][0]["longest_pause_ms"]
    assert pause < 5000 * SLOW, "delivery stalled behind a gap until it was given up"
    record(
        f"{setting.transport}, M8: arrival order, no NAKs, 0.3 % loss",
        f"{lost} datagrams lost, {messages - report.total('delivered')} messages missing; "
        f"longest pause {pause:.1f} ms, p99.9 {report.data['latency_us']['p99.9'] / 1000:.1f} ms",
    )


# ---- M9: the link goes down and comes up ---------------------------------------------------------------------------


def both_streams(star: Star, folder: Path, *arguments: object) -> dict[str, Stream]:
    """An endless stream over each transport at the same time, so that both meet the same trouble."""
    streams = {}
    for transport in BOTH:
        config = Setting(folder, transport).write(
            "receiver transport_{t}_nak_generation_interval 60000",
            "receiver delivery_control_maximum_burst_loss 1000000",
            "source transport_{t}_client_activity_timeout 60000" if transport == "lbtru" else "",
        )
        streams[transport] = Stream(star, config, None, *arguments, "-t", transport, sink=("-i", 20, "-t", transport))
    return streams


def first_data_after(sink: Sink, moment: float) -> float:
    """Seconds from the moment to the first message delivered after it."""
    end = time.monotonic() + 20 * SLOW
    while time.monotonic() < end:
        steps = [(at, delivered) for at, delivered, _ in sink.progress()]
        before = max([delivered for at, delivered in steps if at <= moment], default=0)
        for at, delivered in steps:
            if at > moment and delivered > before:
                return at - moment
        time.sleep(0.02)
    raise AssertionError(f"no data after the link came up: {sink.process.output[-2000:]}")


@with_hosts(3)
@pytest.mark.parametrize("where", ["source", "receiver"])
@pytest.mark.parametrize("seconds", [0.05, 10])
def test_m9_data_flows_soon_after_the_link_is_up_again(star: Star, tmp_path: Path, where: str, seconds: float) -> None:
    """The source's own interface is taken down, or the cable of a receiver loses its carrier."""
    streams = both_streams(star, tmp_path, "-s", 200, "-r", 1000, "-f", 1)
    for stream in streams.values():
        stream.go()
    for stream in streams.values():
        stream.sinks[0].wait_for_more(100)
    if where == "source":
        star.unplug(0)
    else:
        star.say("down 1")
    time.sleep(seconds)
    if where == "source":
        star.plug(0)
    else:
        star.say("up 1")
    up = time.monotonic()
    for transport, stream in streams.items():
        waited = first_data_after(stream.sinks[0], up)
        stream.sinks[0].wait_for_more(500)
        result = stream.stop()
        messages = result.sent["sent"]
        for report in result.reports:
            report.assert_complete(messages)
        assert_not_held_up(result.sent)
        record(
            f"{transport}, M9: link of the {where} down for {seconds} s at 1000 messages/s",
            f"data {waited * 1000:.0f} ms after the link was up; all {messages} messages delivered in order",
        )
        hit = stream.source.process if where == "source" else stream.sinks[0].process
        for edge in ("down", "up"):
            assert re.search(rf"(?i)^LOG \d .*interface eth0.* {edge}\b", hit.output, re.MULTILINE), hit.output[-3000:]


# ---- S3: one of four receivers stops -------------------------------------------------------------------------------


def read_latency(sinks: list[Sink]) -> list[dict[str, Any]]:
    """Percentiles since the last call, of each sink."""

    def lines(sink: Sink) -> list[str]:
        return [line for line in sink.process.output.splitlines() if re.match(r"latency \{.*\}$", line)]

    before = [len(lines(sink)) for sink in sinks]
    for sink in sinks:
        sink.process.signal(signal.SIGUSR1)
    end = time.monotonic() + 10 * SLOW
    while any(len(lines(sink)) == count for sink, count in zip(sinks, before)):
        assert time.monotonic() < end, "no message arrives"
        time.sleep(0.02)
    return [json.loads(lines(sink)[-1].partition(" ")[2]) for sink in sinks]


@with_hosts(5)
def test_s3_a_stopped_receiver_does_not_slow_the_others(star: Star, setting: Setting) -> None:
    rate, seconds_stopped = 2000, 5
    config = setting.write(
        "receiver transport_{t}_nak_generation_interval 60000",
        "receiver delivery_control_maximum_burst_loss 1000000",
        "source transport_{t}_client_activity_timeout 60000" if setting.transport == "lbtru" else "",
    )
    stream = Stream(star, config, None, "-s", 200, "-r", rate, "-f", 1, sink=("-i", 20))
    others = stream.sinks[1:]

    def all_go_on(messages: int) -> None:
        """Until each of the others has got so many more."""
        for sink in others:
            sink.wait_for_more(messages)

    stream.go()
    all_go_on(rate)
    read_latency(others)
    all_go_on(2 * rate)
    calm = read_latency(others)
    stream.sinks[0].process.suspend()
    all_go_on(rate * seconds_stopped)
    during = read_latency(others)
    stream.sinks[0].process.signal(signal.SIGCONT)
    result = stream.stop()
    for report in result.reports:
        report.assert_complete(result.sent["sent"])
    assert_not_held_up(result.sent)
    before = max(one["latency_us"]["p99"] for one in calm)
    while_stopped = max(one["latency_us"]["p99"] for one in during)  # judged by the benchmarks
    record(
        f"{setting.transport}, S3: one of four receivers stopped for 5 s at {rate} messages/s",
        f"worst p99 of the other three {before:.0f} us before, {while_stopped:.0f} us meanwhile; "
        f"the stopped one recovered {result.reports[0].transport('lost')} datagrams",
    )


# ---- H5: a receiver is stopped, then goes on -----------------------------------------------------------------------


@with_hosts(3)
def test_h5_a_receiver_stopped_for_long_comes_back(star: Star, setting: Setting) -> None:
    """LBT-RM: it recovers all that the window still holds. LBT-RU: the source has dropped it, resets it when it speaks
    again, and it connects anew. The source never waits."""
    seconds = 30 if SOAK else 5
    rate, timeout_ms = 2000, 10000 if SOAK else 4000
    config = setting.write(
        "receiver transport_{t}_nak_generation_interval 60000",
        "receiver delivery_control_maximum_burst_loss 1000000",
        f"source transport_{{t}}_client_activity_timeout {timeout_ms}" if setting.transport == "lbtru" else "",
    )
    stream = Stream(star, config, None, "-s", 200, "-r", rate, "-f", 1, sink=("-i", 20))
    stopped, other = stream.sinks
    stream.go()
    stopped.wait_until(lambda delivered, lost, awaited: delivered > 100)
    stopped.process.suspend()
    before = other.progress()[-1][1]
    other.wait_until(lambda delivered, lost, awaited: delivered >= before + rate * seconds)
    if setting.transport == "lbtru":
        stream.source.process.expect("^disconnect ", timeout_ms / 1000 * 5)
    stopped.process.signal(signal.SIGCONT)
    if setting.transport == "lbtru":
        stopped.process.expect(r"^end .*\n(.*\n)*begin ", 60)
        resumed = stopped.progress()[-1][1]
        stopped.wait_until(lambda delivered, lost, awaited: delivered > resumed + 100)
    result = stream.stop()
    messages, (report, untouched) = result.sent["sent"], result.reports
    assert_not_held_up(result.sent)
    untouched.assert_complete(messages)
    if setting.transport == "lbtrm":
        report.assert_complete(messages)
        assert report.transport("lost") > 100, "the test is too gentle"
        outcome = f"recovered all of the {report.transport('lost')} datagrams it had missed"
    else:
        report.assert_exact()
        assert report.total("ends") == 1 and report.total("begins") == 2
        assert report.data["sources"][-1]["next"] == messages
        outcome = "dropped by the source, reset, connected again; got everything from then on"
    record(
        f"{setting.transport}, H5: a receiver stopped for {seconds} s", f"source never held up; the receiver {outcome}"
    )
