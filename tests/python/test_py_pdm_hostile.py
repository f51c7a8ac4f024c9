"""Pre-defined messages in Python where they are used wrongly or come from somebody who means harm: nothing crashes, no
value is cut in silence, and what is refused is refused with the errors that are written."""

from __future__ import annotations

import array
import copy
import decimal
import pickle
import struct
import threading
from typing import Any

import numpy as np
import pytest

from um_cffi import pdm
from um_cffi.pdm import Decimal, Definition, Message, PDMError, Timestamp

ALL = Definition.from_schema(
    {"f": "INT32", "s": "STRING?", "b": "BLOB?", "a": "STRING[]?", "bs": "BLOB[]?", "d": "DECIMAL?", "t": "TIMESTAMP?",
     "m": "MESSAGE?", "x": "FLOAT?"}, id=3
)  # fmt: skip
ROWS = Definition.from_schema({"a": "INT32", "s": "FIX_STRING(3)", "b": "BOOLEAN", "i": "INT8"}, id=4)


def fails(errnum: int) -> Any:
    return pytest.raises(PDMError, check=lambda error: error.errnum == errnum)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("b", 5, TypeError),  # bytes(5) would be five zeros
        ("b", "text", TypeError),
        ("a", "abc", TypeError),  # one text is no list of texts
        ("bs", b"abc", TypeError),
        ("m", 5, TypeError),
        ("m", ALL, TypeError),  # has a pointer too
        ("t", 5, TypeError),
        ("t", Timestamp(1 << 40, 0), ValueError),
        ("d", decimal.Decimal(10**30 + 1), ValueError),
        ("d", decimal.Decimal("1E+200"), ValueError),
        ("d", decimal.Decimal("1E-129"), ValueError),
        ("d", Decimal(1, 300), ValueError),
        ("d", Decimal(1 << 63, 0), ValueError),
        ("d", "abc", ValueError),
        ("s", "\ud800", ValueError),
    ],
)
def test_values_that_do_not_fit_leave_the_field_as_it_is(name: str, value: Any, error: type[Exception]) -> None:
    message = ALL.message(f=1)
    with pytest.raises(error):
        message[name] = value
    assert not message.is_set(name) and ALL.parse(message.to_bytes()).to_dict() == {"f": 1}


def test_decimals_are_exact_at_their_edges() -> None:
    for number, pair in (
        (decimal.Decimal("1E+130"), Decimal(1000, 127)),
        (decimal.Decimal(10**30), Decimal(10**18, 12)),
        (decimal.Decimal("-9223372036854775808E-128"), Decimal(-(1 << 63), -128)),
        (decimal.Decimal("0E-500"), Decimal(0, -128)),
        (decimal.Decimal("1." + "0" * 45), Decimal(10**18, -18)),
    ):
        assert Decimal.of(number) == pair and pair.to_decimal() == number
    with decimal.localcontext() as context:
        context.prec = 5  # what the caller computes with does not round what came
        assert Decimal(123456789, -2).to_decimal() == decimal.Decimal("1234567.89")


def test_a_field_of_another_definition_is_not_taken_for_one_of_this() -> None:
    numbers = Definition.from_schema({"v": "INT64[]?"}, id=1)
    texts = Definition.from_schema({"v": "FIX_STRING(4)[2]?"}, id=2)
    message = texts.message()
    with fails(PDMError.FIELD_NOT_FOUND):
        message[numbers.field("v")] = [0x41414141, 0x42424242]  # would be addresses of texts
    with fails(PDMError.FIELD_NOT_FOUND):
        message.get(numbers.field("v"))
    message[Definition.from_bytes(texts.to_bytes()).field("v")] = ["a", "b"]  # a copy's is the same
    assert message["v"] == ["a", "b"]


def test_definitions_with_names_that_are_no_utf_8_come_along() -> None:
    sender = Definition.from_schema({"xa": "FIX_STRING(4)[2]?", "xb": "INT32?"}, id=7).message(xb=1)
    sender.include_definition = True
    data = sender.to_bytes().replace(b"xa\0", b"\xffa\0").replace(b"xb\0", b"\xfea\0")
    message = Definition.from_schema({"v": "INT64[]?"}, id=1).message(v=[1])
    message.parse(data)
    assert message.definition is not None and [field.name for field in message.definition] == ["\udcffa", "\udcfea"]
    assert message["\udcfea"] == 1
    with fails(PDMError.FIELD_NOT_FOUND):
        message["v"] = [0x41414141, 0x42424242]
    message.include_definition = True
    again = Message()
    again.parse(message.to_bytes())
    assert again.to_dict() == {"\udcfea": 1}


def test_messages_are_neither_copied_nor_pickled() -> None:
    message = ALL.message(f=1)
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            act(message)
    assert message.f == 1


def nested(levels: int) -> bytes:
    """Messages with 16 fields for one nested message that they share."""
    definition = Definition.from_schema({f"m{i}": "MESSAGE?" for i in range(16)}, id=3)
    leaf = definition.message()
    leaf.include_definition = True
    data, included = leaf.to_bytes(), definition.to_bytes()
    for _ in range(levels):
        table = b"".join(struct.pack("<II", i, 0) for i in range(16))
        values = struct.pack("<I", len(data)) + data
        segments = struct.pack("<BBHI", 1, 0, 0, len(included)) + included
        segments += struct.pack("<BBHI", 0, 0, 0, len(table)) + table
        segments += struct.pack("<BBHI", 0xFF, 0, 0, len(values)) + values
        data = struct.pack("<IBBBBiI", 0xA71CCAFE, 0x10, 2, 1, 0, 3, 16 + len(segments)) + segments
    return data


def test_nested_messages_that_share_their_bytes_are_not_read_16_times_at_each_level() -> None:
    with fails(PDMError.MSG_INVALID):
        Message().parse(nested(12))  # 10 kB that would be 16^12 messages


def test_a_message_with_something_unreadable_in_it_can_be_shown() -> None:
    blob = Definition.from_schema({"m": "BLOB?"}, id=3)
    message = Definition.from_schema({"m": "MESSAGE?"}, id=3).parse(blob.message(m=b"garbage").to_bytes())
    assert "not a valid message" in repr(message)


@pytest.mark.parametrize("version", [(300, 0), (-1, 0), (1,), (1, 2, 3)])
def test_versions_out_of_range_are_refused(version: Any) -> None:
    with fails(PDMError.EINVAL):
        Definition.from_schema({"a": "INT32"}, id=1, version=version)


@pytest.mark.parametrize("schema", [{"a\0b": "INT32"}, {1 << 40: "INT32"}, {"a": "INT32[99999999999]"}])
def test_names_and_counts_out_of_range_are_refused(schema: Any) -> None:
    with fails(PDMError.EINVAL):
        Definition.from_schema(schema)


def test_ids_have_32_bits_and_stay_as_they_were_finalized() -> None:
    with fails(PDMError.EINVAL):
        Definition.from_schema({"a": "INT32"}, id=1 << 40)
    for name, value in (("id", 8), ("version", (2, 0)), ("int_names", True)):
        with fails(PDMError.DEFN_INVALID):
            setattr(ROWS, name, value)


def test_dtypes_without_names_are_refused_and_titles_are_no_fields() -> None:
    with pytest.raises(ValueError, match="no structured dtype"):
        Definition.from_dtype("i4")
    assert [field.name for field in Definition.from_dtype(np.dtype([(("title", "a"), "i4")]))] == ["a"]


def test_no_messages_are_no_rows() -> None:
    assert len(ROWS.decode_many(ROWS.encode_many(np.zeros(0, ROWS.dtype)))) == len(ROWS.decode_many([])) == 0
    optional = Definition.from_schema({"a": "INT32?"}, id=5)
    assert len(optional.decode_many(optional.encode_many(np.zeros(3, [("other", "i4")])))) == 3


def test_columns_with_values_that_do_not_fit_are_refused() -> None:
    def rows(**columns: Any) -> Any:
        given = np.zeros(2, [("a", "f8"), ("s", "U20"), ("b", "?"), ("i", "i8")])
        for name, values in columns.items():
            given[name] = values
        return ROWS.encode_many(given)

    for bad in ({"a": [1, 1.5]}, {"a": [0, np.nan]}, {"s": ["abc", "abcd"]}, {"s": "éé"}, {"i": [0, 128]}, {"i": -129}):
        with pytest.raises(ValueError, match=r"a number is no|longer than 3 bytes"):
            rows(**bad)
    good = rows(a=[-(1 << 31), 2], s=["é", "abc"], b=[True, False], i=[-128, 127])
    assert ROWS.parse(good[0]).to_dict() == {"a": -(1 << 31), "s": "é", "b": True, "i": -128}
    assert ROWS.parse(good[1]).s == "abc"
    for shape in ((2, 2), ()):
        with pytest.raises(ValueError, match="one row for each message"):
            ROWS.encode_many(np.zeros(shape, ROWS.dtype))


def test_columns_are_taken_in_any_order_of_bytes() -> None:
    definition = Definition.from_schema({"k": "INT32", "p": "DOUBLE[2]", "d": "DECIMAL"}, id=9)
    big = np.zeros(2, definition.dtype.newbyteorder(">"))
    big["k"], big["p"], big["d"]["mant"], big["d"]["exp"] = [5, -6], [[1.5, 2], [3, 4]], [7, -8], [-1, 2]
    decoded = definition.decode_many(definition.encode_many(big))
    assert decoded["k"].tolist() == [5, -6] and decoded["p"].tolist() == [[1.5, 2], [3, 4]]
    assert decoded["d"].tolist() == [(-1, 7), (2, -8)]


def test_rows_of_structured_arrays_are_taken_back() -> None:
    definition = Definition.from_schema(
        {"d": "DECIMAL", "t": "TIMESTAMP", "s": "FIX_STRING(3)[2]", "ds": "DECIMAL[2]"}, id=10
    )
    values = {"d": Decimal(5, -1), "t": Timestamp(1, 2), "s": ["ab", "c"], "ds": [Decimal(1, 2), Decimal(3, 4)]}
    row = definition.decode_many([definition.message(**values).to_bytes()])[0]
    message = definition.message()
    message.update(row)
    assert message.to_dict() == values


def test_buffers_of_any_items_are_messages() -> None:
    data = ROWS.encode_many(np.zeros(1, ROWS.dtype)).tobytes()
    padded = array.array("I", data + bytes(-len(data) % 4))
    assert len(ROWS.decode_many([padded, data, memoryview(data), bytearray(data)])) == 4
    wrongs: list[Any] = [np.zeros((2, 10), np.int32), np.zeros(8, np.uint8), np.zeros((2, 2, 2), np.uint8)]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="rows of uint8"):
            ROWS.decode_many(wrong)


def test_booleans_of_columns_are_true_or_false_whatever_came() -> None:
    data = bytearray(ROWS.encode_many(np.zeros(1, ROWS.dtype)).tobytes())
    data[32 + 8] = 2
    column = ROWS.decode_many([bytes(data)])["b"]
    assert column.view(np.uint8).tolist() == [1] and column.sum() == 1
    assert ROWS.parse(data).b is True


def test_a_definition_that_is_replaced_in_the_cache_is_never_missing() -> None:
    definition = Definition.from_schema({"a": "INT32"}, id=77)
    data = definition.message(a=1).to_bytes()
    pdm.cache.put(definition)
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            pdm.cache.put(definition)

    threads = [threading.Thread(target=replace) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3000):
            message = Message()
            message.try_load_def_from_cache = True
            message.parse(data)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        pdm.cache.clear()
