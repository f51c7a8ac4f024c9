"""Columns of pre-defined messages: what Definition.decode_columns() gives, over the buffers that C has filled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from um_cffi.binding import arrow
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.pdm_values import DTYPES, Decimal, Timestamp, Type

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]

    from um_cffi.binding.pdm_values import Field, Name

_FORMATS = dict(zip(Type, ("b", "c", "C", "s", "S", "i", "I", "l", "L", "f", "g")))
_STORED = {scalar: kind for scalar, kind in DTYPES.items() if scalar is not Type.BOOLEAN}
_MILLION = 1_000_000
_EXPONENTS, _MANTISSAS = "exponent", "mantissa"


def taken(pointer: Any, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
    """Memory that C has made, which goes with the array."""
    kind = np.dtype(dtype)
    size = count * kind.itemsize
    owner = ffi.gc(ffi.cast("char *", pointer), lib.um_py_pdm_free, size)
    return np.frombuffer(ffi.buffer(owner, size), kind)


class _Buffers:
    """What C has filled: parts of the memory that was given to it, and what it has made itself."""

    def __init__(self, memory: npt.NDArray[np.uint8]) -> None:
        self._memory = memory
        self._first = arrow._address(memory)

    def given(self, pointer: Any, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """A part of the memory."""
        begin = int(ffi.cast("uintptr_t", pointer)) - self._first
        kind = np.dtype(dtype)
        return self._memory[begin : begin + count * kind.itemsize].view(kind)

    def grown(self, pointer: Any, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """Memory of C, which goes with the array."""
        return taken(pointer, dtype, count)


class Column:
    """One field of many messages, a row for each: `rows` of the `field`, which C has `made` in `memory`. Any thread;
    what it gives must not be written to.

    `values` holds the elements one behind the other: numbers as numbers, booleans as booleans, timestamps as
    datetime64[us], decimals as (exp, mant), texts, blobs and nested messages as bytes without what separates them.
    """

    __slots__ = (
        "_bits", "_exponents", "_raw", "_values", "data_offsets", "field", "length", "list_offsets", "null_count",
        "valid",
    )  # fmt: skip

    def __init__(self, field: Field, rows: int, made: Any, memory: npt.NDArray[np.uint8]) -> None:
        """Made by Definition.decode_columns(), of the structure that C has filled."""
        self.field = field
        """The field of the definition."""
        self.length = rows
        """How many rows."""
        self.null_count = int(made.nulls)
        """Rows whose message has no value."""
        scalar, elements = field.type.scalar, int(made.elements)
        if field.fixed_required and scalar < Type.FIX_STRING:
            elements = rows * (field.num_arr_elem if field.type.is_array else 1)
        self.list_offsets: npt.NDArray[np.int64] | None = None
        """Of arrays without a fixed place: where the elements of each row begin, and where the last end."""
        self.data_offsets: npt.NDArray[np.int64] | None = None
        """Of texts, blobs and messages: where the bytes of each element begin, and where the last end."""
        self.valid: npt.NDArray[np.bool_] | None = None
        """Which rows have a value; None where the field is required."""
        self._bits: npt.NDArray[Any] | None = None
        self._exponents: npt.NDArray[Any] | None = None
        self._values: npt.NDArray[Any] | None = None
        buffers = _Buffers(memory)
        some = buffers.given
        if made.lists != ffi.NULL:
            self.list_offsets = buffers.given(made.lists, np.int64, rows + 1)
            some = buffers.grown
        if made.valid != ffi.NULL:
            self._bits = buffers.given(made.valid, np.uint8, rows // 8 + 1)
            self.valid = np.unpackbits(self._bits, count=rows, bitorder="little").view(np.bool_)
        if scalar >= Type.FIX_STRING:
            self.data_offsets = some(made.texts, np.int64, elements + 1)
            self._raw = buffers.grown(made.values, np.uint8, int(made.bytes))
        elif scalar is Type.BOOLEAN:
            self._raw = some(made.values, np.uint8, elements // 8 + 1)
        else:
            self._raw = some(made.values, _STORED.get(scalar, np.int64), elements)
        if scalar is Type.DECIMAL:
            self._exponents = some(made.exponents, np.int8, elements)

    @property
    def values(self) -> npt.NDArray[Any]:
        """The elements; of arrays of fixed size that are required one row of them for each message. Rows without a
        value have a zero, or no elements."""
        if self._values is None:
            self._values = self._converted()
        return self._values

    def _converted(self) -> npt.NDArray[Any]:
        scalar, field = self.field.type.scalar, self.field
        fixed = field.fixed_required and field.type.is_array and scalar < Type.FIX_STRING
        values = self._raw
        if scalar is Type.BOOLEAN:
            if self.list_offsets is not None:
                count = int(self.list_offsets[-1])
            else:
                count = self.length * (field.num_arr_elem if fixed else 1)
            values = np.unpackbits(values, count=count, bitorder="little").view(np.bool_)
        elif scalar is Type.TIMESTAMP:
            values = values.view("M8[us]")
        elif scalar is Type.DECIMAL:
            both = np.empty(len(values), [("exp", "i1"), ("mant", "<i8")])
            both["exp"], both["mant"] = self._exponents, values
            values = both
        return values.reshape(self.length, field.num_arr_elem) if fixed else values

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"<Column {self.field.name}: {self.field.type.name}, {self.length} rows, {self.null_count} null>"

    def to_list(self) -> list[Any]:
        """The rows as objects of Python, as messages give them: None where there is no value; nested messages are
        bytes."""
        elements = self._elements()
        field = self.field
        if not field.type.is_array:
            rows: list[Any] = elements
        elif self.list_offsets is None:
            size = field.num_arr_elem
            rows = [elements[at * size : (at + 1) * size] for at in range(self.length)]
        else:
            ends = self.list_offsets.tolist()
            rows = [elements[begin:end] for begin, end in zip(ends, ends[1:])]
        if self.valid is None:
            return rows
        return [row if valid else None for row, valid in zip(rows, self.valid.tolist())]

    def _elements(self) -> list[Any]:
        scalar, values = self.field.type.scalar, self.values.reshape(-1)
        if self.data_offsets is not None:
            data, ends = values.tobytes(), self.data_offsets.tolist()
            parts = [data[begin:end] for begin, end in zip(ends, ends[1:])]
            return parts if scalar in (Type.BLOB, Type.MESSAGE) else [part.decode() for part in parts]
        if scalar is Type.DECIMAL:
            return [Decimal(mantissa, exponent) for exponent, mantissa in values.tolist()]
        if scalar is Type.TIMESTAMP:
            return [Timestamp(*divmod(time, _MILLION)) for time in values.view(np.int64).tolist()]
        elements: list[Any] = values.tolist()
        return elements

    def _column(self) -> arrow.Column:
        """As arrow.py describes columns."""
        name, rows = str(self.field.name), self.length
        valid = 0 if self._bits is None else arrow._address(self._bits)
        if not self.field.type.is_array:
            return self._plain(name, rows, valid)
        count = self.field.num_arr_elem
        if self.list_offsets is not None:
            inner = self._plain("item", int(self.list_offsets[-1]), 0)
            return name, "+L", rows, (valid, arrow._address(self.list_offsets)), self, (inner,), None
        return name, f"+w:{count}", rows, (0,), self, (self._plain("item", rows * count, 0),), None

    def _plain(self, name: str, count: int, valid: int) -> arrow.Column:
        scalar, first = self.field.type.scalar, arrow._address(self._raw)
        if self.data_offsets is not None:
            form = "Z" if scalar in (Type.BLOB, Type.MESSAGE) else "U"
            return name, form, count, (valid, arrow._address(self.data_offsets), first), self, (), None
        if self._exponents is not None:
            parts = (
                (_MANTISSAS, "l", count, (0, first), self, (), None),
                (_EXPONENTS, "c", count, (0, arrow._address(self._exponents)), self, (), None),
            )
            return name, "+s", count, (valid,), self, parts, None
        form = "tsu:UTC" if scalar is Type.TIMESTAMP else _FORMATS[scalar]
        return name, form, count, (valid, first), self, (), None

    def __arrow_c_schema__(self) -> object:
        """The type, as the capsule of Arrow's PyCapsule interface."""
        return arrow.schema_capsule(self._column())

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The values where they lie, as capsules of Arrow's PyCapsule interface; `requested_schema` is left alone."""
        return arrow.capsules(self._column())


class Columns(Mapping[Any, Column]):
    """All fields of many messages: a mapping from the names of the fields to `columns` of one `length`.

    Arrow libraries take it as a record batch, without a copy: `pyarrow.record_batch(columns)`,
    `polars.DataFrame(columns)`. Numbers, booleans and texts have the Arrow types of that name, texts and bytes those
    with large offsets; timestamps are microseconds in UTC, decimals structures of `mantissa` and `exponent`, arrays
    lists, nested messages binary. Any thread.
    """

    __slots__ = ("_columns", "length")

    def __init__(self, columns: dict[Name, Column], length: int) -> None:
        """Made by Definition.decode_columns()."""
        self._columns = columns
        self.length = length
        """How many messages; len() is the number of fields."""

    def __getitem__(self, name: Name) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"<Columns {', '.join(map(str, self._columns))} of {self.length} messages>"

    def _column(self) -> arrow.Column:
        return arrow._struct("", self.length, [column._column() for column in self._columns.values()])

    def to_arrow(self) -> pa.RecordBatch:
        """An Arrow RecordBatch, without a copy. ImportError without pyarrow."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise ImportError("Columns.to_arrow() needs pyarrow: pip install pyarrow") from error
        return pa.record_batch(self)

    def __arrow_c_schema__(self) -> object:
        """The type, as the capsule of Arrow's PyCapsule interface."""
        return arrow.schema_capsule(self._column())

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The columns where they lie, as capsules of Arrow's PyCapsule interface; `requested_schema` is left alone."""
        return arrow.capsules(self._column())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The same, as a stream of one; `requested_schema` is left alone."""
        column = self._column()
        return arrow.stream(column, iter((column, None)).__next__)
