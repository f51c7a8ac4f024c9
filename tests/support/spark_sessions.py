"""How tests, and the programs that they kill, start Spark: little memory, two cores, loopback, no web pages."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_java import home, options

ROOT = Path(__file__).resolve().parents[2]
MEMORY = "1g"
LOCAL = "127.0.0.1"
SLOW = "connect back"
"""What Spark says when a process of Python that it starts has not called within ten seconds, which cannot be changed.
On a machine that is overloaded or stops processes that is no failure of what is tested: such a query is begun again."""


def environment() -> dict[str, str]:
    """What a process needs in its environment before it starts Spark."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {
        **home(),
        "SPARK_LOCAL_IP": LOCAL,
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "UM_BUILD_DIR": os.environ.get("UM_BUILD_DIR", str(ROOT / "build")),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *(each for each in path if each and each != str(ROOT))]),
    }


def settings(folder: Path, cores: int = 2) -> dict[str, str]:
    """The configuration of a session that keeps its files in a folder."""
    return {
        "spark.master": f"local[{cores}]",
        "spark.app.name": "um-tests",
        "spark.driver.memory": MEMORY,
        "spark.driver.host": LOCAL,
        "spark.driver.bindAddress": LOCAL,
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} {options()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.python.worker.reuse": "true",
        "spark.sql.streaming.pollingDelay": "20ms",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    }


def session(folder: Path, cores: int = 2, more: dict[str, str] | None = None) -> Any:
    """A new session in this process."""
    os.environ.update(environment())
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in {**settings(folder, cores), **(more or {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def begun(start: Callable[[], Any], deadline: float = 240.0) -> Any:
    """A streaming query that has read something, or is over: `start` starts it, again where Spark was SLOW."""
    for _ in range(30):
        query = start()
        end = time.monotonic() + deadline
        while query.isActive and query.lastProgress is None:
            assert time.monotonic() < end, "the query does not begin"
            time.sleep(0.05)
        if SLOW not in str(query.exception()):
            break
    return query
