#!/usr/bin/env python3
"""Write docs/options.md, the reference of all options, from csrc/config/options.def.

Usage: options_doc.py [--check]    --check changes nothing and fails when the file is not up to date.
"""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

Row = dict[str, Any]  # of an option
Option = tuple[str, str]  # scope and name

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "csrc" / "config" / "options.def"
TARGET = ROOT / "docs" / "options.md"
SCOPES = ["context", "source", "receiver", "wildcard_receiver", "event_queue", "hfx", "xsp"]
ACTED = {"ACTS": "yes", "NOT_YET": "not yet", "NO_EFFECT": "no effect"}
TYPES = {
    "SWITCH": "0 or 1",
    "ADDRESS": "address",
    "INTERFACE": "interface",
    "PORT": "port",
    "STRING": "text",
    "SESSION_ID": "session id",
    "MASK": "event mask",
    "HASH": "hash name",
    "CALLBACK": "function",
}

INTRODUCTION = """# Options

All options of libum, made by `tools/options_doc.py` from `csrc/config/options.def`; do not edit. Set them in a text
file (`scope option value`), in an XML file, or on an attribute object with `lbm_*_attr_setopt` and
`lbm_*_attr_str_setopt`.

*When*: `before` the object is created, or `live`, also on the object. *Acts*: `yes`; `not yet`, the value is kept and
one warning tells that its feature is not part of this version; `no effect`, accepted for existing programs; `creation
fails` when set to anything but the default. Defaults and values are the text form; the type is that of the binary
form, and *net* marks binary values in network byte order. Deprecated options are in *italics*; those that start with
`um_` are ours.
"""


def split_arguments(text: str) -> list[str]:
    """The arguments of one macro call; adjacent string literals are joined."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[^",]+|,', text)
    fields, current, is_text = [], "", False
    for token in tokens:
        if token == ",":
            fields.append(current if is_text else current.strip())
            current, is_text = "", False
        elif token.startswith('"'):
            current, is_text = (current if is_text else "") + token[1:-1], True
        elif not is_text:
            current += token
    fields.append(current if is_text else current.strip())
    return fields


def read_table() -> tuple[dict[str, list[Row]], dict[Option, str], dict[Option, list[str]], dict[Option, str]]:
    """Rows by scope, successors, write-through pairs and original ports."""
    text = re.sub(r"/\*.*?\*/", "", SOURCE.read_text(), flags=re.S)
    rows: dict[str, list[Row]] = {scope: [] for scope in SCOPES}
    successors: dict[Option, str] = {}
    writes: dict[Option, list[str]] = {}
    ports: dict[Option, str] = {}
    for macro, arguments in re.findall(r"^UM_(\w+)\(((?:[^()\"]|\"[^\"]*\")*)\)", text, flags=re.M):
        fields = split_arguments(arguments)
        if macro == "SUCCESSOR":
            successors[fields[0].lower(), fields[1]] = fields[2]
        elif macro == "WRITES":
            writes.setdefault((fields[0].lower(), fields[1]), []).append(fields[2])
        elif macro == "ORIGINAL_PORT":
            ports[fields[0].lower(), fields[1]] = fields[2]
        elif macro.endswith("_ALIAS"):
            name, target, status, flags = fields
            rows[macro[:-6].lower()].append({"name": name, "alias": target, "status": status, "flags": flags})
        else:
            keys = [
                "name",
                "type",
                "kind",
                "units",
                "default",
                "min",
                "max",
                "values",
                "when",
                "order",
                "status",
                "flags",
            ]
            rows[macro.lower()].append(dict(zip(keys, fields)))
    return rows, successors, writes, ports


def bounds(row: Row) -> str:
    if row["kind"] == "STRING":
        return "" if row["max"] == "-" else f"at most {row['max']} characters"
    if row["kind"].startswith("LIST"):
        return "" if row["max"] == "-" else f"at most {row['max']} entries"
    low, high = row["min"], row["max"]
    return "" if (low, high) == ("-", "-") else f"{'' if low == '-' else low}..{'' if high == '-' else high}"


def values(row: Row) -> str:
    parts = [bounds(row)]
    if row["kind"] == "SWITCH":
        parts.append("0, 1")
    elif row["values"]:
        names = [item.split("=")[0] for item in row["values"].split(";")]
        parts.append(", ".join(names))
    return "; ".join(part for part in parts if part)


def type_text(row: Row) -> str:
    if row["kind"].startswith("LIST"):
        return f"list of `{row['type']}`"
    hint = TYPES.get(row["kind"])
    text = "string" if row["kind"] == "STRING" else f"`{row['type']}`"
    return text + (f" ({hint})" if hint and row["kind"] not in ("SWITCH", "STRING") else "")


def line(
    scope: str,
    row: Row,
    successors: dict[Option, str],
    writes: dict[Option, list[str]],
    ports: dict[Option, str],
) -> str:
    name = f"`{row['name']}`"
    if "UM_OPT_DEPRECATED" in row["flags"]:
        name = f"*{name}*"
    notes = []
    if (scope, row["name"]) in successors:
        notes.append("use " + successors[scope, row["name"]])
    for other in writes.get((scope, row["name"]), []):
        notes.append(f"also sets `{other}`")
    if (scope, row["name"]) in ports:
        notes.append(f"{ports[scope, row['name']]} with LBM_USE_ORIG_DEFAULT_PORTS")
    if "UM_OPT_SESSION" in row["flags"]:
        notes.append("of the transport session")
    if "alias" in row:
        notes.insert(0, f"another name of `{row['alias']}`")
        cells = [name, "", "", "", "", "", ACTED[row["status"]], "; ".join(notes)]
    else:
        if row["order"] == "NETWORK" and row["kind"] != "SWITCH":
            notes.append("net")
        default = f"`{row['default']}`" if row["default"] else "unset"
        when = "live" if row["when"] == "LIVE" else "before"
        cells = [name, type_text(row), default, values(row), row["units"], when, ACTED[row["status"]], "; ".join(notes)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def document() -> str:
    rows, successors, writes, ports = read_table()
    out = [INTRODUCTION]
    for scope in SCOPES:
        shown = [row for row in rows[scope] if "UM_OPT_HIDDEN" not in row["flags"]]
        out.append(f"## {scope}\n")
        out.append(f"{len(shown)} options.\n")
        out.append("| Option | Type | Default | Values | Units | When | Acts | Notes |")
        out.append("|---|---|---|---|---|---|---|---|")
        out += [line(scope, row, successors, writes, ports) for row in shown]
        out.append("")
    return "\n".join(out)


def main() -> None:
    text = document()
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text() != text:
            sys.exit(f"{TARGET} is not up to date: run tools/options_doc.py")
        return
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
