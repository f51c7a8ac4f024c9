"""Pre-defined messages of every type, written without a network, are understood by the stock dissector of tshark."""

from __future__ import annotations

from collections import Counter

import pytest
from written import Written, written

TYPES, ARRAYS = 38, range(19, 38)
STRING_ARR = 33


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return written("pdm_messages", tmp_path_factory.mktemp("pdm"), "lbmpdm_tcp")


def test_o4_every_message_is_dissected_down_to_its_fields(packets: Written) -> None:
    frames = packets.rows("frame", "frame.number")
    assert len(frames) == 2 * 2 * (TYPES + len(ARRAYS))
    assert len(packets.rows("lbmpdm.field", "frame.number")) == len(frames)
    assert packets.rows("_ws.malformed", "frame.number") == []
    assert packets.rows("lbmpdm.segment.data", "frame.number") == [], "left as bytes"


def test_o4_nothing_is_complained_about_but_arrays_of_strings_without_a_fixed_count(packets: Written) -> None:
    """The stock dissector takes those for one string, in which it finds the end of the first element."""
    rows = packets.rows("_ws.expert", "_ws.expert.message", "lbmpdm.field.type")
    assert len(rows) == 4
    assert all(int(code) == STRING_ARR for _, types in rows for code in types)
    assert {text for texts, _ in rows for text in texts} == {"Trailing stray characters"}


def test_o4_every_type_is_there_with_and_without_its_definition(packets: Written) -> None:
    """A required and an optional field, of which the message without definition leaves the optional one out."""
    types = Counter(packets.values("lbmpdm.field.type"))
    assert {int(code): count for code, count in types.items()} == {c: 12 if c in ARRAYS else 6 for c in range(TYPES)}
    assert len(packets.rows("lbmpdm.segment_def.field", "frame.number")) == 2 * (TYPES + len(ARRAYS))
    assert set(Counter(packets.values("lbmpdm.field.string_name"))) == {"field10", "field11"}
    assert set(Counter(packets.values("lbmpdm.field.int_name"))) == {"10", "11"}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("int32", {"16843009": 24}),
        ("uint16", {"257": 24}),
        ("float", {"3.5": 18, "-1.25": 6}),
        ("double", {"3.5": 18, "-1.25": 6}),
        ("fixed_string", {"abc": 18, "defgh": 6}),
    ],
)
def test_o4_values_are_those_that_were_set(packets: Written, kind: str, expected: dict[str, int]) -> None:
    assert Counter(packets.values(f"lbmpdm.field.value_{kind}")) == expected
