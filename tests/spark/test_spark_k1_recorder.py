"""K1 for the recorder: killed at random points while Spark reads, it costs no row and repeats none. And K5: it removes
what Spark has committed, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, cast

from pairs import SOAK, loopback, until
from recordings import Publishing, killed_after, payloads, recording, rows
from spark_sessions import begun

from um_cffi.recording import Recording, committed

KILLS = 20 if SOAK else 3
DEADLINE = 400.0


class Sink:
    """Collects batches as foreachBatch gives them; one that is given again takes the place of itself."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[str, str, str, int, bytes]]] = {}

    def __call__(self, frame: Any, batch: int) -> None:
        chosen = frame.select("topic", "source", "session", "sequence", "payload").collect()
        self.batches[batch] = [(row[0], row[1], row[2], row[3], bytes(row[4])) for row in chosen]


def start(spark: Any, folder: Path, sink: Sink, checkpoint: Path, consumer: str = "", **trigger: Any) -> Any:
    asked = spark.readStream.format("ultramessaging").option("recording", str(folder))
    if consumer:
        asked = asked.option("consumer", consumer)
    frame = asked.option("subscribePattern", "news[.][ab]").option("startingOffsets", "earliest").load()
    made = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    return begun(lambda: made.trigger(**trigger).start())


def reached(folder: Path, sent: int) -> bool:
    """Everything that was sent on the two topics is in finished segments."""
    offsets = Recording(folder).offsets()
    found = [n for sources in offsets.values() for ids in sources.values() for n in ids.values()]
    return len(found) == 2 and min(found) >= sent


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


def unread(folder: Path) -> dict[str, list[tuple[int, int]]]:
    """Where the segments of each topic begin and end of which Spark has not read everything."""
    read: Any = committed(folder, "spark") or {}
    found: dict[str, list[tuple[int, int]]] = {}
    for each in Recording(folder).segments():
        if each.next > read.get(each.topic, {}).get(each.source, {}).get(each.session, 0):
            found.setdefault(each.topic, []).append((each.first, each.next))
    return {topic: sorted(edges) for topic, edges in found.items()}


def test_k5_what_spark_has_committed_is_removed_and_nothing_before(spark: Any, tmp_path: Path) -> None:
    """Also while Spark is away: what it has not read waits for it, and is removed then."""
    folder, sink, checkpoint = tmp_path / "r", Sink(), tmp_path / "checkpoint"
    with loopback() as ctx, recording(folder, consumers=["spark"]) as recorder:
        publishing = Publishing(ctx, 0.05)
        try:
            query = start(spark, folder, sink, checkpoint, "spark", processingTime="50 milliseconds")
            until(lambda: query.exception() is not None or recorder.stats().removed >= 4, DEADLINE)
            assert query.exception() is None
            query.stop()
            until(lambda: sum(map(len, unread(folder).values())) >= 6, DEADLINE)
        finally:
            sent = publishing.stop()
        until(lambda: reached(folder, sent), DEADLINE)
        waiting, read = unread(folder), cast("Any", committed(folder, "spark"))
        for topic, edges in waiting.items():
            position = max((number for ids in read.get(topic, {}).values() for number in ids.values()), default=0)
            assert edges[0][0] <= position and edges[-1][1] == sent, "something was removed that Spark has not read"
            assert all(end == begin for (_, end), (begin, _) in zip(edges, edges[1:]))
        assert start(spark, folder, sink, checkpoint, "spark", availableNow=True).awaitTermination(DEADLINE)
        until(lambda: Recording(folder).segments() == [], DEADLINE)
    for topic in ("news.a", "news.b"):
        mine = sorted((row[3], row[4]) for batch in sink.batches.values() for row in batch if row[0] == topic)
        assert mine == [(number, b"%d" % number) for number in range(sent)]
