"""Pre-defined messages of every type, written without a network, are understood by the stock dissector of tshark."""

from __future__ import annotations

from collections import Counter

import pytest
from capture import Packets
from written import written

TYPES, ARRAYS = 38, range(19, 38)
STRING_ARR = 33
VALUES = {
    "int32": {"16843009": 24},
    "uint16": {"257": 24},
    "float": {"3.5": 18, "-1.25": 6},
    "double": {"3.5": 18, "-1.25": 6},
    "fixed_string": {"abc": 18, "defgh": 6},
}


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> Packets:
    complaints = ("_ws.malformed", "_ws.expert", "_ws.expert.message", "lbmpdm.segment.data")
    names = ("lbmpdm.field.string_name", "lbmpdm.field.int_name", *(f"lbmpdm.field.value_{kind}" for kind in VALUES))
    fields = ("lbmpdm.field", "lbmpdm.field.type", "lbmpdm.segment_def.field", *names)
    return written("pdm_messages", tmp_path_factory.mktemp("pdm"), "lbmpdm_tcp", *complaints, *fields)


def test_o4_every_message_is_dissected_down_to_its_fields(packets: Packets) -> None:
    assert len(packets) == 2 * 2 * (TYPES + len(ARRAYS))
    assert len(packets.having("lbmpdm.field")) == len(packets)
    assert not packets.having("_ws.malformed")
    assert not packets.having("lbmpdm.segment.data"), "left as bytes"


def test_o4_nothing_is_complained_about_but_arrays_of_strings_without_a_fixed_count(packets: Packets) -> None:
    """The stock dissector takes those for one string, in which it finds the end of the first element."""
    rows = packets.having("_ws.expert")
    assert len(rows) == 4
    assert set(rows.numbers("lbmpdm.field.type")) == {STRING_ARR}
    assert set(rows.values("_ws.expert.message")) == {"Trailing stray characters"}


def test_o4_every_type_is_there_with_and_without_its_definition(packets: Packets) -> None:
    """A required and an optional field, of which the message without definition leaves the optional one out."""
    types = Counter(packets.numbers("lbmpdm.field.type"))
    assert types == {code: 12 if code in ARRAYS else 6 for code in range(TYPES)}
    assert len(packets.having("lbmpdm.segment_def.field")) == 2 * (TYPES + len(ARRAYS))
    assert set(Counter(packets.values("lbmpdm.field.string_name"))) == {"field10", "field11"}
    assert set(Counter(packets.values("lbmpdm.field.int_name"))) == {"10", "11"}


@pytest.mark.parametrize(("kind", "expected"), VALUES.items())
def test_o4_values_are_those_that_were_set(packets: Packets, kind: str, expected: dict[str, int]) -> None:
    assert Counter(packets.values(f"lbmpdm.field.value_{kind}")) == expected
