"""A recorder on a disk that is slow, and refuses now and then: it says so, counts what it drops, and goes on."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pairs import HANG, SOAK, until
from recordings import QUICK, Told, all_are_accounted_for, contexts, rows
from slow_disk import Disk, slow_disk

from um_cffi import Source
from um_cffi.recording import Recorder, Recording

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with slow_disk(tmp_path) as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield found


class Onlooker:
    """Looks at what readers see, behind the disk, again and again: nothing of it is ever half there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stop = threading.Event()
        self.looks = 0
        self.wrong: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        for path in (self._folder / "topics").rglob("*.arrow"):
            with pa.ipc.open_file(path.read_bytes()) as file:
                file.read_all().validate(full=True)
        recorded = Recording(self._folder)
        for segment in recorded.segments():
            if len(recorded.read(segment)) != segment.rows:
                self.wrong.append(segment.path)

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            try:
                self._look()
                self.looks += 1
            except Exception as error:
                self.wrong.append(repr(error))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self.wrong == [] and self.looks > 0


def test_a_disk_that_is_slow_and_refuses_is_told_and_recording_goes_on(disk: Disk, tmp_path: Path) -> None:
    told = Told()
    settings = {**QUICK, "compression": "none", "queue_bytes": 200_000, "sync": "batch"}
    with contexts() as (sending, receiving):
        source = Source(sending, "news")
        with Recorder(receiving, disk.folder / "r", ".*", on_state=told, **settings) as recorder:
            source.wait_receivers(1, HANG)
            sent = 0

            def send_until_told(kind: str, times: int) -> None:
                nonlocal sent
                end = time.monotonic() + HANG
                while len(told.of(kind)) < times:
                    assert time.monotonic() < end, (kind, times, told.all, recorder.stats())
                    source.send(bytes(1000), flush=True)
                    sent += 1
                    time.sleep(0.0005)

            def recover() -> None:
                nonlocal sent
                disk.delay(0)
                disk.refuse(0)
                until(lambda: recorder.stats().queued_bytes == 0)
                source.send(b"behind what was dropped", flush=True)
                sent += 1
                until(lambda: recorder.stats().state == "recording")
                until(lambda: recorder.stats().messages + recorder.stats().dropped == sent)

            source.send(b"first", flush=True)
            sent += 1
            until(lambda: recorder.stats().segments == 1)
            onlooker = Onlooker(tmp_path / "behind" / "r")
            for turn, number in enumerate((0, errno.ENOSPC, errno.EROFS, errno.EIO) * (10 if SOAK else 1)):
                disk.delay(0.05)
                if number:
                    refusals = len(told.of("disk"))
                    disk.refuse(number)
                    send_until_told("disk", refusals + 1)
                    assert told.texts("disk")[-1].endswith(os.strerror(number))
                send_until_told("dropping", turn + 1)
                recover()
            until(lambda: onlooker.looks > 0)
            onlooker.stop()
        stats = recorder.stats()
    assert stats.dropped > 0 and stats.lost == 0 and stats.messages + stats.dropped == sent
    assert sum(row["count"] for row in rows(disk.folder / "r") if row["kind"] == "dropped") == stats.dropped
    all_are_accounted_for(disk.folder / "r", sent)
