"""Requirement I1: a program builds against an installed libum, found by CMake or pkg-config, shared or static.

Only the install tree is used: the build tree (UM_BUILD_DIR, default ./build) is installed into a temporary DESTDIR.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build"))

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <lbm/lbm.h>
#include <lbm/um.h>

int main(void)
{
    lbm_context_attr_t *attr;
    char value[256];
    size_t size = sizeof value;
    if (lbm_context_attr_create(&attr) != 0 ||
        lbm_context_attr_str_getopt(attr, "operational_mode", value, &size) != 0) {
        fprintf(stderr, "%s\n", lbm_errmsg());
        return 1;
    }
    lbm_context_attr_delete(attr);
    printf("%s|%s|%s\n", lbm_version(), um_version(), value);
    return strcmp(value, "embedded") != 0;
}
"""

CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.20)
project(consumer C)
find_package(um 0.1 REQUIRED CONFIG)
add_executable(shared program.c)
target_link_libraries(shared PRIVATE um::um)
add_executable(static program.c)
target_link_libraries(static PRIVATE um::um_static)
"""


def run(*command: object, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def sanitizer_flags() -> list[str]:
    cache = (BUILD / "CMakeCache.txt").read_text()
    for line in cache.splitlines():
        if line.startswith("UM_SANITIZE:") and line.partition("=")[2]:
            return [f"-fsanitize={line.partition('=')[2]}"]
    return []


@pytest.fixture(name="tree", scope="module")
def install_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of an installation, moved to a place that neither the build nor the library knows of."""
    if not (BUILD / "CMakeCache.txt").exists():
        pytest.skip(f"{BUILD} is not a build tree")
    stage = tmp_path_factory.mktemp("stage")
    run("cmake", "--install", BUILD, "--prefix", "/opt/um", env={**os.environ, "DESTDIR": str(stage)})
    moved = tmp_path_factory.mktemp("moved") / "um"
    shutil.move(stage / "opt" / "um", moved)
    return moved


@pytest.fixture(name="program")
def source_file(tmp_path: Path) -> Path:
    path = tmp_path / "program.c"
    path.write_text(PROGRAM)
    return path


def library_directory(tree: Path) -> Path:
    return next(tree.rglob("libum.so.0")).parent


def check_output(program: Path, tree: Path | None = None) -> None:
    environment = dict(os.environ)
    environment.pop("LD_LIBRARY_PATH", None)
    if tree is not None:
        environment["LD_LIBRARY_PATH"] = str(library_directory(tree))
    assert run(program, env=environment).startswith("UM 6.17 (libum ")


def needs_libum(program: Path) -> bool:
    return "libum.so.0" in run("readelf", "-d", program)


def pkg_config(tree: Path, *arguments: str) -> list[str]:
    environment = {**os.environ, "PKG_CONFIG_PATH": str(library_directory(tree) / "pkgconfig")}
    return run("pkg-config", *arguments, "um", env=environment).split()


def test_i1_the_install_tree_has_headers_libraries_and_programs(tree: Path) -> None:
    libraries = library_directory(tree)
    headers = {path.name for path in (tree / "include" / "lbm").iterdir() if path.is_file()}
    assert headers == {path.name for path in (ROOT / "include").glob("*.h")}
    protos = {path.name for path in (ROOT / "proto").glob("*.proto")}
    assert {path.name for path in (tree / "share" / "libum" / "proto").iterdir()} == protos
    generated = {path.name for path in (tree / "include" / "lbm" / "gen").iterdir()}
    assert generated == {name.replace(".proto", ".pb-c.h") for name in protos}
    assert os.readlink(libraries / "libum.so") == "libum.so.0"
    assert os.readlink(libraries / "liblbm.so") == "libum.so"
    assert (libraries / "libum.a").is_file()
    assert (tree / "bin" / "lbmrd").is_file()
    assert (tree / "bin" / "minsrc").is_file()


@pytest.mark.parametrize("name", ["lbmrd", "srs"])
def test_i1_the_service_starts_the_installed_daemon(tree: Path, name: str) -> None:
    text = (tree / "share" / "libum" / "systemd" / f"{name}.service").read_text()
    start = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    assert start.endswith(f"/bin/{name} ${name.upper()}_OPTIONS") and "@" not in start


def test_i1_what_belongs_to_operation_is_installed(tree: Path) -> None:
    shared = tree / "share" / "libum"
    units = {path.name.removesuffix(".in") for path in (ROOT / "packaging" / "systemd").glob("*.service.in")}
    assert {path.name for path in (shared / "systemd").iterdir()} == units
    for name in ("sysusers/libum.conf", "prometheus/um-alerts.yml", "grafana/um-fleet.json"):
        assert (shared / name).is_file()


def test_i1_the_installed_programs_have_manual_pages(tree: Path) -> None:
    if sanitizer_flags():
        pytest.skip("pages are made with the plain build")
    pages = {path.stem for path in (tree / "share" / "man").glob("man[18]/*")}
    assert pages == {path.name for path in (tree / "bin").iterdir()}


def test_i1_installed_files_do_not_mention_the_build_tree(tree: Path) -> None:
    libraries = library_directory(tree)
    for path in [*libraries.glob("pkgconfig/*"), *libraries.glob("cmake/um/*")]:
        text = path.read_text()
        assert str(BUILD.resolve()) not in text and str(ROOT) not in text, path


def test_i1_cmake_finds_the_package_and_links_both_ways(tree: Path, program: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_LISTS)
    flags = " ".join(sanitizer_flags())
    run("cmake", "-S", tmp_path, "-B", tmp_path / "out", f"-DCMAKE_PREFIX_PATH={tree}", f"-DCMAKE_C_FLAGS={flags}")
    run("cmake", "--build", tmp_path / "out")
    assert needs_libum(tmp_path / "out" / "shared")
    assert not needs_libum(tmp_path / "out" / "static")
    check_output(tmp_path / "out" / "shared", tree)
    check_output(tmp_path / "out" / "static")


def test_i1_a_newer_version_than_installed_is_refused(tree: Path, program: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_LISTS.replace("um 0.1", "um 99.0"))
    done = subprocess.run(
        ["cmake", "-S", tmp_path, "-B", tmp_path / "out", f"-DCMAKE_PREFIX_PATH={tree}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0 and "99.0" in done.stderr


def test_i1_pkg_config_links_the_shared_library(tree: Path, program: Path, tmp_path: Path) -> None:
    run("cc", *sanitizer_flags(), program, "-o", tmp_path / "shared", *pkg_config(tree, "--cflags", "--libs"))
    assert needs_libum(tmp_path / "shared")
    check_output(tmp_path / "shared", tree)


def test_i1_pkg_config_links_the_static_library(tree: Path, program: Path, tmp_path: Path) -> None:
    words = ["-l:libum.a" if word == "-lum" else word for word in pkg_config(tree, "--static", "--cflags", "--libs")]
    run("cc", *sanitizer_flags(), program, "-o", tmp_path / "static", *words)
    assert not needs_libum(tmp_path / "static")
    check_output(tmp_path / "static")


def test_i1_programs_written_for_liblbm_link(tree: Path, program: Path, tmp_path: Path) -> None:
    run(
        "cc",
        *sanitizer_flags(),
        program,
        "-o",
        tmp_path / "lbm",
        "-I",
        tree / "include",
        "-L",
        library_directory(tree),
        "-llbm",
    )
    assert needs_libum(tmp_path / "lbm")
    check_output(tmp_path / "lbm", tree)


MONITOR = r"""
#include <lbm/lbmmon.h>
#include <stdio.h>

int main(void)
{
    const unsigned char packed[] = {0x0a, 5, 0x1a, 3, 'a', 'p', 'p'};
    Lbmmon__UMSMonMsg *message = lbmmon__umsmon_msg__unpack(NULL, sizeof packed, packed);
    if (message == NULL || lbmmon__umsmon_msg__get_packed_size(message) != sizeof packed) {
        return 1;
    }
    printf("UM 6.17 (libum %s\n", message->attributes->application_id);
    lbmmon__umsmon_msg__free_unpacked(message, NULL);
    return 0;
}
"""


@pytest.mark.parametrize("compiler", [["cc", "-x", "c"], ["c++", "-std=c++11", "-x", "c++"]])
def test_f41_monitoring_programs_have_the_protobuf_messages(tree: Path, tmp_path: Path, compiler: list[str]) -> None:
    """Declared by lbmmon.h and defined by the library; a program that reads them needs no code of its own."""
    (tmp_path / "monitor.c").write_text(MONITOR)
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    words = [*compiler, *sanitizer_flags(), *warnings, tmp_path / "monitor.c", "-x", "none", "-o", tmp_path / "monitor"]
    run(*words, *pkg_config(tree, "--cflags", "--libs"))
    check_output(tmp_path / "monitor", tree)


STAND_IN = """
int lbm_context_attr_create(void **attr) { return -1; }
int lbm_context_attr_str_getopt(void *attr, const char *name, char *value, unsigned long *size) { return -1; }
int lbm_context_attr_delete(void *attr) { return -1; }
const char *lbm_errmsg(void) { return "the stand-in ran"; }
const char *lbm_version(void) { return ""; }
const char *um_version(void) { return ""; }
"""


def test_f36_programs_linked_against_liblbm_7_run_with_the_component_of_that_name(
    tree: Path, program: Path, tmp_path: Path
) -> None:
    """The program is linked against another library of that name and then finds only ours."""
    linked_against = tmp_path / "other"
    linked_against.mkdir()
    (tmp_path / "other.c").write_text(STAND_IN)
    other = ["-shared", "-fPIC", "-Wl,-soname,liblbm.so.7", tmp_path / "other.c", "-o", linked_against / "liblbm.so"]
    run("cc", *other)
    binary = tmp_path / "binary"
    link = ["-I", tree / "include", "-L", linked_against, "-llbm"]
    run("cc", *sanitizer_flags(), program, "-o", binary, *link)
    assert "Shared library: [liblbm.so.7]" in run("readelf", "-d", binary)
    assert not list(tree.rglob("liblbm.so.7")), "installed although nobody asked for it"

    stage = tmp_path / "stage"
    component = ["--component", "liblbm7", "--prefix", "/opt/um"]
    run("cmake", "--install", BUILD, *component, env={**os.environ, "DESTDIR": str(stage)})
    (installed,) = (path for path in stage.rglob("*") if not path.is_dir())
    assert installed.name == "liblbm.so.7" and os.readlink(installed) == "libum.so.0"
    complete = tmp_path / "complete"
    shutil.copytree(library_directory(tree), complete, symlinks=True)
    shutil.copy(installed, complete, follow_symlinks=False)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(complete)}
    assert run(binary, env=environment).startswith("UM 6.17 (libum ")
