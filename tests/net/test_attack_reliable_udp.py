"""Strangers attack LBT-RM and LBT-RU streams of real processes (F8, F9). The simulator does so over many seeds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from figures import record
from fixtures import needs_namespaces
from relay import Star
from streams import Setting, Stream

pytestmark = needs_namespaces

ATTACKER = str(Path(__file__).with_name("programs") / "udp_attacker.py")
MESSAGES = 5000
REQUESTS = 500


@pytest.fixture
def star() -> Iterator[Star]:
    star = Star(3, seed=8)
    try:
        yield star
    finally:
        star.close()


def started(star: Star, tmp_path: Path, transport: str) -> tuple[Stream, list[str]]:
    """A stream to the other hosts, and the parts of its source string."""
    config = Setting(tmp_path, transport).write("receiver delivery_control_maximum_burst_loss 1000000")
    stream = Stream(star, config, MESSAGES, "-s", 200, "-r", 1000, "-f", 1)
    source = stream.sinks[0].process.expect(r"^begin (\S+)", 10).group(1)
    stream.go()
    time.sleep(1)
    return stream, source.partition("[")[0].split(":")


def test_f8_requests_in_the_name_of_others_get_answers_only(star: Star, tmp_path: Path) -> None:
    stream, (_, ip, port, session) = started(star, tmp_path, "lbtru")
    out = star.hosts[2].run(sys.executable, ATTACKER, "requests", ip, port, session, str(REQUESTS))
    asked, got = map(int, out.split())
    for report in stream.finish().reports:
        report.assert_complete(MESSAGES)
    assert 0 < got <= 10 * asked
    record("lbtru, F8: 500 connection requests that nobody stands by", f"{asked} bytes asked, {got} bytes answered")


@pytest.mark.parametrize("raised", [1000, 1_000_000, 2_000_000])
def test_f9_raised_numbers_and_trails_cost_a_stream_nothing(star: Star, tmp_path: Path, raised: int) -> None:
    stream, (_, ip, port, session, group, group_port) = started(star, tmp_path, "lbtrm")
    arguments = ("numbers", ip, port, session, group, group_port, str(raised))
    assert star.hosts[2].run(sys.executable, ATTACKER, *arguments).split() == ["16"]
    for report in stream.finish().reports:
        report.assert_complete(MESSAGES)
    record(f"lbtrm, F9: 16 datagrams forged with numbers and trails raised by {raised}", "all messages delivered")
