"""Recordings that nobody had to send: segments written by the recorder's own code, at the speed of the disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from um_cffi.recording import _layout
from um_cffi.recording._manifest import Manifest, Segment, line_of, segment_line
from um_cffi.recording._segment import OpenSegment

SOURCE = "TCP:127.0.0.1:14371:0000abcd[{}]"
BEGAN_NS = 1_700_000_000_000_000_000
STEP_NS = 1_000
Payloads = Callable[[npt.NDArray[np.int64]], pa.Array]


def numbered(size: int = 64) -> Payloads:
    """Payloads of a size that begin with their number."""

    def make(numbers: npt.NDArray[np.int64]) -> pa.Array:
        data = np.zeros((len(numbers), size), np.uint8)
        data[:, :8] = numbers.astype("<i8").view(np.uint8).reshape(-1, 8)
        ends = np.arange(len(numbers) + 1, dtype=np.int32) * size
        return pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(ends), pa.py_buffer(data)])

    return make


@dataclass
class Made:
    """A recording that grows when a test wants it to. Not locked between calls."""

    folder: Path
    compression: str = "lz4"
    batch_rows: int = 10_000
    _serial: int = 0
    _next: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lines([line_of("begin", run=1)])

    def _lines(self, lines: list[object]) -> None:
        manifest = Manifest(self.folder, False)
        try:
            manifest.append(lines)  # type: ignore[arg-type]
        finally:
            manifest.close()

    def add(
        self,
        topic: str,
        rows: int,
        segments: int = 1,
        source: int = 1,
        payloads: Payloads | None = None,
        lost: Sequence[int] = (),
        time_ns: int | None = None,
    ) -> list[Segment]:
        """Rows of a topic from a source, behind those that are there, in so many segments. Numbers in `lost` become
        rows of losses. Times are STEP_NS apart, from `time_ns` on or by the number."""
        name = SOURCE.format(source)
        key = topic, name, _layout.session_of(name, 0)
        begin = self._next.get(key, 0)
        edges = [begin + rows * part // segments for part in range(segments + 1)]
        made = []
        for low, high in zip(edges, edges[1:]):
            self._serial += 1
            stem = f"{_layout.folder_of(*key)}/{low:020d}-1-{self._serial}"
            segment = OpenSegment(self.folder, stem, key, self.compression)
            for at in range(low, high, self.batch_rows):
                numbers = np.arange(at, min(at + self.batch_rows, high), dtype=np.int64)
                times = (BEGAN_NS + numbers * STEP_NS) if time_ns is None else time_ns + (numbers - begin) * STEP_NS
                segment.encode(_batch(key, numbers, times, payloads or numbered(), lost))
            made.append(segment.finish(False))
        self._lines([segment_line(each) for each in made])
        self._next[key] = begin + rows
        return made

    def skip(self, topic: str, numbers: int, source: int = 1) -> None:
        """Leave numbers out, as the fragments of a large message do."""
        name = SOURCE.format(source)
        key = topic, name, _layout.session_of(name, 0)
        self._next[key] = self._next.get(key, 0) + numbers

    def drop(self, segments: Sequence[Segment]) -> None:
        """As retention does."""
        self._lines([line_of("drop", path=each.path, reason="age") for each in segments])
        for each in segments:
            (self.folder / each.path).unlink()


def _batch(
    key: tuple[str, str, str],
    numbers: npt.NDArray[np.int64],
    times: npt.NDArray[np.int64],
    payloads: Payloads,
    lost: Sequence[int],
) -> pa.RecordBatch:
    schema = _layout.schema()
    rows = len(numbers)
    gone = np.isin(numbers, np.array(lost, np.int64)) if len(lost) else np.zeros(rows, bool)
    payload = payloads(numbers)
    if gone.any():
        payload = pa.array([None if lack else each for lack, each in zip(gone, payload.to_pylist())], pa.binary())
    zeros = np.zeros(rows, np.int32)
    columns = {
        "kind": pa.DictionaryArray.from_arrays(gone.astype(np.int8), pa.array(_layout.KINDS)),
        "sequence": pa.array(numbers),
        "count": pa.array(np.ones(rows, np.int64)),
        "flags": pa.array(zeros),
        "timestamp": pa.array(times).cast(schema.field("timestamp").type),
        "payload": payload,
    }
    for name, text in zip(("topic", "source", "session"), key):
        columns[name] = pa.DictionaryArray.from_arrays(zeros, pa.array([text]))
    arrays = [columns[each.name] if each.name in columns else pa.nulls(rows, each.type) for each in schema]
    return pa.record_batch(arrays, schema=schema)
