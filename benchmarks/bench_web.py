"""What the page of a fleet costs: `um web` in a process of its own, records of 1,000 contexts by loopback datagrams.

Usage: python benchmarks/bench_web.py [--seconds S] [--runs N] [--json]

The fleet of bench_monitoring.py: 10,000 objects, each told of once a second. Eight browsers are kept up to date, one of
them about the sender's clock: `lag` is how old what it shows becomes before something newer comes, the second between
two states of the page included. Then somebody sends 100,000 forged records a second beside them.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FLEET = Path(__file__).resolve().parent / "bench_monitoring.py"
MARK = "the clock of the sender"
BROWSERS = 8


class Web:
    """`um web` and what it tells."""

    def __init__(self) -> None:
        words = [sys.executable, "-m", "um_cffi", "web", "--udp", ":0", "--listen", "127.0.0.1:0"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        found = re.search(r"http://([\d.]+):(\d+)/.* at [\d.]+:(\d+)", self.process.stderr.readline())
        assert found is not None
        self.http, self.port = (found[1], int(found[2])), int(found[3])

    def ask(self, path: str) -> tuple[float, dict[str, Any]]:
        """Seconds of an answer, and the view."""
        begin = time.monotonic()
        connection = http.client.HTTPConnection(*self.http, timeout=60)
        connection.request("GET", path)
        body = connection.getresponse().read()
        connection.close()
        return time.monotonic() - begin, json.loads(body)

    def resident(self) -> float:
        """MiB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024

    def used(self) -> float:
        """Seconds of processor time so far."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Browser(threading.Thread):
    """Takes a stream of changes until the page ends; `lags` of the sender's clock, where the view has it."""

    def __init__(self, web: Web, view: str) -> None:
        super().__init__(daemon=True)
        self.lags: list[float] = []
        self._shown = 0.0
        self.changes = 0
        self._connection = http.client.HTTPConnection(*web.http, timeout=120)
        self._connection.request("GET", f"/api/stream?view={view}")
        self.start()

    def run(self) -> None:
        """Lines of events."""
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            answer = self._connection.getresponse()
            while line := answer.readline():
                if not line.startswith(b"data: "):
                    continue
                self.changes += 1
                for name, value, _ in json.loads(line[6:]).get("numbers", ()):
                    if name == "tr_dgrams_sent" and value:
                        self.lags.append(time.monotonic() - (self._shown or value / 1000))
                        self._shown = value / 1000


def helper(what: str, port: int, seconds: float) -> subprocess.Popen[str]:
    """The fleet, or the flood, in a process of its own."""
    words = [sys.executable, str(FLEET), what, str(port), "--seconds", str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def looked(web: Web, seconds: float) -> list[float]:
    """Seconds of answers about the first screen, asked for twice a second."""
    begin, found = time.monotonic(), []
    while time.monotonic() < begin + seconds:
        found.append(web.ask("/api/overview")[0])
        time.sleep(0.5)
    return found


def measure(seconds: float) -> dict[str, float]:
    """One run."""
    web = Web()
    helpers = [helper("--send", web.port, 4 * seconds + 15)]
    try:
        while (told := web.ask("/api/overview")[1])["totals"]["objects_created"] <= 10_000:
            time.sleep(0.5)
        clock = web.ask("/api/objects?kind=context&q=clock")[1]["list"]["rows"][0]["id"]
        browsers = [Browser(web, f"object&id={clock}"), *(Browser(web, "overview") for _ in range(BROWSERS - 1))]
        time.sleep(2)
        for each in browsers:
            each.lags.clear()
        before, begin = web.used(), time.monotonic()
        calm = looked(web, seconds)
        cores = (web.used() - before) / (time.monotonic() - begin)
        lags, resident = list(browsers[0].lags), web.resident()
        browsers[0].lags.clear()
        dropped = web.ask("/api/overview")[1]["clock"]["dropped"]
        helpers.append(helper("--flood", web.port, seconds))
        stormy = looked(web, seconds)
        assert helpers[1].stdout is not None
        sent, took = map(float, helpers[1].stdout.readline().split())
        told = web.ask("/api/overview")[1]
        return {
            "objects": sum(told["totals"][kind] for kind in ("contexts", "sources", "receivers", "event_queues")),
            "answer_ms": statistics.median(calm) * 1e3,
            "answer_max_ms": max(calm) * 1e3,
            "lag": max(lags),
            "dropped": dropped,
            "cores": cores,
            "resident": resident,
            "flood_rate": sent / took,
            "flood_answer_ms": statistics.median(stormy) * 1e3,
            "flood_answer_max_ms": max(stormy) * 1e3,
            "flood_growth": web.resident() - resident,
            "flood_left_out": told["clock"]["dropped"] + told["clock"]["malformed"] - dropped,
        }
    finally:
        for one in (*helpers, web.process):
            one.kill()
            one.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runs = [measure(options.seconds) for _ in range(options.runs)]
    figures = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    if options.json:
        print(json.dumps({"figures": figures, "cores_of_machine": os.cpu_count()}))
    else:
        for name, value in figures.items():
            print(f"{name:>20} {value:,.2f}")


if __name__ == "__main__":
    main()
