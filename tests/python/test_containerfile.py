"""The container image file, as far as it can be judged without an engine: what it names exists, what it runs is what
`make` and the wheel offer, and it keeps the usual rules.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "packaging" / "Containerfile"
INSTRUCTIONS = ("FROM", "RUN", "COPY", "WORKDIR", "ENV", "USER", "CMD", "STOPSIGNAL", "EXPOSE", "ENTRYPOINT", "LABEL")


class Step(NamedTuple):
    """One instruction; of RUN, one for each command."""

    stage: int
    name: str
    words: list[str]


def steps() -> list[Step]:
    text = re.sub(r"\\\n", " ", "".join(line for line in FILE.open() if not line.startswith("#")))
    found: list[Step] = []
    stage = -1
    for line in text.splitlines():
        name, _, rest = line.strip().partition(" ")
        if not name:
            continue
        assert name in INSTRUCTIONS, line
        stage += name == "FROM"
        commands = rest.split("&&") if name == "RUN" else [rest]
        found += [Step(stage, name, shlex.split(command.replace("[", "").replace("]", ""))) for command in commands]
    return found


def of(name: str) -> list[Step]:
    return [step for step in steps() if step.name == name]


def test_what_is_copied_exists() -> None:
    stages = {step.words[step.words.index("AS") + 1] for step in of("FROM") if "AS" in step.words}
    made = {path for step in of("RUN") if step.words[:3] == ["python3", "-m", "venv"] for path in step.words[3:]}
    assert made
    for step in of("COPY"):
        options = [word for word in step.words if word.startswith("--")]
        if options:
            (option,) = options
            assert option.removeprefix("--from=") in stages
            assert step.words[1] in made, "not made by the stage before"
        else:
            assert (ROOT / step.words[0]).exists()


def test_what_is_not_copied_is_what_git_ignores_too() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", "build*", "dist"} <= set(ignored)
    assert not any((ROOT / each).exists() for each in ("docs", "tools", "um_cffi") if each in ignored)


def test_it_is_built_by_targets_of_make() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = {word for step in of("RUN") if step.words[0] == "make" for word in step.words[1:]}
    assert used and used <= targets


def test_the_extras_are_those_of_the_wheel() -> None:
    (install,) = [step.words[-1] for step in of("RUN") if step.words[1:2] == ["install"] and "pip" in step.words[0]]
    extras = re.search(r"\*\.whl\)([\w,]+)$", install)
    table = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    offered = set(re.findall(r"^(\w+) = \[", table, re.MULTILINE))
    assert extras and set(extras.group(1).split(",")) <= offered


def test_packages_are_those_that_bootstrap_needs_or_the_programs_run_with() -> None:
    """apt-get leaves no lists behind, and installs nothing that nobody asked for."""
    runs = of("RUN")
    for number, step in enumerate(runs):
        if step.words[:2] == ["apt-get", "install"]:
            assert {"-y", "--no-install-recommends"} <= set(step.words)
            assert any(after.words == ["rm", "-rf", "/var/lib/apt/lists/*"] for after in runs[number:])
    assert not any(
        "ADD" in line.split()[:1] or "curl" in line or "latest" in line for line in FILE.read_text().splitlines()
    )


def test_the_base_is_named_with_its_registry_and_version() -> None:
    for step in of("FROM"):
        assert re.fullmatch(r"[a-z.]+/[a-z/]+:[a-z0-9.-]+", step.words[0])
    assert len({step.words[0] for step in of("FROM")}) == 1, "the library was built for the system that it runs on"


def test_it_runs_as_a_user_without_rights_of_its_own() -> None:
    last = max(step.stage for step in steps())
    (user,) = [step.words[0] for step in of("USER") if step.stage == last]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user), "a number, so that an engine can tell that it is not root"
    after = [step.name for step in steps() if step.stage == last]
    assert after.index("USER") > max(number for number, name in enumerate(after) if name in ("RUN", "COPY"))


@pytest.mark.parametrize("word", ["--network host", "--shm-size", "--ipc host", "--read-only"])
def test_its_introduction_tells_what_an_operator_must_know(word: str) -> None:
    assert word in FILE.read_text().partition("FROM ")[0]


def test_the_commands_of_the_introduction_exist() -> None:
    scripts = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]")[2].partition("\n[")[0]
    names = set(re.findall(r"^(\w+) = ", scripts, re.MULTILINE))
    used = re.findall(r"^#   podman run .*? libum (\w+)", FILE.read_text(), re.MULTILINE)
    assert len(used) >= 3 and set(used) <= names
