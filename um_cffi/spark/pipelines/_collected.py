"""Rows on the driver with their times in UTC. Spark gives them in the zone of the Python process, whatever its session
says, and all times of recordings are those of UTC.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SINCE = datetime(1970, 1, 1)


def collected(table: DataFrame) -> list[Any]:
    """The rows of a table that is small, as collect() gives them, with timestamps as UTC without a zone."""
    from pyspark.sql import Row
    from pyspark.sql import functions as F

    times = [field.dataType.typeName() == "timestamp" for field in table.schema]
    columns = [F.col(f"`{name}`") for name in table.columns]
    plain = table.select(
        *[
            F.unix_micros(column).alias(name) if is_time else column
            for name, column, is_time in zip(table.columns, columns, times)
        ]
    )
    make = Row(*table.columns)
    return [
        make(
            *[
                _SINCE + timedelta(microseconds=value) if is_time and value is not None else value
                for value, is_time in zip(row, times)
            ]
        )
        for row in plain.collect()
    ]
