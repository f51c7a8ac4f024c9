"""Payloads of `um sub --pdm`: pre-defined messages as values for JSON and as text. Called on the context's callback
thread; definitions that came along with a message serve for those behind it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from um_cffi import InvalidArgument, pdm

KNOWN_MAX = 1024  # definitions that are remembered of those that came along
DEPTH_MAX = 16


def plain(value: Any, depth: int) -> Any:
    """A value of a field as JSON has it: bytes as hexadecimal digits, decimals, times and infinities as text."""
    if isinstance(value, pdm.Message):
        return fields(value, depth - 1)
    if isinstance(value, list):
        return [plain(one, depth) for one in value]
    if isinstance(value, pdm.Decimal):
        return str(value.to_decimal())
    if isinstance(value, pdm.Timestamp):
        return value.to_datetime().isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def fields(message: pdm.Message, depth: int = DEPTH_MAX) -> dict[str, Any]:
    """The fields that are set. Raises PDMError where messages are nested deeper than `depth`."""
    if depth < 1:
        raise pdm.PDMError(f"messages nested more than {DEPTH_MAX} deep", pdm.PDMError.MSG_INVALID)
    return {str(field.name): plain(field.value, depth) for field in message if field.is_set}


def as_text(values: dict[str, Any]) -> str:
    """`name=value name=value`, values as in JSON, so that no text of a peer gets at the terminal as it is."""
    return " ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


class Decoder:
    """Payloads to fields, with the definitions of files and those that come along."""

    def __init__(self, files: Sequence[str]) -> None:
        self._learned = 0
        for file in files:
            try:
                pdm.cache.put(pdm.Definition.from_bytes(Path(file).read_bytes()))
            except (OSError, pdm.PDMError) as error:
                raise InvalidArgument(f"{file}: {error}; Definition.to_bytes() makes such files") from None

    def decode(self, data: bytes) -> dict[str, Any]:
        """The fields of a message. Raises PDMError for what is none, or is of a definition that nobody gave."""
        message = pdm.Message()
        message.try_load_def_from_cache = True
        message.parse(data)
        self._learn(message.definition)
        return fields(message)

    def _learn(self, definition: pdm.Definition | None) -> None:
        if definition is None or definition.id == 0 or self._learned == KNOWN_MAX:
            return
        if pdm.cache.get(definition.id, *definition.version) is None:
            pdm.cache.put(definition)
            self._learned += 1
