"""Hot failover over two separate links, cut alternately: nothing is lost, nothing comes twice, over TCP and LBT-RM.

Each cut is half of a second: TCP sends again what was lost within the half that follows, so that never both links are
silent. How long receivers pause at a cut is recorded, and asserted nowhere; beside it, how long they pause in the same
run where the same is done to the network without a link being cut: what the machine, the interpreters and the commands
that cut take, none of which is failing over.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from figures import record
from hosts import Host, connect, ip

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "net" / "programs" / "failover.py"
CUTS = 60 if os.environ.get("UM_SOAK") else 10
PERIOD = 1.0  # seconds from one cut to the next one, which is on the other link
TICKS = 500  # numbers in a second
SLOWER = 3  # ticks of 2 ms
NOTHING = "none"  # no link has this name
CONTROL = 3 if os.environ.get("UM_SOAK") else 5  # after how many cuts one of no link
HANG = 150

Hosts = tuple[Host, Host]


@pytest.fixture
def linked() -> Iterator[Hosts]:
    """Two hosts with two cables; the second is eth1 on both."""
    hosts = (Host(), Host())
    try:
        for network, device in (("10.9.2", "eth1"), ("10.9.1", "eth0")):
            connect(*hosts, network=network)
            if device != "eth0":
                for host in hosts:
                    for line in ("eth0 down", f"eth0 name {device}", f"{device} up"):
                        ip("-n", host.name, "link", "set", *line.split())
        for host in hosts:
            host.run("nft", "add table ip cut")
            host.run("nft", "add chain ip cut input { type filter hook input priority 0; }")
        yield hosts
    finally:
        for host in hosts:
            host.close()


class Program:
    """One of the two sides."""

    def __init__(self, host: Host, *arguments: object) -> None:
        self.popen = subprocess.Popen(
            host.command(sys.executable, str(PROGRAM), *map(str, arguments)),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        assert self.popen.stdout is not None
        text = self.popen.stdout.readline()
        assert text, "a program has ended"
        return text.strip()

    def go_on(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.communicate()


def cut(hosts: Hosts, device: str, on: bool) -> None:
    """Both ends do not hear each other on it, and are not told so. NOTHING: all is done but that."""
    for host in hosts:
        host.run("nft", f"add rule ip cut input iifname {device} drop" if on else "flush chain ip cut input")


def run(hosts: Hosts, seconds: float, slower: int, devices: list[str]) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """What was received, and when links were cut, in ns: one device each PERIOD."""
    source, receiver = Program(hosts[0], "send", int(seconds * TICKS), slower), Program(hosts[1], "receive")
    times = []
    try:
        assert source.line() == "made"
        assert receiver.line() == "ready"
        source.go_on()
        begin = time.monotonic() + PERIOD / 4
        for number, device in enumerate(devices):
            time.sleep(max(0.0, begin + number * PERIOD - time.monotonic()))
            start = time.monotonic_ns()
            cut(hosts, device, True)
            time.sleep(PERIOD / 2)
            cut(hosts, device, False)
            times.append((start, time.monotonic_ns()))
        assert source.line() == "sent"
        got = json.loads(receiver.line())
        source.go_on()
        return got, times
    finally:
        source.close()
        receiver.close()


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def check(got: dict[str, Any], count: int) -> None:
    for topic, each in got.items():
        assert each["losses"] == 0, topic
        assert each["numbers"] == list(range(count)), topic


def test_links_cut_in_turn_lose_nothing_and_deliver_nothing_twice(linked: Hosts) -> None:
    devices = [each for number in range(CUTS) for each in (f"eth{number % 2}", *[NOTHING] * (number % CONTROL == 0))]
    seconds = len(devices) * PERIOD + PERIOD / 2
    got, times = run(linked, seconds, 0, devices)
    check(got, int(seconds * TICKS))
    names = {"single": "one receiver, TCP", "tcp": "HFX, TCP", "rm": "HFX, LBT-RM"}
    for topic, each in got.items():
        # The longest that a message was late which was sent while a link was cut, or soon after it.
        pauses = [
            max(late / 1e6 for sent, late in each["late"] if start <= sent <= end + PERIOD * 0.25e9)
            for start, end in times
        ]
        real = [pause for pause, device in zip(pauses, devices) if device != NOTHING]
        idle = [pause for pause, device in zip(pauses, devices) if device == NOTHING]
        record(
            f"hot failover, {len(real)} cuts of links: pause at a cut, {names[topic]}",
            f"p50 {percentile(real, 0.5):.1f} ms, p99 {percentile(real, 0.99):.1f} ms; without a cut "
            f"p50 {percentile(idle, 0.5):.1f} ms, longest {max(idle):.1f} ms",
        )


def test_a_slower_link_costs_nothing(linked: Hosts) -> None:
    for slower in (0, SLOWER):
        got, _ = run(linked, 1.0, slower, [])
        check(got, TICKS)
        for topic, each in got.items():
            late = [late / 1e6 for _, late in each["late"]]
            record(
                f"hot failover, second link {slower * 2} ms slower: {topic}",
                f"p50 {percentile(late, 0.5):.2f} ms, p99 {percentile(late, 0.99):.2f} ms",
            )
