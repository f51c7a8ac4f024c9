"""One pool for everything that is to be run: builds, test programs, parts of pytest, fuzz targets.

Jobs have a time and a share of the processors, both from the last recording (tests/times.tsv). The longest begin first;
a job that works needs a processor, one that mostly waits runs beside those that work; what is judged by time runs
behind the others, with nothing beside it but what is judged by time, too, and mostly waits as well. Shares are means,
and a job that waits in this second leaves its part to others, so that one more is begun than would fit. What is given
processor seconds, whenever it gets them, runs in the background from the time when it can, at a low priority until the
others have ended: it fills what they leave idle, and on a machine that is too slow for all of it gets a shorter time
rather than none. A job may bring further jobs when it has ended: a build brings the tests of its tree.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .process import CORES, ROOT, Tally, kill_everything, make_room

TIMES = ROOT / "tests" / "times.tsv"
UNKNOWN_SECONDS = 20.0
SLACK = 0.4  # of a processor more than there are: what is idle then, the background fills
LEAST_SHARE = 0.05
QUIET_SHARE = 0.5  # of a processor, for all that runs when what is judged by time does
JOBS_AT_ONCE = 3 * CORES
HEARTBEAT_SECONDS = 30.0
BACKGROUND_LEAST_SECONDS = 2.0
BACKGROUND_RESERVE_SECONDS = 120.0  # at the end of the run, for what still runs when the last of them begins
USABLE = 0.85  # of the processors: now and then all that may run waits
LEAST_SAMPLE_SECONDS = 30.0  # of a processor, from which the speed of this machine is told


@dataclass
class Job:
    """`work` runs in a thread of its own. `follow` gives the jobs that become possible when it has passed."""

    name: str
    stage: str
    work: Callable[[], Tally]
    follow: Callable[[], list[Job]] = list
    urgent: bool = False  # others wait for it
    alone: bool = False
    background: bool = False  # at a low priority, beside whatever else runs, for `seconds` of a processor
    recorded: bool = True  # not a build: its time depends on what is left to build
    seconds: float = UNKNOWN_SECONDS  # expected
    share: float = 1.0  # processors it keeps busy, as a mean
    work_seconds: float = 0.0  # of a processor, where they are not recorded and it is not in the background


@dataclass
class Result:
    job: Job
    tally: Tally
    seconds: float
    began: float = 0.0  # on the monotonic clock


def read_times(path: Path = TIMES) -> dict[str, tuple[float, float]]:
    """Seconds and processor seconds of each job, by name."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return {name: (float(seconds), float(cpu)) for name, seconds, cpu in rows}


def write_times(times: dict[str, tuple[float, float]], path: Path = TIMES) -> None:
    """Rewrite the file, sorted."""
    head = "# Seconds and processor seconds of each job, for the order of the next run: tools/run_tests.py --record\n"
    rows = (f"{name}\t{seconds:.1f}\t{cpu:.1f}\n" for name, (seconds, cpu) in sorted(times.items()))
    path.write_text(head + "".join(rows))


def expect(job: Job, times: dict[str, tuple[float, float]]) -> Job:
    """Put in what the last recording says of the job."""
    if job.recorded and job.name in times:
        seconds, cpu = times[job.name]
        job.seconds = max(seconds, 0.1)
        job.share = min(cpu / job.seconds, float(CORES))
    job.share = max(job.share, LEAST_SHARE)
    return job


def fits(job: Job, running: Iterable[Job]) -> bool:
    """Whether the job may begin beside those that run. A job for several processors begins when one is free."""
    beside = list(running)
    if job.alone or any(other.alone for other in beside):
        together = [job, *beside]
        quiet = all(each.alone for each in together) and sum(each.share for each in together) <= QUIET_SHARE
        return not beside or quiet
    if job.background:
        return sum(other.background for other in beside) < CORES
    ahead = [other for other in beside if not other.background]
    used = sum(other.share for other in ahead)
    return len(ahead) < JOBS_AT_ONCE and used + min(job.share, 1.0) <= CORES + SLACK


def order(jobs: Iterable[Job]) -> list[Job]:
    """What others wait for, then the longest; what runs alone comes last."""
    return sorted(jobs, key=lambda job: (job.alone, not job.urgent, -job.seconds))


def next_to_begin(waiting: Iterable[Job], running: Iterable[Job]) -> Job | None:
    """The first in order that fits. Jobs to be run alone wait until nothing but the background is left, and that then
    waits for them.
    """
    beside, ahead = list(running), order(waiting)
    alone = [job for job in ahead if job.alone]
    if alone and all(job.alone or job.background for job in [*ahead, *beside]):
        ahead = alone
    return next((job for job in ahead if fits(job, beside)), None)


def slowness(results: Iterable[Result], times: dict[str, tuple[float, float]]) -> float:
    """Processor seconds of what has ended, for each that was recorded: on a slower or busier machine more than 1."""
    known = [(each.tally.cpu, times[each.job.name][1]) for each in results if each.job.name in times]
    recorded = sum(before for _, before in known)
    return sum(now for now, _ in known) / recorded if recorded >= LEAST_SAMPLE_SECONDS else 1.0


def shortened(seconds: float, left: float, jobs: int, ahead: float = 0.0) -> float:
    """Of the processor seconds wanted, those that a background job gets when as many `jobs` of the kind share what the
    others, which want `ahead` of them, leave of the time that is `left`.
    """
    fair = ((left - BACKGROUND_RESERVE_SECONDS) * CORES * USABLE - ahead) / jobs
    return min(seconds, max(fair, BACKGROUND_LEAST_SECONDS))


@dataclass
class Pool:
    """Runs jobs until none is left or the time is over. Used by one thread."""

    times: dict[str, tuple[float, float]]
    until: float | None = None  # on the monotonic clock
    say: Callable[[str], None] = lambda text: print(text, flush=True)
    results: list[Result] = field(default_factory=list)
    _ended: queue.SimpleQueue[Result] = field(default_factory=queue.SimpleQueue)
    _running: dict[str, Job] = field(default_factory=dict)
    _waiting: list[Job] = field(default_factory=list)

    def run(self, jobs: Iterable[Job]) -> list[Result]:
        """The results in the order in which the jobs ended."""
        begin = beat = time.monotonic()
        self._add(jobs)
        try:
            while self._waiting or self._running:
                self._begin_what_fits()
                self._take(1.0)
                now = time.monotonic()
                if now - beat >= HEARTBEAT_SECONDS:
                    beat = now
                    self._report(now - begin)
                if self.until is not None and now >= self.until:
                    self._give_up()
        finally:
            make_room(True)
            if self._running:
                kill_everything()
        return self.results

    def _add(self, jobs: Iterable[Job]) -> None:
        self._waiting += [expect(job, self.times) for job in jobs]

    def _begin_what_fits(self) -> None:
        while (job := next_to_begin(self._waiting, self._running.values())) is not None:
            if job.background and self.until is not None:
                self._shorten(job, self.until - time.monotonic())
            self._waiting.remove(job)
            self._running[job.name] = job
            threading.Thread(target=self._work, args=[job], daemon=True).start()
        make_room(any(not (job.background or job.alone) for job in [*self._waiting, *self._running.values()]))

    def _shorten(self, job: Job, left: float) -> None:
        seconds = shortened(job.seconds, left, sum(other.background for other in self._waiting), self._ahead())
        if seconds < job.seconds:
            self.say(f"== {job.name}: {seconds:.0f} s instead of {job.seconds:.0f}, for want of time")
            job.seconds = seconds

    def _ahead(self) -> float:
        """Processor seconds that the jobs before the background will take, those too that builds have yet to bring."""
        ended = {result.job.name for result in self.results}
        wanted = sum(cpu for name, (_, cpu) in self.times.items() if name not in ended)
        wanted += sum(job.work_seconds for job in [*self._waiting, *self._running.values()])
        return wanted * slowness(self.results, self.times)

    def _work(self, job: Job) -> None:
        begin = time.monotonic()
        try:
            tally = job.work()
        except Exception as error:
            tally = Tally(failed=1, complaints=[f"{job.name}: {type(error).__name__}: {error}"])
        self._ended.put(Result(job, tally, time.monotonic() - begin, begin))

    def _take(self, seconds: float) -> None:
        try:
            result = self._ended.get(timeout=seconds)
        except queue.Empty:
            return
        del self._running[result.job.name]
        self.results.append(result)
        for complaint in result.tally.complaints:
            self.say(complaint)
        if result.tally.failed:
            self.say(f"== FAILED {result.job.name}: {result.tally} in {result.seconds:.0f} s")
        else:
            if result.job.urgent:
                self.say(f"== {result.job.name}: {result.seconds:.0f} s")
            self._follow(result.job)

    def _follow(self, job: Job) -> None:
        try:
            self._add(job.follow())
        except Exception as error:
            text = f"what follows the {job.name}: {type(error).__name__}: {error}"
            self.say(text)
            self.results.append(Result(job, Tally(failed=1, complaints=[text]), 0.0))

    def _report(self, seconds: float) -> None:
        failed = sum(result.tally.failed for result in self.results)
        running = ", ".join(sorted(self._running))
        done = f"{len(self.results)} of {len(self.results) + len(self._waiting) + len(self._running)} jobs"
        self.say(f"== {seconds:.0f} s: {done}, {failed} tests failed; running: {running}")

    def _give_up(self) -> None:
        """The time is over: what runs is ended and what waits is not begun; both have failed."""
        self.until = None
        for job in self._waiting:
            text = f"{job.name}: not begun, the run is over its time"
            self.results.append(Result(job, Tally(failed=1, complaints=[text]), 0.0))
        self.say(f"== the run is over its time; not begun: {', '.join(job.name for job in self._waiting) or 'none'}")
        self._waiting.clear()
        kill_everything()
