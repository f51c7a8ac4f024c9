"""The Python tests as jobs: one for each file, with workers of its own where it is long and its tests mostly wait, or
where all are run, one process for each file, forked from one interpreter for several (tests/support/forked.py).

Files named test_py_* use the library in the process that runs them: each is run by one inside a private network
(tests/support/inside.py). The tests of the wheel share one building of it. What is marked `alone` is judged by time and
runs when nothing else does.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path

from .builds import ASAN, RELEASE, Tree
from .process import CORES, ROOT, Outcome, Tally, failure, run
from .schedule import Job

FOLDERS = ("tests/python", "tests/wire", "tests/net")
SPARK = "tests/spark"
SHARED_SESSION = "test_spark_"  # files of one process: one Java machine serves them all
INSIDE = "test_py_"
WHEEL = ("test_i2_", "test_i3_", "test_i4_")
ONE_WORKER = (INSIDE, "test_install_i1", "test_types", "test_api_surface", *WHEEL)
WAITING = re.compile(r"\b(?:hosts?|relay|subprocess)\b")  # in a file whose tests run programs
PACKAGING = ("test_install_i1", *WHEEL)  # they build the project anew
FOR_LATER = (*PACKAGING, "test_types")  # mypy for five versions of Python; lint has it for one
# Plugins that come with packages and that no test uses: each process of pytest would look for them in all packages and
# load them, which takes as long as all else that pytest needs.
NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
SIDE_BY_SIDE = ("-p", "xdist.plugin", "--max-worker-restart=0", "-n")
WORKERS = 2 * CORES  # at most: tests with hosts mostly wait
TESTS_OF_A_WORKER, LONG_TESTS_OF_A_WORKER = 10, 2  # at least: a worker takes half a second of a processor to begin
LONG_TESTS = ("test_reliable_udp", "test_tshark_", "test_d5_", "test_two_hosts")
INSIDE_OF_A_JOB, OUTSIDE_OF_A_JOB = 8, 4  # files with one worker, at most; those that run programs often wait
ALONE_IN_PAIRS = ("test_udp_requirements",)  # a test for each of two transports, which waits for most of the time
PAUSES = ("test_failover_links", "test_udp_requirements")  # the long run writes down how long something took
# A million messages at a rate, of which every one must come: beside the kills of the long run a receiver that gets no
# processor for longer than the kernel holds datagrams loses the repairs as well, and again, until they are given up.
STREAMS = ("test_reliable_udp",)
UNKNOWN_SHARE = 0.6  # of a processor: most wait for something
HANG_SECONDS = 1500.0
SOAK_HANG_SECONDS = 2 * 3600.0
COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)")
ENDED = re.compile(r"^== (\S+) ended with (-?\d+)$", re.MULTILINE)
QUIET = ("-q", "-p", "no:cacheprovider")
LAST = re.compile(
    r"^=* ?\d+ (?:passed|failed|error|skipped|deselected|xfailed|xpassed).* in [\d.:]+s?.*$", re.MULTILINE
)

# What runs again with the address and undefined-behaviour sanitizers: whatever runs programs, daemons or the binding.
SANITIZED = (
    "tests/python/test_binding.py",
    "tests/python/test_commands.py",
    "tests/python/test_docs_run.py",
    "tests/python/test_examples.py",
    "tests/python/test_examples_udp.py",
    "tests/python/test_o1_doctor.py",
    "tests/python/test_readme.py",
    "tests/net/test_trouble.py",
)


def run_pytest(files: Sequence[str], workers: int, env: dict[str, str], marks: str, seconds: float) -> Tally:
    """One run of pytest, counted."""
    several = workers > 1 and importlib.util.find_spec("xdist")
    side_by_side = [*SIDE_BY_SIDE, str(workers)] if several else []
    command = ["tests/support/inside.py"] if _inside(files) else ["-m", "pytest", *QUIET]
    words = [sys.executable, *command, "-rfE", "-m", marks, *side_by_side, *files]
    outcome = run(words, seconds, {**env, **NO_PLUGINS})
    tally = count(" ".join(files), outcome.output, outcome.code)
    tally.cpu = outcome.cpu
    return tally


def run_forked(files: Sequence[str], env: dict[str, str], seconds: float) -> Tally:
    """Several files by one run of tests/support/forked.py, each counted; one that was not reached has failed."""
    command = ["tests/support/inside.py", "--forked"] if _inside(files) else ["tests/support/forked.py", *QUIET]
    outcome = run([sys.executable, *command, "-rfE", "-m", "not alone", *files], seconds, {**env, **NO_PLUGINS})
    total = Tally(cpu=outcome.cpu)
    begin = 0
    for file, ended in zip_longest(files, ENDED.finditer(outcome.output)):
        if ended is None or ended[1] != file:
            total.add(failure(file, Outcome(outcome.code, outcome.output[begin:])))
            return total
        total.add(count(file, outcome.output[begin : ended.start()], int(ended[2])))
        begin = ended.end()
    if total.failed == 0 and outcome.code != 0:
        total.add(failure(" ".join(files), Outcome(outcome.code, outcome.output)))
    return total


def count(what: str, output: str, code: int) -> Tally:
    """What pytest says in its last line, and its exit status."""
    last = ["", *LAST.findall(output)][-1]
    counts = {word.rstrip("s"): int(number) for number, word in COUNTS.findall(last)}
    failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("xpassed", 0)
    skipped = counts.get("skipped", 0) + counts.get("xfailed", 0)
    tally = Tally(counts.get("passed", 0), failed, skipped)
    if tally.failed == 0 and (code != 0 or tally.passed + tally.skipped == 0):
        tally.failed = 1
    if tally.failed:
        tally.complaints = failure(f"pytest {what}", Outcome(code, output)).complaints
    return tally


def _inside(files: Sequence[str]) -> bool:
    return all(Path(file).name.startswith(INSIDE) or file.startswith(f"{SPARK}/") for file in files)


def workers_for(path: Path) -> int:
    """One for what stays together or waits for nothing, because each imports everything; else by the tests."""
    text = path.read_text()
    if path.name.startswith(ONE_WORKER) or not WAITING.search(text):
        return 1
    tests = len(re.findall(r"^def test_", text, re.MULTILINE)) + 4 * text.count("parametrize(")
    return min(WORKERS, tests // (LONG_TESTS_OF_A_WORKER if path.name.startswith(LONG_TESTS) else TESTS_OF_A_WORKER))


def files_jobs(
    files: Sequence[str], stage: str, env: dict[str, str], together: str = "", seconds: float = HANG_SECONDS
) -> list[Job]:
    """A job for each file, or one named `together` for all of them; one more for what a file marks `alone`."""
    jobs = []
    for group, name in [(files, together)] if together else [([file], Path(file).stem) for file in files]:
        workers = 1 if together else workers_for(ROOT / group[0])
        work = _work(group, workers, env, "not alone", seconds)
        jobs.append(Job(f"{stage}/{name}", stage, work, share=UNKNOWN_SHARE))
    return jobs + alone_jobs(files, stage, env, seconds)


def alone_jobs(files: Sequence[str], stage: str, env: dict[str, str], seconds: float) -> list[Job]:
    marked = [file for file in files if "mark.alone" in (ROOT / file).read_text()]
    jobs = []
    for file in marked:
        name = Path(file).stem
        work = _work([file], 2 if name in ALONE_IN_PAIRS else 1, env, "alone", seconds)
        jobs.append(Job(f"{stage}/{name}/alone", stage, work, alone=True))
    return jobs


def grouped_jobs(files: Sequence[str], stage: str, env: dict[str, str], seconds: float = HANG_SECONDS) -> list[Job]:
    """As files_jobs(), but with one process for each file: other jobs fill what it leaves while its tests wait, and to
    begin further workers takes a tenth of all that Python does. What is short shares a job with others; neighbours by
    name do not, which often take as long as each other.
    """
    short = [file for file in files if workers_for(ROOT / file) <= 1 and not Path(file).name.startswith(FOR_LATER)]
    inside = [file for file in short if Path(file).name.startswith(INSIDE)]
    outside = [file for file in short if file not in inside]
    groups = {Path(file).stem: [file] for file in files if file not in short}
    for name, members, most in (("inside", inside, INSIDE_OF_A_JOB), ("outside", outside, OUTSIDE_OF_A_JOB)):
        number = -(-len(members) // most)
        groups |= {f"{name}_{index}": members[index::number] for index in range(number)}
    jobs = [
        Job(f"{stage}/{name}", stage, _forked(members, env, seconds), share=UNKNOWN_SHARE)
        for name, members in groups.items()
    ]
    return jobs + alone_jobs(files, stage, env, seconds)


def _forked(files: Sequence[str], env: dict[str, str], seconds: float) -> Callable[[], Tally]:
    return lambda: run_forked(files, env, seconds)


def _work(files: Sequence[str], workers: int, env: dict[str, str], marks: str, seconds: float) -> Callable[[], Tally]:
    return lambda: run_pytest(files, workers, env, marks, seconds)


def all_files(folders: Sequence[str] = FOLDERS) -> list[str]:
    found = [path for folder in folders for path in sorted((ROOT / folder).glob("test_*.py"))]
    return [str(path.relative_to(ROOT)) for path in found]


def environment(tree: Tree) -> dict[str, str]:
    return {"UM_BUILD_DIR": str(ROOT / tree.folder)}


def jobs_of_release(
    stage: str, soak: dict[str, str] | None = None, quick: bool = False, grouped: bool = False
) -> list[Job]:
    """All Python tests; `quick`: those of the binding and the programs, without packaging and other Pythons' types;
    `grouped`: several files share a job.
    """
    env = {**environment(RELEASE), **(soak or {})}
    seconds = SOAK_HANG_SECONDS if soak else HANG_SECONDS
    files = all_files(FOLDERS[:1] if quick else FOLDERS)
    wheel = [file for file in files if Path(file).name.startswith(WHEEL)]
    others = [file for file in files if file not in wheel]
    make = grouped_jobs if grouped else files_jobs
    if quick:
        return make([file for file in others if not Path(file).name.startswith(FOR_LATER)], stage, env)
    jobs = make(others, stage, env, seconds=seconds) + files_jobs(wheel, stage, env, "wheel", seconds)
    for job in jobs:
        job.alone = job.alone or (soak is not None and job.name.endswith(PAUSES + STREAMS))
        job.recorded = job.recorded and not (soak is not None and job.name.endswith(STREAMS))  # sends more than was
    return jobs


def spark_classes_job(stage: str, tests: Callable[[], list[Job]]) -> Job:
    """An archive of classes (tests/support/spark_java.py), and then the tests, which hold without one, too."""

    def work() -> Tally:
        outcome = run([sys.executable, "tests/support/spark_java.py"], HANG_SECONDS, environment(RELEASE))
        if outcome.code != 0:
            print(f"== the tests of Spark take longer than they could: {outcome.output.strip()}", flush=True)
        return Tally(cpu=outcome.cpu)

    return Job(f"{stage}/classes", stage, work, tests, urgent=True, recorded=False)


def jobs_of_spark(stage: str, soak: dict[str, str] | None = None) -> list[Job]:
    """What uses the session of all shares a job; the others start programs with sessions of their own."""
    env = {**environment(RELEASE), **(soak or {})}
    seconds = SOAK_HANG_SECONDS if soak else HANG_SECONDS
    files = all_files((SPARK,))
    shared = [file for file in files if Path(file).name.startswith(SHARED_SESSION)]
    others = [file for file in files if file not in shared]
    return files_jobs(shared, stage, env, "session", seconds) + files_jobs(others, stage, env, seconds=seconds)


def jobs_of_sanitizers(stage: str, grouped: bool = False) -> list[Job]:
    """Programs, daemons, pages and the binding again. tests/support/interpreter.py says how Python runs there."""
    binding = [file for file in all_files(FOLDERS[:1]) if Path(file).name.startswith(INSIDE)]
    env = {**environment(ASAN), "UM_SANITIZED": "1"}
    return (grouped_jobs if grouped else files_jobs)([*SANITIZED, *binding], stage, env)
