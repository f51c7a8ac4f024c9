"""Many pre-defined messages made of columns: what Definition.encode_many() gives, and how columns come to C."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from um_cffi.binding import arrow, frames, pdm_columns
from um_cffi.binding._fast import arrow_pointer
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.pdm_decoded import taken
from um_cffi.binding.pdm_values import DTYPES, FORMATS, Decimal, PDMError, Timestamp, Type
from um_cffi.binding.pdm_values import encode as pack
from um_cffi.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy.typing as npt

    from um_cffi.binding.pdm_values import Field
    from um_cffi.pdm import Definition

_FORMATS = dict(zip(Type, ("b", "c", "C", "s", "S", "i", "I", "l", "L", "f", "g")))
_MILLION = 1_000_000


class Encoded:
    """Messages one behind the other, as Definition.encode_many() makes them: `data` are their bytes, `offsets` where
    each begins. Source.send_many() and decode_columns() take it, and it is Arrow data, a binary array. Any thread.
    """

    __slots__ = ("data", "offsets")

    def __init__(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> None:
        """Made by Definition.encode_many()."""
        self.data = data
        """The bytes of all messages."""
        self.offsets = offsets
        """Where each message begins, and where the last one ends."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, at: int) -> memoryview:
        """The message of a row; IndexError when there is none."""
        if not -len(self) <= at < len(self):
            raise IndexError(f"there are {len(self)} messages, not one at {at}")
        at %= len(self)
        view: memoryview = self.data[int(self.offsets[at]) : int(self.offsets[at + 1])].data
        return view

    def __iter__(self) -> Iterator[memoryview]:
        return (self[at] for at in range(len(self)))

    def __repr__(self) -> str:
        return f"<Encoded {len(self)} messages, {len(self.data)} bytes>"

    def _column(self) -> arrow.Column:
        addresses = (0, arrow._address(self.offsets), arrow._address(self.data))
        return "payload", "Z", len(self), addresses, (self.offsets, self.data), (), None

    def __arrow_c_schema__(self) -> object:
        """The type, as the capsule of Arrow's PyCapsule interface."""
        return arrow.schema_capsule(self._column())

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The messages, as capsules of Arrow's PyCapsule interface; `requested_schema` is left alone."""
        return arrow.capsules(self._column())


def parts_of(definition: Definition, values: Any) -> Iterator[Encoded]:
    """The messages of a mapping of columns, or of each record batch of Arrow data."""
    if isinstance(values, Mapping):
        yield _of_mapping(definition, values)
    elif frames.is_arrow(values):
        for part in frames._parts(values):
            yield _of_struct(definition, part)
    else:
        raise InvalidArgument(f"encode_many() of {type(values).__name__}: give columns by name, Arrow data or an array")


def joined(parts: list[Encoded]) -> Encoded:
    """Those of several record batches as one."""
    if len(parts) == 1:
        return parts[0]
    begins = np.cumsum([0, *(len(part.data) for part in parts)])
    offsets = [part.offsets[:-1] + begin for part, begin in zip(parts, begins)]
    data = np.concatenate([np.zeros(0, np.uint8), *(part.data for part in parts)])
    return Encoded(data, np.concatenate([*offsets, begins[-1:]]).astype(np.int64))


# ---- columns to C ----


def _of_struct(definition: Definition, part: Any) -> Encoded:
    schema, array = part.schema, part.array
    if part.format != "+s":
        raise InvalidArgument(f"an Arrow array of format {part.format!r}: give a record batch or a table, with names")
    if array.length < 0 or array.offset < 0 or schema.n_children != array.n_children:
        raise InvalidArgument("the Arrow data is not valid: length, offset or number of columns")
    part._refuse_nulls()
    columns = {}
    for at in range(schema.n_children):
        name = schema.children[at].name
        text = ffi.string(name).decode("utf-8", "replace") if name != ffi.NULL else ""
        if text in columns:
            raise InvalidArgument(f"two columns have the name {text!r}: rename one")
        columns[text] = schema.children[at], array.children[at]
    return _encode(definition, columns, array.offset, array.length)


def _of_mapping(definition: Definition, values: Mapping[Any, Any]) -> Encoded:
    names = {str(field.name): field for field in definition}
    columns, kept, rows = {}, [], None
    for name, column in values.items():
        _expect(names, str(name))
        capsules = _capsules(names[str(name)], column)
        kept.append(capsules)
        schema = ffi.cast("um_arrow_schema_t *", arrow_pointer(capsules[0], "arrow_schema"))
        array = ffi.cast("um_arrow_array_t *", arrow_pointer(capsules[1], "arrow_array"))
        if rows is not None and array.length != rows:
            raise InvalidArgument(f"column {name!r} has {array.length} rows, others have {rows}")
        rows = array.length
        columns[str(name)] = schema, array
    return _encode(definition, columns, 0, rows or 0)


def _expect(names: Mapping[str, Any], name: str) -> None:
    if name not in names:
        raise PDMError(f"the definition has no field {name!r}: leave the column out", PDMError.FIELD_NOT_FOUND)


def _encode(definition: Definition, columns: Mapping[str, Any], at: int, rows: int) -> Encoded:
    fields = list(definition)
    names = {str(field.name): place for place, field in enumerate(fields)}
    made = ffi.new("um_py_pdm_column_t[]", len(fields))
    section = pdm_columns._describe(fields, made)
    schemas, arrays = ffi.new("um_arrow_schema_t *[]", len(fields)), ffi.new("um_arrow_array_t *[]", len(fields))
    for name, (schema, array) in columns.items():
        _expect(names, name)
        schemas[names[name]], arrays[names[name]] = schema, array
    out, key = ffi.new("um_py_pdm_encoded_t *"), pdm_columns._key(definition)
    if lib.um_py_pdm_encode(made, len(fields), schemas, arrays, at, rows, key, section, out) == 0:
        return Encoded(taken(out.data, np.uint8, int(out.size)), taken(out.ends, np.int64, rows + 1))
    fault = out.fault
    where = f"column {fields[fault.field].name!r}" + (f", row {fault.row}" if fault.row >= 0 else "")
    text = f"{where}: {ffi.string(fault.text).decode('utf-8', 'replace')}"
    if fault.error == PDMError.EINVAL:
        raise InvalidArgument(text)
    raise PDMError(text, fault.error)


# ---- columns of Python ----


def _capsules(field: Field, values: Any) -> tuple[object, object]:
    """A column as Arrow data: of an array of Arrow or numpy, or a sequence of values."""
    if hasattr(values, "__arrow_c_array__"):
        schema, array = values.__arrow_c_array__()
        return schema, array
    name = str(field.name)
    if not isinstance(values, np.ndarray) or values.dtype.hasobject:
        return arrow.capsules(_of_list(field, list(values)))
    if values.ndim == 0:
        raise InvalidArgument(f"column {name!r}: give one value for each row")
    data = np.asarray(values)
    kind = np.dtype((data.dtype, data.shape[1:])) if data.ndim > 1 else data.dtype
    column = arrow._values(name, data.astype(data.dtype.newbyteorder("="), copy=False), kind.newbyteorder("="))
    if isinstance(values, np.ma.MaskedArray) and values.mask is not np.ma.nomask:
        if values.ndim != 1:
            raise InvalidArgument(f"column {name!r}: masked arrays have one dimension")
        bits = np.packbits(~np.ma.getmaskarray(values), bitorder="little")
        name, form, length, addresses, kept, children, dictionary = column
        column = name, form, length, (arrow._address(bits), *addresses[1:]), (kept, bits), children, dictionary
    return arrow.capsules(column)


def _of_list(field: Field, values: list[Any]) -> arrow.Column:
    """Values as messages take them, None for those that are missing."""
    name, scalar = str(field.name), field.type.scalar
    bits = np.packbits([value is not None for value in values] or [False], bitorder="little")
    if not field.type.is_array:
        blank = _BLANKS.get(scalar, 0)
        filled = [blank if value is None else value for value in values]
        given, form, length, addresses, kept, children, dictionary = _items(field, name, filled)
        return given, form, length, (arrow._address(bits), *addresses[1:]), (kept, bits), children, dictionary
    lists = [[] if value is None else list(value) for value in values]
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(one) for one in lists], out=offsets[1:])
    inner = _items(field, "item", [element for one in lists for element in one])
    return name, "+L", len(lists), (arrow._address(bits), arrow._address(offsets)), (bits, offsets), (inner,), None


_BLANKS: dict[Type, Any] = {
    Type.DECIMAL: Decimal(0, 0), Type.TIMESTAMP: Timestamp(0, 0), Type.BLOB: b"", Type.MESSAGE: b"",
    **dict.fromkeys((Type.STRING, Type.UNICODE, Type.FIX_STRING, Type.FIX_UNICODE), ""),
}  # fmt: skip


def _items(field: Field, name: str, values: list[Any]) -> arrow.Column:
    """Elements of a field, of which none is missing."""
    scalar = field.type.scalar
    if scalar in FORMATS:
        data = np.frombuffer(bytearray(pack(field, values)), DTYPES[scalar])
        data = np.packbits(data, bitorder="little") if scalar is Type.BOOLEAN else data
        return name, _FORMATS[scalar], len(values), (0, arrow._address(data)), data, (), None
    if scalar is Type.DECIMAL:
        pairs = [value if isinstance(value, Decimal) else Decimal.of(value) for value in values]
        members = [("mantissa", "l", [pair.mant for pair in pairs]), ("exponent", "c", [pair.exp for pair in pairs])]
        children = [(member, form, _whole(field, form, numbers)) for member, form, numbers in members]
        columns = tuple(
            (part, form, len(values), (0, arrow._address(data)), data, (), None) for part, form, data in children
        )
        return name, "+s", len(values), (0,), None, columns, None
    if scalar is Type.TIMESTAMP:
        stamps = [value if isinstance(value, Timestamp) else Timestamp.of(value) for value in values]
        times = _whole(field, "l", [stamp.secs * _MILLION + stamp.usecs for stamp in stamps])
        return name, "tsu:UTC", len(values), (0, arrow._address(times)), times, (), None
    parts = [_bytes_of(field, value) for value in values]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    data = np.frombuffer(bytearray(b"".join(parts) or b"\0"), np.uint8)
    form = "Z" if scalar in (Type.BLOB, Type.MESSAGE) else "U"
    return name, form, len(parts), (0, arrow._address(offsets), arrow._address(data)), (offsets, data), (), None


def _whole(field: Field, form: str, numbers: list[int]) -> npt.NDArray[Any]:
    code = {"l": "q", "c": "b"}[form]
    try:
        return np.frombuffer(bytearray(struct.pack(f"={len(numbers)}{code}", *numbers)), code)
    except struct.error as error:
        raise InvalidArgument(f"column {field.name!r}: a value does not fit: {error}") from None


def _bytes_of(field: Field, value: Any) -> bytes:
    if field.type.scalar is Type.MESSAGE and hasattr(value, "to_bytes") and not isinstance(value, int):
        return bytes(value.to_bytes())
    if field.type.scalar in (Type.BLOB, Type.MESSAGE):
        return bytes(memoryview(value))
    if not isinstance(value, str):
        raise TypeError(f"{field.name}: {value!r:.80} is no str")
    return value.encode()
