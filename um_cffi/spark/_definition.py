"""Option `definition`: what payloads are made of, for readers and writers.

A text of JSON, or the path of a file with such a text or with what pdm.Definition.to_bytes() gives::

    {"id": 7, "version": [1, 0], "fields": {"symbol": "FIX_STRING(8)", "price": "DOUBLE", "note": "STRING?"}}

Loaded on the driver; executors get it as bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from um_cffi import pdm
from um_cffi.errors import InvalidArgument

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


def column_of(field: str) -> str:
    """The column of a field."""
    from um_cffi.spark import _schema

    taken = {name for name, _ in (*_schema.COLUMNS, *_schema.ADDED, *_schema.LOSSES)}
    return f"payload_{field}" if field in taken else field


def load(text: str) -> PayloadDefinition:
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
        made = pdm.Definition.from_bytes(data) if isinstance(data, bytes) else _of_json(data)
        return PayloadDefinition(made.to_bytes())
    except InvalidArgument:
        raise
    except (pdm.PDMError, ValueError, TypeError) as error:
        raise InvalidArgument(f"option definition {text[:200]!r}: {error}; {_WRONG}") from None


def _of_json(text: str) -> pdm.Definition:
    found = json.loads(text)
    fields = found.get("fields", found if not {"id", "version"} & set(found) else None)
    if not isinstance(fields, dict) or not fields or not all(isinstance(kind, str) for kind in fields.values()):
        raise ValueError("it has no fields")
    if found.get("encoding", "pdm") != "pdm" and fields is not found:
        raise ValueError(f"encoding {found['encoding']!r}: only pdm; self-describing messages are read as payload")
    of = found if fields is not found else {}
    version = of.get("version", [1, 0])
    if not isinstance(version, list) or len(version) != 2 or not isinstance(of.get("id", 0), int):
        raise ValueError("id must be a number, version two numbers")
    return pdm.Definition.from_schema(fields, of.get("id", 0), (version[0], version[1]))


def spark_type(field: pdm.Field) -> Any:
    """The type of Spark's column for a field. Numbers without a sign are of the next larger type."""
    from pyspark.sql import types as spark

    scalar = field.type.scalar
    kinds: dict[Any, Any] = {
        pdm.Type.BOOLEAN: spark.BooleanType(),
        pdm.Type.INT8: spark.ByteType(),
        pdm.Type.UINT8: spark.ShortType(),
        pdm.Type.INT16: spark.ShortType(),
        pdm.Type.UINT16: spark.IntegerType(),
        pdm.Type.INT32: spark.IntegerType(),
        pdm.Type.UINT32: spark.LongType(),
        pdm.Type.INT64: spark.LongType(),
        pdm.Type.UINT64: spark.DecimalType(20, 0),
        pdm.Type.FLOAT: spark.FloatType(),
        pdm.Type.DOUBLE: spark.DoubleType(),
        pdm.Type.TIMESTAMP: spark.TimestampType(),
        pdm.Type.BLOB: spark.BinaryType(),
        pdm.Type.MESSAGE: spark.BinaryType(),
    }
    kind = kinds.get(scalar, spark.StringType())
    if scalar is pdm.Type.DECIMAL:
        kind = spark.StructType().add("mantissa", spark.LongType()).add("exponent", spark.ByteType())
    return spark.ArrayType(kind) if field.type.is_array else kind
