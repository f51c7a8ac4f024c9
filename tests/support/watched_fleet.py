"""Processes on hosts that are monitored, and the page of them: for tests that need a fleet of real processes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from hosts import SLOW, Host, Process
from interpreter import ENV, ROOT, python

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
        return dict(json.loads(self.ask_at(self.address.rstrip("/") + path)))

    def ask_at(self, address: str) -> str:
        """What a server says that listens where the page does."""
        return self.first.run(sys.executable, "-c", ASK, address)

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
