"""The example programs run against each other; command lines and output are a contract with scripts."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import pytest
from hosts import Host

Config = Callable[..., str]
INTERVAL = r"^[0-9.e+]+ *secs\.  [0-9.e+]+ *[ KMG]msgs/sec\.  [0-9.e+]+ *[ KMG]bps"
PROGRAMS = (
    "lbmsrc",
    "lbmrcv",
    "lbmmsrc",
    "lbmmrcv",
    "lbmwrcv",
    "lbmrcvq",
    "lbmwrcvq",
    "lbmpong",
    "lbmlatping",
    "lbmlatpong",
    "lbmstrm",
    "lbmtrreq",
)


def test_minsrc_and_minrcv_exchange_one_greeting(host: Host, loopback_config: Config) -> None:
    env = {"LBM_DEFAULT_CONFIG_FILE": loopback_config()}
    receiver = host.start("minrcv", env=env)
    source = host.start("minsrc", env=env)
    lines = receiver.finish().splitlines()
    assert "Received 6 bytes on topic Greeting: 'Hello!'" in lines
    assert any(
        re.fullmatch(r"\[Greeting\]\[TCP:[\d.]+:\d+:[0-9a-f]{8}\[\d+\]\], Beginning of .*", line) for line in lines
    )
    source.finish()


def test_lbmsrc_sends_and_lbmrcv_sums_up(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-S", "news")
    receiver.expect("Immediate messaging target: TCP:")
    source = host.start("lbmsrc", "-c", config, "-M", 1000, "-P", 1, "-L", 1, "news")
    sent = source.finish()
    got = receiver.finish()
    assert "Sending 1000 messages of size 25 bytes to topic [news]\n" in sent
    assert re.search(r"^Sent 1000 messages of size 25 bytes in [\d.e+]+ seconds\.$", sent, re.MULTILINE)
    assert re.search(r"^Receiver connect \[TCP:127\.0\.0\.1:\d+\]$", sent, re.MULTILINE)
    assert sent.rstrip().endswith("Deleting source\nDeleting context")
    assert re.search("^Messages received : 1000$", got, re.MULTILINE)
    assert re.search("^Bytes received    : 25000$", got, re.MULTILINE)
    assert re.search(INTERVAL, got, re.MULTILINE)
    assert re.search(r"^\[news\]\[TCP:[^]]+\]\], End of Transport Session$", got, re.MULTILINE)


def test_order_holds_and_every_message_verifies(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-r", 500, "-O", "-V", "-v", "news")
    receiver.expect("Immediate messaging target")
    host.start("lbmsrc", "-c", config, "-M", 500, "-V", "-l", 200, "-d", 2, "news").finish()
    got = receiver.finish()
    assert len(re.findall(r"^Message sqn [0-9a-f]+ verifies$", got, re.MULTILINE)) == 500
    assert "does not verify" not in got
    assert "misordered" not in got
    assert "Quitting.... received 500 messages\n" in got
    assert len(re.findall(r"\[news\]\[TCP:[^]]+\]\]\[\d+\], 200 bytes$", got, re.MULTILINE)) == 500


def test_payload_is_dumped_with_a_second_v(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-r", 1, "-v", "-v", "news")
    receiver.expect("Immediate messaging target")
    host.start("lbmsrc", "-c", config, "-M", 1, "-d", 2, "-L", 1, "news").finish()
    got = receiver.finish()
    assert "6d 65 73 73 61 67 65 20 30 00 00 00 00 00 00 00 \tmessage 0.......\n" in got
    assert "00 00 00 00 00 00 00 00 00                      \t.........       \n" in got


def test_nonblocking_source_loses_nothing_against_a_slow_receiver(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-r", 200000, "-O", "news")
    receiver.expect("Immediate messaging target")
    source = host.start("lbmsrc", "-c", config, "-n", "-M", 200000, "-l", 500, "-d", 2, "-L", 8, "news")
    source.expect("Sending 200000")
    for _ in range(3):
        receiver.signal(signal.SIGSTOP)
        receiver.signal(signal.SIGCONT)
    source.finish(120)
    got = receiver.finish()
    assert "Quitting.... received 200000 messages\n" in got
    assert "misordered" not in got


@pytest.mark.parametrize("queue", [False, True])
def test_wildcard_receiver_names_each_new_topic(host: Host, loopback_config: Config, queue: bool) -> None:
    config = loopback_config()
    name = "lbmwrcvq" if queue else "lbmwrcv"
    receiver = host.start(name, "-c", config, "-v", "-r", 50, r"^Market\.\d$")
    receiver.expect(r"^Creating wildcard receiver for pattern \[\^Market\\.\\d\$\] - using PCRE$")
    host.start("lbmmsrc", "-c", config, "-S", 5, "-r", "Market", "-M", 50, "-d", 4, "-L", 2).finish()
    got = receiver.finish()
    assert sorted(re.findall(r"^new topic \[(.*?)\]", got, re.MULTILINE)) == [f"Market.{n}" for n in range(5)]
    assert "Quitting.... received 50 messages\n" in got


def test_queue_receiver_prints_the_lines_of_its_plain_twin(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    plain = host.start("lbmrcv", "-c", config, "-v", "-r", 20, "news")
    queued = host.start("lbmrcvq", "-c", config, "-v", "-r", 20, "news")
    plain.expect("Immediate messaging target")
    queued.expect("Immediate messaging target")
    host.start("lbmsrc", "-c", config, "-M", 20, "-d", 3, "-L", 1, "news").finish()
    pattern = re.compile(r"(\[news\]\[.*\]\[\d+\], 25 bytes)$", re.MULTILINE)
    assert pattern.findall(plain.finish()) == pattern.findall(queued.finish())
    assert len(pattern.findall(queued.output)) == 20


def test_many_topics_from_four_threads_arrive_in_full(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmmrcv", "-c", config, "-R", 100, "-C", 2, "-s")
    receiver.expect("Created 100 receivers. Will start")
    source = host.start("lbmmsrc", "-c", config, "-S", 100, "-T", 4, "-M", 20000, "-d", 4, "-L", 3)
    sent = source.finish(120)
    assert "Using 4 threads to send 20000 messages of size 25 bytes (5000 messages per thread).\n" in sent
    receiver.signal(signal.SIGTERM)
    got = receiver.finish()
    assert "Quitting.... received 20000 messages\n" in got
    assert re.search(r"^stats \d+/\d+ \(ctx [01]\): \[TCP:.*\], received \d+, LBM \d+/\d+/\d+$", got, re.MULTILINE)


def test_lbmstrm_holds_its_rate(host: Host, loopback_config: Config) -> None:
    out = host.start("lbmstrm", "-c", loopback_config(), "-S", 10, "-m", 1000, "-M", 3000, "-L", 0).finish()
    rates = [int(rate) for rate in re.findall(r"^(\d+) msgs/sec$", out, re.MULTILINE)]
    assert 2 <= len(rates) <= 6
    assert max(rates) < 1500


def test_lbmpong_counts_every_round_trip(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    pong = host.start("lbmpong", "-c", config, "-t", 30, "pong")
    ping = host.start("lbmpong", "-c", config, "-M", 100, "-i", 5, "-C", "-R", "ping")
    got = ping.finish()
    assert re.search(r"^Elapsed time [\d.e-]+ secs\. 100 messages \(RTTs\)\. [\d.e-]+ msec RTT", got, re.MULTILINE)
    assert re.search(r"^100 RTT measurements\. RTT min/avg/max = ", got, re.MULTILINE)
    assert len(re.findall(r"^RTT [\d.e-]+ msec$", got, re.MULTILINE)) == 100
    assert len(re.findall(r"^RTT ignore", got, re.MULTILINE)) == 5
    pong.signal(signal.SIGTERM)


def test_lbmlatping_prints_the_statistics_of_its_round_trips(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    pong = host.start("lbmlatpong", "-c", config)
    got = host.start("lbmlatping", "-c", config, "-l", 100, "-i", 100, "-M", 1000).finish()
    assert (
        re.sub(r"\d+\.?\d*", "N", got[got.index("Successfully") :])
        == """Successfully sent & received N total N-byte messages, ignoring the first N messages.
Average per-message round-trip latency:  N nanoseconds.
Round-trip times in nanoseconds, assuming a N GHz clock:
Min: N, Max N
Mean: N, Median: N, Standard Dev: N
N%: N, N%: N, N%: N, N%: N, N%: N
"""
    )
    assert "sent & received 1100 total 100-byte messages, ignoring the first 100" in got
    pong.signal(signal.SIGTERM)


def test_lbmtrreq_asks_and_ends(host: Host, loopback_config: Config) -> None:
    out = host.start("lbmtrreq", "-c", loopback_config(), "-a", "-q", "-w", "-d", 1, "-L", 2).finish()
    assert (
        out.splitlines()[-3:]
        == [
            "No interval given. Using 1000 milliseconds.",
            "Lingering for 2 seconds...",
            "Deleting context",
        ]
        or "Deleting context" in out
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_unknown_option_shows_the_usage_and_fails(host: Host, name: str) -> None:
    process = host.start(name, "--no-such-option")
    assert process.wait() == 1
    assert "Usage: " in process.output


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_shows_version_and_purpose(host: Host, name: str) -> None:
    process = host.start(name, "-h")
    assert process.wait() == 0
    lines = process.output.splitlines()
    assert lines[0].endswith(name)
    assert "libum" in lines[1]


def test_flags_of_later_features_say_so(host: Host, loopback_config: Config) -> None:
    source = host.start(
        "lbmsrc", "-c", loopback_config(), "-j", 1000, "--monitor-ctx=1", "-M", 1, "-d", 0, "-L", 0, "t"
    )
    out = source.finish()
    assert "late join is not supported by this version" in out
    assert "monitoring is not supported by this version" in out
