"""The Python pages of the documentation and the Python examples do what they say. Each runs in a host of its own.

Also: a Python program can do everything that the C example programs do.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hosts import Host
from interpreter import ENV, needs_plain_library, python

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS_OF_THEIR_OWN = ("gallery.md", "comparison.md")  # each block is a program: test_gallery.py, test_comparison.py
PAGES = sorted(
    page.name
    for page in (ROOT / "docs" / "python").glob("*.md")
    if "```python" in page.read_text() and page.name not in PROGRAMS_OF_THEIR_OWN
)
EXAMPLES = sorted(path.name for path in (ROOT / "examples" / "python").glob("*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_runs_and_prints_what_it_says(host: Host, page: str) -> None:
    runner = ROOT / "tests" / "support" / "run_page.py"
    output = host.start_command(*python(runner, ROOT / "docs" / "python" / page), env=ENV).finish()
    assert f"{page}: " in output


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in ("publish.py", "subscribe_callback.py")])
def test_the_example_runs_by_itself(host: Host, name: str) -> None:
    assert host.start_command(*python(ROOT / "examples" / "python" / name), env=ENV).finish()


def test_the_publishing_and_the_subscribing_example_meet(host: Host) -> None:
    folder = ROOT / "examples" / "python"
    subscriber = host.start_command(*python(folder / "subscribe_callback.py", "news", "3"), env=ENV)
    host.start_command(*python(folder / "publish.py", "news", "3"), env=ENV).finish()
    lines = [line for line in subscriber.finish().splitlines() if "#" in line]
    assert lines == ["news #0: message 0", "news #1: message 1", "news #2: message 2"]


def sending_programs() -> list[tuple[str, str]]:
    """Examples and pages that send, and their text."""
    texts = [(path.name, path.read_text()) for path in sorted((ROOT / "examples" / "python").glob("*.py"))]
    texts += [(page, (ROOT / "docs" / "python" / page).read_text()) for page in PAGES]
    texts.append(("README.md", (ROOT / "README.md").read_text()))
    return [(name, text) for name, text in texts if re.search(r"\b(a?send|send_nowait|send_many)\(", text)]


@pytest.mark.parametrize(("name", "text"), sending_programs(), ids=lambda value: value if len(value) < 40 else "")
def test_l1_whatever_sends_asks_for_readiness_first(name: str, text: str) -> None:
    asked = re.search(r"\b(wait_receivers|await_receivers|wait_ready|await_ready)\(", text)
    sends = re.search(r"(?<!def )\b(?<!`)(asend|send|send_nowait|send_many)\([^)]", text)
    assert asked, f"{name} hopes that receivers are there"
    assert sends


def test_every_c_example_has_a_python_twin() -> None:
    """The page names each C program, and Python examples and names that exist."""
    page = (ROOT / "docs" / "python" / "c_programs.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    programs = {path.stem for path in (ROOT / "examples" / "c").glob("*.c") if not path.name.startswith("ex_")}
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    assert programs <= named, programs - named
    assert set(EXAMPLES) == set(re.findall(r"`(\w+\.py)`", page))


@needs_plain_library
def test_every_call_of_the_c_examples_has_a_python_name() -> None:
    import um_cffi

    page = (ROOT / "docs" / "python" / "c_programs.md").read_text()
    header = (ROOT / "include" / "lbm.h").read_text()
    functions = set(re.findall(r"\b(lbm_\w+)\(", header))
    sources = "".join(path.read_text() for path in (ROOT / "examples" / "c").glob("*.[ch]"))
    used = {name for name in re.findall(r"\blbm_\w+", sources) if name in functions}
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `lbm_")]
    known = [name.replace("*", r"\w+") for row in rows for name in re.findall(r"`(lbm_[\w*]+)`", row[1])]
    assert len(used) > 40
    missing = {name for name in used if not any(re.fullmatch(pattern, name) for pattern in known)}
    assert not missing, missing
    for path in {path for row in rows for path in re.findall(r"`((?:um_cffi\.)?[A-Za-z]+(?:\.\w+)*)`", row[2])}:
        thing: object = um_cffi
        for part in path.removeprefix("um_cffi.").split("."):
            if path not in ("um_cffi.library", "UmError.errnum", "options", "logging"):
                thing = getattr(thing, part)


@pytest.mark.parametrize(("c_role", "python_role"), [("ping", "pong"), ("pong", "ping")])
def test_python_and_c_play_ping_pong(host: Host, c_role: str, python_role: str) -> None:
    script = str(ROOT / "examples" / "python" / "ping_pong.py")
    twin = host.start_command(*python(script, python_role, "20"), env=ENV)
    c = host.start("lbmpong", "-M", "20", c_role)
    if c_role == "ping":
        assert "Elapsed time" in c.finish()
        twin.finish()
    else:
        assert "20 round trips: median" in twin.finish()
