"""The columns of rows that are read, as Spark and as Arrow name their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import types as spark

from um_cffi.errors import InvalidArgument
from um_cffi.spark import _definition
from um_cffi.spark._needs import need_arrow

if TYPE_CHECKING:
    from um_cffi.spark._options import ReadOptions

PAYLOAD, PROPERTIES = "payload", "properties"
COLUMNS: tuple[tuple[str, Any], ...] = (
    ("topic", spark.StringType()),
    ("source", spark.StringType()),
    ("session", spark.StringType()),
    ("sequence", spark.LongType()),
    ("timestamp", spark.TimestampType()),
    ("timestamp_ns", spark.LongType()),
    ("flags", spark.IntegerType()),
    (PAYLOAD, spark.BinaryType()),
)
LOSSES: tuple[tuple[str, Any], ...] = (("kind", spark.StringType()), ("count", spark.LongType()))
ADDED: tuple[tuple[str, Any], ...] = ((PROPERTIES, spark.MapType(spark.StringType(), spark.StringType())),)


def spark_schema(options: ReadOptions) -> spark.StructType:
    """All columns that the options make. InvalidArgument."""
    found = [spark.StructField(name, kind) for name, kind in COLUMNS]
    if options.definition is not None:
        fields = _definition.load(options.definition).fields()
        found[-1:] = [spark.StructField(name, kind) for name, kind in fields]
    if options.properties:
        found += [spark.StructField(name, kind) for name, kind in ADDED]
    if options.losses:
        found += [spark.StructField(name, kind) for name, kind in LOSSES]
    return spark.StructType(found)


def check_schema(wanted: spark.StructType, options: ReadOptions) -> tuple[str, ...]:
    """The names of columns that are to be read, in their order: all, or those of .schema(). InvalidArgument."""
    known = {field.name: field.dataType for field in spark_schema(options)}
    for field in wanted:
        if field.name not in known:
            raise InvalidArgument(f"schema: no column {field.name!r}; there are {', '.join(known)}")
        if field.dataType != known[field.name]:
            there, here = known[field.name].simpleString(), field.dataType.simpleString()
            raise InvalidArgument(f"schema: column {field.name} is {there}, not {here}: read it so, and cast()")
    return tuple(field.name for field in wanted)


def arrow_type(kind: Any) -> Any:
    """The type of Arrow data that Spark takes for a type of its own."""
    pa = need_arrow()
    plain: dict[type, Any] = {
        spark.StringType: pa.string(),
        spark.BinaryType: pa.binary(),
        spark.BooleanType: pa.bool_(),
        spark.ByteType: pa.int8(),
        spark.ShortType: pa.int16(),
        spark.IntegerType: pa.int32(),
        spark.LongType: pa.int64(),
        spark.FloatType: pa.float32(),
        spark.DoubleType: pa.float64(),
        spark.TimestampType: pa.timestamp("us", "UTC"),
    }
    if type(kind) in plain:
        return plain[type(kind)]
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark.MapType):
        value = pa.field("value", arrow_type(kind.valueType), kind.valueContainsNull)
        return pa.map_(pa.field("key", arrow_type(kind.keyType), False), value)
    if isinstance(kind, spark.ArrayType):
        return pa.list_(pa.field("element", arrow_type(kind.elementType), kind.containsNull))
    if isinstance(kind, spark.StructType):
        return pa.struct([pa.field(each.name, arrow_type(each.dataType), each.nullable) for each in kind])
    raise InvalidArgument(f"no column of Arrow data is a {kind.simpleString()}")


def arrow_schema(wanted: spark.StructType) -> Any:
    """The schema that every record batch has."""
    return need_arrow().schema(
        [need_arrow().field(each.name, arrow_type(each.dataType), each.nullable) for each in wanted]
    )
