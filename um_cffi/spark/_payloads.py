"""Payloads as columns: of pre-defined messages all at once, of self-describing ones message after message.

Used on executors, by one task each. What payloads hold is a stranger's word: what is not of the definition is told with
its row, and ends the query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from um_cffi import pdm
from um_cffi.binding.pdm_encoded import Encoded
from um_cffi.errors import UmError
from um_cffi.sdm import SDMMessage, SDMType
from um_cffi.spark._needs import need_arrow

Columns = Mapping[str, Any]
"""Names of columns, with the types of Arrow or with arrays of them."""


class NotDecoded(Exception):
    """A payload is not of the definition. The row is that among the payloads, None where it is not known."""

    def __init__(self, row: int | None, text: str) -> None:
        super().__init__(text)
        self.row = row


class PdmPayloads:
    """Decodes pre-defined messages."""

    def __init__(self, definition: pdm.Definition, fields: Mapping[str, Any]) -> None:
        self._definition = definition
        self._fields = fields
        """Of columns."""

    def decode(self, payload: Any, wanted: Columns) -> dict[str, Any]:
        """The columns `wanted` of binary values, of which none is null. NotDecoded."""
        try:
            columns = self._definition.decode_columns(_encoded(payload))
        except pdm.PDMError as error:
            row = re.match(r"message (\d+) ", str(error))
            raise NotDecoded(int(row[1]) if row else None, str(error)) from None
        pa = need_arrow()
        return {name: pa.array(columns[self._fields[name]]).cast(kind) for name, kind in wanted.items()}


def _encoded(payload: Any) -> Encoded:
    """A binary array as the codec of messages takes them, where they lie."""
    _, offsets, data = payload.buffers()
    begin: npt.NDArray[Any] = np.frombuffer(offsets, np.int32)[payload.offset : payload.offset + len(payload) + 1]
    memory = np.frombuffer(data, np.uint8) if data is not None and len(data) else np.zeros(1, np.uint8)
    return Encoded(memory, begin.astype(np.int64))


class SdmPayloads:
    """Decodes self-describing messages: what a message does not have, or has no value for, is null."""

    def __init__(self, fields: Mapping[str, tuple[str, SDMType, bool]]) -> None:
        self._fields = fields
        """Of columns: name, type, and whether it is an array."""
        self._message = SDMMessage()

    def decode(self, payload: Any, wanted: Columns) -> dict[str, Any]:
        """As PdmPayloads.decode()."""
        found: dict[str, list[Any]] = {name: [] for name in wanted}
        readers = [(found[name].append, *self._fields[name]) for name in wanted]
        message = self._message
        for row, data in enumerate(payload.to_pylist()):
            field = ""
            try:
                message.parse_into(data)
                for put, field, kind, is_array in readers:
                    put(self._value(field, kind, is_array))
            except (UmError, ValueError) as error:
                about = f"field {field}: " if field else "it is no self-describing message: "
                raise NotDecoded(row, f"{about}{error}") from None
        pa = need_arrow()
        return {name: pa.array(found[name], kind) for name, kind in wanted.items()}

    def _value(self, field: str, kind: SDMType, is_array: bool) -> Any:
        if field not in self._message:
            return None
        value = self._message.get_as(field, kind)
        if value is None:
            return None
        if isinstance(value, list) != is_array:
            raise ValueError(f"it is {'no' if is_array else 'an'} array")
        plain = _PLAIN.get(kind)
        if plain is None:
            return value
        return [plain(each) for each in value] if is_array else plain(value)


def _text(value: str) -> str:
    """Text that other systems take: bytes that were no UTF-8 are replaced."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _decimal(value: Decimal) -> dict[str, int]:
    sign, digits, exponent = value.as_tuple()
    return {"mantissa": (-1 if sign else 1) * int("".join(map(str, digits))), "exponent": int(exponent)}


_PLAIN: Mapping[SDMType, Callable[[Any], Any]] = {
    SDMType.STRING: _text,
    SDMType.UNICODE: lambda value: value.encode("utf-8", "replace").decode(),
    SDMType.DECIMAL: _decimal,
    SDMType.UINT64: Decimal,
    SDMType.MESSAGE: SDMMessage.to_bytes,
}
