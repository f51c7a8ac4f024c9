"""What a long run leaves in docs/reliability.md: results of stages and figures, each with its day.

A whole run replaces everything, so that no figure outlives its test; a run of some stages replaces their rows only, one
of some jobs of a stage leaves figures only. Figures come from the checks and, through the file that UM_FIGURES names
(tests/support/figures.py), from tests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from .process import CORES, ROOT, Tally

FIGURES = ROOT / "build" / "soak-figures.tsv"
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- soak:begin -->", "<!-- soak:end -->"
_lock = threading.Lock()


@dataclass
class StageResult:
    """`seconds` are those of the processors, because stages run beside each other."""

    name: str
    tally: Tally
    seconds: float


def note_figure(what: str, value: str) -> None:
    """Add a figure to those of this run; any thread."""
    with _lock, FIGURES.open("a") as file:
        file.write(f"{what}\t{value}\n")


def clear_figures() -> None:
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.unlink(missing_ok=True)


def figures() -> list[tuple[str, str]]:
    lines = FIGURES.read_text().splitlines() if FIGURES.exists() else []
    pairs = [line.partition("\t") for line in dict.fromkeys(lines)]
    return [(what, value) for what, _, value in pairs]


def table_rows(text: str, columns: int) -> dict[str, list[str]]:
    """The rows of the tables with so many columns, by their first one."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    named = [row for row in rows if len(row) == columns and row[0] not in ("stage", "what", "---")]
    return {row[0]: row for row in named}


def record(results: Sequence[StageResult], summary: str, whole: bool) -> None:
    """Put the results of a long run, or of some of its stages, into the page."""
    head, rest = PAGE.read_text().split(BEGIN, 1)
    old, tail = rest.split(END, 1)
    day = time.strftime("%Y-%m-%d")
    kept = "" if whole else old
    stages = table_rows(kept, 4)
    stages |= {each.name: [each.name, str(each.tally), f"{each.seconds:.0f} s", day] for each in results}
    values = table_rows(kept, 3) | {what: [what, value, day] for what, value in figures()}
    body = [
        f"`make soak` on {CORES} cores. {summary}",
        "",
        "| stage | result | processor time | day |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in stages.values()),
        "",
        "| what | figure | day |",
        "|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in values.values()),
    ]
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(body) + "\n" + END + tail)
    print(f"== recorded in {PAGE.relative_to(ROOT)}", flush=True)
