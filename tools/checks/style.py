"""Format, lint and documentation: one result for each tool, whatever the number of files."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence

from .process import ROOT, Tally, one_check
from .schedule import Job

TYPED_FOLDERS = ("um_cffi", "tools", "tests", "benchmarks", "examples")
C_FOLDERS = (
    "csrc",
    "um_cffi/binding",
    "include",
    "examples/c",
    "tests/c",
    "tests/sim",
    "tests/model",
    "tests/net",
    "tests/support",
    "tests/fuzz",
    "benchmarks",
)


def c_files() -> list[str]:
    files = [path for folder in C_FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
    return [str(path.relative_to(ROOT)) for path in files if path.suffix in (".c", ".h")]


def c_format() -> Tally:
    if shutil.which("clang-format") is None:
        print("== skipped: clang-format is not installed", flush=True)
        return Tally(skipped=1)
    return one_check("clang-format", ["clang-format", "--dry-run", "-Werror", *c_files()])


def _python(name: str, *arguments: str) -> Callable[[], Tally]:
    return lambda: one_check(name, [sys.executable, *arguments])


def _job(stage: str, name: str, *arguments: str) -> Job:
    return Job(f"{stage}/{name}", stage, _python(name, *arguments))


def format_jobs(stage: str) -> list[Job]:
    ruff = _job(stage, "ruff-format", "-m", "ruff", "format", "--check", "--no-cache", ".")
    return [Job(f"{stage}/clang-format", stage, c_format), ruff]


def lint_jobs(stage: str) -> list[Job]:
    ruff = _job(stage, "ruff", "-m", "ruff", "check", "--no-cache", ".")
    return [ruff, _job(stage, "mypy", "-m", "mypy", *TYPED_FOLDERS)]


def docs_jobs(stage: str, generators: Sequence[str] = ("api_coverage", "options_doc", "man_pages")) -> list[Job]:
    """After the binding is built: the pages describe it."""
    pages = _job(stage, "sphinx", "-m", "sphinx", "-W", "-q", "-b", "html", "docs", "build/docs")
    return [pages, *(_job(stage, name, f"tools/{name}.py", "--check") for name in generators)]
