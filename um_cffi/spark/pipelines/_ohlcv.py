"""Ticks to bars: open, high, low, close, volume and the volume-weighted average price of each window of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from um_cffi.errors import InvalidArgument

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def moment(table: DataFrame, name: str) -> Column:
    """A column of time as Spark's timestamp: integers are nanoseconds since 1970 UTC. InvalidArgument for others."""
    from pyspark.sql import functions as F

    if name not in table.columns:
        raise InvalidArgument(f"no column {name}: there are {', '.join(table.columns)}")
    kind = table.schema[name].dataType.typeName()
    if kind in ("timestamp", "timestamp_ntz"):
        return F.col(name)
    if kind not in ("long", "integer"):
        raise InvalidArgument(f"column {name} is {kind}: must be a timestamp, or an integer of nanoseconds")
    return F.expr(f"timestamp_micros(`{name}` div 1000)")


def bars(
    ticks: DataFrame,
    window: str = "1 minute",
    watermark: str = "30 seconds",
    time: str = "timestamp",
    price: str = "price",
    size: str = "size",
    by: Sequence[str] = ("topic",),
) -> DataFrame:
    """Bars of `ticks`, one for each `window` and each value of the columns `by`; of a stream or of a table.

    `time`, `price` and `size` name the columns of a tick; a time that is an integer is nanoseconds since 1970 UTC. Of
    ticks of the same time, that with the smaller (source, session, sequence) is the earlier one. Ticks without price
    or size are left out. A stream gives a bar when the largest time seen is `watermark` behind its end, and drops ticks
    that come later; a watermark shorter than the recorder's --segment-seconds drops ticks of sources whose segment
    ends later than that of others. Columns: `begin`, `end`, those of `by`, `open`, `high`, `low`, `close`, `volume`,
    `vwap` (null where the volume is 0), `ticks`.

    Sums of floating-point numbers depend on the order in which Spark adds them, in their last digits.
    """
    from pyspark.sql import functions as F

    for name in (price, size, *by):
        if name not in ticks.columns:
            raise InvalidArgument(f"no column {name}: there are {', '.join(ticks.columns)}")
    order = F.struct(time, "source", "session", "sequence")
    chosen = ticks.where(F.col(price).isNotNull() & F.col(size).isNotNull())
    timed = chosen.withColumn("_moment", moment(ticks, time)).withWatermark("_moment", watermark)
    grouped = timed.groupBy(F.window("_moment", window).alias("_window"), *by).agg(
        F.min_by(price, order).alias("open"),
        F.max(price).alias("high"),
        F.min(price).alias("low"),
        F.max_by(price, order).alias("close"),
        F.sum(size).alias("volume"),
        F.try_divide(F.sum(F.col(price) * F.col(size)), F.sum(size)).alias("vwap"),
        F.count(F.lit(1)).alias("ticks"),
    )
    values = ("open", "high", "low", "close", "volume", "vwap", "ticks")
    return grouped.select(F.col("_window.start").alias("begin"), F.col("_window.end").alias("end"), *by, *values)
