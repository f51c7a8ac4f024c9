"""docs/architecture.md is true and short: the files and names that it mentions exist, every room of csrc has a place in
it, and it is read in ten minutes. What it tells in detail elsewhere is in docs/decisions.md.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PROSE = re.sub(r"^```.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)
MARKED = sorted(set(re.findall(r"`([^`\n]+)`", PROSE)))
WORDS_OF_TEN_MINUTES = 2800


def is_path(word: str) -> bool:
    return re.fullmatch(r"[\w.-]+(/[\w.*-]+)+/?|[\w-]+\.(c|h|py|md|def|sh|cmake|toml)", word) is not None


def exists(word: str) -> bool:
    """Relative to the repository or to csrc; `a/um_b` stands for its source files, `a/um_b_*` for some of that name."""
    for base in (ROOT, ROOT / "csrc"):
        if any((base / (word + end)).exists() for end in ("", ".c", ".h")):
            return True
        if "*" in word and any(base.glob(word)):
            return True
    return "/" not in word and any(ROOT.glob(f"*/{word}")) | any((ROOT / "csrc").rglob(word))


PATHS = [word for word in MARKED if is_path(word)]
NAMES = [word for word in MARKED if re.fullmatch(r"(struct |enum )?(um|lbm|LBM|UM)_\w+(\(\))?", word)]


@cache
def sources() -> str:
    files = [path for folder in ("csrc", "include") for path in sorted((ROOT / folder).rglob("*"))]
    return "\n".join(path.read_text() for path in files if path.suffix in (".c", ".h", ".def"))


def test_the_page_names_files() -> None:
    assert len(PATHS) > 40


@pytest.mark.parametrize("word", PATHS)
def test_every_file_it_names_exists(word: str) -> None:
    assert exists(word), f"docs/architecture.md names {word}, which is neither here nor in csrc"


@pytest.mark.parametrize("word", NAMES)
def test_every_function_and_type_it_names_exists(word: str) -> None:
    name = word.removeprefix("struct ").removeprefix("enum ").removesuffix("()")
    assert re.search(rf"\b{name}\b", sources()), f"docs/architecture.md names {word}, which no source file has"


ROOMS = sorted(path.name for path in (ROOT / "csrc").iterdir())
PAGES = ("decisions.md", "findings.md", "shared-memory.md", "reliability.md", "performance.md", "wire.md")


@pytest.mark.parametrize("page", PAGES)
def test_files_of_csrc_that_other_pages_name_exist(page: str) -> None:
    marked = set(re.findall(r"`([^`\n]+)`", (ROOT / "docs" / page).read_text()))
    named = [word for word in marked if is_path(word) and word.removeprefix("csrc/").partition("/")[0] in ROOMS]
    gone = sorted(word for word in named if not exists(word))
    assert not gone, f"docs/{page} names {gone}"


def test_every_room_has_its_place_in_it() -> None:
    rooms = {path.parent.relative_to(ROOT / "csrc").as_posix() for path in (ROOT / "csrc").rglob("*.c")}
    rooms = {"/".join(room.split("/")[: 2 if room.startswith("transport/") else 1]) for room in rooms}
    missing = [room for room in sorted(rooms) if not re.search(rf"(?<![\w/]){room}\b", PAGE)]
    assert not missing, f"docs/architecture.md says nothing of {missing}"


def test_it_is_read_in_ten_minutes() -> None:
    assert len(re.findall(r"[A-Za-z]+", PAGE)) < WORDS_OF_TEN_MINUTES


def test_what_does_not_exist_is_found() -> None:
    assert is_path("net/um_stream.h") and is_path("um_loop.c") and is_path("transport/session/")
    assert not is_path("LBM_EOP") and not is_path("a / b")
    assert exists("net/um_loop") and exists("transport/session/") and exists("um_loop.c")
    assert not exists("net/um_gone") and not exists("um_gone.c")
