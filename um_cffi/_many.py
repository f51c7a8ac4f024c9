"""Sending many messages each of which has something of its own beside its payload: channels, properties, numbers.

Plain ones are sent by source.py. Any thread of the application; with numbers one at a time for each source.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from um_cffi.batch import Batch
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import shown
from um_cffi.binding.deferred import np
from um_cffi.binding.lifetime import SLICE_MS
from um_cffi.binding.located import gathered, located
from um_cffi.errors import InvalidArgument, TimedOut, raise_last
from um_cffi.properties import Extras

if TYPE_CHECKING:
    import numpy.typing as npt

    from um_cffi.binding.frames import Span
    from um_cffi.binding.sent_columns import SentColumns
    from um_cffi.pdm import Definition
    from um_cffi.source import Source


class Numbers(Protocol):
    """Numbers of hot failover of the messages of one call."""

    @property
    def flags(self) -> int:
        """LBM_SRC_SEND_EX_FLAG_HF_*: how wide they are."""

    def part(self, before: int, count: int) -> tuple[int, npt.NDArray[np.uint64] | None]:
        """Of `count` messages behind `before` others: the first number, and all of them where they are a column."""

    def check_end(self, sent: int) -> None:
        """InvalidArgument when there are more numbers than messages."""


class Many:
    """One send_many() of a source, with `numbers` or `columns`; `patience` in seconds, None: it waits without bound."""

    def __init__(
        self, source: Source, columns: SentColumns | None, numbers: Numbers | None = None, patience: float | None = None
    ) -> None:
        self._source = source
        self._columns = columns
        self._numbers = numbers
        self._patience = patience

    def send(self, messages: Any, flush: bool, dtype: npt.DTypeLike | None, definition: Definition | None) -> int:
        """Send them all; returns how many. An exception has in `sent` how many went before it."""
        sent = 0
        try:
            count = _count(messages)
            if self._columns is not None and count is not None:
                self._columns.check_count(count)
            if self._numbers is not None and count is not None:
                self._numbers.check_end(count)
            found = located(messages, dtype, definition)
            if found is None and self._columns is not None and isinstance(messages, (list, tuple)):
                found = gathered(messages)
            if found is None:
                for message in _each(messages):
                    self._send_one(message, sent)
                    sent += 1
            else:
                for span in found:
                    sent = self._send_part(span, sent)
            if self._numbers is not None:
                self._numbers.check_end(sent)
            if self._columns is not None:
                self._columns.check_count(sent)
            if flush:
                self._source.flush()
            return sent
        except BaseException as error:
            error.sent = sent + getattr(error, "sent", 0)  # type: ignore[attr-defined]
            raise

    def _send_one(self, message: Any, before: int) -> None:
        source, more = self._source, {}
        if self._columns is not None:
            self._columns.check_end(before + 1)
            more = {"channel": self._columns.channel(before), "properties": self._columns.properties(before)}
        if self._numbers is not None:
            more["number"] = self._numbers.part(before, 1)[0]
        source.send(message, **more)  # type: ignore[arg-type]

    def _send_part(self, span: Span, before: int) -> int:
        """The messages of one part, behind `before` others; how many have been sent then."""
        base, offsets, lengths, _kept = span
        source, columns, count = self._source, ffi.NULL, len(offsets)
        source._check_open()
        if self._columns is not None:
            self._columns.check_end(before + count)
            columns = self._columns.sent
        extras, numbers = Extras(None), ffi.NULL
        if self._numbers is not None:
            extras.sent.hf_number, column = self._numbers.part(before, count)
            extras.sent.hf_flags = self._numbers.flags
            numbers = numbers if column is None else ffi.from_buffer("uint64_t[]", column)
        where = ffi.from_buffer("uint64_t[]", offsets), ffi.from_buffer("uint32_t[]", lengths)
        sent = ffi.new("size_t *")
        data = ffi.cast("char *", base)
        left = (source._state, data, *where, numbers, count, 0, extras.sent, columns, before, SLICE_MS, sent)
        moved = (0, time.monotonic())
        try:
            while lib.um_py_send_many_with(*left) != 0:
                if lib.lbm_errnum() != lib.LBM_EWOULDBLOCK:
                    source._check_open()
                    raise_last()
                if sent[0] != moved[0]:
                    moved = (sent[0], time.monotonic())
                elif self._patience is not None and time.monotonic() - moved[1] >= self._patience:
                    raise TimedOut(
                        f"{source._name}: no room for {self._patience:g} s: a receiver does not read, or a rate is low"
                    )
        except BaseException as error:
            error.sent = int(sent[0])  # type: ignore[attr-defined]
            raise
        return before + count


@contextlib.contextmanager
def nothing_sent() -> Iterator[None]:
    """Exceptions say so: what is to be sent is still looked at."""
    try:
        yield
    except Exception as error:
        error.sent = 0  # type: ignore[attr-defined]
        raise


def _count(messages: Any) -> int | None:
    """How many messages they are, where that is known before they are looked at."""
    if isinstance(messages, Batch):
        return len(messages._message_records())
    if isinstance(messages, (str, bytes, bytearray, Mapping)):
        return None
    try:
        return len(messages)
    except TypeError:
        return None


def _each(messages: Any) -> Iterator[Any]:
    if isinstance(messages, (str, bytes, bytearray)) or not isinstance(messages, Iterable):
        raise InvalidArgument(
            f"send_many() of {shown(messages)}: give messages, as a list of bytes, an array or a frame"
        )
    return iter(messages)
