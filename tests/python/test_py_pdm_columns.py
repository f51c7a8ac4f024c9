"""Columns of pre-defined messages: what the decoder finds in each message, the columns have; and back again."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
import pytest
from pairs import collect, pair, payloads

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


# ---- and back: messages of columns ----


@pytest.mark.parametrize("seed", range(60))
def test_messages_of_columns_are_those_of_the_encoder(seed: int) -> None:
    numbers = random.Random(1000 + seed)
    given = definition(numbers)
    rows = [row(numbers, given) for _ in range(numbers.choice([0, 1, 9, 120]))]
    expected = [given.message(**values).to_bytes() for values in rows]
    lists = {field.name: [values.get(str(field.name)) for values in rows] for field in given}
    made = given.encode_many(lists)
    assert [bytes(message) for message in made] == expected and len(made) == len(rows)
    columns = given.decode_columns(made)
    for again in (given.encode_many(columns), given.encode_many(dict(columns))):
        assert [bytes(message) for message in again] == expected
    for begin, end in ((0, len(rows) // 2), (len(rows) // 3, len(rows))):
        part = {name: column[begin:end] for name, column in lists.items()}
        assert [bytes(message) for message in given.encode_many(part)] == expected[begin:end]


def test_numpy_arrays_are_columns() -> None:
    schema = {"i": "INT32", "f": "DOUBLE?", "b": "BOOLEAN", "t": "TIMESTAMP"}
    given = Definition.from_schema({**schema, "s": "FIX_STRING(4)", "l": "INT16[2]", "d": "DECIMAL"}, id=5)
    decimals = np.array([(-1, 5), (2, 6), (0, 7)], [("exp", "i1"), ("mant", "<i8")])
    made = given.encode_many(
        {
            "i": np.array([1, 2, 3], ">u2"),
            "f": np.ma.masked_array([1.5, 2.5, 3.5], [False, True, False]),
            "b": np.array([True, False, True]),
            "t": np.array([0, 1, -1], "M8[s]"),
            "s": np.array([b"a", b"bcde", b""]),
            "l": np.arange(6, dtype="<i8").reshape(3, 2)[:, ::-1],
            "d": decimals,
        }
    )
    first = given.parse(made[1])
    assert first.to_dict() == {"i": 2, "b": False, "t": Timestamp(1, 0), "s": "bcde", "l": [3, 2], "d": Decimal(6, 2)}
    columns = given.decode_columns(made)
    assert columns["f"].to_list() == [1.5, None, 3.5] and columns["t"].to_list()[2] == Timestamp(-1, 0)


FITS_NOT: list[tuple[str, Any, str]] = [
    ("INT8", np.array([1, 128]), "row 1: 128 does not fit"),
    ("UINT8", np.array([1, -1]), "row 1: -1 does not fit"),
    ("UINT64", np.array([-1]), "-1 does not fit"),
    ("INT64", np.array([1 << 63], np.uint64), "does not fit"),
    ("DOUBLE", np.array([(1 << 53) + 1]), "would be rounded"),
    ("FLOAT", np.array([(1 << 24) + 1]), "would be rounded"),
    ("FLOAT", np.array([1e39]), "too large"),
    ("INT32", np.array([1.0]), "cast it"),
    ("BOOLEAN", np.array([1]), "cast it"),
    ("INT32", np.array([True]), "cast it"),
    ("TIMESTAMP", np.array([1], "M8[ns]"), "nanoseconds"),
    ("TIMESTAMP", np.array([1 << 31], "M8[s]"), "32 bits"),
    ("TIMESTAMP", np.array([1]), "cast it"),
    ("FIX_STRING(2)", ["ab", "abc"], "row 1: a text of 3 bytes"),
    ("STRING", np.array([b"\xff"]), "not UTF-8"),
    ("MESSAGE", [b"no message"], "no pre-defined message"),
    ("INT32[]", [[1], []], "row 1: a list of 0"),
    ("INT32[2]", [[1, 2], [1]], "row 1: a list of 1"),
    ("BLOB", np.array(["text"]), "cast it"),
    ("DECIMAL", np.array([(128, 1)], [("exp", "<i2"), ("mant", "<i8")]), "exponent"),
    ("DECIMAL", np.array([(1, 1)], [("exp", "<i2"), ("other", "<i8")]), "mantissa"),
    ("DECIMAL", np.array([1]), "cast it"),
]


@pytest.mark.parametrize(("kind", "values", "text"), FITS_NOT)
def test_values_that_do_not_fit_are_refused(kind: str, values: Any, text: str) -> None:
    given = Definition.from_schema({"x": kind}, id=5)
    with pytest.raises(ValueError, match=text):
        given.encode_many({"x": values})


def test_structured_arrays_are_not_rounded_either() -> None:
    given = Definition.from_schema({"f": "FLOAT", "d": "DOUBLE"}, id=5)
    wide = np.zeros(2, [("f", "<i8"), ("d", "<u8")])
    wide["f"], wide["d"] = [1 << 24, -3 << 40], [(1 << 53), 1 << 63]
    assert given.decode_many(given.encode_many(wide))["d"].tolist() == [float(1 << 53), float(1 << 63)]
    for name, value in (("f", (1 << 24) + 1), ("d", (1 << 53) + 1), ("d", (1 << 64) - 1)):
        wrong = wide.copy()
        wrong[name][1] = value
        with pytest.raises(ValueError, match="rounded"):
            given.encode_many(wrong)
    large = np.zeros(1, [("f", "<f8"), ("d", "<f8")])
    large["f"] = 1e39
    with pytest.raises(ValueError, match="too large"):
        given.encode_many(large)


def test_columns_that_are_missing_or_too_many() -> None:
    given = Definition.from_schema({"x": "INT32", "o": "STRING?"}, id=5)
    for columns, errnum in (
        ({"o": ["a"]}, PDMError.REQ_FIELD_NOT_SET),
        ({"x": [1, None]}, PDMError.REQ_FIELD_NOT_SET),
        ({"x": [1], "y": [1]}, PDMError.FIELD_NOT_FOUND),
    ):
        with pytest.raises(PDMError) as caught:
            given.encode_many(columns)
        assert caught.value.errnum == errnum
    with pytest.raises(ValueError, match="2 rows, others have 1"):
        given.encode_many({"x": [1], "o": ["a", "b"]})
    assert given.parse(given.encode_many({"x": [1]})[0]).to_dict() == {"x": 1}


# ---- Arrow data of others ----


def test_arrow_data_is_encoded() -> None:
    pa = pytest.importorskip("pyarrow")
    given = Definition.from_schema(
        {"i": "INT32?", "s": "STRING?", "l": "INT16[]?", "m": "DECIMAL?", "t": "TIMESTAMP?", "b": "BOOLEAN?"}, id=5
    )
    time = pa.array([None, 5, -1, 7], pa.timestamp("us"))
    pairs = pa.array([{"mantissa": 5, "exponent": -1}, None, {"mantissa": -6, "exponent": 2}, None])
    columns: dict[str, Any] = {
        "i": pa.array([1, None, 3, 4], pa.int64()), "s": pa.array(["a", None, "ä" * 20, ""], pa.string_view()),
        "l": pa.array([[1], None, [2, 3], [4]], pa.list_(pa.int32())), "m": pairs, "t": time,
        "b": pa.array([True, None, False, True]),
    }  # fmt: skip
    batch = pa.record_batch(columns)
    expected = [
        {"i": 1, "s": "a", "l": [1], "m": Decimal(5, -1), "b": True},
        {"t": Timestamp(0, 5)},
        {"i": 3, "s": "ä" * 20, "l": [2, 3], "m": Decimal(-6, 2), "t": Timestamp(-1, 999999), "b": False},
        {"i": 4, "s": "", "l": [4], "t": Timestamp(0, 7), "b": True},
    ]
    for begin, length in ((0, 4), (1, 3), (3, 1), (2, 0)):
        part = batch.slice(begin, length)
        wanted = expected[begin : begin + length]
        for source in (part, pa.table(part), pa.RecordBatchReader.from_batches(part.schema, [part])):
            assert [given.parse(message).to_dict() for message in given.encode_many(source)] == wanted
    both = pa.Table.from_batches([batch, batch.slice(2)])
    assert [given.parse(message).to_dict() for message in given.encode_many(both)] == expected + expected[2:]
    nothing = pa.record_batch({name: pa.nulls(3) for name in columns})
    assert [given.parse(message).to_dict() for message in given.encode_many(nothing)] == [{}] * 3


def test_arrow_data_that_does_not_fit_is_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    given = Definition.from_schema({"x": "DECIMAL?", "l": "INT8[]?", "w": "DECIMAL?"}, id=5)
    parts = [pa.array([1, None]), pa.array([0, 0], pa.int8())]
    pairs = pa.StructArray.from_arrays(parts, ["mantissa", "exponent"])
    with pytest.raises(ValueError, match="row 1: mantissa or exponent"):
        given.encode_many({"x": pairs})
    hidden = pa.StructArray.from_arrays(parts, ["mantissa", "exponent"], mask=pa.array([False, True]))
    assert given.decode_columns(given.encode_many({"x": hidden}))["x"].to_list() == [Decimal(1, 0), None]
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pa.array([1, 500]), mask=pa.array([False, True]))
    assert given.decode_columns(given.encode_many({"l": lists}))["l"].to_list() == [[1], None]  # 500 is not used
    with pytest.raises(ValueError, match="element of a list is null"):
        given.encode_many({"l": pa.array([[1, None]])})
    wide = pa.array(["1.25", None, "-3.50"], pa.string()).cast(pa.decimal128(20, 2))
    assert given.decode_columns(given.encode_many({"w": wide}))["w"].to_list() == [
        Decimal(125, -2),
        None,
        Decimal(-350, -2),
    ]
    with pytest.raises(ValueError, match="dictionary"):
        Definition.from_schema({"s": "STRING"}, id=5).encode_many({"s": pa.array(["a"]).dictionary_encode()})


class Forged:
    """Arrow data of one column that breaks the rules: its array is changed before it is given away."""

    def __init__(self, column: Any, change: Any) -> None:
        self._column, self._change = column, change
        self._kept: Any = None
        self._array: Any = None
        self._children = 0

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        from um_cffi.binding import arrow
        from um_cffi.binding._fast import arrow_pointer
        from um_cffi.binding._native import ffi

        schema, self._kept = arrow.capsules(self._column)
        self._array = ffi.cast("um_arrow_array_t *", arrow_pointer(self._kept, "arrow_array"))
        self._children = self._array.n_children
        self._change(self._array, ffi)
        return schema, self._kept

    def mend(self) -> None:
        """Before it is released, which frees its children."""
        self._array.n_children = self._children


def text_column() -> Any:
    return (
        Definition.from_schema({"x": "STRING"}, id=5)
        .decode_columns([Definition.from_schema({"x": "STRING"}, id=5).message(x="abc").to_bytes()] * 4)["x"]
        ._column()
    )


def list_column() -> Any:
    given = Definition.from_schema({"x": "INT32[]"}, id=5)
    return given.decode_columns([given.message(x=[1, 2]).to_bytes()] * 4)["x"]._column()


def set_(name: str, value: int) -> Any:
    return lambda array, ffi: setattr(array, name, value)


def buffer(at: int, values: list[int] | None = None) -> Any:
    kept: list[Any] = []

    def change(array: Any, ffi: Any) -> None:
        made = ffi.NULL if values is None else ffi.new("int64_t[]", values)
        kept.append(made)
        array.buffers[at] = ffi.cast("void *", made)

    return change


FORGED: list[tuple[str, Any, Any]] = [
    ("STRING", text_column, buffer(1)),
    ("STRING", text_column, buffer(2)),
    ("STRING", text_column, buffer(1, [0, 3, 2, 9, 12])),
    ("STRING", text_column, buffer(1, [-1, 3, 6, 9, 12])),
    ("STRING", text_column, set_("n_buffers", 2)),
    ("STRING", text_column, set_("length", -1)),
    ("STRING", text_column, set_("offset", -1)),
    ("STRING", text_column, set_("null_count", 1)),
    ("INT32[]", list_column, buffer(1, [0, 2, 4, 6, 9])),
    ("INT32[]", list_column, buffer(1, [0, 4, 2, 6, 8])),
    ("INT32[]", list_column, buffer(1)),
    ("INT32[]", list_column, set_("n_children", 0)),
    ("INT32[]", list_column, lambda array, ffi: setattr(array.children[0], "length", 7)),
    ("INT32[]", list_column, lambda array, ffi: buffer(1)(array.children[0], ffi)),
]


@pytest.mark.parametrize(("kind", "column", "change"), FORGED)
def test_arrow_data_that_is_not_valid_is_refused(kind: str, column: Any, change: Any) -> None:
    given = Definition.from_schema({"x": kind}, id=5)
    assert len(given.encode_many({"x": Forged(column(), lambda array, ffi: None)})) == 4
    forged = Forged(column(), change)
    with pytest.raises(ValueError, match="not valid"):
        given.encode_many({"x": forged})
    forged.mend()


def test_a_column_shorter_than_its_batch_is_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    from um_cffi.binding._fast import arrow_pointer
    from um_cffi.binding._native import ffi

    class Longer:
        def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
            schema, array = pa.record_batch({"x": pa.array([1, 2, 3])}).__arrow_c_array__()
            ffi.cast("um_arrow_array_t *", arrow_pointer(array, "arrow_array")).length = 4
            return schema, array

    with pytest.raises(ValueError, match="shorter"):
        Definition.from_schema({"x": "INT64"}, id=5).encode_many(Longer())


def test_other_libraries_give_and_take_columns() -> None:
    given = Definition.from_schema({"x": "INT32", "s": "STRING?", "l": "DOUBLE[]?"}, id=6)
    values = {"x": [1, 2, 3], "s": ["a", None, "a text of more than twelve bytes"], "l": [[0.5], None, [1.5, 2]]}
    made = given.encode_many(values)
    columns = given.decode_columns(made)
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(columns)
    assert {name: frame[name].to_list() for name in frame.columns} == values
    assert [bytes(message) for message in given.encode_many(frame)] == [bytes(message) for message in made]


# ---- sent and received ----


def test_a_record_batch_is_sent_and_received_as_columns() -> None:
    given = Definition.from_schema({"x": "INT32", "s": "STRING?"}, id=6)
    columns = {"x": list(range(1000)), "s": [None if at % 3 else f"text {at}" for at in range(1000)]}
    batch = given.decode_columns(given.encode_many(columns))
    rows = np.zeros(2, np.dtype([("x", "<i4")]))
    required = Definition.from_schema({"x": "INT32"}, id=7)
    with pair() as (source, receiver):
        assert source.send_many(batch, flush=True, definition=given) == 1000
        assert source.send_many(rows, flush=True, definition=required) == 2
        messages = [data for part in collect(receiver, 1002) for data in payloads(part)]
        back = given.decode_columns(messages[:1000])
        assert {name: back[name].to_list() for name in back} == columns
        assert required.decode_many(messages[1000:])["x"].tolist() == [0, 0]
        with pytest.raises(PDMError, match="row 1"):
            source.send_many({"x": [1, None]}, definition=given)
        with pytest.raises(ValueError, match="dtype and definition"):
            source.send_many(batch, definition=given, dtype="i4")
