"""F29: a requirement that a test is named after has its row in docs/reliability.md, with how the test failed once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ID = r"(?:[SHMDOIPLXK])\d"
NAMED = (
    re.compile(rf"\bTEST\(({ID})_", re.IGNORECASE),
    re.compile(rf"^(?:async )?def (?:test|case)_({ID})_", re.IGNORECASE | re.MULTILINE),
)
FILES = (
    "tests/c/**/*.c",
    "tests/sim/*.c",
    "tests/python/*.py",
    "tests/spark/*.py",
    "tests/net/*.py",
    "tests/wire/*.py",
    "tests/support/*.py",
)


def cited() -> dict[str, set[str]]:
    """Id of a requirement: the files with a test that bears it in its name."""
    found: dict[str, set[str]] = {}
    for pattern in FILES:
        for path in ROOT.glob(pattern):
            names = [name for expression in NAMED for name in expression.findall(path.read_text())]
            for name in names:
                found.setdefault(name.upper(), set()).add(path.name)
    return found


def rows() -> dict[str, list[list[str]]]:
    text = (ROOT / "docs" / "reliability.md").read_text()
    table = text.partition("## Users' requirements")[2].partition("\n## ")[0]
    found: dict[str, list[list[str]]] = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(ID, cells[0]):
            found.setdefault(cells[0], []).append(cells)
    return found


def test_f29_tests_are_named_after_requirements() -> None:
    assert {"S1", "S4", "H1", "M1", "D1", "O1", "I2", "P1", "P5", "L1", "X1"} <= set(cited())


@pytest.mark.parametrize("requirement", sorted(cited()))
def test_f29_every_requirement_with_a_test_has_a_row_that_tells_how_it_failed(requirement: str) -> None:
    assert requirement in rows(), f"{requirement} ({', '.join(sorted(cited()[requirement]))}) has no row"
    for cells in rows()[requirement]:
        assert len(cells) == 4, cells
        assert len(cells[3]) > 10, f"{requirement}: not seen to fail: {cells[3]!r}"


def test_f29_every_row_names_tests_that_are_there() -> None:
    for found in rows().values():
        for cells in found:
            for path in re.findall(r"`(tests/[^`*{]+\.(?:c|py))`", cells[2]):
                assert (ROOT / path).exists(), f"{cells[0]}: {path}"


@pytest.mark.parametrize(
    ("part", "least"),
    [
        ("late join, requests and immediate messages promise", 60),
        ("hot failover, channels, properties and smart sources promise", 40),
        ("delivery promises", 35),
    ],
)
def test_f29_what_messaging_promises_is_tested_by_the_tests_that_are_named(part: str, least: int) -> None:
    text = (ROOT / "docs" / "reliability.md").read_text()
    table = text.partition(f"## What {part}\n")[2].partition("\n## ")[0]
    named = re.findall(r"^\|[^|]+\| `(tests/[^`]+)`: `(\w+)` \|$", table, re.MULTILINE)
    assert len(named) >= least and len(named) == sum(line.startswith("| ") for line in table.splitlines()) - 1
    for path, name in named:
        there = rf"^TEST\({name}\)$|^def {name}\("
        assert re.search(there, (ROOT / path).read_text(), re.MULTILINE), f"{path}: no test {name}"
