"""The example programs of many requests, of many topics through event queues, and of bursts. Sources keep what they
sent, so that it does not matter how soon receivers join."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hosts import Host, without_log

Config = Callable[..., str]
RETAINED = ("source late_join 1", "source retransmit_retention_size_threshold 10000000")


def test_lbmmreq_has_all_its_requests_answered(host: Host, loopback_config: Config) -> None:
    config = loopback_config(*RETAINED)
    responder = host.start("lbmrespq", "-c", config, "-v", "quotes")
    requester = host.start("lbmmreq", "-c", config, "-R", 50, "-l", 40, "-v", "-d", 3600, "quotes")
    responder.expect("Beginning of Transport Session")
    requester.go_on()
    out = requester.finish()
    responder.expect(r"^Request \[quotes\].*\[49\], 40 bytes$")
    assert re.search(r"^Using TCP port \d+ for responses$", out, re.MULTILINE)
    assert "Delaying requests for 3600 seconds...\n" in out
    assert "Sending requests...\n" in out
    assert "Sent request 49\n" in out
    assert "Lingering...\n" in out
    assert len(re.findall(r"^Response \[TCP:127\.0\.0\.1:\d+\], 9 bytes$", out, re.MULTILINE)) == 50
    assert "Deleting requests...\nDeleted 50 requests\nReceived 50 responses\nQuitting...\n" in without_log(out)
    asked = re.findall(r"^Request \[quotes\]\[TCP:[^]]+\]\]\[(\d+)\], 40 bytes$", responder.output, re.MULTILINE)
    assert asked == [str(number) for number in range(50)]


def test_lbmmreq_sends_no_more_than_100000_requests(host: Host) -> None:
    assert host.start("lbmmreq", "-R", 100001, "quotes").wait() == 1
    assert host.start("lbmmreq").wait() == 1  # without a topic


def test_lbmmrcvq_prints_messages_of_many_topics_from_its_queues(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmmrcvq", "-c", config, "-R", 10, "-C", 2, "-L", 1, "-s", "-v")
    receiver.expect("Using 2 context")
    receiver.expect("Created 10 receivers. Will start calculating aggregate throughput")
    host.start("lbmmsrc", "-c", config, "-S", 10, "-M", 200, "-j", 10000000, "-L", 300)
    for topic in range(10):
        receiver.expect(rf"\[29west\.example\.multi\.{topic}\]\[TCP:.*\]\[19\](-RX-)?, 25 bytes$")
    receiver.signal(signal.SIGTERM)
    got = receiver.finish()
    assert "Lingering for 1 seconds...\nDeleting receivers....\n" in without_log(got)
    assert got.endswith("Quitting....\n")
    for topic in range(10):
        numbers = re.findall(rf"\[29west\.example\.multi\.{topic}\]\[TCP:[^]]*\]\]\[(\d+)\](?:-RX-)?, 25", got)
        assert numbers == [str(number) for number in range(20)]


def test_lbmmrcvq_has_at_most_four_contexts(host: Host) -> None:
    assert host.start("lbmmrcvq", "-C", 5).wait() == 1


@pytest.mark.parametrize("queue", [False, True])
def test_lbmspike_tells_what_became_of_a_burst(
    host: Host, loopback_config: Config, tmp_path: Path, queue: bool
) -> None:
    config, options = loopback_config(), ["-q"] if queue else []
    receiver = host.start("lbmspike", "-c", config, "-R", "-d", *options, prefix=f"cd '{tmp_path}';")
    receiver.expect("Receiving on topic spike")
    source = host.start("lbmspike", "-c", config, "-M", 2000, "-l", 50, "-B", 10, "-v", 1, *options)
    out = source.finish()
    assert "Done sending spike.  Waiting for recovery and results . . .\n" in out
    assert re.search(r"^received 2000 of 2000 messages in [\d.e+-]+ secs, 0 losses, 0 out of order$", out, re.MULTILINE)
    receiver.signal(signal.SIGTERM)
    got = receiver.finish()
    assert "Expecting 2000 messages of length 50\nAllowing 1 ms for recovery before sending result\n" in without_log(
        got
    )
    stamps = (tmp_path / "lbmspike.stamps").read_text().splitlines()
    assert [line.split()[1] for line in stamps] == [str(number) for number in range(2000)]


def test_lbmspike_over_tcp_with_bounded_latency_and_lbtrm_buffers(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmspike", "-c", config, "-R", "-o", -1, "-u", 1000000, "burst")
    receiver.expect("Receiving on topic burst")
    out = host.start("lbmspike", "-c", config, "-L", "-b", "-M", 10, "-v", 1, "burst").finish()
    assert re.search(r"^received 10 of 10 messages in ", out, re.MULTILINE)
    receiver.signal(signal.SIGTERM)
    receiver.finish()
