"""Frames as messages: what Source.send_many() takes of Arrow data and of pandas, without needing either of them.

Arrow data comes by its C interfaces (`__arrow_c_array__`, `__arrow_c_stream__`: pyarrow, polars, DuckDB, our own
batches) and is read where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from um_cffi.binding._fast import arrow_pointer
from um_cffi.binding._native import ffi
from um_cffi.binding.deferred import np
from um_cffi.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy.typing as npt

    Span = tuple[int, npt.NDArray[np.uint64], npt.NDArray[np.uint32], Any]
    """Messages where they lie: an address, offsets from it, lengths, and what keeps the memory."""

PAYLOAD = "payload"
PACKED_BYTES = 1 << 20  # rows packed at a time

_NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8"}
_NUMBERS.update({"e": "f2", "f": "f4", "g": "f8", "tdD": "M8[D]", "tdm": "M8[ms]"})
_NUMBERS.update({f"tD{short}": f"m8[{unit}]" for short, unit in zip("smun", ("s", "ms", "us", "ns"))})
_STAMPS = {f"ts{short}": f"M8[{unit}]" for short, unit in zip("smun", ("s", "ms", "us", "ns"))}
_OFFSETS = {"z": "i4", "u": "i4", "Z": "i8", "U": "i8"}
_VIEW = [("length", "<i4"), ("prefix", "<u4"), ("buffer", "<i4"), ("offset", "<i4")]
_VIEW_BYTES = 16
_INLINE_MAX = 12
_LENGTH_MAX = 0xFFFFFFFF


class ArrowArray(Protocol):
    """One array, by Arrow's PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...


class ArrowStream(Protocol):
    """Arrays of one type, by Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class DataFrame(Protocol):
    """What is looked for in a frame of pandas."""

    @property
    def iloc(self) -> Any: ...
    @property
    def columns(self) -> Any: ...


def is_arrow(thing: object) -> bool:
    """Whether something gives Arrow data."""
    return hasattr(thing, "__arrow_c_array__") or hasattr(thing, "__arrow_c_stream__")


def is_pandas(thing: object) -> bool:
    """Whether something is a pandas.DataFrame, or behaves like one."""
    return hasattr(thing, "iloc") and hasattr(thing, "columns")


def spans(frame: Any, dtype: np.dtype[Any] | None) -> Iterator[Span]:
    """The messages of Arrow data: its payload column, or rows packed by the dtype."""
    for part in _parts(frame):
        if part.format != "+s":
            if dtype is not None:
                raise InvalidArgument("dtype packs the columns of a frame: this is an array; leave it out")
            yield _array_span(part)
        elif dtype is None:
            yield part.child(PAYLOAD).span()
        else:
            yield from packed(dtype, part.length, lambda name, part=part: part.child(name).values())  # type: ignore[misc]


def pandas_messages(frame: Any, dtype: np.dtype[Any] | None) -> list[Any] | Iterator[Span]:
    """The payloads of a pandas frame as a list, or its rows packed by the dtype."""

    def column(name: str) -> Any:
        if name not in frame.columns:
            raise _missing(name, [str(other) for other in frame.columns])
        return frame[name]

    if dtype is None:
        return list(column(PAYLOAD))
    return packed(dtype, len(frame), lambda name: column(name).to_numpy())


def packed(dtype: np.dtype[Any], count: int, column: Callable[[str], npt.NDArray[Any]]) -> Iterator[Span]:
    """Rows of the dtype made of columns, about PACKED_BYTES at a time."""
    if dtype.names is None or dtype.itemsize == 0:
        raise InvalidArgument(f"dtype {dtype}: must have fields, which are the names of columns of the frame")
    columns = {name: column(name) for name in dtype.names}
    size = max(1, PACKED_BYTES // dtype.itemsize)
    for begin in range(0, count, size):
        rows = np.zeros(min(size, count - begin), dtype)
        for name, values in columns.items():
            _fill(rows[name], values[begin : begin + len(rows)], name, begin)
        offsets = np.arange(len(rows), dtype=np.uint64) * np.uint64(dtype.itemsize)
        lengths = np.full(len(rows), dtype.itemsize, np.uint32)
        yield rows.ctypes.data, offsets, lengths, rows


def _fill(rows: npt.NDArray[Any], values: npt.NDArray[Any], name: str, begin: int) -> None:
    """InvalidArgument when a value does not fit into the field."""
    field = rows.dtype
    if field.names is not None:
        for part in field.names:
            _fill(rows[part], values[part], f"{name}.{part}", begin)
        return
    if field.kind == "S":
        values = _as_bytes(values, name, begin)
        fits = np.array([len(value) <= field.itemsize for value in values.tolist()], bool)
        if fits.all():
            rows[...] = values
    elif (field.kind in "mM") != (values.dtype.kind in "mM") and values.dtype.kind != "O":
        raise InvalidArgument(f"column {name!r} of type {values.dtype} for a field of type {field}: cast it first")
    else:
        fits = _converted(rows, values, name, begin)
    if not fits.all():
        at = int(np.flatnonzero(~fits.reshape(len(rows), -1).all(axis=1))[0])
        value = values[at].item() if isinstance(values[at], np.generic) else values[at]
        raise InvalidArgument(f"column {name!r}, row {begin + at}: {value!r} does not fit into a field of type {field}")


def _converted(rows: npt.NDArray[Any], values: npt.NDArray[Any], name: str, begin: int) -> npt.NDArray[np.bool_]:
    """Assign; which values are what they were."""
    try:
        if values.dtype == object and rows.ndim > 1:
            values = np.stack(values.tolist())
        with np.errstate(invalid="ignore", over="ignore"):
            rows[...] = values.astype(rows.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(
            f"column {name!r}, rows from {begin}: {error}; the field is of type {rows.dtype}"
        ) from error
    if rows.dtype.kind in "iubmM":
        same = rows == values
        return np.asarray(same | ((rows != rows) & (values != values)), bool)  # NaT
    if rows.dtype.kind == "f" and rows.dtype.itemsize < 8:  # too large for it is infinite
        return np.asarray(np.isfinite(rows) | ~np.isfinite(values.astype("f8")), bool)
    return np.ones(rows.shape, bool)


def _as_bytes(values: npt.NDArray[Any], name: str, begin: int) -> npt.NDArray[Any]:
    found = np.empty(len(values), object)
    for at, value in enumerate(values.tolist()):
        if isinstance(value, str):
            value = value.encode()
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise InvalidArgument(f"column {name!r}, row {begin + at}: {value!r} is neither text nor bytes")
        found[at] = bytes(value)
    return found


def _missing(name: str, names: Sequence[str]) -> InvalidArgument:
    """The exception for a column that is not there."""
    remedy = (
        "give the layout of its messages: send_many(frame, dtype=...)"
        if name == PAYLOAD
        else "the fields of the dtype are names of columns"
    )
    return InvalidArgument(f"the frame has no column {name!r}, but {', '.join(map(repr, names)) or 'none'}; {remedy}")


# -- Arrow data as it comes --


def _parts(frame: Any) -> Iterator[_Array]:
    """Each array of Arrow data, valid until the next one is asked for."""
    if hasattr(frame, "__arrow_c_array__"):
        type_capsule, capsule = frame.__arrow_c_array__()
        schema = ffi.cast("um_arrow_schema_t *", arrow_pointer(type_capsule, "arrow_schema"))
        yield _Array(schema, ffi.cast("um_arrow_array_t *", arrow_pointer(capsule, "arrow_array")))
        return
    capsule = frame.__arrow_c_stream__()
    stream = ffi.cast("um_arrow_stream_t *", arrow_pointer(capsule, "arrow_array_stream"))
    schema = ffi.new("um_arrow_schema_t *")
    _check_stream(stream, stream.get_schema(stream, schema))
    try:
        while True:
            array = ffi.new("um_arrow_array_t *")
            _check_stream(stream, stream.get_next(stream, array))
            if array.release == ffi.NULL:
                return
            try:
                yield _Array(schema, array)
            finally:
                array.release(array)
    finally:
        schema.release(schema)


def _check_stream(stream: Any, result: int) -> None:
    if result != 0:
        text = stream.get_last_error(stream)
        words = ffi.string(text).decode("utf-8", "replace") if text != ffi.NULL else f"error {result}"
        raise InvalidArgument(f"the Arrow stream to be sent has failed: {words}")


def arrow_column(call: str, column: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """A copy of the values of Arrow data that is a column, texts as str in an object array; and which are not null
    (None: all)."""
    found: list[npt.NDArray[Any]] = []
    there: list[npt.NDArray[np.bool_]] = []
    for part in _parts(column):
        if part.format == "+s":
            raise InvalidArgument(f"{call}: a frame of columns where one column is wanted: choose one of it")
        part.with_nulls = True
        there.append(part.there())
        if part.format == "n":
            found.append(np.full(part.length, None, object))
            continue
        values = part.values()
        if part.is_text():
            values = np.array([value.decode() for value in values.tolist()], object)
        found.append(np.array(values))
    if not found:
        return np.zeros(0, object), None
    marks = np.concatenate(there)
    return np.concatenate(found), None if marks.all() else marks


class _Array:
    """`length` values of an Arrow array from `offset` on, and of what type they are."""

    def __init__(self, schema: Any, array: Any, offset: int = 0, length: int | None = None) -> None:
        self.schema = schema
        self.array = array
        self.format = ffi.string(schema.format).decode()
        self.name = ffi.string(schema.name).decode("utf-8", "replace") if schema.name != ffi.NULL else ""
        self.offset = array.offset + offset
        self.length = array.length if length is None else length
        self.with_nulls = False

    def child(self, name: str) -> _Array:
        """The column of that name."""
        self._refuse_nulls()
        names = [ffi.string(self.schema.children[at].name).decode() for at in range(self.schema.n_children)]
        if name not in names:
            raise _missing(name, names)
        return self._child(names.index(name))

    def _child(self, at: int, times: int = 1) -> _Array:
        where = self.schema.children[at], self.array.children[at]
        return _Array(*where, self.offset * times, self.length * times)

    def _buffer(self, at: int, kind: npt.DTypeLike, count: int, first: int = 0) -> npt.NDArray[Any]:
        dtype = np.dtype(kind)
        if count == 0 or self.array.buffers[at] == ffi.NULL:
            return np.zeros(0, dtype)
        begin = ffi.cast("char *", self.array.buffers[at]) + first * dtype.itemsize
        return np.frombuffer(ffi.buffer(begin, count * dtype.itemsize), dtype)

    def there(self) -> npt.NDArray[np.bool_]:
        """Which values are not null."""
        if self.format == "n":
            return np.zeros(self.length, bool)
        if self.array.n_buffers == 0 or self.array.null_count == 0 or self.array.buffers[0] == ffi.NULL:
            return np.ones(self.length, bool)
        first, end = self.offset // 8, (self.offset + self.length + 7) // 8
        bits = np.unpackbits(self._buffer(0, np.uint8, end - first, first), bitorder="little")
        return bits[self.offset % 8 : self.offset % 8 + self.length].astype(bool)

    def is_text(self) -> bool:
        """Whether the values are texts, which values() gives as bytes."""
        if self.array.dictionary != ffi.NULL:
            return _Array(self.schema.dictionary, self.array.dictionary).is_text()
        return self.format in ("u", "U", "vu")

    def _refuse_nulls(self) -> None:
        if self.with_nulls or self.array.n_buffers == 0:
            return
        if self.array.null_count == 0 or self.array.buffers[0] == ffi.NULL:
            return
        missing = np.flatnonzero(~self.there())
        if len(missing):
            raise InvalidArgument(f"column {self.name!r}, row {missing[0]} is null: fill in a value or filter it out")

    def values(self) -> npt.NDArray[Any]:
        """The values as numpy has them: texts and bytes as objects."""
        self._refuse_nulls()
        format = self.format
        if self.array.dictionary != ffi.NULL:
            named = _Array(self.schema.dictionary, self.array.dictionary).values()
            places = self._buffer(1, _NUMBERS[format], self.length, self.offset)
            if self.with_nulls:  # whose places are anything
                places = np.where(self.there(), places, 0)
                named = named if len(named) else np.full(1, b"", object)
            chosen: npt.NDArray[Any] = named[places]
            return chosen
        kind = _NUMBERS.get(format) or _STAMPS.get(format.partition(":")[0])
        if kind is not None:
            return self._buffer(1, kind, self.length, self.offset)
        if format == "b":
            first, end = self.offset // 8, (self.offset + self.length + 7) // 8
            bits = np.unpackbits(self._buffer(1, np.uint8, end - first, first), bitorder="little")
            return bits[self.offset % 8 : self.offset % 8 + self.length].astype(bool)
        if format.startswith("+w:"):
            size = int(format[3:])
            inner = self._child(0, size).values()
            return inner.reshape(self.length, size, *inner.shape[1:])
        if format == "+s":
            return self._structures()
        if format.startswith("w:"):
            return self._buffer(1, f"V{int(format[2:])}", self.length, self.offset)
        return self._objects()

    def _structures(self) -> npt.NDArray[Any]:
        parts = [self._child(at) for at in range(self.schema.n_children)]
        columns = [(part.name, part.values()) for part in parts]
        rows = np.empty(self.length, [(name, column.dtype, column.shape[1:]) for name, column in columns])
        for name, column in columns:
            rows[name] = column
        return rows

    def _objects(self) -> npt.NDArray[Any]:
        base, offsets, lengths, _ = self.span()
        found = np.empty(self.length, object)
        memory = ffi.cast("char *", base)
        for at, (begin, length) in enumerate(zip(offsets.tolist(), lengths.tolist())):
            found[at] = bytes(ffi.buffer(memory + begin, length)) if length else b""
        return found

    def span(self) -> Span:
        """Where the values lie, of which each is a message."""
        self._refuse_nulls()
        if self.array.dictionary != ffi.NULL:
            base, offsets, lengths, kept = _Array(self.schema.dictionary, self.array.dictionary).span()
            chosen = self._buffer(1, _NUMBERS[self.format], self.length, self.offset)
            return base, offsets[chosen], lengths[chosen], kept
        if self.format in _OFFSETS:
            places = self._buffer(1, _OFFSETS[self.format], self.length + 1 if self.length else 0, self.offset)
            return self._span_of(self._base(2), places[:-1], np.diff(places))
        if self.format in ("vz", "vu"):
            return self._view_span()
        if self.format.startswith("w:"):
            size = int(self.format[2:])
            return self._span_of(
                self._base(1), (np.arange(self.length) + self.offset) * size, np.full(self.length, size)
            )
        raise InvalidArgument(
            f"column {self.name!r} of the Arrow format {self.format!r}: payloads are binary, or text; give dtype= to "
            "pack rows of numbers"
        )

    def _base(self, at: int) -> int:
        return int(ffi.cast("uintptr_t", self.array.buffers[at]))

    def _span_of(self, base: int, offsets: npt.NDArray[Any], lengths: npt.NDArray[Any], kept: Any = None) -> Span:
        if len(lengths) and int(lengths.max()) > _LENGTH_MAX:
            raise InvalidArgument(f"row {int(lengths.argmax())} of {self.name!r} has {int(lengths.max())} bytes")
        return base, offsets.astype(np.uint64), lengths.astype(np.uint32), kept

    def _view_span(self) -> Span:
        views = self._buffer(1, _VIEW, self.length, self.offset)
        lengths = views["length"]
        short = lengths <= _INLINE_MAX
        bases = np.array(
            [self._base(at) for at in range(2, max(3, self.array.n_buffers - 1))][: self.array.n_buffers - 3]
        )
        inside = self._base(1) + (np.arange(self.length) + self.offset) * _VIEW_BYTES + 4
        addresses = inside.astype(np.uint64)
        long = np.flatnonzero(~short)
        addresses[long] = bases.astype(np.uint64)[views["buffer"][long]] + views["offset"][long].astype(np.uint64)
        base = int(addresses.min()) if len(addresses) else 0
        return self._span_of(base, addresses - np.uint64(base), lengths)


def _array_span(part: _Array) -> Span:
    """An array by itself: payloads, or numbers, each of which is a message as in a numpy array."""
    kind = _NUMBERS.get(part.format) or _STAMPS.get(part.format.partition(":")[0])
    if kind is None or part.array.dictionary != ffi.NULL:
        return part.span()
    values = part.values()
    size = values.dtype.itemsize
    offsets = np.arange(len(values), dtype=np.uint64) * np.uint64(size)
    return values.ctypes.data, offsets, np.full(len(values), size, np.uint32), values
