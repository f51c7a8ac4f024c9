#!/usr/bin/env python3
"""Proves that the tests notice when an option does not reach what it rules.

Every option that acts (csrc/config/options.def) is read somewhere in csrc as a field of the structure of its scope.
This program makes a copy of csrc in which each such read can be answered with the option's default instead, builds it
once, and runs for each option the test case named after it (f25_<scope>_<option>,
tests/c/config/option_reach_*_test.c) while that one option's reads are so answered. The case must then fail, and pass
when nothing is changed.
The copy is made and built in build-mutants; the library proper contains nothing of it.

    tools/mutate_options.py                       40 options chosen at random; the seed is printed
    tools/mutate_options.py --seed 7 --count 100
    tools/mutate_options.py --all
    tools/mutate_options.py --only resolver_cache --only source/transport_tcp_nodelay
    tools/mutate_options.py --all --each-read     every read by itself

One line for each option, a summary, and status 1 when a change was not noticed. With --each-read those remain whose
value is only told in the text of a message, and those that another read of the same option overrules.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCOPES = ("context", "source", "receiver", "wildcard_receiver", "event_queue", "hfx", "xsp")
LINKED = ("include", "cmake", "packaging", "proto", "tests", "tools", "um_cffi", "CMakeLists.txt")
HANG_SECONDS = 120
BUILD_SECONDS = 1800

HEADER = """\
/* Reads of options that can be answered with the default. Made by tools/mutate_options.py, not part of the library. */
#ifndef UM_OPTION_MUTANT_H
#define UM_OPTION_MUTANT_H

#include <stddef.h>

struct um_option;
STRUCTURES
/* The field, or the default of the option whose reads are changed in this run. */
void *um_option_mutant_read(int scope, const char *name, const char *where, const void *field);
/* As um_option_writes(), and nothing while the option that would set the other is the changed one. */
const struct um_option *um_option_mutant_writes(const struct um_option *option, size_t n);

#define UM_OPTION_SCOPE_OF(structure) \\
    _Generic(&(structure), SCOPES_OF_STRUCTURES default : -1)
#define UM_OPTION_READ(structure, name) \\
    (*(__typeof__(&(structure).name)) \
          um_option_mutant_read(UM_OPTION_SCOPE_OF(structure), #name, __FILE__ UM_OPTION_LINE(__LINE__),       \
                                                             &(structure).name))
#define UM_OPTION_LINE(line) UM_OPTION_LINE_TEXT(line)
#define UM_OPTION_LINE_TEXT(line) ":" #line

#endif
"""

SOURCE = """\
/* Made by tools/mutate_options.py, not part of the library. UM_OPTION_MUTANT names the option, as scope/name
 * or, for one of its reads, scope/name@file:line. */
#include "config/um_option_mutant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/um_attr.h"
#include "config/um_option_table.h"

static const struct um_option *changed;
static const char *only_where; /* this read alone: file:line */
static struct um_attr defaults;

__attribute__((constructor)) static void choose(void)
{
    const char *text = getenv("UM_OPTION_MUTANT");
    const char *slash = text != NULL ? strchr(text, '/') : NULL;
    const char *at = text != NULL ? strchr(text, '@') : NULL;
    char scope_name[32], name[128];
    if (text == NULL || text[0] == '\\0') {
        return;
    }
    snprintf(scope_name, sizeof scope_name, "%.*s", slash != NULL ? (int)(slash - text) : 0, text);
    snprintf(name, sizeof name, "%.*s", slash == NULL ? 0 : at != NULL ? (int)(at - slash - 1) : 127, slash + 1);
    only_where = at != NULL ? at + 1 : NULL;
    int scope = um_scope_find(scope_name);
    changed = scope >= 0 ? um_option_find((enum um_option_scope)scope, name) : NULL;
    if (changed == NULL || um_attr_init_defaults(&defaults, (enum um_option_scope)scope, false) != 0) {
        fprintf(stderr, "UM_OPTION_MUTANT %s: no such option\\n", text);
        abort();
    }
}

void *um_option_mutant_read(int scope, const char *name, const char *where, const void *field)
{
    if (changed != NULL && scope == (int)changed->scope && strcmp(name, changed->name) == 0 &&
        (only_where == NULL || strcmp(where, only_where) == 0)) {
        return um_option_field(changed, defaults.options);
    }
    return (void *)field;
}

const struct um_option *um_option_mutant_writes(const struct um_option *option, size_t n)
{
    return option == changed ? NULL : um_option_writes(option, n);
}
"""


@dataclass(frozen=True)
class Option:
    scope: str
    name: str
    writes: bool  # sets other options, which are read in its place

    @property
    def key(self) -> str:
        return f"{self.scope}/{self.name}"

    @property
    def case(self) -> str:
        return f"f25_{self.scope}_{self.name}"


def acting_options() -> list[Option]:
    """The rows of the table whose status is ACTS, in its order; another name of an option has no reads of its own."""
    text = (ROOT / "csrc/config/options.def").read_text()
    writers = set(re.findall(r"^UM_WRITES\((\w+), (\w+),", text, re.M))
    rows = re.findall(r"^UM_([A-Z_]+?)\((\w+), .*\bACTS\b.*\)$", text, re.M)
    scopes = {scope.upper(): scope for scope in SCOPES}
    return [Option(scopes[scope], name, (scope, name) in writers) for scope, name in rows if scope in scopes]


# ---- the changed copy ----


def blank_comments(text: str) -> str:
    """The same text with comments, strings and directives replaced by blanks of the same length."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#[ \t]*include[^\n]*'
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S | re.M)


def group_start(code: str, end: int) -> int:
    """Where the bracket closed at `end` was opened."""
    depth = 0
    for at in range(end, -1, -1):
        if code[at] in ")]":
            depth += 1
        elif code[at] in "([":
            depth -= 1
            if depth == 0:
                return at
    return -1


def base_start(code: str, end: int) -> int:
    """Where the expression before a member operator begins; `end` when there is none (a designated initialiser)."""
    at = end
    while True:
        while at > 0 and code[at - 1].isspace():
            at -= 1
        if at > 0 and code[at - 1] in ")]":
            opened = group_start(code, at - 1)
            if opened < 0:
                return end
            at = opened
            word = re.search(r"(\w+)\s*$", code[:at])
            if word is None or word[1] in ("return", "if", "while", "sizeof", "switch"):
                return at
            continue  # a call or an index: what stands before belongs to it
        word = re.search(r"[A-Za-z_]\w*$", code[:at])
        if word is None or word[0] in ("return", "case"):
            return end if at == end else at
        at = word.start()
        operator = re.search(r"(->|\.)\s*$", code[:at])
        if operator is None:
            return at
        at = operator.start()


def changed_reads(text: str, names: set[str]) -> tuple[str, list[tuple[str, int]]]:
    """The text with every read of such a field through UM_OPTION_READ; names and lines of what was met (a name that
    a macro pastes with its ##)."""
    code = blank_comments(text)
    met: list[tuple[str, int]] = []
    out, done = [], 0
    for match in re.finditer(r"(->|\.)\s*([A-Za-z_]\w*)((?:##\w+)+)?\b", code):
        name = match[2] + (match[3] or "")  # a macro may paste a name together with what it is given
        if (name not in names and match[3] is None) or match.start() < done:
            continue
        written = re.match(r"\s*(?:(?:\.|->)\s*\w+\s*|\[[^\]]*\]\s*)*=[^=]", code[match.end() :])
        start = base_start(code, match.start())
        if written or start == match.start() or start < done:
            continue
        base = text[start : match.start()].strip()
        structure = f"*({base})" if match[1] == "->" else base
        out.append(text[done:start] + f"UM_OPTION_READ({structure}, {name})")
        done = match.end()
        met.append((name, text.count("\n", 0, match.end()) + 1))
    out.append(text[done:])
    return "".join(out), met


def write_if_other(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def given_parts(option: str, pasted: str) -> list[str]:
    """What a macro is given when it pastes the option's name: any one part of `a##b##c`."""
    parts = pasted.split("##")
    forms = [[re.escape(p) if i != j else r"(\w+)" for j, p in enumerate(parts)] for i in range(len(parts))]
    return [match[1] for form in forms if (match := re.fullmatch("".join(form), option))]


def macro_calls(relative: Path, text: str) -> list[tuple[str, str]]:
    """Lines in which a macro of the library is called, each with its file:line before it."""
    lines = enumerate(blank_comments(text).splitlines(), start=1)
    return [(f"{relative}:{i}", line) for i, line in lines if re.search(r"\bUM_[A-Z_]+\(", line)]


def pasted_reads(option: Option, pasted: set[str], calls: list[tuple[str, str]]) -> list[str]:
    """Where macros that paste are given their part of the option's name, file:line."""
    found = []
    for part in {part for name in pasted for part in given_parts(option.name, name)}:
        given = re.compile(rf"\b{part}\s*[,)]")
        found += [where for where, line in calls if part in line and given.search(line)]
    return found


def make_tree(tree: Path, options: list[Option]) -> dict[str, list[str]]:
    """A source tree with a changed csrc and links to everything else. Returns where each option is read, file:line."""
    tree.mkdir(parents=True, exist_ok=True)
    for name in LINKED:
        link = tree / name
        if (ROOT / name).exists() and not link.is_symlink():
            link.symlink_to(ROOT / name)
    names = {option.name for option in options}
    read: dict[str, list[str]] = {}
    wanted: set[Path] = set()
    calls: list[tuple[str, str]] = []
    for source in sorted((ROOT / "csrc").rglob("*")):
        relative = source.relative_to(ROOT)
        if source.suffix not in (".c", ".h", ".def") or "daemons" in relative.parts:
            continue
        text = source.read_text()
        if source.suffix != ".def":
            changed, met = changed_reads(text, names)
            calls += macro_calls(relative, text)
            if relative == Path("csrc/config/um_options.c"):
                changed = changed.replace("um_option_writes(", "um_option_mutant_writes(")
            if changed != text:
                changed = f'#include "config/um_option_mutant.h"\n#line 1 "{relative}"\n{changed}'
            text = changed
            for name, line in met:
                where = read.setdefault(name, [])
                if f"{relative}:{line}" not in where:
                    where.append(f"{relative}:{line}")
        write_if_other(tree / relative, text)
        wanted.add(tree / relative)
    pasting = {name for name in read if "##" in name}
    for option in options:
        if pasted := pasted_reads(option, pasting, calls):
            read[option.name] = list(dict.fromkeys([*read.get(option.name, []), *pasted]))
    structures = [f"struct um_{scope}_options" for scope in SCOPES]  # in the order of enum um_option_scope
    kinds = "".join(f"{text} * : {i}, const {text} * : {i}, " for i, text in enumerate(structures))
    header = HEADER.replace("SCOPES_OF_STRUCTURES ", kinds).replace(
        "STRUCTURES", "\n".join(f"{s};" for s in structures)
    )
    for name, text in (("h", header), ("c", SOURCE)):
        write_if_other(tree / f"csrc/config/um_option_mutant.{name}", text)
        wanted.add(tree / f"csrc/config/um_option_mutant.{name}")
    for path in (tree / "csrc").rglob("*.*"):
        if path.is_file() and path not in wanted:
            path.unlink()
    return read


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{(done.stdout + done.stderr)[-4000:]}")


def configure(folder: Path) -> None:
    """Of the source tree in `folder`/tree, into `folder`/build."""
    flags = [f"-DUM_BUILD_{part}=OFF" for part in ("EXAMPLES", "FUZZERS", "BENCHMARKS")]
    flags += ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O1"]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    _do(["cmake", "-S", str(folder / "tree"), "-B", str(folder / "build"), *generator, *flags])


def build(folder: Path, programs: list[str], jobs: int) -> None:
    configure(folder)
    _do(["cmake", "--build", str(folder / "build"), "-j", str(jobs), "--target", *programs])


# ---- the runs ----


def rows() -> list[tuple[str, str]]:
    """The option (scope/name) and the test program of every row."""
    found = []
    for path in sorted((ROOT / "tests/c/config").glob("option_reach_*_test.c")):
        for scope, name in re.findall(r"^REACHES\w*\((\w+), (\w+),", path.read_text(), re.M):
            found.append((f"{scope}/{name}", path.stem))
    return found


def guards(options: list[Option]) -> dict[Option, str]:
    """The test program that has the case of each option; those without one are missing."""
    programs = dict(rows())
    return {option: programs[option.key] for option in options if option.key in programs}


def run_case(folder: Path, program: str, case: str, changed: str) -> tuple[bool, str]:
    """True when it passed; and its last words otherwise."""
    env = {**os.environ, "UM_OPTION_MUTANT": changed}
    command = [str(ROOT / "tools/private_net.sh"), str(folder.resolve() / "build/tests" / program), case]
    try:
        done = subprocess.run(
            command,
            cwd=folder / "tree/csrc",  # beside tests, as a build tree: what cases read is at ../tests
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=HANG_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, "does not end"
    words = [line for line in (done.stdout + done.stderr).splitlines() if " failed" in line and "passed," not in line]
    ran = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", done.stdout + done.stderr)
    if done.returncode == 0 and (ran is None or ran[1] == "0"):
        return True, "runs no case"
    return done.returncode == 0, words[0].strip() if words else f"status {done.returncode}"


def judge(folder: Path, option: Option, program: str | None, read: list[str], each: bool) -> str:
    """What is wrong; empty when the change is noticed."""
    if program is None:
        return "has no test case"
    if not read and not option.writes:
        return "is read nowhere in csrc"
    passed, words = run_case(folder, program, option.case, "")
    if not passed:
        return f"{program} {option.case} fails without any change: {words}"
    unnoticed = []
    for where in read if each else [""]:
        passed, words = run_case(folder, program, option.case, f"{option.key}@{where}" if where else option.key)
        unnoticed += [where] * passed
    return f"{program} {option.case} passes with its default {' '.join(unnoticed)}".strip() if unnoticed else ""


def choose(options: list[Option], args: argparse.Namespace) -> list[Option]:
    if args.only:
        chosen = [o for o in options if o.name in args.only or o.key in args.only]
        unknown = set(args.only) - {o.name for o in chosen} - {o.key for o in chosen}
        if unknown:
            sys.exit(f"no acting option: {', '.join(sorted(unknown))}")
        return chosen
    if args.all:
        return options
    return random.Random(args.seed).sample(options, min(args.count, len(options)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="of the choice (default: random)"
    )
    parser.add_argument("--count", type=int, default=40, help="how many options (default 40)")
    parser.add_argument("--all", action="store_true", help="every acting option")
    parser.add_argument("--only", action="append", metavar="NAME", help="this option: name or scope/name; repeatable")
    parser.add_argument("--each-read", action="store_true", help="change the reads of an option one by one")
    parser.add_argument("--folder", type=Path, default=ROOT / "build-mutants", help="where to build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()

    options = acting_options()
    chosen = choose(options, args)
    guarded = guards(options)
    read = make_tree(args.folder / "tree", options)
    build(args.folder, sorted({guarded[o] for o in chosen if o in guarded}) or ["um_static"], args.jobs)
    if not args.only and not args.all:
        print(f"seed {args.seed}: {len(chosen)} of {len(options)} acting options")
    missed = 0
    pool = ThreadPoolExecutor(max_workers=2 * args.jobs)  # a case that fails mostly waits for what does not come
    for option, wrong in zip(
        chosen,
        pool.map(lambda o: judge(args.folder, o, guarded.get(o), read.get(o.name, []), args.each_read), chosen),
        strict=True,
    ):
        missed += wrong != ""
        result = f"NOT CAUGHT: {wrong}" if wrong else f"caught by {guarded[option]} {option.case}"
        print(f"{option.key}: {result}", flush=True)
        if wrong:
            print(f"    again: tools/mutate_options.py --only {option.key}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} caught, {missed} not caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
