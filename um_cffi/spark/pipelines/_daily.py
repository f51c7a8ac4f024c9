"""Recorded monitoring records by day: which days there are, what is read for one, and what its report says.

Called on the driver by `um pipeline monitoring` and by programs. Days are those of UTC, by when records came.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from um_cffi.errors import InvalidArgument
from um_cffi.monitoring.packets import TOPIC
from um_cffi.spark.pipelines._collected import collected
from um_cffi.spark.pipelines._monitoring import MALFORMED, NUMBERS, malformed, monitoring_timeline, objects, processes
from um_cffi.spark.pipelines._report import Report, Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_DAY = timedelta(days=1)
_EARLIER = timedelta(hours=1)  # what is read before a day, so that each object has a record to count from
_TITLES = {
    "receiver": "Transport sessions as receivers see them",
    "source": "Transport sessions as sources see them",
    "context": "Contexts",
    "event_queue": "Event queues",
}
_ABOUT = {
    "receiver": "Those that lost most first. lost: datagrams that were missing at first; unrecovered: of these, what "
    "repairs did not bring; repair max: the longest that a repair took, in milliseconds. A transport that does not "
    "count something has nothing there.",
    "source": "Those that repaired most first. ignored: NAKs that were not answered; buffered max: bytes that waited "
    "for receivers over TCP.",
    "context": "Those that lost most first. unrecovered: fragments that came by no way; blocked, would block: sends "
    "that waited or were refused; unresolved: topics with receivers and no source at the end of the day; callback max: "
    "microseconds.",
    "event_queue": "Those in which most waited first. taken: events; age max: microseconds.",
}
_FIRST = {
    "receiver": ("unrecovered", "lost", "messages"),
    "source": ("repairs", "naks", "datagrams"),
    "context": ("unrecovered", "fragments_lost", "blocked", "unresolved"),
    "event_queue": ("waiting_max", "taken"),
}


def begin_of(day: str) -> datetime:
    """When a day begins. InvalidArgument when the text is none."""
    try:
        found = date.fromisoformat(day)
    except ValueError as error:
        raise InvalidArgument(f"day {day}: must be YYYY-MM-DD, a day of UTC ({error})") from None
    return datetime(found.year, found.month, found.day, tzinfo=timezone.utc)


def statistics(
    spark: SparkSession, recording: str | os.PathLike[str], topics: Sequence[str] = (TOPIC,), day: str | None = None
) -> DataFrame:
    """The messages of `recording`, a folder or URL, for monitored(): all, or those of a day and the hour before it,
    from which what a day has counted is counted. InvalidArgument."""
    reader = spark.read.format("ultramessaging").option("recording", os.fspath(recording))
    reader = reader.option("subscribe", ",".join(topics))
    if day is None:
        return reader.option("startingOffsets", "earliest").load()
    begin = begin_of(day)
    messages = reader.option("startingTimestamp", int((begin - _EARLIER).timestamp() * 1000)).load()
    return messages.where(_column("timestamp") < begin + _DAY)


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(name)


def days(records: DataFrame) -> list[str]:
    """The days on which records of monitored() came, as YYYY-MM-DD."""
    return [str(row[0]) for row in records.select(_day().alias("day")).distinct().orderBy("day").collect()]


def _day() -> Column:
    """The day of a row, whatever the session's zone is."""
    from pyspark.sql import functions as F

    return F.expr("date_add(DATE'1970-01-01', cast(received_ns div 86400000000000 as int))")


def report_of(
    day: str, records: DataFrame, counted: DataFrame, recording: str, window: str = "10 minutes", rows: int = 50
) -> Report:
    """What is to be said of a day: of `records`, which are of monitored(), and `counted`, which increases() made of
    them. `rows` bounds each table, `window` is that of the charts. Runs some Spark jobs. InvalidArgument when nothing
    came on that day."""
    from pyspark.sql import functions as F

    chosen = _day() == F.lit(begin_of(day).date())
    records, counted = records.where(chosen), counted.where(chosen)
    facts = records.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(F.col("kind") == MALFORMED).alias("malformed"),
        F.count_distinct("host", "application", "process_id").alias("processes"),
    ).collect()[0]
    if not facts["rows"]:
        raise InvalidArgument(f"{recording} has no monitoring records of {day}")
    told = {
        "records": facts["rows"] - facts["malformed"],
        "processes": facts["processes"],
        "malformed packets": facts["malformed"],
    }
    timeline = collected(monitoring_timeline(counted, window).orderBy("begin", "application"))
    found = Report(day, recording, told, _seconds(counted, window), timeline)
    found.tables.append(
        _table(
            "Processes",
            "Those that were silent longest first. silent: seconds between two records in which nothing came.",
            processes(records),
            ("silent", "records"),
            rows,
        )
    )
    for kind in NUMBERS:
        found.tables.append(_table(_TITLES[kind], _ABOUT[kind], objects(counted, kind), _FIRST[kind], rows))
    found.tables.append(_table("Malformed packets", "By reason.", malformed(records), ("packets",), rows))
    return found


def _seconds(table: DataFrame, window: str) -> float:
    """How long a window is, as Spark reads it."""
    from pyspark.sql import functions as F

    # A window has a length that does not depend on the calendar; Spark has refused others already.
    made = table.sparkSession.range(1).select(F.window(F.lit("1970-01-01").cast("timestamp"), window).alias("w"))
    ((begin, end),) = made.select("w.start", "w.end").collect()
    return float((end - begin).total_seconds())


def _table(title: str, about: str, table: DataFrame, first: Sequence[str], rows: int) -> Table:
    """The rows of which the columns `first` have most."""
    from pyspark.sql import functions as F

    columns = [name for name in table.columns if name != "records" or title == "Processes"]
    order: list[Any] = [F.desc_nulls_last(name) for name in first]
    shown = table.orderBy(*order, *(F.asc(name) for name in table.columns if name not in first)).select(*columns)
    found = [tuple(row) for row in collected(shown.limit(rows + 1))]
    total = len(found) if len(found) <= rows else table.count()
    return Table(title, about, columns, found[:rows], total)
