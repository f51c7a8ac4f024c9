"""The comments of include/um.h tell what a caller must know of every function: units, ownership, threads, errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HEADER = (Path(__file__).resolve().parents[2] / "include" / "um.h").read_text()
FUNCTION = re.compile(
    r"(?:/\*\*(?P<comment>(?:(?!\*/).)*)\*/\s*)?^LBMExpDLL (?P<type>[^;]*?)\b(?P<name>um_\w+)\((?P<arguments>[^;]*)\);",
    re.DOTALL | re.MULTILINE,
)
UNITS = {"timeout_ms": "millisecond", "max_bytes": "bytes", "stride": "bytes", "length": "bytes", "lengths": "bytes"}


def words(comment: str) -> str:
    return re.sub(r"\s+\*?\s*", " ", comment)


FUNCTIONS = {found["name"]: found for found in FUNCTION.finditer(HEADER)}


def told(name: str) -> str:
    """The comment of a function, with those of the functions it says its results and rules are as those of."""
    own = words(FUNCTIONS[name]["comment"] or "")
    others = re.findall(r"\b(?:[Aa]s|as for) (um_\w+)\(\)", own)
    return own + "".join(words(FUNCTIONS[other]["comment"] or "") for other in others if other in FUNCTIONS)


def test_the_functions_are_found() -> None:
    assert len(FUNCTIONS) == len(re.findall(r"^LBMExpDLL", HEADER, re.MULTILINE)) > 15


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_every_function_has_a_comment_of_its_own(name: str) -> None:
    assert FUNCTIONS[name]["comment"], f"{name}: no /** comment directly before it"


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_threads_and_callbacks_are_spoken_of(name: str) -> None:
    assert re.search(r"\bthreads?\b", told(name)), name
    assert "callback" in told(name), name


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_errors_are_named(name: str) -> None:
    assert re.search(r"LBM_E[A-Z]+|[Cc]annot fail|Always returns 0", told(name)), name


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_quantities_have_units(name: str) -> None:
    for parameter, unit in UNITS.items():
        if re.search(rf"\b{parameter}\b", FUNCTIONS[name]["arguments"]):
            assert unit in told(name), f"{name}: {parameter}"


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_whose_a_result_is_is_told(name: str) -> None:
    found = FUNCTIONS[name]
    hands_out = "*" in found["type"] or "**" in found["arguments"] or name.endswith("_fd")
    fills_in = re.search(r"_t \*(stats|counts)\b", found["arguments"])
    if hands_out:
        assert re.search(r"do not (free|read)|the caller's|to be deleted", told(name)), name
    if fills_in:
        assert "the caller's" in told(name) or "um_rcv_stats" in name or "wildcard" in name, name
