"""The page of log messages has every identifier that the sources log, and no other; the documented ones are in use."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from log_ids import log_ids  # noqa: E402

# Identifiers that programs of users look for, by what they mean.
DOCUMENTED = {
    "a context has been created": ["Core-10403-150"],
    "an unknown option of a file is ignored": ["Core-5626-1"],
    "one of several interfaces was picked": ["Core-5688-1833"],
    "a socket buffer is smaller than asked for": ["Core-5688-3274", "Core-5688-3290", "Core-5688-3309"],
    "a socket buffer cannot be set": ["Core-5688-3273", "Core-5688-3289", "Core-5688-3308"],
    "no free port, none that can be had": ["Core-5688-3300", "Core-5688-3302", "Core-5688-3267"],
    "loss was forced by a limit": ["Core-7506-2"],
    "an unknown source is asked for its last number": ["Core-7427-1"],
    "an allocation failed": ["Core-10055-131"],
    "a connection of TCP failed": ["Core-5688-3245", "Core-5688-3247"],
    "datagrams could not be sent": ["Core-5688-3330"],
    "a packet of the resolver is not good": ["Core-5688-3377", "Core-5688-3378", "Core-5688-3384", "Core-5688-3387"],
    "an option of an advertisement is unknown": ["Core-5688-3397"],
    "silent loss is possible": ["Core-5688-587", "Core-5688-1795"],
    "a second source has another option": [f"Core-5688-{number}" for number in (1279, 1281, 1284, 1299)],
    "recovery is on, late join off": ["Core-5688-3203"],
    "recovery has begun, and again": ["Core-5480-1", "Core-5480-2"],
    "the beginning of a recovery was moved": ["Core-10483-1"],
    "a very large flight size": ["Core-11087-1"],
    "the own domain was learnt": ["Core-6259-7", "Core-10403-34"],
    "a domain does not match": ["Core-6259-8", "Core-10403-32"],
    "resolution servers come and go": ["Core-10403-04", "Core-10403-08", "Core-10654-02"],
    "two contexts of one name": ["Core-10960-200"],
    "numbers of hot failover of another width": ["Core-5402-1"],
    "lbmrd": ["Lbmrd-10492-1", "Lbmrd-5688-4674", "Lbmrd-5688-4675", "Lbmrd-5688-4676"],
    "srs cannot have its port": ["SRS-10386-1321"],
}


def rows() -> list[list[str]]:
    text = (ROOT / "docs" / "log-messages.md").read_text()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return [row for row in cells if row[0] != "id"]


def test_the_page_has_every_identifier_once_and_no_other() -> None:
    told = [name for row in rows() for name in re.split(r",\s*", row[0])]
    assert sorted(told) == sorted(set(told))
    assert set(told) == set(log_ids())


def test_every_row_has_a_cause_and_room_for_a_remedy() -> None:
    for row in rows():
        assert len(row) == 3 and len(row[1]) > 10, row


@pytest.mark.parametrize("meaning", sorted(DOCUMENTED))
def test_documented_identifiers_are_in_use(meaning: str) -> None:
    assert set(DOCUMENTED[meaning]) <= set(log_ids())


def test_each_identifier_has_a_place_where_lines_are_counted() -> None:
    header = (ROOT / "csrc" / "base" / "um_log_limits.h").read_text()
    places = re.search(r"#define UM_LOG_IDS (\d+)", header)
    assert places is not None and len(log_ids()) < int(places.group(1))
