#!/usr/bin/env python3
"""Runs every check of the project and adds up the results.

Stages run in the order of STAGES; each prints its time and what failed. The last line of the whole run is
"N passed, M failed, K skipped", summed over all runners, and the exit status is 1 when anything failed.

    tools/run_tests.py                  everything (what `make test` and the CI machine run)
    tools/run_tests.py --stage c        one stage (may be given several times)
    tools/run_tests.py --soak           the long runs: full counts, a million inputs for each fuzz target; may be
                                        combined with --stage: what is measured replaces the figures of that stage

UM_FUZZ_SECONDS (15) is the time given to each fuzz target, UM_SIM_SEEDS bounds the seeds of
the stage sim.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRIVATE_NET = str(ROOT / "tools" / "private_net.sh")
CORES = os.cpu_count() or 1
PYTEST_WORKERS = min(8, 2 * CORES)  # tests with hosts mostly wait; tests/conftest.py says what stays together
C_TEST_SECONDS = 600  # a hang limit, about ten times the longest expected run
THREADED = re.compile(
    r"\b(pthread_create|um_loop_create|lbm_context_create|net_(lean_)?context(_with)?)\b|um_test_udp\.h"
)
FIGURES = ROOT / "build" / "soak-figures.tsv"
RELIABLE_UDP_SIMS = tuple(
    f"{transport}{part}" for transport in ("lbtrm", "lbtru") for part in ("_sim", "_requirements_sim", "_hostile_sim")
)
# tr_sim: minutes of virtual time for each seed. The crowds of lbtrm_crowd_sim run a hundredth of the seeds.
SOAK_SEEDS = {"dc_sim": 100000, "tr_sim": 300, "lbtrm_crowd_sim": 100000} | dict.fromkeys(RELIABLE_UDP_SIMS, 100000)
SOAK_PROGRAMS = ("shm_process_test", "smx_process_test")
SANITIZED_PART = "50"  # of the seeds run under the sanitizers
SUMMARY = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")
PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)")
TYPED_FOLDERS = ("um_cffi", "tools", "tests", "benchmarks", "examples")
TEST_FOLDERS = ("tests/c", "tests/sim", "tests/model", "tests/net", "tests/fuzz")
C_FOLDERS = ("csrc", "include", "examples/c", *TEST_FOLDERS, "benchmarks")


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    complaints: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.complaints += other.complaints

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


@dataclass
class Outcome:
    code: int
    output: str


@dataclass
class Settings:
    soak: bool
    fuzz_seconds: int


def run(command: Sequence[str], seconds: float | None = None, env: dict[str, str] | None = None) -> Outcome:
    """Run to the end or the hang limit; output and errors together. Leaves no process of its group behind."""
    merged = {**os.environ, **(env or {})}
    process = subprocess.Popen(
        list(command),
        cwd=ROOT,
        env=merged,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
        return Outcome(process.returncode, output)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return Outcome(-signal.SIGKILL, f"{output}\nstopped after {seconds:.0f} seconds: it hangs\n")


def one_check(name: str, command: Sequence[str], env: dict[str, str] | None = None) -> Tally:
    """A runner that only says yes or no counts as one test."""
    outcome = run(command, env=env)
    if outcome.code == 0:
        return Tally(passed=1)
    return Tally(failed=1, complaints=[f"{name}: exit {outcome.code}\n{outcome.output}"])


def skip(reason: str) -> Tally:
    print(f"   skipped: {reason}", flush=True)
    return Tally(skipped=1)


# ---- building ----------------------------------------------------------------------------------------------------


def configure_and_build(folder: str, options: Sequence[str], targets: Sequence[str] = ()) -> Tally:
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    for command in (
        ["cmake", "-S", ".", "-B", folder, *generator, *options],
        ["cmake", "--build", folder, "-j", str(CORES), *(["--target", *targets] if targets else [])],
    ):
        outcome = run(command)
        if outcome.code != 0:
            return Tally(failed=1, complaints=[f"build {folder}: {' '.join(command)}\n{outcome.output[-6000:]}"])
    return Tally(passed=1)


def run_c_test(program: Path, env: dict[str, str]) -> Tally:
    outcome = run([PRIVATE_NET, str(program)], C_TEST_SECONDS, env)
    counts = SUMMARY.search(outcome.output.strip().rsplit("\n", 1)[-1])
    if counts is None:
        return Tally(
            failed=1, complaints=[f"{program.name} ended without a summary, exit {outcome.code}\n{outcome.output}"]
        )
    passed, failed, skipped = (int(count) for count in counts.groups())
    tally = Tally(passed, failed, skipped)
    if tally.failed == 0 and outcome.code != 0:
        tally.failed = 1  # a sanitizer report at exit, a leak for example
    if tally.failed:
        tally.complaints.append(f"{program.name}: exit {outcome.code}\n{outcome.output}")
    return tally


def record_figure(what: str, value: str) -> None:
    """For the page of the long runs; tests write the same file through tests/support/figures.py."""
    with FIGURES.open("a") as file:
        file.write(f"{what}\t{value}\n")


def run_c_tests(folder: str, env: dict[str, str], only: Callable[[str], bool] = lambda name: True) -> Tally:
    tests = [p for p in sorted((ROOT / folder / "tests").glob("*")) if p.is_file() and os.access(p, os.X_OK)]
    tests = [p for p in tests if only(p.name)]
    if not tests:
        return Tally(failed=1, complaints=[f"{folder}/tests has no test program"])
    total = Tally()
    with ThreadPoolExecutor(CORES) as pool:
        for tally in pool.map(lambda program: run_c_test(program, env), tests):
            total.add(tally)
    return total


# ---- stages ------------------------------------------------------------------------------------------------------


def stage_build(_: Settings) -> Tally:
    total = configure_and_build("build", ["-DCMAKE_BUILD_TYPE=Release"])
    if total.failed == 0:
        total.add(one_check("binding", [sys.executable, "um_cffi/_build.py"], {"UM_BUILD_DIR": "build"}))
    return total


def stage_c(_: Settings) -> Tally:
    return run_c_tests("build", {})


def run_sim(name: str) -> Tally:
    start = time.monotonic()
    seeds = min(SOAK_SEEDS[name], int(os.environ.get("UM_SIM_SEEDS", SOAK_SEEDS[name])))
    outcome = run([str(ROOT / "build" / "tests" / name)], None, {"UM_SIM_SEEDS": str(seeds)})
    counts = SUMMARY.search(outcome.output)
    good = outcome.code == 0 and counts is not None
    record_figure(
        f"{name}, seeds of each scenario that takes one",
        f"{seeds}: {'no finding' if good else 'FAILED'} in {time.monotonic() - start:.0f} s",
    )
    print(f"   {name}: {seeds} seeds, exit {outcome.code}", flush=True)
    return Tally(passed=1) if good else Tally(failed=1, complaints=[f"{name}: {outcome.output[-6000:]}"])


def stage_sim(settings: Settings) -> Tally:
    """The simulators over many seeds; with few seeds they are part of the stages c, asan and tsan."""
    total = Tally()
    if settings.soak:
        with ThreadPoolExecutor(CORES) as pool:
            for tally in pool.map(run_sim, SOAK_SEEDS):
                total.add(tally)
    return total


def stage_kills(settings: Settings) -> Tally:
    """C tests that count further in the long run: processes killed, stopped and restarted. Otherwise in stage c."""
    total = Tally()
    for name in SOAK_PROGRAMS if settings.soak else ():
        start = time.monotonic()
        outcome = run([PRIVATE_NET, str(ROOT / "build" / "tests" / name)], 4 * 3600, {"UM_SOAK": "1"})
        good = outcome.code == 0 and SUMMARY.search(outcome.output) is not None
        for line in outcome.output.splitlines():
            what, colon, figure = line.partition(": ")
            if colon and line.startswith("LBT-"):
                record_figure(what, figure)
        print(f"   {name}: exit {outcome.code} in {time.monotonic() - start:.0f} s", flush=True)
        total.add(Tally(passed=1) if good else Tally(failed=1, complaints=[f"{name}: {outcome.output[-6000:]}"]))
    return total


def stage_asan(_: Settings) -> Tally:
    total = configure_and_build(
        "build-asan",
        ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DUM_SANITIZE=address,undefined", "-DUM_BUILD_BENCHMARKS=OFF"],
    )
    if total.failed == 0:
        total.add(run_c_tests("build-asan", {"UBSAN_OPTIONS": "print_stacktrace=1", "UM_SIM_PART": SANITIZED_PART}))
    return total


def is_threaded(name: str) -> bool:
    sources = [*ROOT.glob(f"tests/c/{name}.c"), *ROOT.glob(f"tests/sim/{name}.c")]
    return any(THREADED.search(source.read_text()) for source in sources)


def stage_tsan(_: Settings) -> Tally:
    total = configure_and_build(
        "build-tsan",
        [
            "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
            "-DUM_SANITIZE=thread",
            "-DUM_BUILD_EXAMPLES=OFF",
            "-DUM_BUILD_BENCHMARKS=OFF",
        ],
    )
    if total.failed == 0:
        total.add(run_c_tests("build-tsan", {"TSAN_OPTIONS": "halt_on_error=0 exitcode=66"}, is_threaded))
    return total


def run_fuzzer(program: Path, settings: Settings) -> Tally:
    corpus = ROOT / "build-fuzz" / "corpus" / program.name
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = ROOT / "tests" / "fuzz" / "corpus" / program.name
    length = ["-runs=1000000"] if settings.soak else [f"-max_total_time={settings.fuzz_seconds}"]
    # Requirement X2: no input makes a decoder or parser need much memory. ASan's own quarantine is kept out of the way.
    limits = ["-rss_limit_mb=256", "-malloc_limit_mb=64", "-timeout=20", "-print_final_stats=1"]
    artifacts = f"-artifact_prefix={corpus.parent}/{program.name}-finding-"
    command = [str(program), *length, *limits, artifacts, str(corpus), *([str(seeds)] if seeds.is_dir() else [])]
    outcome = run(command, env={"ASAN_OPTIONS": "quarantine_size_mb=16"})
    units = re.search(r"number_of_executed_units:\s*(\d+)", outcome.output)
    print(f"   {program.name}: {units.group(1) if units else 0} inputs, exit {outcome.code}", flush=True)
    peak = re.search(r"peak_rss_mb:\s*(\d+)", outcome.output)
    if settings.soak:
        inputs = f"{units.group(1) if units else 0} inputs, at most {peak.group(1) if peak else '?'} MB resident"
        record_figure(f"fuzz target {program.name}", f"{'no finding' if outcome.code == 0 else 'FINDING'} in {inputs}")
    if outcome.code == 0:
        return Tally(passed=1)
    return Tally(failed=1, complaints=[f"{program.name}: exit {outcome.code}\n{outcome.output[-8000:]}"])


def stage_fuzz(settings: Settings) -> Tally:
    if shutil.which("clang") is None:
        return skip("fuzzing needs clang")
    names = [source.stem for source in sorted(ROOT.glob("tests/fuzz/*_fuzz.c"))]
    if not names:
        return Tally(failed=1, complaints=["tests/fuzz has no fuzz target"])
    total = configure_and_build(
        "build-fuzz",
        [
            "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
            "-DCMAKE_C_COMPILER=clang",
            "-DCMAKE_CXX_COMPILER=clang++",
            "-DUM_SANITIZE=address,undefined,fuzzer-no-link",
            "-DUM_BUILD_FUZZERS=ON",
            "-DUM_BUILD_TESTS=OFF",
            "-DUM_BUILD_EXAMPLES=OFF",
            "-DUM_BUILD_BENCHMARKS=OFF",
        ],
        names,
    )
    if total.failed == 0:
        with ThreadPoolExecutor(CORES) as pool:
            programs = [ROOT / "build-fuzz" / "fuzz" / name for name in names]
            for tally in pool.map(lambda program: run_fuzzer(program, settings), programs):
                total.add(tally)
    return total


def run_pytest(folders: Sequence[str], env: dict[str, str]) -> Tally:
    present = [folder for folder in folders if (ROOT / folder).exists()]
    workers = ["-n", str(PYTEST_WORKERS)] if importlib.util.find_spec("xdist") else []
    command = [sys.executable, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider", "--durations=12", *workers]
    outcome = run([*command, *present], None, env)
    last = outcome.output.strip().rsplit("\n", 1)[-1]
    counts = {word.rstrip("s"): int(count) for count, word in PYTEST_COUNT.findall(last)}
    failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("xpassed", 0)
    tally = Tally(counts.get("passed", 0), failed, counts.get("skipped", 0) + counts.get("xfailed", 0))
    if outcome.code != 0 and tally.failed == 0:
        tally.failed = 1
    if tally.failed:
        tally.complaints.append(f"pytest {' '.join(present)}: exit {outcome.code}\n{outcome.output[-20000:]}")
    return tally


def stage_python(settings: Settings) -> Tally:
    env = {"UM_BUILD_DIR": str(ROOT / "build")}
    if settings.soak:
        env["UM_SOAK"] = "1"
        env["UM_FIGURES"] = str(FIGURES)
    return run_pytest(["tests/python", "tests/wire", "tests/net"], env)


def stage_asan_python(_: Settings) -> Tally:
    """Example programs, daemons and the binding again, with the address and undefined-behaviour sanitizers."""
    if not (ROOT / "build-asan" / "bin").is_dir():
        return skip("no sanitizer build; run the stage asan first")
    env = {"UM_BUILD_DIR": str(ROOT / "build-asan"), "UM_SANITIZED": "1"}
    total = run_pytest(["tests/python/test_examples.py", "tests/net/test_trouble.py"], env)
    total.add(one_check("binding", [sys.executable, "um_cffi/_build.py"], {"UM_BUILD_DIR": "build-asan"}))
    # The interpreter is not sanitized itself: the run-time has to be there before the library is loaded. The
    # interpreter's own allocations at exit are no leaks.
    runtime = run(["gcc", "-print-file-name=libasan.so"]).output.strip()
    preloaded = {**env, "LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    binding = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/python/test_py_*.py"))
    total.add(run_pytest(binding, preloaded))
    return total


def c_files() -> list[str]:
    files = [p for folder in C_FOLDERS for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".c", ".h")]
    return [str(p.relative_to(ROOT)) for p in files]


def stage_format(_: Settings) -> Tally:
    if shutil.which("clang-format") is None:
        return skip("clang-format is not installed")
    total = Tally()
    for name in c_files():
        total.add(one_check(f"format {name}", ["clang-format", "--dry-run", "-Werror", name]))
    return total


def stage_lint(_: Settings) -> Tally:
    total = one_check("ruff", [sys.executable, "-m", "ruff", "check", "--no-cache", "."])
    total.add(one_check("ruff format", [sys.executable, "-m", "ruff", "format", "--check", "--no-cache", "."]))
    total.add(one_check("mypy", [sys.executable, "-m", "mypy", *TYPED_FOLDERS]))
    return total


def stage_docs(_: Settings) -> Tally:
    total = Tally()
    for generator in ("tools/api_coverage.py", "tools/options_doc.py"):
        total.add(one_check(generator, [sys.executable, generator, "--check"]))
    total.add(one_check("sphinx", [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "docs", "build/docs"]))
    return total


STAGES: dict[str, Callable[[Settings], Tally]] = {
    "build": stage_build,
    "format": stage_format,
    "lint": stage_lint,
    "docs": stage_docs,
    "c": stage_c,
    "sim": stage_sim,
    "kills": stage_kills,
    "python": stage_python,
    "asan": stage_asan,
    "asan-python": stage_asan_python,
    "tsan": stage_tsan,
    "fuzz": stage_fuzz,
}

# The stages that have longer counts; the others are the same in `make test`.
SOAK_STAGES = ["build", "sim", "kills", "python", "fuzz"]


def figures() -> list[tuple[str, str]]:
    lines = FIGURES.read_text().splitlines() if FIGURES.exists() else []
    pairs = [line.partition("\t") for line in dict.fromkeys(lines)]
    return [(what, value) for what, _, value in pairs]


def table_rows(text: str, columns: int) -> dict[str, list[str]]:
    """The rows of the tables with so many columns, by their first one."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    named = [row for row in rows if len(row) == columns and row[0] not in ("stage", "what", "---")]
    return {row[0]: row for row in named}


def record_soak(results: Sequence[tuple[str, Tally, float]]) -> None:
    """Put the results of a long run, or of some of its stages, into docs/reliability.md."""
    page = ROOT / "docs" / "reliability.md"
    begin, end = "<!-- soak:begin -->", "<!-- soak:end -->"
    head, rest = page.read_text().split(begin, 1)
    old, tail = rest.split(end, 1)
    day = time.strftime("%Y-%m-%d")
    stages = table_rows(old, 4) | {
        name: [name, str(tally), f"{seconds:.0f} s", day] for name, tally, seconds in results
    }
    values = table_rows(old, 3) | {what: [what, value, day] for what, value in figures()}
    body = [
        f"`make soak` on {CORES} cores: full counts of messages and seeds, a million inputs for each fuzz target.",
        "",
        "| stage | result | time | day |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in stages.values()),
        "",
        "| what | figure | day |",
        "|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in values.values()),
    ]
    page.write_text(head + begin + "\n" + "\n".join(body) + "\n" + end + tail)
    print(f"== recorded in {page.relative_to(ROOT)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the project's checks.")
    parser.add_argument("--stage", action="append", choices=list(STAGES), help="run only this stage; repeatable")
    parser.add_argument("--soak", action="store_true", help="full counts; takes hours")
    arguments = parser.parse_args()
    settings = Settings(arguments.soak, int(os.environ.get("UM_FUZZ_SECONDS", "15")))
    if settings.soak:
        FIGURES.parent.mkdir(exist_ok=True)
        FIGURES.unlink(missing_ok=True)
    total = Tally()
    results = []
    begin = time.monotonic()
    for name in arguments.stage or (SOAK_STAGES if settings.soak else list(STAGES)):
        print(f"== {name}", flush=True)
        start = time.monotonic()
        tally = STAGES[name](settings)
        for complaint in tally.complaints:
            print(complaint, flush=True)
        print(f"== {name}: {tally} in {time.monotonic() - start:.0f} s", flush=True)
        results.append((name, tally, time.monotonic() - start))
        total.add(tally)
    if arguments.soak:
        record_soak(results)
    print(f"== all stages took {time.monotonic() - begin:.0f} s", flush=True)
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
