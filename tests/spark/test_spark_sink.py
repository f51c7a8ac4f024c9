"""Data frames and streams become messages, each exactly once; what is wrong is told plainly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spark_sessions import begun
from spark_sinks import HANG, Heard, as_task, configured, hearing, rows, schema, staged_files

from um_cffi import HFSource, WouldBlock, pdm
from um_cffi.spark import _publishing, _sink
from um_cffi.spark._numbers import Batch, NumberBook

TRADE = {"id": 7, "fields": {"symbol": "STRING", "price": "DOUBLE", "size": "UINT64?"}}


@pytest.fixture(name="place")
def place_of_one_test(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Options that every write has."""
    yield {"stateLocation": str(tmp_path / "state"), "config": configured(tmp_path), "waitForReceivers": str(HANG)}
    _publishing.discard()


def save(frame: Any, place: dict[str, str], **more: str) -> None:
    frame.write.format("ultramessaging").mode("append").options(**{**place, **more}).save()


def payloads(spark: Any, count: int, partitions: int, begin: int = 0) -> Any:
    """Rows "PARTITION/ROW"."""
    wanted = "concat(spark_partition_id(), '/', cast(id as string)) payload"
    return spark.range(begin, begin + count, 1, partitions).selectExpr(wanted)


# -- with Spark --


def test_a_data_frame_is_published_in_the_order_of_partitions_and_rows(spark: Any, place: dict[str, str]) -> None:
    with hearing(place["config"], "frame") as heard:
        save(payloads(spark, 1000, 3), place, topic="frame")
        got = heard.wait(1000)
    assert [number for _, number, _ in got] == list(range(1000))
    assert [int(payload.partition(b"/")[2]) for _, _, payload in got] == list(range(1000))
    assert [payload[:1] for _, _, payload in got] == sorted(payload[:1] for _, _, payload in got)
    assert not staged_files(Path(place["stateLocation"]))


def test_writes_without_a_query_id_go_on_and_with_one_are_the_same_write(spark: Any, place: dict[str, str]) -> None:
    with hearing(place["config"], "again") as heard:
        save(payloads(spark, 10, 2), place, topic="again")
        for _ in range(2):
            save(payloads(spark, 10, 2, 100), place, topic="again", queryId="day 1")
        save(payloads(spark, 10, 2, 200), place, topic="again")
        heard.wait(30)
    assert heard.numbers("again") == list(range(30))
    assert NumberBook(place["stateLocation"]).next_number("again") == 30


def test_topics_of_a_column_and_fields_of_a_definition(spark: Any, place: dict[str, str]) -> None:
    trade = pdm.Definition.from_schema(TRADE["fields"], id=7)  # type: ignore[arg-type]
    words = (
        "if(id % 2 = 0, 'even', 'odd') topic",
        "cast(id as string) symbol",
        "id / 2 price",
        "cast(id as decimal(20,0)) size",
        "if(id % 4 < 2, map('n', cast(id as string)), null) properties",
        "if(id % 4 = 0, id, null) channel",
    )
    channels = [n if n % 4 == 0 else None for n in range(100)]
    with hearing(place["config"], "^(even|odd)$", pattern=True, channels=range(0, 100, 4)) as heard:
        save(spark.range(0, 100, 1, 2).selectExpr(*words), place, definition=json.dumps(TRADE))
        got = heard.wait(100)
    for topic, first in (("even", 0), ("odd", 1)):
        mine = [trade.parse(payload) for name, _, payload in got if name == topic]
        assert [(m["symbol"], m["price"], m["size"]) for m in mine] == [
            (str(n), n / 2, n) for n in range(first, 100, 2)
        ]
        assert heard.numbers(topic) == list(range(50))
    extras = sorted((trade.parse(payload)["size"], *with_it) for (_, _, payload), with_it in zip(got, heard.extras))
    assert extras == [(n, {"n": str(n)} if n % 4 < 2 else {}, channels[n]) for n in range(100)]


def test_topics_of_partitions_are_published_by_their_tasks(spark: Any, place: dict[str, str]) -> None:
    with hearing(place["config"], "^parts/", pattern=True) as heard:
        for _ in range(2):  # the second time the same messages
            save(payloads(spark, 300, 3), place, topic="parts", partitionTopics="true", queryId="q")
        save(payloads(spark, 3, 3, 1000), place, topic="parts", partitionTopics="true")
        got = heard.wait(303)
    for partition in range(3):
        topic = f"parts/{partition}"
        assert heard.numbers(topic) == list(range(101))
        ids = [payload.decode() for name, _, payload in got if name == topic]
        mine = [*range(partition * 100, partition * 100 + 100), 1000 + partition]
        assert ids == [f"{partition}/{number}" for number in mine]
    assert not staged_files(Path(place["stateLocation"]))


def test_a_stream_is_published_batch_by_batch_and_goes_on_from_its_checkpoint(
    spark: Any, place: dict[str, str], tmp_path: Path
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    checkpoint = tmp_path / "checkpoint"
    options = {name: value for name, value in place.items() if name != "stateLocation"}

    def run(number: int) -> None:
        (source / f"{number}.csv").write_text("".join(f"{number},{row}\n" for row in range(50)))
        frame = spark.readStream.schema("batch int, row int").csv(str(source))
        rows_of_it = frame.selectExpr("concat(batch, ':', row) payload")
        writing = rows_of_it.writeStream.format("ultramessaging").options(**options, topic="stream")
        made = writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = begun(made.start)
        assert query.awaitTermination(int(HANG))

    with hearing(place["config"], "stream") as heard:
        run(0)
        run(1)
        got = heard.wait(100)
    assert [(number, payload) for _, number, payload in got] == [
        (batch * 50 + row, b"%d:%d" % (batch, row)) for batch in range(2) for row in range(50)
    ]
    assert NumberBook(f"{checkpoint}.ultramessaging").next_number("stream") == 100


def test_no_receivers_fail_the_write_and_late_ones_are_waited_for(spark: Any, place: dict[str, str]) -> None:
    frame = payloads(spark, 10, 1)
    with pytest.raises(Exception, match=r"topic late: 0 of 1 receivers after 0\.2 s \(option waitForReceivers"):
        save(frame, place, topic="late", waitForReceivers="0.2")
    assert not staged_files(Path(place["stateLocation"]))
    state = Path(place["stateLocation"], "numbers.json")
    opened: list[Heard] = []

    def come_late() -> None:
        end = time.monotonic() + HANG
        while '"late":10' not in state.read_text() and time.monotonic() < end:  # it has its numbers, and waits
            time.sleep(0.02)
        opened.append(Heard(place["config"], "late"))

    coming = threading.Thread(target=come_late)
    coming.start()
    save(frame, place, topic="late")
    coming.join()
    try:
        opened[0].wait(10)
        assert opened[0].numbers("late") == list(range(10))
    finally:
        opened[0].context.close()


# -- what is wrong is told, without Spark: it tells the same words --


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (["payload binary"], {}, "no topic: give the option topic, or a column topic; columns are payload"),
        (["topic int", "payload binary"], {}, "column topic is int: must be string"),
        (["price double"], {"topic": "t"}, "no column payload, but price: make one"),
        (["payload int"], {"topic": "t"}, "column payload is int: must be binary or string"),
        (["payload binary", "properties string"], {"topic": "t"}, "properties is string: must be map<string,string>"),
        (["payload binary", "channel double"], {"topic": "t"}, "channel is double: must be bigint, or drop"),
        (["price double"], {"topic": "t", "definition": json.dumps(TRADE)}, "have no columns symbol; there are price"),
        (["symbol string", "price double", "lot int"], {"topic": "t", "definition": json.dumps(TRADE)}, "columns lot"),
        (["price double"], {"topic": "t", "definition": '{"fields": {"price": "MONEY"}}'}, "MONEY"),
        (["price double"], {"topic": "t", "definition": "/nowhere.json"}, "option definition '/nowhere.json'"),
        (["payload binary"], {"topic": "t", "config": "/nowhere.cfg"}, "option config '/nowhere.cfg': No such file"),
        (["payload binary"], {"topic": "t", "partitionTopic": "true"}, "did you mean partitionTopics"),
        (
            ["payload binary"],
            {"topic": "t", "partitionTopics": "maybe"},
            "partitionTopics 'maybe': must be true or false",
        ),
        (["payload binary"], {"topic": "t", "waitForReceivers": "soon"}, "waitForReceivers 'soon': must be seconds"),
        (["payload binary"], {"topic": "t", "queryId": " "}, "queryId ' ': it is empty"),
        (["payload binary"], {"topic": "t" * 300}, "1 to 246 bytes"),
        (
            ["payload binary"],
            {"topic": "t", "stateLocation": "state"},
            "stateLocation 'state': must be an absolute path",
        ),
        (["payload binary"], {"topic": "t", "stateLocation": "s3://bucket/x"}, "locks and atomic renames"),
        (
            ["payload binary"],
            {"topic": "t", "stateLocation": "/dev/null/x"},
            "stateLocation /dev/null/x: Not a directory",
        ),
    ],
)
def test_wrong_options_and_columns(
    place: dict[str, str], columns: list[str], options: dict[str, str], words: str
) -> None:
    with pytest.raises(ValueError) as caught:
        _sink.make_writer({**place, **options}, schema(*columns), False)
    assert words in str(caught.value)


def test_numbers_need_a_place(place: dict[str, str], tmp_path: Path) -> None:
    del place["stateLocation"]
    rows_of_it = schema("payload binary")
    with pytest.raises(ValueError, match="option stateLocation is missing: a batch write has no checkpoint"):
        _sink.make_writer({**place, "topic": "t"}, rows_of_it, False)
    with pytest.raises(ValueError, match="option stateLocation is missing: the checkpoint is not told"):
        _sink.make_stream_writer({**place, "topic": "t"}, rows_of_it, False)
    with pytest.raises(ValueError, match=r"hdfs://.*give option stateLocation"):
        _sink.make_stream_writer({**place, "topic": "t", "checkpointLocation": "hdfs://n/c"}, rows_of_it, False)
    beside = {**place, "topic": "t", "checkpointLocation": f"file://{tmp_path}/check"}
    assert _sink.make_stream_writer(beside, rows_of_it, False)._options.state == f"{tmp_path}/check.ultramessaging"


def test_rows_that_cannot_be_messages(place: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    as_task(monkeypatch, 3)
    writer = _sink.make_writer(place, schema("payload binary", "topic string"), False)
    with pytest.raises(ValueError, match="partition 3, row 1: column payload is null"):
        writer.write(iter([rows([b"1"], ["t"]), rows([b"2", None], ["t", "t"])]))  # type: ignore[list-item]
    with pytest.raises(ValueError, match="partition 3, row 0: column topic is null"):
        writer.write(iter([rows([b"1"], [None])]))  # type: ignore[list-item]
    writer = _sink.make_writer({**place, "maxStagedBytes": "1000"}, schema("payload binary", "topic string"), False)
    with pytest.raises(RuntimeError, match="maxStagedBytes 1000: partition 3 has more after 0 rows"):
        writer.write(iter([rows([b"x" * 2000], ["t"])]))
    assert not staged_files(Path(place["stateLocation"]))


def test_properties_and_channels_that_no_message_can_have(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    as_task(monkeypatch, 3)
    told = schema("payload binary", "properties map<string,string>", "channel int")
    writer = _sink.make_writer({**place, "topic": "t"}, told, False)
    for pairs, channel, words in (
        ([("", "x")], 0, "partition 3, row 0: column properties: properties: name '' of 0 bytes"),
        ([("a", None)], 0, "partition 3, row 0: column properties: .*a.* is of type NoneType"),
        ([], -1, "partition 3, row 0: column channel is -1: must be 0 to 4294967295"),
    ):
        columns = {"payload": pa.array([b"1"]), "channel": pa.array([channel], pa.int32())}
        columns["properties"] = pa.array([pairs], pa.map_(pa.string(), pa.string()))
        with pytest.raises(ValueError, match=words):
            writer.write(iter([pa.RecordBatch.from_pydict(columns)]))
    assert not staged_files(Path(place["stateLocation"]))


def test_rows_with_properties_wait_for_room_and_say_how_many_went_out(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those without: what has gone out keeps its numbers, also where it fails."""
    import pyarrow as pa

    as_task(monkeypatch, 0)
    real = HFSource.send_nowait
    refused = limit = 0

    def jammed(self: Any, data: Any, **more: Any) -> None:
        nonlocal refused
        refused += more["number"] == 7
        if more["number"] == 7 and refused <= limit:
            raise WouldBlock("send(): no room")
        real(self, data, **more)

    monkeypatch.setattr(HFSource, "send_nowait", jammed)
    kind = pa.map_(pa.string(), pa.string())
    told = schema("payload binary", "properties map<string,string>")
    payloads_of_it = pa.array([b"%d" % row for row in range(10)])
    made = pa.RecordBatch.from_pydict({"payload": payloads_of_it, "properties": pa.array([[("a", "b")]] * 10, kind)})
    with hearing(place["config"], "room") as heard:
        for patience, most, words in (("0.05", 10**9, "no room for 0.05 s: .*; 7 rows were sent"), (str(HANG), 3, "")):
            refused, limit = 0, most
            chosen = {**place, "topic": "room", "queryId": "q", "waitForReceivers": str(HANG)}
            writer = _sink.make_writer(chosen, told, False)
            message = writer.write(iter([made]))
            if words:
                writer._options = replace(writer._options, patience=float(patience))
                _publishing.publisher(writer._options)._meet(["room"], replace(writer._options, patience=HANG))
                with pytest.raises(RuntimeError, match=words):
                    writer.commit([message])
            else:
                writer.commit([message])
        got = heard.wait(10)
    assert [payload for _, _, payload in got] == [b"%d" % row for row in range(10)] and refused == limit + 1
    assert heard.extras == [({"a": "b"}, None)] * 10


def test_rows_of_spark_before_4_1_become_the_same_messages(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sink, "_ArrowStreamWriter", None)
    as_task(monkeypatch, 0)
    writer = _sink.make_stream_writer({**place, "topic": "old"}, schema("payload binary", "n int"), False)
    with hearing(place["config"], "old") as heard:
        writer.commit([writer.write(iter([(bytearray(b"%d" % n), n) for n in range(25_000)]))], 0)
        got = heard.wait(25_000)
    assert [payload for _, _, payload in got] == [b"%d" % n for n in range(25_000)]


# -- numbers and repetitions, without Spark --


def test_a_full_queue_fails_the_batch_which_is_published_again(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    as_task(monkeypatch, 0)
    real = HFSource.send_many

    def jammed(self: Any, messages: Any, *, numbers: int, timeout: float) -> int:
        real(self, messages.slice(0, 40), numbers=numbers)
        failure = TimeoutError("no room for 10 s")
        failure.sent = 40  # type: ignore[attr-defined]
        raise failure

    with hearing(place["config"], "jam") as heard:
        for queries, expected in ((None, [*range(40), *range(40, 140)]), ("named", list(range(140, 240)))):
            chosen = {**place, "topic": "jam", **({"queryId": queries} if queries else {})}
            heard.got.clear()
            for attempt in range(2):
                writer = _sink.make_writer(chosen, schema("payload binary"), False)
                message = writer.write(iter([rows([b"%d" % row for row in range(100)])]))
                if attempt == 0:
                    monkeypatch.setattr(HFSource, "send_many", jammed)
                    with pytest.raises(RuntimeError, match="no room for 10 s; 40 rows were sent"):
                        writer.commit([message])
                    monkeypatch.setattr(HFSource, "send_many", real)
                    writer.abort([message])
                else:
                    writer.commit([message])
            heard.wait(len(expected))
            assert heard.numbers("jam") == expected
    assert not staged_files(Path(place["stateLocation"]))


def test_attempts_of_a_partition_publish_the_same_rows_whatever_they_have(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {**place, "topic": "spec", "partitionTopics": "true"}
    writer = _sink.make_writer(chosen, schema("payload binary"), False)
    as_task(monkeypatch, 1)
    with hearing(place["config"], "^spec/", pattern=True) as heard:
        messages = [
            writer.write(iter([rows([b"%d of %d" % (row, attempt) for row in range(50)])])) for attempt in range(3)
        ]
        assert len({message.file for message in messages}) == 1
        writer.commit(messages[1:2])
        late = writer.write(iter([rows([b"late"] * 50)]))  # a speculative one that comes last
        assert late.counts == {"spec/1": 50}
        got = heard.wait(50)
    assert got == [("spec/1", row, b"%d of 0" % row) for row in range(50)]


def test_the_book_refuses_what_would_break_the_numbers(tmp_path: Path) -> None:
    book = NumberBook(str(tmp_path / "book"))
    book.prepare()
    assert book.begin(Batch("a", 3), {"t": 10}).first == {"t": 0}
    with pytest.raises(RuntimeError, match="begun with 10 rows for topic t, and now has 9"):
        book.begin(Batch("a", 3), {"t": 9})
    with pytest.raises(RuntimeError, match="batch 3 was begun and never finished"):
        book.begin(Batch("a", 4), {"t": 1})
    with pytest.raises(RuntimeError, match="numbers 0 to 9 of batch 3 of query a, which is not finished"):
        book.begin(Batch("b", 0), {"t": 1})
    book.finish(Batch("a", 3))
    with pytest.raises(RuntimeError, match="knows batch 3 of it already; the checkpoint is an older one"):
        book.begin(Batch("a", 2), {"t": 1})
    (tmp_path / "book" / "numbers.json").write_text('{"version": 1, "topi')
    with pytest.raises(RuntimeError, match="not what this version writes"):
        book.begin(Batch("a", 4), {"t": 1})


def test_k6_identity_is_query_batch_and_row_and_never_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = NumberBook(str(tmp_path / "book"))
    book.prepare()
    now = [0.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    for again in range(3):  # years apart, or at the same moment
        now[0] += again * 1e8
        begun = book.begin(Batch("q", 0), {"t": 100, "u": 5})
        assert (begun.first, begun.again) == ({"t": 0, "u": 0}, again > 0)
    book.finish(Batch("q", 0))
    assert book.begin(Batch("q", 0), {"t": 100, "u": 5}).first == {"t": 0, "u": 0}
    assert book.begin(Batch("other", 0), {"t": 100}).first == {"t": 100}  # the same rows at the same time
    book.finish(Batch("other", 0))
    assert book.begin(Batch("q", 1), {"t": 1, "u": 1}).first == {"t": 200, "u": 5}


def test_what_a_killed_write_has_staged_is_swept_a_day_later(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    as_task(monkeypatch, 0)
    writer = _sink.make_writer({**place, "topic": "t"}, schema("payload binary"), False)
    writer.write(iter([rows([b"1"])]))
    _sink.make_writer({**place, "topic": "t"}, schema("payload binary"), False)
    assert len(staged_files(Path(place["stateLocation"]))) == 1
    later = time.time() + 25 * 3600
    monkeypatch.setattr(time, "time", lambda: later)
    _sink.make_writer({**place, "topic": "t"}, schema("payload binary"), False)
    assert not staged_files(Path(place["stateLocation"]))
