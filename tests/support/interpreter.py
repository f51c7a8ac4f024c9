"""How tests run Python programs that use the binding: plainly, or with the sanitizers of the build tree.

The interpreter is not built with the sanitizer: its run-time has to be there before the library is loaded. Leaks are
looked for at the end of each process; those of the interpreter are in python_leaks.supp. Not where single threads are
stopped (tools/shake_tests.py --threads): both use ptrace, which serves one at a time. Reports name files and addresses
alone: to read the functions of all that is loaded takes half as long as such a process. The runner of the checks adds
the functions (tools/checks/process.py), and `addr2line -fpe FILE ADDRESS` tells one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hosts import BUILD

ROOT = Path(__file__).resolve().parents[2]
SUPPRESSIONS = ROOT / "tests" / "support" / "python_leaks.supp"
# Tests that import the binding into the process of pytest itself.
needs_plain_library = pytest.mark.skipif(bool(os.environ.get("UM_SANITIZED")), reason="pytest itself is not sanitized")
# Tests of what a command prints without a call to the library: there is nothing for sanitizers to see.
without_library = pytest.mark.skipif(bool(os.environ.get("UM_SANITIZED")), reason="calls nothing of the library")
ENV = {"PYTHONPATH": str(ROOT), "UM_BUILD_DIR": str(BUILD), "PYTHONUNBUFFERED": "1"}


@cache
def _sanitizer() -> list[str]:
    if not os.environ.get("UM_SANITIZED"):
        return []
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    leaks = int(not os.environ.get("UM_THREADS_STOPPED"))
    settings = {
        "LD_PRELOAD": f"{runtime.strip()}:{BUILD}/tests/support/thread_destructors.so",
        "ASAN_OPTIONS": f"detect_leaks={leaks}:malloc_context_size=3:symbolize=0",
        "LSAN_OPTIONS": f"suppressions={SUPPRESSIONS}:print_suppressions=0:use_tls=0",
        "PYTHONMALLOC": "malloc",
    }
    return ["env", *(f"{name}={value}" for name, value in settings.items())]


def python(*arguments: object) -> list[str]:
    """A command that runs the interpreter; only it and its children are under the sanitizer."""
    return [*_sanitizer(), sys.executable, *map(str, arguments)]


def printed(output: str) -> list[str]:
    """The lines of a program's output without those of the library's log, which come when its thread gets to it."""
    return [line for line in output.splitlines() if not re.match(r"Core-\d+-\d+: ", line)]
