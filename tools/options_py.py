#!/usr/bin/env python3
"""Write the option table of the Python binding from csrc/config/options.def: um_cffi/binding/options.py with what is
looked up, and option_types.py beside it with what type checkers read.

Usage: options_py.py [--check]    --check changes nothing and fails when a file is not up to date.
"""

from __future__ import annotations

import sys
from typing import Any

from options_doc import ACTED, ROOT, SCOPES, read_table

FOLDER = ROOT / "um_cffi" / "binding"
PYTHON_SCOPES = SCOPES[:5]  # the objects that the binding has
CLASSES = {
    "context": "ContextOptions",
    "source": "SourceOptions",
    "receiver": "ReceiverOptions",
    "wildcard_receiver": "WildcardReceiverOptions",
    "event_queue": "EventQueueOptions",
}
# Rows that text cannot set, or that no program should.
HIDDEN_KINDS = ("CALLBACK",)
NUMBERS = ("NUMBER", "RATE", "PORT")

HEAD = '''"""The options of libum for Python, made by tools/options_py.py from csrc/config/options.def; do not edit."""

# ruff: noqa: E501 - one option on a line

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One option of one scope."""

    kind: str
    """How its text is read: NUMBER, SWITCH, ENUM, STRING, ADDRESS, INTERFACE, PORT, ..."""
    default: str
    """The text that sets the default; empty is unset."""
    minimum: int | None
    maximum: int | None
    """Bounds of numbers; None is the range of the C type."""
    values: tuple[str, ...]
    """The names an ENUM takes, or single values and ranges (`0`, `20000..`) beside the bounds."""
    units: str
    live: bool
    """Whether it may be set on an existing object."""
    acts: str
    """yes, not yet or no effect."""


'''
TYPES_HEAD = '''"""Options of libum for type checkers, made by tools/options_py.py from options.def; do not edit.

Nothing imports this while a program runs: that takes a tenth of the time in which the package is read.
"""

# ruff: noqa: E501 - one option on a line

from __future__ import annotations

from typing import Literal, TypedDict, Union

Number = Union[int, str]
Switch = Union[bool, int, str]

'''


def bound(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def names(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(item.split("=")[0].strip() for item in row["values"].split(";") if item.strip())


def python_type(row: dict[str, Any]) -> str:
    if row["kind"] == "SWITCH":
        return "Switch"
    if row["kind"] == "ENUM":
        if not names(row) or any(".." in name for name in names(row)):
            return "Number"
        return f"Literal[{', '.join(quoted(name) for name in names(row))}]"
    if row["kind"] in NUMBERS:
        return "Number"
    return "str"


def resolved(rows: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Name and describing row of every option that text can set; an alias has the row of what it stands for."""
    by_name = {row["name"]: row for row in rows}
    out = []
    for row in rows:
        target = by_name[row["alias"]] if "alias" in row else row
        if target["kind"] in HIDDEN_KINDS or "UM_OPT_HIDDEN" in row["flags"]:
            continue
        out.append((row["name"], {**target, "status": row["status"]}))
    return sorted(out)


def entry(name: str, row: dict[str, Any]) -> str:
    fields = (
        row["kind"],
        row["default"],
        bound(row["min"]),
        bound(row["max"]) if row["kind"] in NUMBERS else None,
        names(row) if row["kind"] in ("ENUM", *NUMBERS) else (),
        row["units"],
        row["when"] == "LIVE",
        ACTED[row["status"]],
    )
    return f"        {quoted(name)}: Option({', '.join(quoted(field) for field in fields)}),"


def quoted(value: object) -> str:
    """repr() with double quotes."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        inner = ", ".join(quoted(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def documents() -> dict[str, str]:
    """The text of each file."""
    rows = {scope: resolved(found) for scope, found in read_table()[0].items() if scope in PYTHON_SCOPES}
    types = []
    for scope in PYTHON_SCOPES:
        types.append(f"\nclass {CLASSES[scope]}(TypedDict, total=False):")
        types.append(f'    """Options of the scope {scope}; see docs/options.md for what each does."""\n')
        types += [f"    {name}: {python_type(row)}" for name, row in rows[scope]]
        types.append("")
    types.append("\nclass PatternOptions(ReceiverOptions, total=False):")
    types.append('    """Options of a wildcard receiver and of the receivers it makes."""\n')
    both = {name for name, _ in rows["receiver"]}
    types += [f"    {name}: {python_type(row)}" for name, row in rows["wildcard_receiver"] if name not in both]
    table = ["OPTIONS: dict[str, dict[str, Option]] = {"]
    for scope in PYTHON_SCOPES:
        table.append(f'    "{scope}": {{')
        table += [entry(name, row) for name, row in rows[scope]]
        table.append("    },")
    table.append("}")
    return {"options.py": HEAD + "\n".join(table) + "\n", "option_types.py": TYPES_HEAD + "\n".join(types) + "\n"}


def main() -> None:
    for name, text in documents().items():
        target = FOLDER / name
        if "--check" not in sys.argv[1:]:
            target.write_text(text)
        elif not target.exists() or target.read_text() != text:
            sys.exit(f"{target} is not up to date: run tools/options_py.py")


if __name__ == "__main__":
    main()
