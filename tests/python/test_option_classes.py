"""F24: an option that is accepted acts, or is on the roadmap and warned about, or is documented to have no effect.

What happens when an option is set is tested in tests/c/config/config_test.c; here the table is compared with the
pages, and with the code that would have to read an option that acts.
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatchcase

import pytest
from pairs import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import mutate_options
from options_doc import ACTED, SCOPES, read_table

ROWS = read_table()[0]
WRITE_THROUGH = {option.name for option in mutate_options.acting_options() if option.writes}  # act through others
PATTERN = re.compile(r"`([a-z0-9_*]+)`")


def roadmap() -> list[tuple[str, str, str]]:
    """Feature, scope and pattern of every option on the roadmap."""
    text = (ROOT / "docs" / "roadmap.md").read_text()
    section = text.partition("## Options and variables")[2].partition("\n## ")[0]
    found = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 5 or not PATTERN.search(line):
            continue
        for scope, cell in zip(("context", "source", "receiver"), cells[1:4]):
            found += [(cells[0], scope, pattern) for pattern in PATTERN.findall(cell)]
        for part in cells[4].split(";"):
            found += [(cells[0], part.split()[0], pattern) for pattern in PATTERN.findall(part)]
    return found


def options(status: str) -> list[tuple[str, str]]:
    return [(scope, row["name"]) for scope in SCOPES for row in ROWS[scope] if row["status"] == status]


def test_f24_every_option_has_one_of_three_classes() -> None:
    assert {row["status"] for scope in SCOPES for row in ROWS[scope]} == set(ACTED)


def test_f24_every_option_of_a_missing_feature_is_on_the_roadmap_once() -> None:
    entries = roadmap()
    for scope, name in options("NOT_YET"):
        features = {feature for feature, where, pattern in entries if where == scope and fnmatchcase(name, pattern)}
        assert len(features) == 1, (scope, name, features)


def test_f24_the_roadmap_names_no_option_that_acts_or_does_not_exist() -> None:
    for feature, scope, pattern in roadmap():
        matched = {row["name"]: row["status"] for row in ROWS[scope] if fnmatchcase(row["name"], pattern)}
        assert "NOT_YET" in matched.values(), (feature, scope, pattern)
        assert not [name for name, status in matched.items() if status == "ACTS"], (feature, pattern)


@pytest.mark.parametrize("scope", SCOPES)
def test_f24_what_has_no_effect_is_documented_so(scope: str) -> None:
    page = (ROOT / "docs" / "options.md").read_text().partition(f"## {scope}\n")[2].partition("\n## ")[0]
    for row in ROWS[scope]:
        if row["status"] == "NO_EFFECT" and "UM_OPT_HIDDEN" not in row["flags"]:
            (line,) = re.findall(rf"^\| \*?`{row['name']}`\*? .*$", page, re.MULTILINE)
            assert "| no effect |" in line, line


def test_f24_what_acts_is_read_outside_of_the_configuration() -> None:
    texts = [path.read_text() for path in (ROOT / "csrc").rglob("*.[ch]") if path.parent.name != "config"]
    code = " ".join(texts)
    words = set(re.findall(r"\w+", code))
    pasting = set(re.findall(r"->(\w+(?:##\w+)+)", code))  # a macro puts the name together with what it is given
    given = {word for call in re.findall(r"\bUM_[A-Z_]+\(([^()]*)\)", code) for word in re.findall(r"\w+", call)}

    def pasted(name: str) -> bool:
        return any(part in given for each in pasting for part in mutate_options.given_parts(name, each))

    acting = {option.name for option in mutate_options.acting_options()}
    unread = {name for name in acting - words - WRITE_THROUGH if not pasted(name)}
    assert not unread
