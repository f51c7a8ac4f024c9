"""Runs benchmark programs in turn, run by run, so that a disturbance meets all that are compared, and keeps medians.

Each program runs in a network namespace of its own, with multicast on its loopback interface, and prints one JSON line.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from report import Report

NETNS_SETUP = "ip link set lo up && ip link set lo multicast on && ip route add 224.0.0.0/4 dev lo"
ALIKE = 1.7  # cores are equally far from each other if their distances differ by less than this factor
TRIES = 5  # for each run between cores equally far from each other

Result = dict[str, Any]


def in_namespace(command: Sequence[str]) -> list[str]:
    """The command inside a fresh network namespace with multicast on loopback."""
    flags = ["--net"] if os.geteuid() == 0 else ["--net", "--user", "--map-root-user"]
    return ["unshare", *flags, "sh", "-c", f'{NETNS_SETUP} && exec "$@"', "sh", *command]


def run_json(command: Sequence[str], env: dict[str, str] | None = None) -> Result:
    """Run one benchmark program in a namespace and parse the JSON line it prints."""
    merged = {**os.environ, **(env or {})}
    done = subprocess.run(in_namespace(command), capture_output=True, text=True, timeout=600, check=False, env=merged)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    result: Result = json.loads(done.stdout.strip().splitlines()[-1])
    return result


class Cells:
    """The programs of one build, and what they measured."""

    def __init__(self, build: Path, runs: int, seconds: float, report: Report) -> None:
        self.build = build
        self.folder = build / "benchmarks"
        self.runs = runs
        self.seconds = str(seconds)
        self.report = report
        self.rows: list[Result] = []

    def has(self, program: str) -> bool:
        return (self.folder / program).exists()

    def once(self, program: str, *arguments: str, env: dict[str, str] | None = None) -> Result:
        """One run. Its figures are kept by whoever keeps the median of several."""
        result = run_json([str(self.folder / program), *arguments], env)
        if result.get("out_of_order"):
            raise SystemExit(f"{program} {' '.join(arguments)}: messages out of order: {result}")
        return result

    def distance(self) -> float:
        """Nanoseconds a cache line takes there and back between the two cores, now."""
        return float(run_json([str(self.folder / "bench_tcp"), "--mode", "cores"])["core_to_core_ns"])

    def medians(self, figure: str, *cells: Sequence[str], alike: bool = False) -> list[Result]:
        """Of each cell (program and arguments) the run with the median figure. `alike`: only rounds in which the
        cores were equally far from each other for all cells count, because a virtual machine's cores move."""
        rounds: list[list[Result]] = []
        latest: list[Result] = []
        for _ in range(self.runs * (TRIES if alike else 1)):
            if len(rounds) == self.runs:
                break
            latest = [self.once(program, *arguments, "--seconds", self.seconds) for program, *arguments in cells]
            if not alike or equally_far(latest):
                rounds.append(latest)
        if len(rounds) < self.runs:
            print(f"  {len(rounds)} rounds between cores equally far from each other, {self.runs} were wanted")
        return [
            self.keep(figure, " ".join(cell), list(results)) for cell, results in zip(cells, zip(*(rounds or [latest])))
        ]

    def keep(self, figure: str, name: str, results: list[Result]) -> Result:
        results.sort(key=lambda result: float(result[figure]))
        row = {"cell": name, **results[len(results) // 2]}
        row[f"{figure}_min"], row[f"{figure}_max"] = results[0][figure], results[-1][figure]
        for result in results:
            if result.get("core_to_core_ns"):
                self.report.placed(float(result["core_to_core_ns"]))
        self.rows.append(row)
        return row


def equally_far(results: Sequence[Result]) -> bool:
    distances = [float(result["core_to_core_ns"]) for result in results]
    return max(distances) < ALIKE * min(distances)


def rate(result: Result) -> str:
    """Messages per second for a table."""
    value = float(result["msgs_per_s"])
    return f"{value / 1e6:.2f} M/s"


def times(result: Result) -> str:
    """Round trips for a table."""
    return " / ".join(f"{float(result[name]):.1f}" for name in ("p50_us", "p99_us", "p999_us")) + " us"
