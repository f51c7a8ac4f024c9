#!/usr/bin/env python3
"""Runs tests while their processes are stopped at random, as a loaded machine would stop them.

A test that is right only when nobody is late fails now and then on somebody's machine. Here each process below this one
is late again and again: every few milliseconds one of them is stopped (SIGSTOP) for up to `--longest` seconds, then
goes on. What fails under it asks for a state that it did not wait for, or gives a figure of a quiet machine.

    tools/shake_tests.py                            every program and file of tests of the release tree, once
    tools/shake_tests.py --only test_py_ --times 5  those with that in their name, five times each
    tools/shake_tests.py --tree build-asan          of another tree that has been built
    tools/shake_tests.py --no-stops --beside 4      no stops; busy processes beside the tests instead
    tools/shake_tests.py --threads                  single threads are stopped instead

The output of what failed is kept in build/shaken/. Tests that are judged by time and those that build the project
anew are left out. The last line is "N passed, M failed, K skipped".
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from checks import ctests, process, pytests
from checks.builds import ASAN, RELEASE, TSAN, Tree
from checks.process import ROOT, Tally
from checks.schedule import Job

KEPT = ROOT / "build" / "shaken"
TREES = {tree.folder: tree for tree in (RELEASE, ASAN, TSAN)}
LEFT_OUT = ("/alone", "/wheel", "test_install_i1", "test_types", "_sim/", "/regressions")
JOB_CONTROL = {b"zsh", b"fish"}  # a child of theirs that is stopped is a job that somebody has suspended
SPARED = {b"ninja", b"cc1", b"cmake", b"ld", b"cc", b"gcc"}  # they compile, for longer than anybody waits


def state_of(pid: int) -> tuple[str, bytes, int]:
    """The state letter of /proc/PID/stat, the name of the program and its parent; ("", b"", 0) for a process that is
    gone."""
    with suppress(OSError, ValueError):
        text = Path(f"/proc/{pid}/stat").read_bytes()
        end = text.rindex(b")")
        return text[end + 2 : end + 3].decode(), text[text.index(b"(") + 1 : end], int(text[end + 4 :].split()[0])
    return "", b"", 0


class Shaker(threading.Thread):
    """Stops processes below this one. One that a test has stopped itself is left alone."""

    def __init__(self, longest: float, seed: int, spared: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self.longest = longest
        self.random = random.Random(seed)
        self.spared = frozenset(spared)
        self.stops = 0
        self._ended = threading.Event()
        self._until: dict[int, float] = {}  # of the processes stopped now

    def run(self) -> None:
        """Until `end`."""
        below: Sequence[int] = []
        looked = 0.0
        while not self._ended.wait(self.random.expovariate(40)):
            now = time.monotonic()
            self._go_on(now)
            if now - looked > 0.2:
                below, looked = process.descendants(os.getpid()), now
            below = [pid for pid in below if pid not in self.spared]
            if below and len(self._until) * 3 < len(below) + 3:
                self._pause(self.random.choice(below), now)
        self._go_on(float("inf"))

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _pause(self, pid: int, now: float) -> None:
        state, name, parent = state_of(pid)
        if pid in self._until or state not in ("R", "S") or name in SPARED or state_of(parent)[1] in JOB_CONTROL:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGSTOP)
            self._until[pid] = now + self.longest * self.random.random() ** 2  # most are short
            self.stops += 1

    def _go_on(self, now: float) -> None:
        for pid in [pid for pid, until in self._until.items() if until <= now]:
            del self._until[pid]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def jobs_of(tree: Tree) -> list[Job]:
    """Each test program, and each file of Python tests."""
    jobs = ctests.jobs_of(tree, "c", ctests.Seeds(1, 100), {}, threaded=tree is TSAN)
    if tree is RELEASE:
        jobs += pytests.jobs_of_release("python")
    if tree is ASAN:
        jobs += pytests.jobs_of_sanitizers("asan-python")
    return [job for job in jobs if not any(part in job.name for part in LEFT_OUT)]


def shake(job: Job, number: int) -> Tally:
    """Run it once; what failed is kept and told."""
    begin = time.monotonic()
    tally = job.work()
    if tally.failed:
        KEPT.mkdir(parents=True, exist_ok=True)
        file = KEPT / f"{job.name.replace('/', '-')}.{number}"
        file.write_text("\n".join(tally.complaints))
        print(f"== FAILED {job.name} in {time.monotonic() - begin:.0f} s: {file.relative_to(ROOT)}", flush=True)
    return tally


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run tests whose processes are stopped at random.")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="jobs with that in their name")
    parser.add_argument("--times", type=int, default=1, help="how often each runs (1)")
    parser.add_argument("--tree", choices=TREES, default=RELEASE.folder, help="the build tree (build)")
    parser.add_argument("--jobs", type=int, default=4, help="how many run at once (4)")
    parser.add_argument("--longest", type=float, default=0.7, help="seconds that a process is stopped at most (0.7)")
    parser.add_argument("--no-stops", action="store_true", help="stop nothing")
    parser.add_argument("--threads", action="store_true", help="stop single threads instead")
    parser.add_argument("--beside", type=int, default=0, help="busy processes beside the tests (0)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="of the order and the stops")
    return parser.parse_args()


def main() -> int:
    """The status is 1 when anything failed."""
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    chosen = jobs_of(TREES[arguments.tree])
    if arguments.only:
        chosen = [job for job in chosen if any(text in job.name for text in arguments.only)]
    runs = [(job, number) for number in range(arguments.times) for job in chosen]
    random.Random(arguments.seed).shuffle(runs)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.beside)]
    if arguments.threads:
        # Who looks for leaks stops threads in the same way, which only one can do at a time.
        os.environ.update({"UM_THREADS_STOPPED": "1", "ASAN_OPTIONS": "detect_leaks=0"})
        stopping = [sys.executable, "-m", "checks.thread_stops", *map(str, (os.getpid(), arguments.longest))]
        busy.append(subprocess.Popen([*stopping, str(arguments.seed)], cwd=ROOT / "tools"))
    shaker = Shaker(arguments.longest, arguments.seed, [each.pid for each in busy])
    total = Tally()
    try:
        if not arguments.no_stops and not arguments.threads:
            shaker.start()
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for number, tally in enumerate(pool.map(lambda run: shake(*run), runs), 1):
                total.add(tally)
                if number % 50 == 0:
                    print(f"== {number} of {len(runs)} runs: {total}", flush=True)
    finally:
        if shaker.is_alive():
            shaker.end()
        for each in busy:
            each.kill()
        process.kill_everything()
    print(f"== {len(runs)} runs, {shaker.stops} stops, seed {arguments.seed}", flush=True)
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
