"""Which task reads what: segments between two offsets, split so that every core has something to do.

Used by the process that plans, on the driver, which also notices here what is not there any more.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from pyspark.sql.datasource import InputPartition

from um_cffi.errors import InvalidOperation
from um_cffi.recording._manifest import Segment
from um_cffi.spark._offsets import Catalog, Flat, Key, payload_lengths

_LOG = logging.getLogger("um_cffi.spark")
_ROW_BYTES = 100  # what a row costs beside its bytes on disk
_SPLIT_MAX = 512 << 20
_SPLIT_MIN = 1 << 20
_OPEN_BYTES = 64 << 10  # what opening a file costs, as bytes
_FRAGMENT_MIN = 400  # bytes of a message in a fragment, at least: see recording/_streams.py


@dataclass(frozen=True)
class Piece:
    """Rows of one segment, from a number to one before another; or messages that are gone, when it has no path."""

    path: str
    topic: str
    source: str
    session: str
    begin: int
    end: int
    rows: int
    """About so many."""
    bytes: int
    """Likewise, in the file."""
    whole: bool = False
    """All of the segment."""
    mixed: bool = True
    """There may be losses in it, and not only messages."""

    @property
    def weight(self) -> int:
        """What reading it costs."""
        return self.bytes + self.rows * _ROW_BYTES

    def describe(self) -> str:
        """Topic, source, session and range."""
        return f"topic {self.topic}, source {self.source}, session {self.session}, {self.begin} to {self.end - 1}"


class Split(InputPartition):  # type: ignore[misc]
    """What one task reads."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        super().__init__(None)
        self.pieces = tuple(pieces)


def lost_text(piece: Piece, recording: str) -> str:
    """What is told of messages that are gone."""
    return (
        f"data loss: {piece.describe()}: {piece.rows} messages are not in recording {recording} any more: "
        "retention removed them before they were read, or somebody deleted a segment"
    )


REMEDY = (
    "Let the recorder keep what is not read yet (um record --consumer NAME with option consumer NAME here, or longer "
    "--retain-seconds and larger --retain-bytes), or set option failOnDataLoss to false: then the query goes on behind "
    "the gap, which is counted"
)


def plan(catalog: Catalog, start: Flat, end: Flat, keep: Callable[[Segment], bool] = lambda _: True) -> list[Split]:
    """The tasks for what lies between two offsets, without segments that are not to be kept.

    InvalidOperation when something of it is gone and option failOnDataLoss is true; otherwise that is logged, and a
    row where losses are asked for.
    """
    pieces: list[Piece] = []
    for key in sorted(end):
        begin = catalog.begin(start, key) if key in catalog.sessions() else start.get(key, end[key])
        if begin < end[key]:
            pieces += _pieces(catalog, key, begin, end[key], keep)
    return split(pieces, catalog.options.min_partitions)


def _pieces(catalog: Catalog, key: Key, begin: int, end: int, keep: Callable[[Segment], bool]) -> Iterator[Piece]:
    session = catalog.sessions().get(key)
    at = begin
    for segment in [] if session is None else session.segments:
        if segment.next <= begin or segment.first >= end:
            continue
        if segment.first > at:
            yield from _gap(catalog, key, at, segment.first, segment)
        at = max(at, segment.next)
        if keep(segment):
            yield _piece(segment, begin, end)
    if at < end:
        yield from _gap(catalog, key, at, end, None)


def _piece(segment: Segment, begin: int, end: int) -> Piece:
    low, high = max(begin, segment.first), min(end, segment.next)
    part = (high - low) / max(segment.next - segment.first, 1)
    names = segment.path, segment.topic, segment.source, segment.session
    whole = (low, high) == (segment.first, segment.next)
    rows, size = round(segment.rows * part), round(segment.bytes * part)
    return Piece(*names, low, high, rows, size, whole, segment.rows != segment.messages)


def _gap(catalog: Catalog, key: Key, begin: int, end: int, behind: Segment | None) -> Iterator[Piece]:
    """Numbers that no segment has. A large message behind them may stand for them."""
    missing = end - begin
    if behind is not None:
        for batch in catalog.store.columns(behind, ("payload",)):
            missing -= int(payload_lengths(batch.column("payload"))[0]) // _FRAGMENT_MIN
            break
    if missing <= 0:
        return
    piece = Piece("", *key, begin, end, missing, 0)
    text = lost_text(piece, catalog.options.recording)
    if catalog.options.fail_on_data_loss:
        raise InvalidOperation(f"{text}. {REMEDY}.")
    _LOG.warning("%s; going on without them", text)
    if catalog.options.losses:
        yield piece


def split(pieces: list[Piece], wanted: int | None) -> list[Split]:
    """Pieces as tasks of the same weight: `wanted` at least, else so many that the cores of this machine are done
    together. A piece that two tasks share is cut where the one ends."""
    total = sum(piece.weight for piece in pieces)
    if not pieces:
        return []
    cores = os.cpu_count() or 1
    most = _SPLIT_MAX if wanted else max(_SPLIT_MIN, min(total // cores, _SPLIT_MAX))
    count = max(wanted or 1, -(-total // most))
    if not wanted and count > cores:
        count = -(-count // cores) * cores
    splits: list[list[Piece]] = [[] for _ in range(count)]
    at = 0
    for piece in pieces:
        for part in _cut(piece, at, total / count):
            splits[min(int((at + part.weight / 2) * count / total), count - 1)].append(part)
            at += part.weight
    return [Split(each) for each in splits if each]


def _cut(piece: Piece, at: int, each: float) -> Iterator[Piece]:
    """A piece, whose weight begins `at`, in parts that end where tasks of a weight do; ends that are nearer to those of
    the piece than opening a file costs are left out."""
    near = min(_OPEN_BYTES, each / 4)
    first, last = int((at + near) // each) + 1, int((at + piece.weight - near) // each)
    span = piece.end - piece.begin
    inner = {piece.begin + round(span * (k * each - at) / piece.weight) for k in range(first, last + 1)}
    inner = inner - {piece.begin, piece.end} if piece.path else set()
    if not inner:
        yield piece
        return
    edges = [piece.begin, *sorted(inner), piece.end]
    for low, high in zip(edges, edges[1:]):
        rows, size = round(piece.rows * (high - low) / span), round(piece.bytes * (high - low) / span)
        yield replace(piece, begin=low, end=high, rows=rows, bytes=size, whole=False)
