"""What `um pipeline NAME` does: read a recording, run the functions of the pipeline, show and write what comes out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from um_cffi.errors import InvalidArgument
from um_cffi.monitoring.packets import TOPIC
from um_cffi.recording import Recording
from um_cffi.spark.pipelines._collected import collected
from um_cffi.spark.pipelines._daily import begin_of, days, report_of, statistics
from um_cffi.spark.pipelines._latency import draw_latency, latencies, latency_timeline, percentiles
from um_cffi.spark.pipelines._monitoring import (
    NUMBERS,
    increases,
    monitored,
    monitoring_timeline,
    objects,
    processes,
)
from um_cffi.spark.pipelines._ohlcv import bars
from um_cffi.spark.pipelines._quality import draw_losses, loss_timeline, sessions
from um_cffi.spark.pipelines._report import write_report
from um_cffi.spark.pipelines._rows import recorded

Shown = tuple[str, Sequence[str], list[Sequence[Any]]]
"""A title, names of columns, and rows."""


@dataclass
class Wanted:
    """What a run was asked for; the options of `um pipeline` tell what each is."""

    folder: str
    topics: Sequence[str] = ()
    definition: str | None = None
    output: str | None = None
    plot: str | None = None
    window: str | None = None
    watermark: str = "30 seconds"
    time: str = "timestamp"
    price: str = "price"
    size: str = "size"
    by: Sequence[str] = ("topic",)
    late: float = 1.0
    stream: bool = False
    until_now: bool = False
    checkpoint: str | None = None
    rows: int = 20
    day: str | None = None
    report: str = "."
    over: Event = field(default_factory=Event)
    """Set from another thread, or by a signal: a stream ends."""


def check(name: str, wanted: Wanted) -> None:
    """InvalidArgument for what can be seen to be wrong before Spark starts, which takes seconds."""
    if "://" not in wanted.folder:
        Recording(wanted.folder)
    if name == "ohlcv" and wanted.definition is None:
        raise InvalidArgument(
            "ohlcv needs --definition FILE: the fields of a tick, as Definition.to_bytes() gives them"
        )
    if wanted.stream and (name != "ohlcv" or wanted.output is None):
        raise InvalidArgument("--stream is for ohlcv, and needs --output DIR: where the bars go")
    if wanted.day is not None:
        begin_of(wanted.day)


def run(spark: SparkSession, name: str, wanted: Wanted) -> Iterator[Shown]:
    """Run the pipeline `name`; its tables, as they are done. InvalidArgument, also for what Spark refuses."""
    check(name, wanted)
    try:
        yield from PIPELINES[name](spark, wanted)
    except PySparkException as error:
        text = str(error).strip() or type(error).__name__
        raise InvalidArgument(f"Spark: {text[:4000]}") from None


def _shown(title: str, table: DataFrame, rows: int, order: Sequence[str]) -> Shown:
    """The first rows of a table."""
    chosen = collected(table.orderBy(*order).limit(rows + 1))
    more = f" (the first {rows})" if len(chosen) > rows else ""
    return f"{title}{more}", table.columns, [tuple(row) for row in chosen[:rows]]


def _written(table: DataFrame, wanted: Wanted, name: str) -> DataFrame:
    """The table, which is written as Parquet first where that was asked for."""
    if wanted.output is None:
        return table
    path = str(Path(wanted.output, name)) if "://" not in wanted.output else f"{wanted.output.rstrip('/')}/{name}"
    table.write.parquet(path)
    return table.sparkSession.read.parquet(path)


def _ohlcv(spark: SparkSession, wanted: Wanted) -> Iterator[Shown]:
    reader: Any = spark.readStream if wanted.stream else spark.read
    reader = reader.format("ultramessaging").option("recording", wanted.folder)
    reader = reader.option("definition", wanted.definition).option("startingOffsets", "earliest")
    if wanted.topics:
        reader = reader.option("subscribe", ",".join(wanted.topics))
    ticks = reader.load()
    window = wanted.window or "1 minute"
    made = bars(ticks, window, wanted.watermark, wanted.time, wanted.price, wanted.size, wanted.by)
    if wanted.stream:
        output = str(wanted.output)
        _stream(made, wanted, output)
        if "://" not in output and not any(Path(output).glob("*.parquet")):
            return  # no window has closed so far
        made = spark.read.parquet(output)
    else:
        made = _written(made, wanted, "bars")
    yield _shown(f"bars of {window}", made, wanted.rows, ("begin", *wanted.by))


def _stream(made: DataFrame, wanted: Wanted, output: str) -> None:
    """Write the bars of a stream as their windows close, until asked to end, or until all that there is is done."""
    writer = made.writeStream.format("parquet").outputMode("append").option("path", output)
    writer = writer.option("checkpointLocation", wanted.checkpoint or f"{output.rstrip('/')}.checkpoint")
    if wanted.until_now:
        writer = writer.trigger(availableNow=True)
    query = writer.start()
    try:
        while not wanted.over.is_set() and not query.awaitTermination(0.5):
            pass
    finally:
        query.stop()


def _quality(spark: SparkSession, wanted: Wanted) -> Iterator[Shown]:
    with _kept(recorded(spark, wanted.folder, wanted.topics)) as rows:
        found = _written(sessions(rows, wanted.late), wanted, "sessions")
        yield _shown("sessions", found, wanted.rows, ("topic", "source", "session"))
        window = wanted.window or "1 second"
        timeline = _written(loss_timeline(rows, window), wanted, "timeline")
        missing = timeline.where("lost + dropped > 0")
        yield _shown(f"losses in windows of {window}", missing, wanted.rows, ("begin", "topic", "source"))
        if wanted.plot is not None:
            draw_losses(collected(timeline), wanted.plot)


def _latency(spark: SparkSession, wanted: Wanted) -> Iterator[Shown]:
    with _kept(latencies(recorded(spark, wanted.folder, wanted.topics))) as measured:
        if measured.isEmpty():
            raise InvalidArgument(
                f"{wanted.folder} does not say when messages were sent: publish them with a property that holds the "
                "time in nanoseconds, and record with --source-timestamp PROPERTY"
            )
        overall = _written(percentiles(measured, ("hop",)), wanted, "hops")
        yield _shown("latency in ns, by hop", overall, wanted.rows, ("hop",))
        topics = _written(percentiles(measured), wanted, "topics")
        yield _shown("latency in ns, by hop and topic", topics, wanted.rows, ("hop", "topic"))
        timeline = _written(latency_timeline(measured, wanted.window or "1 second"), wanted, "timeline")
        draw_latency(measured, collected(timeline), wanted.plot or "latency.png")


def _monitoring(spark: SparkSession, wanted: Wanted) -> Iterator[Shown]:
    """A report for each day that there are records of, or for one; the tables are of all that was read."""
    messages = statistics(spark, wanted.folder, wanted.topics or (TOPIC,), wanted.day)
    with _kept(monitored(messages)) as records, _kept(increases(records)) as counted:
        found = days(records) if wanted.day is None else [wanted.day]
        if not found:
            raise InvalidArgument(
                f"{wanted.folder} has no records of topic {', '.join(wanted.topics or (TOPIC,))}: record them with "
                f"um record {TOPIC}, and see to it that processes are monitored (option monitor_interval)"
            )
        window = wanted.window or "10 minutes"
        made: list[Sequence[Any]] = []
        for day in found:
            path = Path(wanted.report, f"monitoring-{day}.html")
            path.parent.mkdir(parents=True, exist_ok=True)
            write_report(report_of(day, records, counted, wanted.folder, window, max(wanted.rows, 50)), path)
            made.append((day, str(path)))
        yield "reports", ("day", "file"), made
        order = ("application", "host", "process_id")
        yield _shown("processes", _written(processes(records), wanted, "processes"), wanted.rows, order)
        for kind in NUMBERS:
            table = _written(objects(counted, kind), wanted, f"{kind}s")
            yield _shown(f"{kind.replace('_', ' ')}s", table, wanted.rows, (*order, "object_id", "name"))
        _written(monitoring_timeline(counted, window), wanted, "timeline")


@contextlib.contextmanager
def _kept(table: DataFrame) -> Iterator[DataFrame]:
    """The table, kept by Spark between several uses."""
    table.persist()
    try:
        yield table
    finally:
        table.unpersist()


PIPELINES: dict[str, Callable[[SparkSession, Wanted], Iterator[Shown]]] = {
    "ohlcv": _ohlcv,
    "quality": _quality,
    "latency": _latency,
    "monitoring": _monitoring,
}
