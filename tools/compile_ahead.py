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
from pathlib import Path

from checks.builds import ASAN, FUZZ, TSAN, Tree, configure
from checks.process import CORES, ROOT


def compile_until(stop: Path, tree: Tree) -> None:
    """One tree. SIGINT has ninja and make take back what is half written."""
    if stop.exists() or configure(tree).code != 0:
        return
    command = ["cmake", "--build", tree.folder, "--target", tree.target, "-j", str(CORES)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=ROOT, stdout=quiet, stderr=quiet, start_new_session=True) as compiling:
        try:
            while compiling.poll() is None and not stop.exists():
                time.sleep(0.2)
        finally:
            if compiling.poll() is None:
                os.killpg(compiling.pid, signal.SIGINT)


def main() -> None:
    stop = Path(sys.argv[1])
    os.nice(10)  # the tests wait for the packages
    for number in (signal.SIGINT, signal.SIGTERM):  # the first, which a shell has its background ignore, for ninja too
        signal.signal(number, lambda *_: sys.exit(1))
    for tree in (FUZZ, ASAN, TSAN):
        if tree is not FUZZ or shutil.which("clang") is not None:
            compile_until(stop, tree)


if __name__ == "__main__":
    main()
