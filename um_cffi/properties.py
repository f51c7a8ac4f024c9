"""Message properties: named values that travel with a message, beside its payload."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Union

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import name_bytes, shown
from um_cffi.binding.deferred import loaded, np
from um_cffi.errors import InvalidArgument, OutOfMemory, check

if TYPE_CHECKING:
    Scalar = Union[np.bool_, np.int8, np.int16, np.int32, np.int64, np.float32, np.float64]
    PropertyValue = Union[bool, int, float, str, Scalar]
    """What a property may be: the type decides how it travels, see PropertyType."""

NAME_MAX: int = lib.LBM_MSG_PROPERTIES_MAX_NAMELEN


class PropertyType(IntEnum):
    """How a property travels (LBM_MSG_PROPERTY_*), and which values in Python are sent so."""

    BOOLEAN = lib.LBM_MSG_PROPERTY_BOOLEAN
    """A bool, or `np.bool_`."""
    BYTE = lib.LBM_MSG_PROPERTY_BYTE
    """An np.int8: 8 bits, signed."""
    SHORT = lib.LBM_MSG_PROPERTY_SHORT
    """An np.int16."""
    INT = lib.LBM_MSG_PROPERTY_INT
    """An np.int32."""
    LONG = lib.LBM_MSG_PROPERTY_LONG
    """An int, whatever its value, or np.int64: 64 bits."""
    FLOAT = lib.LBM_MSG_PROPERTY_FLOAT
    """An np.float32."""
    DOUBLE = lib.LBM_MSG_PROPERTY_DOUBLE
    """A float, or np.float64."""
    STRING = lib.LBM_MSG_PROPERTY_STRING
    """A str, in UTF-8."""


_FORMATS = {
    PropertyType.BOOLEAN: "=?",
    PropertyType.BYTE: "=b",
    PropertyType.SHORT: "=h",
    PropertyType.INT: "=i",
    PropertyType.LONG: "=q",
    PropertyType.FLOAT: "=f",
    PropertyType.DOUBLE: "=d",
}
_READ: dict[int, Callable[[Any], tuple[Any, ...]]] = {
    int(kind): struct.Struct(form).unpack for kind, form in _FORMATS.items()
}
_OF_PYTHON: dict[type, PropertyType] = {
    bool: PropertyType.BOOLEAN,
    int: PropertyType.LONG,
    float: PropertyType.DOUBLE,
    str: PropertyType.STRING,
}


@cache
def _of_numpy() -> dict[type, PropertyType]:
    return {
        np.bool_: PropertyType.BOOLEAN,
        np.int8: PropertyType.BYTE,
        np.int16: PropertyType.SHORT,
        np.int32: PropertyType.INT,
        np.int64: PropertyType.LONG,
        np.float32: PropertyType.FLOAT,
        np.float64: PropertyType.DOUBLE,
    }


class Properties(Mapping[str, "PropertyValue"]):
    """Properties of a message: a mapping of names to values, which does not change.

    Those of a received message are `Message.properties`. To send some, a plain dict will do; a Properties object made
    once, of `values`, is cheaper where many messages have the same, and those of a received message keep their types
    when they are sent on. Any thread may use it, several at a time. It can be pickled.

    The type of a value decides how it travels: bool, int (always 64 bits), float (64 bits) and str; numpy's scalars for
    the other widths (np.int8, np.int16, np.int32, np.float32), see PropertyType. Values that are read are bool, int,
    float and str; `types` tells how they came. InvalidArgument for values of another type or out of range, and for
    names that are empty or longer than 250 bytes in UTF-8; strings and names contain no NUL.
    """

    __slots__ = ("__weakref__", "_extras", "_object", "_types", "_values")

    def __init__(self, values: Mapping[str, PropertyValue] | None = None) -> None:
        if values is not None and not isinstance(values, Mapping):
            raise InvalidArgument(
                f"properties {shown(values)} is of type {type(values).__name__}: give a mapping of names to values"
            )
        self._extras: Extras | None = None  # of a send with nothing else, made once
        self._values: dict[str, PropertyValue] = {}
        self._types: dict[str, PropertyType] = {}
        holder = ffi.new("lbm_msg_properties_t **")
        check(lib.lbm_msg_properties_create(holder))
        self._object: Any = ffi.gc(holder[0], lib.lbm_msg_properties_delete)
        if isinstance(values, Properties):
            for name, value in values.items():
                self._set(name, value, values._types[name])
        else:
            for name, value in (values or {}).items():
                self._set(name, value, type_of(name, value))
        self._freeze()

    def _set(self, name: str, value: Any, kind: PropertyType) -> None:
        named = name_bytes("properties", "name", name)
        if not 0 < len(named) <= NAME_MAX:
            raise InvalidArgument(f"properties: name {shown(name)} of {len(named)} bytes: must have 1..{NAME_MAX}")
        if kind is PropertyType.STRING:
            written = name_bytes("properties", f"the value of {name}", value)
            self._values[name] = str(value)
        else:
            try:
                written = struct.pack(_FORMATS[kind], value)
            except (struct.error, OverflowError):
                raise InvalidArgument(f"properties: {name}: {shown(value)} does not fit into 64 bits") from None
            (self._values[name],) = _READ[kind](written)
        check(lib.lbm_msg_properties_set(self._object, named, ffi.from_buffer(written), kind, len(written)))
        self._types[name] = kind

    def _freeze(self) -> bytes:
        """The bytes as they travel: once they are made, sends only read the library's object."""
        where, size = ffi.new("const void **"), ffi.new("size_t *")
        check(lib.um_msg_properties_bytes(self._object, where, size))
        return bytes(ffi.buffer(where[0], size[0]))

    @property
    def types(self) -> Mapping[str, PropertyType]:
        """How each of them travels."""
        return dict(self._types)

    def __getitem__(self, name: str) -> PropertyValue:
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Properties({self._values!r})"

    def __reduce__(self) -> tuple[Callable[[bytes], Properties], tuple[bytes]]:
        return properties_of, (self._freeze(),)


def type_of(name: object, value: object) -> PropertyType:
    """How the value of the property `name` travels. InvalidArgument when it cannot."""
    kind = _OF_PYTHON.get(type(value))
    if kind is None and loaded("numpy"):
        kind = _of_numpy().get(type(value))
    if kind is not None:
        return kind
    if not (loaded("numpy") and isinstance(value, np.generic)):
        for base in (str, int, float):  # classes derived from these, such as enumerations
            if isinstance(value, base):
                return _OF_PYTHON[base]
    raise InvalidArgument(
        f"properties: {name}: {shown(value)} is of type {type(value).__name__}: must be bool, int, float or str, or "
        "np.int8, np.int16, np.int32 or np.float32 for the narrower types"
    )


def properties_of(written: bytes) -> Properties:
    """Properties of bytes as they travel. InvalidArgument when they are malformed."""
    holder = ffi.new("lbm_msg_properties_t **")
    check(lib.um_msg_properties_read(holder, ffi.from_buffer(written), len(written)))
    made = Properties.__new__(Properties)
    made._object = ffi.gc(holder[0], lib.lbm_msg_properties_delete)
    made._extras, made._values, made._types = None, {}, {}
    places = ffi.new("lbm_msg_properties_iter_t **")
    check(lib.lbm_msg_properties_iter_create(places))
    place = places[0]
    try:
        more = lib.lbm_msg_properties_iter_first(place, made._object)
        while more == 0:
            name = ffi.string(place.name).decode("utf-8", "surrogateescape")
            if name not in made._values:  # of two of one name the first counts
                made._values[name] = _value(place)
                made._types[name] = PropertyType(place.type)
            more = lib.lbm_msg_properties_iter_next(place)
        if place.type != lib.LBM_MSG_PROPERTY_NONE:
            raise OutOfMemory("no memory for the properties of a message")
    finally:
        lib.lbm_msg_properties_iter_delete(place)
    return made


def _value(place: Any) -> PropertyValue:
    data = ffi.buffer(place.data, place.size)
    if place.type == PropertyType.STRING:
        return bytes(data[:-1]).decode("utf-8", "surrogateescape")
    value: PropertyValue = _READ[place.type](data)[0]
    return value


NO_PROPERTIES = Properties()
"""Of messages that have none."""


class Extras:
    """What goes with a message that is sent, and what keeps it alive."""

    __slots__ = ("_channel", "_properties", "sent")

    def __init__(self, properties: Properties | None, channel: Any = None) -> None:
        self._properties = properties
        self._channel = channel
        self.sent: Any = ffi.new("um_py_extras_t *")
        """For um_py_send_with()."""
        if properties is not None:
            self.sent.properties = properties._object
        if channel is not None:
            self.sent.channel = channel


def made_of(properties: Mapping[str, PropertyValue] | None) -> Properties | None:
    """Properties to be sent; None: there are none."""
    made = properties if isinstance(properties, Properties) or properties is None else Properties(properties)
    return made if made else None


def extras_of(properties: Mapping[str, PropertyValue]) -> Extras | None:
    """What goes with a message that has these properties, while somebody holds on to them; None: nothing."""
    if not isinstance(properties, Properties):
        made = made_of(properties)
        return None if made is None else Extras(made)
    if properties._extras is None and properties:
        extras = Extras(None)
        extras.sent.properties = properties._object
        properties._extras = extras
    return properties._extras
