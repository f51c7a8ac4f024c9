"""The build trees of the checks: how each is configured and built, and what its tests need in their environment."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field

from .process import CORES, ROOT, Tally, failure, one_check, run

DEBUG = "-DCMAKE_BUILD_TYPE=RelWithDebInfo"
QUICK = "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG"  # half of what -O2 -g takes; functions and lines are known
QUICK_TO_RUN = "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG"  # more inputs in the same time
NO_BENCHMARKS = "-DUM_BUILD_BENCHMARKS=OFF"
NO_EXAMPLES = "-DUM_BUILD_EXAMPLES=OFF"


@dataclass(frozen=True)
class Tree:
    """`jobs` compilers at once: only the tree that everything waits for uses all processors for itself."""

    folder: str
    options: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    binding: bool = False
    jobs: int = 1
    seconds: float = 60.0  # of the build and the longest of its tests, for the order
    work_seconds: float = 0.0  # of a processor, for the build alone, in a fresh tree
    target: str = "all"


RELEASE = Tree("build", ("-DCMAKE_BUILD_TYPE=Release",), binding=True, jobs=CORES, seconds=1000)
ASAN = Tree(
    "build-asan",
    (DEBUG, QUICK, "-DUM_SANITIZE=address,undefined", NO_BENCHMARKS),
    {"UBSAN_OPTIONS": "print_stacktrace=1"},
    binding=True,
    seconds=500,
    work_seconds=190,
)
TSAN = Tree(
    "build-tsan",
    (DEBUG, QUICK, "-DUM_SANITIZE=thread", "-DUM_THREADED_TESTS_ONLY=ON", NO_EXAMPLES, NO_BENCHMARKS),
    {"TSAN_OPTIONS": "halt_on_error=0 exitcode=66"},
    seconds=300,
    work_seconds=80,
)
FUZZ = Tree(
    "build-fuzz",
    (
        DEBUG,
        QUICK_TO_RUN,
        "-DCMAKE_C_COMPILER=clang",
        "-DCMAKE_CXX_COMPILER=clang++",
        "-DUM_SANITIZE=address,undefined,fuzzer-no-link",
        "-DUM_BUILD_FUZZERS=ON",
        "-DUM_BUILD_TESTS=OFF",
        NO_EXAMPLES,
        NO_BENCHMARKS,
    ),
    seconds=600,  # soon: its targets fill what the others leave idle
    work_seconds=110,
    target="um_fuzzers",
)


def configuring(tree: Tree) -> list[str]:
    """A tree keeps the generator it was made with."""
    made = (ROOT / tree.folder / "CMakeCache.txt").exists()
    generator = ["-G", "Ninja"] if not made and shutil.which("ninja") else []
    return ["cmake", "-S", ".", "-B", tree.folder, *generator, *tree.options]


def compiling(tree: Tree) -> list[str]:
    return ["cmake", "--build", tree.folder, "--target", tree.target, "-j", str(tree.jobs)]


def build(tree: Tree) -> Tally:
    """Configure, compile, and compile the binding against it where there is one."""
    outcome = run(configuring(tree))
    if outcome.code != 0:
        return failure(f"configuring {tree.folder}", outcome)
    total = Tally(cpu=outcome.cpu)
    outcome = run(compiling(tree))
    total.add(Tally(passed=1, cpu=outcome.cpu) if outcome.code == 0 else failure(f"building {tree.folder}", outcome))
    if total.failed == 0 and tree.binding:
        command = [sys.executable, "um_cffi/binding/build.py"]
        total.add(one_check(f"binding of {tree.folder}", command, {"UM_BUILD_DIR": tree.folder}))
    return total
