"""Chooses the jobs of a run, runs them in one pool, adds up. The command line is that of tools/run_tests.py."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType

from . import changes, ctests, fuzzing, pytests, record, soak, style
from .builds import ASAN, FUZZ, RELEASE, TSAN, Tree, build
from .process import CORES, ROOT, Tally, stolen_seconds
from .schedule import Job, Pool, Result, read_times, slowness, write_times

# What each stage needs built before. In the order in which results are listed.
STAGES: dict[str, Tree | None] = {
    "build": RELEASE,
    "format": None,
    "lint": None,
    "docs": RELEASE,
    "c": RELEASE,
    "sim": RELEASE,
    "kills": RELEASE,
    "mutations": RELEASE,
    "python": RELEASE,
    "spark": RELEASE,
    "asan": ASAN,
    "asan-python": ASAN,
    "tsan": TSAN,
    "fuzz": FUZZ,
}
SOAK_STAGES = ("build", "sim", "kills", "mutations", "python", "spark", "fuzz")  # those with longer counts
CHECK_STAGES = ("build", "format", "lint", "c", "python")
ONLY_SOAK = ("sim", "kills", "mutations")
TRACE = ROOT / RELEASE.folder / "jobs.tsv"
LAST_WORDS = 20_000  # characters of what failed, told again at the end, shared by the jobs
SIM_PART_UNCHANGED, SIM_PART_CHECK, SIM_PART_SANITIZED = 4, 20, 50


@dataclass
class Plan:
    """What a run consists of."""

    stages: Sequence[str]
    soak: bool = False
    check: bool = False
    only: str = ""
    times: dict[str, tuple[float, float]] = field(default_factory=read_times)
    base: int = field(default_factory=changes.base_seed)
    changed: set[str] | None = field(default_factory=lambda: changes.changed_files(0))
    changed_lately: set[str] | None = field(default_factory=lambda: changes.changed_files(0.5))

    def seeds(self, sanitized: bool = False) -> ctests.Seeds:
        """All the usual seeds where an engine has changed, a part of them elsewhere."""
        part = 1 if changes.engines_changed(self.changed_lately) else SIM_PART_UNCHANGED
        if self.check:
            part = SIM_PART_CHECK
        return ctests.Seeds(self.base, SIM_PART_SANITIZED if sanitized else part)

    def jobs_of_stage(self, stage: str) -> list[Job]:
        """The jobs of a stage whose tree has been built."""
        makers: dict[str, Callable[[str], list[Job]]] = {
            "format": style.format_jobs,
            "lint": style.lint_jobs,
            "docs": style.docs_jobs,
            "c": lambda name: ctests.jobs_of(RELEASE, name, self.seeds(), self.times),
            "sim": lambda name: soak.sim_jobs(name, self.base),
            "kills": soak.kills_jobs,
            "mutations": soak.mutation_jobs,
            "python": self._python,
            "spark": self._spark,
            "asan": lambda name: ctests.jobs_of(ASAN, name, self.seeds(sanitized=True), self.times),
            "asan-python": lambda name: pytests.jobs_of_sanitizers(name, self._grouped()),
            "tsan": lambda name: ctests.jobs_of(TSAN, name, self.seeds(sanitized=True), self.times, threaded=True),
            "fuzz": lambda name: fuzzing.jobs_of(name, self.changed, self.soak, self._note),
        }
        jobs = makers[stage](stage) if stage in makers else []
        return [job for job in jobs if self.only in job.name]

    def _python(self, stage: str) -> list[Job]:
        return pytests.jobs_of_release(stage, self._long(), self.check, self._grouped())

    def _grouped(self) -> bool:
        """Whether files of Python tests share jobs: not where some are chosen by name, nor where all take long."""
        return not self.only and not self.soak

    def _long(self) -> dict[str, str] | None:
        return {"UM_SOAK": "1", "UM_FIGURES": str(record.FIGURES)} if self.soak else None

    def _spark(self, stage: str) -> list[Job]:
        def tests() -> list[Job]:
            return pytests.jobs_of_spark(stage, self._long())

        return tests() if self.only else [pytests.spark_classes_job(stage, tests)]

    def _note(self, what: str, value: str) -> None:
        if self.soak:
            record.note_figure(what, value)

    def jobs(self) -> list[Job]:
        """What can begin at once: the builds, each followed by the tests of its tree, and what needs none."""
        trees: dict[str, Tree] = {}
        jobs: list[Job] = []
        for stage in self.stages:
            tree = STAGES[stage]
            if tree is None:
                jobs += self.jobs_of_stage(stage)
            elif tree is FUZZ and shutil.which("clang") is None:
                jobs.append(Job("fuzz/clang", stage, no_clang))
            else:
                trees.setdefault(tree.folder, tree)
        return [self._build(tree) for tree in trees.values()] + jobs

    def _build(self, tree: Tree) -> Job:
        stages = [name for name in self.stages if STAGES[name] is tree]

        def follow() -> list[Job]:
            return [job for stage in stages for job in self.jobs_of_stage(stage)]

        job = Job(f"build of {tree.folder}", "build" if tree is RELEASE else stages[0], lambda: build(tree), follow)
        job.urgent, job.recorded = tree is RELEASE, False
        job.seconds, job.share, job.work_seconds = tree.seconds, float(tree.jobs), tree.work_seconds
        return job


def no_clang() -> Tally:
    print("== skipped: fuzzing needs clang", flush=True)
    return Tally(skipped=1)


def deadline() -> float | None:
    """UM_CHECKS_UNTIL, in seconds since the machine was started, on the monotonic clock."""
    until = os.environ.get("UM_CHECKS_UNTIL")
    return None if until is None else time.monotonic() + float(until) - time.clock_gettime(time.CLOCK_BOOTTIME)


def by_stage(results: Sequence[Result], stages: Sequence[str]) -> list[record.StageResult]:
    """Results and processor time of each stage."""
    totals: dict[str, Tally] = {stage: Tally() for stage in STAGES if stage in stages}
    for result in results:
        totals.setdefault(result.job.stage, Tally()).add(result.tally)
    return [record.StageResult(name, tally, tally.cpu) for name, tally in totals.items()]


def keep_times(plan: Plan, results: Sequence[Result], everything: bool) -> None:
    """What passed replaces what was known; a run of everything also forgets what was not run."""
    good = [each for each in results if each.tally.failed == 0 and each.job.recorded]
    new = {each.job.name: (each.seconds, each.tally.cpu) for each in good}
    shared = {name.removesuffix("others") for name in new if name.endswith("/others")}  # each scenario keeps its time
    run = {each.job.name for each in results}

    def lasts(name: str) -> bool:
        return not everything or name in run or f"{name.rpartition('/')[0]}/" in shared

    write_times({name: row for name, row in plan.times.items() if lasts(name)} | new)


def write_trace(results: Sequence[Result], begin: float) -> None:
    """Where the time of the run went: when each job began, its seconds, its processor seconds."""
    times = (f"{each.began - begin:.1f}\t{each.seconds:.1f}\t{each.tally.cpu:.1f}" for each in results)
    rows = (f"{took}\t{each.job.name}\n" for took, each in zip(times, results, strict=True))
    TRACE.parent.mkdir(exist_ok=True)
    TRACE.write_text("# began\tseconds\tprocessor seconds\tjob\n" + "".join(rows))


def repeat_failures(results: Sequence[Result]) -> None:
    """What failed was told when it happened, long ago; its end is told once more where a reader of a log begins."""
    failed = [each for each in results if each.tally.failed]
    for result in failed:
        text = "\n".join(result.tally.complaints)
        print(text[-LAST_WORDS // len(failed) :], flush=True)
    for result in failed:
        print(f"== FAILED {result.job.name}", flush=True)


def choose(arguments: argparse.Namespace) -> list[str]:
    """The stages that were asked for, or those of the kind of run."""
    if arguments.stage:
        return list(arguments.stage)
    if arguments.soak:
        return list(SOAK_STAGES)
    return list(CHECK_STAGES) if arguments.check else [stage for stage in STAGES if stage not in ONLY_SOAK]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the project's checks.")
    parser.add_argument("--stage", action="append", choices=list(STAGES), help="run only this stage; repeatable")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only jobs whose name contains TEXT")
    parser.add_argument("--soak", action="store_true", help="the long run: two hours on two cores")
    parser.add_argument("--check", action="store_true", help="what a developer runs: without sanitizers, fewer seeds")
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the times of the jobs for the order of later runs: best in a fresh clone, where nothing is cached",
    )
    arguments = parser.parse_args()
    if arguments.record and (arguments.soak or arguments.check):
        parser.error("--record is for the usual counts: not with --soak or --check")
    return arguments


def end_once(number: int, frame: FrameType | None) -> None:
    """Of a signal that comes to a whole group make passes on a second one, which must not end the ending."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> int:
    """Run; the last line is the sum. The status is 1 when anything failed."""
    arguments = parse()
    plan = Plan(choose(arguments), arguments.soak, arguments.check, arguments.only)
    if plan.soak:
        record.clear_figures()
    seeds = plan.seeds()
    print(f"== {CORES} cores; simulators with seeds from UM_SIM_BASE={seeds.base}, one in {seeds.part}", flush=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of some thousand processes compiles the package anew
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # or numpy begins threads in each of them, for nothing
    signal.signal(signal.SIGTERM, end_once)  # so that nothing is left behind
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # as in the background
        signal.signal(signal.SIGINT, end_once)
    begin, stolen = time.monotonic(), stolen_seconds()
    results = Pool(plan.times, deadline()).run(plan.jobs())
    stages = by_stage(results, plan.stages)
    total = Tally()
    for each in stages:
        print(f"== {each.name}: {each.tally} in {each.seconds:.0f} s of the processors", flush=True)
        total.add(each.tally)
    write_trace(results, begin)
    if arguments.record:
        keep_times(plan, results, everything=not (arguments.stage or arguments.only))
    if plan.soak:
        whole = not (arguments.stage or arguments.only)
        record.record([] if arguments.only else stages, soak.COUNTS, whole)  # a part of a stage leaves its figures only
    took = time.monotonic() - begin
    used, stolen = total.cpu / took / CORES, (stolen_seconds() - stolen) / took / CORES
    cost = f"{slowness(results, plan.times):.2f} of the processor seconds recorded"
    print(f"== {took:.0f} s, {used:.0%} of {CORES} cores, {stolen:.0%} stolen; {cost}", flush=True)
    repeat_failures(results)
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
