"""The Spark session of a pipeline, and what to do where there can be none."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from um_cffi.errors import InvalidArgument
from um_cffi.spark._needs import check_java

_PARTITIONS = "spark.sql.shuffle.partitions"


def session(name: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The Spark session `name`: that of the process if there is one, else a new one.

    `master` as spark-submit knows it; None leaves it to Spark's own settings (spark-defaults.conf, spark-submit,
    SPARK_REMOTE), and without any to local[*], where shuffles get as many partitions as there are cores unless they
    have been told otherwise. `settings` are Spark's, by name. InvalidArgument without a Java that
    Spark can use, or when Spark does not start. The caller stops what it has started.
    """
    connect = "SPARK_REMOTE" in os.environ or (master or "").startswith("sc://")
    if not connect and SparkSession.getActiveSession() is None:
        try:
            check_java()
        except RuntimeError as error:
            raise InvalidArgument(str(error)) from None
        if master is None or master.startswith("local"):
            # Workers of a local session are this machine's: they run the Python that has what this one has.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.remote(master) if connect else builder.master(master)
    # Windows and days are those of UTC, as all times of recordings are.
    for key, value in {"spark.sql.session.timeZone": "UTC", **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise InvalidArgument(f"Spark did not start with master {master or '(by its settings)'}: {error}") from None
    if not connect and spark.sparkContext.master.startswith("local") and spark.conf.get(_PARTITIONS) == "200":
        # Spark's own number is for clusters: here most of the time would go into parts with hardly a row.
        spark.conf.set(_PARTITIONS, str(max(4, spark.sparkContext.defaultParallelism)))
    return spark
