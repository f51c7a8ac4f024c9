"""What the benchmarks report: figures beside their targets, on the terminal and as tables of docs/performance.md.

A part of the benchmark is a table of its own. A row is something measured, and where there is a target for it the
figure that is held against it. Where the page has the marks of a part, its table is written anew, with the day, the
machine and the distance of the two cores; the other parts keep their tables and their days.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Row:
    what: str
    measured: str = ""
    figure: float | None = None
    bound: str = ""  # "at least 0.5"; empty: measured for its own sake
    met: bool | None = None

    def line(self) -> str:
        """For the terminal."""
        if self.figure is None:
            return f"  {self.what}: {self.measured}"
        return f"{self.what:<66} {self.figure:>8.2f}   {self.bound:<13} {self._verdict('NOT MET')}".rstrip()

    def cells(self) -> list[str]:
        if self.figure is None:
            return [self.what, self.measured, "", "", ""]
        return [self.what, self.measured, f"{self.figure:.2f}", self.bound, self._verdict("**not met**")]

    def _verdict(self, missed: str) -> str:
        return "" if self.met is None else "met" if self.met else missed


@dataclass
class Part:
    name: str
    rows: list[Row] = field(default_factory=list)
    core_to_core_ns: list[float] = field(default_factory=list)

    def placement(self) -> str:
        """Where the two cores were while this part ran: the round trip of a cache line between them."""
        if not self.core_to_core_ns:
            return "on one core"
        low, high = min(self.core_to_core_ns), max(self.core_to_core_ns)
        return f"a cache line there and back between the two cores: {low:.0f} to {high:.0f} ns"


@dataclass(frozen=True)
class Machine:
    """Where the figures were taken."""

    processor: str
    kernel: str
    cores: int
    virtual: bool

    @classmethod
    def here(cls) -> Machine:
        text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
        values = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        named = {key.strip(): value.strip() for key, value in values.items()}
        processor = named.get("model name", platform.machine())
        return cls(processor, platform.release(), os.cpu_count() or 1, "hypervisor" in named.get("flags", "").split())

    def __str__(self) -> str:
        kind = " of a virtual machine" if self.virtual else ""
        return f"{self.cores} cores{kind} ({self.processor}), kernel {self.kernel}"


class Report:
    """Takes the figures of a run, tells them as they come, and writes them down."""

    def __init__(self, runs: int, seconds: float) -> None:
        self.machine = Machine.here()
        self.how = f"medians of {runs} runs of {seconds:g} s"
        self.parts: list[Part] = []
        self.failed: list[str] = []  # names of parts that could not be measured

    def begin(self, name: str) -> Part:
        self.parts.append(Part(name))
        print(f"\n== {name}", flush=True)
        return self.parts[-1]

    def fail(self, why: str) -> None:
        """The part that has begun could not be measured: nothing of it is judged or written."""
        self.failed.append(self.parts.pop().name)
        print(f"FAILED: {why}", flush=True)

    def placed(self, core_to_core_ns: float) -> None:
        """Each measurement tells how far from each other the cores were."""
        self.parts[-1].core_to_core_ns.append(core_to_core_ns)

    def note(self, what: str, measured: str) -> None:
        """Something measured that has no target."""
        self.add(Row(what, measured))

    def target(self, what: str, figure: float, bound: float, at_least: bool, measured: str = "") -> None:
        """A figure beside its target; `measured` tells what it was made of."""
        met = figure >= bound if at_least else figure <= bound
        self.add(Row(what, measured, figure, f"{'at least' if at_least else 'at most'} {bound:g}", met))

    def add(self, row: Row) -> None:
        self.parts[-1].rows.append(row)
        print(row.line(), flush=True)

    def judged(self) -> list[Row]:
        return [row for part in self.parts for row in part.rows if row.met is not None]

    def missed(self) -> list[Row]:
        return [row for row in self.judged() if not row.met]

    def summary(self) -> str:
        lines = [f"  {row.what}: {row.figure:.2f}, wanted {row.bound}" for row in self.missed()]
        missed = len(lines)
        lines += [f"  {name}: could not be measured, see above" for name in self.failed]
        return "\n".join([f"{len(self.judged()) - missed} targets met, {missed} not met", *lines])

    def table(self, part: Part) -> str:
        head = f"{time.strftime('%Y-%m-%d')}, {self.machine}; {self.how}; {part.placement()}."
        names = ["what", "measured", "figure", "target", ""]
        rows = [names, ["---"] * len(names), *(row.cells() for row in part.rows)]
        return "\n".join([head, "", *(f"| {' | '.join(cells)} |" for cells in rows)])

    def write_page(self, page: Path) -> None:
        """Put the table of each part that was measured between its marks."""
        text = page.read_text()
        for part in self.parts:
            text = replace_part(text, part.name, self.table(part), page)
        page.write_text(text)

    def write_results(self, path: Path, cells: Sequence[object]) -> None:
        """Everything as JSON: the table's rows and the single measurements they were made of."""
        rows = [{"part": part.name, **vars(row)} for part in self.parts for row in part.rows]
        everything = {"machine": vars(self.machine), "failed": self.failed, "rows": rows, "cells": list(cells)}
        path.write_text(json.dumps(everything, indent=1) + "\n")


def replace_part(text: str, name: str, table: str, page: Path) -> str:
    begin, end = f"<!-- bench:{name} -->", "<!-- bench:end -->"
    head, mark, rest = text.partition(begin)
    _, closing, tail = rest.partition(end)
    if not mark or not closing:
        raise SystemExit(f"{page}: no table of the part {name}: put {begin} and {end} where it belongs")
    return f"{head}{begin}\n{table}\n{end}{tail}"
