"""The third act of the demo (--spark): the feed as pre-defined messages is recorded, and Spark computes bars of one
second and the latencies of the recording.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import market
from rich import box
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
SHOWN = 12  # bars

sys.path[:0] = [str(ROOT)]  # the package of this tree, in this process too, which starts Spark


def check() -> None:
    """End with plain words before the first act where the third could not be played."""
    try:
        from um_cffi.spark import check_java

        check_java()
    except (ImportError, RuntimeError) as error:
        raise SystemExit(f"--spark: {error}") from None


def record(console: Console, child: Callable[..., Any], folder: Path, symbols: list[str], settings: Any) -> bool:
    """Publish and record for a while; True when all that was sent is in the recording."""
    common = {**settings, "symbols": symbols, "folder": str(folder), "pdm": True}
    children = []
    try:
        recorder = child("recorder.py", "recorder", common)
        children.append(recorder)
        publisher = child("publisher.py", "publisher", common)
        children.append(publisher)
        recorder.wait_for("ready", 60)
        publisher.tell("go")
        while not publisher.state.get("done") and publisher.process.poll() is None:
            time.sleep(0.1)
        end = time.monotonic() + 10
        while recorder.count < publisher.count and time.monotonic() < end:
            time.sleep(0.1)
        for one in (recorder, publisher):
            one.tell("end")
            one.finish()
        console.print(
            f"recorded  {recorder.count:,} of {publisher.count:,} messages, {recorder.state.get('bytes', 0):,} bytes",
            soft_wrap=True,
        )
        return bool(recorder.count == publisher.count > 0) and recorder.state.get("lost") == 0
    finally:
        for one in children:
            one.kill()


def shown(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Rows of Spark as a table that fits on a terminal."""
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for at, name in enumerate(columns):
        number = bool(rows) and isinstance(rows[0][at], (int, float))
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*[f"{value:,.2f}" if isinstance(value, float) else str(value) for value in row])
    return table


def compute(console: Console, folder: Path, picture: Path) -> None:
    """What Spark makes of the recording: two pipelines, in this process."""
    from pyspark.sql import functions as F

    from um_cffi.spark import pipelines

    (folder / "tick.pdm").write_bytes(market.definition().to_bytes())
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    quiet |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    spark = pipelines.session("libum demo", settings=quiet)
    try:
        console.print(f"Spark {spark.version} with master {spark.sparkContext.master}", soft_wrap=True)
        reader = spark.read.format("ultramessaging").option("recording", str(folder))
        ticks = reader.option("definition", str(folder / "tick.pdm")).load()
        bars = pipelines.bars(ticks, "1 second")
        symbol = F.substring_index("topic", "/", -1).alias("symbol")
        columns = ("open", "high", "low", "close", "volume", "vwap", "ticks")
        made = bars.select(F.date_format("begin", "HH:mm:ss").alias("second"), symbol, *columns)
        rows = [tuple(row) for row in made.orderBy("second", "symbol").collect()]
        title = f"{len(rows)} bars of one second, the first {SHOWN}" if len(rows) > SHOWN else "bars of one second"
        console.print(shown(title, made.columns, rows[:SHOWN]))
        measured = pipelines.latencies(pipelines.recorded(spark, folder)).cache()
        spread = pipelines.percentiles(measured, ("hop",))
        for row in spread.collect():
            found = [(name.replace("_", "."), row[name] / 1000) for name in spread.columns[2:]]
            console.print(shown(f"{row['hop']}: {row['messages']:,} messages", ("latency", "microseconds"), found))
        pipelines.draw_latency(measured, pipelines.latency_timeline(measured).collect(), picture)
        console.print(f"latency by percentile and over time: {picture}", soft_wrap=True)
    finally:
        spark.stop()


def run(console: Console, child: Callable[..., Any], symbols: list[str], settings: Any, build: Path) -> bool:
    """One publisher, one recorder, then Spark; True when nothing was missing. `child` starts a process."""
    console.print("\nthe same feed as pre-defined messages, recorded, then read by Spark", soft_wrap=True)
    # A private network has no names but this one.
    os.environ.update({"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"})
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ["UM_BUILD_DIR"] = str(build)
    folder = Path(tempfile.mkdtemp(prefix="um-demo-"))
    try:
        good = record(console, child, folder, symbols, settings)
        if good:
            compute(console, folder, build / "demo-spark-latency.png")
        return good
    finally:
        shutil.rmtree(folder, ignore_errors=True)
