#!/usr/bin/env python3
"""Writes docs/api-coverage.md: every function of the public headers, implemented or not.

A function counts as implemented when csrc/ defines it outside csrc/api/not_implemented/; the files there name the
feature that a missing function belongs to. With --check nothing is written and the exit status tells whether the
committed page is up to date and every function is defined exactly once.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api-coverage.md"
STUBS = ROOT / "csrc" / "api" / "not_implemented"

PROTOTYPE = re.compile(r"^(?:LBM\w*|UMStore|UMEStore)ExpDLL\s[^;{}]*?\b(\w+)\s*\(", re.MULTILINE)
FEATURE = re.compile(r'^#define FEATURE "(.*) (?:is|are)"$', re.MULTILINE)
MISSING = re.compile(r"^UM_NOT_IMPLEMENTED(_VALUE|_QUIET|_VOID)?\(([^;]*?)\)$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"\b(?:lbm\w*?|um)_\w+")

Functions = dict[str, list[str]]  # by header


def declared() -> Functions:
    """Public functions by header, in the order of declaration."""
    functions: Functions = {}
    for header in sorted((ROOT / "include").glob("*.h"), key=lambda path: (path.name != "lbm.h", path.name)):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        names = PROTOTYPE.findall(text)
        if names:
            functions[header.name] = names
    return functions


def definitions(source: Path, include: Path) -> set[str]:
    """Names of the functions with external linkage that a preprocessed source file defines."""
    command = [
        os.environ.get("CC", "cc"),
        "-E",
        "-P",
        "-std=gnu11",
        "-DLBM_INTERNAL_USE_ONLY",
        '-DUM_VERSION="0"',
        "-I",
        str(ROOT / "csrc"),
        "-I",
        str(include),
        "-I",
        "/usr/include/libxml2",
        str(source),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{source}: {run.stderr.strip()}")
    # Keep what stands outside of braces, so that calls inside functions do not count.
    outside, depth = [], 0
    for token in re.split(r'("(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{}])', run.stdout):
        if token == "{":
            if depth == 0:
                outside.append("{}")
            depth += 1
        elif token == "}":
            depth -= 1
        elif depth == 0:
            outside.append(token)
    found = set()
    for chunk in re.split(r";|\{\}", "".join(outside).replace("{}", "\0{}"))[:-1]:
        if not chunk.endswith("\0") or re.search(r"\bstatic\b", chunk):
            continue
        plain = re.sub(r"\((\w+)\)\s*\(", r" \1(", chunk, count=1)  # int (name)(int) hides a macro of that name
        match = re.match(r"[^(]*?(\w+)\s*\(", plain)
        if match and NAME.fullmatch(match.group(1)):
            found.add(match.group(1))
    return found


def make_headers(folder: Path) -> None:
    """The public headers as a build makes them: the written ones, and those of the protobuf messages in gen/."""
    (folder / "gen").mkdir(parents=True)
    for header in (ROOT / "include").glob("*.h"):
        (folder / header.name).symlink_to(header)
    protos = sorted(str(path) for path in (ROOT / "proto").glob("*.proto"))
    subprocess.run(["protoc-c", f"--proto_path={ROOT / 'proto'}", f"--c_out={folder / 'gen'}", *protos], check=True)


def collect(functions: Functions) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Where each function is defined: name -> [source file], name -> feature for those not implemented."""
    public = {name for names in functions.values() for name in names}
    where: dict[str, list[str]] = defaultdict(list)
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        make_headers(Path(scratch) / "lbm")
        for source in sorted((ROOT / "csrc").rglob("*.c")):
            if "daemons" in source.parts or source.parent == STUBS:
                continue
            text = source.read_text()
            if "##" not in text and public.isdisjoint(NAME.findall(text)):  # names are written out, or made by macros
                continue
            for name in definitions(source, Path(scratch)):
                where[name].append(str(source.relative_to(ROOT)))
    for source in sorted(STUBS.glob("*.c")):
        text = source.read_text()
        feature = FEATURE.search(text)
        for match in MISSING.finditer(text):
            arguments = [part.strip() for part in match.group(2).replace("um_module_errmsg(MODULE)", "0").split(",")]
            assert feature is not None, source
            missing[arguments[2 if match.group(1) in ("_VALUE", "_QUIET") else 0]] = feature.group(1)
        for name in re.findall(r"^(?:int|const char \*)\s*(lbm\w+)\(void\)\n\{", text, re.MULTILINE):
            where[name].append(str(source.relative_to(ROOT)))
    return where, missing


def page(functions: Functions, where: Mapping[str, list[str]], missing: Mapping[str, str]) -> str:
    total = sum(len(names) for names in functions.values())
    implemented = sum(1 for names in functions.values() for name in names if name not in missing)
    lines = [
        "# API coverage",
        "",
        "Generated by `tools/api_coverage.py` from `include/` and `csrc/`; do not edit.",
        "A function that is not implemented links, fails with `LBM_EOPNOTSUPP` and says so in `lbm_errmsg()`;",
        "[the roadmap](roadmap.md) tells what comes when.",
        "",
        f"**Total: {implemented} of {total} functions are implemented.**",
        "",
        "| header | functions | implemented |",
        "|---|---|---|",
    ]
    for header, names in functions.items():
        lines.append(f"| `{header}` | {len(names)} | {sum(1 for name in names if name not in missing)} |")
    features: dict[str, list[str]] = defaultdict(list)
    for names in functions.values():
        for name in names:
            if name in missing:
                features[missing[name]].append(name)
    lines += ["", "## Not implemented, by feature", "", "| feature | functions |", "|---|---|"]
    lines += [f"| {feature} | {len(names)} |" for feature, names in sorted(features.items())]
    for header, names in functions.items():
        lines += ["", f"## {header}", "", "| function | status |", "|---|---|"]
        for name in names:
            status = f"not implemented: {missing[name]}" if name in missing else f"implemented in `{where[name][0]}`"
            lines.append(f"| `{name}` | {status} |")
    return "\n".join(lines) + "\n"


def problems(functions: Functions, where: Mapping[str, list[str]], missing: Mapping[str, str]) -> Iterator[str]:
    public = {name for names in functions.values() for name in names}
    for name in sorted(public):
        if name in missing and name in where:
            yield f"{name}: implemented in {where[name][0]} but also listed in csrc/api/not_implemented/"
        elif name not in missing and name not in where:
            yield f"{name}: declared but defined nowhere"
        elif len(where.get(name, ())) > 1:
            yield f"{name}: defined in {', '.join(where[name])}"
    for name in sorted(set(missing) - public):
        yield f"{name}: listed as not implemented but not declared in include/"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/api-coverage.md.")
    parser.add_argument("--check", action="store_true", help="fail when the committed page is stale; write nothing")
    arguments = parser.parse_args()
    functions = declared()
    where, missing = collect(functions)
    faults = list(problems(functions, where, missing))
    for fault in faults:
        print(fault, file=sys.stderr)
    if arguments.check:
        if not faults and (not PAGE.exists() or PAGE.read_text() != page(functions, where, missing)):
            print(f"{PAGE.relative_to(ROOT)} is stale: run tools/api_coverage.py", file=sys.stderr)
            faults.append("stale")
        return 1 if faults else 0
    undefined = [name for names in functions.values() for name in names if name not in missing and name not in where]
    if undefined:
        return 1
    PAGE.write_text(page(functions, where, missing))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
