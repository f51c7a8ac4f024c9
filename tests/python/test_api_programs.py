"""Programs that use the documented calls only build against the headers of the build tree with -llbm and run.

The programs are the tests tests/c/api/api_*_test.c: they include <lbm/lbm.h>, <lbm/lbmaux.h> and <lbm/um.h>, nothing
of the inside, and are run here against the shared library under the name that existing programs link.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build"))
SUPPORT = ROOT / "tests" / "c" / "support"
PROGRAMS = sorted((ROOT / "tests" / "c" / "api").glob("api_*_test.c"))


def sanitizers() -> str:
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith("UM_SANITIZE:"):
            return line.partition("=")[2]
    return ""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_program_builds_against_the_public_headers_and_runs(source: Path, tmp_path: Path) -> None:
    included = set(re.findall(r'#include [<"]((?:lbm|base|core|net|wire|config|api)/[^>"]+)', source.read_text()))
    assert {name.split("/")[0] for name in included} == {"lbm"}, included
    program = tmp_path / source.stem
    flags = [f"-fsanitize={sanitizers()}"] if sanitizers() else []
    library = BUILD / "lib"
    command = ["cc", "-std=gnu11", "-Wall", *flags, f"-I{BUILD / 'include'}", f"-I{SUPPORT}", str(source)]
    command += [str(SUPPORT / "um_test.c"), "-o", str(program), f"-L{library}", "-llbm", "-pthread"]
    built = subprocess.run([*command, f"-Wl,-rpath,{library}"], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert "warning" not in built.stderr, built.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ", 0 failed" in ran.stdout.splitlines()[-1]
