#!/usr/bin/env python3
"""Manual pages out of the texts of --help: what a program prints and what its page says cannot differ.

    tools/man_pages.py [--check]                  pages of the command um into packaging/man, or: are they current?
    tools/man_pages.py --programs BIN OUT NAME... pages of programs in BIN, into OUT/man1 and OUT/man8

The pages of the programs are made by the build, which runs them. Those of `um` are kept in the repository, because its
command line is read from the package itself, which needs more than a compiler; a check of `make test` compares them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "packaging" / "man"
DATE = (
    "2026-11-27"  # of the last change of what these pages have beside the texts of --help; not of the day they are made
)
DAEMONS = ("lbmrd", "srs")  # and *_resource_manager: what an administrator runs, section 8
EXAMPLES = ROOT / "examples" / "c"
WITHOUT_HELP = ("minrcv", "minsrc", "sdmtopdm")

SEE_ALSO = {
    "lbmrd": ("um-doctor(1)", "srs(8)"),
    "srs": ("um-doctor(1)", "lbmrd(8)"),
    "lbtipc_resource_manager": ("lbtsmx_resource_manager(8)", "um-doctor(1)"),
    "lbtsmx_resource_manager": ("lbtipc_resource_manager(8)", "um-doctor(1)"),
}


@dataclass
class Option:
    """One line of a list of options or arguments."""

    forms: str  #: "-c, --config=FILE"
    text: str


@dataclass
class Section:
    """A part of a page: paragraphs, then options."""

    title: str
    paragraphs: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass
class Page:
    """A manual page."""

    name: str
    number: int
    purpose: str
    synopsis: list[str]
    sections: list[Section]
    see_also: tuple[str, ...] = ()


# ---- roff ------------------------------------------------------------------------------------------------------------

SPECIAL = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq"}


def escaped(text: str) -> str:
    """Text that stands for itself, also at the beginning of a line."""
    result = "".join(SPECIAL.get(letter, letter if letter.isascii() else f"\\[u{ord(letter):04X}]") for letter in text)
    return f"\\&{result}" if result.startswith(".") else result


def filled(text: str) -> str:
    """A paragraph in lines that a difference can be read in."""
    return "\n".join(map(escaped, textwrap.wrap(text, 90, break_long_words=False, break_on_hyphens=False)))


def form(text: str) -> str:
    """One form of an option or argument: names bold, what is to be filled in italic."""
    found = re.match(r"(-[\w-]+)([= ]?)(.*)", text)
    if not found:
        return f"\\fI{escaped(text)}\\fR"
    name, between, argument = found.groups()
    return f"\\fB{escaped(name)}\\fR{between}" + (f"\\fI{escaped(argument)}\\fR" if argument else "")


def roff(page: Page) -> str:
    """The page in the macros of man(7)."""
    lines = [
        '.\\" made by tools/man_pages.py from the text of --help',
        f'.TH {escaped(page.name.upper())} {page.number} "{DATE}" "libum"',
        ".SH NAME",
        f"{escaped(page.name)} \\- {escaped(page.purpose)}",
        ".SH SYNOPSIS",
    ]
    for number, line in enumerate(page.synopsis):
        name, _, rest = line.partition(" ")
        lines += [".br"] if number else []
        lines.append(f"\\fB{escaped(name)}\\fR {escaped(rest)}".rstrip())
    for section in page.sections:
        lines.append(f".SH {escaped(section.title.upper())}")
        for number, paragraph in enumerate(section.paragraphs):
            lines += [".PP"] if number else []
            lines.append(filled(paragraph))
        for option in section.options:
            lines += [".TP", ", ".join(map(form, option.forms.split(", "))), filled(option.text)]
    if page.see_also:
        lines += [".SH SEE ALSO", ",\n".join(f"\\fB{escaped(each[:-3])}\\fR{each[-3:]}" for each in page.see_also)]
    return "\n".join(line for line in lines if line) + "\n"


# ---- programs in C ---------------------------------------------------------------------------------------------------


def section_of(name: str) -> int:
    """8 for what an administrator runs."""
    return 8 if name in DAEMONS or name.endswith("_resource_manager") else 1


def summary(text: str) -> str:
    """The first sentence, as a line of a list."""
    first = re.split(r"[.:;](?:\s|$)", text, maxsplit=1)[0]
    return first[:1].lower() + first[1:] if first[1:2].islower() else first


def read_help(name: str, text: str) -> Page:
    """The page that says what a program has printed for --help, called by this name."""
    before, found, after = text.partition("Usage: ")
    if not found:
        raise SystemExit(f"{name} --help: no usage in\n{text}")
    head = [line for line in before.splitlines() if line.strip() and line != name and "libum" not in line]
    usage, _, rest = after.partition("\n")
    options, notes = read_options(rest)
    sections = [Section("description", [" ".join(head), *([" ".join(notes)] if notes else [])])]
    if options:
        sections.append(Section("options", [], options))
    return Page(name, section_of(name), summary(" ".join(head)), [usage], sections, SEE_ALSO.get(name, ("um(1)",)))


def read_options(text: str) -> tuple[list[Option], list[str]]:
    """Options of a usage text, and the lines that stand around them."""
    options: list[Option] = []
    notes: list[str] = []
    for line in text.splitlines():
        if line.startswith("   ") and options:
            options[-1].text += f" {line.strip()}"
        elif line.startswith("  "):
            forms, _, words = line.strip().partition("  ")
            options.append(Option(forms, words.strip()))
        elif line.strip():
            notes.append(line.strip())
    return options, notes


def page_without_help(name: str) -> Page:
    """The smallest examples take no options: the first comment of their source tells what they do."""
    comment = (EXAMPLES / f"{name}.c").read_text().partition("*/")[0]
    words = " ".join(line.strip(" /*") for line in comment.splitlines())
    words = re.sub(r" *main\(\)[^.]*\.", "", words).strip()  # that is for who reads the source
    description = [words, "It takes no options."]
    return Page(name, 1, summary(words), [name], [Section("description", description)], ("um(1)",))


def page_of_program(folder: Path, name: str) -> Page:
    """Run the program for its text, under its own name wherever it is."""
    if name in WITHOUT_HELP:
        return page_without_help(name)
    command = subprocess.run(
        [name, "--help"],
        executable=folder / name,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if command.returncode != 0:
        raise SystemExit(f"{folder / name} --help: status {command.returncode}\n{command.stdout}{command.stderr}")
    return read_help(name, command.stdout + command.stderr)


# ---- the command um --------------------------------------------------------------------------------------------------


def argument_forms(action: argparse.Action) -> str:
    """How an option or argument is written."""
    default = "" if action.nargs == 0 else action.dest.upper() if action.option_strings else action.dest
    metavar = action.metavar if isinstance(action.metavar, str) else default
    if action.choices is not None and action.metavar is None:
        metavar = "{" + ",".join(map(str, action.choices)) + "}"
    words = {"?": f"[{metavar}]", "*": f"[{metavar} ...]", "+": f"{metavar} [{metavar} ...]"}.get(
        str(action.nargs), metavar
    )
    return ", ".join(f"{name} {words}".strip() for name in action.option_strings) or words


def sections_of(parser: argparse.ArgumentParser) -> Iterator[Section]:
    """The groups of a parser that have something in them, the options of all before those of the library."""
    formatter = parser._get_formatter()
    for group in parser._action_groups:
        title = {"optional arguments": "options", "positional arguments": "arguments"}.get(
            str(group.title), str(group.title)
        )
        options = [
            Option(argument_forms(action), formatter._expand_help(action) if action.help else "")
            for action in group._group_actions
            if not isinstance(action, argparse._SubParsersAction) and action.help is not argparse.SUPPRESS
        ]
        if options:
            yield Section(title if title in ("options", "arguments") else f"{title} options", [], options)


def page_of_parser(parser: argparse.ArgumentParser, purpose: str, see_also: tuple[str, ...]) -> Page:
    """The page of one command."""
    positional = [
        argument_forms(action)
        for action in parser._actions
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction)
    ]
    about = [text for text in (parser.description or purpose, parser.epilog) if text]
    sections = [Section("description", [" ".join(text.split()) for text in about]), *sections_of(parser)]
    synopsis = " ".join([parser.prog, "[options]", *positional])
    return Page(parser.prog.replace(" ", "-"), 1, purpose, [synopsis], sections, see_also)


def pages_of_um() -> Iterator[Page]:
    """One for `um` and one for each of its commands."""
    sys.path.insert(0, str(ROOT))
    import um_cffi.commands

    root = um_cffi.commands.parser()
    (commands,) = (each for each in root._actions if isinstance(each, argparse._SubParsersAction))
    purposes = {each.dest: str(each.help) for each in commands._choices_actions}
    names = tuple(f"um-{name}(1)" for name in purposes)
    first = page_of_parser(root, summary(str(root.description)), (*names, "lbmrd(8)", "srs(8)"))
    first.synopsis = ["um [options] COMMAND ..."]
    listed = [Option(name, purpose) for name, purpose in purposes.items()]
    status = " ".join((um_cffi.commands.__doc__ or "").partition("Exit status: ")[2].split())
    first.sections[1:1] = [Section("commands", [], listed)]
    first.sections.append(Section("exit status", [status]))
    yield first
    for name, parser in commands.choices.items():
        yield page_of_parser(parser, purposes[name], ("um(1)",))


# ---- running -----------------------------------------------------------------------------------------------------


def write_pages(pages: Iterable[Page], folder: Path) -> None:
    """Into man1 and man8, and nothing else into these."""
    made: set[Path] = set()
    for page in pages:
        path = folder / f"man{page.number}" / f"{page.name}.{page.number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(roff(page))
        made.add(path)
    for path in folder.glob("man[18]/*"):
        if path not in made:
            path.unlink()


def check_um() -> None:
    wanted = {f"{page.name}.{page.number}": roff(page) for page in pages_of_um()}
    there = {path.name: path.read_text() for path in TARGET.glob("man1/*")}
    if wanted != there:
        wrong = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
        raise SystemExit(f"{TARGET}: {', '.join(wrong)} not up to date: run tools/man_pages.py")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--programs"]:
        folder, out, *names = arguments[1:]
        write_pages((page_of_program(Path(folder), name) for name in names), Path(out))
    elif arguments == ["--check"]:
        check_um()
    elif not arguments:
        write_pages(pages_of_um(), TARGET)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
