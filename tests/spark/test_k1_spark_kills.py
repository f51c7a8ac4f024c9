"""K1: whatever is killed, a stream that is started again from its checkpoint has read everything once.

A driver of its own process reads a recording that grows into Parquet, in small batches; it, or a Python worker of its
executor, is killed at random. What is written must be what is recorded, by (source, session, topic, sequence).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as parquet
from made_recordings import SOURCE, Made
from spark_sessions import ROOT, environment

SOAK = bool(os.environ.get("UM_SOAK"))
KILLS = 20 if SOAK else 3
ROWS = 2000
HANG_SECONDS = 900.0  # where Spark is SLOW again and again, a driver takes minutes

DRIVER = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[2], sys.argv[2] + "/tests/support"]
from spark_sessions import SLOW, session
folder = Path(sys.argv[1])
work = folder / "work"
work.mkdir(exist_ok=True)
spark = session(work, 2, {"spark.master": "local[2,20]"})

def begin():
    frame = (
        spark.readStream.format("ultramessaging").option("recording", str(folder / "r"))
        .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "400").option("minPartitions", "2").load()
    )
    return (
        frame.select("topic", "source", "session", "sequence").writeStream.format("parquet")
        .option("path", str(folder / "out")).option("checkpointLocation", str(folder / "c")).start()
    )

query = begin()
while True:
    try:
        stop = (folder / "stop").exists()
        if stop:
            query.processAllAvailable()
            query.stop()
            spark.stop()
            break
        if query.awaitTermination(0.1):
            break
    except Exception as error:
        if SLOW not in str(error):
            raise
        query = begin()
"""


class Driver:
    """A process group of its own: the program, the Java machine, Python workers."""

    def __init__(self, folder: Path) -> None:
        self._log = (folder / "log").open("a")
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(folder), str(ROOT)],
            env={**os.environ, **environment()},
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def workers(self) -> list[int]:
        """Python processes that read for the executor: children of a pyspark.daemon."""
        found = subprocess.run(
            ["ps", "-o", "pid=,ppid=,args=", "-g", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        rows = [line.split(None, 2) for line in found.stdout.splitlines()]
        daemons = {pid for pid, _, args in rows if "pyspark.daemon" in args and "pyspark.worker" in args}
        return [int(pid) for pid, parent, _ in rows if parent in daemons]

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._log.close()

    def end(self) -> None:
        if self.process.poll() is None:
            self.kill()


def batches(folder: Path) -> int:
    """How many are committed."""
    return len([path for path in (folder / "c" / "commits").glob("*") if path.name.isdigit()])


def until_grown(driver: Driver, folder: Path, more: int, seconds: float = HANG_SECONDS) -> None:
    begin, end = batches(folder), time.monotonic() + seconds
    while batches(folder) < begin + more:
        assert driver.process.poll() is None, (folder / "log").read_text()[-6000:]
        assert time.monotonic() < end, (folder / "log").read_text()[-6000:]
        time.sleep(0.02)


def check(folder: Path, rows: int) -> None:
    """What the sink's log says was written."""
    driver = Driver(folder)
    (folder / "stop").touch()
    try:
        assert driver.process.wait(HANG_SECONDS) == 0, (folder / "log").read_text()[-6000:]
    finally:
        driver.end()
    found: list[str] = []
    for path in (folder / "out" / "_spark_metadata").iterdir():
        if path.name.startswith("."):
            continue
        found += [json.loads(line)["path"] for line in path.read_text().splitlines() if line.startswith("{")]
    names: set[str] = {path.replace("file://", "") for path in found}
    keys = [
        tuple(row.values())
        for name in names
        for row in parquet.ParquetFile(name).read(["source", "session", "topic", "sequence"]).to_pylist()
    ]
    wanted = {(SOURCE.format(1), "0000abcd.1", "a", number) for number in range(rows)}
    assert len(keys) == len(set(keys)), "rows came twice"
    assert set(keys) == wanted, f"{len(wanted - set(keys))} rows are missing"


def kill_a_worker(driver: Driver) -> int:
    """How many were killed: one, where one was there."""
    for pid in driver.workers()[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return 1
    return 0


def test_k1_kills_leave_the_result_exact(tmp_path: Path) -> None:
    """Each driver first loses a worker, and is then killed itself. Rows come before each wait, so that it ends."""
    chance = random.Random(int(os.environ.get("UM_SIM_BASE", "1")))
    made = Made(tmp_path / "r", batch_rows=100)
    rows = 0
    for _ in range(KILLS):
        made.add("a", ROWS, 3)
        driver = Driver(tmp_path)
        try:
            until_grown(driver, tmp_path, 1)
            time.sleep(chance.random() * 0.3)  # anywhere in a batch
            end = time.monotonic() + HANG_SECONDS
            while not kill_a_worker(driver):
                assert driver.process.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()[-6000:]
            made.add("a", ROWS, 3)
            until_grown(driver, tmp_path, 1)
            time.sleep(chance.random() * 0.5)
        finally:
            driver.kill()
        rows += 2 * ROWS
    check(tmp_path, rows)
