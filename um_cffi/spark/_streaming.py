"""Reading a recording as it grows: batch after batch, each of exactly what the options allow.

Spark keeps one reader for a query, in a process beside the driver, and calls it from one thread. What it says is all
that is remembered: offsets are in Spark's checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from um_cffi.errors import InvalidArgument, NotSupported
from um_cffi.recording import _consumers
from um_cffi.spark._offsets import Catalog, Flat, flat, nested
from um_cffi.spark._options import EARLIEST, Offsets, ReadOptions
from um_cffi.spark._planning import Split, plan
from um_cffi.spark._reading import shape_of
from um_cffi.spark._rows import Maker, Shape
from um_cffi.spark._store import Store

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_LOG = logging.getLogger("um_cffi.spark")

try:
    from pyspark.sql.streaming import datasource as admission
except ImportError:  # before 4.2 Spark asks for everything that there is
    admission = None

_BASES: tuple[Any, ...] = (DataSourceStreamReader,)
if admission is not None:
    _BASES += (admission.SupportsTriggerAvailableNow,)


def make_stream_reader(options: ReadOptions, schema: StructType) -> RecordingStreamReader:
    """A reader of a stream. InvalidArgument; NotSupported where this Spark cannot do what the options ask for."""
    limits = {"maxOffsetsPerTrigger": options.max_rows, "maxBytesPerTrigger": options.max_bytes}
    given = [f"{name} {value}" for name, value in limits.items() if value is not None]
    if given and admission is None:
        import pyspark

        raise NotSupported(
            f"option {given[0]}: Spark {pyspark.__version__} does not let a source of Python bound its batches; use "
            "Spark 4.2 or later, or leave the option out"
        )
    if options.consumer is not None and not _consumers._NAME.fullmatch(options.consumer):
        raise InvalidArgument(
            f"option consumer {options.consumer!r}: must have 1..100 letters, digits, - _ or dots, as for um record"
        )
    return RecordingStreamReader(options, shape_of(options, schema))


class RecordingStreamReader(*_BASES):  # type: ignore[misc]
    """Reads what is recorded, and what will be."""

    def __init__(self, options: ReadOptions, shape: Shape) -> None:
        self._options = options
        self._shape = shape
        self._kept: Catalog | None = None
        self._target: Flat | None = None
        """Where a query with Trigger.AvailableNow ends."""
        self._initial: Offsets | None = None
        """Where a new query has begun, until its first batch is planned."""
        self._committed: Offsets | None = None

    @property
    def _catalog(self) -> Catalog:
        """Opened where it is used: readers are also sent to executors, which need none."""
        if self._kept is None:
            self._kept = Catalog(Store(self._options.recording), self._options)
        return self._kept

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}

    # -- on the driver --

    def initialOffset(self) -> Offsets:
        """Where a query without a checkpoint begins."""
        found = nested(self._catalog.starting())
        fixed = self._options.starting_ns is None and self._options.starting == EARLIEST
        self._initial = None if fixed else found
        return found

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:
        """Where the next batch ends. Spark before 4.2 gives neither start nor limit, and has everything."""
        if start is None:
            return nested(self._catalog.latest())
        initial, self._initial = self._initial, None
        if initial is not None and start == initial:
            # Spark writes the end of the first batch down, not its beginning: with an empty one both are the same, and
            # a query that is killed in its first batch begins again where it had begun, whatever has come meanwhile.
            return start
        self._tell_consumer(start)
        before = flat(start)
        target = self._catalog.latest() if self._target is None else self._target
        rows, size = self._limits(limit)
        after = self._catalog.bounded(before, target, rows, size)
        if all(before.get(key) == number for key, number in after.items()):
            return start
        return nested({key: number for key, number in after.items() if key in self._catalog.sessions()})

    def _limits(self, limit: Any) -> tuple[int | None, int | None]:
        """Rows and bytes of a batch."""
        if admission is None or isinstance(limit, admission.ReadAllAvailable):
            return None, None
        rows, size = self._options.max_rows, self._options.max_bytes
        if isinstance(limit, admission.ReadMaxRows):
            rows = limit.max_rows
        elif isinstance(limit, admission.ReadMaxBytes):
            size = limit.max_bytes
        return rows, size

    def getDefaultReadLimit(self) -> Any:
        """What Spark is to ask for; the other bound holds as well."""
        if self._options.max_rows is not None:
            return admission.ReadMaxRows(self._options.max_rows)
        if self._options.max_bytes is not None:
            return admission.ReadMaxBytes(self._options.max_bytes)
        return admission.ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """What comes from now on is for another query."""
        self._target = self._catalog.latest()

    def reportLatestOffset(self) -> Offsets:
        """Behind everything that is recorded, for the progress of the query: the lag is what lies between."""
        return nested(self._catalog.latest())

    def partitions(self, start: Offsets, end: Offsets) -> list[Split]:
        """The tasks of a batch. InvalidOperation when data is lost."""
        return plan(self._catalog, flat(start), flat(end))

    def commit(self, end: Offsets) -> None:
        """A batch is done."""
        self._tell_consumer(end)

    def _tell_consumer(self, read: Offsets) -> None:
        """Let the recorder remove what is read. A file that cannot be written keeps nobody from reading."""
        if self._options.consumer is None or read == self._committed:
            return
        try:
            self._catalog.store.commit(self._options.consumer, read)
        except OSError as error:
            _LOG.warning("consumer %s: its position cannot be written: %s", self._options.consumer, error)
            return
        self._committed = read

    def stop(self) -> None:
        """Nothing is open."""

    # -- on executors --

    def read(self, partition: Split) -> Iterator[Any]:
        """Record batches."""
        return Maker(self._shape).batches(partition.pieces)
