"""Pre-defined messages (PDM): values of fields that a definition, known to both sides or sent along, declares::

    from um_cffi import pdm

    trade = pdm.Definition.from_schema({"symbol": "FIX_STRING(8)", "price": "DOUBLE", "note": "STRING?"}, id=7)
    message = trade.message(symbol="IBM", price=191.5)
    data = message.to_bytes()                  # send it
    received = trade.parse(data)
    received["symbol"], received.price         # 'IBM', 191.5

A definition that is finalized may be used by several threads; a message is for one thread at a time.
"""

from __future__ import annotations

import dataclasses
import struct
import threading
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from um_cffi.binding import pdm_columns
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.frames import ArrowArray, ArrowStream, is_arrow
from um_cffi.binding.pdm_decoded import Column, Columns
from um_cffi.binding.pdm_encoded import Encoded, joined, parts_of
from um_cffi.binding.pdm_values import (
    DTYPES,
    FORMATS,
    SPEC,
    Decimal,
    Field,
    FieldValue,
    Name,
    PDMError,
    Timestamp,
    Type,
    check,
    encode,
    fail,
    name_bytes,
    name_text,
    spec_of,
    text_bytes,
)

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Never

    from um_cffi.batch import Batch
    from um_cffi.binding.frames import Span

__all__ = [
    "Column",
    "Columns",
    "Decimal",
    "Definition",
    "Encoded",
    "Field",
    "FieldValue",
    "Message",
    "PDMError",
    "Timestamp",
    "Type",
    "cache",
]

_TRY_LOAD = 0x8
_USE_INCLUDED = 0x4
_DEPTH_MAX = 16


class Definition:
    """An ordered list of fields with an id and a version; finalized before messages are made of it.

    `num_fields` is a hint only. `int_names` tells whether fields are named by numbers. `id`, a number of 32 bits, and
    `version`, two numbers of 0 to 255, may be assigned until finalize(), and then raise PDMError (DEFN_INVALID).
    Several threads may use one that is finalized.
    """

    def __init__(
        self, num_fields: int = 1, int_names: bool = False, id: int = 0, version: tuple[int, int] = (1, 0)
    ) -> None:
        self.id = id
        """The number that says, with the version, which definition it is; 0 is never cached."""
        self.version = version
        """Major and minor version, each 0 to 255."""
        self.int_names = int_names
        """Whether the names are numbers."""
        self._fields: list[Field] = []
        self._by_name: dict[Name, Field] = {}
        self._ptr: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("id", "version", "int_names") and getattr(self, "_ptr", None) is not None:
            raise PDMError(f"the definition is finalized: its {name} cannot change", PDMError.DEFN_INVALID)
        object.__setattr__(self, name, value)

    def add_field(
        self, name: Name, type: Type, required: bool = True, fixed_str_len: int = 0, num_arr_elem: int = 0
    ) -> Field:
        """Adds a field and returns it. `name` is a str, or a number where the definition has `int_names`; `type` that
        of the value; of a field that is `required` every message has one. `fixed_str_len` is the number of characters
        of a FIX_STRING or FIX_UNICODE, `num_arr_elem` that of the elements of an array, 0 when it may vary. Raises
        PDMError (DEFN_INVALID after finalize(), EINVAL for a name that is there already or of the wrong kind, and for
        numbers out of range)."""
        if self._ptr is not None:
            raise PDMError("the definition is finalized: no field can be added", PDMError.DEFN_INVALID)
        if isinstance(name, str) is self.int_names or name in self._by_name:
            raise PDMError(f"{name!r}: a name of the wrong kind, or twice", PDMError.EINVAL)
        if "\0" in name if isinstance(name, str) else not -(1 << 31) <= name < 1 << 31:
            raise PDMError(f"{name!r}: a name has no NUL, and as a number 32 bits", PDMError.EINVAL)
        if not (0 <= fixed_str_len < 1 << 31 and 0 <= num_arr_elem < 1 << 31):
            raise PDMError(f"{name!r}: lengths and counts are 0 to 2^31-1", PDMError.EINVAL)
        field = Field(name, Type(type), required, fixed_str_len, num_arr_elem, len(self._fields))
        if field.type.scalar in (Type.FIX_STRING, Type.FIX_UNICODE) and fixed_str_len < 1:
            raise PDMError(f"{name!r}: fixed_str_len must be at least 1", PDMError.EINVAL)
        self._fields.append(field)
        self._by_name[name] = field
        return field

    def finalize(self) -> Definition:
        """Closes the definition and returns it. Raises PDMError (DEFN_INVALID without fields, EINVAL for an id or a
        version out of range). A second call does nothing."""
        if self._ptr is not None:
            return self
        version = tuple(self.version)
        if not -(1 << 31) <= self.id < 1 << 31 or len(version) != 2 or not all(0 <= part < 256 for part in version):
            limits = "an id has 32 bits, a version two numbers of 0 to 255"
            raise PDMError(f"id {self.id}, version {self.version}: {limits}", PDMError.EINVAL)
        self.version = (int(version[0]), int(version[1]))
        out = ffi.new("lbmpdm_defn_t **")
        major, minor = (number - 256 if number > 127 else number for number in self.version)
        check(lib.lbmpdm_defn_create(out, max(len(self._fields), 1), self.id, major, minor, int(self.int_names)))
        made = ffi.gc(out[0], lib.lbmpdm_defn_delete)
        attr = ffi.new("lbmpdm_field_info_attr_t *")
        for field in self._fields:
            attr.flags, attr.req = 7, int(field.required)
            attr.fixed_str_len, attr.num_arr_elem = field.fixed_str_len, field.num_arr_elem
            if isinstance(field.name, str):
                check(lib.lbmpdm_defn_add_field_info_by_str_name(made, name_bytes(field.name), field.type, attr))
            else:
                check(lib.lbmpdm_defn_add_field_info_by_int_name(made, field.name, field.type, attr))
        check(lib.lbmpdm_defn_finalize(made))
        self._ptr = made
        return self

    @property
    def finalized(self) -> bool:
        """Whether finalize() has been called."""
        return self._ptr is not None

    @classmethod
    def from_schema(
        cls, schema: Mapping[Any, str | Type], id: int = 0, version: tuple[int, int] = (1, 0)
    ) -> Definition:
        """A finalized definition from names and types: a Type, or a text such as "INT32", "DOUBLE?" (optional),
        "FIX_STRING(8)", "INT32[]" (array), "STRING[3]?" (optional array of three). The names are all texts or all
        numbers. Raises ValueError for a text that is no type."""
        made = cls(len(schema), any(isinstance(name, int) for name in schema), id, version)
        for name, spec in schema.items():
            text = spec.name if isinstance(spec, Type) else spec
            found = SPEC.fullmatch(text)
            scalar = found and found["type"] + ("_ARR" if found["array"] else "")
            if found is None or scalar not in Type.__members__:
                raise ValueError(f"{name!r}: {text!r} is no type of a field, such as INT32, FIX_STRING(8), DOUBLE[3]?")
            made.add_field(
                name, Type[str(scalar)], not found["optional"], int(found["length"] or 0), int(found["count"] or 0)
            )
        return made.finalize()

    @classmethod
    def from_dataclass(cls, kind: type, id: int = 0, version: tuple[int, int] = (1, 0)) -> Definition:
        """From the annotations of a dataclass: bool, int (INT64), float (DOUBLE), str (UNICODE), bytes (BLOB),
        decimal.Decimal, datetime.datetime, lists of them, and Optional of each. `Annotated[int, "INT32"]` gives the
        type by name, as in from_schema(). Raises ValueError for other annotations."""
        schema = {}
        hints = typing.get_type_hints(kind, include_extras=True)
        for member in dataclasses.fields(kind):
            schema[member.name] = spec_of(member.name, hints[member.name])
        return cls.from_schema(schema, id, version)

    @classmethod
    def from_dtype(cls, dtype: npt.DTypeLike, id: int = 0, version: tuple[int, int] = (1, 0)) -> Definition:
        """From a structured numpy dtype: booleans, integers, floats, byte strings (FIX_STRING) and arrays of them of
        one dimension. All fields are fixed and required. Raises ValueError for other dtypes."""
        schema = {}
        given = np.dtype(dtype)
        if given.names is None or given.fields is None:
            raise ValueError(f"{given} is no structured dtype")
        for name in given.names:
            kind = given.fields[name][0]
            base, shape = kind.subdtype or (kind, ())
            native = base.newbyteorder("<").str.lstrip("<|")
            scalar = {text.lstrip("<"): code.name for code, text in DTYPES.items()}.get(native.replace("b1", "?"))
            if base.kind == "S" and base.itemsize > 0:
                scalar = f"FIX_STRING({base.itemsize})"
            if scalar is None or len(shape) > 1:
                raise ValueError(f"{name}: {kind} has no counterpart")
            schema[name] = scalar + (f"[{shape[0]}]" if shape else "")
        return cls.from_schema(schema, id, version)

    def __len__(self) -> int:
        return len(self._fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def field(self, name: Name) -> Field:
        """The field of this name. Raises PDMError (FIELD_NOT_FOUND)."""
        try:
            return self._by_name[name]
        except KeyError:
            raise PDMError(f"the definition has no field {name!r}", PDMError.FIELD_NOT_FOUND) from None

    __getitem__ = field

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Definition):
            return NotImplemented
        mine, others = (self.id, self.version, self._fields), (other.id, other.version, other._fields)
        return mine == others

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name}: {field.type.name}{'' if field.required else '?'}" for field in self)
        return f"<Definition {self.id} {self.version[0]}.{self.version[1]} {{{fields}}}>"

    def message(self, **values: Any) -> Message:
        """A message of this definition with these values. Raises PDMError for unknown fields and ValueError for values
        that do not fit."""
        made = Message(self)
        made.update(values)
        return made

    def parse(self, data: Any) -> Message:
        """The message that `data` (any buffer) is. Raises PDMError (MSG_INVALID and its kin)."""
        made = Message(self)
        made.parse(data)
        return made

    def to_bytes(self) -> bytes:
        """The definition as it is sent along with messages, without their header. Raises PDMError."""
        self.finalize()
        length = lib.lbmpdm_defn_get_length(self._ptr)
        out, written = ffi.new("char[]", length), ffi.new("uint32_t *")
        check(lib.lbmpdm_defn_serialize(self._ptr, out, written))
        return bytes(ffi.buffer(out, written[0]))

    @classmethod
    def from_bytes(cls, data: Any) -> Definition:
        """The definition that these bytes are, in the order of this host. Raises PDMError (DEFN_INVALID)."""
        view = bytes(data)
        out = ffi.new("lbmpdm_defn_t **")
        check(lib.lbmpdm_defn_create(out, 1, 0, 0, 0, 0))
        ptr = ffi.gc(out[0], lib.lbmpdm_defn_delete)
        check(lib.lbmpdm_defn_deserialize(ptr, ffi.from_buffer(view), len(view), 0))
        number, count, by_number, _, major, minor = struct.unpack_from("<iI4B", view)
        made = cls(count, bool(by_number), number, (major, minor))
        entries: list[tuple[int, tuple[Any, ...]]] = []
        at = 20
        for _ in range(count):
            at += 0 if by_number else 4
            handle, _, text_len, elements, required, _, int_name, name_len = struct.unpack_from("<4I2BiI", view, at)
            name: Name = int_name if by_number else name_text(view[at + 26 : at + 25 + name_len])
            (code,) = struct.unpack_from("<H", view, at + 26 + name_len)
            entries.append((handle, (name, Type(code), bool(required), text_len, elements)))
            at += 28 + name_len
        for _, entry in sorted(entries):
            made.add_field(*entry)
        made._ptr = ptr
        return made

    # ---- many messages at once ----

    @property
    def dtype(self) -> np.dtype[Any]:
        """The fixed section of a message as a structured numpy dtype: all fixed-required fields in their order.
        Decimals are (exp, mant) and timestamps (secs, usecs)."""
        return pdm_columns.layout_of(self._fields)

    def decode_many(
        self,
        messages: Batch | Column | Encoded | npt.NDArray[np.uint8] | Sequence[Any],
        out: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """The fixed-required fields of many messages as one structured array; `array["price"]` is a column. One pass
        in C, no object of Python for each message. `messages` is a Batch, of which the records of messages are taken,
        an array of rows as encode_many() gives it, a column of nested messages, of which rows without one are left out,
        or a sequence of buffers. With `out`, an array of `dtype` that is long enough, rows are put there, and what is
        returned is its beginning: batch after batch into the same memory takes half the time. Raises PDMError
        (MSG_INVALID) naming the first that is not of this id and version, InvalidArgument for an `out` that does not
        fit."""
        self.finalize()
        return pdm_columns.decode(self, messages, out)

    def decode_columns(self, messages: Batch | Column | Encoded | npt.NDArray[np.uint8] | Sequence[Any]) -> Columns:
        """All fields of many messages as columns: numbers, texts, lists, with what is missing marked as such; Arrow
        data for those who take it. One pass in C. `messages` are those of decode_many(). Raises PDMError (MSG_INVALID,
        REQ_FIELD_NOT_SET) naming the first that is not of this id and version or is not valid, and NOMEM."""
        self.finalize()
        return pdm_columns.columns_of(self, messages)

    @overload
    def encode_many(self, values: Mapping[Any, Any] | ArrowArray | ArrowStream) -> Encoded: ...
    @overload
    def encode_many(self, values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]: ...
    def encode_many(self, values: Any) -> npt.NDArray[np.uint8] | Encoded:
        """Messages of columns, the `values`, ready for Source.send_many(). Of a structured array whose fields are those
        of `dtype` one row of bytes for each. Of a mapping from names to columns (numpy arrays, Arrow arrays, lists with
        None for what is missing) and of Arrow data (record batches, tables, frames of polars, Columns) an Encoded, by
        one pass in C; optional fields may be null or left out. Raises PDMError (REQ_FIELD_NOT_SET, FIELD_NOT_FOUND for
        a column that is no field, NOMEM) and ValueError, with the column and the row, for what does not fit in its
        field: numbers out of range, integers that a float would round, texts too long, null elements of lists."""
        self.finalize()
        if isinstance(values, Mapping) or is_arrow(values):
            return joined(list(parts_of(self, values)))
        return pdm_columns.encode(self, values)

    def _spans(self, values: Any) -> Iterator[Span]:
        """The messages of encode_many(), one record batch after the other, where they lie."""
        self.finalize()
        if isinstance(values, Mapping) or is_arrow(values):
            for part in parts_of(self, values):
                yield (
                    part.data.ctypes.data,
                    part.offsets[:-1].astype(np.uint64),
                    np.diff(part.offsets).astype(np.uint32),
                    part,
                )
        else:
            rows = pdm_columns.encode(self, values)
            offsets = np.arange(len(rows), dtype=np.uint64) * np.uint64(rows.shape[1])
            yield rows.ctypes.data, offsets, np.full(len(rows), rows.shape[1], np.uint32), rows


class Message:
    """Values of the fields of a definition. Fields are reached by Field or name: `m["price"]`, and by attribute when
    the name is no other attribute: `m.price`. Reused for any number of messages. For one thread at a time.

    Without a definition it takes the one that comes along with what is parsed.
    """

    __slots__ = ("_defn", "_given", "_include", "_known", "_own", "_ptr", "_try_load")

    def __init__(self, definition: Definition | None = None) -> None:
        object.__setattr__(self, "_ptr", None)
        self._include = self._try_load = False
        self._given = definition.finalize() if definition is not None else None
        self._own = self._given._ptr if self._given is not None else ffi.NULL
        self._make()

    def _make(self) -> None:
        self._defn, self._known = self._given, self._own
        out = ffi.new("lbmpdm_msg_t **")
        flags = (_TRY_LOAD if self._try_load else 0) | _USE_INCLUDED
        check(lib.lbmpdm_msg_create(out, self._own, flags))
        self._ptr = out[0]

    def _free(self) -> None:
        ptr, self._ptr = self._ptr, None
        if ptr is not None and lib.lbmpdm_msg_get_defn(ptr) == self._own:
            lib.lbmpdm_msg_delete(ptr)
        elif ptr is not None:  # a definition that came along
            lib.lbmpdm_msg_and_defn_delete(ptr)

    def __del__(self) -> None:
        self._free()

    @property
    def definition(self) -> Definition | None:
        """The definition in use: the given one, or that of what was parsed."""
        return self._defn

    @property
    def include_definition(self) -> bool:
        """Whether to_bytes() has the definition in it. May be assigned."""
        return self._include

    @include_definition.setter
    def include_definition(self, value: bool) -> None:
        self._include = bool(value)
        (lib.lbmpdm_msg_set_incl_defn_flag if value else lib.lbmpdm_msg_unset_incl_defn_flag)(self._ptr)

    @property
    def try_load_def_from_cache(self) -> bool:
        """Whether parse() looks for unknown definitions in `cache`. May be assigned, which drops the values."""
        return self._try_load

    @try_load_def_from_cache.setter
    def try_load_def_from_cache(self, value: bool) -> None:
        if self._try_load != bool(value):
            self._free()
            self._try_load = bool(value)
            self._make()
            self.include_definition = self._include

    def _field(self, key: Field | Name) -> Field:
        if self._defn is None:
            raise PDMError("the message has no definition", PDMError.DEFN_INVALID)
        if not isinstance(key, Field):
            return self._defn.field(key)
        fields = self._defn._fields
        if key.handle >= len(fields) or (fields[key.handle] is not key and fields[key.handle] != key):
            raise PDMError(f"{key.name!r} is a field of another definition", PDMError.FIELD_NOT_FOUND)
        return key

    def __setitem__(self, key: Field | Name, value: Any) -> None:
        field = self._field(key)
        if value is None:
            check(lib.lbmpdm_msg_remove_field_value(self._ptr, field.handle))
            return
        if field.type.is_array and isinstance(value, (str, bytes, bytearray)) and field.type > Type.TIMESTAMP_ARR:
            raise TypeError(f"{field.name}: {value!r:.80} is one value, not a list of them")
        values = list(value) if field.type.is_array else [value]
        lengths: Any = ffi.NULL
        keep: Any
        if field.type.scalar <= Type.TIMESTAMP:
            keep = encode(field, values)
            given = ffi.from_buffer(keep) if isinstance(keep, bytes) else keep
            first = given
        elif field.type.scalar is Type.MESSAGE:
            if not all(isinstance(message, Message) for message in values):
                raise TypeError(f"{field.name}: {value!r:.80} is no Message")
            given = keep = ffi.new("void *[]", [message._ptr for message in values])
            first = keep[0] if values else given
        else:
            texts = [text_bytes(field, one) for one in values]
            keep = [ffi.from_buffer(text) if text else ffi.new("char[1]") for text in texts]
            given, lengths = ffi.new("char *[]", keep), ffi.new("size_t[]", [len(text) for text in texts])
            first = keep[0] if keep else given
        if field.type.is_array:
            check(lib.lbmpdm_msg_set_field_value_vec(self._ptr, field.handle, given, lengths, len(values)))
        else:
            length = 0 if lengths == ffi.NULL else lengths[0]
            check(lib.lbmpdm_msg_set_field_value(self._ptr, field.handle, first, length))

    def _decode_one(self, field: Field, data: bytes) -> Any:
        scalar = field.type.scalar
        if scalar is Type.BLOB:
            return data
        if scalar is Type.DECIMAL:
            return Decimal(*struct.unpack_from("=qb", data))
        if scalar is Type.TIMESTAMP:
            return Timestamp(*struct.unpack("=ii", data))
        if scalar is Type.MESSAGE:
            inner = Message()
            inner.try_load_def_from_cache = self._try_load
            inner.parse(data)
            return inner
        if scalar in (Type.FIX_STRING, Type.FIX_UNICODE):
            return data.rstrip(b"\0").decode("utf-8", "replace")
        return (data[:-1] if data.endswith(b"\0") else data).decode("utf-8", "replace")

    def __getitem__(self, key: Field | Name) -> Any:
        field = self._field(key)
        value = ffi.new("lbmpdm_field_value_t *")
        check(lib.lbmpdm_msg_get_field_value_stct(self._ptr, field.handle, value))
        try:
            code = FORMATS.get(field.type.scalar)
            if not value.is_array:
                data = bytes(ffi.buffer(value.value, value.len))
                return struct.unpack("=" + code, data)[0] if code else self._decode_one(field, data)
            count = value.num_arr_elem
            if code:
                size = struct.calcsize("=" + code)
                return (
                    list(struct.unpack(f"={count}{code}", ffi.buffer(value.value_arr[0], count * size)))
                    if count
                    else []
                )
            parts = [bytes(ffi.buffer(value.value_arr[i], value.len_arr[i])) for i in range(count)]
            return [self._decode_one(field, part) for part in parts]
        finally:
            lib.lbmpdm_field_value_stct_delete(value)

    def __delitem__(self, key: Field | Name) -> None:
        self[key] = None

    def is_set(self, key: Field | Name) -> bool:
        """Whether the field `key` has a value. Raises PDMError (FIELD_NOT_FOUND)."""
        return bool(lib.lbmpdm_msg_is_field_set(self._ptr, self._field(key).handle))

    def get(self, key: Field | Name, default: Any = None) -> Any:
        """The value of the field `key`, or `default` when it is not set. Raises PDMError (FIELD_NOT_FOUND)."""
        return self[key] if self.is_set(key) else default

    def get_as(self, key: Field | Name, type: Type) -> Any:
        """The value of the field `key`, which has this `type`. Raises PDMError (EINVAL when it has another). The
        methods get_int32(), get_string_array() and so on do the same."""
        if self._field(key).type is not type:
            raise PDMError(f"field {key!r} is {self._field(key).type.name}, not {type.name}", PDMError.EINVAL)
        return self[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("get_"):
            text = name[4:].upper()
            text = text[: -len("_ARRAY")] + "_ARR" if text.endswith("_ARRAY") else text
            if text in Type.__members__:
                return lambda key: self.get_as(key, Type[text])
        if name.startswith("_") or self._defn is None or name not in self._defn:
            raise AttributeError(f"the message has no field {name!r}")
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Message.__slots__ or hasattr(Message, name):
            object.__setattr__(self, name, value)
        elif self._defn is None or name not in self._defn:
            raise AttributeError(f"the message has no field {name!r}")
        else:
            self[name] = value

    def __iter__(self) -> Iterator[FieldValue]:
        """Every field of the definition in its order, set or not."""
        for field in self._defn or ():
            set_now = self.is_set(field)
            yield FieldValue(field.name, field.type, set_now, self[field] if set_now else None)

    def __len__(self) -> int:
        return 0 if self._defn is None else len(self._defn)

    def update(self, values: Any) -> None:
        """Sets the values of a mapping, a dataclass object or a row of a structured array. Raises PDMError and
        ValueError as assignment does."""
        if dataclasses.is_dataclass(values):
            values = {member.name: getattr(values, member.name) for member in dataclasses.fields(values)}
        elif hasattr(values, "dtype"):
            values = {name: self._from_row(name, values[name].tolist()) for name in values.dtype.names}
        for name, value in values.items():
            self[name] = value

    def _from_row(self, name: str, value: Any) -> Any:
        """What a column of a structured array has, as the field has it."""
        kind = self._field(name).type.scalar
        if isinstance(value, list):
            return [self._from_row(name, one) for one in value]
        if isinstance(value, bytes) and kind is not Type.BLOB:
            return value.decode()
        if isinstance(value, tuple):
            return Decimal(value[1], value[0]) if kind is Type.DECIMAL else Timestamp(*value)
        return value

    def to_dict(self, depth: int = _DEPTH_MAX) -> dict[Name, Any]:
        """The fields that are set, nested messages as dictionaries, at most `depth` (a number of levels) deep. Raises
        PDMError (MSG_INVALID) when they are nested deeper."""
        if depth < 1:
            raise PDMError(f"messages nested more than {_DEPTH_MAX} deep", PDMError.MSG_INVALID)

        def plain(value: Any) -> Any:
            if isinstance(value, list):
                return [plain(one) for one in value]
            return value.to_dict(depth - 1) if isinstance(value, Message) else value

        return {found.name: plain(found.value) for found in self if found.is_set}

    def to_dataclass(self, kind: type) -> Any:
        """An object of the dataclass `kind` made of the values, None for what is not set. Decimals and timestamps
        become decimal.Decimal and datetime.datetime. Raises PDMError (FIELD_NOT_FOUND)."""

        def plain(value: Any) -> Any:
            if isinstance(value, list):
                return [plain(one) for one in value]
            if isinstance(value, Decimal):
                return value.to_decimal()
            return value.to_datetime() if isinstance(value, Timestamp) else value

        return kind(**{member.name: plain(self.get(member.name)) for member in dataclasses.fields(kind)})

    def to_bytes(self) -> bytes:
        """The message as bytes. Raises PDMError (REQ_FIELD_NOT_SET)."""
        length = lib.lbmpdm_msg_get_length(self._ptr)
        if length == 0:
            fail()
        out = bytearray(length)
        check(lib.lbmpdm_msg_serialize(self._ptr, ffi.from_buffer(out)))
        return bytes(out)

    __bytes__ = to_bytes

    def parse(self, data: Any) -> None:
        """Takes the values of `data`: any buffer, which is not used afterwards. Raises PDMError (MSG_INVALID,
        DEFN_INVALID, REQ_FIELD_NOT_SET); the message has no values then."""
        view = ffi.from_buffer(data)
        result = lib.lbmpdm_msg_deserialize(self._ptr, view, len(view))
        error = ffi.string(lib.lbmpdm_errmsg()).decode("utf-8", "replace"), lib.lbmpdm_errnum()
        now = lib.lbmpdm_msg_get_defn(self._ptr)
        if now != self._known and now != ffi.NULL:
            self._defn, self._known = None, ffi.NULL  # where the copy fails, no field is taken for another
            self._defn, self._known = _copy(now), now
        if result < 0:
            raise PDMError(*error)

    def __repr__(self) -> str:
        number = "without definition" if self._defn is None else f"of {self._defn.id}"
        try:
            return f"<Message {number} {self.to_dict()}>"
        except PDMError as error:  # what is nested in it cannot be read
            return f"<Message {number}: {error}>"

    def __reduce__(self) -> Never:
        raise TypeError("a Message cannot be copied or pickled: send its to_bytes()")


def _copy(ptr: Any) -> Definition:
    """A definition of Python's own, with a life of its own."""
    out, written = ffi.new("char[]", lib.lbmpdm_defn_get_length(ptr)), ffi.new("uint32_t *")
    check(lib.lbmpdm_defn_serialize(ptr, out, written))
    return Definition.from_bytes(bytes(ffi.buffer(out, written[0])))


class _Cache:
    """The definitions of the process that messages with `try_load_def_from_cache` find. Any thread. It keeps copies."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # what is found is copied before it may be removed

    def put(self, definition: Definition) -> None:
        """Keeps the definition; one with id 0 is not kept. Raises PDMError (NOMEM when the cache is full)."""
        if definition.id == 0:
            return
        copy = Definition.from_bytes(definition.to_bytes())
        old = ffi.new("lbmpdm_defn_t **")
        with self._lock:
            replaced = lib.lbmpdm_cache_struct_find_by_version(old, definition.id, *definition.version) == 0
            check(lib.lbmpdm_cache_struct_add(copy._ptr))  # at no time there is none of this version
            ffi.gc(copy._ptr, None)  # the cache's now
            if replaced:
                lib.lbmpdm_defn_delete(old[0])

    def get(self, id: int, major: int | None = None, minor: int = 0) -> Definition | None:
        """A copy of this version, without `major` of the newest; None when there is none."""
        out = ffi.new("lbmpdm_defn_t **")
        with self._lock:
            if major is None:
                found = lib.lbmpdm_cache_struct_find(out, id)
            else:
                found = lib.lbmpdm_cache_struct_find_by_version(out, id, major, minor)
            return _copy(out[0]) if found == 0 else None

    def remove(self, id: int, major: int | None = None, minor: int = 0) -> None:
        """Removes this version, without `major` all of the id. Messages keep what they have."""
        with self._lock:
            if major is None:
                lib.lbmpdm_cache_struct_remove(id)
            else:
                lib.lbmpdm_cache_struct_remove_by_version(id, major, minor)

    def clear(self) -> None:
        """Removes all."""
        with self._lock:
            lib.lbmpdm_cache_clear_all()


cache = _Cache()
"""The cache of the process."""
