"""Pre-defined messages in Python: what the specification says of definitions, messages, the cache, and many at once."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import gc
import random
import struct
from typing import Any, Optional

import numpy as np
import pytest

from um_cffi import InvalidArgument, pdm
from um_cffi.pdm import Decimal, Definition, Message, PDMError, Timestamp, Type

NINE = {
    100: "BOOLEAN",
    101: "INT32",
    102: "FLOAT",
    103: "INT8?",
    104: "FIX_STRING(12)",
    105: "STRING",
    106: "BOOLEAN[3]",
    107: "INT32[]?",
    108: "FIX_STRING(5)[2]",
}
VALUES: dict[Any, Any] = {
    100: True,
    101: 7,
    102: 3.5,
    104: "Hello World!",
    105: "variable length value",
    106: [True, False, True],
    107: [1, 2, 3, 4, 5],
    108: ["aaaaa", "bbbbb"],
}


def fails(errnum: int) -> Any:
    return pytest.raises(PDMError, check=lambda error: error.errnum == errnum)


def test_three_fields_are_the_bytes_of_the_specification() -> None:
    definition = Definition(num_fields=3, int_names=True)
    definition.id, definition.version = 1001, (1, 0)
    first = definition.add_field(100, Type.BOOLEAN)
    definition.add_field(101, Type.INT32, required=True)
    definition.add_field(102, Type.FLOAT)
    message = Message(definition)
    message[first], message[101], message[definition.field(102)] = True, 7, 3.14
    hexadecimal = "feca1ca710010100e9030000290000000000000000000000ff000000090000000107000000c3f54840"
    assert message.to_bytes().hex() == hexadecimal
    assert message.get_boolean(100) is True and message.get_int32(101) == 7
    with fails(PDMError.DEFN_INVALID):
        definition.add_field(103, Type.INT8)


def test_nine_fields_are_iterated_with_their_values() -> None:
    definition = Definition.from_schema(NINE, id=1002)
    message = Message(definition)
    message.update(VALUES)
    assert len(message.to_bytes()) == 135
    received = definition.parse(memoryview(bytearray(message.to_bytes())))
    assert {found.name: found.value for found in received} == {**dict.fromkeys(NINE), **VALUES}
    assert [found.is_set for found in received] == [name != 103 for name in NINE]
    assert received.to_dict() == VALUES
    assert received.get_int32_array(107) == [1, 2, 3, 4, 5]


def test_fields_that_are_not_set() -> None:
    message = Definition.from_schema({"a": "INT32", "b": "INT8?"}).message()
    with fails(PDMError.REQ_FIELD_NOT_SET):
        message.to_bytes()
    with fails(PDMError.FIELD_IS_NULL):
        message["b"]
    assert message.get("b", default=5) == 5 and not message.is_set("b")
    message.a, message.b = 1, 2
    assert message.is_set("b") and message.a == 1
    del message["b"]
    assert not message.is_set("b")
    with fails(PDMError.FIELD_NOT_FOUND):
        message["c"]
    with pytest.raises(AttributeError):
        message.c = 1
    with fails(PDMError.EINVAL):
        message.get_int8("a")
    with pytest.raises(ValueError, match="INT32"):
        message["a"] = 1 << 31


def test_every_type_goes_there_and_back() -> None:
    inner = Definition.from_schema({"x": "INT32"}, id=9).message(x=5)
    inner.include_definition = True
    samples: dict[str, Any] = {
        "BOOLEAN": True, "INT8": -128, "UINT8": 255, "INT16": -32768, "UINT16": 65535, "INT32": -(1 << 31),
        "UINT32": (1 << 32) - 1, "INT64": -(1 << 63), "UINT64": (1 << 64) - 1, "FLOAT": 0.5, "DOUBLE": 0.1,
        "DECIMAL": Decimal(31415, -2), "TIMESTAMP": Timestamp(1700000000, 123456), "FIX_STRING(6)": "ab",
        "STRING": "", "FIX_UNICODE(6)": "äöü€😀", "UNICODE": "grün", "BLOB": b"\0\1\0", "MESSAGE": inner,
    }  # fmt: skip
    assert {name.partition("(")[0] for name in samples} == {type.name for type in Type if not type.is_array}
    for form in ("{}", "{}?", "{}[]", "{}[2]?"):
        schema = {f"f{i}": form.format(kind) for i, kind in enumerate(samples)}
        values = [[value, value] if "[" in form else value for value in samples.values()]
        message = Definition.from_schema(schema, id=8).message(**dict(zip(schema, values)))
        message.include_definition = True
        received = Message()
        received.parse(message.to_bytes())
        assert received.definition == message.definition
        assert received.to_dict() == message.to_dict()
        for name, value in zip(list(schema)[:-1], values):
            assert received[name] == value, name
        nested = received["f18"][1] if "[" in form else received["f18"]
        assert nested.x == 5


def test_random_definitions_and_values_go_there_and_back() -> None:
    numbers = random.Random(5)
    kinds = ["INT16", "UINT64", "DOUBLE", "FIX_STRING(4)", "STRING", "BLOB", "DECIMAL"]
    for _ in range(200):
        schema = {
            f"f{i}": numbers.choice(kinds) + numbers.choice(["", "[]", "[3]"]) + numbers.choice(["", "?"])
            for i in range(numbers.randint(1, 12))
        }
        definition = Definition.from_schema(schema, id=numbers.getrandbits(31), version=(numbers.getrandbits(8), 0))
        values = {}
        for field in definition:
            if field.required or numbers.random() < 0.6:
                count = field.num_arr_elem or numbers.randint(1, 5)
                made = [
                    {
                        Type.INT16: numbers.randint(-32768, 32767),
                        Type.UINT64: numbers.getrandbits(64),
                        Type.DOUBLE: numbers.random(),
                        Type.FIX_STRING: "abcd"[: numbers.randint(0, 4)],
                        Type.STRING: "x" * numbers.randint(0, 30),
                        Type.BLOB: numbers.randbytes(numbers.randint(0, 30)),
                        Type.DECIMAL: Decimal(numbers.randint(-(1 << 63), (1 << 63) - 1), numbers.randint(-128, 127)),
                    }[field.type.scalar]
                    for _ in range(count)
                ]
                values[field.name] = made if field.type.is_array else made[0]
        message = definition.message(**values)  # type: ignore[arg-type]
        data = message.to_bytes()
        assert definition.parse(data).to_dict() == values
        assert Definition.from_bytes(definition.to_bytes()) == definition
        for cut in range(0, len(data), 7):
            with fails(PDMError.MSG_INVALID):
                definition.parse(data[:cut])


def test_definitions_come_along_or_from_the_cache() -> None:
    definition = Definition.from_schema({"x": "INT32"}, id=2001)
    data = definition.message(x=3).to_bytes()
    pdm.cache.clear()
    received = Message()
    with fails(PDMError.DEFN_INVALID):
        received.parse(data)
    assert received.definition is None
    pdm.cache.put(definition)
    pdm.cache.put(definition)  # again
    assert pdm.cache.get(2001, 1, 0) == definition == pdm.cache.get(2001)
    assert pdm.cache.get(2001, 1, 1) is None
    assert not received.try_load_def_from_cache
    received.try_load_def_from_cache = True
    received.parse(data)
    assert received.x == 3
    pdm.cache.remove(2001)
    received.parse(data)  # it still has it
    assert received.x == 3 and pdm.cache.get(2001) is None
    received.try_load_def_from_cache = False  # forgets the definition with the values
    assert received.definition is None
    with fails(PDMError.DEFN_INVALID):
        received.parse(data)
    zero = Definition.from_schema({"x": "INT32"})
    pdm.cache.put(zero)
    assert pdm.cache.get(0) is None


def test_a_given_definition_wins_over_an_included_one_of_its_version() -> None:
    mine, theirs = (Definition.from_schema({name: "INT32"}, id=5) for name in "ab")
    message = theirs.message(b=4)
    message.include_definition = True
    received = Message(mine)
    received.parse(message.to_bytes())
    assert received.definition is mine and received.a == 4


def test_definitions_that_come_along_are_replaced_many_times() -> None:
    """What is freed meanwhile is not used any more, and nothing of Python's is freed with it."""
    received, kept = Message(), []
    for i in range(300):
        sent = Definition.from_schema({f"x{i}": "INT32"}, id=i + 1).message(**{f"x{i}": i})
        sent.include_definition = True
        received.parse(sent.to_bytes())
        assert received[f"x{i}"] == i
        assert received.definition is not None
        kept.append(received.definition)
    del received
    gc.collect()
    assert [definition.message(**{f"x{i}": 1}).to_dict() for i, definition in enumerate(kept)] == [
        {f"x{i}": 1} for i in range(300)
    ]


def test_messages_nested_too_deep_are_refused() -> None:
    message = Definition.from_schema({"x": "INT32"}, id=1).message(x=1)
    nesting = Definition.from_schema({"m": "MESSAGE"}, id=2)
    for _ in range(16):
        message.include_definition = True
        message = nesting.message(m=message)
    with fails(PDMError.MSG_INVALID):
        message.to_dict()
    assert message.m.to_dict()


def test_decimals_and_timestamps_become_those_of_python() -> None:
    assert Decimal(31415, -2).to_decimal() == decimal.Decimal("314.15")
    assert Decimal.of("-2.50") == Decimal(-250, -2)
    at = datetime.datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=datetime.timezone.utc)
    assert Timestamp.of(at) == Timestamp(1700000000, 123456) and Timestamp(1700000000, 123456).to_datetime() == at
    with pytest.raises(ValueError, match="cannot"):
        Decimal.of("NaN")


@dataclasses.dataclass
class Trade:
    symbol: str
    price: decimal.Decimal
    at: datetime.datetime
    size: int
    levels: list[float]
    note: Optional[str] = None  # noqa: UP045 - evaluated, also by Python 3.9


def test_dataclasses_are_mapped_both_ways() -> None:
    definition = Definition.from_dataclass(Trade, id=3)
    assert [field.type.name for field in definition] == [
        "UNICODE", "DECIMAL", "TIMESTAMP", "INT64", "DOUBLE_ARR", "UNICODE",
    ]  # fmt: skip
    assert [field.required for field in definition] == [True] * 5 + [False]
    at = datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc)
    trade = Trade("IBM", decimal.Decimal("191.50"), at, 100, [1.0, 2.5])
    message = Message(definition)
    message.update(trade)
    assert definition.parse(message.to_bytes()).to_dataclass(Trade) == trade


@pytest.mark.parametrize("text", ["INT33", "INT32(", "int32", "[]", "INT32[a]"])
def test_texts_that_are_no_types_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no type"):
        Definition.from_schema({"x": text})


# ---- many at once ----

ROW = np.dtype([("id", "<i4"), ("price", "<f8"), ("side", "?"), ("symbol", "S8"), ("levels", "<i2", (3,))])


def rows(count: int) -> np.ndarray[Any, Any]:
    made = np.zeros(count, ROW)
    made["id"], made["price"] = np.arange(count), np.arange(count) * 0.25
    made["side"], made["symbol"] = np.arange(count) % 2 == 0, b"IBM"
    made["levels"] = np.arange(3 * count).reshape(count, 3)
    return made


def test_many_messages_are_columns_in_one_pass() -> None:
    definition = Definition.from_dtype(ROW, id=6)
    given = rows(1000)
    encoded = definition.encode_many(given)
    assert encoded.shape == (1000, 32 + definition.dtype.itemsize)
    single = definition.message()
    single.update(given[17])
    assert single.to_bytes() == encoded[17].tobytes()  # as one by one
    decoded = definition.decode_many([row.tobytes() for row in encoded])
    rows_decoded = definition.decode_many(encoded)
    for name in ROW.names or ():
        assert (decoded[name] == given[name]).all() and (rows_decoded[name] == given[name]).all(), name
    assert len(definition.decode_many([])) == 0


def test_many_messages_are_decoded_into_memory_that_is_used_again() -> None:
    definition = Definition.from_dtype(ROW, id=6)
    given = rows(10)
    room = np.zeros(12, definition.dtype)
    for batch in (given[:10], given[3:5], given[:0]):
        decoded = definition.decode_many(definition.encode_many(batch), out=room)
        assert len(decoded) == len(batch) and np.shares_memory(decoded, room) == (len(batch) > 0)
        assert all((decoded[name] == batch[name]).all() for name in ROW.names or ())
    readonly = np.zeros(12, definition.dtype)
    readonly.flags.writeable = False
    wrong = (np.zeros(12, np.int64), room[::2], room.reshape(3, 4), readonly, [0] * 12, np.zeros(9, definition.dtype))
    for out in wrong:
        with pytest.raises(InvalidArgument, match="out"):
            definition.decode_many(definition.encode_many(given), out=out)  # type: ignore[arg-type, unused-ignore]


def test_messages_with_other_segments_are_columns_too() -> None:
    definition = Definition.from_schema({"x": "INT32", "note": "STRING?", "y": "INT16"}, id=6)
    messages = []
    for i in range(8):
        message = definition.message(x=i, y=-i)
        message.include_definition = i % 2 == 0
        if i % 3 == 0:
            message.note = "a note"
        messages.append(message.to_bytes())
    big = struct.pack(">IBBBBiI", 0xA71CCAFE, 0x10, 0, 1, 0, 6, 30) + struct.pack(">BBHI", 255, 0, 0, 6)
    messages.append(big + struct.pack(">ih", 8, -8))
    decoded = definition.decode_many(messages)
    assert decoded["x"].tolist() == list(range(9)) and decoded["y"].tolist() == [-i for i in range(9)]


def test_the_first_message_that_is_another_is_named() -> None:
    definition = Definition.from_schema({"x": "INT32"}, id=6)
    good = definition.message(x=1).to_bytes()
    other = Definition.from_schema({"x": "INT32"}, id=7).message(x=1).to_bytes()
    for bad in (other, b"", b"text", *(good[:cut] for cut in range(len(good)))):
        with pytest.raises(PDMError, match="message 2 is"):
            definition.decode_many([good, good, bad, good])


def test_random_bytes_are_refused_or_decoded() -> None:
    definition = Definition.from_schema({"x": "INT32"}, id=6)
    numbers, good, accepted = random.Random(3), bytearray(definition.message(x=1).to_bytes()), 0
    for _ in range(5000):
        data = bytearray(good)
        data[numbers.randrange(len(data))] = numbers.getrandbits(8)
        try:
            definition.decode_many([bytes(data)])
            accepted += 1
        except PDMError as error:
            assert error.errnum == PDMError.MSG_INVALID
    assert 100 < accepted < 5000
