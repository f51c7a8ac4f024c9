"""Recordings for tests: who records, what is in them, and whether all of it is there once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pairs import loopback

from um_cffi import Context
from um_cffi.recording import Recorder, Recording

QUICK: dict[str, Any] = {"segment_seconds": 0.05, "flush_seconds": 0.01, "sync": "never"}

Row = dict[str, Any]


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
