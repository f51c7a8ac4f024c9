"""Option `definition`: what payloads are made of, for readers and writers.

A text of JSON, or the path of a file with such a text or with what pdm.Definition.to_bytes() gives::

    {"id": 7, "version": [1, 0], "fields": {"symbol": "FIX_STRING(8)", "price": "DOUBLE", "note": "STRING?"}}
    {"encoding": "sdm", "fields": {"symbol": "STRING", "price": "DOUBLE", "sizes": "INT32[]"}}

The second one, of self-describing messages, is for readers: those fields that are to be columns.

Loaded on the driver; executors get it as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from pyspark.sql import types as spark

from um_cffi import pdm
from um_cffi.errors import InvalidArgument
from um_cffi.sdm import SDMType
from um_cffi.spark._payloads import PdmPayloads, SdmPayloads

_WRONG = (
    'must be JSON as {"id": 7, "version": [1, 0], "fields": {"price": "DOUBLE"}}, or the path of a file with such a '
    "text or with Definition.to_bytes()"
)


@dataclass(frozen=True)
class PayloadDefinition:
    """A definition that can be sent to executors."""

    data: bytes
    """What pdm.Definition.to_bytes() gave."""

    def pdm(self) -> pdm.Definition:
        """The definition, made of the bytes."""
        return pdm.Definition.from_bytes(self.data)

    def fields(self) -> list[tuple[str, Any]]:
        """Columns and their types of Spark, in the order of the definition. A field that is named like a column of
        ours is `payload_NAME`."""
        return [(column_of(str(field.name)), spark_type(field)) for field in self.pdm()]

    def payloads(self) -> PdmPayloads:
        """What decodes payloads of it."""
        made = self.pdm()
        return PdmPayloads(made, {column_of(str(field.name)): field.name for field in made})


@dataclass(frozen=True)
class SelfDescribing:
    """Fields of self-describing messages that are to be columns. Can be sent to executors."""

    chosen: tuple[tuple[str, SDMType, bool], ...]
    """Name, type, and whether it is an array."""

    def fields(self) -> list[tuple[str, Any]]:
        """As of PayloadDefinition."""
        return [(column_of(name), _array_of(_KINDS[kind.name](), is_array)) for name, kind, is_array in self.chosen]

    def payloads(self) -> SdmPayloads:
        """What decodes payloads of it."""
        return SdmPayloads({column_of(each[0]): each for each in self.chosen})


Definition = Union[PayloadDefinition, SelfDescribing]


def column_of(field: str) -> str:
    """The column of a field."""
    from um_cffi.spark import _schema

    taken = {name for name, _ in (*_schema.COLUMNS, *_schema.ADDED, *_schema.LOSSES)}
    return f"payload_{field}" if field in taken else field


def load(text: str) -> Definition:
    """The definition that an option's text stands for. InvalidArgument."""
    data: bytes | str = text
    if not text.lstrip().startswith("{"):
        try:
            data = Path(text).read_bytes()
        except (OSError, ValueError) as error:
            raise InvalidArgument(f"option definition {text!r}: {error}; {_WRONG}") from None
        if data.lstrip()[:1] == b"{":
            data = data.decode("utf-8", "replace")
    try:
        if isinstance(data, bytes):
            return PayloadDefinition(pdm.Definition.from_bytes(data).to_bytes())
        return _of_json(data)
    except InvalidArgument:
        raise
    except (pdm.PDMError, ValueError, TypeError) as error:
        raise InvalidArgument(f"option definition {text[:200]!r}: {error}; {_WRONG}") from None


def load_to_write(text: str) -> PayloadDefinition:
    """The definition for messages that are to be made. InvalidArgument."""
    found = load(text)
    if not isinstance(found, PayloadDefinition):
        raise InvalidArgument(
            f"option definition {text[:200]!r}: self-describing messages can be read, not written: make them of "
            "um_cffi.sdm in a function of your own, as column payload"
        )
    return found


def _of_json(text: str) -> Definition:
    found = json.loads(text)
    fields = found.get("fields", found if not {"id", "version"} & set(found) else None)
    if not isinstance(fields, dict) or not fields or not all(isinstance(kind, str) for kind in fields.values()):
        raise ValueError("it has no fields")
    of = found if fields is not found else {}
    encoding = of.get("encoding", "pdm")
    if encoding == "sdm":
        return _self_describing(fields)
    if encoding != "pdm":
        raise ValueError(f"encoding {encoding!r}: must be pdm or sdm")
    version = of.get("version", [1, 0])
    if not isinstance(version, list) or len(version) != 2 or not isinstance(of.get("id", 0), int):
        raise ValueError("id must be a number, version two numbers")
    made = pdm.Definition.from_schema(fields, of.get("id", 0), (version[0], version[1]))
    return PayloadDefinition(made.to_bytes())


def _self_describing(fields: dict[str, str]) -> SelfDescribing:
    chosen = []
    for name, written in fields.items():
        kind = written.strip().removesuffix("[]").upper()
        if kind not in SDMType.__members__:
            raise ValueError(f"field {name}: {written}: must be one of {', '.join(SDMType.__members__)}, or NAME[]")
        if not 1 <= len(name.encode("utf-8", "surrogateescape")) <= 255 or "\0" in name:
            raise ValueError(f"field {name!r}: names have 1 to 255 bytes, and no NUL")
        chosen.append((name, SDMType[kind], written.strip().endswith("[]")))
    if len({name.lower() for name in fields}) < len(fields):
        raise ValueError("two fields have the same name but for the case of letters, which does not count")
    return SelfDescribing(tuple(chosen))


def spark_type(field: pdm.Field) -> Any:
    """The type of Spark's column for a field. Numbers without a sign are of the next larger type."""
    return _array_of(_KINDS.get(field.type.scalar.name, spark.StringType)(), field.type.is_array)


def _array_of(kind: Any, is_array: bool) -> Any:
    return spark.ArrayType(kind) if is_array else kind


def _decimal() -> Any:
    return spark.StructType().add("mantissa", spark.LongType()).add("exponent", spark.ByteType())


_KINDS: dict[str, Callable[[], Any]] = {
    "BOOLEAN": spark.BooleanType,
    "INT8": spark.ByteType,
    "UINT8": spark.ShortType,
    "INT16": spark.ShortType,
    "UINT16": spark.IntegerType,
    "INT32": spark.IntegerType,
    "UINT32": spark.LongType,
    "INT64": spark.LongType,
    "UINT64": lambda: spark.DecimalType(20, 0),
    "FLOAT": spark.FloatType,
    "DOUBLE": spark.DoubleType,
    "DECIMAL": _decimal,
    "TIMESTAMP": spark.TimestampType,
    "BLOB": spark.BinaryType,
    "MESSAGE": spark.BinaryType,
    "STRING": spark.StringType,
    "UNICODE": spark.StringType,
}
"""By the names that types have in both encodings."""
