"""F30: the tables of docs/performance.md are what `make bench` wrote, and a missed target ends it with a status."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from report import Report, Row  # noqa: E402
from run import PAGE, PARTS  # noqa: E402


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "performance.md"
    path.write_text(
        "words\n<!-- bench:one -->\nold one\n<!-- bench:end -->\n"
        "more words\n<!-- bench:two -->\nold two\n<!-- bench:end -->\nlast words\n"
    )
    return path


def measured() -> Report:
    report = Report(runs=3, seconds=0.5)
    report.begin("two")
    report.placed(100.0)
    report.placed(510.0)
    report.target("rate, share of the bare loop", 0.75, 0.5, True, "bare 4 M/s, libum 3 M/s")
    report.note("libzmq", "1 M/s")
    report.add(Row("of its own interest", figure=0.47))
    return report


def test_f30_every_part_has_its_table() -> None:
    marks = re.findall(r"<!-- bench:(\S+) -->", PAGE.read_text())
    assert set(marks) - {"end"} == set(PARTS)
    assert marks.count("end") == len(PARTS)


def test_f30_a_part_is_written_with_day_machine_placement_and_targets(page: Path) -> None:
    measured().write_page(page)
    text = page.read_text()
    assert "old one" in text, "a part that was not measured keeps its table"
    assert "old two" not in text
    assert re.search(r"\d{4}-\d\d-\d\d, \d+ cores", text)
    assert "100 to 510 ns" in text
    assert "| rate, share of the bare loop | bare 4 M/s, libum 3 M/s | 0.75 | at least 0.5 | met |" in text
    assert "| libzmq | 1 M/s |  |  |  |" in text
    assert "| of its own interest |  | 0.47 |  |  |" in text, "what has no target cannot miss it"
    assert text.startswith("words\n") and text.endswith("last words\n")
    before = text
    measured().write_page(page)
    assert page.read_text() == before


def test_f30_a_page_without_the_table_is_an_error(page: Path) -> None:
    report = Report(1, 0.1)
    report.begin("three")
    with pytest.raises(SystemExit, match="bench:three"):
        report.write_page(page)


@pytest.mark.parametrize(
    ("figure", "at_least", "met"), [(0.5, True, True), (0.49, True, False), (0.5, False, True), (0.51, False, False)]
)
def test_f30_a_figure_is_judged_at_its_bound(figure: float, at_least: bool, met: bool) -> None:
    report = Report(1, 0.1)
    report.begin("part")
    report.target("share", figure, 0.5, at_least)
    assert bool(report.missed()) is not met
    assert ("1 not met" in report.summary()) is not met


@pytest.mark.parametrize(("figure", "status"), [(1.0, 0), (2.0, 1)])
def test_f30_a_missed_target_ends_the_benchmark_with_a_status(tmp_path: Path, figure: float, status: int) -> None:
    """The program itself, with a part that measures nothing."""
    program = f"""
import sys
sys.path.insert(0, {str(ROOT / "benchmarks")!r})
import run
run.Cells.distance = lambda self: 100.0
run.PARTS.clear()
run.PARTS["ipc"] = lambda cells, report, out: report.target("latency", {figure}, 1.5, False)
sys.argv = ["run.py", "--no-page", "--only", "ipc", "--out", {str(tmp_path)!r}]
run.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    assert (tmp_path / "results.json").exists()


def test_f30_a_part_that_fails_keeps_its_table_and_the_others_are_measured(tmp_path: Path, page: Path) -> None:
    program = f"""
import subprocess, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT / "benchmarks")!r})
import run
def fails(cells, report, out):
    report.target("rate", 2.0, 1.0, True)
    raise SystemExit("bench_peer failed: a side failed")
def hangs(cells, report, out):
    raise subprocess.TimeoutExpired("bench_other", 600)
run.PAGE = Path({str(page)!r})
run.Cells.distance = lambda self: 100.0
run.PARTS = {{"one": fails, "three": hangs, "two": lambda cells, report, out: report.target("share", 1.0, 0.5, True)}}
sys.argv = ["run.py", "--out", {str(tmp_path)!r}]
run.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert "bench_peer failed: a side failed" in done.stdout and "bench_other" in done.stdout
    assert "1 targets met, 0 not met\n  one: could not be measured" in done.stdout
    text = page.read_text()
    assert "old one" in text and "| share |" in text and "three" not in text
    assert json.loads((tmp_path / "results.json").read_text())["failed"] == ["one", "three"]
