"""LBT-RM over a veth cable beside Cyclone DDS and OpenPGM, and under loss. Called by run.py.

A datagram of a batch holds 8192 bytes here, the default largest size; Cyclone DDS
writes batches of its default size or of 64 KiB, whichever is quicker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Result = dict[str, Any]
RunJson = Callable[[Sequence[str]], Result]
Target = Callable[[str, float, float, bool, list[str]], None]

BATCHED = ("--size", "64", "--batch", "8192")
DDS_BATCHES = ("14720", "65500")


class Cells:
    """Cells measured in turn, run by run, so that a disturbance meets all of them."""

    def __init__(self, build: Path, runs: int, seconds: float, run_json: RunJson, rows: list[Result]) -> None:
        self.folder = build / "benchmarks"
        self.runs = runs
        self.seconds = str(seconds)
        self.run_json = run_json
        self.rows = rows

    def has(self, program: str) -> bool:
        return (self.folder / program).exists()

    def medians(self, figure: str, *cells: Sequence[str]) -> list[Result]:
        """Of each cell (program and arguments) the run with the median figure."""
        found: list[list[Result]] = [[] for _ in cells]
        for _ in range(self.runs):
            for at, (program, *arguments) in enumerate(cells):
                command = [str(self.folder / program), *arguments, "--seconds", self.seconds]
                found[at].append(self.run_json(command))
        chosen = []
        for cell, results in zip(cells, found):
            results.sort(key=lambda result: float(result[figure]))
            row = {"cell": " ".join(cell), **results[len(results) // 2]}
            row[f"{figure}_min"], row[f"{figure}_max"] = results[0][figure], results[-1][figure]
            if row.get("out_of_order"):
                raise SystemExit(f"{row}: messages out of order")
            chosen.append(row)
        self.rows += chosen
        return chosen


def peers(cells: Cells, target: Target, report: list[str]) -> None:
    lines = [["bench_udp", "--impl", "um", "--transport", "rm", "--mode", "oneway", *BATCHED]]
    if cells.has("bench_dds"):
        lines += [["bench_dds", "--mode", "oneway", "--size", "64", "--batch", batch] for batch in DDS_BATCHES]
    if cells.has("bench_pgm"):
        lines.append(["bench_pgm", "--mode", "oneway", "--size", "64"])
    if len(lines) == 1:
        print("  Cyclone DDS and OpenPGM are not installed (tools/bootstrap.sh bench): not compared")
        return
    um, *others = cells.medians("msgs_per_s", *lines)
    for row in others:
        print(f"  {row['cell']}: {row['msgs_per_s'] / 1e6:.2f} M/s", flush=True)
    best = max(float(row["msgs_per_s"]) for row in others)
    target("LBT-RM 64 B batched, times the better of the peers", um["msgs_per_s"] / best, 2.5, True, report)


def under_loss(cells: Cells, target: Target, report: list[str]) -> None:
    lines = [["bench_loss", "--size", "64", "--rate", "50000", "--loss", loss] for loss in ("0", "100")]
    clean, lossy = cells.medians("p999_us", *lines)
    print(
        f"  50,000 messages/s, low-latency profile, p50 / p99 / p99.9: loss-free {clean['p50_us']:.0f} / "
        f"{clean['p99_us']:.0f} / {clean['p999_us']:.0f} us, 0.01 % loss {lossy['p50_us']:.0f} / "
        f"{lossy['p99_us']:.0f} / {lossy['p999_us']:.0f} us",
        flush=True,
    )
    ratio = lossy["p999_us"] / clean["p999_us"]
    target("M6: LBT-RM p99.9 under 0.01 % loss over loss-free", ratio, 3.0, False, report)


def udp_peers(
    build: Path,
    runs: int,
    seconds: float,
    run_json: RunJson,
    target: Target,
    rows: list[Result],
    report: list[str],
) -> None:
    """The better of the peers in the same turns; then M6."""
    cells = Cells(build, runs, seconds, run_json, rows)
    peers(cells, target, report)
    under_loss(cells, target, report)
