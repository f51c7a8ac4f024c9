"""Columns of pre-defined messages: what the decoder finds in each message, the columns have; and back again."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
import pytest

from um_cffi import pdm
from um_cffi.pdm import Decimal, Definition, PDMError, Timestamp, Type

KINDS = [type.name for type in Type if not type.is_array]
INNER = Definition.from_schema({"x": "INT32", "note": "STRING?"}, id=9)
TEXTS = ["", "a", "ab c", "äöü€", "😀", "x" * 40]


def element(numbers: random.Random, scalar: Type, most: int) -> Any:
    """A value that a field of this type takes."""
    bits = {8: "INT8", 16: "INT16", 32: "INT32", 64: "INT64"}
    for size, name in bits.items():
        if scalar.name == name:
            return numbers.choice([-(1 << (size - 1)), (1 << (size - 1)) - 1, 0, -1])
        if scalar.name == "U" + name:
            return numbers.choice([0, (1 << size) - 1, 7])
    if scalar is Type.BOOLEAN:
        return numbers.random() < 0.5
    if scalar in (Type.FLOAT, Type.DOUBLE):
        return numbers.choice([0.5, -1.25e6, 0.0, float("inf"), 3.0])
    if scalar is Type.DECIMAL:
        return Decimal(numbers.randint(-(1 << 63), (1 << 63) - 1), numbers.randint(-128, 127))
    if scalar is Type.TIMESTAMP:
        return Timestamp(numbers.randint(-(1 << 31), (1 << 31) - 1), numbers.randint(0, 999999))
    if scalar is Type.BLOB:
        return numbers.randbytes(numbers.choice([0, 1, 12, 13, 50]))
    if scalar is Type.MESSAGE:
        inner = INNER.message(x=numbers.randint(0, 99), note=numbers.choice(TEXTS))
        inner.include_definition = True
        return inner
    text = numbers.choice(TEXTS)
    while scalar in (Type.FIX_STRING, Type.FIX_UNICODE) and len(text.encode()) > most:
        text = text[:-1]
    return text


def definition(numbers: random.Random) -> Definition:
    schema = {}
    for at in range(numbers.randint(1, 12)):
        kind = numbers.choice(KINDS)
        if kind.startswith("FIX"):
            kind += f"({numbers.randint(1, 12)})"
        schema[f"f{at}"] = kind + numbers.choice(["", "", "[]", "[3]"]) + numbers.choice(["", "?"])
    return Definition.from_schema(schema, id=5, version=(numbers.randint(0, 255), 1))


def row(numbers: random.Random, given: Definition) -> dict[str, Any]:
    values = {}
    for field in given:
        if field.required or numbers.random() < 0.6:
            count = (field.num_arr_elem or numbers.randint(1, 5)) if field.type.is_array else 1
            most = field.fixed_str_len * (4 if field.type.scalar is Type.FIX_UNICODE else 1)
            made = [element(numbers, field.type.scalar, most) for _ in range(count)]
            values[str(field.name)] = made if field.type.is_array else made[0]
    return values


def plain(value: Any) -> Any:
    """As columns have it: nested messages are bytes."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.to_bytes() if isinstance(value, pdm.Message) else value


@pytest.mark.parametrize("seed", range(60))
def test_columns_are_what_each_message_has(seed: int) -> None:
    numbers = random.Random(seed)
    given = definition(numbers)
    rows = [row(numbers, given) for _ in range(numbers.choice([0, 1, 7, 8, 70, 300]))]
    messages = []
    for values in rows:
        message = given.message(**values)
        message.include_definition = numbers.random() < 0.1
        messages.append(message.to_bytes() + b"!" * numbers.choice([0, 0, 0, 5]))
    columns = given.decode_columns(messages)
    assert list(columns) == [field.name for field in given] and columns.length == len(rows)
    for field in given:
        column = columns[field.name]
        expected = [plain(values.get(str(field.name))) for values in rows]
        assert column.to_list() == expected, field
        assert column.null_count == sum(value is None for value in expected) and len(column) == len(rows)
    for at in random.Random(seed).sample(range(len(rows)), min(len(rows), 5)):
        parsed = given.parse(messages[at])
        flat = [name for name in columns if given[name].type.scalar is not Type.MESSAGE]
        assert all(parsed.get(name) == columns[name].to_list()[at] for name in flat)


# ---- what strangers send ----


def swapped(given: Definition, values: dict[str, Any]) -> bytes:
    """A message of fixed numbers in the other order of bytes, without a table."""
    layout = given.dtype.newbyteorder(">")
    one = np.zeros(1, layout)
    for name, value in values.items():
        one[name] = value
    data = one.tobytes()
    head = struct.pack(">IBBBBiI", 0xA71CCAFE, 0x10, 0, *given.version, given.id, 24 + len(data))
    return head + struct.pack(">BBHI", 255, 0, 0, len(data)) + data


def test_messages_in_the_other_order_of_bytes() -> None:
    schema = {"a": "INT16", "b": "UINT64", "c": "DOUBLE", "d": "DECIMAL", "t": "TIMESTAMP"}
    given = Definition.from_schema({**schema, "e": "INT32[2]", "s": "FIX_STRING(4)"}, id=5)
    values = {"a": -2, "b": 1 << 60, "c": 0.1, "d": (-3, 77), "t": (5, 6), "e": [1, -1], "s": b"abcd"}
    other = swapped(given, values)
    own = given.message(a=-2, b=1 << 60, c=0.1, d=Decimal(77, -3), t=Timestamp(5, 6), e=[1, -1], s="abcd").to_bytes()
    columns = given.decode_columns([own, other] * 9)
    parsed = given.parse(own)
    assert all(columns[name].to_list() == [parsed[name]] * 18 for name in values)


def test_texts_that_are_no_utf_8_are_shown_as_messages_show_them() -> None:
    given = Definition.from_schema({"a": "BLOB", "b": "FIX_STRING(6)"}, id=5)
    text = Definition.from_schema({"a": "STRING", "b": "FIX_STRING(6)"}, id=5)
    numbers = random.Random(2)
    wrong = [
        b"\xff",
        b"\xe0\x80",
        b"\xe2\x82",
        b"a\xed\xa0\x80b",
        b"\xf4\x90\x80\x80",
        b"ab\0cd\0",
        b"\xc3\xa4\xf0\x9f",
    ]
    wrong += [
        bytes(numbers.choice(b"\xc3\xa4\xe2\x82\xacA\xf0\x9f\x98\x80\xed") for _ in range(n % 9)) for n in range(300)
    ]
    messages = []
    for blob in wrong:
        data = bytearray(given.message(a=blob, b="").to_bytes())
        data[40 : 40 + min(len(blob), 6)] = blob[:6]
        messages.append(bytes(data))
    columns = text.decode_columns(messages)
    parsed = [text.parse(data) for data in messages]
    assert columns["a"].to_list() == [message["a"] for message in parsed]
    assert columns["b"].to_list() == [message["b"] for message in parsed]
    assert given.decode_columns(messages)["a"].to_list() == wrong


def test_the_first_message_that_is_refused_is_named() -> None:
    given = Definition.from_schema({"x": "INT32", "s": "STRING", "o": "INT8[]?"}, id=6)
    good = given.message(x=1, s="text", o=[1, 2]).to_bytes()
    other = Definition.from_schema({"x": "INT32"}, id=7).message(x=1).to_bytes()
    lacking = Definition.from_schema({"x": "INT32"}, id=6).message(x=1).to_bytes()
    for bad in (other, b"", *(good[:cut] for cut in range(len(good)))):
        with pytest.raises(PDMError, match="message 2 is not") as caught:
            given.decode_columns([good, good, bad, good])
        assert caught.value.errnum == PDMError.MSG_INVALID
    with pytest.raises(PDMError, match="message 1 lacks") as caught:
        given.decode_columns([good, lacking])
    assert caught.value.errnum == PDMError.REQ_FIELD_NOT_SET


def test_a_head_is_remembered_of_whole_messages_only() -> None:
    given = Definition.from_schema({"x": "INT32"}, id=6)
    good = given.message(x=1).to_bytes()
    longer = bytearray(good + b"more")  # four bytes more in the data segment
    struct.pack_into("<I", longer, 12, len(longer))
    struct.pack_into("<I", longer, 28, 8)
    cut = bytes(longer[: len(good)])
    for messages in ([bytes(longer), cut], [good, cut], [bytes(longer), good, cut]):
        with pytest.raises(PDMError, match=f"message {len(messages) - 1} is not"):
            given.decode_columns(messages)
        with pytest.raises(PDMError, match=f"message {len(messages) - 1} is not"):
            given.decode_many(messages)
    assert given.decode_columns([bytes(longer), good, bytes(longer), good + b"!"])["x"].to_list() == [1] * 4


def test_random_bytes_are_refused_as_the_decoder_refuses_them() -> None:
    given = Definition.from_schema({"x": "INT32", "s": "STRING?", "l": "FIX_STRING(2)[]?"}, id=6)
    good, numbers, both = given.message(x=1, s="text", l=["a", "bc"]).to_bytes(), random.Random(3), [0, 0]
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(numbers.randint(1, 3)):
            data[numbers.randrange(len(data))] = numbers.choice([0, 1, 2, 4, 8, 255, numbers.getrandbits(8)])
        same = data[6:8] == good[6:8]
        try:
            parsed: Any = given.parse(data)
        except PDMError:
            parsed = None
        try:
            columns = given.decode_columns([bytes(data)])
        except PDMError:
            assert parsed is None or not same
            both[0] += 1
        else:
            assert all(columns[name].to_list() == [parsed.get(name)] for name in columns)
            both[1] += 1
    assert min(both) > 200


# ---- Arrow ----


def test_columns_are_a_record_batch() -> None:
    pa = pytest.importorskip("pyarrow")
    for seed in range(20):
        numbers = random.Random(seed)
        given = definition(numbers)
        rows = [row(numbers, given) for _ in range(30)]
        columns = given.decode_columns([given.message(**values).to_bytes() for values in rows])
        batch = columns.to_arrow()
        batch.validate(full=True)
        assert batch.num_rows == 30 and batch.schema.names == list(columns)
        for name in columns:
            assert batch.column(name).null_count == columns[name].null_count
            array = pa.array(columns[name])
            array.validate(full=True)
            assert array.equals(batch.column(name))
        numbers_only = [name for name in columns if given[name].type in (Type.INT32, Type.STRING, Type.BLOB_ARR)]
        for name in numbers_only:
            assert batch.column(name).to_pylist() == columns[name].to_list()


def test_a_stream_that_has_ended_has_ended() -> None:
    pytest.importorskip("pyarrow")
    from um_cffi.binding._fast import arrow_pointer
    from um_cffi.binding._native import ffi

    given = Definition.from_schema({"x": "INT32"}, id=6)
    capsule = given.decode_columns([given.message(x=1).to_bytes()]).__arrow_c_stream__()
    stream = ffi.cast("um_arrow_stream_t *", arrow_pointer(capsule, "arrow_array_stream"))
    array = ffi.new("um_arrow_array_t *")
    assert stream.get_next(stream, array) == 0 and array.release != ffi.NULL and array.length == 1
    array.release(array)
    for _ in range(3):
        assert stream.get_next(stream, array) == 0 and array.release == ffi.NULL


def test_columns_outlive_what_they_were_made_of() -> None:
    given = Definition.from_schema({"x": "INT32", "s": "STRING?", "l": "INT16[]?"}, id=6)
    values = [
        given.decode_columns([given.message(x=at, s="s" * at, l=[at]).to_bytes()])["s"].data_offsets for at in range(50)
    ]
    assert [ends.tolist() for ends in values if ends is not None] == [[0, at] for at in range(50)]


def test_nested_messages_are_columns_of_their_own() -> None:
    outer = Definition.from_schema({"one": "MESSAGE?", "many": "MESSAGE[]"}, id=6)
    inner = [INNER.message(x=at) for at in range(6)]
    messages = [
        outer.message(one=inner[0], many=inner[1:3]).to_bytes(),
        outer.message(many=inner[3:6]).to_bytes(),
    ]
    columns = outer.decode_columns(messages)
    assert INNER.decode_columns(columns["one"])["x"].to_list() == [0]
    assert INNER.decode_columns(columns["many"])["x"].to_list() == [1, 2, 3, 4, 5]
    assert INNER.decode_many(columns["many"])["x"].tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(TypeError, match="give one of messages"):
        INNER.decode_columns(INNER.decode_columns(columns["one"])["x"])
