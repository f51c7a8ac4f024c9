"""K1 for the recorder: killed at random points while Spark reads, it costs no row and repeats none."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest
from pairs import SOAK, loopback, until
from recordings import Publishing, killed_after, payloads, recording, rows

from um_cffi.recording import Recording

KILLS = 20 if SOAK else 3
DEADLINE = 400.0


class Sink:
    """Collects batches as foreachBatch gives them; one that is given again takes the place of itself."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[str, str, str, int, bytes]]] = {}

    def __call__(self, frame: Any, batch: int) -> None:
        chosen = frame.select("topic", "source", "session", "sequence", "payload").collect()
        self.batches[batch] = [(row[0], row[1], row[2], row[3], bytes(row[4])) for row in chosen]


def start(spark: Any, folder: Path, sink: Sink, checkpoint: Path, **trigger: Any) -> Any:
    asked = spark.readStream.format("ultramessaging").option("recording", str(folder))
    frame = asked.option("subscribePattern", "news[.][ab]").option("startingOffsets", "earliest").load()
    made = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    return made.trigger(**trigger).start()


def reached(folder: Path, sent: int) -> bool:
    """Everything that was sent on the two topics is in finished segments."""
    offsets = Recording(folder).offsets()
    found = [n for sources in offsets.values() for ids in sources.values() for n in ids.values()]
    return len(found) == 2 and min(found) >= sent


@pytest.mark.skipif(
    importlib.util.find_spec("um_cffi.spark._streaming") is None, reason="the data source does not stream yet"
)
def test_k1_a_recorder_that_is_killed_costs_no_row_and_repeats_none(spark: Any, tmp_path: Path) -> None:
    """The stream of Spark goes on all the time; what it has got at the end is what was published, once each."""
    draw, folder, sink = random.Random(16), tmp_path / "r", Sink()
    with loopback() as ctx:
        publishing = Publishing(ctx, 0.05)
        try:
            killed_after(folder, draw.uniform(0, 0.4))
            query = start(spark, folder, sink, tmp_path / "checkpoint", processingTime="50 milliseconds")
            for _ in range(KILLS - 1):
                killed_after(folder, draw.uniform(0, 0.4))
        finally:
            sent = publishing.stop()
        assert query.exception() is None
        with recording(folder):
            until(lambda: reached(folder, sent))
        query.stop()
    for topic in ("news.a", "news.b"):
        assert payloads(folder, topic) == [b"%d" % number for number in range(sent)]
    assert {row["kind"] for row in rows(folder)} == {"message"}
    assert start(spark, folder, sink, tmp_path / "checkpoint", availableNow=True).awaitTermination(DEADLINE)
    found = [row for batch in sink.batches.values() for row in batch]
    assert len({row[:4] for row in found}) == len(found)
    for topic in ("news.a", "news.b"):
        assert sorted(int(row[4]) for row in found if row[0] == topic) == list(range(sent))
