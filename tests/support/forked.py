"""Runs several files of tests, each by a process of its own that is forked from one interpreter.

What every file needs (pytest, its plugins, numpy) is read once, which takes as long as the tests of a short file, and
with the sanitizers three times as long. The binding is not read here: each process loads the library by itself. With
`--net` each has a network of its own, too. After each file a line says how its process ended; the runner of the checks
(tools/checks/pytests.py) starts this.

    python tests/support/forked.py [--net] [options of pytest] FILE.py...
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest
from _pytest.config import default_plugins

NEEDED = ("numpy", "asyncio", "fixtures")  # by most files
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
LOOPBACK = "ip link set lo up multicast on; ip route add 224.0.0.0/4 dev lo"


def own_network() -> None:
    """As tools/private_net.sh makes one; where that is not permitted, the one that this was started in."""
    if ctypes.CDLL(None).unshare(NEW_NETWORK) == 0:
        plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        subprocess.run(["sh", "-c", LOOPBACK], env=plain, stderr=subprocess.DEVNULL, check=False)


def main(words: Sequence[str]) -> int:
    """In the forked processes: the status of pytest, with which the process ends as any other would."""
    files = [word for word in words if word.endswith(".py")]
    options = [word for word in words if word not in files and word != "--net"]
    for name in [*(f"_pytest.{each}" for each in default_plugins), *NEEDED]:
        importlib.import_module(name)
    gc.freeze()
    worst = 0
    for file in files:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            if "--net" in words:
                own_network()
            return int(pytest.main([*options, file]))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(f"\n== {file} ended with {code}", flush=True)
        worst = worst or abs(code)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
