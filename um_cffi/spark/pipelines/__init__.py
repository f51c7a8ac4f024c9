"""Pipelines over recordings, ready to run with `um pipeline NAME` or from a program.

Each is a few functions from DataFrames to DataFrames in plain PySpark: bars() makes bars of ticks, streamed or not;
sessions() and loss_timeline() tell how good a feed was; latencies(), percentiles() and latency_timeline() how fast.
recorded() gives the rows of a recording of every kind, and session() a Spark session that says what is missing.
Needs PySpark and Java: pip install 'um-cffi[spark]'.
"""

from __future__ import annotations

from um_cffi.spark.pipelines._latency import HOPS, draw_latency, latencies, latency_timeline, percentiles
from um_cffi.spark.pipelines._ohlcv import bars
from um_cffi.spark.pipelines._quality import draw_losses, loss_timeline, sessions
from um_cffi.spark.pipelines._rows import recorded
from um_cffi.spark.pipelines._session import session

__all__ = [
    "HOPS",
    "bars",
    "draw_latency",
    "draw_losses",
    "latencies",
    "latency_timeline",
    "loss_timeline",
    "percentiles",
    "recorded",
    "session",
    "sessions",
]
