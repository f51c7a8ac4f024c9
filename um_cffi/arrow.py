"""A receiver as a stream of Arrow data."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from um_cffi.binding import arrow
from um_cffi.binding.arguments import dtype_of
from um_cffi.binding.deferred import np

if TYPE_CHECKING:
    import numpy.typing as npt

    from um_cffi.batch import Batch
    from um_cffi.receiver import Receiver, WildcardReceiver

_RUNS_MAX = 16  # record batches made of a batch with gaps between its payloads, rather than a copy of them


class ArrowReader:
    """What arrow_reader() of a `receiver` gives: messages as they come, for everything that reads Arrow streams.

    pyarrow.RecordBatchReader.from_stream(reader), DuckDB, polars and others take it as it is: columns are the fields of
    `dtype` (None: `payload`), then `topic`, `source`, `timestamp`, and the `extra` ones of to_arrow(). Every
    stream made of it takes messages from the receiver, what one has got another does not see, and ends when the
    receiver is closed or nothing has come for `timeout` seconds. Any thread, one at a time for each stream.
    InvalidArgument when there is no Arrow type for a field.
    """

    __slots__ = ("__weakref__", "_dtype", "_extra", "_receiver", "_timeout")

    def __init__(
        self,
        receiver: Receiver | WildcardReceiver,
        dtype: npt.DTypeLike | None,
        timeout: float | None,
        extra: Iterable[arrow.Extra] = (),
    ) -> None:
        """Made by receivers."""
        self._receiver = receiver
        self._dtype: np.dtype[Any] | None = None if dtype is None else dtype_of("arrow_reader()", dtype)
        self._timeout = timeout
        self._extra = arrow.extra_names("arrow_reader()", extra)
        if self._dtype is not None:
            arrow.check_dtype(self._dtype, self._extra)

    def __repr__(self) -> str:
        return f"<ArrowReader of {self._receiver!r}>"

    def __arrow_c_schema__(self) -> object:
        """The type of the stream, as the capsule of Arrow's PyCapsule interface."""
        return arrow.schema_capsule(arrow.message_schema(self._dtype, self._extra))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The messages from now on, as the capsule of Arrow's PyCapsule interface; `requested_schema` is left alone."""
        return arrow.stream(
            arrow.message_schema(self._dtype, self._extra),
            _Stream(self._receiver, self._dtype, self._timeout, self._extra).following,
        )


class _Stream:
    """One reading; used by one thread at a time."""

    def __init__(
        self,
        receiver: Any,
        dtype: np.dtype[Any] | None,
        timeout: float | None,
        extra: tuple[arrow.Extra, ...],
    ) -> None:
        self._receiver = receiver
        self._extra = extra
        self._dtype = dtype
        self._timeout = timeout
        self._batch: Batch | None = None
        self._runs: list[npt.NDArray[np.void]] = []

    def following(self) -> arrow.Column | None:
        """The next record batch; None at the end."""
        if not self._runs and not self._take():
            return None
        assert self._batch is not None
        return arrow.message_column(self._batch, self._runs.pop(0), self._dtype, self._extra)

    def _take(self) -> bool:
        """Wait for messages; False when the receiver is closed or the time has passed."""
        end = None if self._timeout is None else time.monotonic() + self._timeout
        while not self._receiver.closed:
            left = None if end is None else max(0.0, end - time.monotonic())
            batch = self._receiver.recv_batch(timeout=left)
            if batch is not None:
                records = batch._message_records()
                if len(records):
                    self._batch = batch
                    self._runs = _runs(records) if self._dtype is None else [records]
                    return True
            if left == 0:
                return False
        return False


def _runs(records: npt.NDArray[np.void]) -> list[npt.NDArray[np.void]]:
    """Records split where payloads do not follow each other."""
    ends = records["offset"][:-1] + records["length"][:-1]
    gaps = np.flatnonzero((records["offset"][1:] != ends) & (records["length"][1:] > 0)) + 1
    return [records] if len(gaps) >= _RUNS_MAX else np.split(records, gaps.tolist())
