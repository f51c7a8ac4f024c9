"""One segment: a file of Arrow's IPC format while it grows, when it is finished, and after a crash.

An open segment is what such a file is before its footer: whole record batches behind each other, perhaps with a torn
one at the end. Finishing it writes the footer and gives it its final name, which no unfinished file ever has. Used by
one thread at a time.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from um_cffi.recording import _layout
from um_cffi.recording._manifest import Segment

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]


class _Written(io.RawIOBase):
    """What Arrow writes, until it is taken to be put into the file."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._end = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._end

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._end += len(part)
        return len(part)

    def take(self) -> bytes:
        """What has been written since it was taken last."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


@dataclass
class Tally:
    """What the rows of a segment amount to."""

    first: int = 0
    next: int = 0
    rows: int = 0
    messages: int = 0
    lost: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a record batch that is not empty."""
        import numpy as np

        sequence = batch.column("sequence").to_numpy()
        count = batch.column("count").to_numpy()
        kind = batch.column("kind").indices.to_numpy()
        time = batch.column("timestamp").cast("int64").to_numpy()
        lost = (kind == _layout.LOSS) | (kind == _layout.DROPPED)
        first, first_ns, last_ns = int(sequence.min()), int(time.min()), int(time.max())
        self.first = min(self.first, first) if self.rows else first
        self.first_ns = min(self.first_ns, first_ns) if self.rows else first_ns
        self.next = max(self.next, int((sequence + count).max()))
        self.last_ns = max(self.last_ns, last_ns)
        self.rows += len(batch)
        self.messages += int(np.count_nonzero(kind == _layout.MESSAGE))
        self.lost += int(count[lost].sum())


def _options(compression: str) -> Any:
    pa = _layout.arrow()
    return pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression, use_threads=False)


@dataclass
class OpenSegment:
    """A segment that grows. Every call may be made again after an OSError, and goes on where it had come to."""

    folder: Path
    """Of the recording."""
    stem: str
    """Path of the file without its ending, relative to the folder."""
    names: tuple[str, str, str]
    """Topic, source, session."""
    compression: str
    tally: Tally = field(default_factory=Tally)
    size: int = 0
    begun: float = 0.0
    """By the monotonic clock, seconds."""
    _made: bool = False
    _written: _Written = field(default_factory=_Written)
    _writer: Any = None
    _pending: bytes = b""
    _footed: bool = False
    _renamed: bool = False

    def encode(self, batch: pa.RecordBatch) -> None:
        """Add a record batch in memory; store() puts it into the file."""
        if self._writer is None:
            self._writer = _layout.arrow().ipc.new_file(self._written, batch.schema, options=_options(self.compression))
        self._writer.write_batch(batch)
        self.tally.add(batch)
        self._pending += self._written.take()

    def store(self, sync: bool = False) -> None:
        """Put what was added into the file, which is made with the first part. OSError: it may be called again.

        The file is not held open: strangers can make more streams than a process may have descriptors.
        """
        descriptor = self._open()
        try:
            _layout.write_all(descriptor, self._pending, self.size)
            if sync:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        self.size += len(self._pending)
        self._pending = b""

    def _open(self) -> int:
        path = self.folder / (self.stem + _layout.OPEN)
        if self._made:
            return os.open(path, os.O_WRONLY)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._made = True
        return descriptor

    @property
    def reached(self) -> int:
        """Bytes of it, in the file and not yet there."""
        return self.size + len(self._pending)

    def finish(self, sync: bool) -> Segment:
        """Write the footer and give the file its final name. OSError: it may be called again."""
        if not self._renamed:
            if not self._footed:
                self._writer.close()
                self._pending += self._written.take()
                self._footed = True
            self.store(sync)
            os.rename(self.folder / (self.stem + _layout.OPEN), self.folder / (self.stem + _layout.FINISHED))
            self._renamed = True
        return Segment(self.stem + _layout.FINISHED, *self.names, bytes=self.size, **vars(self.tally))

    def image(self) -> bytes:
        """All of it as a finished file, of one that was never put into a file."""
        self._writer.close()
        return self._pending + self._written.take()


@dataclass(frozen=True)
class Recovered:
    """What was found in a file that the manifest does not list."""

    names: tuple[str, str, str]
    tally: Tally
    batches: list[Any]
    whole: bool
    """Nothing is torn: the file is finished."""


def examine(data: bytes) -> Recovered | None:
    """The whole record batches of an open or finished segment; None when there is none. `data` is all of the file."""
    pa = _layout.arrow()
    if len(data) <= len(_layout.MAGIC):
        return None
    batches: list[Any] = []
    whole = True
    try:
        reader = pa.ipc.open_stream(pa.py_buffer(data)[len(_layout.MAGIC) :])
        if not reader.schema.equals(_layout.schema()):
            return None
        while True:
            batch = reader.read_next_batch()
            batch.validate(full=True)
            if len(batch):
                batches.append(batch)
    except StopIteration:
        pass
    except (pa.ArrowException, OSError, ValueError):
        whole = False
    tally = Tally()
    try:
        for batch in batches:
            tally.add(batch)
        names = [batches[0].column(name)[0].as_py() for name in ("topic", "source", "session")] if batches else []
    except (pa.ArrowException, ValueError, TypeError):
        return None
    if not batches or not all(isinstance(name, str) for name in names):
        return None
    if whole:
        try:
            pa.ipc.open_file(pa.py_buffer(data))
        except (pa.ArrowException, OSError, ValueError):
            whole = False
    return Recovered((names[0], names[1], names[2]), tally, batches, whole)


def rewrite(folder: Path, stem: str, found: Recovered, compression: str) -> Segment:
    """A finished segment of the whole record batches that an open one had; OSError: it is as it was."""
    segment = OpenSegment(folder, stem, found.names, compression)
    for batch in found.batches:
        segment.encode(batch)
    data = segment.image()
    path = stem + _layout.FINISHED
    _layout.replace_file(folder / path, data)
    (folder / (stem + _layout.OPEN)).unlink()
    return Segment(path, *found.names, bytes=len(data), **vars(found.tally))
