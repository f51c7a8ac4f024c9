"""The make targets work in any order: what one of them configured, the next finds up to date."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pids import runs

ROOT = Path(__file__).resolve().parents[2]
FAKE_ZMQ = "Name: libzmq\nDescription: a stand-in\nVersion: 4.3.4\nLibs: -lzmq\nCflags:\n"


def packages_here(*names: str) -> list[Path]:
    folders = subprocess.run(
        ["pkg-config", "--variable", "pc_path", "pkg-config"], capture_output=True, text=True, check=True
    ).stdout.strip()
    found = [Path(folder) / f"{name}.pc" for name in names for folder in folders.split(":")]
    return [path for path in found if path.exists()]


def configure(build: Path, packages: Path | None, *settings: str) -> str:
    """Settings and compile commands of a tree after `make configure`, where only `packages` are installed if given."""
    command = ["make", "--no-print-directory", "configure", f"BUILD_DIR={build}", *settings]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    if packages is not None:
        env["PKG_CONFIG_LIBDIR"] = str(packages)
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return (build / "CMakeCache.txt").read_text() + (build / "compile_commands.json").read_text()


def test_f31_packages_installed_later_and_another_build_type_are_noticed(tmp_path: Path) -> None:
    needed = packages_here(
        "libpcre2-8", "libxml-2.0", "icu-uc", "icu-i18n", "icu-data", "zlib", "liblzma", "libprotobuf-c"
    )
    if len(needed) < 2:
        pytest.skip("the packages of the build are not found through pkg-config")
    packages, build = tmp_path / "packages", tmp_path / "build"
    packages.mkdir()
    for path in needed:
        shutil.copy(path, packages)
    before = configure(build, packages)
    assert "UM_BENCH_ZMQ" not in before and "CMAKE_BUILD_TYPE:STRING=Release" in before
    (packages / "libzmq.pc").write_text(FAKE_ZMQ)
    assert "UM_BENCH_ZMQ" in configure(build, packages)
    assert "CMAKE_BUILD_TYPE:STRING=Debug" in configure(build, packages, "BUILD_TYPE=Debug")


def test_the_library_is_compiled_through_a_cache_that_the_wheel_shares_and_tests_are_not(tmp_path: Path) -> None:
    if shutil.which("ccache") is None or shutil.which("ninja") is None or "CMAKE_C_COMPILER_LAUNCHER" in os.environ:
        pytest.skip("no ccache or ninja here, or another launcher of the compiler")
    build = tmp_path / "build"
    configure(build, None, "UM_OBJECT_CACHE=/somewhere")
    rules = (build / "CMakeFiles" / "rules.ninja").read_text().split("\nrule C_COMPILER__")[1:]
    cached = {rule.split("_Release")[0] for rule in rules if "CCACHE_DIR=/somewhere " in rule}
    assert {"um_objects", "srs", "minsrc"} <= {name.removesuffix("_unscanned") for name in cached}
    assert not [name for name in cached if "_test" in name]


def test_the_demo_builds_the_library_and_no_tests() -> None:
    plan = subprocess.run(["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (built,) = [line for line in plan.splitlines() if "cmake --build" in line]
    assert built.endswith("--target um lbmrd")


def waits_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("how", ["the packages are installed", signal.SIGINT, signal.SIGTERM])
def test_what_compiles_ahead_ends_with_its_compilers(tmp_path: Path, how: str | signal.Signals) -> None:
    """As `make prepare` starts it: in the background of a shell, which has it ignore SIGINT."""
    stop, compiling = tmp_path / "stop", tmp_path / "compiling"
    for name in ("cmake", "clang"):
        (tmp_path / name).write_text(
            f'#!/bin/sh\n[ "$1" != --build ] || {{ echo $$ >>{compiling}; exec sleep 600; }}\n'
        )
        (tmp_path / name).chmod(0o755)
    command = [
        "sh",
        "-c",
        'trap "" INT; exec "$@"',
        "sh",
        sys.executable,
        str(ROOT / "tools/compile_ahead.py"),
        str(stop),
    ]
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    with subprocess.Popen(command, env=env) as ahead:
        waits_for(lambda: compiling.exists() and compiling.read_text().endswith("\n"))
        (compiler,) = compiling.read_text().split()
        if isinstance(how, signal.Signals):
            ahead.send_signal(how)
        else:
            stop.touch()
        assert (ahead.wait(120) != 0) == isinstance(how, signal.Signals)
    waits_for(lambda: not runs(int(compiler)))
    assert compiling.read_text().split() == [compiler]  # no other tree is begun
