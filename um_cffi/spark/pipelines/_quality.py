"""Feed quality: what was lost, dropped, repeated, recovered, late or out of order, by session and over time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from um_cffi.events import MessageFlags

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STREAM = ("topic", "source", "session")


def sessions(rows: DataFrame, late_seconds: float = 1.0) -> DataFrame:
    """What can be said of each session (`topic`, `source`, `session`) in `rows`, which are those of recorded().

    Columns: `messages`; `first` and `last` number; `gaps`, runs of numbers that were lost or dropped, with no message
    between; `lost`, messages that the network or an interruption has cost; `dropped`, those that the recorder had no
    room for; `absent`, numbers that nothing tells of, which are the fragments of large messages but the last;
    `duplicates`, messages whose number was there already (a recording promises none); `copies`, messages whose
    hot-failover number was there before on the topic, by whichever source; `recovered`, those that came by late join or
    recovery off the transport (repairs of LBT-RM and LBT-RU leave no mark on messages); `out_of_order`, those that came
    after one of a larger number (RFC 4737); `late`, those sent more than `late_seconds` before one of the topic that
    had come already, which a watermark of that length would drop. It is null where the recording does not say when
    messages were sent.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    before = (Window.unboundedPreceding, -1)
    numbered = Window.partitionBy(*STREAM).orderBy("sequence", "timestamp_ns")
    arriving = Window.partitionBy(*STREAM, "message").orderBy("timestamp_ns", "sequence").rowsBetween(*before)
    of_topic = Window.partitionBy("topic", "message").orderBy("timestamp_ns", *STREAM, "sequence").rowsBetween(*before)
    reached = F.max(F.col("sequence") + F.col("count")).over(numbered.rowsBetween(*before))
    message = F.col("message")
    looked = (
        rows.withColumn("message", F.col("kind") == "message")
        .withColumn("reached", reached)
        .withColumn("missing", F.col("kind").isin("loss", "dropped"))
        .withColumn("opens", F.col("missing") & ~F.coalesce(F.lag("missing").over(numbered), F.lit(False)))
        .withColumn("overtaken", message & (F.col("sequence") < F.max("sequence").over(arriving)))
        .withColumn("newest_ns", F.max("source_ns").over(of_topic))
    )
    recovered = F.col("flags").bitwiseAND(int(MessageFlags.RETRANSMIT | MessageFlags.OTR)) != 0
    late = F.col("source_ns") < F.col("newest_ns") - int(late_seconds * 1e9)
    found = looked.groupBy(*STREAM).agg(
        _number(message).alias("messages"),
        F.min("sequence").alias("first"),
        F.max(F.col("sequence") + F.col("count") - 1).alias("last"),
        _number(F.col("opens")).alias("gaps"),
        _total("loss").alias("lost"),
        _total("dropped").alias("dropped"),
        F.sum(F.greatest(F.coalesce(F.col("sequence") - F.col("reached"), F.lit(0)), F.lit(0))).alias("absent"),
        _number(message & (F.col("sequence") < F.col("reached"))).alias("duplicates"),
        _number(message & recovered).alias("recovered"),
        _number(F.col("overtaken")).alias("out_of_order"),
        F.when(F.count("source_ns") > 0, _number(late)).alias("late"),
    )
    return (
        found.join(_copies(rows), list(STREAM), "left")
        .withColumn("copies", F.coalesce("copies", F.lit(0)))
        .select(
            *STREAM, "messages", "first", "last", "gaps", "lost", "dropped", "absent", "duplicates", "copies",
            "recovered", "out_of_order", "late",
        )
    )  # fmt: skip


def _number(condition: Column) -> Column:
    """How many rows meet a condition; null is no."""
    from pyspark.sql import functions as F

    return F.count_if(condition)


def _total(kind: str) -> Column:
    from pyspark.sql import functions as F

    return F.sum(F.when(F.col("kind") == kind, F.col("count")).otherwise(0))


def _copies(rows: DataFrame) -> DataFrame:
    """By session the messages whose hot-failover number had come before."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    numbered = rows.where(F.col("hf_number").isNotNull() & (F.col("kind") == "message"))
    order = Window.partitionBy("topic", "hf_number").orderBy("timestamp_ns", *STREAM, "sequence")
    again = numbered.withColumn("_place", F.row_number().over(order)).where("_place > 1")
    return again.groupBy(*STREAM).agg(F.count(F.lit(1)).alias("copies"))


def loss_timeline(rows: DataFrame, window: str = "1 second") -> DataFrame:
    """Messages and losses of each source over time: `begin`, `topic`, `source`, `messages`, `lost`, `dropped` and
    `lost_share`, the part of what should have come that was lost or dropped, from 0 to 1. A loss counts where it was
    noticed. `rows` are those of recorded()."""
    from pyspark.sql import functions as F

    timed = rows.withColumn("_window", F.window(F.expr("timestamp_micros(timestamp_ns div 1000)"), window))
    found = timed.groupBy(F.col("_window.start").alias("begin"), "topic", "source").agg(
        _number(F.col("kind") == "message").alias("messages"),
        _total("loss").alias("lost"),
        _total("dropped").alias("dropped"),
    )
    missing = F.col("lost") + F.col("dropped")
    return found.withColumn("lost_share", missing / (missing + F.col("messages")))


def draw_losses(timeline: list[Any], path: str | os.PathLike[str]) -> None:
    """The rows of loss_timeline(), collected, as a picture (PNG) in `path`. ImportError without matplotlib."""
    from um_cffi.spark.pipelines._plots import pyplot

    figure, (above, below) = pyplot().subplots(2, 1, sharex=True, figsize=(9, 6), dpi=120, layout="constrained")
    for key in sorted({(row["topic"], row["source"]) for row in timeline}):
        mine = sorted((row for row in timeline if (row["topic"], row["source"]) == key), key=lambda row: row["begin"])
        times = [row["begin"] for row in mine]
        above.plot(times, [row["messages"] for row in mine], marker=".", label=" ".join(key))
        below.plot(times, [100 * row["lost_share"] for row in mine], marker=".")
    above.set_ylabel("messages")
    below.set_ylabel("lost or dropped, %")
    below.set_xlabel("UTC")
    above.set_title("What came, and what did not")
    if 0 < len(above.lines) <= 12:
        above.legend(fontsize="small")
    for axes in (above, below):
        axes.grid(True, alpha=0.3)
        axes.set_ylim(bottom=0)
    figure.savefig(path)
    pyplot().close(figure)
