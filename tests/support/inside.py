"""How a module named test_py_* is run: by a pytest of its own inside a private network, sanitized where the build is.

tests/python/conftest.py does so for those who type `pytest`. The runner of the checks calls this file in place of a
pytest around that one, which would import and collect everything a second time; each file has a process and a network
of its own where `--forked` asks for it (forked.py):

    python tests/support/inside.py [--forked] [options of pytest] FILE...
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import interpreter
from hosts import BUILD

ROOT = Path(__file__).resolve().parents[2]
HANG_SECONDS = 1800 if os.environ.get("UM_SANITIZED") or os.environ.get("UM_SOAK") else 600
ENV = {"UM_BUILD_DIR": str(BUILD), "PYTHONPATH": str(ROOT)}


FORKED = (ROOT / "tests" / "support" / "forked.py", "--net")


def command(*arguments: object, by: tuple[object, ...] = ("-m", "pytest")) -> list[str]:
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts="]
    python = interpreter.python("-X", "faulthandler", *by, *options, *arguments)
    return [str(ROOT / "tools" / "private_net.sh"), *python]


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "--forked"]
    words = command(*given, by=FORKED) if "--forked" in sys.argv else command(*given)
    os.execve(words[0], words, {**os.environ, **ENV})
