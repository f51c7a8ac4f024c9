"""All rows of a recording, losses included, as a DataFrame: what feed quality and latency are computed from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from um_cffi.errors import InvalidArgument
from um_cffi.recording import Recording

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "kind string, topic string, source string, session string, sequence long, count long, flags int, "
    "hf_number decimal(20, 0), timestamp_ns long, source_ns long, kernel_ns long, library_ns long"
)


def recorded(spark: SparkSession, folder: str | os.PathLike[str], topics: Sequence[str] = ()) -> DataFrame:
    """The rows of the finished segments that the recording in `folder` has now, or those of some topics.

    Columns: `kind` ("message", "loss", "dropped", "reset"), `topic`, `source`, `session`, `sequence`, `count` (1, or
    what a loss stands for), `flags`, `hf_number`, and times in nanoseconds since 1970 UTC: `timestamp_ns`, when it
    came; `source_ns`, when it was sent, where the recorder was told the property (--source-timestamp); `kernel_ns`,
    when the kernel or the card took it, and `library_ns`, when the library did, of which a row has one. A segment is a
    partition. Executors must see the folder under the same path. InvalidArgument when it holds no recording, or none
    of a topic.
    """
    recording = Recording(folder)
    segments = recording.segments()
    unknown = set(topics) - {each.topic for each in segments}
    if unknown:
        raise InvalidArgument(f"{folder} has no finished segment of {', '.join(sorted(unknown))}")
    paths = [
        (str((recording.folder / each.path).resolve()),) for each in segments if not topics or each.topic in topics
    ]
    if not paths:
        return spark.createDataFrame([], SCHEMA)
    listed = spark.createDataFrame(paths, "path string").repartition(len(paths))
    return listed.mapInArrow(_read, SCHEMA)


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On an executor: the rows of the segments whose paths come."""
    import pyarrow

    for batch in batches:
        for path in batch.column("path").to_pylist():
            with pyarrow.memory_map(path) as file:
                reader = pyarrow.ipc.open_file(file)
                for at in range(reader.num_record_batches):
                    yield _plain(reader.get_batch(at))


def _plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Times as nanoseconds, since Spark's have microseconds; 64 bits without sign as decimals."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = {name: rows.column(name).cast(pa.string()) for name in ("kind", "topic", "source", "session")}
    came, sent, taken = (
        rows.column(name).cast(pa.int64()) for name in ("timestamp", "source_timestamp", "kernel_timestamp")
    )
    message = pc.equal(text["kind"], "message")
    return pa.RecordBatch.from_pydict(
        {
            **text,
            **{name: rows.column(name) for name in ("sequence", "count", "flags")},
            "hf_number": rows.column("hf_number").cast(pa.decimal128(20, 0)),
            "timestamp_ns": came,
            "source_ns": sent,
            "kernel_ns": taken,
            "library_ns": pc.if_else(pc.and_(message, pc.is_null(taken)), came, None),
        }
    )
