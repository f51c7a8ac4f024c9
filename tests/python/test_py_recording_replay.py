"""replay(): a recording published again is what was published, numbers of hot failover and properties included."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pairs import HANG, SOAK, loopback, until
from recordings import QUICK, Row, contexts, payloads, recording, rows

from um_cffi import Context, HFSource, InvalidArgument, MessageFlags, Source
from um_cffi.recording import Recorder, Recording, replay, to_parquet

pytest.importorskip("pyarrow")

KEPT = {"late_join": 1, "retransmit_retention_size_threshold": 100_000_000}


def record(folder: Path, count: int, publish: Callable[[Context], object], entries: int = 0) -> None:
    """What is published, in a finished recording of so many messages, and rows (0: those of messages)."""
    with contexts() as (sending, receiving), Recorder(receiving, folder, ".*", **QUICK) as recorder:
        kept = publish(sending)
        sending.flush()
        until(lambda: recorder.stats().messages == count)
        until(lambda: entries == 0 or len(rows(folder)) >= entries)
        del kept


def again(folder: Path, copy: Path, count: int, speed: float | None = None, entries: int = 0) -> None:
    """A recording of the replay of a recording."""
    with loopback() as sending, recording(copy) as recorder:
        done = replay(sending, folder, speed=speed, receivers=1, timeout=HANG, options=KEPT)
        assert (done.messages, done.lost) == (count, 0)
        until(lambda: recorder.stats().messages == count)
        until(lambda: entries == 0 or len(rows(copy)) >= entries)


def test_everything_that_came_with_a_message_is_sent_again(tmp_path: Path) -> None:
    def publish(ctx: Context) -> object:
        plain, hot = Source(ctx, "plain", retain=1000), HFSource(ctx, "hot", bits=64, retain=1000)
        for number in range(50):
            plain.send(b"%d" % number, properties={"n": number, "f": 0.5} if number % 3 == 0 else None)
            hot.send(b"h%d" % number, number=2**40 + number, optional=number % 5 == 0)
        hot.send(b"past the merge")
        return plain, hot

    record(tmp_path / "a", 101, publish)
    again(tmp_path / "a", tmp_path / "b", 101)
    for topic in ("plain", "hot"):
        first, second = rows(tmp_path / "a", topic), rows(tmp_path / "b", topic)
        for name in ("payload", "hf_number", "properties", "properties_bytes"):
            assert [row[name] for row in first] == [row[name] for row in second], name
    assert [row["hf_number"] for row in rows(tmp_path / "b", "hot")[:50]] == [2**40 + n for n in range(50)]


def test_the_pace_is_that_of_the_recording_or_a_multiple(tmp_path: Path) -> None:
    """How much time passes at least; the order of topics is that of arrival."""

    def publish(ctx: Context) -> object:
        sources = [Source(ctx, name, retain=1000) for name in "ab"]
        for source in sources:
            source.wait_receivers(1, HANG)
        for number in range(10):
            sources[number % 2].send(b"%d" % number, flush=True)
            time.sleep(0.05)
        return sources

    record(tmp_path / "a", 10, publish)
    times = sorted(row["timestamp"].value for row in rows(tmp_path / "a"))
    length = (times[-1] - times[0]) / 1e9
    for speed in (1.0, 4.0):
        with loopback() as sending, recording(tmp_path / str(speed)) as recorder:
            done = replay(sending, tmp_path / "a", speed=speed, receivers=1, timeout=HANG, options=KEPT)
            assert done.seconds >= length / speed * 0.99 and done.topics == 2
            until(lambda recorder=recorder: recorder.stats().messages == 10)  # type: ignore[misc]
        assert payloads(tmp_path / str(speed), "a") == [b"%d" % number for number in range(0, 10, 2)]


_VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False), st.text("aäz ", max_size=9)
)
_MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from(["plain", "hot", "other/ü"]),
            "payload": st.one_of(st.binary(max_size=40), st.just(bytes(9000))),
            "number": st.one_of(st.none(), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)),
            "kind": st.sampled_from(["message"] * 6 + ["optional", "reset"]),
            "properties": st.one_of(st.none(), st.dictionaries(st.sampled_from(["a", "bb", "c.d"]), _VALUES)),
            "channel": st.one_of(st.none(), st.integers(0, 2**32 - 1)),
        }
    ),
    min_size=1,
    max_size=60,
)
_OFTEN = settings(
    max_examples=60 if SOAK else 5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    derandomize=not SOAK,
    phases=(Phase.generate,),
)
_SAME = (
    "kind",
    "sequence",
    "count",
    "channel",
    "hf_number",
    "source_timestamp",
    "properties",
    "properties_bytes",
    "payload",
)


def same(row: Row) -> list[object]:
    """All that a row holds but times, source and session, and how it came."""
    return [row["flags"] & ~MessageFlags.RETRANSMIT, *(row[each] for each in _SAME)]


@_OFTEN
@given(messages=_MESSAGES)
def test_a_recording_of_a_replay_has_the_same_rows(messages: list[dict[str, Any]]) -> None:
    """Whatever was sent; and the same in Parquet."""
    parquet = pytest.importorskip("pyarrow.parquet")

    def publish(ctx: Context) -> object:
        hot = HFSource(ctx, "hot", bits=64, retain=1000)
        plain = {topic: Source(ctx, topic, retain=1000) for topic in ("plain", "other/ü")}
        for each in messages:
            extras = {"properties": each["properties"], "channel": each["channel"]}
            if each["topic"] != "hot":
                plain[each["topic"]].send(each["payload"], **extras)
            elif each["kind"] == "reset":
                hot.send_rcv_reset(each["number"] or 0)
            else:
                optional = each["kind"] == "optional" and each["number"] is not None
                hot.send(each["payload"], number=each["number"], optional=optional, **extras)
        return hot, plain

    count = sum(each["topic"] != "hot" or each["kind"] != "reset" for each in messages)
    with tempfile.TemporaryDirectory() as name:
        first, second = Path(name) / "a", Path(name) / "b"
        record(first, count, publish, len(messages))
        again(first, second, count, entries=len(messages))
        for topic in ("plain", "hot", "other/ü"):
            assert list(map(same, rows(first, topic))) == list(map(same, rows(second, topic)))
        made = to_parquet(first, Path(name) / "p")
        in_parquet = [row for path in made for row in parquet.ParquetFile(path).read().to_pylist()]
        assert sorted(map(str, in_parquet)) == sorted(map(str, rows(first)))


@pytest.mark.parametrize("speed", [0, -1, float("nan"), 1e10])
def test_a_speed_that_is_none_is_refused(tmp_path: Path, speed: float) -> None:
    with loopback() as ctx, pytest.raises(InvalidArgument, match="speed"):
        replay(ctx, tmp_path, speed=speed)


def test_parquet_has_the_same_rows(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")

    def publish(ctx: Context) -> object:
        source = Source(ctx, "news", retain=1000)
        for number in range(100):
            source.send(b"%d" % number, properties={"n": number})
        return source

    record(tmp_path / "a", 100, publish)
    made = to_parquet(tmp_path / "a", tmp_path / "p")
    assert len(made) == len(Recording(tmp_path / "a").segments())
    found = [row for path in made for row in parquet.ParquetFile(path).read().to_pylist()]
    assert found == rows(tmp_path / "a") and to_parquet(tmp_path / "a", tmp_path / "p") == []
