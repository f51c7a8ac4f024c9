"""Two publishers and two subscribers exchange market data over TCP for about ten seconds, with a live table. Then the
same feed goes over LBT-RM while one datagram in a hundred is lost, and the repairs are counted (repair.py).

One subscriber gets a callback for each message, the other takes batches into numpy. At the end their latencies are
summed up, and drawn into demo-latency.png in the build directory. A page in the browser shows all of it (page.py).

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

import analysis
import market
import page
import repair
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build")).resolve()
LBMRD_PORT = 25380


class Child:
    """One process of the demo; `state` is its latest report."""

    def __init__(
        self, script: str, label: str, settings: dict[str, Any], environment: dict[str, str] | None = None
    ) -> None:
        self.label = label
        self.state: dict[str, Any] = {}
        self.history: list[tuple[float, int]] = []
        env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}", "UM_BUILD_DIR": str(BUILD)}
        env.update(page.telling(label, settings["network"]))
        env.update(environment or {})
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


def screen(publishers: list[Child], subscribers: list[Child], done: float) -> Group:
    """The table, and how much of the time has passed."""
    return Group(live_table(publishers, subscribers), ProgressBar(total=1.0, completed=min(done, 1.0), width=60))


def draw(subscribers: list[Child], path: Path) -> bool:
    """The latency histograms as a picture; False where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), dpi=120, layout="constrained")
    for child, colour in zip(subscribers, ("tab:blue", "tab:orange")):
        counts = child.state["histogram"]
        axes.stairs(counts, market.BINS_US, fill=True, alpha=0.45, color=colour, label=child.label)
        axes.stairs(counts, market.BINS_US, color=colour)
        for name in ("p50", "p99"):
            value = child.state["latency_us"][name]
            axes.axvline(value, color=colour, linestyle={"p50": "-", "p99": "--"}[name], linewidth=1)
    used = [at for child in subscribers for at, count in enumerate(child.state["histogram"]) if count]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(market.BINS_US[max(min(used) - 2, 0)], market.BINS_US[min(max(used) + 3, len(market.BINS_US) - 1)])
    axes.set_ylim(bottom=0.8)
    axes.set_xlabel("microseconds from send to application")
    axes.set_ylabel("messages")
    axes.set_title("Latency of the demo (lines: p50, dashed: p99)")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    figure.savefig(path)
    return True


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
    common: dict[str, Any] = {"options": options, "network": options, "seconds": seconds, "rate": rate}
    console.print(
        f"topics {market.PREFIX}<{'|'.join(symbols)}>, {seconds:.0f} seconds at {2 * rate:,.0f} messages/s",
        soft_wrap=True,
    )
    console.print(
        f"two publishers; two subscribers: callbacks by topic, batches by the pattern {market.PATTERN}", soft_wrap=True
    )
    children: list[Child] = []
    try:
        subscribers = [
            Child("subscriber.py", "callback receiver", {**common, "symbols": symbols, "batches": False}),
            Child("subscriber.py", "batch receiver", {**common, "symbols": symbols, "batches": True}),
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
        begin = time.monotonic()
        with Live(screen(publishers, subscribers, 0), console=console, refresh_per_second=4, transient=True) as live:
            while not all(child.state.get("done") for child in publishers):
                if any(child.process.poll() is not None for child in children):
                    raise SystemExit("a process of the demo ended early")
                live.update(screen(publishers, subscribers, (time.monotonic() - begin) / seconds))
                time.sleep(0.25)
            end = time.monotonic() + 10
            total = sum(child.count for child in publishers)
            while any(child.count < total for child in subscribers) and time.monotonic() < end:
                time.sleep(0.1)
        console.print(live_table(publishers, subscribers))
        for child in (*subscribers, *publishers):
            child.tell("end")
            child.finish()
        good = summary(console, publishers, subscribers)
        picture = BUILD / "demo-latency.png"
        if draw(subscribers, picture):
            console.print(f"latency histogram: {picture}", soft_wrap=True)
        return good
    finally:
        for child in children:
            child.kill()


def all_acts(console: Console, arguments: argparse.Namespace, options: dict[str, object], private: bool) -> int:
    shown = page.Page(ROOT, BUILD, options)
    try:
        if shown.address:
            console.print(f"a page of what follows, to be opened now: {shown.address}", soft_wrap=True)
        status = acts(console, arguments, options, private)
        if shown.address:
            console.print(f"\nthe page that showed it meanwhile: {shown.address} (`um web` serves one)", soft_wrap=True)
        return status
    finally:
        shown.close()


def acts(console: Console, arguments: argparse.Namespace, options: dict[str, object], private: bool) -> int:
    symbols = sorted(market.prices())
    good = run(console, arguments.seconds, arguments.rate, options)
    settings = {
        "options": options,
        "network": options,
        "seconds": arguments.seconds / 2,
        "rate": 4 * arguments.rate,
    }
    good = repair.run(console, Child, private, symbols, settings) and good
    if arguments.spark:
        settings["rate"] = arguments.rate
        good = analysis.run(console, Child, symbols, settings, BUILD) and good
    return 0 if good else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=1000, help="messages per second of each publisher")
    parser.add_argument("--spark", action="store_true", help="a third act: recorded, and computed with by Spark")
    arguments = parser.parse_args()
    if arguments.spark:
        analysis.check()
    console = Console()
    options: dict[str, object] = {
        "default_interface": "127.0.0.1",
        # What every system grants, so that no warning about it stands above the table.
        "resolver_multicast_receiver_socket_buffer": 131072,
        "resolver_unicast_receiver_socket_buffer": 131072,
    }
    page.open_door()
    if "UM_PRIVATE_NET" not in os.environ:
        again = [str(ROOT / "tools" / "private_net.sh"), sys.executable, __file__, *sys.argv[1:]]
        os.execv(again[0], again)
    if os.environ["UM_PRIVATE_NET"] == "1":
        return all_acts(console, arguments, options, private=True)
    console.print(
        "no private network permitted here: topics are found through lbmrd on 127.0.0.1 instead of multicast",
        soft_wrap=True,
    )
    options["resolver_unicast_daemon"] = f"127.0.0.1:{LBMRD_PORT}"
    daemon = subprocess.Popen(
        [str(BUILD / "bin" / "lbmrd"), "-i", "127.0.0.1", "-p", str(LBMRD_PORT)], stdout=subprocess.DEVNULL
    )
    try:
        return all_acts(console, arguments, options, private=False)
    finally:
        daemon.terminate()
        daemon.wait()


if __name__ == "__main__":
    sys.exit(main())
