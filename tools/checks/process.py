"""Programs that checks run, and what came out of them.

A program is a process group of its own with a hang limit: the time for which it may neither print anything nor, where
it is given processor seconds, get any. On a busy machine all takes longer, but what goes on does not hang. At the limit
it is ended with all its descendants, those in groups of their own too; at its end what is left of the group. Its output
goes to a file, so that a grandchild that keeps it open cannot hold up anybody.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRIVATE_NET = str(ROOT / "tools" / "private_net.sh")
CORES = len(os.sched_getaffinity(0))
HANG_SECONDS = 1500.0
SUMMARY = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")
COMPLAINT_CHARACTERS = 12000
ADDRESS = re.compile(r"\((/[^()\s]+)\+(0x[0-9a-f]+)\)")
ADDRESSES = 60  # told with their functions
# As programs of tests/c print it, or where a test of Python is that hangs.
CHECK_THAT_FAILED = re.compile(r"^(?:FAIL .*|\S+\.c:\d+: .*|  File \"\S+/test_\w+\.py\", line .*)$", re.MULTILINE)
LOW_PRIORITY = 10  # a tenth of what others get
METER_SECONDS = 0.2
ENDLESS = 4  # times the hang limit, for what goes on printing

_running: set[int] = set()  # process groups; several threads, so under the lock
_lock = threading.Lock()
_ended = threading.Event()  # no program is begun any more
_alone = threading.Event()  # what has a budget need not make room for others


@dataclass
class Outcome:
    """`code` is the exit status, negative for a signal; `cpu` the processor seconds of the program and its children."""

    code: int
    output: str
    seconds: float = 0.0
    cpu: float = 0.0


@dataclass
class Tally:
    """Counts of tests, what the failed ones said, and the processor seconds spent."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    complaints: list[str] = field(default_factory=list)
    cpu: float = 0.0

    def add(self, other: Tally) -> None:
        """Count the other one's results as well."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.complaints += other.complaints
        self.cpu += other.cpu

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def functions(text: str) -> list[str]:
    """What stands at the addresses, `(FILE+0xOFFSET)`, of a sanitizer's report that names no functions."""
    found = list(dict.fromkeys(ADDRESS.findall(text)))[:ADDRESSES]
    if shutil.which("addr2line") is None:
        return []
    names = []
    for file, offset in found:
        done = subprocess.run(["addr2line", "-fpe", file, offset], capture_output=True, text=True, check=False)
        if not done.stdout.startswith("??"):
            names.append(f"({file}+{offset}) is {done.stdout.strip()}")
    return names


def failure(what: str, outcome: Outcome) -> Tally:
    """One failed test, with the end of its output, and below what may be far above: a leak that follows has many lines,
    and who repeats a complaint may keep its end only.
    """
    checks = CHECK_THAT_FAILED.findall(outcome.output)[-10:]
    end = outcome.output[-COMPLAINT_CHARACTERS:]
    said = "\n".join([end, *functions(end), *checks])
    return Tally(failed=1, complaints=[f"{what}: exit {outcome.code}\n{said}"], cpu=outcome.cpu)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """Children, their children and so on, of a process that lives."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # not a glob, which fails when a process ends while it looks
        with suppress(OSError, ValueError):
            text = Path(f"/proc/{int(name)}/stat").read_text()
            parent = int(text[text.rindex(")") :].split()[2])
            children.setdefault(parent, []).append(int(name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found[1:]


def _kill_family(pid: int) -> None:
    """The descendants are looked for before their parents are gone."""
    below = descendants(pid)
    _kill(pid)
    for each in below:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def kill_everything() -> None:
    """End what runs; what would be run from now on fails at once."""
    _ended.set()
    with _lock:
        for pid in _running:
            _kill_family(pid)


def make_room(wanted: bool) -> None:
    """Whether what has a budget runs at a low priority, now and when it is begun: not when nothing but that is left,
    since strangers that keep the processors busy would have it last for hours.
    """
    if wanted:
        _alone.clear()
    else:
        _alone.set()


def makes_room() -> bool:
    """What make_room() was last told."""
    return not _alone.is_set()


def _prioritize(pid: int, value: int) -> None:
    """Where the kernel groups processes by session, priorities hold inside a group only, so that it gets one too."""
    with suppress(OSError):  # it has ended already, there is no such grouping, or to raise it is not permitted
        os.setpriority(os.PRIO_PROCESS, pid, value)
        Path(f"/proc/{pid}/autogroup").write_text(str(value))


def _processor_seconds(pid: int) -> float:
    text = Path(f"/proc/{pid}/stat").read_text()
    user, system = text[text.rindex(")") :].split()[12:14]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def stolen_seconds() -> float:
    """Processor seconds that the host of a virtual machine gave to others while this one wanted them (proc_stat(5))."""
    words = Path("/proc/stat").read_text().partition("\n")[0].split()
    return int(words[8]) / os.sysconf("SC_CLK_TCK")


@dataclass
class _Watch:
    """Ends a program that hangs. One with a budget of processor seconds makes room for others meanwhile, and gets
    SIGUSR1 when it has had them. All but `ended` is the thread's until that has ended.
    """

    pid: int
    output: int  # a descriptor
    seconds: float
    budget: float | None
    hung: str = ""  # why it was ended
    ended: threading.Event = field(default_factory=threading.Event)
    _spent: float = 0.0  # of the budget, as long as that lasts
    _low: bool = False
    _asked: bool = False

    def look(self) -> None:
        """In a thread of its own, until the program has ended."""
        begin = since = time.monotonic()
        before = None
        while not self.ended.wait(min(METER_SECONDS, self.seconds / 4)):
            with suppress(OSError):  # it has ended just now
                self._meter()
                progress = os.fstat(self.output).st_size, self._spent
                if progress != before:
                    before, since = progress, time.monotonic()
            now = time.monotonic()
            if now - since >= self.seconds or now - begin >= ENDLESS * self.seconds:
                self.hung = f"stopped after {now - begin:.0f} seconds, {now - since:.0f} without progress: it hangs"
                _kill_family(self.pid)
                return

    def _meter(self) -> None:
        if self.budget is None or self._asked:
            return
        if self._low != makes_room():
            self._low = not self._low
            _prioritize(self.pid, LOW_PRIORITY if self._low else 0)
        self._spent = _processor_seconds(self.pid)
        if self._spent >= self.budget:
            self._asked = True
            os.kill(self.pid, signal.SIGUSR1)


def run(
    command: Sequence[str],
    seconds: float = HANG_SECONDS,
    env: dict[str, str] | None = None,
    cwd: Path = ROOT,
    budget: float | None = None,
) -> Outcome:
    """Run to the end or the hang limit; output and errors together.

    With a `budget` it runs at a low priority (see make_room), and gets SIGUSR1 when it has had that many processor
    seconds.
    """
    begin = time.monotonic()
    with tempfile.TemporaryFile() as file:
        with _lock:
            if _ended.is_set():
                return Outcome(-signal.SIGKILL, "not begun: the run is over its time")
            process = subprocess.Popen(
                list(command),
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            _running.add(process.pid)
        watch = _Watch(process.pid, file.fileno(), seconds, budget)
        thread = threading.Thread(target=watch.look, daemon=True)
        thread.start()
        _, status, usage = os.wait4(process.pid, 0)
        watch.ended.set()
        thread.join()
        with _lock:
            _running.discard(process.pid)
        _kill(process.pid)  # grandchildren that outlived it
        process.returncode = os.waitstatus_to_exitcode(status)  # Popen need not wait for it again
        took = time.monotonic() - begin
        file.seek(0)
        output = file.read().decode(errors="replace")
    if watch.hung:
        output += f"\n{watch.hung}\n"
    return Outcome(process.returncode, output, took, usage.ru_utime + usage.ru_stime)


def one_check(
    name: str, command: Sequence[str], env: dict[str, str] | None = None, seconds: float = HANG_SECONDS
) -> Tally:
    """A runner that only says yes or no counts as one test."""
    outcome = run(command, seconds, env)
    return Tally(passed=1, cpu=outcome.cpu) if outcome.code == 0 else failure(name, outcome)
