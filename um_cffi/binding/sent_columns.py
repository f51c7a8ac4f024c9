"""What the messages of one send_many() have beside their payload, as columns: channels and properties.

Everything is looked at before the first message goes: what is wrong is refused with its row, and nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Union

from um_cffi.binding._native import ffi
from um_cffi.binding.arguments import channel_number, name_bytes, shown
from um_cffi.binding.deferred import is_integer, np
from um_cffi.binding.frames import arrow_column, is_arrow
from um_cffi.errors import InvalidArgument
from um_cffi.properties import NAME_MAX, Properties, PropertyType, made_of, type_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from um_cffi.binding.frames import ArrowArray, ArrowStream
    from um_cffi.properties import PropertyValue

    Values = Union[PropertyValue, npt.NDArray[Any], ArrowArray, ArrowStream, Sequence[Any]]
    """Of one property: a value for all messages, or one for each; None where a message has none."""
    PropertyColumns = Union[Mapping[str, Values], Sequence[Union[Mapping[str, PropertyValue], None]]]
    ChannelColumn = Union[int, npt.NDArray[Any], ArrowArray, ArrowStream, Sequence[Union[int, None]]]

_NO_CHANNEL = -1
_KINDS = {
    "b1": PropertyType.BOOLEAN,
    "i1": PropertyType.BYTE,
    "i2": PropertyType.SHORT,
    "i4": PropertyType.INT,
    "i8": PropertyType.LONG,
    "f4": PropertyType.FLOAT,
    "f8": PropertyType.DOUBLE,
}
_CODES = {kind: code for code, kind in _KINDS.items()}
_COLUMNS_MAX = 64  # that mappings of rows are made to
_ROWS_KEPT = 1024  # properties of rows that others may have, too


@dataclass
class _Column:
    """Values of one property, as um_py_column_t wants them."""

    kind: PropertyType
    data: npt.NDArray[Any]
    """A value for each row, or one for all; of texts the bytes."""
    ends: npt.NDArray[np.uint64] | None
    """Of texts: where each begins, and the end of the last one."""
    there: npt.NDArray[np.bool_] | None
    """None: all rows have one."""
    rows: int | None
    """None: one value for all."""

    def value(self, at: int) -> PropertyValue | None:
        """That of one row; None: it has none."""
        at = 0 if self.rows is None else at
        if self.there is not None and not self.there[at]:
            return None
        if self.ends is not None:
            return bytes(self.data[int(self.ends[at]) : int(self.ends[at + 1])]).decode()
        value: PropertyValue = self.data[at]
        return value


class SentColumns:
    """Channels and properties of the messages of one send_many() of a source `name`."""

    def __init__(self, name: str, channels: ChannelColumn | None, properties: PropertyColumns | None) -> None:
        self._call = f"send_many() of the {name}"
        self._lengths: dict[str, int] = {}
        self._kept: list[Any] = []
        self.sent: Any = ffi.new("um_py_columns_t *")
        """For um_py_send_many_with()."""
        self.sent.channel = _NO_CHANNEL
        self._channels: npt.NDArray[np.int64] | None = None
        self._columns: dict[str, _Column] = {}
        self._rows: list[Properties | None] | None = None
        self._all: Properties | None = None
        if channels is not None:
            self._take_channels(channels)
        if isinstance(properties, Properties):
            self._all = made_of(properties)
            self._hold_rows([self._all], 0)
        elif isinstance(properties, Mapping):
            self._take_columns(properties)
        elif properties is not None:
            self._take_rows(properties)

    def _wrong(self, text: str) -> InvalidArgument:
        return InvalidArgument(f"{self._call}: {text}")

    # -- what is given --

    def _take_channels(self, channels: Any) -> None:
        if is_integer(channels):
            self.sent.channel = channel_number(self._call, channels)
            return
        values, there = self._values("channels", channels)
        if values.dtype == object:
            there = np.fromiter((each is not None for each in values), bool, len(values))
            values = np.array([self._channel_of(row, each) for row, each in enumerate(values.tolist())], np.int64)
        elif values.dtype.kind not in "iu" and len(values):
            raise self._wrong(f"channels of the type {values.dtype}: must be integers, 0 to 4294967295")
        wrong = np.flatnonzero((values < _NO_CHANNEL) | (values > 0xFFFFFFFF))
        if len(wrong):
            raise self._wrong(
                f"channels, row {wrong[0]}: {values[wrong[0]]}: must be 0 to 4294967295, or -1 for a message of none"
            )
        self._channels = values.astype(np.int64)
        if there is not None:
            self._channels[~there] = _NO_CHANNEL
        self.sent.channels = ffi.from_buffer("int64_t[]", self._channels)

    def _channel_of(self, row: int, value: Any) -> int:
        if value is None or (value == _NO_CHANNEL and type(value) is int):
            return _NO_CHANNEL
        return channel_number(f"{self._call}: channels, row {row}", value)

    def _take_columns(self, properties: Mapping[str, Any]) -> None:
        self.sent.columns = held = self._hold(ffi.new("um_py_column_t[]", max(1, len(properties))))
        for at, (name, values) in enumerate(properties.items()):
            named = name_bytes(self._call, "property", name)
            if not 0 < len(named) <= NAME_MAX:
                raise self._wrong(f"property {shown(name)} of {len(named)} bytes: must have 1..{NAME_MAX}")
            column = self._columns[name] = self._column(f"property {name}", values)
            held[at].name = self._hold(ffi.new("char[]", named))
            held[at].type = int(column.kind)
            held[at].size = held[at].stride = column.data.itemsize
            if column.rows is None:
                held[at].stride = 0
            held[at].values = ffi.cast("char *", column.data.ctypes.data)
            if column.ends is not None:
                held[at].ends = ffi.from_buffer("uint64_t[]", column.ends)
            if column.there is not None:
                held[at].there = ffi.cast("uint8_t *", column.there.ctypes.data)
        self.sent.count = len(self._columns)

    def _take_rows(self, properties: Any) -> None:
        if isinstance(properties, (str, bytes)) or not hasattr(properties, "__len__") or is_arrow(properties):
            raise self._wrong(
                f"properties {shown(properties)}: give a mapping of names to columns, or a list with "
                "a mapping, or None, for each message"
            )
        columns = _columns_of(properties)
        if columns is not None:
            self._take_columns(columns)
            self._lengths = {"channels": self._lengths["channels"]} if "channels" in self._lengths else {}
            self._lengths["properties"] = len(properties)
            return
        known: dict[Any, Properties | None] = {}
        rows: list[Properties | None] = []
        for row, each in enumerate(properties):
            if each is None or isinstance(each, Properties):
                rows.append(made_of(each))
                continue
            if not isinstance(each, Mapping):
                raise self._wrong(
                    f"properties, row {row}: {shown(each)}: must be a mapping of names to values, or None"
                )
            key = tuple((name, type(value), value) for name, value in each.items())
            try:
                if key not in known:
                    if len(known) >= _ROWS_KEPT:
                        known.clear()
                    known[key] = made_of(each)
                rows.append(known[key])
            except (InvalidArgument, TypeError) as error:  # a value that has no hash is none
                raise self._wrong(f"properties, row {row}: {error}") from None
        self._rows = rows
        self._lengths["properties"] = len(rows)
        self._hold_rows(rows, 1)

    def _hold(self, thing: Any) -> Any:
        self._kept.append(thing)
        return thing

    def _hold_rows(self, rows: list[Properties | None], stride: int) -> None:
        held = self._hold(ffi.new("lbm_msg_properties_t *[]", max(1, len(rows))))
        for at, each in enumerate(rows):
            if each is not None:
                held[at] = each._object
        self.sent.rows = held
        self.sent.rows_stride = stride

    # -- columns --

    def _values(self, what: str, values: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
        """A value for each row, and which rows have one (None: all)."""
        there: npt.NDArray[np.bool_] | None = None
        if hasattr(values, "iloc") and hasattr(values, "isna"):  # of pandas
            found, there = _of_pandas(values)
        elif is_arrow(values):
            found, there = arrow_column(self._call, values)
        elif isinstance(values, np.ma.MaskedArray):
            found, there = np.asarray(values.data), ~np.ma.getmaskarray(values)
        elif isinstance(values, np.ndarray):
            found = values
        elif isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
            raise self._wrong(f"{what} {shown(values)}: must be a value for all messages, or an array or list of them")
        else:
            found = np.empty(len(values), object)
            found[:] = list(values)
        if found.ndim != 1:
            raise self._wrong(f"{what}: an array of {found.ndim} dimensions: must have one")
        self._lengths[what] = len(found)
        return found, there

    def _column(self, what: str, values: Any) -> _Column:
        if isinstance(values, (str, bool, int, float, np.generic)):
            return self._constant(what, values)
        found, there = self._values(what, values)
        if found.dtype == object:
            return self._of_objects(what, found, there)
        if found.dtype.kind == "U":
            return self._texts(what, found.tolist(), there)
        kind = _KINDS.get(found.dtype.str[1:])
        if kind is None:
            raise self._wrong(
                f"{what}: values of the type {found.dtype}: must be bool, int8, int16, int32, int64, float32, float64 "
                "or texts; convert them, for example with .astype(np.int64)"
            )
        native = np.ascontiguousarray(found, found.dtype.newbyteorder("="))
        return _Column(kind, native, None, there, len(native))

    def _constant(self, what: str, value: Any) -> _Column:
        try:
            kind = type_of(what, value)
            if kind is PropertyType.STRING:
                column = self._texts(what, [value], None)
            else:
                column = _Column(kind, np.array([value], _CODES[kind]), None, None, 1)
        except OverflowError:
            raise self._wrong(f"{what}: {shown(value)} does not fit into 64 bits") from None
        column.rows = None
        return column

    def _of_objects(self, what: str, found: npt.NDArray[Any], there: npt.NDArray[np.bool_] | None) -> _Column:
        values = found.tolist()
        if there is not None:
            values = [value if is_there else None for value, is_there in zip(values, there.tolist())]
        kinds = {type(value): None for value in values if value is not None}
        if any(value is None for value in values):
            there = np.fromiter((value is not None for value in values), bool, len(values))
        types: dict[PropertyType, type] = {}
        for each in kinds:
            at = next(row for row, value in enumerate(values) if type(value) is each)
            types.setdefault(type_of(f"{what}, row {at}", values[at]), each)
        if len(types) > 1:
            names = " and ".join(sorted(each.__name__ for each in types.values()))
            raise self._wrong(f"{what}: values of the types {names}: must all be of one, or None")
        kind = next(iter(types), PropertyType.STRING)
        if kind is PropertyType.STRING:
            return self._texts(what, ["" if value is None else value for value in values], there)
        try:
            data = np.array([0 if value is None else value for value in values], _CODES[kind])
        except OverflowError:
            at = [value is None or -(1 << 63) <= value < 1 << 63 for value in values].index(False)
            raise self._wrong(f"{what}, row {at}: {shown(values[at])} does not fit into 64 bits") from None
        return _Column(kind, data, None, there, len(data))

    def _texts(self, what: str, texts: Sequence[str], there: npt.NDArray[np.bool_] | None) -> _Column:
        try:
            parts = [text.encode() for text in texts]
        except UnicodeEncodeError:
            parts = [name_bytes(self._call, f"{what}, row {row}", text) for row, text in enumerate(texts)]
        joined = b"".join(parts)
        if b"\0" in joined:
            for row, text in enumerate(texts):
                name_bytes(self._call, f"{what}, row {row}", text)
        ends = np.zeros(len(parts) + 1, np.uint64)
        np.cumsum([len(part) for part in parts], out=ends[1:])
        data = np.frombuffer(joined or b"\0", np.uint8)
        return _Column(PropertyType.STRING, data, ends, there, len(parts))

    # -- what messages get --

    def check_count(self, count: int) -> None:
        """InvalidArgument when there are not as many values as messages."""
        for what, length in self._lengths.items():
            if length != count:
                raise self._wrong(f"{what}: {length} values for {count} messages: give one for each")

    def check_end(self, count: int) -> None:
        """InvalidArgument when `count` messages, which are on their way, are more than there are values."""
        for what, length in self._lengths.items():
            if count > length:
                raise self._wrong(f"{what}: {length} values for more messages: give one for each")

    def channel(self, at: int) -> int | None:
        """That of one message."""
        number = int(self.sent.channel if self._channels is None else self._channels[at])
        return None if number == _NO_CHANNEL else number

    def properties(self, at: int) -> Mapping[str, PropertyValue] | None:
        """Those of one message."""
        if self._all is not None:
            return self._all
        if self._rows is not None:
            return self._rows[at]
        found = {name: column.value(at) for name, column in self._columns.items()}
        given = {name: value for name, value in found.items() if value is not None}
        return given or None


def _of_pandas(values: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """A column of pandas; NaN is a value of its floats, and a missing one elsewhere."""
    if isinstance(values.dtype, np.dtype) and values.dtype != object:
        return np.asarray(values.to_numpy()), None
    missing = np.asarray(values.isna(), bool)
    kind = getattr(values.dtype, "numpy_dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "biuf":
        return np.asarray(values.to_numpy(dtype=kind, na_value=kind.type(0))), ~missing
    found = np.array(values.to_numpy(dtype=object))
    found[missing] = None
    return found, None


def _columns_of(rows: Sequence[Any]) -> dict[str, list[Any]] | None:
    """Mappings of rows as columns, which cost less; None: they are not alike, or something is wrong with one."""
    columns: dict[str, list[Any]] = {}
    for at, row in enumerate(rows):
        if row is None:
            continue
        if type(row) is not dict:
            return None
        for name, value in row.items():
            column = columns.get(name)
            if column is None:
                if (
                    len(columns) == _COLUMNS_MAX
                    or not isinstance(name, str)
                    or not 0 < len(name.encode("utf-8", "replace")) <= NAME_MAX
                ):
                    return None
                column = columns[name] = [None] * len(rows)
            column[at] = value
    if sum(len(row) for row in rows if row) != sum(len(rows) - column.count(None) for column in columns.values()):
        return None  # values that are None
    types = [{type(value) for value in column} - {type(None)} for column in columns.values()]
    return columns if all(len(each) == 1 and each <= _plain_types() for each in types) else None


@cache
def _plain_types() -> set[type]:
    return {bool, int, float, str, np.int8, np.int16, np.int32, np.int64, np.float32, np.float64}
