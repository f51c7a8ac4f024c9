"""What has changed since the state checked last, and the seeds of this one. When in doubt, everything has."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

from .process import ROOT

# What the simulators run, beside what they include of other folders: their full counts are for changes of it. Of the
# transports, those over TCP and over memory have no simulator, nor have the sockets of the others.
ENGINES = (
    "csrc/base/",
    "csrc/delivery/",
    "csrc/resolver/",
    "csrc/transport/lbtr/",
    "csrc/transport/session/",
    "csrc/transport/stream/",
    "csrc/transport/unicast/",
    "csrc/wire/",
    "tests/sim/",
)
HARNESS = frozenset(("tests/c/support/um_test.c", "tests/c/support/um_test.h"))  # of every program: no engine
DAY_SECONDS = 86400
INCLUDE = re.compile(r'^#include [<"]([\w./]+)\.(?:h|c|def)[>"]', re.MULTILINE)
INCLUDED_FROM = ("csrc", "tests/c/support", "tests/fuzz")
BASE = "csrc/base"
PUBLIC = {"lbm/lbmpdm": "csrc/pdm", "lbm/lbmsdm": "csrc/sdm", "lbm/lbmmon": "csrc/lbmmon"}  # what is behind a header


def git(*arguments: str) -> str | None:
    """Output of a git command, None where it fails: no repository, no such commit, no git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def base_seed() -> int:
    """Seeds begin behind this number: each commit tries others. UM_SIM_BASE overrides, 0 where there is no commit."""
    given = os.environ.get("UM_SIM_BASE")
    if given is not None:
        return int(given, 0)
    commit = git("rev-parse", "HEAD")
    return int(commit[:8], 16) if commit else 0


def _base(days: float) -> str | None:
    """Where this state left the main branch; on it, the last commit that is so many days older, 0: the one before."""
    head = git("rev-parse", "HEAD")
    base = next((found for name in ("origin/main", "main") if (found := git("merge-base", "HEAD", name))), None)
    if base is not None and base != head:
        return base
    if days == 0:
        return git("rev-parse", "--verify", "--quiet", "HEAD~1")
    made = git("log", "-1", "--format=%ct", "HEAD")
    return git("rev-list", "-1", f"--before={int(made) - int(days * DAY_SECONDS)}", "HEAD") or None if made else None


def changed_files(days: float) -> set[str] | None:
    """Files that differ from an earlier state; None: nobody knows. Commits often arrive several at once, so what is
    cheap to check in full looks back half a day."""
    base = _base(days)
    if base is None:
        return None
    tracked, new = git("diff", "--name-only", base), git("ls-files", "--others", "--exclude-standard")
    return None if tracked is None or new is None else {*tracked.splitlines(), *new.splitlines()}


def engines_changed(changed: set[str] | None) -> bool:
    """Whether the simulators have something new to look at."""
    if changed is None or any(name.startswith(ENGINES) for name in changed):
        return True
    return not changed.isdisjoint(simulated())


@cache
def simulated() -> frozenset[str]:
    """The files that simulators include, and what these include in the same folders, without what counts the tests."""
    return frozenset().union(*(code_of(path) for path in ROOT.glob("tests/sim/*.[ch]"))) - HARNESS


def _named(stem: str, folder: str) -> set[str]:
    """What stands behind an included header: it, the source of its name, and those named after it (NAME_part.c)."""
    if stem in PUBLIC:
        return {str(path.relative_to(ROOT)) for path in (ROOT / PUBLIC[stem]).glob("*.[ch]")}
    found: set[str] = set()
    for root in (*INCLUDED_FROM, folder):
        place = (ROOT / root / stem).resolve()
        for path in (*place.parent.glob(f"{place.name}.*"), *place.parent.glob(f"{place.name}_*.c")):
            found.add(str(path.relative_to(ROOT)))
    return found


def _included(file: str) -> set[str]:
    stems = INCLUDE.findall((ROOT / file).read_text())
    return set().union(*(_named(stem, str(Path(file).parent)) for stem in stems))


def code_of(source: Path) -> set[str]:
    """The files that a fuzz target or simulator is made for: what it includes and, in the same folders, what those do.
    What everything uses, csrc/base, counts for the targets of nothing else.
    """
    own = str(source.relative_to(ROOT))
    found = _included(own)
    for file in [each for each in found if not each.startswith("csrc/")]:  # helpers of the test
        found |= _included(file)
    folders = {str(Path(file).parent) for file in found if file.startswith("csrc/")}
    if len(folders) > 1:
        folders.discard(BASE)
        found = {file for file in found if Path(file).parent != Path(BASE)}
    ahead = list(found)
    while ahead:
        new = {file for file in _included(ahead.pop()) if str(Path(file).parent) in folders} - found
        found |= new
        ahead += new
    return found | {own}


def target_changed(source: Path, changed: set[str] | None) -> bool:
    """Whether a fuzz target, its seeds or the code that it is made for has changed."""
    if changed is None:
        return True
    corpus = f"tests/fuzz/corpus/{source.stem}/"
    return not changed.isdisjoint(code_of(source)) or any(name.startswith(corpus) for name in changed)
