"""Pipelines over recordings, ready to run with `um pipeline NAME` or from a program.

Each is a few functions from DataFrames to DataFrames in plain PySpark: bars() makes bars of ticks, streamed or not;
sessions() and loss_timeline() tell how good a feed was; latencies(), percentiles() and latency_timeline() how fast;
monitored(), increases(), objects() and processes() what monitored processes did, report_of() by day.
recorded() gives the rows of a recording of every kind, and session() a Spark session that says what is missing.
Needs PySpark and Java: pip install 'um-cffi[spark]'.
"""

from __future__ import annotations

from um_cffi.spark.pipelines._daily import days, report_of, statistics
from um_cffi.spark.pipelines._latency import HOPS, draw_latency, latencies, latency_timeline, percentiles
from um_cffi.spark.pipelines._monitoring import increases, monitored, monitoring_timeline, objects, processes
from um_cffi.spark.pipelines._ohlcv import bars
from um_cffi.spark.pipelines._quality import draw_losses, loss_timeline, sessions
from um_cffi.spark.pipelines._report import Report, Table, html_of, write_report
from um_cffi.spark.pipelines._rows import recorded
from um_cffi.spark.pipelines._session import session

__all__ = [
    "HOPS",
    "Report",
    "Table",
    "bars",
    "days",
    "draw_latency",
    "draw_losses",
    "html_of",
    "increases",
    "latencies",
    "latency_timeline",
    "loss_timeline",
    "monitored",
    "monitoring_timeline",
    "objects",
    "percentiles",
    "processes",
    "recorded",
    "report_of",
    "session",
    "sessions",
    "statistics",
    "write_report",
]
