"""The layers of csrc only include what is below them, and nothing below csrc/api calls a public function.

api -> core -> delivery, resolver, transport -> wire, net, config -> base. Layers of the same level do not include each
other. `encoding`, `pdm` and `sdm` stand beside `wire`; what is in
`pdm` implements its header itself. Daemons stand above everything but the public calls.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
ARCHIVE = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build")) / "lib" / "libum.a"

sys.path.insert(0, str(ROOT / "tools"))
import api_coverage  # noqa: E402

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
LEVELS = {
    "base": 0,
    "config": 1,
    "net": 1,
    "wire": 1,
    "encoding": 1,
    "pdm": 1,
    "sdm": 1,
    "delivery": 2,
    "resolver": 2,
    "transport": 2,
    "core": 3,
    "api": 4,
    "lbmmon": 5,
    "daemons": 6,
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
        ("core/a.c", "transport/unicast/um_unicast.h"),
        ("transport/tcp/a.c", "transport/session/um_src_session.h"),
        ("wire/a.c", "base/um_bytes.h"),
    ],
)
def test_downward_includes_are_accepted(file: str, included: str) -> None:
    assert violation(file, included) is None


def wanted_symbols() -> dict[str, set[str]]:
    """What each object of the static library takes from others, by the name of its source file."""
    listing = subprocess.run(["nm", "-A", "-u", ARCHIVE], check=True, capture_output=True, text=True).stdout
    found: dict[str, set[str]] = {}
    for line in listing.splitlines():
        place, _, symbol = line.rpartition(" U ")
        if symbol:
            found.setdefault(place.split(":")[1].removesuffix(".o"), set()).add(symbol.strip())
    return found


def upward_calls(wanted: dict[str, set[str]], folders: dict[str, str], public: set[str]) -> list[str]:
    """The uses of public functions by objects that are not of csrc/api; `folders` tells where a source file lies."""
    return [
        f"csrc/{folders[file]}/{file} uses {symbol}"
        for file, symbols in sorted(wanted.items())
        if folders[file] not in ("api", "lbmmon")
        for symbol in sorted(symbols)
        if symbol in public or symbol.startswith("lbm")
    ]


def test_nothing_below_the_api_calls_a_public_function() -> None:
    """What an lbm_* or public um_* function does for others lies below csrc/api, under a name of its own."""
    if not ARCHIVE.exists():
        pytest.skip(f"{ARCHIVE} is not built")
    files = [path for path in CSRC.rglob("*.c") if path.relative_to(CSRC).parts[0] != "daemons"]
    folders = {path.name: path.relative_to(CSRC).parts[0] for path in files}
    assert len(folders) == len(files), "two source files have the same name"
    wanted = wanted_symbols()
    assert len(wanted) > 100
    public = {name for names in api_coverage.declared().values() for name in names}
    problems = upward_calls({name: wanted[name] for name in wanted if name in folders}, folders, public)
    assert not problems, "\n".join(problems)


def test_a_call_of_a_public_function_is_found() -> None:
    wanted = {"um_a.c": {"lbm_context_create", "um_src_stats", "um_other"}, "lbm_b.c": {"lbm_context_create"}}
    found = upward_calls(wanted, {"um_a.c": "core", "lbm_b.c": "api"}, {"um_src_stats"})
    assert found == ["csrc/core/um_a.c uses lbm_context_create", "csrc/core/um_a.c uses um_src_stats"]
