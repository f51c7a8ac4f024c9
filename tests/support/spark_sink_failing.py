"""Data sources for tests of the sink: tasks that fail when they have done everything, a task that is so slow that
Spark starts a copy of it, and processes that are killed in the middle of a commit. Spark's workers import this module.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from spark_sinks import HANG

from um_cffi.spark import UltraMessagingDataSource, _publishing, _sink
from um_cffi.spark._numbers import Batch, NumberBook

POINTS = ("begun", "half", "published", "finished")
SLOW = 1  # the partition whose task has a speculative copy


class FailingWriter(_sink._BatchWriter):
    """The first attempt of each task fails when it has done everything, but for the task of the partition SLOW: its
    attempts wait until there are two, one of which is Spark's speculation, and end when both have done everything."""

    def write(self, iterator: Iterator[Any]) -> _sink.Done:
        task = TaskContext.get()
        partition, attempt = task.partitionId(), task.attemptNumber()
        marks = Path(self._options.state).with_name(f"marks of {self._options.topic}")
        if partition == SLOW:
            meet(marks / "began", attempt)
        done = super().write(iterator)
        if partition == SLOW:
            meet(marks / "wrote", attempt)
        elif attempt == 0:
            mark(marks / "failed", partition)
            raise RuntimeError("this attempt fails on purpose")
        return done


def mark(place: Path, number: int) -> None:
    """Write down that something has happened."""
    place.mkdir(parents=True, exist_ok=True)
    (place / str(number)).touch()


def meet(place: Path, attempt: int) -> None:
    """Until two attempts are here."""
    mark(place, attempt)
    end = time.monotonic() + HANG
    while len(list(place.iterdir())) < 2:
        assert time.monotonic() < end, f"{place}: Spark makes no speculative copy"
        time.sleep(0.02)


class FailingSource(UltraMessagingDataSource):
    """format("failing")"""

    @classmethod
    def name(cls) -> str:
        return "failing"

    def writer(self, schema: Any, overwrite: bool) -> Any:
        made = _sink.make_writer(self.options, schema, overwrite)
        return FailingWriter(made._options, made._batch)


class KilledSource(UltraMessagingDataSource):
    """format("killed"): what the file `kill` in the folder of the environment's KILL_FOLDER says happens once."""

    @classmethod
    def name(cls) -> str:
        return "killed"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        arm(Path(os.environ["KILL_FOLDER"]))
        return super().streamWriter(schema, overwrite)


def arm(folder: Path) -> None:
    """Kill at the point, and in the batch, that the file `kill` names. Spark uses this process again: armed once."""
    if getattr(arm, "done", False):
        return
    arm.done = True  # type: ignore[attr-defined]
    begin, finish, publish = NumberBook.begin, NumberBook.finish, _publishing.Publisher.publish
    now: list[int] = []

    def at(point: str, batch: int) -> bool:
        try:
            return (folder / "kill").read_text() == f"{point} {batch}"
        except FileNotFoundError:
            return False

    def killed_begin(self: Any, batch: Batch, *rest: Any) -> Any:
        begun = begin(self, batch, *rest)
        now[:] = [batch.number]
        if at("begun", batch.number):
            die(folder)
        return begun

    def killed_publish(self: Any, files: Any, first: Any, options: Any, sent: Any) -> None:
        if at("half", now[0]):
            publish(self, list(files)[:1], first, options, sent)
            die(folder)
        publish(self, files, first, options, sent)
        if at("published", now[0]):
            die(folder)

    def killed_finish(self: Any, batch: Batch) -> None:
        finish(self, batch)
        if at("finished", batch.number):
            die(folder)

    NumberBook.begin, NumberBook.finish = killed_begin, killed_finish  # type: ignore[method-assign, assignment]
    _publishing.Publisher.publish = killed_publish  # type: ignore[method-assign]


def die(folder: Path) -> None:
    """All processes of the driver end at once, this one last."""
    (folder / "kill").rename(folder / "killed")
    pids = folder / "pids"
    for pid in pids.read_text().split() if pids.exists() else ():
        os.kill(int(pid), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
