"""What lies behind the payloads of records, as columns: numbers of hot failover, properties, channels.

um_record_tail() of um.h says in which order. Everything for many records at once; any thread.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from um_cffi.binding._native import lib
from um_cffi.binding.deferred import np
from um_cffi.events import MessageFlags
from um_cffi.properties import properties_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from um_cffi.batch import Batch

assert sys.byteorder == "little"  # as records of batches are, see um.h

HF = int(MessageFlags.HF_32 | MessageFlags.HF_64)
CHANNEL = int(MessageFlags.CHANNEL)
PROPERTIES = int(MessageFlags.PROPERTIES)
_KEPT_PROPERTIES = 1024  # texts of properties that are kept, since messages mostly have the same
_WAY_BACK: int = lib.um_py_way_back_size()


@dataclass
class Tails:
    """A value for each record; None for a column that would be empty."""

    hf_number: npt.NDArray[np.uint64] | None = None
    """0 for records without a flag of HF."""
    properties: list[bytes | None] | None = None
    """As they travel."""
    channel: npt.NDArray[np.int64] | None = None
    """0 for records without the flag CHANNEL."""


def words(batch: Batch, offsets: npt.NDArray[np.uint64], size: int = 8) -> npt.NDArray[np.uint64]:
    """The numbers of `size` bytes that lie at some offsets of the data."""
    bytes_of = batch.data[offsets[:, None] + np.arange(size, dtype=np.uint64)]
    return np.ascontiguousarray(bytes_of).view(f"<u{size}").reshape(-1).astype(np.uint64)


def tails_of(batch: Batch, records: npt.NDArray[np.void]) -> Tails:
    """What lies behind the payloads of some records of a batch."""
    flags = np.ascontiguousarray(records["flags"])
    tails = Tails()
    if not int(np.bitwise_or.reduce(flags, initial=0)) & (HF | PROPERTIES | CHANNEL):
        return tails
    places = records["offset"] + records["length"]
    places = places + np.where(flags & int(MessageFlags.ANSWERABLE), _WAY_BACK, 0).astype(np.uint64)
    numbered = (flags & HF) != 0
    if numbered.any():
        tails.hf_number = np.zeros(len(records), np.uint64)
        tails.hf_number[numbered] = words(batch, places[numbered])
        places = places + np.where(numbered, 8, 0).astype(np.uint64)
    rows = np.flatnonzero(flags & PROPERTIES)
    if len(rows):
        texts: list[bytes | None] = [None] * len(records)
        view = batch.view
        lengths = words(batch, places[rows])
        for row, place, length in zip(rows.tolist(), places[rows].tolist(), lengths.tolist()):
            texts[row] = bytes(view[place + 8 : place + 8 + length])
        tails.properties = texts
        places[rows] += lengths + np.uint64(8)
    rows = np.flatnonzero(flags & CHANNEL)
    if len(rows):
        tails.channel = np.zeros(len(records), np.int64)
        tails.channel[rows] = words(batch, places[rows], 4)
    return tails


class PropertyTexts:
    """What properties look like in columns: texts of names and values, kept where many messages have the same."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[tuple[str, str]]] = {}

    def texts(self, written: bytes) -> list[tuple[str, str]]:
        """Names and values of properties as they travel; nothing when they are malformed."""
        found = self._known.get(written)
        if found is None:
            try:
                values = properties_of(written)
                found = [(plain_text(name), _text(value)) for name, value in values.items()]
            except ValueError:
                found = []
            if len(self._known) >= _KEPT_PROPERTIES:
                self._known.clear()
            self._known[written] = found
        return found


def plain_text(text: str) -> str:
    """What UTF-8 can write of it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return plain_text(value) if isinstance(value, str) else repr(value)
