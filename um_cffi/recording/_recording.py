"""Recording: what those read who do not record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from um_cffi.errors import InvalidArgument
from um_cffi.recording import _consumers, _layout
from um_cffi.recording._manifest import Segment, parse

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]


class Recording:
    """The recording in a folder, to be read, also while it is made by another thread or process.

    InvalidArgument when `folder` holds no recording, or one of a layout that is not known. Any thread, one at a time.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        if not (self._folder / _layout.MANIFEST).exists():
            raise InvalidArgument(f"{self._folder} is not a recording: it has no {_layout.MANIFEST}")
        self.segments()

    def __repr__(self) -> str:
        return f"<Recording in {self._folder}>"

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._folder

    def segments(self) -> list[Segment]:
        """The finished segments that there are now, those of a session in the order of their numbers. OSError."""
        state, _ = parse((self._folder / _layout.MANIFEST).read_bytes())
        return sorted(
            state.segments.values(), key=lambda each: (each.topic, each.source, each.session, each.first, each.next)
        )

    def read(self, segment: Segment) -> pa.Table:
        """The rows of a segment, mapped into memory. FileNotFoundError when retention has removed it meanwhile."""
        arrow = _layout.arrow()
        with arrow.memory_map(str(self._folder / segment.path)) as source:
            return arrow.ipc.open_file(source).read_all()

    def batches(self, segment: Segment) -> Iterator[pa.RecordBatch]:
        """The rows of a segment, one record batch after the other. FileNotFoundError as with read()."""
        arrow = _layout.arrow()
        with arrow.memory_map(str(self._folder / segment.path)) as source:
            reader = arrow.ipc.open_file(source)
            for at in range(reader.num_record_batches):
                yield reader.get_batch(at)

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
