"""Recorders that are killed, and disks that refuse, fill up or stand still."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pairs import HANG, SOAK, loopback, until
from recordings import (
    QUICK,
    Publishing,
    Told,
    all_are_accounted_for,
    check_numbers,
    contexts,
    files,
    killed_after,
    payloads,
    recording,
    rows,
)

from um_cffi import Source
from um_cffi.recording import Recorder, Recording
from um_cffi.recording import _layout as layout
from um_cffi.recording import _segment as segments

pytest.importorskip("pyarrow")

KILLS = 20 if SOAK else 3


def wait_messages(recorder: Recorder, count: int) -> None:
    """Until so many are recorded."""
    until(lambda: recorder.stats().messages >= count)


def test_a_recorder_that_is_killed_again_and_again_misses_nothing(tmp_path: Path) -> None:
    draw = random.Random(11)
    with loopback() as ctx:
        stream = Publishing(ctx)
        try:
            for _ in range(KILLS):
                killed_after(tmp_path, draw.uniform(0, 0.4))
        finally:
            sent = stream.stop()

        def reached() -> bool:
            offsets = Recording(tmp_path).offsets()
            found = [n for sources in offsets.values() for ids in sources.values() for n in ids.values()]
            return len(found) == 2 and min(found) >= sent

        with recording(tmp_path) as recorder:
            until(reached)
        assert (recorder.stats().lost, recorder.stats().unfilled) == (0, 0)
    for name in "ab":
        assert payloads(tmp_path, f"news.{name}") == [b"%d" % number for number in range(sent)]
    check_numbers(tmp_path)
    assert {row["kind"] for row in rows(tmp_path)} == {"message"} and files(tmp_path, ".open") == []


# -- a disk that refuses --


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no file system of its own can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_told_once_and_recording_goes_on(tmp_path: Path) -> None:
    told = Told()
    with small_disk(tmp_path / "small") as folder, contexts() as (sending, receiving):
        source = Source(sending, "news")
        settings = {**QUICK, "compression": "none", "queue_bytes": 200_000}
        with Recorder(receiving, folder / "r", ".*", on_state=told, **settings) as recorder:
            source.wait_receivers(1, HANG)
            ballast = folder / "ballast"
            sent = 0

            def send(count: int) -> None:
                nonlocal sent
                for _ in range(count):
                    source.send(bytes(1000))
                    sent += 1
                source.flush()

            send(50)
            until(lambda: recorder.stats().messages == 50)
            with contextlib.suppress(OSError):
                ballast.write_bytes(bytes(2 << 20))
            while recorder._queue.dropped == 0:  # no more is under way than the disk has room for afterwards
                send(10)
                until(lambda: recorder.receiver.counts().delivered >= sent)
            until(lambda: len(told.of("disk", "dropping")) == 2)
            assert "No space left" in told.texts("disk")[0]
            ballast.unlink()
            until(lambda: recorder.stats().queued_bytes == 0)
            send(10)
            until(lambda: recorder.stats().messages + recorder.stats().dropped >= sent)
            until(lambda: told.of("recording"))
            assert recorder.stats().dropped > 0
        assert len(told.of("disk")) == 1 and set(told.of("disk", "dropping", "recording", "failed")) <= {
            "disk",
            "dropping",
            "recording",
        }
        all_are_accounted_for(folder / "r", sent)


def test_a_disk_that_is_read_only_for_a_while_loses_nothing(tmp_path: Path) -> None:
    told = Told()
    with small_disk(tmp_path / "small") as folder, recording(folder / "r", on_state=told) as recorder:
        with loopback() as sending, Source(sending, "news") as source:
            source.wait_receivers(1, HANG)
            source.send(b"0", flush=True)
            until(lambda: recorder.stats().segments == 1)
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
            source.send(b"1", flush=True)
            until(lambda: told.of("disk"))
            source.send(b"2", flush=True)
            assert "Read-only file system" in told.texts("disk")[0]
            subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
            until(lambda: recorder.stats().messages == 3)
            until(lambda: told.of("recording"))
        recorder.close()
        assert told.of("disk", "recording", "dropping") == ["disk", "recording"]
        all_are_accounted_for(folder / "r", 3)


def test_a_disk_that_stands_still_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver goes on; what there is no room for is counted, told of, and a row."""
    told, go_on = Told(), threading.Event()
    go_on.set()
    real = layout.write_all

    def slow(descriptor: int, data: bytes, offset: int) -> None:
        go_on.wait()
        real(descriptor, data, offset)

    monkeypatch.setattr(layout, "write_all", slow)
    with contexts() as (sending, receiving):
        source = Source(sending, "news")
        with Recorder(receiving, tmp_path, ".*", on_state=told, **{**QUICK, "queue_bytes": 100_000}) as recorder:
            source.wait_receivers(1, HANG)
            sent = 0
            for _ in range(2):
                drops, recordings = len(told.of("dropping")), len(told.of("recording"))
                go_on.clear()
                while len(told.of("dropping")) == drops:  # and nothing is under way afterwards
                    source.send(bytes(1000), flush=True)
                    sent += 1
                    until(lambda sent=sent: recorder.receiver.counts().delivered >= sent)  # type: ignore[misc]
                go_on.set()
                until(lambda recordings=recordings: len(told.of("recording")) > recordings)  # type: ignore[misc]
                until(lambda sent=sent: recorder.stats().messages + recorder.stats().dropped == sent)  # type: ignore[misc]
                assert recorder.stats().state == "recording"  # all of this though nothing more was sent
        stats = recorder.stats()
    assert stats.dropped > 0 and stats.lost == 0 and stats.messages + stats.dropped == sent
    assert told.of("dropping", "recording", "disk") == ["dropping", "recording"] * 2
    assert sum(row["count"] for row in rows(tmp_path) if row["kind"] == "dropped") == stats.dropped
    all_are_accounted_for(tmp_path, sent)


@pytest.mark.parametrize("step", ["pwrite", "rename", "fsync", "fdatasync", "open"])
def test_every_step_may_fail_and_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """One call of eleven fails, the first one too, while the thread writes."""
    told, failed = Told(), 0
    real = getattr(os, step)
    turn = threading.local()

    def shaky(*arguments: Any, **keywords: Any) -> Any:
        nonlocal failed
        if threading.current_thread().name != "um-recorder-write":
            return real(*arguments, **keywords)
        turn.count = getattr(turn, "count", 0) + 1
        if turn.count % 11 == 1:
            failed += 1
            raise OSError(errno.EIO, "Input/output error")
        return real(*arguments, **keywords)

    with contexts() as (sending, receiving):
        source = Source(sending, "news")
        with Recorder(receiving, tmp_path, ".*", on_state=told, **{**QUICK, "sync": "batch"}) as recorder:
            source.wait_receivers(1, HANG)
            monkeypatch.setattr(os, step, shaky)
            for number in range(15):
                source.send(b"%d" % number, flush=True)
                wait_messages(recorder, number + 1)
            monkeypatch.setattr(os, step, real)
    assert failed > 0 and "failed" not in told.of("failed")
    assert payloads(tmp_path) == [b"%d" % number for number in range(15)]
    all_are_accounted_for(tmp_path, 15)


def test_a_disk_that_never_comes_back_ends_close_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(*arguments: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with contexts() as (sending, receiving):
        source = Source(sending, "news")
        recorder = Recorder(receiving, tmp_path, ".*", **QUICK)
        source.wait_receivers(1, HANG)
        with monkeypatch.context() as patch:
            patch.setattr(layout, "write_all", dead)
            source.send(b"0", flush=True)
            until(lambda: recorder.stats().state == "disk")
            with pytest.raises(OSError, match="has not taken everything"):
                recorder.close(timeout=0.2)
        with recording(tmp_path):
            pass
    assert rows(tmp_path) == []


# -- strangers --


def test_no_more_segments_are_open_than_allowed(tmp_path: Path) -> None:
    """Each of many topics gets messages in turn; the one that waited longest is finished for another."""
    with contexts() as (sending, receiving):
        sources = [Source(sending, f"t{number}", retain=100) for number in range(12)]
        settings = {**QUICK, "segment_seconds": 60, "open_segments": 4}
        with Recorder(receiving, tmp_path, ".*", **settings) as recorder:
            for turn in range(3):
                for source in sources:
                    source.send(b"%d" % turn, flush=True)
                wait_messages(recorder, 12 * (turn + 1))
                until(lambda: len(files(tmp_path, ".open")) <= 4)
    for number in range(12):
        assert payloads(tmp_path, f"t{number}") == [b"0", b"1", b"2"]
    check_numbers(tmp_path)


def test_strangers_cannot_make_folders_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from um_cffi.recording import _writer

    monkeypatch.setattr(_writer, "_SESSIONS_MAX", 3)
    told = Told()
    with contexts() as (sending, receiving), Recorder(receiving, tmp_path, ".*", on_state=told, **QUICK) as recorder:
        sources = [Source(sending, "news", retain=10) for _ in range(8)]
        for source in sources:
            source.send(b"x", flush=True)
        until(lambda: recorder.stats().messages + recorder.stats().refused == 8)
    assert recorder.stats().refused == 5 and len(told.of("refused")) == 1
    assert len(list((tmp_path / "topics" / "news").iterdir())) == 3


def test_a_segment_may_be_finished_again_after_any_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the file has its name already."""
    import numpy as np

    from um_cffi.binding.tails import PropertyTexts
    from um_cffi.recording._rows import Batches, lost_part

    segment = segments.OpenSegment(tmp_path, "topics/t/s/1", ("t", "s", "i"), "zstd")
    rows_of = Batches("t", "s", "i", PropertyTexts(), None)
    segment.encode(rows_of.of(lost_part(layout.LOSS, 5, 3, 1), np.array([5], np.int64)))
    real = os.rename
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "no")))
        with pytest.raises(OSError, match="no"):
            segment.finish(True)
    first = segment.finish(True)
    assert first == segment.finish(True) and (first.first, first.next, first.lost) == (5, 8, 3)
    assert real is os.rename and [path.name for path in (tmp_path / "topics/t/s").iterdir()] == ["1.arrow"]
