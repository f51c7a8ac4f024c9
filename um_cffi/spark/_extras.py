"""What goes with a published message beside its payload: properties and channels, from columns of these names.

Checked by the tasks that stage rows, so that a wrong row fails before anything is published; sent by whoever publishes.
"""

from __future__ import annotations

import time
from typing import Any

from um_cffi import HFSource
from um_cffi.errors import InvalidArgument, TimedOut, WouldBlock
from um_cffi.properties import Properties
from um_cffi.spark._needs import need_arrow
from um_cffi.spark._sink_options import CHANNEL, PAYLOAD, PROPERTIES

_KEPT = 1024  # properties that are kept, since messages mostly have the same
_LOOK = 0.005  # seconds between looks whether there is room
_CHANNELS = 1 << 32


def checked(name: str, column: Any, where: str) -> Any:
    """A column as it is staged. InvalidArgument for values that no message can have."""
    pa = need_arrow()
    if name == CHANNEL:
        numbers = column.cast(pa.int64())
        for value in numbers.to_pylist() if len(numbers) > numbers.null_count else ():
            if value is not None and not 0 <= value < _CHANNELS:
                raise InvalidArgument(f"rows from {where}: column channel is {value}: must be 0 to {_CHANNELS - 1}")
        return numbers
    known = Known()
    for pairs in column.to_pylist():
        if pairs:
            try:
                known.made_of(pairs)
            except InvalidArgument as error:
                raise InvalidArgument(f"rows from {where}: column properties: {error}") from None
    return column


class Known:
    """Properties that were made before; one thread at a time."""

    def __init__(self) -> None:
        self._made: dict[tuple[tuple[str, str], ...], Properties] = {}

    def made_of(self, pairs: list[tuple[str, str]]) -> Properties:
        """Properties of names and values. InvalidArgument."""
        key = tuple(pairs)
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= _KEPT:
                self._made.clear()
            found = self._made[key] = Properties(dict(key))
        return found


def send_with(source: HFSource, rows: Any, number: int, patience: float | None) -> int:
    """Send rows that have more than payloads, one by one, from a number on; returns how many.

    TimedOut when there was no room for so many seconds. On an exception `sent` of it tells how many went out.
    """
    payloads = rows.column(PAYLOAD)
    columns = [rows.column(name).to_pylist() if name in rows.schema.names else None for name in (PROPERTIES, CHANNEL)]
    properties, channels = columns
    known = Known()
    sent = 0
    try:
        for row in range(len(rows)):
            pairs = properties[row] if properties is not None else None
            made = known.made_of(pairs) if pairs else None
            channel = channels[row] if channels is not None else None
            _send(source, payloads[row].as_buffer(), number + row, made, channel, patience)
            sent += 1
    except BaseException as error:
        error.sent = sent  # type: ignore[attr-defined]
        raise
    return sent


def _send(
    source: HFSource, data: Any, number: int, properties: Properties | None, channel: int | None, patience: float | None
) -> None:
    begin = None
    while True:
        try:
            source.send_nowait(data, number=number, properties=properties, channel=channel)
            return
        except WouldBlock:
            now = time.monotonic()
            begin = now if begin is None else begin
            if patience is not None and now - begin >= patience:
                raise TimedOut(f"no room for {patience:g} s: a receiver does not read, or a rate is low") from None
            time.sleep(_LOOK)
