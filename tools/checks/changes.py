"""What has changed since the state checked last, and the seeds of this one. When in doubt, everything has."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from .process import ROOT

# What the simulators run: their full counts are for changes of it.
ENGINES = (
    "csrc/base/",
    "csrc/delivery/",
    "csrc/resolver/",
    "csrc/transport/",
    "csrc/wire/",
    "tests/sim/",
    "tests/c/support/",
)
DAY_SECONDS = 86400
INCLUDE = re.compile(r'^#include "((?!base/)[\w/]+)\.[ch]"', re.MULTILINE)


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


def _base(days: int) -> str | None:
    """Where this state left the main branch; on it, the last commit that is so many days older, 0: the one before."""
    head = git("rev-parse", "HEAD")
    base = next((found for name in ("origin/main", "main") if (found := git("merge-base", "HEAD", name))), None)
    if base is not None and base != head:
        return base
    if days == 0:
        return git("rev-parse", "--verify", "--quiet", "HEAD~1")
    made = git("log", "-1", "--format=%ct", "HEAD")
    return git("rev-list", "-1", f"--before={int(made) - days * DAY_SECONDS}", "HEAD") or None if made else None


def changed_files(days: int) -> set[str] | None:
    """Files that differ from an earlier state; None: nobody knows. Commits often arrive several at once, so what is
    cheap to check in full looks back a day."""
    base = _base(days)
    if base is None:
        return None
    tracked, new = git("diff", "--name-only", base), git("ls-files", "--others", "--exclude-standard")
    return None if tracked is None or new is None else {*tracked.splitlines(), *new.splitlines()}


def engines_changed(changed: set[str] | None) -> bool:
    """Whether the simulators have something new to look at."""
    return changed is None or any(name.startswith(ENGINES) for name in changed)


def target_changed(source: Path, changed: set[str] | None) -> bool:
    """Whether a fuzz target, its seeds or the code that it includes has changed; folders count as a whole."""
    if changed is None:
        return True
    folders = {f"csrc/{Path(name).parent}/" for name in INCLUDE.findall(source.read_text()) if "/" in name}
    own = (f"tests/fuzz/{source.stem}", f"tests/fuzz/corpus/{source.stem}/")
    return any(name.startswith((*own, *folders)) for name in changed)
