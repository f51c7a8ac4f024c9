"""`um web` and real processes: who is stopped, and who is behind a link that loses, has a name on the page.

Requirement S4: nobody should have to guess which receiver is slow.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from fixtures import needs_namespaces
from hosts import SLOW, Host, Process
from interpreter import ENV, ROOT, python
from relay import Star

ASK = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())
"""
SMALL = [f"resolver_{each}_receiver_socket_buffer=131072" for each in ("multicast", "unicast")]


class Fleet:
    """Processes on hosts, and the page of them on the first host."""

    def __init__(self, first: Host, interface: str) -> None:
        self.first = first
        words = ("web", "--listen", "127.0.0.1:0", "-i", interface, "-o", SMALL[0], "-o", SMALL[1])
        page = first.start_command(*python("-m", "um_cffi", *words), env=ENV)
        self.address = page.expect(r"^um web: (http://\S+)")[1]
        self.page = page

    def start(self, host: Host, role: str, name: str, topic: str, interface: str, transport: str) -> Process:
        """A process that sends or receives."""
        program = str(ROOT / "tests" / "support" / "monitored.py")
        return host.start_command(*python(program, role, name, topic, interface, transport), env=ENV)

    def ask(self, path: str) -> dict[str, Any]:
        """A view."""
        return dict(json.loads(self.first.run(sys.executable, "-c", ASK, self.address.rstrip("/") + path)))

    def until(self, condition: Callable[[dict[str, Any]], Any], seconds: float = 60.0) -> dict[str, Any]:
        """The first screen once it is so."""
        end = time.monotonic() + seconds * SLOW
        while True:
            said = self.ask("/api/overview")
            if condition(said):
                return said
            assert time.monotonic() < end, json.dumps(said, indent=1)[:20_000]
            time.sleep(0.1)


def calm(receivers: int) -> Callable[[dict[str, Any]], bool]:
    """So many receivers of data, and nothing is wrong."""

    def found(said: dict[str, Any]) -> bool:
        links = [each for each in said["topology"]["links"] if each["side"] == "receive" and each["rate"] > 0]
        return len(links) == receivers and said["verdict"]["level"] == "ok"

    return found


@needs_namespaces
def test_s4_one_of_five_receivers_is_stopped_and_named(host: Host) -> None:
    fleet = Fleet(host, "127.0.0.1")
    fleet.start(host, "send", "feed", "prices", "127.0.0.1", "lbtrm")
    receivers = [
        fleet.start(host, "receive", f"client-{number}", "prices", "127.0.0.1", "lbtrm") for number in range(5)
    ]
    before = fleet.until(calm(5))
    assert before["ranking"] == []
    receivers[2].suspend()
    said = fleet.until(lambda said: said["verdict"]["level"] == "silent")
    (row,) = said["ranking"]
    assert (row["host"], row["application"], row["pid"]) == ("127.0.0.1", "client-2", receivers[2].pid)
    assert row["topics"] == ["prices"] and row["level"] == "silent"
    assert said["verdict"]["parts"][0]["who"] == "client-2 on 127.0.0.1"
    assert abs(row["since"] - said["verdict"]["parts"][0]["since"]) < 0.2
    receivers[2].signal(signal.SIGCONT)
    back = fleet.until(lambda said: any(each["kind"] == "process_back" for each in said["events"]))
    assert any("client-2" in each["who"] for each in back["events"] if each["kind"] == "process_back")


@needs_namespaces
def test_s4_who_is_behind_a_link_that_loses_is_named_and_nobody_else() -> None:
    star = Star(4, seed=3)
    try:
        fleet = Fleet(star.hosts[0], Star.address(0))
        fleet.start(star.hosts[0], "send", "feed", "prices", Star.address(0), "lbtrm")
        for number in (1, 2, 3):
            names = ("one", "two") if number == 2 else ("one",)
            for name in names:
                fleet.start(star.hosts[number], "receive", f"{name}-{number}", "prices", Star.address(number), "lbtrm")
        fleet.until(calm(4))
        star.rule("link", kinds="rm.data", to=2, loss="1%")
        said = fleet.until(lambda said: len(said["ranking"]) == 2)
        for _ in range(10):
            assert {(row["application"], row["host"]) for row in said["ranking"]} == {
                ("one-2", Star.address(2)),
                ("two-2", Star.address(2)),
            }
            time.sleep(0.2)
            said = fleet.until(lambda said: len(said["ranking"]) >= 2)
        assert all(re.search("missed|NAKs", " ".join(row["reasons"])) for row in said["ranking"])
        blamed = {each["who"] for each in said["events"] if each["kind"] in ("loss", "unrecovered")}
        assert blamed == {f"{name} on {Star.address(2)}" for name in ("one-2", "two-2")}
    finally:
        star.close()
