"""Latency of each hop: percentiles by topic, percentiles over time, and a picture of both."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# From where to where: columns of nanoseconds. A row has the time of the kernel or that of the library.
HOPS: Mapping[str, tuple[str, str]] = {
    "source to kernel": ("source_ns", "kernel_ns"),
    "source to library": ("source_ns", "library_ns"),
}
"""The hops that a recording knows: from the time of sending to when the kernel or the network card, or where they put
no time on messages the library, received the message."""

POINTS: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
_CURVE = tuple(1 - 10 ** (-at / 8) for at in range(1, 41))  # for the picture: to 99.999 %
_ACCURACY = 1_000_000  # a rank is off by a millionth of the rows at most; below so many rows not at all


def latencies(rows: DataFrame, hops: Mapping[str, tuple[str, str]] = HOPS) -> DataFrame:
    """Each message of `rows` once for each hop whose two times it has: `hop`, `topic`, `source`, `timestamp_ns`, and
    `latency_ns`, which is negative where two clocks disagree. `rows` are those of recorded(); more `hops` may be added
    for columns of nanoseconds that rows have been given."""
    from pyspark.sql import functions as F

    measured = F.array(
        *[
            F.struct(F.lit(name).alias("hop"), (F.col(to) - F.col(begin)).alias("ns"))
            for name, (begin, to) in hops.items()
        ]
    )
    each = rows.select("topic", "source", "timestamp_ns", F.explode(measured).alias("_hop"))
    found = each.select("_hop.hop", "topic", "source", "timestamp_ns", F.col("_hop.ns").alias("latency_ns"))
    return found.where(F.col("latency_ns").isNotNull())


def percentiles(measured: DataFrame, by: Sequence[str] = ("hop", "topic")) -> DataFrame:
    """How the latencies of latencies() are spread: `messages`, `min`, `mean`, `p50`, `p90`, `p99`, `p99_9`, `p99_99`
    and `max`, in nanoseconds. A percentile is a latency that occurred, the smallest that the share has reached; of more
    than a million rows its rank is a millionth of them off at most."""
    from pyspark.sql import functions as F

    found = measured.groupBy(*by).agg(
        F.count(F.lit(1)).alias("messages"),
        F.min("latency_ns").alias("min"),
        F.avg("latency_ns").alias("mean"),
        _points(list(POINTS.values())).alias("_points"),
        F.max("latency_ns").alias("max"),
    )
    points = [F.col("_points")[at].alias(name) for at, name in enumerate(POINTS)]
    return found.select(*by, "messages", "min", "mean", *points, "max")


def _points(shares: Sequence[float]) -> Column:
    from pyspark.sql import functions as F

    return F.percentile_approx("latency_ns", list(shares), _ACCURACY)


def latency_timeline(measured: DataFrame, window: str = "1 second") -> DataFrame:
    """Latencies over time: `begin`, `hop`, `messages`, `p50`, `p99` and `max`, in nanoseconds."""
    from pyspark.sql import functions as F

    timed = measured.withColumn("_window", F.window(F.expr("timestamp_micros(timestamp_ns div 1000)"), window))
    found = timed.groupBy(F.col("_window.start").alias("begin"), "hop").agg(
        F.count(F.lit(1)).alias("messages"), _points([0.5, 0.99]).alias("_points"), F.max("latency_ns").alias("max")
    )
    points = [F.col("_points")[at].alias(name) for at, name in enumerate(("p50", "p99"))]
    return found.select("begin", "hop", "messages", *points, "max")


def draw_latency(measured: DataFrame, timeline: list[Any], path: str | os.PathLike[str]) -> None:
    """The spread of latencies, and the rows of latency_timeline(), collected, as a picture (PNG) in `path`. Runs one
    Spark job. ImportError without matplotlib."""
    from um_cffi.spark.pipelines._plots import pyplot

    spread = measured.groupBy("hop").agg(_points(_CURVE).alias("points")).collect()
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(12, 5), dpi=120, layout="constrained")
    for row in sorted(spread, key=lambda row: row["hop"]):
        left.plot([1 / (1 - share) for share in _CURVE], [ns / 1000 for ns in row["points"]], label=row["hop"])
    for hop in sorted({row["hop"] for row in timeline}):
        mine = sorted((row for row in timeline if row["hop"] == hop), key=lambda row: row["begin"])
        for name, style in (("p50", "-"), ("p99", "--"), ("max", ":")):
            times, values = [row["begin"] for row in mine], [row[name] / 1000 for row in mine]
            right.plot(times, values, style, marker=".", label=f"{hop}, {name}")
    left.set_xscale("log")
    left.set_xticks([1, 10, 100, 1e3, 1e4, 1e5], ["0", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"])
    left.set_xlabel("share of the messages that were as fast or faster")
    right.set_xlabel("UTC")
    for axes in (left, right):
        # Clocks of two hosts may make latencies negative, which a plain logarithm cannot show.
        lowest = min((min(line.get_ydata(), default=1) for line in axes.lines), default=1)
        axes.set_yscale("log" if lowest > 0 else "symlog", **({} if lowest > 0 else {"linthresh": 1}))
        axes.set_ylabel("latency, microseconds")
        axes.grid(True, alpha=0.3)
        if axes.lines:
            axes.legend(fontsize="small")
    figure.savefig(path)
    pyplot().close(figure)
