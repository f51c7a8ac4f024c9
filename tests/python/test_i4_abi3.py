"""Requirement I4: what the wheel's tag promises holds: the module uses the stable ABI only."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

from packaging_support import Built, clean_environment, run


def test_i4_abi3audit_finds_nothing(built: Built) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "abi3audit", "--strict", "--report", str(built.wheel)],
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "_native.abi3.so" in done.stdout


def test_i4_modules_and_programs_find_the_library_beside_them(built: Built, tmp_path: Path) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        archive.extractall(tmp_path)
    package = tmp_path / "um_cffi"
    for path, expected in (
        (package / "binding" / "_native.abi3.so", "$ORIGIN/../lib"),
        (package / "bin" / "minsrc", "$ORIGIN/../lib"),
    ):
        dynamic = run("readelf", "-d", path)
        assert f"[{expected}:" in dynamic and "[libum.so.0]" in dynamic


def test_i4_the_tag_says_on_which_systems_the_wheel_runs(built: Built, tmp_path: Path) -> None:
    """No file of the wheel asks for a newer glibc than the tag names."""
    found = re.fullmatch(r"um_cffi-0\.1\.0-cp39-abi3-manylinux_2_(\d+)_\w+\.whl", built.wheel.name)
    assert found
    with zipfile.ZipFile(built.wheel) as archive:
        archive.extractall(tmp_path)
    needed = {0}
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.open("rb").read(4) == b"\x7fELF":
            needed |= {int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", run("readelf", "-VW", path))}
    assert 17 <= max(needed) <= int(found.group(1))
