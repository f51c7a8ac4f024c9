"""Recordings for tests: who records, what is in them, and whether all of it is there once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pairs import ROOT, loopback, until

from um_cffi import Context, Source
from um_cffi.recording import Recorder, Recording

QUICK: dict[str, Any] = {"segment_seconds": 0.05, "flush_seconds": 0.01, "sync": "never"}

Row = dict[str, Any]
RECORDER = """
import sys, threading
from pairs import ROOT, loopback, until
from um_cffi.recording import Recorder

settings = {"segment_seconds": 0.1, "flush_seconds": 0.02, "sync": "never"}
with loopback() as ctx, Recorder(ctx, sys.argv[1], ".*", **settings):
    print("ready", flush=True)
    threading.Event().wait()
"""


class Told:
    """What a recorder tells."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []

    def __call__(self, kind: str, text: str) -> None:
        self.all.append((kind, text))

    def of(self, *kinds: str) -> list[str]:
        """The kinds told so far, those of interest."""
        return [kind for kind, _ in self.all if kind in kinds]

    def texts(self, kind: str) -> list[str]:
        return [text for each, text in self.all if each == kind]


@contextlib.contextmanager
def recording(
    folder: Path, pattern: str = ".*", more: Mapping[str, object] | None = None, **settings: Any
) -> Iterator[Recorder]:
    """A recorder in a context of its own."""
    with loopback(more) as ctx, Recorder(ctx, folder, pattern, **{**QUICK, **settings}) as recorder:
        yield recorder


@contextlib.contextmanager
def contexts() -> Iterator[tuple[Context, Context]]:
    with loopback() as sending, loopback() as receiving:
        yield sending, receiving


def rows(folder: Path, topic: str | None = None) -> list[Row]:
    """All rows of finished segments."""
    found: list[Row] = Recording(folder).table(topic).to_pylist()
    return found


def payloads(folder: Path, topic: str | None = None) -> list[bytes]:
    """The messages, in the order of their numbers."""
    return [row["payload"] for row in rows(folder, topic) if row["kind"] == "message"]


def check_numbers(folder: Path) -> None:
    """(source, session, topic, sequence) is unique, whatever happened, and the manifest tells what is in the files."""
    seen = set()
    for row in rows(folder):
        key = (row["source"], row["session"], row["topic"], row["sequence"])
        assert key not in seen, f"{key} is there twice"
        seen.add(key)
    recorded = Recording(folder)
    for segment in recorded.segments():
        table = recorded.read(segment)
        assert (len(table), table["sequence"].to_pylist()[0]) == (segment.rows, segment.first), segment.path
        assert (folder / segment.path).stat().st_size == segment.bytes


def lines(folder: Path) -> list[Row]:
    """The manifest."""
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]


def files(folder: Path, ending: str) -> list[Path]:
    """Files of a recording whose names end so."""
    return sorted(path for path in (folder / "topics").rglob("*") if path.name.endswith(ending))


def all_are_accounted_for(folder: Path, sent: int) -> None:
    """Each number is a message or part of a loss or drop, none both, and nothing is half-visible."""
    check_numbers(folder)
    numbers: list[int] = []
    for row in rows(folder):
        numbers += range(row["sequence"], row["sequence"] + row["count"])
    assert sorted(numbers) == list(range(sent))
    assert files(folder, ".open") == []


class Publishing:
    """Forty messages every `pace` seconds on two topics, all of which are kept, until it is stopped."""

    def __init__(self, ctx: Any, pace: float = 0.005) -> None:
        self._pace = pace
        self._sources = [Source(ctx, f"news.{name}", retain="500 MB") for name in "ab"]
        self.sent = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for _ in range(20):
                for source in self._sources:
                    source.send(b"%d" % self.sent)
                self.sent += 1
            for source in self._sources:
                source.flush()
            time.sleep(self._pace)

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.sent


def killed_after(folder: Path, seconds: float) -> None:
    """A recorder that is killed in the middle of its work."""
    words = [sys.executable, "-c", RECORDER, str(folder)]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}"}
    process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        before = set(files(folder, "")) if (folder / "topics").exists() else set()
        until(lambda: (folder / "topics").exists() and set(files(folder, "")) - before)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
