"""Self-describing messages (SDM): fields with a name, a type and a value, or none, read without a schema.

The bytes are independent of contexts and transports: send `message.to_bytes()`, and read `SDMMessage.parse(data)`. A
message is for one thread at a time; different messages may be used in different threads. Failures are SDMError.

message = SDMMessage()
message.add("price", 314.15)
message.add("sizes", [100, 200], SDMType.INT32)
assert SDMMessage.parse(message.to_bytes())["PRICE"] == 314.15
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Context, Decimal
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import shown
from um_cffi.errors import InvalidArgument, UmError, text

if TYPE_CHECKING:
    from typing_extensions import Buffer, Never

__all__ = ["SDMError", "SDMField", "SDMMessage", "SDMType"]

_ARRAY = 0x0100
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EXACT = Context(prec=60)


class SDMError(UmError):
    """A call of the SDM library failed; `errnum` is its LBMSDM_ERR_* number (4 duplicate field, 6 not found, ...)."""


class SDMType(IntEnum):
    """The type of a field, or of the elements of an array."""

    BOOLEAN = 1  #: bool
    INT8 = 2  #: int
    UINT8 = 3  #: int
    INT16 = 4  #: int
    UINT16 = 5  #: int
    INT32 = 6  #: int
    UINT32 = 7  #: int
    INT64 = 8  #: int
    UINT64 = 9  #: int
    FLOAT = 10  #: float, of 32 bits
    DOUBLE = 11  #: float
    DECIMAL = 12  #: decimal.Decimal: 64 bits of digits, exponent -128 to 127
    TIMESTAMP = 13  #: datetime with a time zone, to the microsecond; comes back in UTC
    MESSAGE = 14  #: SDMMessage, a copy each way
    STRING = 15  #: str without NUL, as UTF-8; bytes that are not UTF-8 come back as surrogates
    UNICODE = 16  #: str
    BLOB = 17  #: bytes


@dataclass(frozen=True)
class SDMField:
    """A field as it was when it was read."""

    name: str
    """As it was given; names are compared without regard to the case of A to Z."""
    type: SDMType
    """Of the value, or of the elements of an array."""
    is_array: bool
    """Whether `value` is a list."""
    is_null: bool
    """Whether there is no value; it is None then."""
    value: Any
    """bool, int, float, Decimal, datetime, SDMMessage, str, bytes, or a list of one of them."""


def _raise_last() -> Never:
    raise SDMError(text(lib.lbmsdm_errmsg()), lib.lbmsdm_errnum())


def _check(result: int) -> None:
    if result != 0:
        _raise_last()


def _wrong(value: object, type_: SDMType, why: str = "") -> InvalidArgument:
    return InvalidArgument(f"{shown(value)} cannot be a {type_.name}{': ' if why else ''}{why}")


# ---- what is given to C for a value ----


def _decimal(value: Any) -> tuple[Any, ...]:
    number = value if isinstance(value, Decimal) else Decimal(value)
    _, digits, power = number.as_tuple()
    if not isinstance(power, int):
        raise _wrong(value, SDMType.DECIMAL, "it is not finite")
    exponent: int = power
    if number == 0:
        digits, exponent = (0,), min(max(exponent, -128), 127)
    mantissa = int(number.scaleb(-exponent, _EXACT)) if len(digits) < 40 and number else 0
    while exponent > 127 and 0 < abs(mantissa) < 1 << 63:
        mantissa, exponent = mantissa * 10, exponent - 1
    if len(digits) >= 40 or not -(1 << 63) <= mantissa < 1 << 63 or exponent < -128:
        raise _wrong(value, SDMType.DECIMAL, "it needs more than 64 bits of digits, or an exponent outside -128 to 127")
    return (ffi.new("lbmsdm_decimal_t *", {"mant": mantissa, "exp": exponent}),)


def _float(value: Any) -> tuple[Any, ...]:
    try:
        struct.pack("<f", value)  # OverflowError for what would be infinite
    except struct.error as error:
        raise _wrong(value, SDMType.FLOAT, str(error)) from None
    return (value,)


def _timestamp(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise _wrong(value, SDMType.TIMESTAMP, "give a datetime with a time zone")
    since = value - _EPOCH
    fields = {"tv_sec": since.days * 86400 + since.seconds, "tv_usec": since.microseconds}
    return (ffi.new("struct timeval *", fields),)


def _message(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, SDMMessage):
        raise _wrong(value, SDMType.MESSAGE)
    return (value._msg,)


def _string(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, str) or "\0" in value:
        raise _wrong(value, SDMType.STRING, "give a str without NUL")
    return (value.encode("utf-8", "surrogateescape"),)


def _unicode(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, str):
        raise _wrong(value, SDMType.UNICODE, "give a str")
    return ffi.new("wchar_t[]", value), len(value)


def _blob(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        raise _wrong(value, SDMType.BLOB, "give bytes")
    data = ffi.from_buffer(value)
    return data, len(data)


_GIVEN: dict[SDMType, Callable[[Any], tuple[Any, ...]]] = {
    SDMType.BOOLEAN: lambda value: (1 if value else 0,),
    SDMType.FLOAT: _float,
    SDMType.DECIMAL: _decimal,
    SDMType.TIMESTAMP: _timestamp,
    SDMType.MESSAGE: _message,
    SDMType.STRING: _string,
    SDMType.UNICODE: _unicode,
    SDMType.BLOB: _blob,
}


def _given(type_: SDMType, value: object) -> tuple[Any, ...]:
    """The arguments of a C call for a value."""
    try:
        return _GIVEN.get(type_, lambda number: (number,))(value)
    except (TypeError, ValueError, ArithmeticError, BufferError) as error:
        if isinstance(error, UmError):
            raise
        raise _wrong(value, type_, str(error)) from None


def _call(function: str, type_: SDMType, value: object, *arguments: object) -> None:
    try:
        result = getattr(lib, function)(*arguments, *_given(type_, value))
    except (TypeError, OverflowError) as error:  # of numbers, which cffi looks at
        raise _wrong(value, type_, str(error)) from None
    _check(result)


# ---- what comes back ----


def _take(ctype: str) -> Callable[..., Any]:
    def read(call: Callable[..., int], *where: object) -> Any:
        out = ffi.new(f"{ctype} *")
        _check(call(*where, out))
        return out[0]

    return read


def _take_units(ctype: str) -> Callable[..., Any]:
    def read(call: Callable[..., int], *where: object) -> Any:
        size = ffi.new("size_t *")
        if call(*where, ffi.NULL, size) == 0:
            return ffi.new(f"{ctype}[]", 0)
        out = ffi.new(f"{ctype}[]", size[0])
        _check(call(*where, out, size))
        return out

    return read


def _read_decimal(call: Callable[..., int], *where: object) -> Decimal:
    out = _take("lbmsdm_decimal_t")(call, *where)
    return Decimal(out.mant).scaleb(out.exp, _EXACT)


def _read_timestamp(call: Callable[..., int], *where: object) -> datetime:
    out = _take("struct timeval")(call, *where)
    try:
        return _EPOCH + timedelta(seconds=out.tv_sec, microseconds=out.tv_usec)
    except OverflowError:
        raise InvalidArgument(f"the timestamp {out.tv_sec}.{out.tv_usec:06} is outside the years 1 to 9999") from None


def _read_message(call: Callable[..., int], *where: object) -> SDMMessage:
    return SDMMessage._owning(_take("lbmsdm_msg_t *")(call, *where))


_WORD_OF = {type_: f"{type_.name.lower()}" for type_ in SDMType}
_NUMBERS = ("uint8_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t")
_READ: dict[SDMType, Callable[..., Any]] = {
    **{SDMType(code): _take(ctype) for code, ctype in enumerate((*_NUMBERS, "float", "double"), 1)},
    SDMType.BOOLEAN: lambda call, *where: bool(_take("uint8_t")(call, *where)),
    SDMType.DECIMAL: _read_decimal,
    SDMType.TIMESTAMP: _read_timestamp,
    SDMType.MESSAGE: _read_message,
    SDMType.STRING: lambda call, *where: ffi.string(_take_units("char")(call, *where)).decode(
        "utf-8", "surrogateescape"
    ),
    SDMType.UNICODE: lambda call, *where: "".join(_take_units("wchar_t")(call, *where)),
    SDMType.BLOB: lambda call, *where: bytes(ffi.buffer(_take_units("char")(call, *where))),
}


def _inferred(value: object) -> SDMType:
    """The type of a value that is given without one."""
    if isinstance(value, bool):
        return SDMType.BOOLEAN
    if isinstance(value, int):
        return SDMType.INT64 if value < 1 << 63 else SDMType.UINT64
    for kinds, type_ in (
        (float, SDMType.DOUBLE),
        (str, SDMType.UNICODE),
        ((bytes, bytearray, memoryview), SDMType.BLOB),
        (Decimal, SDMType.DECIMAL),
        (datetime, SDMType.TIMESTAMP),
        (SDMMessage, SDMType.MESSAGE),
    ):
        if isinstance(value, kinds):
            return type_
    raise InvalidArgument(f"{shown(value)} is of type {type(value).__name__}: give the SDMType of the field")


class SDMMessage:
    """A message: an ordered list of fields. For one thread at a time.

    A field is addressed by its name or by its index, from 0, or from the end when it is negative. Names have 1 to 255
    bytes as UTF-8 and are compared without regard to the case of A to Z. `name_tree=False` lets duplicate names pass;
    `integer_index=True` wants names that are integers 0 to 1000000; `field_array_allocation` is the number of fields
    that there is room for at first, and by which it grows. InvalidArgument for a value that is not of its type,
    SDMError for everything the library refuses.
    """

    def __init__(
        self, *, field_array_allocation: int = 32, name_tree: bool = True, integer_index: bool = False
    ) -> None:
        with _Options(field_array_allocation, name_tree, integer_index) as options:
            holder = ffi.new("lbmsdm_msg_t **")
            _check(lib.lbmsdm_msg_create_ex(holder, options))
        self._msg: Any = ffi.gc(holder[0], lib.lbmsdm_msg_destroy)

    @classmethod
    def _owning(cls, pointer: object) -> SDMMessage:
        message = cls.__new__(cls)
        message._msg = ffi.gc(pointer, lib.lbmsdm_msg_destroy)
        return message

    @classmethod
    def parse(
        cls, data: Buffer, *, field_array_allocation: int = 32, name_tree: bool = True, integer_index: bool = False
    ) -> SDMMessage:
        """The message whose bytes `data` holds; they are copied, and bytes behind it are ignored.

        `field_array_allocation`, `name_tree` and `integer_index` are its options. SDMError when it is malformed.
        """
        held = _held(data)
        holder = ffi.new("lbmsdm_msg_t **")
        with _Options(field_array_allocation, name_tree, integer_index) as options:
            _check(lib.lbmsdm_msg_parse_ex(holder, held, len(held), options))
        return cls._owning(holder[0])

    def parse_into(self, data: Buffer) -> None:
        """Replace the fields by those in `data`; the options stay. SDMError, and no fields, when it is malformed."""
        held = _held(data)
        _check(lib.lbmsdm_msg_parse_reuse(self._msg, held, len(held)))

    def to_bytes(self) -> bytes:
        """The bytes of the message, as docs/wire.md describes them. SDMError when there is no memory."""
        data = lib.lbmsdm_msg_get_data(self._msg)
        if data == ffi.NULL:
            _raise_last()
        return bytes(ffi.buffer(data, lib.lbmsdm_msg_get_datalen(self._msg)))

    __bytes__ = to_bytes

    def clone(self) -> SDMMessage:
        """A copy with the same options. SDMError when there is no memory."""
        holder = ffi.new("lbmsdm_msg_t **")
        _check(lib.lbmsdm_msg_clone(holder, self._msg))
        return self._owning(holder[0])

    def clear(self) -> None:
        """Remove all fields."""
        _check(lib.lbmsdm_msg_clear(self._msg))

    def add(self, name: str, value: object, type: SDMType | None = None) -> None:
        """Append a field called `name`; a list or tuple makes an array.

        Without `type` it is that of the value: bool BOOLEAN, int INT64 (UINT64 beyond 2**63-1), float DOUBLE, str
        UNICODE, bytes BLOB, Decimal DECIMAL, datetime TIMESTAMP, SDMMessage MESSAGE; of an array that of its first
        element. None makes a null field and needs a type. InvalidArgument when the value is not of the type, SDMError
        when the name is taken or not allowed; then nothing is added.
        """
        called = _name(name)
        if isinstance(value, (list, tuple)):
            kind = _kind(value, type)
            _check(getattr(lib, f"lbmsdm_msg_add_{_WORD_OF[kind]}_array")(self._msg, called))
            index = len(self) - 1
            try:
                self._fill(index, kind, value)
            except BaseException:
                lib.lbmsdm_msg_del_idx(self._msg, index)
                raise
        elif value is None:
            kind = _kind(value, type)
            _call(f"lbmsdm_msg_add_{_WORD_OF[kind]}", kind, _anything(kind), self._msg, called)
            self.set_null(-1)
        else:
            kind = _kind(value, type)
            _call(f"lbmsdm_msg_add_{_WORD_OF[kind]}", kind, value, self._msg, called)

    def set(self, key: str | int, value: object, type: SDMType | None = None) -> None:
        """Replace type and value of the field `key`, as add() has them: nothing is converted.

        `type` as for add(). InvalidArgument when the value is not of the type, and SDMError when there is no such
        field; the field is as it was then.
        """
        index = self._index(key)
        kind = _kind(value, type)
        if isinstance(value, (list, tuple)):
            elements = SDMMessage()
            elements.add("elements", value, kind)  # all of them are looked at before the field is touched
            _check(getattr(lib, f"lbmsdm_msg_set_{_WORD_OF[kind]}_array_idx")(self._msg, index))
            self._fill(index, kind, value)
        elif value is None:
            _call(f"lbmsdm_msg_set_{_WORD_OF[kind]}_idx", kind, _anything(kind), self._msg, index)
            self.set_null(index)
        else:
            _call(f"lbmsdm_msg_set_{_WORD_OF[kind]}_idx", kind, value, self._msg, index)

    def set_null(self, key: str | int) -> None:
        """Take the value of the field `key` away; its type stays. SDMError when there is no such field."""
        _check(lib.lbmsdm_msg_set_null_idx(self._msg, self._index(key)))

    def get_as(self, key: str | int, type: SDMType) -> Any:
        """The value of the field `key` as `type`, a list of an array; None when it is null.

        Numbers are read as every other type of numbers (BOOLEAN to DECIMAL); what does not fit is cut as
        docs/decisions.md tells. SDMError for other pairs of types, and when there is no such field.
        """
        index = self._index(key)
        kind = _type(type)
        if lib.lbmsdm_msg_is_null_idx(self._msg, index):
            return None
        read, word = _READ[kind], _WORD_OF[kind]
        if not lib.lbmsdm_msg_get_type_idx(self._msg, index) & _ARRAY:
            return read(getattr(lib, f"lbmsdm_msg_get_{word}_idx"), self._msg, index)
        call = getattr(lib, f"lbmsdm_msg_get_{word}_elem_idx")
        return [read(call, self._msg, index, i) for i in range(lib.lbmsdm_msg_get_elemcnt_idx(self._msg, index))]

    def field(self, key: str | int) -> SDMField:
        """The field `key`, with name and type. SDMError when there is none."""
        index = self._index(key)
        code = lib.lbmsdm_msg_get_type_idx(self._msg, index)
        kind = SDMType(code & ~_ARRAY)
        value = self.get_as(index, kind)
        name = text(lib.lbmsdm_msg_get_name_idx(self._msg, index))
        return SDMField(name, kind, bool(code & _ARRAY), value is None, value)

    def __getitem__(self, key: str | int) -> Any:
        return self.field(key).value

    def __delitem__(self, key: str | int) -> None:
        _check(lib.lbmsdm_msg_del_idx(self._msg, self._index(key)))

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and lib.lbmsdm_msg_get_idx_name(self._msg, _name(name)) >= 0
        except InvalidArgument:  # no field has such a name
            return False

    def __len__(self) -> int:
        count: int = lib.lbmsdm_msg_get_fldcnt(self._msg)
        return count

    def __iter__(self) -> Iterator[SDMField]:
        index = 0
        while index < len(self):
            yield self.field(index)
            index += 1

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, SDMMessage) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        size = 1024
        while True:
            buffer = ffi.new("char[]", size)
            _check(lib.lbmsdm_msg_dump(self._msg, buffer, size))
            shown_text = text(buffer)
            if len(shown_text.encode("utf-8", "surrogateescape")) < size - 1:
                return shown_text
            size *= 4

    def __repr__(self) -> str:
        return f"<SDMMessage {shown(str(self))}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.to_bytes(),)

    def _index(self, key: str | int) -> int:
        if isinstance(key, str):
            found: int = lib.lbmsdm_msg_get_idx_name(self._msg, _name(key))
            if found < 0:
                _raise_last()
            return found
        if isinstance(key, bool) or not isinstance(key, int):
            raise InvalidArgument(f"{shown(key)} is of type {type(key).__name__}: give a name or an index")
        index = key + len(self) if key < 0 else key
        if not 0 <= index < len(self):
            raise SDMError(
                f"no field has the index {key}, there are {len(self)} fields", lib.LBMSDM_ERR_FIELD_NOT_FOUND
            )
        return index

    def _fill(self, index: int, kind: SDMType, values: Sequence[object]) -> None:
        for value in values:
            _call(f"lbmsdm_msg_add_{_WORD_OF[kind]}_elem_idx", kind, value, self._msg, index)


def _anything(kind: SDMType) -> object:
    """Some value of a type, of a field that is made null."""
    some: dict[SDMType, Any] = {SDMType.TIMESTAMP: _EPOCH, SDMType.STRING: "", SDMType.UNICODE: "", SDMType.BLOB: b""}
    return SDMMessage() if kind is SDMType.MESSAGE else some.get(kind, 0)


def _unpickled(data: bytes) -> SDMMessage:
    return SDMMessage.parse(data, name_tree=False)


def _held(data: Buffer) -> Any:
    if isinstance(data, str):
        raise InvalidArgument(f"{shown(data)} is a str: give bytes")
    try:
        return ffi.from_buffer(data)
    except (TypeError, ValueError, BufferError) as error:
        raise InvalidArgument(f"{shown(data)}: give bytes or a contiguous buffer: {error}") from None


def _name(name: object) -> bytes:
    if not isinstance(name, str) or "\0" in name:
        raise InvalidArgument(f"{shown(name)} is no name of a field: give a str without NUL")
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{shown(name)} is no name of a field: {error}") from None


def _type(kind: Any) -> SDMType:
    try:
        return SDMType(kind)
    except ValueError:
        raise InvalidArgument(f"{shown(kind)} is no SDMType") from None


def _kind(value: object, given: SDMType | None) -> SDMType:
    if given is not None:
        return _type(given)
    if isinstance(value, (list, tuple)):
        if not value:
            raise InvalidArgument("an empty list has no type: give the SDMType of its elements")
        return _inferred(value[0])
    return _inferred(value)


class _Options:
    """An attribute object of C for the time of a with block."""

    def __init__(self, field_array_allocation: int, name_tree: bool, integer_index: bool) -> None:
        self._values = {
            b"field_array_allocation": int(field_array_allocation),
            b"name_tree": int(bool(name_tree)),
            b"integer_index": int(bool(integer_index)),
        }

    def __enter__(self) -> Any:
        holder = ffi.new("lbmsdm_msg_attr_t **")
        _check(lib.lbmsdm_msg_attr_create(holder))
        self._attr = ffi.gc(holder[0], lib.lbmsdm_msg_attr_delete)
        for name, value in self._values.items():
            _check(lib.lbmsdm_msg_attr_str_setopt(self._attr, name, str(value).encode()))
        return self._attr

    def __exit__(self, *exception: object) -> None:
        ffi.release(self._attr)
