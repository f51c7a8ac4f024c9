"""What publishing from Spark costs: 64-byte rows on local[2], over TCP on loopback, to a receiver of hot failover.

Usage: python benchmarks/bench_spark_sink.py [--rows N] [--runs N] [--json]

A data frame that is made where it is written goes to one topic: staged by tasks, published by the driver; then with
`partitionTopics`; and, as the baseline, to Spark's own sink `noop`. The receiver takes batches in a process of its own.
Each figure is the best of the runs, the first of which also warms the Java machine up.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ.setdefault("UM_BUILD_DIR", str(ROOT / "build"))

PARTITIONS = 4
HANG = 120.0


def receive(config: str, topic: str, pattern: bool, counted: Any) -> None:
    """Count messages until the process is ended."""
    from um_cffi import Context, HFReceiver, MessageType, WildcardReceiver

    with Context(config) as ctx:
        made: Any = WildcardReceiver(ctx, topic, hf_receiver=1) if pattern else HFReceiver(ctx, topic)
        while True:
            batch = made.recv_batch(max_messages=100_000, timeout=1.0)
            if batch is not None:
                counted.value += int((batch.records["type"] == MessageType.DATA).sum())


def rate(work: Any, rows: int, counted: Any) -> float:
    """Rows a second, from the beginning of the write until all are received."""
    before, begin = counted.value, time.perf_counter()
    work()
    while counted.value < before + rows:
        if time.perf_counter() - begin > HANG:
            raise RuntimeError(f"{counted.value - before} of {rows} rows came")
        time.sleep(0.0005)
    return rows / (time.perf_counter() - begin)


def measure(rows: int, runs: int, folder: Path) -> dict[str, float]:
    """Rows a second of each kind of writing."""
    from spark_sessions import session
    from spark_sinks import configured

    config = configured(folder)
    spawn = multiprocessing.get_context("spawn")
    counted = spawn.Value("q", 0)
    wanted = (("published", False), ("partitionTopics", True))
    receivers = [
        spawn.Process(target=receive, args=(config, f"^{name}/" if pattern else name, pattern, counted), daemon=True)
        for name, pattern in wanted
    ]
    for process in receivers:
        process.start()
    spark = session(folder)
    frame = spark.range(0, rows, 1, PARTITIONS).selectExpr("cast(lpad(cast(id as string), 64, '0') as binary) payload")
    found = dict.fromkeys(("noop", "published", "partitionTopics"), 0.0)
    for _ in range(runs + 1):
        begin = time.perf_counter()
        frame.write.format("noop").mode("append").save()
        found["noop"] = max(found["noop"], rows / (time.perf_counter() - begin))
        for name, by_tasks in wanted:
            writing = frame.write.format("ultramessaging").mode("append").option("topic", name).option("config", config)
            writing = writing.option("stateLocation", str(folder / "state")).option("partitionTopics", str(by_tasks))
            found[name] = max(found[name], rate(writing.save, rows, counted))
    spark.stop()
    for process in receivers:
        process.kill()
        process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options.rows, options.runs, Path(folder))
    if options.json:
        print(json.dumps({"figures": found}))
    else:
        for name, value in found.items():
            print(f"{name:16} {value / 1e6:.2f} M rows/s")


if __name__ == "__main__":
    main()
