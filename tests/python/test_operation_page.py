"""docs/operation.md names every service and every check of `um doctor --fleet`, and commands that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operation.md").read_text()
UNITS = {path.name.removesuffix(".service.in"): path for path in (ROOT / "packaging" / "systemd").glob("*.service.in")}


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading."""
    table = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_every_service_has_a_row_with_its_options_and_user() -> None:
    rows = {re.sub(r"[`\[]|\].*", "", unit): cells for unit, *cells in rows_of("unit")}
    assert set(rows) == set(UNITS)
    for name, (options, user, *_) in rows.items():
        text = UNITS[name].read_text()
        file, variable = re.findall(r"`(.*?)`", options)
        assert f"EnvironmentFile=-{file}\n" in text and f"${variable}\n" in text
        assert ("DynamicUser=yes" in text) if user == "dynamic" else f"User={user.strip('`')}\n" in text


def test_every_check_of_a_fleet_has_a_row() -> None:
    source = (ROOT / "um_cffi" / "commands" / "_fleet_checks.py").read_text()
    told = set(re.findall(r'"([\w -]+)",\s+"(?:FAIL|warn)"', source))
    assert len(told) > 15
    explained = {name for names, *_ in rows_of("check") for name in names.split(", ")}
    assert told - {"malformed records", "missed records"} <= explained
    assert explained <= told, "explained, and there is no such check"


def test_its_commands_and_their_options_exist() -> None:
    pages = {
        path.stem: path.read_text().replace("\\-", "-") for path in (ROOT / "packaging" / "man" / "man1").iterdir()
    }
    used = re.findall(r"\bum ([a-z][a-z-]*)", PAGE)
    assert {"doctor", "exporter", "web", "top"} <= set(used)
    assert {word for word in used if f"um-{word}" not in pages} == set()
    for option in set(re.findall(r"`?(--(?:fleet|seconds|topic|udp))\b", PAGE)):
        assert option in pages["um-doctor"]


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([\w./-]+)\)", PAGE):
        assert (ROOT / "docs" / link).is_file(), link
