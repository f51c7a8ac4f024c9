"""Recording: what those read who do not record."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from um_cffi.errors import InvalidArgument
from um_cffi.recording import _consumers, _layout
from um_cffi.recording._manifest import Segment, parse

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class Recording:
    """The recording in a folder, to be read, also while it is made by another thread or process.

    `folder` is a path, or a URL that pyarrow.fs knows (file://, s3://, hdfs:// and others), of a folder that the
    recording is made in or copied to; `filesystem`, a pyarrow.fs.FileSystem, says where a path is. InvalidArgument when
    it holds no recording, one of a layout that is not known, or the URL is of no such file system. Any thread, one at
    a time.
    """

    def __init__(self, folder: str | os.PathLike[str], *, filesystem: Any = None) -> None:
        self._files: Any = filesystem
        self._name = os.fspath(folder)
        self._place = self._name.rstrip("/") or "/"
        if filesystem is None and _URL.match(self._name):
            self._files, self._place = _file_system(self._name)
        self._folder = Path(self._place)
        self.segments()

    def __repr__(self) -> str:
        return f"<Recording in {self._name}>"

    @property
    def folder(self) -> Path:
        """Where it is; of a URL, the path in its file system."""
        return self._folder

    def _manifest(self) -> bytes:
        try:
            if self._files is None:
                return (self._folder / _layout.MANIFEST).read_bytes()
            with self._files.open_input_stream(f"{self._place}/{_layout.MANIFEST}") as stream:
                return bytes(stream.read())
        except (FileNotFoundError, NotADirectoryError):
            raise InvalidArgument(f"{self._name} is not a recording: it has no {_layout.MANIFEST}") from None

    def _open(self, segment: Segment) -> Any:
        if self._files is None:
            return _layout.arrow().memory_map(str(self._folder / segment.path))
        return self._files.open_input_file(f"{self._place}/{segment.path}")

    @contextlib.contextmanager
    def _telling(self, segment: Segment) -> Iterator[None]:
        """What pyarrow says of a damaged file, with the name of the file."""
        try:
            yield
        except (_layout.arrow().ArrowException, ValueError, OSError) as error:  # what a file system says has a number
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise InvalidArgument(f"{self._name}: the segment {segment.path} is damaged: {error}") from None

    def segments(self) -> list[Segment]:
        """The finished segments that there are now, those of a session in the order of their numbers. OSError."""
        state, _ = parse(self._manifest())
        return sorted(
            state.segments.values(), key=lambda each: (each.topic, each.source, each.session, each.first, each.next)
        )

    def read(self, segment: Segment) -> pa.Table:
        """The rows of a segment, mapped into memory. FileNotFoundError when retention has removed it meanwhile;
        InvalidArgument when the file is damaged."""
        arrow = _layout.arrow()
        with self._open(segment) as source, self._telling(segment):
            table = arrow.ipc.open_file(source).read_all()
            table.validate(full=True)
            return table

    def batches(self, segment: Segment) -> Iterator[pa.RecordBatch]:
        """The rows of a segment, one record batch after the other. Errors as with read()."""
        arrow = _layout.arrow()
        with self._open(segment) as source:
            with self._telling(segment):
                reader = arrow.ipc.open_file(source)
            for at in range(reader.num_record_batches):
                with self._telling(segment):
                    batch = reader.get_batch(at)
                    batch.validate(full=True)
                yield batch

    def table(self, topic: str | None = None) -> pa.Table:
        """All rows of finished segments, or those of one topic, in the order of segments()."""
        arrow = _layout.arrow()
        tables: list[Any] = [
            self.read(segment) for segment in self.segments() if topic is None or segment.topic == topic
        ]
        tables = [_plain(each) for each in tables]
        return arrow.concat_tables(tables) if tables else _plain(_layout.schema().empty_table())

    def offsets(self) -> dict[str, dict[str, dict[str, int]]]:
        """The next sequence number by topic, source and session: what commit() takes of a reader who has read all."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for segment in self.segments():
            sessions = found.setdefault(segment.topic, {}).setdefault(segment.source, {})
            sessions[segment.session] = max(sessions.get(segment.session, 0), segment.next)
        return found


def _file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path there. InvalidArgument."""
    _layout.arrow()
    from pyarrow import fs  # type: ignore[import-untyped,import-not-found,unused-ignore]

    try:
        files, path = fs.FileSystem.from_uri(url)
    except (ValueError, OSError) as error:
        raise InvalidArgument(f"{url} is not a recording: no file system of pyarrow: {error}") from None
    return files, str(path).rstrip("/") or "/"


def _plain(table: pa.Table) -> pa.Table:
    """With texts instead of dictionaries, which tables of several segments would have to agree on."""
    arrow = _layout.arrow()
    for at, field in enumerate(table.schema):
        if arrow.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(arrow.string()))
    return table


def commit(folder: str | os.PathLike[str], consumer: str, offsets: _consumers.Offsets) -> None:
    """Write down that a `consumer` has read the recording in `folder` up to `offsets`, and does not need that any more.

    Offsets are next sequence numbers by topic, source and session, as Recording.offsets() gives them. The recorder that
    was told of the consumer (`consumers`) removes segments that all its consumers have read. What is committed is there
    after a power cut. InvalidArgument for a wrong name or wrong offsets, OSError. Any thread and process; of one
    consumer one at a time.
    """
    _consumers.commit(Path(folder), consumer, offsets)


def committed(folder: str | os.PathLike[str], consumer: str) -> dict[str, dict[str, dict[str, int]]] | None:
    """What a consumer has committed; None: nothing so far. InvalidArgument when its file is damaged, OSError."""
    return _consumers.committed(Path(folder), consumer)
