"""Monitoring records that were recorded: as rows, what was counted between them, and what objects and processes did.

Called by `um pipeline monitoring` and by programs, on the driver; packets are decoded on executors. What a packet says
is a stranger's word: what is malformed becomes a row that says so, and numbers are held within 64 bits with sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from pyspark.sql import Column, DataFrame

SCHEMA = (
    "kind string, host string, application string, process_id long, context string, object_id long, domain_id long, "
    "immediate boolean, timestamp timestamp, transport string, name string, sources array<string>, "
    "numbers map<string, bigint>, received_ns long, origin string, sequence long"
)
MALFORMED = "malformed"
PROCESS = ("host", "application", "process_id")
OBJECT = (*PROCESS, "context", "object_id", "kind", "transport", "name")
_ORDER = ("received_ns", "sequence")
_GREATEST = (1 << 63) - 1
_LATEST = 1 << 40  # seconds; later ones are no times that Arrow and Spark have


class Shown(NamedTuple):
    """A column of objects(): what is added up, or the largest or the last value, of some numbers of records."""

    name: str
    how: str
    """"sum" of what was counted, "max" or "last" of levels."""
    numbers: tuple[str, ...]


def _sum(name: str, *numbers: str) -> Shown:
    return Shown(name, "sum", numbers or (name,))


NUMBERS: Mapping[str, tuple[Shown, ...]] = {
    "receiver": (
        _sum("messages", "lbm_msgs_rcved"),
        _sum("datagrams", "msgs_rcved"),
        _sum("bytes", "bytes_rcved"),
        _sum("lost"),
        _sum("naks", "naks_sent"),
        _sum("unrecovered", "unrecovered_txw", "unrecovered_tmo"),
        _sum("duplicates", "duplicate_data"),
        Shown("repair_max", "max", ("nak_stm_max",)),
        Shown("messages_so_far", "last", ("lbm_msgs_rcved",)),
    ),
    "source": (
        _sum("datagrams", "msgs_sent"),
        _sum("bytes", "bytes_sent"),
        _sum("naks", "naks_rcved"),
        _sum("ignored", "naks_ignored", "naks_shed", "naks_rx_delay_ignored"),
        _sum("repairs", "rxs_sent"),
        Shown("clients_max", "max", ("num_clients",)),
        Shown("buffered_max", "max", ("bytes_buffered",)),
        Shown("datagrams_so_far", "last", ("msgs_sent",)),
    ),
    "context": (
        _sum("fragments_lost"),
        _sum("unrecovered", "fragments_unrecoverably_lost"),
        _sum("blocked", "send_blocked"),
        _sum("would_block", "send_would_block"),
        _sum("send_failed", "tr_dgrams_send_failed"),
        Shown("unresolved", "last", ("tr_rcv_unresolved_topics",)),
        Shown("callback_max", "max", ("rcv_cb_svc_time_max",)),
    ),
    "event_queue": (
        _sum("taken", "events_tot"),
        Shown("waiting_max", "max", ("events",)),
        Shown("age_max", "max", ("age_max",)),
    ),
}
"""By kind, the columns of objects() that numbers are made of."""

OVER_TIME: Mapping[str, tuple[str, str]] = {
    "messages": ("receiver", "lbm_msgs_rcved"),
    "lost": ("receiver", "lost"),
    "naks_sent": ("receiver", "naks_sent"),
    "repairs": ("source", "rxs_sent"),
    "blocked": ("context", "send_blocked"),
}
"""What monitoring_timeline() adds up."""


def monitored(messages: DataFrame) -> DataFrame:
    """The monitoring records in `messages`, of a table or a stream: messages of topic /29west/statistics as the data
    source gives them, of which `payload`, `timestamp_ns`, `source` and `sequence` are used.

    A row for each record. Columns: `kind` ("context", "source", "receiver", "event_queue", "topic", "wildcard"),
    `host`, `application`, `process_id`, `context`, `object_id`, `domain_id`, `immediate`, `timestamp` (when it was
    taken, whole seconds), `transport`, `name` (source string, topic or pattern), `sources` (of a topic), `numbers` (by
    name; without minima of which nothing was measured, at most 2**63 - 1), `received_ns` (when it came), `origin`
    and `sequence` (whose message it was, and its number). A packet that is malformed is a row of kind "malformed",
    whose `name` is the reason.
    """
    chosen = messages.select("payload", "timestamp_ns", "source", "sequence").where("payload is not null")
    return chosen.mapInArrow(_decode, SCHEMA)


def _decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On an executor."""
    from um_cffi.monitoring.packets import MalformedPacket, decode

    for batch in batches:
        found: list[dict[str, Any]] = []
        for row in batch.to_pylist():
            about = {"received_ns": row["timestamp_ns"], "origin": row["source"], "sequence": row["sequence"]}
            try:
                found += [{**_row(record), **about} for record in decode(row["payload"])]
            except MalformedPacket as error:
                found.append({"kind": MALFORMED, "name": error.reason, **about})
        if found:
            yield _batch(found)


def _row(record: Any) -> dict[str, Any]:
    from um_cffi.monitoring._arrow import kind_of, name_of
    from um_cffi.monitoring._fields import UNSET

    about = record.attributes
    told = getattr(record, "values", None)
    return {
        "kind": kind_of(record),
        "host": about.host,
        "application": about.application,
        "process_id": min(about.process_id, _GREATEST),
        "context": about.context_instance,
        "object_id": min(about.object_id, _GREATEST),
        "domain_id": about.domain_id,
        "immediate": about.immediate,
        "timestamp": min(about.timestamp, _LATEST) * 1_000_000,
        "transport": getattr(record, "transport", ""),
        "name": name_of(record),
        "sources": [each.source for each in record.sources] if hasattr(record, "sources") else None,
        "numbers": None
        if told is None
        else [
            (name, min(value, _GREATEST)) for name, value in told.items() if value != UNSET or not name.endswith("_min")
        ],
    }


def _batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    from um_cffi.spark._needs import need_arrow

    pa = need_arrow()
    kinds = {
        **dict.fromkeys(("kind", "host", "application", "context", "transport", "name", "origin"), pa.string()),
        **dict.fromkeys(("process_id", "object_id", "domain_id", "received_ns", "sequence"), pa.int64()),
        "immediate": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
        "sources": pa.list_(pa.string()),
        "numbers": pa.map_(pa.string(), pa.int64()),
    }
    names = [part.split()[0] for part in SCHEMA.replace("<string, bigint>", "").split(", ")]
    columns = [pa.array([row.get(name) for row in rows], kinds[name]) for name in names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def increases(records: DataFrame) -> DataFrame:
    """`records` of monitored() that have numbers, with `counted`: by name what was counted since the record of the same
    object before, null for the first one. A number that has fallen counts from 0, since it was reset. Not of streams.

    `seconds` is the time between both.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    before = Window.partitionBy(*OBJECT).orderBy(*_ORDER)

    def grown(_: Column, now: Column, then: Column) -> Column:
        return F.when(now < then, now).otherwise(now - F.coalesce(then, F.lit(0)))

    told = records.where(F.col("numbers").isNotNull()).withColumn("_before", F.lag("numbers").over(before))
    since = F.map_zip_with(F.col("numbers"), F.col("_before"), grown)
    elapsed = (F.col("received_ns") - F.lag("received_ns").over(before)) / F.lit(1e9)
    return told.withColumn("counted", since).withColumn("seconds", elapsed).drop("_before")


def objects(counted: DataFrame, kind: str) -> DataFrame:
    """What each object of a `kind` in `counted`, which is of increases(), did: who it is, `records`, and the columns of
    NUMBERS: sums of what was counted, largest and last values; null where its transport does not count that.
    `messages_so_far` and `datagrams_so_far` are those since the object was made or reset last."""
    from pyspark.sql import functions as F

    def column(shown: Shown) -> Column:
        table = "counted" if shown.how == "sum" else "numbers"
        parts = [F.col(table)[number] for number in shown.numbers]
        if shown.how == "max":
            return F.max(parts[0]).alias(shown.name)
        if shown.how == "last":
            return F.max_by(parts[0], F.struct(*_ORDER)).alias(shown.name)
        total = F.try_sum(parts[0])
        for part in parts[1:]:
            total = F.try_add(total, F.try_sum(part))
        return total.alias(shown.name)

    who = ["application", "host", "process_id", "context", "object_id", "transport", "name"]
    mine = counted.where(F.col("kind") == kind).groupBy(*who)
    return mine.agg(F.count(F.lit(1)).alias("records"), *[column(shown) for shown in NUMBERS[kind]])


def processes(records: DataFrame) -> DataFrame:
    """The processes in `records` of monitored(): `application`, `host`, `process_id`, `contexts`, `records`, `first`
    and `last` (when they came), and `silent`, the longest time in seconds in which nothing came between these."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    mine = Window.partitionBy(*PROCESS).orderBy(*_ORDER)
    told = records.where(F.col("kind") != MALFORMED)
    gap = (F.col("received_ns") - F.lag("received_ns").over(mine)) / F.lit(1e9)
    return (
        told.withColumn("_gap", gap)
        .groupBy("application", "host", "process_id")
        .agg(
            F.count_distinct(F.when(F.col("context") != "", F.col("context"))).alias("contexts"),
            F.count(F.lit(1)).alias("records"),
            F.expr("timestamp_micros(min(received_ns) div 1000)").alias("first"),
            F.expr("timestamp_micros(max(received_ns) div 1000)").alias("last"),
            F.round(F.max("_gap"), 3).alias("silent"),
        )
    )


def monitoring_timeline(counted: DataFrame, window: str = "10 minutes") -> DataFrame:
    """What applications did over time, of `counted` of increases(): `begin`, `application`, `processes` that were heard
    of, and the sums of OVER_TIME: `messages` and `lost` datagrams of receivers, `naks_sent`, `repairs` by sources, and
    sends that were `blocked`."""
    from pyspark.sql import functions as F

    timed = counted.withColumn("_window", F.window(F.expr("timestamp_micros(received_ns div 1000)"), window))
    sums = [
        F.coalesce(F.try_sum(F.when(F.col("kind") == kind, F.col("counted")[number])), F.lit(0)).alias(name)
        for name, (kind, number) in OVER_TIME.items()
    ]
    who = F.count_distinct("host", "process_id").alias("processes")
    return timed.groupBy(F.col("_window.start").alias("begin"), "application").agg(who, *sums)


def malformed(records: DataFrame) -> DataFrame:
    """Packets of `records` that were malformed, by `reason`: `packets` and the last `origin`."""
    from pyspark.sql import functions as F

    found = records.where(F.col("kind") == MALFORMED).groupBy(F.col("name").alias("reason"))
    return found.agg(F.count(F.lit(1)).alias("packets"), F.max_by("origin", F.struct(*_ORDER)).alias("origin"))
