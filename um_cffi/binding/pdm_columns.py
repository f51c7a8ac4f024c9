"""Many pre-defined messages at once: arrays of their fixed-required fields, by one pass in C."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.pdm_values import DTYPES, PDMError, Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from um_cffi.batch import Batch
    from um_cffi.binding.pdm_values import Field
    from um_cffi.pdm import Definition


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


def _places(messages: Batch | npt.NDArray[np.uint8] | Sequence[Any]) -> tuple[Any, Any, Any]:
    """A buffer with all of them, and where each begins and how long it is."""
    import numpy as np

    from um_cffi.batch import Batch

    if isinstance(messages, Batch):
        records = messages._message_records()
        return messages.view, records["offset"], records["length"]
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


def decode(definition: Definition, messages: Batch | npt.NDArray[np.uint8] | Sequence[Any]) -> npt.NDArray[Any]:
    """Definition.decode_many(), finalized."""
    import numpy as np

    layout = definition.dtype
    base, offsets, lengths = _places(messages)
    table = np.empty(len(lengths), np.dtype([("offset", "<u8"), ("length", "<u4")]))
    table["offset"], table["length"] = offsets, lengths
    out = np.empty(len(table), layout)
    if len(table) == 0:
        return out
    big, some = np.zeros(len(table), np.uint8), ffi.new("int *")
    key = struct.pack("<BBi", *definition.version, definition.id)
    first = ffi.cast("char *", ffi.from_buffer(table))
    source = ffi.from_buffer(base)
    done = lib.um_py_pdm_gather(
        source, len(source), first, first + 8, 12, len(table), key, layout.itemsize,
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
        with np.errstate(invalid="ignore"):  # of what is no number: seen below
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
