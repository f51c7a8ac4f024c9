"""The layers of csrc only include what is below them.

api -> core -> delivery, resolver, transport -> wire, net, config -> base. Layers of the same level do not include each
other. `encoding` stands beside `wire`. Daemons stand above everything but the public calls.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSRC = Path(__file__).resolve().parents[2] / "csrc"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
LEVELS = {
    "base": 0,
    "config": 1,
    "net": 1,
    "wire": 1,
    "encoding": 1,
    "delivery": 2,
    "resolver": 2,
    "transport": 2,
    "core": 3,
    "api": 4,
    "daemons": 5,
}


def violation(file: str, included: str) -> str | None:
    """Why `file` may not include `included` (both relative to csrc), or None."""
    own, other = file.split("/")[0], included.split("/")[0]
    if own == other:
        return None
    if own not in LEVELS:
        return f"{file}: folder {own} has no level in this test"
    if "/" not in included:
        return None if (CSRC / file).with_name(included).exists() else f"{file}: no file {included} beside it"
    if other not in LEVELS:
        return f"{file}: includes {included}, and folder {other} has no level in this test"
    if LEVELS[other] >= LEVELS[own]:
        return f"{file}: includes {included}, which is not below {own}"
    return None


def test_includes_point_downwards() -> None:
    problems = []
    files = [path for path in sorted(CSRC.rglob("*")) if path.suffix in (".c", ".h", ".def", ".inc")]
    for path in files:
        name = str(path.relative_to(CSRC))
        for included in INCLUDE.findall(path.read_text()):
            problem = violation(name, included)
            if problem:
                problems.append(problem)
    assert files
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("file", "included"),
    [
        ("base/a.c", "wire/um_lbmr.h"),
        ("wire/a.c", "net/um_loop.h"),
        ("delivery/a.c", "resolver/um_resolver.h"),
        ("resolver/a.c", "core/um_context.h"),
        ("core/a.c", "api/x.h"),
    ],
)
def test_upward_and_sideways_includes_are_found(file: str, included: str) -> None:
    assert violation(file, included) is not None


@pytest.mark.parametrize(
    ("file", "included"),
    [
        ("core/a.c", "transport/um_uim.h"),
        ("transport/tcp/a.c", "transport/um_src_session.h"),
        ("wire/a.c", "base/um_bytes.h"),
    ],
)
def test_downward_includes_are_accepted(file: str, included: str) -> None:
    assert violation(file, included) is None
