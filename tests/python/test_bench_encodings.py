"""The part `encodings` of the benchmark: what is compared with what, peers that are not there, and the programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("UM_BUILD_DIR", "build")
sys.path.insert(0, str(ROOT / "benchmarks"))

from part_encodings import columns, encodings, nine  # noqa: E402
from report import Report  # noqa: E402

SERIALISE = {"bench_nine_pdm": 50.0, "bench_nine_sdm": 1000.0, "bench_nine_protobuf": 170.0}


class FakeCells:
    """Programs that were measured already."""

    build = BUILD

    def __init__(self, *there: str) -> None:
        self.there = there

    def has(self, program: str) -> bool:
        return program in self.there

    def medians(self, figure: str, *cells: Sequence[str]) -> list[dict[str, Any]]:
        assert figure == "both_ns"
        return [self.measured(*cell) for cell in cells]

    @staticmethod
    def measured(program: str) -> dict[str, Any]:
        half = SERIALISE.get(program, 40.0)
        return {"serialise_ns": half, "parse_ns": half, "both_ns": 2 * half, "view_ns": half, "bytes": 100}


def figures(report: Report) -> dict[str, tuple[float | None, bool | None]]:
    return {row.what.rpartition(" ")[2]: (row.figure, row.met) for row in report.parts[-1].rows}


def test_pdm_is_held_against_each_encoding_that_is_there() -> None:
    report = Report(1, 0.1)
    report.begin("encodings")
    nine(FakeCells("bench_nine_protobuf", "bench_nine_flatbuffers"), report)  # type: ignore[arg-type]
    found = figures(report)
    assert found["SDM"] == (20.0, True)
    assert found["protobuf"] == (3.4, True)
    assert found["FlatBuffers"] == (0.8, False)


def test_a_peer_that_is_not_installed_is_said() -> None:
    report = Report(1, 0.1)
    report.begin("encodings")
    nine(FakeCells(), report)  # type: ignore[arg-type]
    rows = {row.what: row.measured for row in report.parts[-1].rows}
    assert figures(report)["SDM"] == (20.0, True)
    for name in ("protobuf", "FlatBuffers"):
        assert "not installed" in rows[f"9 fields, {name}"]
    assert not report.missed()


def test_the_table_of_columns_is_taken_over(tmp_path: Path) -> None:
    report = Report(1, 0.1)
    report.begin("encodings")
    program = tmp_path / "columns.py"
    columns(FakeCells(), report, program)  # type: ignore[arg-type]
    assert not report.parts[-1].rows, "without the program nothing is said"
    program.write_text("print('| messages | ms |\\n|---|---|\\n| 3 numbers | 7 (2.0) |')")
    columns(FakeCells(), report, program)  # type: ignore[arg-type]
    (row,) = report.parts[-1].rows
    assert (row.what, row.measured) == ("columns in Python, 3 numbers", "ms 7 (2.0)")
    program.write_text("raise SystemExit(1)")
    with pytest.raises(SystemExit, match="failed"):
        columns(FakeCells(), report, program)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["pdm", "sdm", "protobuf", "flatbuffers"])
def test_each_program_reads_what_it_writes_and_refuses_the_half(name: str) -> None:
    """It ends with a status where the values differ."""
    program = BUILD / "benchmarks" / f"bench_nine_{name}"
    if not program.exists():
        pytest.skip(f"{program.name} is not built: its encoding is not installed, or benchmarks are off")
    done = subprocess.run([program, "--seconds", "0.01"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert row["bytes"] > 40 and row["both_ns"] > 0


def test_the_part_is_one_of_the_benchmark() -> None:
    from run import PARTS

    assert "encodings" in PARTS and callable(encodings)
