"""Fuzz targets as jobs. Seeds lie in tests/fuzz/corpus/NAME; what a run finds worth keeping in build-fuzz/corpus/NAME.

`make test` gives each target 15 seconds of a processor, and 60 where its code has changed, in what the other jobs leave
idle (fewer where the run would be over its time); the long run a million inputs or 20 minutes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from .builds import FUZZ
from .changes import target_changed
from .process import ROOT, Outcome, Tally, failure, run
from .schedule import Job

SECONDS, SECONDS_CHANGED, SECONDS_SOAK = 15, 60, 1200
INPUTS_SOAK = 1_000_000
HANG_SECONDS = 300.0  # more than the time given
HANG_SECONDS_BEHIND = 1500.0  # when it only gets what others leave
NO_LONGER_LEAKS = "disabled leak detection after every mutation"  # then leaks are told at the end of the process only
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
GROWN = ROOT / FUZZ.folder / "corpus"
# Requirement X2: no input makes a decoder or parser need much memory. ASan's own quarantine is kept out of the way.
LIMITS = ("-rss_limit_mb=256", "-malloc_limit_mb=64", "-timeout=20", "-print_final_stats=1")
ENV = {"ASAN_OPTIONS": "quarantine_size_mb=16"}

Note = Callable[[str, str], None]  # what was measured, and the figure


def targets() -> list[Path]:
    """The sources of the fuzz targets."""
    return sorted(ROOT.glob("tests/fuzz/*_fuzz.c"))


def folders(name: str) -> list[str]:
    """Of inputs: what was found before, the first to be written to, and the seeds."""
    (GROWN / name).mkdir(parents=True, exist_ok=True)
    return [str(folder) for folder in (GROWN / name, CORPUS / name) if folder.is_dir()]


def judge(name: str, outcome: Outcome, note: Note) -> Tally:
    """One test: no finding, and inputs were run."""
    units = re.search(r"number_of_executed_units:\s*(\d+)", outcome.output)
    peak = re.search(r"peak_rss_mb:\s*(\d+)", outcome.output)
    good = outcome.code == 0 and units is not None
    figures = f"{units.group(1) if units else 0} inputs, at most {peak.group(1) if peak else '?'} MB resident"
    note(f"fuzz target {name}", f"{'no finding' if good else 'FINDING'} in {figures}")
    return Tally(passed=1, cpu=outcome.cpu) if good else failure(name, outcome)


def command(name: str, *length: str) -> list[str]:
    """A finding is left beside the grown corpus."""
    program = str(ROOT / FUZZ.folder / "fuzz" / name)
    return [program, *length, *LIMITS, f"-artifact_prefix={GROWN}/{name}-finding-", *folders(name)]


def run_long(name: str, note: Note) -> Tally:
    """One target, for inputs and seconds of the clock."""
    words = command(name, f"-max_total_time={SECONDS_SOAK}", f"-runs={INPUTS_SOAK}")
    return judge(name, run(words, SECONDS_SOAK + HANG_SECONDS, ENV), note)


def run_target(name: str, seconds: float, note: Note) -> Tally:
    """One target, for seconds of a processor. SIGUSR1 ends it without the search for leaks that an exit brings."""
    outcome = run(command(name), seconds + HANG_SECONDS_BEHIND, ENV, budget=seconds)
    tally = judge(name, outcome, note)
    if tally.failed == 0 and NO_LONGER_LEAKS in outcome.output:
        tally.add(judge(name, run(command(name, "-runs=0"), HANG_SECONDS, ENV), note))
        tally.passed = min(tally.passed, 1)
    return tally


def jobs_of(stage: str, changed: set[str] | None, soak: bool, note: Note) -> list[Job]:
    """Each target for its time. UM_FUZZ_SECONDS is the shorter one."""
    jobs = []
    for source in targets():
        short = int(os.environ.get("UM_FUZZ_SECONDS", SECONDS))
        seconds = SECONDS_SOAK if soak else max(short, SECONDS_CHANGED) if target_changed(source, changed) else short
        jobs.append(_job(stage, source.stem, seconds, soak, note))
    return jobs


def _job(stage: str, name: str, seconds: int, soak: bool, note: Note) -> Job:
    """In the usual run it asks for its seconds when it begins: the pool may have shortened them."""
    job = Job(f"{stage}/{name}", stage, Tally, background=not soak, recorded=False, seconds=seconds)
    job.work = (lambda: run_long(name, note)) if soak else (lambda: run_target(name, job.seconds, note))
    return job
