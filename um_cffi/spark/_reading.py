"""Reading a recording once: as a data frame. Plans on the driver, reads on executors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader

from um_cffi.errors import InvalidArgument
from um_cffi.recording._manifest import Segment
from um_cffi.spark import _definition, _schema
from um_cffi.spark._offsets import Catalog
from um_cffi.spark._options import ReadOptions
from um_cffi.spark._planning import Split, plan
from um_cffi.spark._rows import Maker, Shape
from um_cffi.spark._store import Store

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"
_FAR = 1 << 63


def shape_of(options: ReadOptions, schema: StructType) -> Shape:
    """What executors need to know. InvalidArgument."""
    return Shape(
        options.recording,
        _schema.check_schema(schema, options),
        _schema.arrow_schema(schema),
        None if options.definition is None else _definition.load(options.definition),
        options.losses,
        options.fail_on_data_loss,
    )


def make_reader(options: ReadOptions, schema: StructType) -> RecordingReader:
    """A reader; one that takes filters where Spark asks for it. Others must not, or Spark refuses them."""
    if options.consumer is not None:
        raise InvalidArgument(f"option consumer {options.consumer}: only a stream tells how far it has read")
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    pushing = _PUSHING in sys.modules or getattr(main, "name", None) == _PUSHING
    return (FilteringReader if pushing else RecordingReader)(options, shape_of(options, schema))


class RecordingReader(DataSourceReader):  # type: ignore[misc]
    """Reads what is recorded between two offsets."""

    def __init__(self, options: ReadOptions, shape: Shape) -> None:
        self._options = options
        self._shape = shape
        self._bounds = Bounds()

    def partitions(self) -> list[Split]:
        """On the driver. InvalidArgument, InvalidOperation when data is lost, OSError."""
        catalog = Catalog(Store(self._options.recording), self._options)
        start, end = catalog.starting(), catalog.ending()
        for key in end:
            low, high = self._bounds.of("sequence")
            start[key] = start.get(key, catalog.begin({}, key))
            if not (start[key] < end[key] and self._bounds.names_allow(key)):
                del start[key]
                continue
            if low > start[key] or high < end[key]:  # what is not asked for cannot be lost either
                start[key], end[key] = max(start[key], low), min(end[key], high + 1)
        found = plan(catalog, start, {key: end[key] for key in start if start[key] < end[key]}, self._bounds.allow)
        return found or [Split(())]

    def read(self, partition: Split) -> Iterator[Any]:
        """On an executor: record batches."""
        return Maker(self._shape).batches(partition.pieces)


@dataclass
class Bounds:
    """What pushed filters leave of columns that the manifest knows."""

    texts: dict[str, set[str]] = field(default_factory=dict)
    """Names that are wanted, of topic, source and session."""
    numbers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """From and to, both included, of sequence and timestamp_ns."""

    def of(self, name: str) -> tuple[int, int]:
        """The bounds of a column."""
        return self.numbers.get(name, (-_FAR, _FAR))

    def names_allow(self, key: tuple[str, str, str]) -> bool:
        """Whether a session may have rows that are wanted."""
        named = zip(("topic", "source", "session"), key)
        return all(value in self.texts.get(name, (value,)) for name, value in named)

    def allow(self, segment: Segment) -> bool:
        """Whether a segment may have them."""
        low, high = self.of("timestamp_ns")
        return segment.last_ns >= low and segment.first_ns <= high

    def narrow(self, name: str, low: int, high: int) -> None:
        """A further bound."""
        known = self.of(name)
        self.numbers[name] = max(known[0], low), min(known[1], high)


class FilteringReader(RecordingReader):
    """A reader that leaves out what filters do not want: sessions, segments, ranges of numbers."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """On the driver. What comes back Spark looks at again: bounds leave whole segments out, not rows."""
        return [each for each in filters if not self._taken(each)]

    def _taken(self, wanted: Any) -> bool:
        """Whether a filter is seen to here, entirely."""
        path: Any = getattr(wanted, "attribute", ())
        if len(path) != 1:
            return False
        name, value = path[0], getattr(wanted, "value", None)
        if name in ("topic", "source", "session"):
            return self._take_text(name, wanted, value)
        if name in ("sequence", "timestamp_ns") and isinstance(value, int) and not isinstance(value, bool):
            self._take_number(name, wanted, value, value)
        elif name == "timestamp" and isinstance(value, datetime) and value.tzinfo is not None:
            micros = (value - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
            self._take_number("timestamp_ns", wanted, micros * 1000, micros * 1000 + 999)
        return isinstance(wanted, datasource.IsNotNull) and name in ("sequence", "flags")

    def _take_text(self, name: str, wanted: Any, value: Any) -> bool:
        if isinstance(wanted, datasource.IsNotNull):
            return True
        if isinstance(wanted, datasource.EqualTo):
            values = {value}
        elif isinstance(wanted, datasource.In):
            values = set(value)
        else:
            return False
        self._bounds.texts[name] = self._bounds.texts.get(name, values) & values
        return True

    def _take_number(self, name: str, wanted: Any, low: int, high: int) -> None:
        bounds: dict[type, Callable[[], tuple[int, int]]] = {
            datasource.EqualTo: lambda: (low, high),
            datasource.GreaterThan: lambda: (low, _FAR),
            datasource.GreaterThanOrEqual: lambda: (low, _FAR),
            datasource.LessThan: lambda: (-_FAR, high),
            datasource.LessThanOrEqual: lambda: (-_FAR, high),
        }
        if type(wanted) in bounds:
            self._bounds.narrow(name, *bounds[type(wanted)]())
