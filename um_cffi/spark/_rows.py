"""Segments as the record batches that Spark takes. Runs on executors; what it is made of was checked on the driver.

Numbers, flags and payloads are handed on where they lie in the memory that a segment was decompressed into, or that its
file is mapped to. Names are the same in all rows of a segment, and made once for many record batches.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from um_cffi.errors import InvalidArgument, InvalidOperation
from um_cffi.recording import _layout
from um_cffi.spark._columns import micros, repeated, values
from um_cffi.spark._definition import Definition
from um_cffi.spark._needs import need_arrow
from um_cffi.spark._payloads import NotDecoded
from um_cffi.spark._planning import REMEDY, Piece, lost_text
from um_cffi.spark._store import Store
from um_cffi.spark._worker import spare_collections

_LOG = logging.getLogger("um_cffi.spark")
_ROWS_SMALL = 4096  # record batches with fewer rows are put together
_ROWS_LARGE = 32768  # with more are cut
_NAMES = ("topic", "source", "session")
MISSING = "missing"


@dataclass(frozen=True)
class Shape:
    """What record batches are to look like. Sent to executors."""

    recording: str
    names: tuple[str, ...]
    """The columns, in their order."""
    schema: Any
    """Their types, a schema of Arrow."""
    definition: Definition | None
    losses: bool
    fail_on_data_loss: bool


class Maker:
    """Makes record batches of pieces of segments; for one task, by its thread."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._pa = need_arrow()
        spare_collections()
        self._store = Store(shape.recording)
        self._payloads = None if shape.definition is None else shape.definition.payloads()
        fields = set() if shape.definition is None else {name for name, _ in shape.definition.fields()}
        self._fields = {field.name: field.type for field in shape.schema if field.name in fields}
        """The columns that payloads make, and their types."""
        self._same: dict[str, Any] = {}
        columns = _layout.schema()
        needed = [name for name in shape.names if columns.get_field_index(name) >= 0 and name not in _NAMES]
        if "timestamp_ns" in shape.names:
            needed.append("timestamp")
        if self._fields:
            needed.append("payload")
        self._included = {columns.get_field_index(name) for name in (*needed, "sequence")}
        self._kind = columns.get_field_index("kind")

    def batches(self, pieces: tuple[Piece, ...]) -> Iterator[Any]:
        """The rows of pieces. InvalidOperation when a segment is gone and that is not to be passed over."""
        for piece in pieces:
            if not piece.path:
                yield self._missing(piece)
                continue
            try:
                yield from self._of_segment(piece)
            except FileNotFoundError:
                text = lost_text(piece, self._shape.recording)
                if self._shape.fail_on_data_loss:
                    raise InvalidOperation(f"{text}. {REMEDY}.") from None
                _LOG.warning("%s; going on without them", text)
                if self._shape.losses:
                    yield self._missing(piece)
            except (self._pa.ArrowException, OSError) as error:
                raise InvalidOperation(
                    f"segment {piece.path} of recording {self._shape.recording}, {piece.describe()}, cannot be read: "
                    f"{error}"
                ) from error

    def _of_segment(self, piece: Piece) -> Iterator[Any]:
        small: list[Any] = []
        rows = 0
        for batch in self._cut(piece):
            if len(batch) < _ROWS_SMALL:
                small.append(batch)
                rows += len(batch)
                if rows < _ROWS_SMALL:
                    continue
                batch = self._joined(small)
                small, rows = [], 0
            elif small:
                yield self._made(self._joined(small), piece)
                small, rows = [], 0
            for at in range(0, len(batch), _ROWS_LARGE):
                yield self._made(batch.slice(at, _ROWS_LARGE), piece)
        if small:
            yield self._made(self._joined(small), piece)

    def _joined(self, batches: list[Any]) -> Any:
        if len(batches) == 1:
            return batches[0]
        return self._pa.Table.from_batches(batches).combine_chunks().to_batches()[0]

    def _cut(self, piece: Piece) -> Iterator[Any]:
        """What a segment has between the numbers of a piece, without what is not delivered."""
        included = self._included | {self._kind} if piece.mixed else self._included
        with self._store.opened(piece.path) as file:
            reader = self._reader(file, sorted(included))
            for at in self._wanted(file, reader.num_record_batches, piece):
                batch = reader.get_batch(at)
                if not piece.whole:
                    numbers = values(batch.column("sequence"), np.int64)
                    first = int(np.searchsorted(numbers, piece.begin))
                    last = int(np.searchsorted(numbers, piece.end))
                    batch = batch.slice(first, last - first)
                if piece.mixed and not self._shape.losses and len(batch):
                    messages = values(batch.column("kind").indices, np.int8) == _layout.MESSAGE
                    if not messages.all():
                        batch = batch.filter(self._pa.array(messages))
                if len(batch):
                    yield batch

    def _reader(self, file: Any, included: list[int]) -> Any:
        """A reader of the columns that are needed. Where nothing is compressed all of them are there without a copy,
        while a choice of columns makes Arrow copy what is chosen."""
        ipc = self._pa.ipc
        plain = ipc.open_file(file, options=ipc.IpcReadOptions(use_threads=False))
        if plain.num_record_batches and isinstance(file, self._pa.MemoryMappedFile):
            file.seek(0)
            mapped = file.read_buffer()
            numbers = plain.get_batch(0).column("sequence").buffers()[1]
            if mapped.address <= numbers.address < mapped.address + mapped.size:
                return plain
        return ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=included, use_threads=False))

    def _wanted(self, file: Any, count: int, piece: Piece) -> Iterator[int]:
        """The record batches that have numbers of a piece: of the others only the numbers are looked at."""
        if piece.whole:
            yield from range(count)
            return
        numbers = [_layout.schema().get_field_index("sequence")]
        options = self._pa.ipc.IpcReadOptions(included_fields=numbers, use_threads=False)
        reader = self._pa.ipc.open_file(file, options=options)

        def first_of(at: int) -> int:
            return int(reader.get_batch(at).column(0)[0].as_py())

        low, high = 0, count - 1
        while low < high:  # the last one that does not begin behind the piece's beginning
            middle = (low + high + 1) // 2
            low, high = (middle, high) if first_of(middle) <= piece.begin else (low, middle - 1)
        for at in range(low, count):
            if at > low and first_of(at) >= piece.end:
                return
            yield at

    # -- columns --

    def _made(self, batch: Any, piece: Piece) -> Any:
        decoded = self._decoded(batch, piece) if self._fields else {}
        arrays = [
            self._column(name, field.type, batch, piece, decoded)
            for name, field in zip(self._shape.names, self._shape.schema)
        ]
        return self._pa.RecordBatch.from_arrays(arrays, schema=self._shape.schema)

    def _column(self, name: str, kind: Any, batch: Any, piece: Piece, decoded: dict[str, Any]) -> Any:
        if name in decoded:
            return decoded[name]
        if name in _NAMES:
            return self._repeated(getattr(piece, name), len(batch))
        if name == "timestamp":
            return micros(batch.column("timestamp"), kind)
        if name == "timestamp_ns":
            return batch.column("timestamp").view("int64")
        column = batch.column(name)
        return column.cast(kind) if column.type != kind else column

    def _repeated(self, text: str, rows: int) -> Any:
        """The same text in so many rows."""
        known = self._same.get(text)
        if known is None or len(known) < rows:
            if len(self._same) > len(_NAMES):
                self._same.clear()
            known = self._same[text] = repeated(text, max(rows, _ROWS_SMALL))
        return known.slice(0, rows)

    def _decoded(self, batch: Any, piece: Piece) -> dict[str, Any]:
        """The fields of payloads; null in rows that have none."""
        assert self._payloads is not None
        payload = batch.column("payload")
        places: Any = None
        if payload.null_count:
            valid = payload.is_valid().to_numpy(zero_copy_only=False)
            order = np.cumsum(valid) - 1
            places = self._pa.array(order, mask=~valid)
            payload = payload.drop_null()
        try:
            found = self._payloads.decode(payload, self._fields)
        except NotDecoded as error:
            raise self._undecoded(error, batch, piece) from None
        return found if places is None else {name: column.take(places) for name, column in found.items()}

    def _undecoded(self, error: NotDecoded, batch: Any, piece: Piece) -> InvalidArgument:
        valid = batch.column("payload").is_valid().to_numpy(zero_copy_only=False)
        numbers = values(batch.column("sequence"), np.int64)[valid]
        number = piece.begin if error.row is None else numbers[error.row]
        return InvalidArgument(
            f"topic {piece.topic}, source {piece.source}, session {piece.session}, sequence {number}: the payload is "
            f"not of option definition: {error}; subscribe to topics of one definition, or read without the option and "
            "decode column payload"
        )

    def _missing(self, piece: Piece) -> Any:
        """One row for messages that are gone."""
        given: dict[str, Any] = {name: getattr(piece, name) for name in _NAMES}
        given.update(sequence=piece.begin, flags=0, kind=MISSING, count=piece.rows)
        arrays = [
            self._pa.array([given.get(name)], field.type) for name, field in zip(self._shape.names, self._shape.schema)
        ]
        return self._pa.RecordBatch.from_arrays(arrays, schema=self._shape.schema)
