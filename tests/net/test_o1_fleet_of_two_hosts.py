"""Requirement O1 with real processes on two hosts: what `um doctor --fleet` reads was told by the library itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from hosts import SLOW, Host
from interpreter import ENV, python

Config = Callable[..., str]
Pair = tuple[Host, Host]
MONITORED = "context monitor_interval 1\nreceiver monitor_interval 1\nsource transport lbtrm\n"
GROUPS = "224.10.10.0/24"  # of LBT-RM by default; topic resolution has another


def doctor(host: Host, config: str) -> dict[str, dict[str, str]]:
    command = python("-m", "um_cffi", "doctor", "--fleet", "--json", "--seconds", "5", "-c", config)
    process = host.start_command(*command, env=ENV)
    assert process.wait() in (0, 1), process.output
    return {
        row["name"]: row for row in map(json.loads, filter(lambda each: each[0] == "{", process.output.splitlines()))
    }


def until(host: Host, config: str, name: str, state: str) -> dict[str, str]:
    """Look until a check has this state: the fleet may have begun to speak a moment ago."""
    end = time.monotonic() + 60 * SLOW
    while True:
        rows = doctor(host, config)
        if rows.get(name, {}).get("state") == state:
            return rows[name]
        assert time.monotonic() < end, json.dumps(rows, indent=1)


def test_o1_a_host_that_multicast_no_longer_reaches_is_named(two_hosts: Pair, loopback_config: Config) -> None:
    left, right = two_hosts
    config = loopback_config(MONITORED, base="")
    receiver = right.start("lbmrcv", "-c", config, "-r", 100000000, "news")
    left.start("lbmsrc", "-c", config, "-M", 100000000, "-P", 1, "-d", 0, "news")
    receiver.expect("Beginning of Transport Session")
    assert until(left, config, "one-sided sessions", "ok")
    assert "of 2 processes on 2 hosts" in until(left, config, "records", "ok")["text"]
    right.run("nft", "add table ip guard")
    right.run("nft", "add chain ip guard input { type filter hook input priority 0; }")
    right.run("nft", f"add rule ip guard input ip daddr {GROUPS} drop")
    told = until(left, config, "one-sided sessions", "FAIL")
    assert "10.9.8.2" in told["text"] and "LBTRM:10.9.8.1:" in told["text"] and "(news)" in told["text"]
    assert told["remedy"].startswith("run um doctor on 10.9.8.2;")
