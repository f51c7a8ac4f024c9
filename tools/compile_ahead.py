"""Compiles the trees of the sanitizers and fuzz targets while packages are installed: that often waits for a disk or a
network. Ends when the file that it is given is there; `make test` goes on with what is left, and tells of errors.

    python3 tools/compile_ahead.py FILE
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from checks.builds import ASAN, FUZZ, TSAN, compiling, configuring
from checks.process import CORES, ROOT


def run_until(over: Callable[[], bool], command: Sequence[str]) -> bool:
    """Whether it ended well, and by itself. SIGINT has ninja and make take back what is half written."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=ROOT, stdout=quiet, stderr=quiet, start_new_session=True) as process:
        while process.poll() is None and not over():
            time.sleep(0.2)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
    return process.returncode == 0 and not over()


def main() -> int:
    file, signals = Path(sys.argv[1]), []  # no exception, which could come between a fork and what ends the child
    for number in (signal.SIGINT, signal.SIGTERM):  # the first, which a shell has its background ignore, for ninja too
        signal.signal(number, lambda number, _: signals.append(number))
    os.nice(10)  # the tests wait for the packages

    def over() -> bool:
        return bool(signals) or file.exists()

    for tree in (FUZZ, ASAN, TSAN):
        possible = tree is not FUZZ or shutil.which("clang") is not None
        if possible and not over() and run_until(over, configuring(tree)):
            run_until(over, compiling(replace(tree, jobs=CORES)))
    return 1 if signals else 0


if __name__ == "__main__":
    sys.exit(main())
