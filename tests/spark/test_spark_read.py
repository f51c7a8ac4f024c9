"""Recordings as data frames: which rows come, how they are split, what is told when they are not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_recordings import BEGAN_NS, SOURCE, STEP_NS, Made
from spark_sessions import environment

from um_cffi import pdm
from um_cffi.spark import _planning

NAMES = ["topic", "source", "session", "sequence", "timestamp", "timestamp_ns", "flags", "payload"]


def read(spark: Any, folder: Path, **options: object) -> Any:
    return spark.read.format("ultramessaging").option("recording", str(folder)).options(**options).load()


def numbers(frame: Any) -> list[int]:
    return sorted(row.sequence for row in frame.select("sequence").collect())


def test_columns_and_values_are_those_of_the_recording(spark: Any, tmp_path: Path) -> None:
    Made(tmp_path / "r").add("a", 2000, 3)
    frame = read(spark, tmp_path / "r", subscribe="a", includeProperties="true")
    assert frame.columns == [*NAMES, "properties"]
    rows = sorted(frame.collect(), key=lambda row: row.sequence)
    assert [row.sequence for row in rows] == list(range(2000))
    last = rows[-1]
    assert (last.topic, last.source, last.session) == ("a", SOURCE.format(1), "0000abcd.1")
    assert last.timestamp_ns == BEGAN_NS + 1999 * STEP_NS and last.flags == 0 and last.properties is None
    assert int(last.timestamp.timestamp() * 1e6) == last.timestamp_ns // 1000
    assert last.payload[:8] == (1999).to_bytes(8, "little") and len(last.payload) == 64


def test_the_same_by_url_and_with_columns_named(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path / "r", compression="zstd")
    made.add("a", 700)
    made.add("b", 300, source=2)
    asked = spark.read.format("ultramessaging").schema("sequence long, topic string")
    frame = asked.option("recording", f"file://{tmp_path}/r").option("subscribePattern", "b|c").load()
    assert frame.columns == ["sequence", "topic"] and numbers(frame) == list(range(300))
    chosen = json.dumps({"a": [SOURCE.format(1)], "b": ["other"]})
    assert read(spark, tmp_path / "r", assign=chosen).count() == 700
    assert read(spark, tmp_path / "r").count() == 1000


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"subscribe": "a", "subscribePattern": "b"}, "subscribe and subscribePattern exclude each other"),
        ({"subscribePattern": "("}, "option subscribePattern '\\(': no regular expression"),
        ({"startingOffsets": "first"}, "option startingOffsets 'first': must be earliest, latest, or JSON"),
        ({"endingOffsets": "earliest"}, "option endingOffsets earliest: nothing ends there"),
        ({"startingTimestamp": "now"}, "option startingTimestamp 'now': must be milliseconds"),
        ({"maxOffsetsPerTrigger": "0"}, "option maxOffsetsPerTrigger '0': must be a whole number"),
        ({"failOnDataLoss": "no"}, "option failOnDataLoss 'no': must be true or false"),
        ({"startingOfsets": "latest"}, "option startingofsets: not known; did you mean startingOffsets"),
        ({"definition": "/none"}, "option definition '/none': .*No such file"),
        ({"definition": '{"a": "INT33"}'}, "option definition .*INT33"),
        ({"topic": "a"}, "option topic: for writing"),
        ({"recording": "s9://x/y"}, "option recording s9://x/y: no file system of pyarrow"),
    ],
)
def test_options_are_checked_on_the_driver(tmp_path: Path, options: dict[str, str], told: str) -> None:
    from um_cffi.spark import UltraMessagingDataSource

    Made(tmp_path)
    small = {name.lower(): value for name, value in {"recording": str(tmp_path), **options}.items()}
    with pytest.raises(ValueError, match=told):
        UltraMessagingDataSource(small).schema()


def test_offsets_and_times_bound_what_is_read(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path / "r", batch_rows=100)
    made.add("a", 1000, 2)
    made.add("b", 50, source=2)

    def at(topic: str, source: int, number: int) -> str:
        return json.dumps({topic: {SOURCE.format(source): {f"0000abcd.{source}": number}}})

    low, high = at("a", 1, 333), at("a", 1, 777)
    both = read(spark, tmp_path / "r", subscribe="a", startingOffsets=low, endingOffsets=high)
    assert numbers(both) == list(range(333, 777))
    assert numbers(read(spark, tmp_path / "r", startingOffsets=low, endingOffsets=at("a", 1, -1))) == sorted(
        [*range(333, 1000), *range(50)]
    )
    later = read(spark, tmp_path / "r", subscribe="a", startingTimestamp=(BEGAN_NS + 1_000_000) // 1_000_000)
    assert later.count() == 0  # 1000 numbers are a millisecond
    made.add("a", 10, time_ns=BEGAN_NS + 10**12)
    assert numbers(read(spark, tmp_path / "r", startingTimestamp="2023-11-14T22:20:00Z")) == list(range(1000, 1010))
    with pytest.raises(Exception, match=r"option startingOffsets: .* has no topic c"):
        read(spark, tmp_path / "r", startingOffsets=at("c", 1, 0)).collect()


def test_one_hot_topic_is_split_for_all_cores(spark: Any, tmp_path: Path) -> None:
    Made(tmp_path / "r").add("a", 40_000)
    frame = read(spark, tmp_path / "r", minPartitions=7)
    assert frame.rdd.getNumPartitions() >= 7 and numbers(frame) == list(range(40_000))
    made = Made(tmp_path / "small", batch_rows=1)
    made.add("a", 60, 60)
    frame = read(spark, tmp_path / "small")
    assert frame.rdd.getNumPartitions() < 10 and frame.count() == 60


@pytest.mark.parametrize("rows", [3, 10, 1000, 4_000_000, 40_000_000])
def test_tasks_are_of_the_same_weight_whatever_the_segments_are(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    pieces = [
        _planning.Piece("p", "a", "s", "1", begin, end, end - begin, 20 * (end - begin), True)
        for begin, end in ((0, rows // 10), (rows // 10, rows // 10 + 1), (rows // 10 + 1, rows))
        if begin < end
    ]
    for wanted in (None, 1, 7):
        splits = _planning.split(pieces, wanted)
        parts = [part for each in splits for part in each.pieces]
        assert [part.begin for part in parts] == [0, *(part.end for part in parts[:-1])] and parts[-1].end == rows
        assert all(part.whole == ((part.begin, part.end) in {(p.begin, p.end) for p in pieces}) for part in parts)
        weights = [sum(part.weight for part in each.pieces) for each in splits]
        if rows >= 1000 and wanted == 7:
            assert len(splits) == (9 if rows == 40_000_000 else 7) and max(weights) < 1.3 * min(weights)
        if rows == 40_000_000 and wanted is None:  # more than a task is to have: a multiple of the cores
            assert len(splits) == 12 and max(weights) < 1.01 * min(weights)


def test_losses_are_left_out_or_rows_of_their_own(spark: Any, tmp_path: Path) -> None:
    Made(tmp_path / "r", batch_rows=10).add("a", 100, lost=[5, 50, 51])
    assert numbers(read(spark, tmp_path / "r")) == [n for n in range(100) if n not in (5, 50, 51)]
    rows = read(spark, tmp_path / "r", includeLosses="true").where("kind != 'message'").collect()
    assert sorted((row.sequence, row.kind, row["count"], row.payload) for row in rows) == [
        (number, "loss", 1, None) for number in (5, 50, 51)
    ]


TICK = {"symbol": "FIX_STRING(8)", "price": "DOUBLE", "size": "UINT32", "timestamp": "TIMESTAMP", "tags": "STRING[]?"}


def test_fields_of_a_definition_are_columns(spark: Any, tmp_path: Path) -> None:
    import pyarrow as pa

    tick = pdm.Definition.from_schema(TICK, id=7)

    def encoded(found: Any) -> Any:
        messages = [
            tick.message(symbol=f"S{n % 3}", price=n / 2, size=n, timestamp=pdm.Timestamp(n, 5)).to_bytes()
            for n in found.tolist()
        ]
        return pa.array(messages, pa.binary())

    made = Made(tmp_path / "r", batch_rows=30)
    made.add("a", 100, payloads=encoded, lost=[7])
    text = json.dumps({"id": 7, "fields": TICK})
    (tmp_path / "tick.pdm").write_bytes(tick.to_bytes())
    for definition in (text, str(tmp_path / "tick.pdm")):
        frame = read(spark, tmp_path / "r", definition=definition, includeLosses="true")
        assert frame.columns == [*NAMES[:-1], "symbol", "price", "size", "payload_timestamp", "tags", "kind", "count"]
    rows = {row.sequence: row for row in frame.collect()}
    assert (rows[8].symbol, rows[8].price, rows[8].size, rows[8].tags) == ("S2", 4.0, 8, None)
    assert rows[8].payload_timestamp.timestamp() == 8.000005
    assert rows[7].price is None and rows[7].kind == "loss"
    made.add("a", 1)
    with pytest.raises(Exception, match=r"topic a, .* sequence 100: the payload is not of option definition"):
        read(spark, tmp_path / "r", definition=text).collect()


def test_k3_a_segment_that_is_gone_is_an_error_or_counted(spark: Any, tmp_path: Path) -> None:
    """Deleted by hand: only who opens it notices."""
    made = Made(tmp_path / "r")
    gone = made.add("a", 300, 3)[1]
    (tmp_path / "r" / gone.path).unlink()
    with pytest.raises(Exception) as error:
        read(spark, tmp_path / "r").collect()
    for word in ("data loss: topic a", SOURCE.format(1), "100 to 199", "--consumer NAME", "failOnDataLoss to false"):
        assert word in str(error.value)
    assert read(spark, tmp_path / "r", failOnDataLoss="false").count() == 200
    rows = read(spark, tmp_path / "r", failOnDataLoss="false", includeLosses="true").where("kind = 'missing'").collect()
    assert [(row.sequence, row["count"]) for row in rows] == [(100, 100)]


def test_k3_numbers_that_a_large_message_took_are_not_lost(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path / "r")
    first = made.add("a", 10)
    made.skip("a", 5)
    import pyarrow as pa

    made.add("a", 1, payloads=lambda found: pa.array([bytes(5 * 1400)] * len(found), pa.binary()))
    assert numbers(read(spark, tmp_path / "r")) == [*range(10), 15]
    made.skip("a", 3)
    made.add("a", 1)  # too small a message for what is missing
    with pytest.raises(Exception, match=r"16 to 18: 3 messages"):
        read(spark, tmp_path / "r").collect()
    assert first


def test_k4_only_record_batches_come_and_share_memory_with_the_file(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyspark.sql.types import BinaryType, LongType, StructType

    from um_cffi.spark import UltraMessagingDataSource

    Made(tmp_path, compression="none", batch_rows=5000).add("a", 20_000, 2)
    source = UltraMessagingDataSource({"recording": str(tmp_path)})
    reader = source.reader(source.schema())
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches) and sum(map(len, batches)) == 20_000
    reader = source.reader(StructType().add("sequence", LongType()).add("payload", BinaryType()))
    before = pa.total_allocated_bytes()
    again = [batch for part in reader.partitions() for batch in reader.read(part)]
    copied = pa.total_allocated_bytes() - before
    assert sum(batch.nbytes for batch in again) >= 20_000 * 72 and copied < 20_000


def test_filters_leave_segments_out(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path / "r")
    made.add("a", 300, 3)
    made.add("b", 100, source=2)
    before = spark.conf.get("spark.sql.python.filterPushdown.enabled", "false")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for segment in (tmp_path / "r").rglob("*.arrow"):
            if "/b/" in str(segment) or segment.name.startswith("0" * 20):
                segment.write_bytes(b"not to be opened")
        frame = read(spark, tmp_path / "r").where("topic = 'a' and sequence >= 150")
        assert numbers(frame) == list(range(150, 300))
        assert numbers(read(spark, tmp_path / "r").where(f"topic = 'a' and timestamp_ns >= {BEGAN_NS + 100_000}")) == [
            *range(100, 300)
        ]
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", before)
    with pytest.raises(Exception, match="cannot be read"):
        read(spark, tmp_path / "r").where("topic = 'b'").collect()


@pytest.mark.parametrize(("kept", "least"), [("pyspark.daemon", 10_000), ("somebody", 0)])
def test_what_spark_collects_behind_each_task_is_not_what_was_imported(tmp_path: Path, kept: str, least: int) -> None:
    """In a process that Spark's daemon forked; one of another kind is left alone."""
    Made(tmp_path / "recording").add("a", 10)
    program = f"""
import gc, sys
from importlib.machinery import ModuleSpec
sys.modules["__main__"].__spec__ = ModuleSpec({kept!r}, None)
from um_cffi.spark import UltraMessagingDataSource
source = UltraMessagingDataSource({{"recording": {str(tmp_path / "recording")!r}}})
reader = source.reader(source.schema())
planned = gc.get_freeze_count()
assert sum(len(batch) for each in reader.partitions() for batch in reader.read(each)) == 10
print(planned, gc.get_freeze_count())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment()},
        capture_output=True,
        text=True,
        check=True,
    )
    planned, read = map(int, done.stdout.split())
    assert planned >= read >= least  # what was frozen may go
    assert planned == 0 or least > 0
