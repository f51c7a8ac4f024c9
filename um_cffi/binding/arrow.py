"""Batches as Arrow columns, over the memory that the library filled. No Arrow library is needed: um_py_arrow.c makes
the structures and capsules of Arrow's C interfaces from what is described here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from um_cffi.binding._fast import arrow_array, arrow_schema, arrow_stream, arrow_views
from um_cffi.binding.arguments import shown
from um_cffi.binding.deferred import np
from um_cffi.binding.tails import CHANNEL, HF, PropertyTexts, Tails, tails_of
from um_cffi.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy.typing as npt

    from um_cffi.batch import Batch

Column = tuple[str, str, int, tuple[int, ...], Any, tuple[Any, ...], Any]
"""Name, format of the Arrow C interface, length, addresses of the buffers (0: none), what keeps these alive, children,
dictionary or None."""

Extra = Literal["channel", "hf_number", "properties", "properties_bytes"]
"""Columns that are made when they are asked for, since few messages have something to be in them."""

TIMESTAMP = "tsn:UTC"
_EXTRAS: tuple[Extra, ...] = get_args(Extra)
_NUMBERS = {"i1": "c", "u1": "C", "i2": "s", "u2": "S", "i4": "i", "u4": "I", "i8": "l", "u8": "L"}
_NUMBERS.update({"f2": "e", "f4": "f", "f8": "g"})
_UNITS = {"s": "s", "ms": "m", "us": "u", "ns": "n"}
_NAMES_KEPT = 8  # lists of names whose texts are kept as Arrow data
_VIEW_BYTES = 16
_VIEW_REACH = 1 << 31  # bytes of one buffer that views can refer to

_kept_names: list[tuple[Sequence[str], int, Column]] = []


def extra_names(call: str, extra: Iterable[Extra]) -> tuple[Extra, ...]:
    """Names of extra columns, each once."""
    if isinstance(extra, str) or not isinstance(extra, Iterable):
        raise InvalidArgument(f"{call}: extra {shown(extra)}: give names of columns, as a list")
    names = tuple(dict.fromkeys(extra))
    for name in names:
        if name not in _EXTRAS:
            raise InvalidArgument(f"{call}: extra column {shown(name)}: must be {' or '.join(map(repr, _EXTRAS))}")
    return names


def batch_column(batch: Batch, extra: tuple[Extra, ...] = ()) -> Column:
    """All records of a batch as one column of structures: what Batch.to_arrow() shows."""
    records = batch.records
    columns = [
        _payload(batch, records),
        _names("topic", records["topic"], batch.topics),
        _names("source", records["source"], batch.sources),
        *(_plain(name, records[name]) for name in ("sequence_number", "flags", "type")),
        _plain("timestamp", records["timestamp_ns"], TIMESTAMP),
        *_extras(batch, records, extra),
    ]
    return _struct("", len(records), columns)


def message_column(
    batch: Batch, records: npt.NDArray[np.void], dtype: np.dtype[Any] | None, extra: tuple[Extra, ...] = ()
) -> Column:
    """Messages of a batch, those of `records`: payload or the fields of the dtype, topic, source, timestamp, extras."""
    columns = [_payload(batch, records, True)] if dtype is None else _fields(batch._decode(records, dtype), dtype)
    columns.append(_names("topic", records["topic"], batch.topics))
    columns.append(_names("source", records["source"], batch.sources))
    columns.append(_plain("timestamp", records["timestamp_ns"], TIMESTAMP))
    columns.extend(_extras(batch, records, extra))
    return _struct("", len(records), columns)


def message_schema(dtype: np.dtype[Any] | None, extra: tuple[Extra, ...] = ()) -> Column:
    """The type of what message_column() gives."""
    none = np.zeros(0, np.uint32)
    fields = [_plain("payload", none, "Z")] if dtype is None else _fields(np.zeros(0, dtype), dtype)
    columns = [*fields, _names("topic", none, ()), _names("source", none, ()), _plain("timestamp", none, TIMESTAMP)]
    columns.extend(_extra(name, none.view(np.int32), Tails()) for name in extra)
    return _struct("", 0, columns)


def schema_capsule(column: Column) -> object:
    """What __arrow_c_schema__() returns."""
    return arrow_schema(column)


def capsules(column: Column) -> tuple[object, object]:
    """What __arrow_c_array__() returns."""
    return arrow_schema(column), arrow_array(column)


def stream(schema: Column, following: Callable[[], Column | None]) -> object:
    """What __arrow_c_stream__() returns; `following` gives the next column, None at the end."""
    return arrow_stream(schema, following)


def check_dtype(dtype: np.dtype[Any], extra: tuple[Extra, ...] = ()) -> None:
    """InvalidArgument when there is no Arrow type for a part of it, or a name is one of the other columns."""
    _fields(np.zeros(0, dtype), dtype)
    for name in dtype.names or ():
        if name in ("topic", "source", "timestamp", *extra):
            raise InvalidArgument(f"dtype with a field {name!r}: that is the name of another column; call it otherwise")


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _struct(name: str, length: int, columns: Sequence[Column]) -> Column:
    return name, "+s", length, (0,), None, tuple(columns), None


def _plain(name: str, values: npt.NDArray[Any], format: str | None = None) -> Column:
    """Numbers as they are; a column of records or of structures is copied into one of its own."""
    kept = np.ascontiguousarray(values)
    return name, format or _NUMBERS[kept.dtype.str[1:]], len(kept), (0, _address(kept)), kept, (), None


def _texts(names: Sequence[str]) -> Column:
    """A dictionary's values. Names that are not UTF-8 have question marks in the places of what is not."""
    for known, count, column in _kept_names:
        if known is names and count == len(names):
            return column
    parts = [name.encode("utf-8", "replace") for name in list(names)]
    data = np.frombuffer(b"".join(parts) or b"\0", np.uint8)
    offsets = np.zeros(len(parts) + 1, np.int32)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    column = ("", "u", len(parts), (0, _address(offsets), _address(data)), (offsets, data), (), None)
    _kept_names[_NAMES_KEPT - 1 :] = []
    _kept_names.insert(0, (names, len(parts), column))
    return column


def _names(name: str, indexes: npt.NDArray[np.uint32], names: Sequence[str]) -> Column:
    kept = np.ascontiguousarray(indexes)
    return name, "i", len(kept), (0, _address(kept)), kept, (), _texts(names)


def _payload(batch: Batch, records: npt.NDArray[np.void], large: bool = False) -> Column:
    """The payloads where they lie; `large` asks for large_binary in any case, even if that takes a copy."""
    count = len(records)
    lengths = records["length"].astype(np.int64)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = batch.data
    filled = np.flatnonzero(lengths)  # the offsets of the others do not matter
    if len(filled):
        begin = int(records["offset"][filled[0]])
        in_a_row = (records["offset"].astype(np.int64)[filled] == offsets[filled] + begin).all()
        if in_a_row:
            offsets += begin
        elif not large and len(data) < _VIEW_REACH:
            return _views(batch, records)
        else:
            data = _gathered(batch, records)
    return "payload", "Z", count, (0, _address(offsets), _address(data)), (offsets, data), (), None


def _gathered(batch: Batch, records: npt.NDArray[np.void]) -> npt.NDArray[np.uint8]:
    view = batch.view
    spans = zip(records["offset"].tolist(), records["length"].tolist())
    return np.frombuffer(b"".join([view[at : at + length] for at, length in spans]), np.uint8)


def _views(batch: Batch, records: npt.NDArray[np.void]) -> Column:
    where = np.ascontiguousarray(records)
    views = np.zeros(len(where) * _VIEW_BYTES, np.uint8)
    arrow_views(batch._memory, _address(where), len(where), _address(views))
    sizes = np.array([len(batch.data)], np.int64)
    addresses = (0, _address(views), _address(batch.data), _address(sizes))
    return "payload", "vz", len(where), addresses, (views, batch.data, sizes), (), None


# -- extra columns --


def _extras(batch: Batch, records: npt.NDArray[np.void], names: tuple[Extra, ...]) -> list[Column]:
    if not names:
        return []
    tails = tails_of(batch, records)
    return [_extra(name, np.ascontiguousarray(records["flags"]), tails) for name in names]


def _extra(name: Extra, flags: npt.NDArray[np.int32], tails: Tails) -> Column:
    """One extra column, null where a record has nothing for it."""
    count = len(flags)
    if name == "channel":
        channel = np.zeros(count, np.int64) if tails.channel is None else tails.channel
        return _nullable(_plain(name, channel), (flags & CHANNEL) != 0)
    if name == "hf_number":
        number = np.zeros(count, np.uint64) if tails.hf_number is None else tails.hf_number
        return _nullable(_plain(name, number), (flags & HF) != 0)
    written = tails.properties or [None] * count
    there = np.fromiter((each is not None for each in written), bool, count)
    if name == "properties_bytes":
        return _nullable(_bytes(name, "z", [each or b"" for each in written]), there)
    known = PropertyTexts()
    texts = [[] if each is None else known.texts(each) for each in written]
    keys = _bytes("key", "u", [key.encode() for each in texts for key, _ in each])
    values = _bytes("value", "u", [value.encode() for each in texts for _, value in each])
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum([len(each) for each in texts], out=offsets[1:])
    entries = _struct("entries", int(offsets[-1]), [keys, values])
    return _nullable((name, "+m", count, (0, _address(offsets)), offsets, (entries,), None), there)


def _nullable(column: Column, there: npt.NDArray[np.bool_]) -> Column:
    """The column with nulls where there is nothing."""
    bits = np.packbits(there, bitorder="little") if len(there) else np.zeros(1, np.uint8)
    name, format, length, addresses, kept, children, dictionary = column
    return name, format, length, (_address(bits), *addresses[1:]), (kept, bits), children, dictionary


def _bytes(name: str, format: str, parts: Sequence[bytes]) -> Column:
    """Texts or bytes with offsets of 32 bits; InvalidArgument where these do not reach."""
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    if int(offsets[-1]) >= _VIEW_REACH:
        raise InvalidArgument(f"column {name!r} would have {offsets[-1]} bytes, 2147483647 is the most: take fewer")
    data = np.frombuffer(b"".join(parts) or b"\0", np.uint8)
    short = offsets.astype(np.int32)
    return name, format, len(parts), (0, _address(short), _address(data)), (short, data), (), None


# -- the fields of a dtype --


def _fields(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> list[Column]:
    if dtype.names is None:
        return [_values("value", values.reshape(len(values), *dtype.shape), dtype)]
    return [_values(name, values[name], _field_of(dtype, name)) for name in dtype.names]


def _field_of(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    assert dtype.fields is not None
    return dtype.fields[name][0]


def _values(name: str, values: npt.NDArray[Any], dtype: np.dtype[Any]) -> Column:
    """A column of the Arrow type that a numpy type stands for."""
    if dtype.subdtype is not None:
        return _lists(name, values, dtype)
    if dtype.names is not None:
        children = [_values(part, values[part], _field_of(dtype, part)) for part in dtype.names]
        return _struct(name, len(values), children)
    if dtype.kind == "b":
        bits = np.packbits(np.ascontiguousarray(values), bitorder="little")
        return name, "b", len(values), (0, _address(bits)), bits, (), None
    if dtype.kind in "SU":
        return _strings(name, values, dtype)
    if dtype.kind == "V":
        kept = np.ascontiguousarray(values)
        return name, f"w:{dtype.itemsize}", len(kept), (0, _address(kept)), kept, (), None
    native = values.astype(dtype.newbyteorder("="), copy=False)
    if dtype.kind in "mM":
        unit, count = np.datetime_data(dtype)
        if unit in _UNITS and count == 1:
            return _plain(name, native, f"ts{_UNITS[unit]}:" if dtype.kind == "M" else f"tD{_UNITS[unit]}")
    elif native.dtype.str[1:] in _NUMBERS:
        return _plain(name, native)
    raise InvalidArgument(
        f"field {name!r} of type {dtype}: there is no Arrow type for it; use integers, floats of up to 8 bytes, "
        "booleans, S, U, V, or datetime64 and timedelta64 of s, ms, us or ns"
    )


def _lists(name: str, values: npt.NDArray[Any], dtype: np.dtype[Any]) -> Column:
    assert dtype.subdtype is not None
    base, shape = dtype.subdtype
    size, length = shape[0], len(values)
    inner = np.dtype((base, shape[1:])) if shape[1:] else base
    flat = np.ascontiguousarray(values).reshape(length * size, *shape[1:])
    return name, f"+w:{size}", length, (0,), None, (_values("item", flat, inner),), None


def _strings(name: str, values: npt.NDArray[Any], dtype: np.dtype[Any]) -> Column:
    """Without the NULs that fill a field: numpy leaves them out, too. S is binary, since its encoding is not known."""
    parts = values.tolist()
    if dtype.kind == "U":
        parts = [text.encode("utf-8", "replace") for text in parts]
    data = np.frombuffer(b"".join(parts) or b"\0", np.uint8)
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    format = "U" if dtype.kind == "U" else "Z"
    return name, format, len(parts), (0, _address(offsets), _address(data)), (offsets, data), (), None
