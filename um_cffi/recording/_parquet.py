"""A recording as files of Parquet: once, or as it grows."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Callable

from um_cffi.recording import _layout
from um_cffi.recording._manifest import Segment
from um_cffi.recording._recording import Recording

_LOOK_SECONDS = 0.5  # between looks at what has been finished


def to_parquet(folder: str | os.PathLike[str], out: str | os.PathLike[str], topic: str | None = None) -> list[Path]:
    """Write the finished segments of the recording in `folder`, or those of one `topic`, as files of Parquet below the
    folder `out`, with the same names and columns; the files. A file that is there already is left alone, so that it may
    be done again while the recording grows; a segment that retention has removed meanwhile is left out. `folder` may be
    a URL, as with Recording. InvalidArgument, OSError.
    """
    recording = Recording(folder)
    segments = [each for each in recording.segments() if topic is None or each.topic == topic]
    made = [_write(recording, Path(out), segment) for segment in segments]
    return [path for path in made if path is not None]


def _write(recording: Recording, out: Path, segment: Segment) -> Path | None:
    """Write one segment; None: it is there already, or its own file is not there any more. OSError."""
    import pyarrow.parquet

    path = out / Path(segment.path).with_suffix(".parquet")
    if path.exists():
        return None
    try:
        table = recording.read(segment)
    except FileNotFoundError:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        pyarrow.parquet.write_table(table, draft, compression="zstd")
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return path


class ParquetWriter:
    """Writes what a Recorder finishes in `folder` as Parquet below `out` too, by a thread of its own, until close().

    What a disk refuses is told once by `tell(text)` and tried again. Any thread.
    """

    def __init__(
        self, folder: str | os.PathLike[str], out: str | os.PathLike[str], tell: Callable[[str], object]
    ) -> None:
        self._recording = Recording(folder)
        self._out = Path(out)
        self._tell = tell
        self._done: set[str] = set()
        self._trouble = ""
        self.files = 0
        """Written so far."""
        self._seen = (-1, -1)
        self._stopping = threading.Event()
        self._out.mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._run, name="um-recorder-parquet", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            self._attempt()

    def _attempt(self) -> None:
        try:
            self._write_new()
        except OSError as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                self._tell(f"cannot write Parquet: {error}")
            return
        if self._trouble:
            self._trouble = ""
            self._tell("Parquet is written again")

    def _write_new(self) -> None:
        found = os.stat(self._recording.folder / _layout.MANIFEST)
        if (found.st_ino, found.st_size) == self._seen:
            return
        segments = self._recording.segments()
        self._done &= {each.path for each in segments}
        for segment in segments:
            if segment.path not in self._done:
                self.files += _write(self._recording, self._out, segment) is not None
                self._done.add(segment.path)
        self._seen = found.st_ino, found.st_size

    def close(self) -> None:
        """Write what is left, after the recorder has been closed."""
        self._stopping.set()
        self._thread.join()
        self._attempt()
