"""Many pre-defined messages at once: arrays of their fixed-required fields and columns of all, by one pass in C."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import shown
from um_cffi.binding.pdm_values import DTYPES, FORMATS, PDMError, Type
from um_cffi.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from um_cffi.batch import Batch
    from um_cffi.binding.pdm_decoded import Column, Columns
    from um_cffi.binding.pdm_encoded import Encoded
    from um_cffi.binding.pdm_values import Field
    from um_cffi.pdm import Definition

_WIDTHS = {scalar: struct.calcsize("=" + code) for scalar, code in FORMATS.items()}
_WIDTHS.update({Type.DECIMAL: 8, Type.TIMESTAMP: 8})


def layout_of(fields: Iterable[Field]) -> np.dtype[Any]:
    """The fixed section of a message of these fields."""
    import numpy as np

    parts: list[Any] = []
    for field in fields:
        if field.fixed_required:
            element: Any = DTYPES.get(field.type.scalar)
            if field.type.scalar is Type.DECIMAL:
                element = [("exp", "i1"), ("mant", "<i8")]
            elif field.type.scalar is Type.TIMESTAMP:
                element = [("secs", "<i4"), ("usecs", "<i4")]
            elif element is None:
                unicode = field.type.scalar is Type.FIX_UNICODE
                element = f"S{field.fixed_str_len * (4 if unicode else 1) + 1}"
            shape = (field.num_arr_elem,) if field.type.is_array else ()
            parts.append((str(field.name), element, shape))
    return np.dtype(parts)


def _places(messages: Batch | Column | Encoded | npt.NDArray[np.uint8] | Sequence[Any]) -> tuple[Any, Any, Any]:
    """A buffer with all of them, and where each begins and how long it is."""
    import numpy as np

    from um_cffi.batch import Batch
    from um_cffi.binding.pdm_decoded import Column
    from um_cffi.binding.pdm_encoded import Encoded

    if isinstance(messages, Batch):
        records = messages._message_records()
        return messages.view, records["offset"], records["length"]
    if isinstance(messages, Encoded):
        return messages.data, messages.offsets[:-1].astype(np.uint64), np.diff(messages.offsets).astype(np.uint32)
    if isinstance(messages, Column):
        if messages.field.type.scalar is not Type.MESSAGE or messages.data_offsets is None:
            raise TypeError(f"a column of {messages.field.type.name}: give one of messages")
        ends = messages.data_offsets
        lengths = np.diff(ends)
        rows = slice(None) if messages.valid is None or messages.field.type.is_array else messages.valid
        return messages._raw, ends[:-1][rows].astype(np.uint64), lengths[rows].astype(np.uint32)
    if isinstance(messages, np.ndarray):
        if messages.dtype != np.uint8 or messages.ndim != 2:
            raise TypeError(f"an array of {messages.dtype} and {messages.ndim} dimensions: give rows of uint8")
        rows, length = messages.shape
        offsets = np.arange(rows, dtype=np.uint64) * np.uint64(length)
        return np.ascontiguousarray(messages), offsets, np.full(rows, length, np.uint32)
    sizes = (memoryview(message).nbytes for message in messages)
    lengths = np.fromiter(sizes, np.uint32, len(messages))
    offsets = np.zeros(len(messages), np.uint64)
    np.cumsum(lengths[:-1], out=offsets[1:])
    return b"".join(messages), offsets, lengths


def _table(messages: Batch | Column | Encoded | npt.NDArray[np.uint8] | Sequence[Any]) -> tuple[Any, npt.NDArray[Any]]:
    """A buffer with all of them, and rows of offset and length."""
    import numpy as np

    base, offsets, lengths = _places(messages)
    table = np.empty(len(lengths), np.dtype([("offset", "<u8"), ("length", "<u4")]))
    table["offset"], table["length"] = offsets, lengths
    return base, table


def _key(definition: Definition) -> bytes:
    return struct.pack("<BBi", *definition.version, definition.id)


def _room(layout: np.dtype[Any], count: int, out: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """An array for so many rows, or the beginning of one that is used again."""
    import numpy as np

    if out is None:
        return np.empty(count, layout)
    if not isinstance(out, np.ndarray):
        raise InvalidArgument(f"decode_many(): out is {shown(out)}: must be a numpy array")
    if out.dtype != layout or out.ndim != 1 or not out.flags.c_contiguous or not out.flags.writeable:
        raise InvalidArgument(
            f"decode_many(): out is an array of shape {out.shape} and dtype {out.dtype}: must be one-dimensional, "
            f"contiguous, writable and of the definition's dtype, {layout}"
        )
    if len(out) < count:
        raise InvalidArgument(f"decode_many(): out has room for {len(out)} of {count} messages: make it longer")
    return out[:count]


def decode(
    definition: Definition,
    messages: Batch | Column | Encoded | npt.NDArray[np.uint8] | Sequence[Any],
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Definition.decode_many(), finalized."""
    import numpy as np

    layout = definition.dtype
    base, table = _table(messages)
    out = _room(layout, len(table), out)
    if len(table) == 0:
        return out
    big, some = np.zeros(len(table), np.uint8), ffi.new("int *")
    first = ffi.cast("char *", ffi.from_buffer(table))
    source = ffi.from_buffer(base)
    done = lib.um_py_pdm_gather(
        source, len(source), first, first + 8, 12, len(table), _key(definition), layout.itemsize,
        ffi.cast("char *", out.ctypes.data), ffi.cast("unsigned char *", big.ctypes.data), some,
    )  # fmt: skip
    if done != len(table):
        raise PDMError(f"message {done} is not a message of definition {definition.id}", PDMError.MSG_INVALID)
    if some[0]:
        out[big != 0] = out[big != 0].view(layout.newbyteorder(">")).astype(layout)
    for field in definition:
        if field.fixed_required and field.type.scalar is Type.BOOLEAN:  # whatever a peer sent for true
            out[str(field.name)] = out[str(field.name)].view(np.uint8) != 0
    return out


def columns_of(
    definition: Definition, messages: Batch | Column | Encoded | npt.NDArray[np.uint8] | Sequence[Any]
) -> Columns:
    """Definition.decode_columns(), finalized."""
    import numpy as np

    from um_cffi.binding.pdm_decoded import Column, Columns

    base, table = _table(messages)
    fields = list(definition)
    made, error = ffi.new("um_py_pdm_column_t[]", len(fields)), ffi.new("int *")
    section = _describe(fields, made)
    size = lib.um_py_pdm_memory(made, len(fields), len(table), ffi.NULL)
    memory = np.empty(size + 63, np.uint8)
    memory = memory[-memory.ctypes.data % 64 :]
    lib.um_py_pdm_memory(made, len(fields), len(table), ffi.cast("char *", memory.ctypes.data))
    first = ffi.cast("char *", ffi.from_buffer(table))
    source = ffi.from_buffer(base)
    done = lib.um_py_pdm_decode(
        source, len(source), first, first + 8, 12, len(table), _key(definition), section, made, len(fields), error
    )
    if error[0] == PDMError.NOMEM:
        raise PDMError("no memory for the columns", PDMError.NOMEM)
    if error[0] != 0:
        why = "is not a message of" if error[0] == PDMError.MSG_INVALID else "lacks a required field of"
        raise PDMError(f"message {done} {why} definition {definition.id}", error[0])
    return Columns(
        {field.name: Column(field, len(table), made[at], memory) for at, field in enumerate(fields)}, len(table)
    )


def _describe(fields: Sequence[Field], made: Any) -> int:
    """Fills in what C has to know of each field; the length of the fixed section."""
    section = slots = 0
    for field, column in zip(fields, made):
        scalar, plain = field.type.scalar, field.fixed_required
        column.code, column.array, column.required, column.plain = scalar, field.type.is_array, field.required, plain
        column.element = _element(field)
        column.count = field.num_arr_elem
        column.width = 0 if scalar is Type.BOOLEAN else _WIDTHS.get(scalar, 0)
        column.place = section if plain else slots
        section += column.element * (field.num_arr_elem if field.type.is_array else 1) if plain else 0
        slots += not plain
    return section


def _element(field: Field) -> int:
    """Bytes of an element in a message; 0 where they differ."""
    scalar = field.type.scalar
    if scalar in (Type.FIX_STRING, Type.FIX_UNICODE):
        return field.fixed_str_len * (4 if scalar is Type.FIX_UNICODE else 1) + 1
    return 9 if scalar is Type.DECIMAL else _WIDTHS.get(scalar, 0)


def encode(definition: Definition, values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Definition.encode_many(), finalized."""
    import numpy as np

    if any(field.required and not field.fixed_required for field in definition):
        raise PDMError("a required field has no fixed size", PDMError.REQ_FIELD_NOT_SET)
    layout = definition.dtype
    given = np.asarray(values)
    section = np.zeros(given.shape, layout)
    if given.ndim != 1:
        raise ValueError(f"an array of {given.ndim} dimensions: give one row for each message")
    for name in layout.names or ():
        _fill_column(section, given, name)
    if layout.itemsize == 0:
        rows = np.empty((len(section), 0), np.uint8)
    else:
        rows = section.view(np.uint8).reshape(len(section), layout.itemsize)
    head = struct.pack("<IBBBBiI", 0xA71CCAFE, 0x10, 1, *definition.version, definition.id, 32 + layout.itemsize)
    head += struct.pack("<BBHI", 0, 0, 0, 0) + struct.pack("<BBHI", 0xFF, 0, 0, layout.itemsize)
    out = np.empty((len(section), 32 + layout.itemsize), np.uint8)
    out[:, :32] = np.frombuffer(head, np.uint8)
    out[:, 32:] = rows
    return out


def _fill_column(section: npt.NDArray[Any], given: npt.NDArray[Any], name: str) -> None:
    """A column into that of the fixed sections, where numpy would cut what does not fit."""
    import numpy as np

    kind, values = section.dtype[name].base, given[name]
    if kind.names is not None:
        for part in kind.names:
            _fill_column(section[name], values, part)
        return
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # seen below
            if kind.kind == "S":
                values = np.char.encode(values, "utf-8") if values.dtype.kind == "U" else values.astype("S")
            section[name] = values
    except OverflowError as error:
        raise ValueError(f"{name}: {error}") from None
    if kind.kind == "S" and values.dtype.itemsize >= kind.itemsize:  # its last byte is the NUL
        if np.any(np.char.str_len(values) >= kind.itemsize):
            raise ValueError(f"{name}: a text is longer than {kind.itemsize - 1} bytes")
    elif (
        kind.kind in "iu" and not np.can_cast(values.dtype, kind, "safe") and not np.array_equal(section[name], values)
    ):
        raise ValueError(f"{name}: a number is no {kind.name}")
    elif kind.kind == "f" and not _same_reals(section[name], values):
        raise ValueError(f"{name}: a number would be rounded, or is too large for a {kind.name}")


def _same_reals(made: npt.NDArray[Any], given: npt.NDArray[Any]) -> bool:
    """Whether integers are still the same as floats, and no float has become infinite."""
    import numpy as np

    if given.dtype.kind in "iu":
        digits = {4: 24, 8: 53}[made.dtype.itemsize]
        size = np.abs(given.astype(given.dtype.newbyteorder("="))).astype(np.uint64)
        lowest = np.maximum(size & (~size + np.uint64(1)), np.uint64(1))
        return bool((size // lowest < np.uint64(1 << digits)).all())
    if given.dtype.kind == "f" and given.dtype.itemsize > made.dtype.itemsize:
        return bool((np.isfinite(made) | ~np.isfinite(given)).all())
    return True
