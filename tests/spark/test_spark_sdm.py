"""Fields of self-describing messages as columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from made_recordings import Made

from um_cffi import InvalidArgument
from um_cffi.sdm import SDMMessage, SDMType
from um_cffi.spark import _definition

WHEN = datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=timezone.utc)
# A value of each type as it is written, and as Spark has it.
VALUES: dict[str, tuple[Any, Any]] = {
    "BOOLEAN": (True, True),
    "INT8": (-128, -128),
    "UINT8": (255, 255),
    "INT16": (-32768, -32768),
    "UINT16": (65535, 65535),
    "INT32": (-(2**31), -(2**31)),
    "UINT32": (2**32 - 1, 2**32 - 1),
    "INT64": (-(2**63), -(2**63)),
    "UINT64": (2**64 - 1, Decimal(2**64 - 1)),
    "FLOAT": (0.5, 0.5),
    "DOUBLE": (0.1, 0.1),
    "DECIMAL": (Decimal("-12.345"), (-12345, -3)),
    "TIMESTAMP": (WHEN, WHEN),
    "STRING": ("gr\u00fcn", "gr\u00fcn"),
    "UNICODE": ("\u20ac", "\u20ac"),
    "BLOB": (b"\0\xff", b"\0\xff"),
}


def of(**fields: str) -> str:
    return json.dumps({"encoding": "sdm", "fields": fields})


def read(spark: Any, folder: Path, definition: str, **options: object) -> Any:
    made = spark.read.format("ultramessaging").option("recording", str(folder)).options(**options)
    return made.option("definition", definition).load()


def recorded(folder: Path, make: Callable[[int], bytes], rows: int = 10, **more: Any) -> Path:
    def payloads(numbers: Any) -> Any:
        return pa.array([make(int(number)) for number in numbers], pa.binary())

    Made(folder).add("ticks", rows, payloads=payloads, **more)
    return folder


def message(**values: tuple[Any, SDMType]) -> bytes:
    made = SDMMessage()
    for name, (value, kind) in values.items():
        made.add(name, value, kind)
    return made.to_bytes()


def test_each_type_becomes_its_column_and_so_do_arrays(spark: Any, tmp_path: Path) -> None:
    inner = message(x=(1, SDMType.INT8))
    every = {f"f_{name}": (value, SDMType[name]) for name, (value, _) in VALUES.items()}
    arrays = {f"a_{name}": ([value, value], SDMType[name]) for name, (value, _) in VALUES.items()}
    nested = {"inner": (SDMMessage.parse(inner), SDMType.MESSAGE)}
    payload = message(**every, **arrays, **nested)
    fields = {**{name: kind.name for name, (_, kind) in {**every, **nested}.items()}}
    fields |= {name: f"{kind.name}[]" for name, (_, kind) in arrays.items()}
    (row,) = read(spark, recorded(tmp_path / "r", lambda _: payload, 1), of(**fields)).collect()
    for name, (_, expected) in VALUES.items():
        found = row[f"f_{name}"]
        if name == "TIMESTAMP":
            assert found.timestamp() == WHEN.timestamp()
            assert [each.timestamp() for each in row[f"a_{name}"]] == [WHEN.timestamp()] * 2
        else:
            assert (tuple(found) if name == "DECIMAL" else found) == expected, name
            got = [tuple(each) if name == "DECIMAL" else each for each in row[f"a_{name}"]]
            assert got == [expected] * 2, name
    assert bytes(row["inner"]) == inner
    assert row["sequence"] == 0 and "payload" not in row.asDict()


def test_what_a_message_does_not_have_is_null_and_numbers_are_converted(spark: Any, tmp_path: Path) -> None:
    def make(number: int) -> bytes:
        fields: dict[str, tuple[Any, SDMType]] = {"Price": (number, SDMType.INT32)}
        if number % 3 == 0:
            fields["size"] = (number, SDMType.INT64)
        if number % 3 == 1:
            fields["size"] = (None, SDMType.INT64)
        return message(**fields)

    folder = recorded(tmp_path / "r", make, 30, lost=[4, 5])
    frame = read(spark, folder, of(price="DOUBLE", size="INT64", topic="STRING"), includeLosses=True)
    rows = sorted(frame.collect(), key=lambda row: row["sequence"])
    assert [row["price"] for row in rows] == [None if at in (4, 5) else float(at) for at in range(30)]
    assert [row["size"] for row in rows] == [at if at % 3 == 0 else None for at in range(30)]
    assert {(row["topic"], row["payload_topic"]) for row in rows} == {("ticks", None)}
    assert frame.select("price").where("sequence = 7").collect()[0]["price"] == 7.0


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (b"nothing of ours", "it is no self-describing message"),
        (b"", "it is no self-describing message"),
        (message(price=("dear", SDMType.STRING)), "field price: "),
        (message(price=([1, 2], SDMType.INT32)), "field price: it is an array"),
    ],
)
def test_a_payload_of_another_kind_is_named(spark: Any, tmp_path: Path, payload: bytes, told: str) -> None:
    good = message(price=(1, SDMType.INT32))
    folder = recorded(tmp_path / "r", lambda number: payload if number == 7 else good, lost=[3])
    with pytest.raises(Exception, match=f"topic ticks, .* sequence 7: the payload is not of option definition: {told}"):
        read(spark, folder, of(price="DOUBLE")).collect()


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        (of(price="MONEY"), "field price: MONEY: must be one of BOOLEAN, INT8"),
        (of(price="DOUBLE", PRICE="INT8"), "the same name but for the case"),
        (of(**{"x" * 256: "INT8"}), "1 to 255 bytes"),
        ('{"encoding": "sdm", "fields": {}}', "it has no fields"),
        ('{"encoding": "json", "fields": {"a": "INT8"}}', "must be pdm or sdm"),
    ],
)
def test_what_is_no_definition_is_told(definition: str, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        _definition.load(definition)


def test_self_describing_messages_are_read_and_not_written() -> None:
    with pytest.raises(InvalidArgument, match="can be read, not written"):
        _definition.load_to_write(of(price="DOUBLE"))
