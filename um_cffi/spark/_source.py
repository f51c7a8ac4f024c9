"""The data source as Spark sees it: what it is called, which columns it has, who reads and who writes.

Made anew in each process that Spark uses: the driver's, planners beside it, executors. Nothing is opened here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from um_cffi.errors import NotSupported
from um_cffi.spark import _options, _schema
from um_cffi.spark._worker import spare_collections

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NAME = "ultramessaging"


class UltraMessagingDataSource(DataSource):  # type: ignore[misc]
    """`spark.read.format("ultramessaging")` and its kin: recordings as data frames, rows as messages.

    docs/python/spark.md lists the options. What is wrong with them is told on the driver: InvalidArgument, naming
    option, value and remedy.
    """

    @classmethod
    def name(cls) -> str:
        """What format() takes."""
        return NAME

    def schema(self) -> StructType:
        """The columns that options ask for. InvalidArgument, OSError when the recording cannot be looked at."""
        options = _options.read_options(self.options)
        options.check_recording()
        return _schema.spark_schema(options)

    def reader(self, schema: StructType) -> Any:
        """Who reads a recording once."""
        return _part("_reading", "reads nothing").make_reader(_options.read_options(self.options), schema)

    def streamReader(self, schema: StructType) -> Any:
        """Who reads a recording as it grows."""
        options = _options.read_options(self.options, streaming=True)
        return _part("_streaming", "reads no streams").make_stream_reader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """Who publishes rows."""
        return _part("_sink", "reads recordings and does not write").make_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        """Who publishes the rows of batch after batch."""
        return _part("_sink", "reads recordings and does not write").make_stream_writer(self.options, schema, overwrite)


def _part(name: str, without: str) -> Any:
    """A module of this package, imported when it is needed: readers need nothing of writers. NotSupported."""
    module = f"um_cffi.spark.{name}"
    try:
        found = importlib.import_module(module)
        spare_collections()
        return found
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise NotSupported(f'format "{NAME}": this version {without}') from None
