"""Builds the source distribution and the wheel once per test session, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = ["unshare", "--net"] if os.geteuid() == 0 else []  # a download would fail, not only be refused


class Built(NamedTuple):
    """Files made."""

    sdist: Path
    plain: Path  # as pip builds it: needs libraries of this system
    wheel: Path  # with these libraries inside, as users get it


def run(*command: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-6000:]}{done.stderr[-6000:]}"
    return done.stdout


def clean_environment() -> dict[str, str]:
    """The environment without what points at this source tree or build directory."""
    hidden = ("PYTHONPATH", "UM_BUILD_DIR", "LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV", "CFLAGS", "LDFLAGS")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def build_all(folder: Path) -> Built:
    """The sdist of this tree, the wheel that pip builds from the sdist, offline, and that wheel made portable.

    By the compiler that made the tree, as tools/build_wheel.sh does it: objects of the same sources are the same, see
    cmake/objects.cmake, which takes 10 s of a processor instead of 55.
    """
    env = {"CC": "cc", "CXX": "c++", **clean_environment()}
    code = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"
    name = run(sys.executable, "-c", code, folder, cwd=ROOT, env=clean_environment()).split()[-1]
    sdist = folder / name
    options = ("--no-index", "--no-build-isolation", "--no-deps", "--no-cache-dir", "--disable-pip-version-check")
    run(
        *OFFLINE,
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        *options,
        "-w",
        folder / "plain",
        sdist,
        env=env,
    )
    (plain,) = (folder / "plain").glob("*.whl")
    made = run(*OFFLINE, sys.executable, ROOT / "tools" / "repair_wheel.py", plain, folder, env=clean_environment())
    return Built(sdist, plain, Path(made.strip()))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist of this tree and the wheels built from it offline."""
    if os.environ.get("UM_SANITIZED"):
        pytest.skip("the wheel has a build of its own")
    for needed in ("scikit_build_core", "auditwheel"):
        pytest.importorskip(needed)
    return build_all(tmp_path_factory.mktemp("dist"))


def fresh_environment(folder: Path) -> Path:
    """A virtual environment that has this one's third-party packages (cffi, numpy) but not this project; its python."""
    venv.create(folder)
    python = folder / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def install(python: Path, package: Path) -> None:
    """pip install, offline, by this environment's pip: to give the other one its own takes two seconds."""
    options = ("--no-index", "--no-build-isolation", "--no-cache-dir", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*OFFLINE, *pip, "install", "-q", *options, package, env=clean_environment())
