#!/usr/bin/env python3
"""Takes away one memory ordering of the shared-memory transports after the other, and expects a test to notice.

In a copy of the sources, every fence of csrc/transport/{shm,smx,ipc} is removed (sequentially consistent ones
are also weakened), and every acquire, release or stronger access is made relaxed, one at a time. Each time
tests/model/production_model.c, which includes those sources, is built and must fail. The checkout itself is
not touched.

The last line is "N mutations, N caught". The status is 0 when all were caught, 1 when one was not, or when the
test fails without any mutation; 2 for wrong arguments. Takes about a minute on two cores.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("csrc/transport/shm", "csrc/transport/smx", "csrc/transport/ipc")
COPIED = ("csrc/base", *FOLDERS, "tests/model", "tests/c/support/um_test.c", "tests/c/support/um_test.h")
MUTATED = "tests/model/production_model.c"  # with the production sources, which it includes
UNCHANGED = ("tests/model/virtual_threads.c", "tests/c/support/um_test.c")  # built once
HANG_SECONDS = 300

# The scenarios that should notice first, by folder; then all of them.
SCENARIOS = {"smx": ("smx",), "ipc": ("ipc",), "shm": ("who", "one_thread", "sleeps", "smx", "ipc")}

FENCE = re.compile(r"atomic_thread_fence\(memory_order_(acquire|release|acq_rel|seq_cst)\);")
ORDER = re.compile(r"memory_order_(acquire|release|acq_rel|seq_cst)\b")
UNNAMED = re.compile(r"\batomic_(load|store|exchange|fetch_\w+|compare_exchange_\w+)(?<!_explicit)\(")


@dataclass(frozen=True)
class Mutation:
    """One replacement in one file."""

    path: str
    line: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old} -> {self.new or 'nothing'}"


@dataclass(frozen=True)
class Verdict:
    """What became of one mutation."""

    caught: bool
    how: str


def mutations_of(path: Path, name: str) -> Iterator[Mutation]:
    """Every weakening of one file; an access without a named ordering is one of its own, which nothing can catch."""
    for number, text in enumerate(path.read_text().splitlines(), 1):
        fences = list(FENCE.finditer(text))
        for found in fences:
            yield Mutation(name, number, found.start(), found[0], ";")
            if found[1] == "seq_cst":
                yield Mutation(name, number, found.start(), found[0], found[0].replace("seq_cst", "acq_rel"))
        for found in ORDER.finditer(text):
            if not any(fence.start() <= found.start() < fence.end() for fence in fences):
                yield Mutation(name, number, found.start(), found[0], "memory_order_relaxed")
        for found in UNNAMED.finditer(text):
            yield Mutation(name, number, found.start(), found[0], "#error name the ordering")


def all_mutations() -> list[Mutation]:
    """Every weakening, in the order of the files."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.[ch]"))]
    return [mutation for path in files for mutation in mutations_of(path, str(path.relative_to(ROOT)))]


def make_copy(into: Path) -> None:
    """What the test program is made of, and nothing else."""
    for name in COPIED:
        source, target = ROOT / name, into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    shutil.copytree(ROOT / "include", into / "include" / "lbm")


def compiler(tree: Path, *arguments: str) -> str:
    """Complaints of the compiler when it refuses, else nothing."""
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-w"]
    command += ["-I", "csrc", "-I", "include", "-I", "tests/c/support", "-I", "tests/model", *arguments]
    outcome = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    return outcome.stderr or f"status {outcome.returncode}" if outcome.returncode != 0 else ""


def build(tree: Path, program: Path) -> str:
    """As compiler(). What takes part in no mutation is built with the first one."""
    objects = [tree / f"{Path(name).stem}.o" for name in UNCHANGED]
    for name, built in zip(UNCHANGED, objects):
        complaints = "" if built.exists() else compiler(tree, "-O1", "-c", "-o", str(built), name)
        if complaints:
            return complaints
    return compiler(tree, "-O0", "-o", str(program), MUTATED, *map(str, objects))


def first_failure(program: Path, filters: tuple[str, ...]) -> str:
    """The complaint of the first scenario that fails, or nothing."""
    for text in filters:
        try:
            outcome = subprocess.run(
                [str(program), text], capture_output=True, text=True, timeout=HANG_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"scenarios {text!r} hang"
        if outcome.returncode != 0:
            lines = outcome.stderr.strip().splitlines()
            return lines[0] if lines else f"status {outcome.returncode}"
    return ""


def judge(tree: Path, mutation: Mutation) -> Verdict:
    """In a tree of its own: mutate, build, run, restore."""
    if mutation.new.startswith("#error"):
        return Verdict(False, "an access without a named ordering: name it, so that it can be weakened")
    path = tree / mutation.path
    whole = path.read_text()
    lines = whole.splitlines(keepends=True)
    line = lines[mutation.line - 1]
    lines[mutation.line - 1] = line[: mutation.column] + line[mutation.column :].replace(mutation.old, mutation.new, 1)
    program = tree / "mutant"
    path.write_text("".join(lines))
    try:
        complaints = build(tree, program)
        if complaints:
            return Verdict(False, f"does not compile: {complaints.splitlines()[0]}")
        complaint = first_failure(program, (*SCENARIOS[Path(mutation.path).parent.name], "f26_"))
        return Verdict(bool(complaint), complaint or "every scenario passes")
    finally:
        path.write_text(whole)


def run_all(mutations: list[Mutation], folder: Path, jobs: int) -> int:
    """How many were caught. Each job has a copy of its own."""
    trees = [folder / str(number) for number in range(jobs)]
    for tree in trees:
        make_copy(tree)
    caught = 0

    def work(number: int) -> list[tuple[Mutation, Verdict]]:
        return [(mutation, judge(trees[number], mutation)) for mutation in mutations[number::jobs]]

    with ThreadPoolExecutor(jobs) as pool:
        for results in pool.map(work, range(jobs)):
            for mutation, verdict in results:
                caught += verdict.caught
                print(f"{'caught ' if verdict.caught else 'MISSED '} {mutation}: {verdict.how}", flush=True)
    return caught


def main() -> int:
    """Status of the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutations at a time (%(default)s)")
    parser.add_argument("--only", default="", help="mutations whose file and line (smx/um_smx_ring.c:80) contain this")
    parser.add_argument("--list", action="store_true", help="say what would be mutated, and end")
    arguments = parser.parse_args()
    mutations = [m for m in all_mutations() if arguments.only in f"{m.path}:{m.line}"]
    if arguments.list:
        print("\n".join(map(str, mutations)))
        return 0
    if arguments.jobs < 1 or not mutations:
        parser.error("--jobs must be above 0, and there must be something to mutate")
    with tempfile.TemporaryDirectory(prefix="um-fences-") as name:
        tree = Path(name) / "unchanged"
        make_copy(tree)
        complaint = build(tree, tree / "program") or first_failure(tree / "program", ("f26_",))
        if complaint:
            print(f"without any mutation: {complaint}")
            return 1
        caught = run_all(mutations, Path(name), min(arguments.jobs, len(mutations)))
    print(f"{len(mutations)} mutations, {caught} caught")
    return 0 if caught == len(mutations) else 1


if __name__ == "__main__":
    sys.exit(main())
