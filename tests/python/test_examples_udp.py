"""The example programs over LBT-RM and LBT-RU with the files of examples/config: what they print, and that nothing is
lost."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from hosts import Host

CONFIG = Path(__file__).resolve().parents[2] / "examples" / "config"
BEGIN = "Beginning of Transport Session"
WAITS = ("-d", 3600, "-L", 3600)  # until it is told to go on
SOURCE = {
    "lbtrm": r"LBTRM:127\.0\.0\.1:\d+:[0-9a-f]{8}:224\.10\.10\.1\d:14400",
    "lbtru": r"LBT-RU:127\.0\.0\.1:\d+:[0-9a-f]{8}",
}
SENT = {
    "lbtrm": r"LBT-RM, sent \d+/\d+, txw \d+/\d+, naks \d+/\d+, ignored \d+/\d+, shed \d+, rxs \d+, rctlr \d+/\d+",
    "lbtru": r"LBT-RU, clients 1, sent \d+/\d+, naks \d+/\d+, ignored \d+/\d+, shed \d+, rxs \d+",
}
RECEIVED = (
    r"Received (\d+) msgs/\d+ bytes/\d+ dups/(\d+) lost\. Unrecovered: 0 \(window advance\) \+ 0 \(timeout\)\. "
    r"(?:Recovery time: \d+ min/\d+ mean/\d+ max\. )?NAKs: (\d+) \(\d+ packets\)\. "
    r"(?:Tx per NAK: \d+ min/\d+ mean/\d+ max\. )?"
    r"NCFs: \d+ ignored/\d+ shed/\d+ rx delay/\d+ unknown\. (\d+) LBM msgs, 0 no topics"
)


@pytest.mark.parametrize("name", ["lbtrm", "lbtru", "low_latency"])
def test_lbmsrc_and_lbmrcv_with_statistics(host: Host, name: str) -> None:
    transport = "lbtru" if name == "lbtru" else "lbtrm"
    config = str(CONFIG / f"{name}.cfg")
    receiver = host.start("lbmrcv", "-c", config, "-s", 1, "-r", 2000, "-O", "-v", "news")
    receiver.expect("Immediate messaging target")
    source = host.start("lbmsrc", "-c", config, *WAITS, "-M", 2000, "-l", 300, "-s", 1, "-P", 1, "news")
    receiver.expect(BEGIN)
    source.go_on()
    got = receiver.finish()
    sent = source.stop_lingering()
    assert "Quitting.... received 2000 messages\n" in got
    assert "misordered" not in got
    assert re.search(rf"\[news\]\[{SOURCE[transport]}\[\d+\]\]\[\d+\], 300 bytes$", got, re.MULTILINE)
    assert re.search(rf"\[{SOURCE[transport]}\] {RECEIVED}", got)
    assert re.search(f"^{SENT[transport]}$", sent, re.MULTILINE)


@pytest.mark.parametrize("name", ["lbtrm", "lbtru"])
def test_losses_made_with_signals_are_repaired(host: Host, name: str) -> None:
    config = str(CONFIG / f"{name}.cfg")
    receiver = host.start("lbmrcv", "-c", config, "-s", 1, "-r", 3000, "-O", "-v", "news")
    receiver.expect("Immediate messaging target")
    source = host.start("lbmsrc", "-c", config, *WAITS, "-M", 3000, "-l", 1500, "-P", 1, "news")
    receiver.expect(BEGIN)
    source.signal(signal.SIGUSR1)  # one datagram of ten
    source.go_on()
    receiver.expect(r"\[1500\], 1500 bytes$", 60)
    source.signal(signal.SIGUSR2)
    got = receiver.finish(60)
    source.stop_lingering()
    assert "Quitting.... received 3000 messages\n" in got
    assert "misordered" not in got
    reports = [tuple(map(int, each)) for each in re.findall(RECEIVED, got)]
    assert max(lost for _, lost, _, _ in reports) > 20
    assert max(naks for _, _, naks, _ in reports) > 20


@pytest.mark.parametrize("name", ["lbtrm", "lbtru"])
def test_many_sources_share_the_pool_of_sessions(host: Host, name: str) -> None:
    config = str(CONFIG / f"{name}.cfg")
    receiver = host.start("lbmmrcv", "-c", config, "-R", 12, "-s", 1)
    receiver.expect("Created 12 receivers. Will start")
    source = host.start("lbmmsrc", "-c", config, *WAITS, "-M", 1200, "-S", 12, "-T", 2, "-l", 100, "-s", 1)
    receiver.expect_times(BEGIN, 12)
    source.go_on()
    receiver.expect(r"stats 5/5 \(ctx 0\): \[")
    source.expect(rf"^stats 5/5: \[{SOURCE[name]}\] {SENT[name]}$")
    source.stop_lingering()
    receiver.signal(signal.SIGTERM)
    got = receiver.finish()
    sessions = set(re.findall(rf"stats \d/5 \(ctx 0\): \[({SOURCE[name]})\]", got))
    assert len(sessions) == 5
