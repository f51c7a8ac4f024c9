"""Stops single threads of tests at random: python -m checks.thread_stops PID LONGEST SEED

Those of the Python processes and the C test programs below PID, for up to LONGEST seconds, until PID has gone.
SIGSTOP stops all threads of a process together, which says nothing about tests inside one process: here one thread is
late while the others go on. A process of its own, because its tracees must not be children that somebody else waits
for. Ptrace serves one tracer at a time: with the address sanitizer nobody may look for leaks, which uses it, too.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .process import descendants

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17  # sys/ptrace.h
WALL = 0x40000000  # __WALL: threads, too
EVENT_STOP = 128

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def threads(root: int) -> Iterator[int]:
    """Of the Python processes and test programs below."""
    for process in descendants(root):
        with suppress(OSError):
            program = Path(f"/proc/{process}/exe").readlink()
            if program.name.startswith("python") or program.parent.name == "tests":
                yield from (int(task.name) for task in Path(f"/proc/{process}/task").iterdir())


def let_go(thread: int) -> bool:
    """Detach from a thread that has stopped; False while it has not, which may take long where it is in the kernel."""
    try:
        found, status = os.waitpid(thread, WALL | os.WNOHANG)
    except ChildProcessError:
        return True  # it has ended
    if found and os.WIFSTOPPED(status):
        signal = 0 if status >> 16 == EVENT_STOP else os.WSTOPSIG(status)  # it was about to be delivered
        _libc.ptrace(DETACH, thread, None, signal)
    return found != 0


def main(root: int, longest: float, seed: int) -> None:
    """Most stops are short."""
    chance = random.Random(seed)
    held: dict[int, float] = {}
    below: list[int] = []
    looked = 0.0
    while Path(f"/proc/{root}").exists():
        time.sleep(min(0.05, chance.expovariate(60)))
        now = time.monotonic()
        for thread in [thread for thread, until in held.items() if until <= now]:
            if let_go(thread):  # one that is given up before would stop later, for ever
                del held[thread]
        if now - looked > 0.2:
            below, looked = list(threads(root)), now
        if below and len(held) < 2 + len(below) // 4:
            thread = chance.choice(below)
            if thread not in held and _libc.ptrace(SEIZE, thread, None, None) == 0:
                _libc.ptrace(INTERRUPT, thread, None, None)
                held[thread] = now + longest * chance.random() ** 2


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
