"""What reading a recording in Spark costs: 64-byte messages on local[2], with 1 GB for the driver.

Usage: python benchmarks/bench_spark.py [--rows N] [--tuples N] [--size N] [--runs N] [--folder DIR] [--json]

All columns are read into Spark's sink `noop`: of the recording, of the same rows as Parquet, of a data source that
yields one record batch of them again and again, which is the limit of data sources in Python, and of a part of them by
one that yields rows as tuples of Python. Then the recording is a backlog that a stream takes in ten batches.
Each figure is the best of the runs, the first of which also warms the Java machine up.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ.setdefault("UM_BUILD_DIR", str(ROOT / "build"))

SEGMENT_ROWS = 500_000
BATCHES = 10


def best(runs: int, rows: int, work: Callable[[], object]) -> float:
    """Rows a second."""
    found = 0.0
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        found = max(found, rows / (time.perf_counter() - begin))
    return found


def of_recording(spark: Any, folder: Path, kind: str = "read", **options: object) -> Any:
    made = getattr(spark, kind).format("ultramessaging").option("recording", str(folder))
    return made.option("startingOffsets", "earliest").options(**options).load()


def of_tuples(spark: Any, folder: Path, rows: int) -> Any:
    """The rows of the recording as Python has them without Arrow."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    from um_cffi.recording import Recording
    from um_cffi.spark import UltraMessagingDataSource

    class Reader(DataSourceReader):  # type: ignore[misc]
        def partitions(self) -> list[Any]:
            return [InputPartition(0), InputPartition(1)]

        def read(self, partition: Any) -> Any:
            left = rows // 2
            recording = Recording(folder)
            for segment in recording.segments()[partition.value :: 2]:
                for batch in recording.batches(segment):
                    for row in batch.slice(0, left).to_pylist():
                        time_ns = row["timestamp"].value if hasattr(row["timestamp"], "value") else 0
                        yield (
                            row["topic"], row["source"], row["session"], row["sequence"], row["timestamp"], time_ns,
                            row["flags"], row["payload"],
                        )  # fmt: skip
                    left -= min(left, len(batch))
                    if left == 0:
                        return

    class Tuples(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "tuples"

        def schema(self) -> Any:
            return UltraMessagingDataSource({"recording": str(folder)}).schema()

        def reader(self, schema: Any) -> Any:
            return Reader()

    spark.dataSource.register(Tuples)
    return spark.read.format("tuples").load()


def of_one_batch(spark: Any, folder: Path, rows: int) -> Any:
    """So many rows that cost nothing to make: the first record batch of the recording, sent by each task until done."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    from um_cffi.spark import UltraMessagingDataSource

    class Reader(DataSourceReader):  # type: ignore[misc]
        def __init__(self, schema: Any) -> None:
            self._schema = schema

        def partitions(self) -> list[Any]:
            return [InputPartition(0), InputPartition(1)]

        def read(self, partition: Any) -> Any:
            reader = UltraMessagingDataSource({"recording": str(folder)}).reader(self._schema)
            batch = next(reader.read(reader.partitions()[0]))
            left = rows // 2
            while left > 0:
                yield batch.slice(0, left)
                left -= min(left, len(batch))

    class OneBatch(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "one_batch"

        def schema(self) -> Any:
            return UltraMessagingDataSource({"recording": str(folder)}).schema()

        def reader(self, schema: Any) -> Any:
            return Reader(schema)

    spark.dataSource.register(OneBatch)
    return spark.read.format("one_batch").load()


def into_nothing(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def backlog(spark: Any, folder: Path, rows: int, work: Path) -> tuple[float, int]:
    """Rows a second of a stream that has to catch up, and how many batches were not of the size asked for."""
    each = rows // BATCHES
    stream = of_recording(spark, folder, "readStream", maxOffsetsPerTrigger=each)
    begin = time.perf_counter()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(work / "checkpoint"))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    seconds = time.perf_counter() - begin
    sizes = [progress["numInputRows"] for progress in running.recentProgress if progress["numInputRows"]]
    wrong = sum(size != each for size in sizes) + abs(len(sizes) - BATCHES)
    return sum(sizes) / seconds, wrong


def measure(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    from made_recordings import Made, numbered
    from spark_sessions import session

    rows = options.rows
    recording, parquet = folder / "recording", str(folder / "parquet")
    Made(recording).add("bench", rows, max(2, rows // SEGMENT_ROWS), payloads=numbered(options.size))
    spark = session(folder, 2, {"spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}"})
    try:
        of_recording(spark, recording).write.parquet(parquet)
        read = best(options.runs, rows, lambda: into_nothing(of_recording(spark, recording)))
        as_parquet = best(options.runs, rows, lambda: into_nothing(spark.read.parquet(parquet)))
        limit = best(options.runs, rows, lambda: into_nothing(of_one_batch(spark, recording, rows)))
        tuples = best(1, options.tuples, lambda: into_nothing(of_tuples(spark, recording, options.tuples)))
        streamed, wrong = backlog(spark, recording, rows, folder)
    finally:
        spark.stop()
    return {
        "rate": read,
        "parquet": as_parquet,
        "of_parquet": read / as_parquet,
        "limit": limit,
        "of_limit": read / limit,
        "tuples": tuples,
        "of_tuples": read / tuples,
        "streamed": streamed,
        "wrong_batches": wrong,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--tuples", type=int, default=400_000)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, help="not used: the rows tell how long it takes")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="um-spark-", dir=options.folder))
    try:
        figures = measure(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps({"figures": figures, "cores_of_machine": os.cpu_count()}))
    else:
        for name, value in figures.items():
            print(f"{name:>20} {value:,.2f}")


if __name__ == "__main__":
    main()
