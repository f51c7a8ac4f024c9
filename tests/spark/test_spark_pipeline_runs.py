"""The whole way: ticks over LBT-RM with loss, recorded, streamed by Spark into bars that are what pandas makes of the
ticks that were sent, to the row; in this process, and by `um pipeline` on a cluster of a master and two workers.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import market_ticks
import pyarrow.parquet as pq
import pytest
from pairs import HANG, scaled
from spark_clusters import SETTINGS, Cluster
from spark_sessions import begun, environment

from um_cffi.spark import pipelines

ROOT = Path(__file__).resolve().parents[2]
COUNT = scaled(50_000, soak=1_000_000)
PERCENT = 2
WINDOW, WINDOW_NS = "2 seconds", 2_000_000_000
WATERMARK = "1 day"  # the feed is faster than time: a topic may be a minute of ticks ahead of another


def private_network_possible() -> bool:
    """A network of its own for the feed, in which datagrams are lost."""
    script = "unshare --net sh -c 'nft add table ip probe'"
    return subprocess.run(["sh", "-c", script], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    not private_network_possible(), reason="nftables or network namespaces are not permitted here"
)


def publish(folder: Path) -> subprocess.Popen[str]:
    """The feed and its recorder, in a network of their own."""
    script = str(ROOT / "tests" / "support" / "market_ticks.py")
    words = [str(ROOT / "tools" / "private_net.sh"), sys.executable, script, str(folder), str(COUNT), str(PERCENT)]
    env = {name: value for name, value in os.environ.items() if name != "UM_PRIVATE_NET"}
    return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)


def wait_for(condition: Any, process: subprocess.Popen[Any], seconds: float = 5 * HANG) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() in (None, 0) and time.monotonic() < end, f"{process.args!r}: {process.poll()}"
        time.sleep(0.05)


def wanted() -> list[tuple[Any, ...]]:
    return market_ticks.bars(market_ticks.ticks(COUNT), WINDOW_NS)


def bars_in(folder: Path) -> list[tuple[Any, ...]]:
    """What Spark has written, by what it has written down as finished."""
    log = folder / "_spark_metadata"
    if not log.exists():
        return []
    files = [Path(row["path"].removeprefix("file://")) for row in logged(log)]
    return market_ticks.rows_of(row for file in files for row in pq.read_table(file).to_pylist())


def logged(log: Path) -> list[dict[str, Any]]:
    """The entries of the log of a sink of files, whose batches are replaced by what is compacted."""
    found: dict[str, dict[str, Any]] = {}
    for file in log.iterdir():
        if not file.name.startswith("."):
            rows = [json.loads(line) for line in file.read_text().splitlines()[1:]]
            found.update({row["path"]: row for row in rows})
    return list(found.values())


@pytest.fixture(scope="module", name="streamed")
def streamed_while_recorded(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """The recording, and the bars that were made of it while it grew."""
    folder = tmp_path_factory.mktemp("runs")
    recording, out = folder / "recording", folder / "bars"
    (folder / "tick.pdm").write_bytes(market_ticks.definition().to_bytes())
    feed = publish(recording)
    try:
        wait_for((recording / "manifest.jsonl").exists, feed)
        reader = spark.readStream.format("ultramessaging").option("recording", str(recording))
        reader = reader.option("definition", str(folder / "tick.pdm")).option("startingOffsets", "earliest")
        made = pipelines.bars(reader.load(), WINDOW, WATERMARK, time="time")
        writer = made.writeStream.format("parquet").option("path", str(out))
        query = begun(writer.option("checkpointLocation", str(folder / "checkpoint")).start)
        expected = len(wanted())
        try:

            def done() -> bool:
                assert query.exception() is None, query.exception()
                return len(bars_in(out)) >= expected and not query.status["isTriggerActive"]

            wait_for(done, feed)
        finally:
            query.stop()
        said, _ = feed.communicate(timeout=HANG)
    finally:
        feed.kill()
    stats = json.loads(said)
    assert stats["messages"] == COUNT + 1 and stats["lost"] == stats["dropped"] == 0
    assert stats["repaired"] > 0, "nothing was lost on the way"
    return recording, bars_in(out)


def test_ticks_streamed_while_recorded_make_the_bars_of_what_was_sent(streamed: tuple[Path, list[Any]]) -> None:
    assert streamed[1] == wanted()


def test_quality_and_loss_of_the_recording(spark: Any, streamed: tuple[Path, list[Any]]) -> None:
    rows = pipelines.recorded(spark, streamed[0])
    found = pipelines.sessions(rows).collect()
    assert sum(row["messages"] for row in found) == COUNT + 1 and len(found) == len(market_ticks.SYMBOLS)
    assert {name: sum(row[name] for row in found) for name in ("lost", "dropped", "absent", "duplicates")} == {
        "lost": 0,
        "dropped": 0,
        "absent": 0,
        "duplicates": 0,
    }


def test_latency_of_the_recording(spark: Any, streamed: tuple[Path, list[Any]]) -> None:
    """Of the one message that says when it was sent."""
    (found,) = pipelines.percentiles(pipelines.latencies(pipelines.recorded(spark, streamed[0]))).collect()
    assert (found["topic"], found["messages"]) == (market_ticks.topic(market_ticks.SYMBOLS[0]), 1)
    assert 0 < found["min"] == found["p50"] == found["max"] < 3600 * 10**9


def example(name: str, *words: object) -> None:
    """Run a program of examples/spark in the session of the tests."""
    path = ROOT / "examples" / "spark" / f"{name}.py"
    before, sys.argv = sys.argv, [str(path), *map(str, words)]
    try:
        runpy.run_path(str(path))
    finally:
        sys.argv = before


def test_the_example_of_bars_is_the_pipeline(spark: Any, streamed: tuple[Path, list[Any]], tmp_path: Path) -> None:
    recording, _ = streamed
    example("ohlcv", recording, recording.parent / "tick.pdm", tmp_path / "bars")
    assert bars_in(tmp_path / "bars") == market_ticks.bars(market_ticks.ticks(COUNT), 60_000_000_000)


def test_the_examples_of_quality_and_latency_run(
    spark: Any, streamed: tuple[Path, list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    example("quality", streamed[0])
    said = capsys.readouterr().out
    for at, symbol in enumerate(market_ticks.SYMBOLS):
        messages = len(range(at, COUNT, 3)) + (at == 0)
        assert re.search(rf"\|{market_ticks.topic(symbol)}\|.*\|{messages} *\|0 *\|0 ", said), said
    example("latency", streamed[0], market_ticks.SENT)
    assert re.search(r"\|Ticks/AAPL\|1 +\|\d", capsys.readouterr().out)


# -- a cluster --


def test_um_pipeline_on_a_cluster_makes_the_same_bars(
    cluster: Cluster, streamed: tuple[Path, list[Any]], tmp_path: Path
) -> None:
    recording, _ = streamed
    out = tmp_path / "bars"
    before = len(cluster.launched())
    words = ["ohlcv", str(recording), "--definition", str(recording.parent / "tick.pdm"), "--time", "time"]
    words += ["--window", WINDOW, "--watermark", WATERMARK, "--stream", "--until-now", "--output", str(out)]
    words += [word for name, value in SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    command = [sys.executable, "-m", "um_cffi", "pipeline", *words, "--master", cluster.url]
    done = subprocess.run(command, env={**os.environ, **environment()}, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-4000:] + cluster.log.read_text()[-2000:]
    launched = cluster.launched()[before:]
    assert len({line.rpartition(" ")[2] for line in launched}) == 2, "both workers compute"
    assert bars_in(out) == wanted()
    assert done.stdout.startswith("bars of 2 seconds (the first 20)\n") and "Ticks/AAPL" in done.stdout
