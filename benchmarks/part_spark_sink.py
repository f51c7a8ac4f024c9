"""Publishing from Spark: rows a second to a receiver of hot failover."""

from __future__ import annotations

from cells import Cells
from part_python import figures
from report import Report, Row


def spark_sink(cells: Cells, report: Report) -> None:
    """No target was set for these."""
    found = figures(cells, "bench_spark_sink.py", "figures")
    noop = f"the same rows into Spark's sink noop: {found['noop'] / 1e6:.2f} M/s"
    for name, what in (
        ("published", "by the driver"),
        ("partitionTopics", "by the tasks, to a topic for each partition"),
    ):
        what = f"64 B rows of Spark, published {what} and received, M rows/s"
        report.add(Row(what, noop, found[name] / 1e6, "", None))
