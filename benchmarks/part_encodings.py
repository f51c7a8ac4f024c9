"""The nine fields of the documented example in each encoding, and columns of messages in Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cells import Cells, Result
from report import Report

FIELDS = "9 fields"
PEERS = {"protobuf": "bench_nine_protobuf", "FlatBuffers": "bench_nine_flatbuffers"}
TIMES_SDM = 5.0


def encodings(cells: Cells, report: Report) -> None:
    nine(cells, report)
    columns(cells, report, Path(__file__).with_name("encodings_columns.py"))


def nine(cells: Cells, report: Report) -> None:
    """Bytes made and read, in turn with each encoding. FlatBuffers' own way is to read in place."""
    there = {name: program for name, program in PEERS.items() if cells.has(program)}
    names = ["PDM", "SDM", *there]
    programs = [["bench_nine_pdm"], ["bench_nine_sdm"], *([program] for program in there.values())]
    rows = dict(zip(names, cells.medians("both_ns", *programs)))
    pdm = rows["PDM"]
    for name, bound in (("SDM", TIMES_SDM), *((name, 1.0) for name in PEERS)):
        if name not in rows:
            report.note(f"{FIELDS}, {name}", "not installed (tools/bootstrap.sh bench): not compared")
            continue
        ratio = float(rows[name]["both_ns"]) / float(pdm["both_ns"])
        measured = f"PDM {of(pdm)}; {name} {of(rows[name])}"
        report.target(f"{FIELDS}, made and read, PDM times as fast as {name}", ratio, bound, True, measured)
    if "FlatBuffers" in rows:
        row = rows["FlatBuffers"]
        measured = (
            f"PDM {pdm['parse_ns']:.0f} ns, FlatBuffers {row['parse_ns']:.0f} ns, in place {row['view_ns']:.0f} ns"
        )
        report.note(f"{FIELDS}, read alone, a stranger's bytes checked", measured)


def of(row: Result) -> str:
    return f"{row['serialise_ns']:.0f} + {row['parse_ns']:.0f} ns, {row['bytes']} B"


def columns(cells: Cells, report: Report, program: Path) -> None:
    """The table that the program prints, a row for each form of messages. It is left out where there is none."""
    if not program.exists():
        return
    root = Path(__file__).resolve().parent.parent
    env = {**os.environ, "UM_BUILD_DIR": str(cells.build.resolve()), "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=600, check=False, env=env
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    if done.returncode != 0 or len(lines) < 3:
        raise SystemExit(f"{program} failed:\n{done.stderr}")
    head, _, *rows = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines)
    for name, *figures in rows:
        measured = ", ".join(f"{what} {figure}" for what, figure in zip(head[1:], figures))
        report.note(f"columns in Python, {name}", measured)
