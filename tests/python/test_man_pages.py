"""Every installed program has a manual page; it says what --help says, and mandoc has no complaint."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from interpreter import ENV, python

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build")).resolve()
UM_PAGES = ROOT / "packaging" / "man" / "man1"
DAEMONS = {path.name for path in (ROOT / "csrc" / "daemons").iterdir() if path.is_dir()}
SILENT = {"minrcv", "minsrc", "sdmtopdm"}  # take no options: run with --help they do their work
needs_mandoc = pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
pytestmark = pytest.mark.skipif(bool(os.environ.get("UM_SANITIZED")), reason="pages are made with the plain build")


def programs() -> set[str]:
    """Names of the commands that pyproject.toml installs, all but `um`."""
    text = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]")[2].partition("\n[")[0]
    return set(re.findall(r"^(\w+) = ", text, re.MULTILINE)) - {"um"}


def page_of(name: str) -> Path:
    section = 8 if name in DAEMONS else 1
    return BUILD / "man" / f"man{section}" / f"{name}.{section}"


def rendered(path: Path) -> str:
    done = subprocess.run(["mandoc", "-T", "utf8", str(path)], capture_output=True, text=True, check=True)
    return re.sub(".\b", "", done.stdout)


def words(text: str) -> Counter[str]:
    return Counter(word.strip(",;:.()[]").lower() for word in re.sub(r"\.\.\.", " ", text).split())


def helps_of_um() -> dict[str, str]:
    """What each command prints for --help, in lines long enough that no word is cut."""
    code = (
        "import argparse, json; from um_cffi.commands import parser\n"
        "root = parser()\n"
        "(all_,) = (each for each in root._actions if isinstance(each, argparse._SubParsersAction))\n"
        "print(json.dumps({'um': root.format_help(), **{'um-' + n: p.format_help() for n, p in all_.choices.items()}}))"
    )
    env = {**os.environ, **ENV, "COLUMNS": "1000", "NO_COLOR": "1"}
    done = subprocess.run(python("-c", code), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_installed_program_has_a_page() -> None:
    assert {name for name in programs() if not page_of(name).is_file()} == set()
    made = {path.stem for path in (BUILD / "man").glob("man[18]/*")}
    assert made == programs()
    assert {path.stem for path in UM_PAGES.iterdir()} == set(helps_of_um())


@needs_mandoc
def test_mandoc_has_no_complaint() -> None:
    pages = [*(page_of(name) for name in programs()), *UM_PAGES.iterdir()]
    command = ["mandoc", "-T", "lint", "-W", "warning", *map(str, sorted(pages))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)


@needs_mandoc
@pytest.mark.parametrize("name", sorted(programs() - SILENT))
def test_the_page_of_a_program_says_what_help_says(name: str) -> None:
    done = subprocess.run(
        [str(BUILD / "bin" / name), "--help"], capture_output=True, text=True, check=False, timeout=60
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    text = "\n".join(line for line in printed.splitlines() if "libum" not in line).replace(
        str(BUILD / "bin" / name), name
    )
    missing = words(text.replace("Usage:", "")) - words(rendered(page_of(name)))
    assert missing == Counter(), f"not in {page_of(name)}"
    options = re.findall(r"^ {2}(-\S.*?)  ", printed, re.MULTILINE)
    page = " ".join(rendered(page_of(name)).split())
    assert [each for each in options if each not in page] == []


@needs_mandoc
def test_the_pages_of_um_say_what_help_says() -> None:
    for name, printed in helps_of_um().items():
        text = re.sub(r"^(positional arguments|optional arguments|options):$", "", printed, flags=re.MULTILINE)
        text = re.sub(r"^usage: .*$", "", text, flags=re.MULTILINE)
        missing = words(text) - words(rendered(UM_PAGES / f"{name}.1"))
        assert missing == Counter(), f"not in the page of {name}: run tools/man_pages.py"
        assert all(each in printed for each in re.findall(r"(?<!\S)--\w[\w-]+", rendered(UM_PAGES / f"{name}.1")))
