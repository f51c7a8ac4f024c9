"""Two hosts joined by a cable: publishing across it, and what happens when parties or the cable fail."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable

from figures import record
from hosts import Host, ip

Config = Callable[..., str]
Pair = tuple[Host, Host]
EMPTY = ""  # the hosts have one interface that fits; nothing needs to be set
FULL = bool(os.environ.get("UM_SOAK"))
BEGIN = "Beginning of Transport Session"
WAITS = ("-d", 3600, "-L", 3600)  # until it is told to go on


def test_messages_cross_the_cable(two_hosts: Pair, loopback_config: Config) -> None:
    left, right = two_hosts
    config = loopback_config(base=EMPTY)
    receiver = right.start("lbmrcv", "-c", config, "-r", 1000, "-O", "news")
    receiver.expect("Immediate messaging target")
    source = left.start("lbmsrc", "-c", config, *WAITS, "-M", 1000, "news")
    receiver.expect(BEGIN)
    source.go_on()
    got = receiver.finish()
    source.stop_lingering()
    assert "Quitting.... received 1000 messages\n" in got
    assert re.search(r"^\[news\]\[TCP:10\.9\.8\.1:\d+:[0-9a-f]{8}\[\d+\]\], Beginning", got, re.MULTILINE)


def test_d5_resolution_through_lbmrd_with_multicast_blocked(two_hosts: Pair, loopback_config: Config) -> None:
    left, right = two_hosts
    for host in two_hosts:
        host.run("nft", "add table ip guard")
        for hook in ("input", "output"):
            host.run("nft", f"add chain ip guard {hook} {{ type filter hook {hook} priority 0; }}")
            host.run("nft", f"add rule ip guard {hook} ip daddr 224.0.0.0/4 counter drop")
    left.start("lbmrd", "-i", "10.9.8.1").expect("lbmrd started on 10.9.8.1:15380")
    config = loopback_config("context resolver_unicast_daemon 10.9.8.1:15380", base=EMPTY)
    receiver = right.start("lbmrcv", "-c", config, "-r", 500, "-O", "news")
    receiver.expect("Immediate messaging target")
    source = left.start("lbmsrc", "-c", config, *WAITS, "-M", 500, "news")
    receiver.expect(BEGIN)
    source.go_on()
    assert "Quitting.... received 500 messages\n" in receiver.finish()
    source.stop_lingering()


def test_lbmrd_killed_and_restarted(two_hosts: Pair, loopback_config: Config) -> None:
    left, right = two_hosts
    config = loopback_config("context resolver_unicast_daemon 10.9.8.1:15380", base=EMPTY)
    daemon = left.start("lbmrd", "-i", "10.9.8.1")
    daemon.expect("lbmrd started")
    first = right.start("lbmrcv", "-c", config, "-r", 100000000, "news")
    source = left.start("lbmsrc", "-c", config, "-M", 100000000, "-P", 1, "-d", 0, "news")
    first.expect("Beginning of Transport Session")
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    late = right.start("lbmrcv", "-c", config, "-r", 100, "news")
    time.sleep(3)
    assert "Beginning of Transport Session" not in late.output
    assert first.popen.poll() is None and source.popen.poll() is None
    assert "End of Transport Session" not in first.output  # data does not need the daemon
    left.start("lbmrd", "-i", "10.9.8.1").expect(r"client 10\.9\.8\.[12]:\d+ added")
    late.expect("Beginning of Transport Session", 60)
    assert "Quitting.... received 100 messages\n" in late.finish()


def test_publisher_killed_then_found_again(two_hosts: Pair, loopback_config: Config) -> None:
    left, right = two_hosts
    config = loopback_config(base=EMPTY)
    receiver = right.start("lbmrcv", "-c", config, "-v", "-r", 100000000, "news")
    source = left.start("lbmsrc", "-c", config, "-M", 100000000, "-P", 1, "-d", 0, "news")
    first = receiver.expect(r"^\[news\]\[(TCP:[^\[]+)\[\d+\]\], Beginning of Transport Session").group(1)
    source.signal(signal.SIGKILL)
    receiver.expect(r"^\[news\]\[" + re.escape(first) + r"\[\d+\]\], End of Transport Session")
    left.start("lbmsrc", "-c", config, "-M", 100000000, "-P", 1, "-d", 0, "news")
    again = re.compile(r"^\[news\]\[(TCP:[^\[]+)\[\d+\]\], Beginning of Transport Session", re.MULTILINE)
    end = time.monotonic() + 60
    while len(again.findall(receiver.output)) < 2:
        assert time.monotonic() < end, receiver.output[-3000:]
        time.sleep(0.1)
    sessions = again.findall(receiver.output)
    assert sessions[0] == first and sessions[1] != first


def test_stopped_receiver_holds_the_source_and_loses_nothing(two_hosts: Pair, loopback_config: Config) -> None:
    left, right = two_hosts
    config = loopback_config(base=EMPTY)
    messages = 2000000 if FULL else 300000
    receiver = right.start("lbmrcv", "-c", config, "-r", messages, "-O", "news")
    receiver.expect("Immediate messaging target")
    source = left.start("lbmsrc", "-c", config, *WAITS, "-M", messages, "-l", 1000, "news")
    receiver.expect(BEGIN)
    receiver.suspend()
    source.go_on()
    source.expect("^Sending ")
    time.sleep(4)
    assert not re.search(
        "^Sent ", source.output, re.MULTILINE
    )  # 300 MB do not fit into socket buffers: flow control holds the source
    assert source.popen.poll() is None
    receiver.signal(signal.SIGCONT)
    source.expect("^Lingering", 300)
    got = receiver.finish(300)
    source.stop_lingering()
    assert f"Quitting.... received {messages} messages\n" in got
    assert "misordered" not in got


def test_link_down_and_up(two_hosts: Pair, loopback_config: Config) -> None:
    left, right = two_hosts
    config = loopback_config(base=EMPTY)
    receiver = right.start("lbmrcv", "-c", config, "-r", 6000, "-O", "news")
    receiver.expect("Immediate messaging target")
    source = left.start("lbmsrc", "-c", config, *WAITS, "-M", 6000, "-P", 1, "news")
    receiver.expect(BEGIN)
    source.go_on()
    ip("-n", left.name, "link", "set", "eth0", "down")
    time.sleep(1.5)
    ip("-n", left.name, "link", "set", "eth0", "up")
    left.route_multicast("eth0")
    source.expect("^Lingering", 120)
    got = receiver.finish(120)
    source.stop_lingering()
    assert "Quitting.... received 6000 messages\n" in got
    assert "misordered" not in got


def test_ten_million_small_messages_to_two_receivers(host: Host, loopback_config: Config) -> None:
    """Scaled to a million outside of the long runs: in order, none twice, memory flat."""
    config = loopback_config()
    messages = 10000000 if FULL else 1000000
    receivers = [host.start("lbmrcv", "-c", config, "-r", messages, "-O", "news") for _ in range(2)]
    for receiver in receivers:
        receiver.expect("Immediate messaging target")
    source = host.start("lbmsrc", "-c", config, *WAITS, "-M", messages, "-l", 32, "news")
    for receiver in receivers:
        receiver.expect(BEGIN)
    source.go_on()
    source.expect("^Sending ")
    processes = [source, *receivers]
    sizes: list[list[int]] = []
    while "Sent " not in source.output and source.popen.poll() is None:
        sizes.append([process.resident_kib() for process in processes])
        time.sleep(0.05)
    for receiver in receivers:
        got = receiver.finish(600)
        assert f"Quitting.... received {messages} messages\n" in got
        assert "misordered" not in got
        record(f"{messages} messages of 32 bytes to two subscribers", "all delivered in order, none twice")
    source.stop_lingering()
    settled = sizes[len(sizes) // 10 :]
    if len(settled) > 2 and not os.environ.get("UM_SANITIZED"):
        for number, process in enumerate(processes):
            growth = settled[-1][number] - settled[0][number]
            role = "publisher" if number == 0 else f"subscriber {number}"
            record(
                f"{messages} messages of 32 bytes, {role}: resident size over the last 90 % of the run",
                f"{settled[0][number]} KiB, {growth:+d} KiB",
            )
            assert growth < 1024, f"{process.command} grew by {growth} KiB over the last 90 % of the run"


def test_ten_thousand_topics(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    topics = 10000
    receiver = host.start("lbmmrcv", "-c", config, "-R", topics, "-v")
    receiver.expect("Will start calculating", 120)
    source = host.start("lbmmsrc", "-c", config, *WAITS, "-S", topics, "-M", 2 * topics)
    receiver.expect_times(BEGIN, topics, 300)
    source.go_on()
    receiver.expect_times(", 25 bytes$", 2 * topics, 300)
    source.stop_lingering()
    receiver.signal(signal.SIGTERM)
    assert f"received {2 * topics} messages" in receiver.finish(120)
