"""Self-describing messages from Python: values of every type, conversions, errors, and bytes that a decoder written
from docs/wire.md, without the library, reads in the same way."""

from __future__ import annotations

import pickle
import random
import struct
import threading
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from pairs import HANG

from um_cffi import Context, InvalidArgument, Receiver, Source
from um_cffi.sdm import SDMError, SDMField, SDMMessage, SDMType

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
EXAMPLE_1 = bytes.fromhex(
    "554d53440100000300000043"
    "00020008000000014669656c6431303042"
    "00040008000000024669656c643130311ead"
    "00060008000000044669656c6431303200003039"
)
EXAMPLE_2 = bytes.fromhex(
    "554d53440100000600000092"
    "000c00020000000970780000000000007ab7fe"
    "000d00020000000c7473000000006553f1000001e240"
    "010f0004000000127461677300000002000000026162000000046364c3a9"
    "000701010000000071"
    "000e000300000016737562554d534401000001000000160001000100000001" + "6101" + "010600010000000c7600000002"
    "00000001fffffffe"
)
SAMPLES: dict[SDMType, list[Any]] = {
    SDMType.BOOLEAN: [True, False],
    SDMType.INT8: [-128, 127],
    SDMType.UINT8: [0, 255],
    SDMType.INT16: [-(2**15), 2**15 - 1],
    SDMType.UINT16: [0, 2**16 - 1],
    SDMType.INT32: [-(2**31), 2**31 - 1],
    SDMType.UINT32: [0, 2**32 - 1],
    SDMType.INT64: [-(2**63), 2**63 - 1],
    SDMType.UINT64: [0, 2**64 - 1],
    SDMType.FLOAT: [-1.5, float("inf")],
    SDMType.DOUBLE: [0.1, -1e300],
    SDMType.DECIMAL: [Decimal("314.15"), Decimal("-9223372036854775808e-128"), Decimal("1e127"), Decimal(0)],
    SDMType.TIMESTAMP: [EPOCH + timedelta(seconds=-1, microseconds=5), datetime(9999, 12, 31, tzinfo=timezone.utc)],
    SDMType.MESSAGE: [SDMMessage()],
    SDMType.STRING: ["text", "", "é\udcff"],
    SDMType.UNICODE: ["a\0é€😀", ""],
    SDMType.BLOB: [b"\0\xff", b""],
}


# ---- a decoder of its own ----

FORMATS = {1: "?", 2: "b", 3: "B", 4: "h", 5: "H", 6: "i", 7: "I", 8: "q", 9: "Q", 10: "f", 11: "d"}


def decode_value(kind: int, data: bytes) -> Any:
    if kind in FORMATS:
        return struct.unpack(">" + FORMATS[kind], data)[0]
    if kind == 12:
        mantissa, exponent = struct.unpack(">qb", data)
        return Decimal(mantissa).scaleb(exponent)
    if kind == 13:
        seconds, micros = struct.unpack(">qI", data)
        return EPOCH + timedelta(seconds=seconds, microseconds=micros)
    if kind == 14:
        return decode(data)
    return data if kind == 17 else data.decode("utf-8", "surrogateescape")


def decode_array(kind: int, data: bytes) -> list[Any]:
    (count,), at, values = struct.unpack(">I", data[:4]), 4, []
    for _ in range(count):
        size = struct.calcsize(">" + FORMATS[kind]) if kind in FORMATS else {12: 9, 13: 12}.get(kind, 0)
        if not size:
            (size,), at = struct.unpack(">I", data[at : at + 4]), at + 4
        values.append(decode_value(kind, data[at : at + size]))
        at += size
    assert at == len(data)
    return values


def decode(data: bytes) -> list[tuple[str, int, Any]]:
    magic, version, flags, count, length = struct.unpack(">4sBBHI", data[:12])
    assert (magic, version, flags, length) == (b"UMSD", 1, 0, len(data))
    at = 12
    fields: list[tuple[str, int, Any]] = []
    for _ in range(count):
        kind, null, name_len, value_len = struct.unpack(">HBBI", data[at : at + 8])
        at += 8 + name_len
        name, value = data[at - name_len : at].decode(), data[at : at + value_len]
        at += value_len
        if null:
            fields.append((name, kind, None))
        elif kind & 0x100:
            fields.append((name, kind, decode_array(kind & 0xFF, value)))
        else:
            fields.append((name, kind, decode_value(kind, value)))
    assert at == len(data)
    return fields


def plain(message: SDMMessage) -> list[tuple[str, int, Any]]:
    """What the decoder says of a message, from the library."""

    def value(given: Any) -> Any:
        if isinstance(given, list):
            return [value(each) for each in given]
        return plain(given) if isinstance(given, SDMMessage) else given

    return [(field.name, field.type | (0x100 if field.is_array else 0), value(field.value)) for field in message]


def random_value(rng: random.Random, kind: SDMType, levels: int) -> Any:
    if kind is SDMType.MESSAGE:
        return random_message(rng, levels - 1)
    if kind in (SDMType.STRING, SDMType.UNICODE):
        return "".join(rng.choice("aZ09 é€😀\n") for _ in range(rng.randrange(12)))
    if kind is SDMType.BLOB:
        return rng.randbytes(rng.randrange(12))
    if kind is SDMType.DOUBLE:
        return rng.gauss(0, 1e6)
    if kind is SDMType.DECIMAL:
        return Decimal(rng.randrange(-(2**63), 2**63)).scaleb(rng.randrange(-100, 100))
    if kind is SDMType.TIMESTAMP:
        return EPOCH + timedelta(microseconds=rng.randrange(-(10**15), 10**17))
    low, high = SAMPLES[kind][:2] if kind is not SDMType.FLOAT else (-100, 100)
    return bool(rng.randrange(2)) if kind is SDMType.BOOLEAN else rng.randint(low, high)


def random_message(rng: random.Random, levels: int = 2) -> SDMMessage:
    message = SDMMessage()
    for number in range(rng.randrange(15)):
        kind = SDMType(rng.randrange(1, 18 if levels > 0 else 14))
        if kind is SDMType.MESSAGE and levels == 0:
            kind = SDMType.BLOB
        if rng.randrange(2):
            values = [random_value(rng, kind, levels) for _ in range(rng.randrange(5))]
            message.add(f"field{number}", values, kind)
        else:
            message.add(f"field{number}", random_value(rng, kind, levels), kind)
        if rng.randrange(10) == 0:
            message.set_null(number)
    return message


# ---- bytes ----


def test_documented_examples_are_made_byte_for_byte() -> None:
    one, two, sub = SDMMessage(), SDMMessage(), SDMMessage()
    one.add("Field100", 0x42, SDMType.INT8)
    one.add("Field101", 0x1EAD, SDMType.INT16)
    one.add("Field102", 12345, SDMType.INT32)
    assert one.to_bytes() == bytes(one) == EXAMPLE_1
    two.add("px", Decimal("314.15"))
    two.add("ts", datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=timezone.utc))
    two.add("tags", ["ab", "cdé"], SDMType.STRING)
    two.add("q", None, SDMType.UINT32)
    sub.add("a", True)
    two.add("sub", sub)
    two.add("v", [1, -2], SDMType.INT32)
    assert two.to_bytes() == EXAMPLE_2
    assert str(two) == ('{px=31415e-2, ts=1700000000.123456, tags=["ab", "cdé"], q=null, sub={a=true}, v=[1, -2]}')
    again = SDMMessage.parse(memoryview(EXAMPLE_2 + b"tail"))
    assert again == two and pickle.loads(pickle.dumps(again)) == two
    assert [again[name] for name in ("Q", "V", 0, -2)] == [None, [1, -2], Decimal("314.15"), sub]


@pytest.mark.parametrize("seed", range(60))
def test_random_messages_are_read_alike_by_a_decoder_of_the_documented_format(seed: int) -> None:
    message = random_message(random.Random(seed))
    data = message.to_bytes()
    assert decode(data) == plain(message) == plain(SDMMessage.parse(data)) == plain(message.clone())


def test_bytes_cut_anywhere_or_changed_are_an_error_or_a_message() -> None:
    into, rng = SDMMessage(), random.Random(1)
    for cut in range(len(EXAMPLE_2)):
        with pytest.raises(SDMError) as caught:
            into.parse_into(EXAMPLE_2[:cut])
        assert caught.value.errnum == 7 and len(into) == 0
    for _ in range(2000):
        data = bytearray(EXAMPLE_2)
        data[rng.randrange(12, len(data))] = rng.randrange(256)
        try:
            into.parse_into(data)
        except SDMError:
            assert len(into) == 0
        else:
            assert SDMMessage.parse(into.to_bytes()) == into
    into.parse_into(EXAMPLE_1)
    assert into["field102"] == 12345


# ---- values ----


@pytest.mark.parametrize("kind", list(SDMType))
def test_values_of_every_type_go_in_and_out(kind: SDMType) -> None:
    for value in SAMPLES[kind]:
        message = SDMMessage()
        message.add("s", value, kind)
        message.add("a", [value, value], kind)
        message.add("empty", [], kind)
        message.add("none", None, kind)
        again = SDMMessage.parse(message.to_bytes())
        assert [again["s"], again["a"], again["empty"], again["none"]] == [value, [value, value], [], None]
        assert again.field("s") == SDMField("s", kind, False, False, value)
        assert again.field("none").is_null and again.field("a").is_array
        again.set("a", value, kind)
        again.set("s", [value], kind)
        again.set("empty", None, kind)
        assert [again["a"], again["s"], again["empty"]] == [value, [value], None]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, SDMType.BOOLEAN),
        (-1, SDMType.INT64),
        (2**63, SDMType.UINT64),
        (1.0, SDMType.DOUBLE),
        ("x", SDMType.UNICODE),
        (bytearray(b"x"), SDMType.BLOB),
        (Decimal(1), SDMType.DECIMAL),
        (EPOCH, SDMType.TIMESTAMP),
        (SDMMessage(), SDMType.MESSAGE),
    ],
)
def test_types_follow_from_values(value: Any, kind: SDMType) -> None:
    message = SDMMessage()
    message.add("s", value)
    message.add("a", (value, value))
    assert [message.field("s").type, message.field("a").type] == [kind, kind]
    assert message["s"] == value


def test_numbers_are_read_as_other_numbers() -> None:
    message = SDMMessage()
    message.add("n", [300, -1], SDMType.INT32)
    message.add("d", 1e30)
    message.add("u", "text")
    assert message.get_as("n", SDMType.UINT8) == [44, 255]
    assert message.get_as("n", SDMType.BOOLEAN) == [True, True]
    assert message.get_as("n", SDMType.DECIMAL) == [Decimal(300), Decimal(-1)]
    assert message.get_as("d", SDMType.INT16) == 32767
    assert message.get_as("d", SDMType.DECIMAL) == Decimal("1e30")
    for key, kind in (("u", SDMType.INT8), ("u", SDMType.STRING), ("d", SDMType.TIMESTAMP)):
        with pytest.raises(SDMError) as caught:
            message.get_as(key, kind)
        assert caught.value.errnum == 8


# ---- mistakes ----

WRONG: list[tuple[Any, SDMType | None]] = [
    (128, SDMType.INT8),
    (-1, SDMType.UINT64),
    (2**64, None),
    ("1", SDMType.INT32),
    (1.5, SDMType.INT32),
    (Decimal("NaN"), None),
    (Decimal(2**63), None),
    (Decimal("1e-129"), None),
    (Decimal("1e147"), None),
    (Decimal("1e999999"), None),
    (Decimal("1" * 41 + "e9999999999999"), None),
    (1e300, SDMType.FLOAT),
    ("1", SDMType.FLOAT),
    (memoryview(b"bytes")[::2], None),
    (datetime(2020, 1, 1), None),
    ("a\0b", SDMType.STRING),
    ("text", SDMType.BLOB),
    (b"bytes", SDMType.UNICODE),
    (5, SDMType.MESSAGE),
    (object(), None),
    ([], None),
    ([1, "x"], None),
    (None, None),
]


@pytest.mark.parametrize(("value", "kind"), WRONG)
def test_values_that_are_not_of_their_type_change_nothing(value: Any, kind: SDMType | None) -> None:
    message = SDMMessage.parse(EXAMPLE_1)
    with pytest.raises(InvalidArgument):
        message.add("new", value, kind)
    with pytest.raises(InvalidArgument):
        message.set(0, value, kind)
    assert message.to_bytes() == EXAMPLE_1


def test_errors_carry_the_number_of_the_library() -> None:
    message = SDMMessage.parse(EXAMPLE_1)
    cases: list[tuple[int, Any]] = [
        (4, lambda: message.add("FIELD100", 1)),
        (3, lambda: message.add("n" * 256, 1)),
        (19, lambda: message.add("", 1)),
        (6, lambda: message["none"]),
        (6, lambda: message[3]),
        (6, lambda: message[-4]),
        (14, lambda: message.add("u", "\ud800")),
        (7, lambda: SDMMessage.parse(b"")),
        (19, lambda: SDMMessage.parse(EXAMPLE_1, integer_index=True)),
        (1, lambda: SDMMessage(field_array_allocation=-1)),
    ]
    for errnum, act in cases:
        with pytest.raises(SDMError) as caught:
            act()
        assert caught.value.errnum == errnum, caught.value
    for bad in (1.5, None, True):
        with pytest.raises(InvalidArgument):
            message[bad]  # type: ignore[index]
    with pytest.raises(InvalidArgument):
        SDMMessage.parse("text")  # type: ignore[arg-type]
    for name in ("\ud800", "a\0b"):
        assert name not in message
        with pytest.raises(InvalidArgument):
            message.add(name, 1)
    assert message.to_bytes() == EXAMPLE_1


def test_fields_are_deleted_and_found() -> None:
    message = SDMMessage.parse(EXAMPLE_1)
    assert "field101" in message and "other" not in message and 5 not in message
    del message["Field100"]
    del message[-1]
    assert [field.name for field in message] == ["Field101"] and len(message) == 1
    message.clear()
    assert len(message) == 0 and str(message) == "{}"


def test_options_reach_the_library() -> None:
    message = SDMMessage(name_tree=False)
    message.add("a", 1)
    message.add("A", 2)
    with pytest.raises(SDMError):
        SDMMessage.parse(message.to_bytes())
    assert len(SDMMessage.parse(message.to_bytes(), name_tree=False)) == 2


def test_long_texts_are_shown_whole() -> None:
    message = SDMMessage()
    message.add("s", "x" * 100000, SDMType.STRING)
    assert str(message) == '{s="' + "x" * 100000 + '"}'
    assert len(repr(message)) < 100


def test_a_message_travels_from_a_source_to_a_receiver() -> None:
    got: list[str] = []
    done = threading.Event()
    with Context() as sending, Context() as receiving:

        def on_message(message: Any) -> None:
            got.append(str(SDMMessage.parse(message.data)))
            done.set()

        source = Source(sending, "sdm")
        with Receiver(receiving, "sdm", on_message) as receiver:
            source.wait_receivers(1, HANG)
            receiver.wait_ready(1, HANG)
            source.send(EXAMPLE_1, flush=True)
            assert done.wait(HANG)
    assert got == ["{Field100=66, Field101=7853, Field102=12345}"]
