"""Recordings as streams: exact batches, growing recordings, restarts, what is gone, and what the recorder is told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_recordings import SOURCE, Made
from spark_sessions import begun

from um_cffi.recording import Recording, committed

DEADLINE = 240.0


class Sink:
    """Collects batches as foreachBatch gives them."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[str, str, str, int]]] = []

    def __call__(self, frame: Any, batch: int) -> None:
        rows = frame.select("topic", "source", "session", "sequence").collect()
        self.batches.append([tuple(row) for row in rows])

    @property
    def rows(self) -> list[tuple[str, str, str, int]]:
        return sorted(row for batch in self.batches for row in batch)


def stream(spark: Any, folder: Path, **options: object) -> Any:
    given = {"startingOffsets": "earliest", **options}
    return spark.readStream.format("ultramessaging").option("recording", str(folder)).options(**given).load()


def start(frame: Any, sink: Any, checkpoint: Path, **trigger: Any) -> Any:
    """A query that has read something, or is over."""
    made = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    return begun(lambda: made.trigger(**trigger).start())


def run(frame: Any, sink: Any, checkpoint: Path) -> Any:
    """Everything that is there now."""
    query = start(frame, sink, checkpoint, availableNow=True)
    assert query.awaitTermination(DEADLINE)
    return query


def wait(query: Any, ready: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not ready():
        if query.exception() is not None:
            raise query.exception()
        assert time.monotonic() < end, "nothing more comes"
        time.sleep(0.05)


def expected(*sources: tuple[str, int, int]) -> list[tuple[str, str, str, int]]:
    return sorted(
        (topic, SOURCE.format(source), f"0000abcd.{source}", number)
        for topic, source, rows in sources
        for number in range(rows)
    )


def test_k2_batches_are_of_exactly_the_size_asked_for(spark: Any, tmp_path: Path) -> None:
    """Also where numbers are missing, over several sources, and in the middle of segments."""
    made = Made(tmp_path / "r", batch_rows=100)
    made.add("a", 1000, 3, lost=[1, 2, 3, 400, 999])
    made.add("b", 505, 2, source=2)
    sink = Sink()
    frame = stream(spark, tmp_path / "r", maxOffsetsPerTrigger=250)
    query = run(frame, sink, tmp_path / "c")
    assert [len(batch) for batch in sink.batches if batch] == [250] * 6
    assert len(set(sink.rows)) == len(sink.rows) == 1500
    last = query.recentProgress[-1]["sources"][0]
    there = json.loads(last["latestOffset"]) if isinstance(last["latestOffset"], str) else last["latestOffset"]
    assert there["a"][SOURCE.format(1)] == {"0000abcd.1": 1000}


def test_k2_batches_have_no_more_bytes_than_asked_for(spark: Any, tmp_path: Path) -> None:
    Made(tmp_path / "r", batch_rows=100).add("a", 1000, 2)
    sink = Sink()
    run(stream(spark, tmp_path / "r", maxBytesPerTrigger=64 * 300 + 63), sink, tmp_path / "c")
    assert [len(batch) for batch in sink.batches if batch] == [300, 300, 300, 100]
    assert sink.rows == expected(("a", 1, 1000))


def test_a_growing_recording_is_followed_and_a_restart_goes_on(spark: Any, tmp_path: Path) -> None:
    """K5 as well: the consumer's position follows, to the end of what is read."""
    made = Made(tmp_path / "r")
    made.add("a", 100)
    sink = Sink()
    frame = stream(spark, tmp_path / "r", consumer="spark")
    query = start(frame, sink, tmp_path / "c", processingTime="0 seconds")
    try:
        wait(query, lambda: len(sink.rows) == 100)
        made.add("a", 50)
        made.add("b", 20, source=2)
        wait(query, lambda: len(sink.rows) == 170)
        wait(query, lambda: committed(tmp_path / "r", "spark") == Recording(tmp_path / "r").offsets())
    finally:
        query.stop()
    made.add("a", 30)
    run(frame, sink, tmp_path / "c")
    assert sink.rows == expected(("a", 1, 180), ("b", 2, 20))
    assert committed(tmp_path / "r", "spark") == Recording(tmp_path / "r").offsets()


def test_latest_begins_where_the_query_began(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path / "r")
    made.add("a", 100)
    sink = Sink()
    frame = stream(spark, tmp_path / "r", startingOffsets="latest")
    run(frame, sink, tmp_path / "c")
    assert sink.rows == []
    made.add("a", 10)
    made.add("b", 5, source=2)
    run(frame, sink, tmp_path / "c")
    assert sink.rows == expected(("a", 1, 110), ("b", 2, 5))[100:]


def test_k3_what_retention_removed_unread_is_an_error_or_counted(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path / "r")
    made.add("a", 100)
    sink = Sink()
    run(stream(spark, tmp_path / "r"), sink, tmp_path / "c")
    segments = made.add("a", 300, 3)
    made.drop(segments[:2])
    with pytest.raises(Exception) as error:
        run(stream(spark, tmp_path / "r"), sink, tmp_path / "c")
    for word in ("data loss: topic a", SOURCE.format(1), "100 to 299", "200 messages", "failOnDataLoss to false"):
        assert word in str(error.value), str(error.value)
    kinds: list[tuple[str, int, int]] = []

    def keep(frame: Any, batch: int) -> None:
        kinds.extend((row.kind, row.sequence, row["count"]) for row in frame.collect())

    run(stream(spark, tmp_path / "r", failOnDataLoss="false", includeLosses="true"), keep, tmp_path / "c")
    assert sorted(kinds) == sorted([("missing", 100, 200), *(("message", number, 1) for number in range(300, 400))])


def test_options_of_streams_are_checked(tmp_path: Path) -> None:
    from um_cffi.spark import UltraMessagingDataSource

    Made(tmp_path)
    for options, told in (
        ({"endingoffsets": "latest"}, "option endingOffsets latest: a stream has no end"),
        ({"consumer": "../x"}, "option consumer '../x': must have"),
    ):
        source = UltraMessagingDataSource({"recording": str(tmp_path), **options})
        with pytest.raises(ValueError, match=told):
            source.streamReader(UltraMessagingDataSource({"recording": str(tmp_path)}).schema())
