"""How a module named test_py_* is run: by a pytest of its own inside a private network, sanitized where the build is.

tests/python/conftest.py does so for those who type `pytest`. The runner of the checks calls this file in place of a
pytest around that one, which would import and collect everything a second time:

    python tests/support/inside.py FILE [options of pytest]
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


def command(*arguments: object) -> list[str]:
    """The stacks of all threads are printed where a test takes too long."""
    options = ["-q", "-p", "no:cacheprovider", "-o", f"faulthandler_timeout={HANG_SECONDS // 3}", "-o", "addopts="]
    python = interpreter.python("-X", "faulthandler", "-m", "pytest", *options, *arguments)
    return [str(ROOT / "tools" / "private_net.sh"), *python]


if __name__ == "__main__":
    words = command(*sys.argv[1:])
    os.execve(words[0], words, {**os.environ, **ENV})
