"""The long run: how many seeds each simulator runs, the programs that count further, the mutations of production code.

The counts are chosen for two hours on two cores; docs/reliability.md keeps the figures of the longer runs before.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence

from .builds import RELEASE
from .ctests import Program, programs, run_program, scenarios_of
from .process import ROOT, SUMMARY, Tally, failure, one_check, run
from .record import note_figure
from .schedule import Job

SEEDS = 5000  # of each scenario; the crowds of lbtrm_crowd_sim run a hundredth of them
OTHER_SEEDS = {"dc_sim": 100_000, "tr_sim": 1000}  # short ones; minutes of virtual time for each seed
KILLS = ("shm_process_test", "smx_process_test")
MUTATIONS = (("mutate_fences",), ("mutate_options", "--all"))  # programs of tools/ with their arguments
SIM_HANG_SECONDS = 3600.0
KILLS_SECONDS = 700.0  # expected of the longer one
MUTATION_SECONDS, MUTATION_HANG_SECONDS = 600.0, 7200.0
KILLS_HANG_SECONDS = 2 * 3600.0
COUNTS = f"{SEEDS:,} seeds of each scenario of reliable UDP, a million inputs or 20 minutes of each fuzz target."


def seeds_of(program: str) -> int:
    return OTHER_SEEDS.get(program, SEEDS)


class Figure:
    """Adds up the scenarios of one simulator, and notes the figure when the last has ended. Any thread."""

    def __init__(self, name: str, scenarios: int, base: int) -> None:
        self.name, self.left, self.base = name, scenarios, base
        self.failed, self.cpu = 0, 0.0
        self._lock = threading.Lock()

    def add(self, tally: Tally) -> Tally:
        with self._lock:
            self.left -= 1
            self.failed += tally.failed
            self.cpu += tally.cpu
            if self.left == 0:
                said = "no finding" if self.failed == 0 else f"{self.failed} FAILED"
                seeds = f"{seeds_of(self.name)} from {self.base + 1}"
                note_figure(
                    f"{self.name}, seeds of each scenario that takes one", f"{seeds}: {said} in {self.cpu:.0f} s"
                )
        return tally


def sim_jobs(stage: str, base: int) -> list[Job]:
    """Every scenario of every simulator."""
    jobs = []
    for program in programs(RELEASE):
        if "sim" not in program.labels:
            continue
        names = scenarios_of(program)
        figure = Figure(program.name, len(names), base)
        jobs += [Job(f"{stage}/{program.name}/{name}", stage, _sim(program, name, base, figure)) for name in names]
    return jobs


def _sim(program: Program, scenario: str, base: int, figure: Figure) -> Callable[[], Tally]:
    patient = Program(program.name, program.path, program.labels, SIM_HANG_SECONDS)
    env = {"UM_SIM_SEEDS": str(seeds_of(program.name)), "UM_SIM_BASE": str(base)}
    return lambda: figure.add(run_program(RELEASE, patient, [scenario], env))


def run_kills(program: Program) -> Tally:
    """A C test that counts further when UM_SOAK is set; its lines of figures are kept."""
    outcome = run([str(ROOT / "tools" / "private_net.sh"), str(program.path)], KILLS_HANG_SECONDS, {"UM_SOAK": "1"})
    for line in outcome.output.splitlines():
        what, colon, figure = line.partition(": ")
        if colon and line.startswith("LBT-"):
            note_figure(what, figure)
    if outcome.code == 0 and SUMMARY.search(outcome.output):
        return Tally(passed=1, cpu=outcome.cpu)
    return failure(program.name, outcome)


def kills_jobs(stage: str) -> list[Job]:
    """Processes killed, stopped and restarted; several processes each."""
    found = [program for program in programs(RELEASE) if program.name in KILLS]
    return [Job(f"{stage}/{program.name}", stage, _kills(program), seconds=KILLS_SECONDS) for program in found]


def _kills(program: Program) -> Callable[[], Tally]:
    return lambda: run_kills(program)


def mutation_jobs(stage: str) -> list[Job]:
    """Production code is broken on purpose, and tests have to notice."""
    return [
        Job(f"{stage}/{name}", stage, _mutation(name, arguments), seconds=MUTATION_SECONDS)
        for name, *arguments in MUTATIONS
    ]


def _mutation(name: str, arguments: Sequence[str]) -> Callable[[], Tally]:
    command = [sys.executable, f"tools/{name}.py", *arguments]
    return lambda: one_check(name, command, seconds=MUTATION_HANG_SECONDS)
