"""What README tells a new user to paste works when pasted."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from hosts import BUILD, Host

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found
    return found.group(1)


def test_the_c_example_is_short_and_receives(host: Host, tmp_path: Path) -> None:
    code = block("c")
    assert len([line for line in code.splitlines() if line.strip()]) < 20
    source = tmp_path / "hello.c"
    source.write_text(code)
    (compile_line,) = re.findall(r"^    (cc hello\.c .*)$", README, re.MULTILINE)
    flags = ["-fsanitize=address,undefined"] if os.environ.get("UM_SANITIZED") else []
    words = compile_line.replace("$PWD/build", str(BUILD)).split()
    words = [re.sub(r"^-([IL])build/", rf"-\1{BUILD}/", word) for word in words]
    subprocess.run([*words, *flags], cwd=tmp_path, check=True)
    receiver = host.start_command(str(tmp_path / "hello"))
    host.start("minsrc")
    receiver.expect("^Greeting: Hello!$")


def test_the_python_example_sends(host: Host) -> None:
    if os.environ.get("UM_SANITIZED"):
        pytest.skip("the binding needs the sanitizer preloaded")
    receiver = host.start("minrcv")
    python = ROOT / ".venv" / "bin" / "python"
    if not python.exists():
        pytest.skip("no .venv here")
    env = {"PYTHONPATH": str(ROOT), "UM_BUILD_DIR": str(BUILD)}
    host.start_command(str(python), "-c", block("python"), env=env).finish()
    assert "Received 6 bytes on topic Greeting: 'Hello!'\n" in receiver.finish()


def test_every_make_target_named_in_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
