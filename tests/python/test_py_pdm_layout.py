"""Pre-defined messages against a second writer, made of `struct` alone: the same bytes for any definition and values.

The second writer follows the layout of the messages (header, offset table, data; docs/wire.md) and shares nothing with
the library, so that a mistake in both directions of the library at once is seen, too.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from um_cffi.pdm import Decimal, Definition, Message, Timestamp

PACKED = {
    "BOOLEAN": "?", "INT8": "b", "UINT8": "B", "INT16": "h", "UINT16": "H", "INT32": "i", "UINT32": "I", "INT64": "q",
    "UINT64": "Q", "FLOAT": "f", "DOUBLE": "d", "DECIMAL": "bq", "TIMESTAMP": "II",
}  # fmt: skip
TEXTS = ("FIX_STRING", "FIX_UNICODE", "STRING", "UNICODE")
KINDS = (*PACKED, *TEXTS, "BLOB", "MESSAGE")
CHARACTERS = 6  # of a text of fixed length
COUNT = 3  # of an array with a fixed number of elements
FORMS = ("", "?", "[]", "[]?", f"[{COUNT}]", f"[{COUNT}]?")
SEEDS = 60
INNER = Definition.from_schema({"x": "INT32"}, id=9)


def value_of(numbers: random.Random, kind: str) -> Any:
    """One random value, the edges of its type often."""
    if kind == "BOOLEAN":
        return numbers.random() < 0.5
    if kind.lstrip("U").startswith("INT"):
        bits = int(kind.rpartition("INT")[2])
        low, high = (0, (1 << bits) - 1) if kind[0] == "U" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        return numbers.choice((low, high, numbers.randint(low, high)))
    if kind in ("FLOAT", "DOUBLE"):
        return numbers.randint(-1000, 1000) / 8
    if kind == "DECIMAL":
        return Decimal(numbers.randint(-(1 << 63), (1 << 63) - 1), numbers.randint(-128, 127))
    if kind == "TIMESTAMP":
        return Timestamp(numbers.randint(0, (1 << 31) - 1), numbers.randint(0, 999999))
    if kind in TEXTS:
        letters = "abäöü€😀" if "UNICODE" in kind else "abcdefgh"
        return "".join(numbers.choices(letters, k=numbers.randint(0, CHARACTERS)))
    if kind == "BLOB":
        return numbers.randbytes(numbers.randint(1, 20))
    message = INNER.message(x=numbers.randint(-5, 5))
    message.include_definition = True
    return message


def element(order: str, kind: str, value: Any) -> bytes:
    """An element without a length in front."""
    if kind == "DECIMAL":
        return struct.pack(order + "bq", value.exp, value.mant)
    if kind == "TIMESTAMP":
        return struct.pack(order + "II", value.secs, value.usecs)
    if kind in PACKED:
        return struct.pack(order + PACKED[kind], value)
    if kind == "FIX_STRING":
        return value.encode().ljust(CHARACTERS + 1, b"\0")  # type: ignore[no-any-return]
    if kind == "FIX_UNICODE":
        return value.encode().ljust(4 * CHARACTERS + 1, b"\0")  # type: ignore[no-any-return]
    if kind in TEXTS:
        return value.encode() + b"\0"  # type: ignore[no-any-return]
    return value if kind == "BLOB" else value.to_bytes()  # type: ignore[no-any-return]


def is_sized(kind: str) -> bool:
    return kind in PACKED or kind.startswith("FIX_")


def counted(order: str, data: bytes) -> bytes:
    return struct.pack(order + "I", len(data)) + data


def encoded(order: str, kind: str, form: str, value: Any) -> bytes:
    """A value as it stands in the data segment."""
    if not form.startswith("["):
        data = element(order, kind, value)
        return data if is_sized(kind) else counted(order, data)
    elements = [element(order, kind, each) for each in value]
    if is_sized(kind):
        return b"".join(elements) if form[1] != "]" else counted(order, b"".join(elements))
    return counted(order, b"".join(counted(order, each) for each in elements))


def written(order: str, schema: dict[str, tuple[str, str]], values: dict[str, Any]) -> bytes:
    """A message of definition 77, version 1.2, without its definition."""
    data, later, table = b"", [], b""
    for i, (name, (kind, form)) in enumerate(schema.items()):
        if is_sized(kind) and form in ("", f"[{COUNT}]"):
            data += encoded(order, kind, form, values[name])
        elif name in values:
            later.append((i, encoded(order, kind, form, values[name])))
    for i, each in later:
        table += struct.pack(order + "II", i, len(data))
        data += each
    segments = struct.pack(order + "BBHI", 0, 0, 0, len(table)) + table
    segments += struct.pack(order + "BBHI", 255, 0, 0, len(data)) + data
    return struct.pack(order + "IBBBBiI", 0xA71CCAFE, 0x10, 1, 1, 2, 77, 16 + len(segments)) + segments


def random_message(numbers: random.Random) -> tuple[dict[str, tuple[str, str]], dict[str, Any]]:
    """Every kind once, in a random order and form, and values."""
    kinds = numbers.sample(KINDS, len(KINDS))
    schema = {f"f{i}": (kind, numbers.choice(FORMS)) for i, kind in enumerate(kinds)}
    values: dict[str, Any] = {}
    for name, (kind, form) in schema.items():
        if form.endswith("?") and numbers.random() < 0.4:
            continue
        count = COUNT if f"[{COUNT}]" in form else numbers.randint(1, 4)
        values[name] = [value_of(numbers, kind) for _ in range(count)] if "[" in form else value_of(numbers, kind)
    return schema, values


def plain(value: Any) -> Any:
    """Messages are compared by their values."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.to_dict() if isinstance(value, Message) else value


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_second_writer_gives_the_bytes_of_the_library_and_is_read_by_it(seed: int) -> None:
    schema, values = random_message(random.Random(seed))
    definition = Definition.from_schema(
        {name: f"{kind}({CHARACTERS}){form}" if kind.startswith("FIX_") else kind + form
         for name, (kind, form) in schema.items()},
        id=77, version=(1, 2),
    )  # fmt: skip
    assert definition.message(**values).to_bytes() == written("<", schema, values)
    for order in "<>":
        read = definition.parse(written(order, schema, values))
        assert {field.name for field in read if field.is_set} == set(values)
        assert {name: plain(read[name]) for name in values} == {name: plain(value) for name, value in values.items()}


def test_all_kinds_and_forms_come_up() -> None:
    seen = {pair for seed in range(SEEDS) for pair in random_message(random.Random(seed))[0].values()}
    assert len(seen) == len(KINDS) * len(FORMS)
