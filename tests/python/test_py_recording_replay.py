"""replay(): a recording published again is what was published, numbers of hot failover and properties included."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pairs import HANG, loopback, until
from recordings import QUICK, contexts, payloads, recording, rows

from um_cffi import Context, HFSource, InvalidArgument, Source
from um_cffi.recording import Recorder, Recording, replay, to_parquet

pytest.importorskip("pyarrow")

KEPT = {"late_join": 1, "retransmit_retention_size_threshold": 100_000_000}


def record(folder: Path, count: int, publish: Callable[[Context], object]) -> None:
    """What is published, in a finished recording."""
    with contexts() as (sending, receiving), Recorder(receiving, folder, ".*", **QUICK) as recorder:
        kept = publish(sending)
        sending.flush()
        until(lambda: recorder.stats().messages == count)
        del kept


def again(folder: Path, copy: Path, count: int, speed: float | None = None) -> None:
    """A recording of the replay of a recording."""
    with loopback() as sending, recording(copy) as recorder:
        done = replay(sending, folder, speed=speed, receivers=1, timeout=HANG, options=KEPT)
        assert (done.messages, done.lost) == (count, 0)
        until(lambda: recorder.stats().messages == count)


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
