"""The C test programs and simulators as jobs. CMake says which there are, their labels and limits.

Simulators are split by scenario, because some take minutes: a scenario that takes long is a job, the others share one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .builds import Tree
from .process import PRIVATE_NET, ROOT, SUMMARY, Outcome, Tally, failure, run
from .schedule import Job

REGRESSIONS = ROOT / "tests" / "sim" / "regressions.tsv"
SHORT_SECONDS = 3.0  # scenarios below share a job


@dataclass(frozen=True)
class Program:
    """A test program of a tree, as CMake describes it."""

    name: str
    path: Path
    labels: frozenset[str]
    hang_seconds: float


@dataclass(frozen=True)
class Seeds:
    """How the simulators run: the number their seeds begin behind, and how many of the usual ones (one in `part`)."""

    base: int
    part: int

    def env(self) -> dict[str, str]:
        return {"UM_SIM_BASE": str(self.base), "UM_SIM_PART": str(self.part)}


def programs(tree: Tree) -> list[Program]:
    """The tests of a configured and built tree."""
    outcome = run(["ctest", "--test-dir", str(ROOT / tree.folder), "--show-only=json-v1"])
    if outcome.code != 0:
        raise RuntimeError(f"ctest of {tree.folder} does not list its tests: {outcome.output[-1000:]}")
    found = []
    for test in json.loads(outcome.output[outcome.output.index("{") :])["tests"]:
        facts = {each["name"]: each["value"] for each in test["properties"]}
        path = Path(test["command"][-1])
        found.append(Program(test["name"], path, frozenset(facts["LABELS"]), float(facts["TIMEOUT"])))
    return found


def count(what: str, outcome: Outcome, expected: int | None = None) -> Tally:
    """What a test program says of itself in its last line, and its exit status: a leak is told at exit."""
    counts = SUMMARY.search(outcome.output.strip().rsplit("\n", 1)[-1])
    if counts is None:
        return failure(f"{what} ended without a summary", outcome)
    passed, failed, skipped = (int(number) for number in counts.groups())
    tally = Tally(passed, failed, skipped, cpu=outcome.cpu)
    if failed == 0 and (outcome.code != 0 or (expected is not None and passed + skipped != expected)):
        tally.failed = 1
    if tally.failed:
        tally.complaints = failure(what, outcome).complaints
    return tally


def run_program(
    tree: Tree, program: Program, scenarios: Sequence[str] = (), env: dict[str, str] | None = None
) -> Tally:
    """The whole program, or exactly these scenarios of it."""
    command = [PRIVATE_NET, str(program.path), *(f"={name}" for name in scenarios)]
    outcome = run(command, program.hang_seconds, {**tree.env, **(env or {})}, ROOT / tree.folder)  # as CTest does
    what = " ".join([f"{tree.folder}/{program.name}", *scenarios])
    return count(what, outcome, len(scenarios) or None)


def scenarios_of(program: Program) -> list[str]:
    outcome = run([str(program.path), "--list"], 60)
    return outcome.output.split() if outcome.code == 0 else []


def split(names: Iterable[str], seconds: Callable[[str], float]) -> list[list[str]]:
    """Long scenarios one by one, the others together."""
    all_names = list(names)
    short = [name for name in all_names if seconds(name) < SHORT_SECONDS]
    long = [[name] for name in all_names if name not in short]
    return long + ([short] if short else [])


def sim_jobs(
    tree: Tree, stage: str, program: Program, env: dict[str, str], times: dict[str, tuple[float, float]]
) -> list[Job]:
    """One simulator. Scenarios without a recorded time are jobs of their own."""

    def known(name: str) -> float:
        return times.get(f"{stage}/{program.name}/{name}", (SHORT_SECONDS, 0.0))[0]

    jobs = []
    for names in split(scenarios_of(program), known):
        work = _work(tree, program, names, env)
        rest = len(names) > 1
        job = Job(f"{stage}/{program.name}/{'others' if rest else names[0]}", stage, work)
        job.seconds = sum(known(name) for name in names)
        jobs.append(job)
    return jobs


def _work(tree: Tree, program: Program, names: Sequence[str], env: dict[str, str]) -> Callable[[], Tally]:
    return lambda: run_program(tree, program, names, env)


def regressions() -> list[tuple[str, str, str]]:
    """Program, scenario and seed of what simulators have found before."""
    lines = REGRESSIONS.read_text().splitlines()
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return [(row[0], row[1], row[2]) for row in rows]


def run_regressions(tree: Tree, found: Sequence[Program]) -> Tally:
    """Every seed that once failed."""
    paths = {program.name: program for program in found}
    total = Tally()
    for name, scenario, seed in regressions():
        command = [str(paths[name].path), f"={scenario}", "--seed", seed]
        total.add(count(f"{tree.folder}/{name} {scenario} --seed {seed}", run(command, 600, tree.env), 1))
    return total


def jobs_of(
    tree: Tree, stage: str, seeds: Seeds, times: dict[str, tuple[float, float]], threaded: bool = False
) -> list[Job]:
    """Every test of a tree that has been built. `threaded`: only those with several threads."""
    found = programs(tree)
    jobs = []
    for program in found:
        if threaded and "threaded" not in program.labels:
            continue
        if "sim" in program.labels:
            jobs += sim_jobs(tree, stage, program, seeds.env(), times)
        else:
            job = Job(f"{stage}/{program.name}", stage, _work(tree, program, (), {}), alone="alone" in program.labels)
            jobs.append(job)
    if not threaded:
        jobs.append(Job(f"{stage}/regressions", stage, lambda: run_regressions(tree, found)))
    return jobs
