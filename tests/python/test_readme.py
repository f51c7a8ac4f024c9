"""What README tells a new user to paste works when pasted."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from hosts import BUILD, Host
from interpreter import ENV, printed, python

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
    for _ in range(30):  # minsrc waits for nobody
        host.start("minsrc").finish()
        if "Greeting: Hello!\n" in receiver.output:
            break
    receiver.expect("^Greeting: Hello!$")


def test_the_python_example_works_alone(host: Host) -> None:
    output = host.start_command(*python("-c", block("python")), env=ENV).finish()
    assert printed(output)[-1] == "b'Hello!'"


def test_nothing_is_said_to_be_on_an_index() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs" / "python").glob("*.md")):
        assert not re.search(r"pip install (-\S+ )*['\"]?um.cffi", page.read_text()), page


def test_every_make_target_named_in_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
