#!/usr/bin/env python3
"""Writes docs/nak-report.md and its plot: the NAKs of simulated crowds against the bound of the suppression rules.

    tools/nak_report.py [build/tests/lbtrm_crowd_sim]

Runs the simulator (UM_SIM_SEEDS, UM_SIM_SEED as for the simulator itself) and needs matplotlib.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "nak-report.md"
PLOT = ROOT / "docs" / "nak-report.svg"
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
COLOURS = {0.1: "#1b7837", 1.0: "#2166ac", 5.0: "#b2182b"}


@dataclass
class Row:
    kind: str  # "shared": all lose the same datagrams; "own": each its own ones
    receivers: int
    delay_ms: float
    loss: float
    gaps: int
    datagrams: int
    naks: float  # numbers asked for, for each datagram
    packets: float
    bound: float
    unsuppressed: float  # if everybody who misses it asked


def simulate(program: Path) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.tsv"
        subprocess.run([str(program)], check=True, env={**os.environ, "UM_SIM_FIGURES": str(path)})
        rows = [line.split("\t") for line in path.read_text().splitlines()]
    return [
        Row(kind, int(n), float(delay), float(loss), int(gaps), int(float(datagrams)), *map(float, rest))
        for kind, n, delay, loss, gaps, datagrams, *rest in rows
    ]


def table(rows: Iterable[Row]) -> list[str]:
    lines = [
        "| receivers | one-way delay | datagrams | NAKs for each | in packets | bound | without suppression |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for r in rows:
        lines.append(
            f"| {r.receivers} | {r.delay_ms:g} ms | {r.datagrams} | {r.naks:.2f} | {r.packets:.2f} | {r.bound:.2f} "
            f"| {r.unsuppressed:g} |"
        )
    return lines


def draw(rows: Sequence[Row]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "nak-report"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.2), sharex=True)
    panels = [("shared", 0.0, 1, "all lose the same datagram"), ("own", 0.01, 0, "each loses 1 % of its own")]
    for axis, (kind, loss, gaps, title) in zip(axes, panels, strict=True):
        chosen = [r for r in rows if (r.kind, r.loss, r.gaps) == (kind, loss, gaps)]
        for delay, colour in COLOURS.items():
            line = sorted((r for r in chosen if r.delay_ms == delay), key=lambda r: r.receivers)
            counts = [r.receivers for r in line]
            axis.plot(counts, [r.bound for r in line], color=colour, linewidth=1, label=f"bound, {delay:g} ms")
            axis.plot(counts, [r.naks for r in line], "o", color=colour, label=f"measured, {delay:g} ms")
        most = sorted({(r.receivers, r.unsuppressed) for r in chosen})
        axis.plot(*zip(*most, strict=True), "--", color="#777777", label="without suppression")
        axis.set(xscale="log", yscale="log", title=title, xlabel="receivers")
        axis.grid(True, which="major", alpha=0.3)
    axes[0].set_ylabel("NAKs for each lost datagram")
    axes[1].set_ylabel("NAKs for each datagram")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Date": None})


def write(rows: Sequence[Row]) -> None:
    def of(kind: str, loss: float, gaps: int) -> list[Row]:
        return [r for r in rows if (r.kind, r.loss, r.gaps) == (kind, loss, gaps)]

    body = [
        "### All lose the same datagram",
        "",
        *table(of("shared", 0.0, 1)),
        "",
        "### All lose the same datagram, then each packet is lost with 1 %",
        "",
        *table(of("shared", 0.01, 1)),
        "",
        "### All have the same twenty gaps",
        "",
        *table(of("shared", 0.0, 20)),
        "",
        "### Each loses 1 % of its own",
        "",
        "For each datagram sent, lost by somebody or not.",
        "",
        *table(of("own", 0.01, 0)),
    ]
    head, rest = PAGE.read_text().split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(body) + "\n" + END + tail)


def main() -> int:
    program = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "tests" / "lbtrm_crowd_sim"
    rows = simulate(program)
    draw(rows)
    write(rows)
    over = [r for r in rows if r.naks > r.bound * 1.2 + 0.2]
    print(f"{len(rows)} crowds; {PAGE.relative_to(ROOT)} and {PLOT.relative_to(ROOT)} written")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
