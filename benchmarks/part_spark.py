"""Spark: whether a recording is read as fast as Parquet, and a backlog in batches of the size asked for."""

from __future__ import annotations

from cells import Cells
from part_python import figures
from part_spark_sink import spark_sink
from report import Report


def spark(cells: Cells, report: Report) -> None:
    """A million rows a second on two cores, and half of what Parquet gives."""
    found = figures(cells, "bench_spark.py", "figures")
    parquet = f"Parquet in the same run: {found['parquet'] / 1e6:.2f} M/s"
    report.target("64 B recorded, read by Spark on local[2], M rows/s", found["rate"] / 1e6, 1.0, True, parquet)
    report.target("64 B recorded, read by Spark, of Parquet", found["of_parquet"], 0.5, True)
    limit = f"{found['limit'] / 1e6:.2f} M/s, {found['limit'] / found['parquet']:.2f} of Parquet"
    report.note("limit: a data source that yields one batch again and again", limit)
    report.note("64 B recorded, read by Spark, of that limit", f"{found['of_limit']:.2f}")
    report.target("rows as Arrow data over rows as tuples", found["of_tuples"], 1.0, True)
    streamed = f"{found['streamed'] / 1e6:.2f} M rows/s"
    report.target(
        "backlog: batches of another size than maxOffsetsPerTrigger", found["wrong_batches"], 0, False, streamed
    )
    spark_sink(cells, report)
