"""Two publishers and two subscribers exchange market data over TCP for about ten seconds, with a live table.

Topics are found by multicast on the loopback interface of a private network. Where a private network is not permitted,
topics are found through the lbmrd daemon on 127.0.0.1 instead, and the demo says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import market
from rich.console import Console
from rich.live import Live
from rich.table import Table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build")).resolve()
LBMRD_PORT = 25380


class Child:
    """One process of the demo; `state` is its latest report."""

    def __init__(self, script: str, label: str, settings: dict[str, Any]) -> None:
        self.label = label
        self.state: dict[str, Any] = {}
        self.history: list[tuple[float, int]] = []
        env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}", "UM_BUILD_DIR": str(BUILD)}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / script), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                report = json.loads(line)
            except ValueError:
                sys.stderr.write(f"{self.label}: {line}")  # a log line of the library
                continue
            self.state = {**self.state, **report}
            self.history.append((time.monotonic(), self.count))

    @property
    def count(self) -> int:
        return int(self.state.get("received", self.state.get("sent", 0)))

    def rate(self) -> float:
        if len(self.history) < 2:
            return 0.0
        (t0, n0), (t1, n1) = self.history[-2:]
        return (n1 - n0) / (t1 - t0) if t1 > t0 else 0.0

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait_for(self, key: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self.state.get(key):
            if "error" in self.state or self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{self.label}: {self.state.get('error', f'no {key!r} within {seconds:.0f} s')}")
            time.sleep(0.02)

    def finish(self) -> None:
        self.process.wait(20)
        self._reader.join(5)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()


def live_table(publishers: list[Child], subscribers: list[Child]) -> Table:
    table = Table(title="libum: market data over TCP")
    for column in ("process", "messages", "messages/s", "p50 us", "p99 us", "max us", "lost"):
        table.add_column(column, justify="left" if column == "process" else "right")
    for child in publishers:
        table.add_row(child.label, f"{child.count:,}", f"{child.rate():,.0f}", "", "", "", "")
    for child in subscribers:
        latency = child.state.get("latency_us", {})
        points = [f"{latency[name]:,.0f}" if name in latency else "" for name in ("p50", "p99", "max")]
        table.add_row(child.label, f"{child.count:,}", f"{child.rate():,.0f}", *points, str(child.state.get("lost", 0)))
    for symbol, (date, price) in sorted(subscribers[0].state.get("last", {}).items()):
        table.add_row(f"  {symbol}", date, f"{price:,.2f} $")
    return table


def summary(console: Console, publishers: list[Child], subscribers: list[Child]) -> bool:
    sent = sum(child.count for child in publishers)
    console.print(f"\nsent      {sent:,} messages from {len(publishers)} publishers", soft_wrap=True)
    good = sent > 0
    for child in subscribers:
        missing = sent - child.count
        lost = max(missing, int(child.state["lost"]))
        latency = "  ".join(f"{name} {value:,.0f} us" for name, value in child.state["latency_us"].items())
        console.print(f"received  {child.count:,} by {child.label}, lost {lost}; latency {latency}", soft_wrap=True)
        good = good and lost == 0
    return good


def run(console: Console, seconds: float, rate: float, options: dict[str, object]) -> bool:
    symbols = sorted(market.prices())
    half = (len(symbols) + 1) // 2
    common: dict[str, Any] = {"options": options, "seconds": seconds, "rate": rate}
    console.print(
        f"topics {market.PREFIX}<{'|'.join(symbols)}>, {seconds:.0f} seconds at {2 * rate:,.0f} messages/s",
        soft_wrap=True,
    )
    console.print(f"two publishers; two subscribers, one by topic, one by the pattern {market.PATTERN}", soft_wrap=True)
    children: list[Child] = []
    try:
        subscribers = [
            Child("subscriber.py", "subscriber, by topic", {**common, "symbols": symbols, "wildcard": False}),
            Child("subscriber.py", "subscriber, by pattern", {**common, "symbols": symbols, "wildcard": True}),
        ]
        children += subscribers
        publishers = [
            Child("publisher.py", f"publisher {number}", {**common, "symbols": part})
            for number, part in enumerate((symbols[:half], symbols[half:]), 1)
        ]
        children += publishers
        for child in subscribers:
            child.wait_for("ready", 60)
        for child in publishers:
            child.tell("go")
        with Live(live_table(publishers, subscribers), console=console, refresh_per_second=4, transient=True) as live:
            while not all(child.state.get("done") for child in publishers):
                if any(child.process.poll() is not None for child in children):
                    raise SystemExit("a process of the demo ended early")
                live.update(live_table(publishers, subscribers))
                time.sleep(0.25)
            end = time.monotonic() + 10
            total = sum(child.count for child in publishers)
            while any(child.count < total for child in subscribers) and time.monotonic() < end:
                time.sleep(0.1)
        console.print(live_table(publishers, subscribers))
        for child in (*subscribers, *publishers):
            child.tell("end")
            child.finish()
        return summary(console, publishers, subscribers)
    finally:
        for child in children:
            child.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=1000, help="messages per second of each publisher")
    arguments = parser.parse_args()
    console = Console()
    options: dict[str, object] = {
        "default_interface": "127.0.0.1",
        # What every system grants, so that no warning about it stands above the table.
        "resolver_multicast_receiver_socket_buffer": 131072,
        "resolver_unicast_receiver_socket_buffer": 131072,
    }
    if "UM_PRIVATE_NET" not in os.environ:
        again = [str(ROOT / "tools" / "private_net.sh"), sys.executable, __file__, *sys.argv[1:]]
        os.execv(again[0], again)
    if os.environ["UM_PRIVATE_NET"] == "1":
        return 0 if run(console, arguments.seconds, arguments.rate, options) else 1
    console.print(
        "no private network permitted here: topics are found through lbmrd on 127.0.0.1 instead of multicast",
        soft_wrap=True,
    )
    options["resolver_unicast_daemon"] = f"127.0.0.1:{LBMRD_PORT}"
    daemon = subprocess.Popen(
        [str(BUILD / "bin" / "lbmrd"), "-i", "127.0.0.1", "-p", str(LBMRD_PORT)], stdout=subprocess.DEVNULL
    )
    try:
        return 0 if run(console, arguments.seconds, arguments.rate, options) else 1
    finally:
        daemon.terminate()
        daemon.wait()


if __name__ == "__main__":
    sys.exit(main())
