"""The public surface: what the headers declare is what libum.so exports, and each header stands alone.

UM_BUILD_DIR names the build tree (default ./build).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build"))
LIBRARY = BUILD / "lib" / "libum.so"
HEADERS = sorted(path.name for path in (ROOT / "include").glob("*.h"))

sys.path.insert(0, str(ROOT / "tools"))
import api_coverage  # noqa: E402


def declared_functions() -> set[str]:
    return {name for names in api_coverage.declared().values() for name in names}


def need_library() -> None:
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built")


def exported_symbols() -> set[str]:
    need_library()
    listing = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True, text=True).stdout
    symbols = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    return symbols - {"LIBUM_0"}  # the version node itself


def test_every_declared_function_is_exported() -> None:
    assert declared_functions() - exported_symbols() == set()


def generated_names() -> set[str]:
    """What the generated headers of the protobuf messages declare."""
    texts = [path.read_text() for path in (BUILD / "include" / "lbm" / "gen").glob("*.pb-c.h")]
    return {name for text in texts for name in re.findall(r"\b((?:lbmmon|openum)__\w+)\b", text)}


def test_nothing_else_is_exported() -> None:
    exported, generated = exported_symbols(), generated_names()
    assert exported - declared_functions() - generated == set()
    assert "lbmmon__umsmon_msg__unpack" in exported and "lbmmon__umpmon_msg__free_unpacked" in exported


def test_the_coverage_page_is_up_to_date_and_every_function_is_defined_once() -> None:
    check = subprocess.run(
        [sys.executable, ROOT / "tools" / "api_coverage.py", "--check"], capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stderr


def test_the_library_needs_only_what_it_documents() -> None:
    need_library()
    dynamic = subprocess.run(["readelf", "-d", LIBRARY], check=True, capture_output=True, text=True).stdout
    assert re.search(r"SONAME.*\[libum\.so\.0\]", dynamic)
    needed = {name.split(".so")[0] for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic)}
    sanitizers = {"libasan", "libubsan", "libtsan"}
    assert needed - sanitizers <= {
        "libc",
        "libm",
        "libpcre2-8",
        "libprotobuf-c",
        "libxml2",
        "ld-linux-x86-64",
        "libgcc_s",
        "libdl",
        "libpthread",
    }


@pytest.fixture(name="include")
def include_directory(tmp_path: Path) -> Path:
    (tmp_path / "lbm").symlink_to(ROOT / "include")
    return tmp_path


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize(
    "compiler, standard, suffix",
    [("gcc", "c11", "c"), ("g++", "c++11", "cpp"), ("clang", "c11", "c"), ("clang++", "c++11", "cpp")],
)
def test_each_header_compiles_alone_without_a_warning(
    header: str, compiler: str, standard: str, suffix: str, include: Path, tmp_path: Path
) -> None:
    if subprocess.run(["which", compiler], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / f"alone.{suffix}"
    source.write_text(
        f"#include <lbm/{header}>\n#include <lbm/{header}>\nint alone(void);\nint alone(void) {{ return 0; }}\n"
    )
    run = subprocess.run(
        [
            compiler,
            f"-std={standard}",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Wstrict-prototypes" if suffix == "c" else "-Wall",
            "-Werror",
            "-I",
            include,
            "-fsyntax-only",
            source,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_the_roadmap_names_what_is_missing_and_nothing_else() -> None:
    """Each pattern of its tables fits a function that is not implemented, and each of these fits a pattern."""
    page = (ROOT / "docs" / "api-coverage.md").read_text()
    missing = set(re.findall(r"^\| `(\w+)` \| not implemented", page, re.MULTILINE))
    tables = [line for line in (ROOT / "docs" / "roadmap.md").read_text().splitlines() if line.startswith("| ")]
    calls = "".join(line.rstrip("| ").rpartition(" | ")[2] for line in tables)
    patterns = set(re.findall(r"`((?:lbm|umestored)[\w*]+)`", calls)) - {"lbmmoncache"}
    assert missing and not [name for name in missing if not any(fnmatch(name, each) for each in patterns)]
    assert not [each for each in patterns if not any(fnmatch(name, each) for name in missing)]
