"""A recording where it lies: a folder, or a folder of any file system that pyarrow has a URL for.

Used by the process that plans, which looks at the manifest, and by executors, which open segments. Not to be sent from
one to the other: each makes its own of the text of option `recording`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from um_cffi.errors import InvalidArgument
from um_cffi.recording import _consumers, _layout
from um_cffi.recording._manifest import Segment, State, parse
from um_cffi.spark._needs import need_arrow

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
REMEDY = "give the folder that `um record -o` writes, as the driver and all executors see it"


class Store:
    """One recording. InvalidArgument for a URL of a file system that is not known. One thread at a time."""

    def __init__(self, recording: str) -> None:
        self.name = recording
        self._pa = need_arrow()
        self._folder: Path | None = None
        self._fs: Any = None
        self._base = ""
        self.changes = 0
        """How often the manifest has been found to be another."""
        self._state = State()
        self._file: tuple[int, int] | None = None
        self._end = 0
        if _URL.match(recording):
            self._connect(recording)
        else:
            self._folder = Path(recording)

    def _connect(self, url: str) -> None:
        from pyarrow import fs

        try:
            self._fs, self._base = fs.FileSystem.from_uri(url)
        except (self._pa.ArrowException, OSError, ValueError) as error:
            raise InvalidArgument(f"option recording {url}: no file system of pyarrow: {error}; {REMEDY}") from None
        if isinstance(self._fs, fs.LocalFileSystem):
            self._folder = Path(self._base)

    # -- the manifest --

    def state(self) -> State:
        """What the manifest says now. InvalidArgument when there is no recording; OSError."""
        try:
            if self._folder is None:
                self._read(False, self._remote_manifest())
            else:
                self._follow(self._folder / _layout.MANIFEST)
        except (FileNotFoundError, NotADirectoryError):
            raise InvalidArgument(self._missing()) from None
        except OSError as error:
            raise InvalidArgument(f"option recording {self.name}: {error}; {REMEDY}") from None
        return self._state

    def _follow(self, path: Path) -> None:
        """Read what was appended; all of it when it was written anew."""
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            same = about.st_dev, about.st_ino
            if self._file != same or about.st_size < self._end:
                self._file, self._end, self._state = same, 0, State()
            if self._end < about.st_size or self._end == 0:
                file.seek(self._end)
                self._end += self._read(self._end > 0, file.read())

    def _read(self, more: bool, data: bytes) -> int:
        """Take lines into account, all there are or `more` of them; the length of the whole ones."""
        end = data.rfind(b"\n") + 1
        try:
            found, _ = (self._state, 0) if more else parse(data[:end])
        except InvalidArgument as error:
            raise InvalidArgument(f"option recording {self.name}: {error}") from None
        if more:
            for text in data[:end].splitlines():
                with contextlib.suppress(ValueError):
                    line = json.loads(text)
                    if isinstance(line, dict):
                        found.add(line)
        self._state = found
        self.changes += 1
        return end

    def _missing(self) -> str:
        return f"option recording {self.name}: no recording, it has no {_layout.MANIFEST}; {REMEDY}"

    def _remote_manifest(self) -> bytes:
        with self._fs.open_input_file(self._path(_layout.MANIFEST)) as file:
            return bytes(file.read())

    def _path(self, name: str) -> str:
        return str(PurePosixPath(self._base) / name)

    # -- segments --

    @contextmanager
    def opened(self, path: str) -> Iterator[Any]:
        """A segment as a file of Arrow, mapped into memory where it can be. FileNotFoundError: it was dropped."""
        if self._folder is not None:
            with self._pa.memory_map(str(self._folder / path)) as file:
                yield file
        else:
            with self._fs.open_input_file(self._path(path)) as file:
                yield file

    def columns(self, segment: Segment, names: tuple[str, ...]) -> Iterator[Any]:
        """Record batches of some columns of a segment, in the order of the file; nothing else is decompressed."""
        included = [_layout.schema().get_field_index(name) for name in names]
        with self.opened(segment.path) as file:
            reader = self._pa.ipc.open_file(file, options=self._pa.ipc.IpcReadOptions(included_fields=included))
            for at in range(reader.num_record_batches):
                yield reader.get_batch(at)

    # -- consumers --

    def commit(self, consumer: str, offsets: _consumers.Offsets) -> None:
        """Write down how far a consumer has read. InvalidArgument for a wrong name, OSError."""
        if self._folder is not None:
            _consumers.commit(self._folder, consumer, offsets)
            return
        if not _consumers._NAME.fullmatch(consumer):
            _consumers.commit(Path(os.devnull), consumer, offsets)  # raises, with its own words
        text = json.dumps({"version": _layout.VERSION, "consumer": consumer, "offsets": offsets})
        folder = self._path(_layout.CONSUMERS)
        self._fs.create_dir(folder)
        draft = f"{folder}/.{consumer}.json.{os.getpid()}.new"
        with self._fs.open_output_stream(draft) as file:
            file.write(text.encode())
        self._fs.move(draft, f"{folder}/{consumer}.json")
