"""The values of pre-defined messages: types, decimals, times, fields, and how they become what C takes.

The public ones are those of um_cffi.pdm.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import re
import struct
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from um_cffi.binding._native import ffi, lib
from um_cffi.errors import UmError

if TYPE_CHECKING:
    from typing_extensions import Never

Name = Union[str, int]
_ARRAY = 19
_EXACT = decimal.Context(prec=60)


class PDMError(UmError):
    """A call on pre-defined messages failed. `errnum` is one of the PDM_ERR_* numbers below."""

    FIELD_IS_NULL = 1
    NO_MORE_FIELDS = 2
    INSUFFICIENT_BUFFER_LENGTH = 3
    EINVAL = 4
    FIELD_NOT_FOUND = 5
    MSG_INVALID = 6
    DEFN_INVALID = 7
    NOMEM = 8
    REQ_FIELD_NOT_SET = 9


def fail() -> Never:
    raise PDMError(ffi.string(lib.lbmpdm_errmsg()).decode("utf-8", "replace"), lib.lbmpdm_errnum())


def check(result: int) -> int:
    if result < 0:
        fail()
    return result


class Type(enum.IntEnum):
    """The types of fields; each has an array form, whose number is 19 more."""

    BOOLEAN = 0  #: bool
    INT8 = 1  #: int
    UINT8 = 2  #: int
    INT16 = 3  #: int
    UINT16 = 4  #: int
    INT32 = 5  #: int
    UINT32 = 6  #: int
    INT64 = 7  #: int
    UINT64 = 8  #: int
    FLOAT = 9  #: float, of 32 bits
    DOUBLE = 10  #: float
    DECIMAL = 11  #: Decimal, or decimal.Decimal when it is set
    TIMESTAMP = 12  #: Timestamp, or a datetime when it is set
    FIX_STRING = 13  #: str of at most so many bytes as UTF-8
    STRING = 14  #: str
    FIX_UNICODE = 15  #: str of at most so many characters
    UNICODE = 16  #: str
    BLOB = 17  #: bytes
    MESSAGE = 18  #: Message
    BOOLEAN_ARR = 19  #: list of bool
    INT8_ARR = 20  #: list of int
    UINT8_ARR = 21  #: list of int
    INT16_ARR = 22  #: list of int
    UINT16_ARR = 23  #: list of int
    INT32_ARR = 24  #: list of int
    UINT32_ARR = 25  #: list of int
    INT64_ARR = 26  #: list of int
    UINT64_ARR = 27  #: list of int
    FLOAT_ARR = 28  #: list of float, of 32 bits
    DOUBLE_ARR = 29  #: list of float
    DECIMAL_ARR = 30  #: list of Decimal, or decimal.Decimal when it is set
    TIMESTAMP_ARR = 31  #: list of Timestamp, or a datetime when it is set
    FIX_STRING_ARR = 32  #: list of str of at most so many bytes as UTF-8
    STRING_ARR = 33  #: list of str
    FIX_UNICODE_ARR = 34  #: list of str of at most so many characters
    UNICODE_ARR = 35  #: list of str
    BLOB_ARR = 36  #: list of bytes
    MESSAGE_ARR = 37  #: list of Message

    @property
    def is_array(self) -> bool:
        """Whether values are lists."""
        return self >= _ARRAY

    @property
    def scalar(self) -> Type:
        """The type of one element."""
        return Type(self - _ARRAY) if self.is_array else self


class Decimal(NamedTuple):
    """The number mant * 10**exp."""

    mant: int
    exp: int

    def to_decimal(self) -> decimal.Decimal:
        """The same number as Python's own type."""
        return decimal.Decimal(self.mant).scaleb(self.exp, _EXACT)

    @classmethod
    def of(cls, value: decimal.Decimal | int | str) -> Decimal:
        """From a number; raises ValueError for infinities, what is no number, and what has more than 64 bits of digits
        or an exponent outside -128 to 127."""
        try:
            sign, digits, exponent = decimal.Decimal(value).as_tuple()
        except (decimal.InvalidOperation, TypeError) as error:
            raise ValueError(f"{value!r:.80} is no number: {error}") from None
        if not isinstance(exponent, int):
            raise ValueError(f"{value} cannot be a decimal")
        if not any(digits):
            return cls(0, min(max(exponent, -128), 127))
        while len(digits) > 19 and digits[-1] == 0:
            digits, exponent = digits[:-1], exponent + 1
        if len(digits) <= 19:
            mantissa = int("".join(map(str, digits)))
            while exponent > 127 and mantissa < 1 << 63:
                mantissa, exponent = mantissa * 10, exponent - 1
            mantissa = -mantissa if sign else mantissa
            if -(1 << 63) <= mantissa < 1 << 63 and -128 <= exponent <= 127:
                return cls(mantissa, exponent)
        raise ValueError(f"{value!r:.80} has more than 64 bits of digits, or an exponent outside -128 to 127")


class Timestamp(NamedTuple):
    """Seconds since 1970 and microseconds."""

    secs: int
    usecs: int

    def to_datetime(self) -> datetime.datetime:
        """The time in UTC."""
        start = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return start + datetime.timedelta(seconds=self.secs, microseconds=self.usecs)

    @classmethod
    def of(cls, value: datetime.datetime) -> Timestamp:
        """From a time; one without a zone counts as UTC. Raises TypeError for what is no datetime."""
        if not isinstance(value, datetime.datetime):
            raise TypeError(f"{value!r:.80} is no datetime")
        zoned = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
        since = zoned - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return cls(since.days * 86400 + since.seconds, since.microseconds)


# struct formats, numpy types and sizes in bytes of one element on the wire
FORMATS = dict(zip(Type, "?bBhHiIqQfd"))
DTYPES = dict(zip(Type, ("?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")))


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a definition. It may be used in place of its name."""

    name: Name
    """A str, or an int in definitions with integer names."""
    type: Type
    """Of the value; that of the array where it is a list."""
    required: bool
    """Whether no message is without it."""
    fixed_str_len: int
    """Characters of a fixed string, else 0."""
    num_arr_elem: int
    """Elements of an array with a fixed number of them, else 0."""
    handle: int
    """The place in the definition, from 0."""

    @property
    def fixed_required(self) -> bool:
        """Whether the field has its place in the fixed section, which decode_many() reads."""
        variable = self.type.scalar in (Type.STRING, Type.UNICODE, Type.BLOB, Type.MESSAGE)
        return self.required and not variable and (not self.type.is_array or self.num_arr_elem > 0)


class FieldValue(NamedTuple):
    """A field of a message with its value, None when it is not set."""

    name: Name
    type: Type
    is_set: bool
    value: Any


SPEC = re.compile(r"(?P<type>[A-Z0-9_]+?)(?:\((?P<length>\d+)\))?(?P<array>\[(?P<count>\d*)\])?(?P<optional>\?)?")
PYTHON_TYPES: dict[Any, str] = {
    bool: "BOOLEAN",
    int: "INT64",
    float: "DOUBLE",
    str: "UNICODE",
    bytes: "BLOB",
    decimal.Decimal: "DECIMAL",
    datetime.datetime: "TIMESTAMP",
}


def name_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def name_text(name: bytes) -> str:
    """A name that is no UTF-8 stays the one it is."""
    return name.decode("utf-8", "surrogateescape")


def spec_of(name: str, hint: Any) -> str:
    optional, origin = False, typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if type(None) in arguments:
        rest = [argument for argument in arguments if argument is not type(None)]
        if len(rest) != 1:
            raise ValueError(f"{name}: {hint} has no counterpart")
        hint, optional = rest[0], True
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(hint, "__metadata__"):
        spec = next((note for note in hint.__metadata__ if isinstance(note, str)), None)
    elif origin is list:
        inner = PYTHON_TYPES.get(arguments[0])
        spec = inner and f"{inner}[]"
    else:
        spec = PYTHON_TYPES.get(hint)
    if spec is None:
        raise ValueError(f"{name}: {hint} has no counterpart")
    return spec + ("?" if optional and not spec.endswith("?") else "")


def encode(field: Field, values: Sequence[Any]) -> Any:
    """The elements in the form of C, and what has to live as long."""
    scalar = field.type.scalar
    if scalar in FORMATS:
        try:
            return struct.pack(f"={len(values)}{FORMATS[scalar]}", *values)
        except (struct.error, OverflowError) as error:
            raise ValueError(f"{field.name}: {values!r} is no {scalar.name}: {error}") from None
    try:
        if scalar is Type.DECIMAL:
            pairs = [value if isinstance(value, Decimal) else Decimal.of(value) for value in values]
            return ffi.new("lbmpdm_decimal_t[]", [(pair.mant, pair.exp) for pair in pairs])
        stamps = [value if isinstance(value, Timestamp) else Timestamp.of(value) for value in values]
        return ffi.new("lbmpdm_timestamp_t[]", [tuple(stamp) for stamp in stamps])
    except OverflowError as error:
        raise ValueError(f"{field.name}: {values!r:.80} is no {scalar.name}: {error}") from None


def text_bytes(field: Field, value: Any) -> bytes:
    if field.type.scalar is Type.BLOB:
        return bytes(memoryview(value))  # of an int, bytes() would be so many zeros
    if not isinstance(value, str):
        raise TypeError(f"{field.name}: {value!r} is no str")
    return value.encode() + b"\0"
