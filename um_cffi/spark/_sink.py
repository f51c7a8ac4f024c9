"""Rows become messages: the writers that Spark calls.

On the driver a writer is made and, when all tasks are done, commits; on executors it stages rows. Without
`partitionTopics` the driver publishes what was staged, in the order of partitions and rows; with it each task publishes
its own. Both take their numbers from the book (_numbers), so that what is repeated repeats them.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import datasource as api

from um_cffi.errors import InvalidOperation
from um_cffi.spark import _publishing, _staging
from um_cffi.spark._needs import need_arrow
from um_cffi.spark._numbers import Batch, Begun, NumberBook, changed
from um_cffi.spark._sink_options import WriteOptions, write_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_BATCH, _QUERY = "streaming.sql.batchId", "sql.streaming.queryId"  # of what Spark tells tasks of a stream
_ROWS = 10_000  # made a record batch of, where Spark gives rows

log = logging.getLogger("um_cffi.spark")


@dataclass
class Done(api.WriterCommitMessage):  # type: ignore[misc]
    """What a task tells the driver."""

    batch: Batch
    partition: int
    file: str
    """Within the state's folder."""
    size: int
    counts: dict[str, int] = field(default_factory=dict)


def make_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> _BatchWriter:
    """A writer of a data frame. Called on the driver, and sent to executors. InvalidArgument."""
    if overwrite:
        raise InvalidOperation('mode("overwrite"): what was published cannot be taken back; use mode("append")')
    chosen = write_options(options, schema, streaming=False)
    _prepared(chosen)
    named = chosen.query is not None
    return _BatchWriter(chosen, Batch(chosen.query if chosen.query is not None else _once(), 0, named))


def make_stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> _StreamWriter:
    """A writer of micro-batches. Called on the driver, anew for each of them and for its commit. InvalidArgument."""
    chosen = write_options(options, schema, streaming=True)
    _prepared(chosen)
    return _ArrowStreamWriter(chosen) if _ArrowStreamWriter is not None else _RowStreamWriter(chosen, schema)


def _once() -> str:
    return _staging.ONCE + uuid.uuid4().hex


def _prepared(options: WriteOptions) -> None:
    NumberBook(options.state).prepare()
    _staging.sweep(options.state)


# -- on executors --


def write_partition(options: WriteOptions, batch: Batch, batches: Iterable[Any]) -> Done:
    """Stage a partition and, with `partitionTopics`, publish it."""
    partition = TaskContext.get().partitionId()
    made = _staging.stage(options, batch, partition, batches)
    if options.partition_topics:
        made = _staging.claim(made, partition)
        _publish_partition(options, batch, made)
    return Done(batch, partition, str(made.path.relative_to(options.state)), made.size, made.counts)


def _publish_partition(options: WriteOptions, batch: Batch, made: _staging.Staged) -> None:
    begun = NumberBook(options.state).begin(batch, made.counts)
    if begun.done and any(begun.counts.get(topic) != count for topic, count in made.counts.items()):
        log.warning("%s: published before, by other partitions: nothing more is sent", batch)
        return
    first = {topic: begun.first[topic] for topic in made.counts}
    _send(options, batch, [made.path], first, {})


def _send(options: WriteOptions, batch: Batch, files: list[Path], first: dict[str, int], sent: dict[str, int]) -> None:
    if not first:
        return
    try:
        _publishing.publisher(options).publish(files, first, options, sent)
    except Exception as error:
        _publishing.discard()
        repeated = "it is published again, with the same numbers, when repeated" if batch.named else "given up"
        raise InvalidOperation(f"{batch}: {error}; {sum(sent.values())} rows were sent; {repeated}") from error


# -- on the driver --


def commit(options: WriteOptions, batch: Batch, messages: Sequence[Done]) -> None:
    """Publish what tasks have staged, or note that they have published it; then nothing staged is left."""
    book = NumberBook(options.state)
    if not options.partition_topics:
        with book.publishing():
            _publish_staged(options, book, batch, sorted(messages, key=lambda each: each.partition))
    else:
        _expect_same_partitions(options, batch, messages)
    book.finish(batch)
    _staging.drop_query(options.state, batch.query)


def _publish_staged(options: WriteOptions, book: NumberBook, batch: Batch, messages: Sequence[Done]) -> None:
    counts: dict[str, int] = {}
    for message in messages:
        for topic, count in message.counts.items():
            counts[topic] = counts.get(topic, 0) + count
    if not counts and book.find(batch) is None:
        return
    mine = [(message.file, message.size) for message in messages]
    begun = book.begin(batch, counts, mine)
    files = _chosen_files(options, batch, begun, mine, counts)
    if files is None:
        log.warning("%s: published before, with other rows: nothing more is sent", batch)
        return
    sent: dict[str, int] = {}
    try:
        _send(options, batch, files, begun.first, sent)
    except BaseException:
        if not batch.named:
            book.give_up(batch, {topic: sent.get(topic, 0) for topic in begun.counts})
        raise


def _chosen_files(
    options: WriteOptions, batch: Batch, begun: Begun, mine: list[tuple[str, int]], counts: Mapping[str, int]
) -> list[Path] | None:
    """The files that a batch was begun with, while they are there; else those of this attempt, when they have as many
    rows of each topic. None: it was published, and these are others."""
    folder = Path(options.state)
    if begun.files and all(_has(folder / name, size) for name, size in begun.files):
        return [folder / name for name, _ in begun.files]
    if begun.counts == dict(counts):
        return [folder / name for name, _ in mine]
    if begun.done:
        return None
    for topic in {*begun.counts, *counts}:
        if begun.counts.get(topic, 0) != counts.get(topic, 0):
            raise InvalidOperation(changed(batch, topic, begun.counts.get(topic, 0), counts.get(topic, 0)))
    return None


def _has(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _expect_same_partitions(options: WriteOptions, batch: Batch, messages: Sequence[Done]) -> None:
    """Attempts before a restart have published under the same numbers only where they had the same partitions."""
    folder = _staging.folder_of(options.state, batch)
    mine = {Path(options.state) / message.file for message in messages}
    others = sorted(path.name for path in folder.glob("chosen-*.arrow") if path not in mine)
    if others:
        raise InvalidOperation(
            f"{batch}: it has {len(messages)} partitions now, and had more when begun ({', '.join(others[:3])}); "
            "with partitionTopics a repeated batch needs as many: start the query with the same number of partitions"
        )


def abort(options: WriteOptions, batch: Batch) -> None:
    """Tasks have failed, or the commit has. What nobody needs for a repetition is deleted."""
    book = NumberBook(options.state)
    if not batch.named:
        book.give_up(batch, {})
        _staging.drop_query(options.state, batch.query)
        return
    if options.partition_topics:
        return  # what attempts have chosen is published again, as it is
    begun = book.find(batch)
    _staging.drop_others(options.state, batch, [name for name, _ in begun.files] if begun is not None else [])


class _BatchWriter(api.DataSourceArrowWriter):  # type: ignore[misc]
    """Publishes a data frame once."""

    def __init__(self, options: WriteOptions, batch: Batch) -> None:
        self._options = options
        self._batch = batch

    def write(self, iterator: Iterator[Any]) -> Done:
        """Of one partition, in an executor."""
        return write_partition(self._options, self._batch, iterator)

    def commit(self, messages: list[Any]) -> None:
        """On the driver, when all partitions are done."""
        commit(self._options, self._batch, [message for message in messages if message is not None])

    def abort(self, messages: list[Any]) -> None:
        """On the driver, when one is not."""
        abort(self._options, self._batch)


class _StreamWriter(api.DataSourceStreamWriter):  # type: ignore[misc]
    """Publishes one micro-batch after the other."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> Done:
        """Of one partition of a micro-batch, in an executor."""
        context = TaskContext.get()
        query, number = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if query is None or number is None:
            raise InvalidOperation("Spark does not tell this task its query and batch: numbers cannot be kept")
        return write_partition(self._options, Batch(query, int(number)), self._batches(iterator))

    def _batches(self, iterator: Iterator[Any]) -> Iterator[Any]:
        return iterator

    def commit(self, messages: list[Any], batchId: int) -> None:
        """On the driver, when all partitions of a micro-batch are done."""
        found = [message for message in messages if message is not None]
        if found:  # else there is nothing to publish
            commit(self._options, found[0].batch, found)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """On the driver, when one is not."""
        for batch in {message.batch for message in messages if message is not None}:
            abort(self._options, batch)


class _RowStreamWriter(_StreamWriter):
    """Where Spark has no Arrow data for streams yet, before 4.1."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        super().__init__(options)
        self._schema = schema

    def _batches(self, iterator: Iterator[Any]) -> Iterator[Any]:
        return batches_of_rows(iterator, self._schema)


def batches_of_rows(rows: Iterator[Any], schema: StructType) -> Iterator[Any]:
    """Record batches of rows."""
    from pyspark.sql.pandas.types import to_arrow_schema

    pa = need_arrow()
    kinds = to_arrow_schema(schema)
    gathered: list[Any] = []
    for row in rows:
        gathered.append(row)
        if len(gathered) == _ROWS:
            yield _batch_of(pa, gathered, kinds)
            gathered = []
    if gathered:
        yield _batch_of(pa, gathered, kinds)


def _batch_of(pa: Any, rows: list[Any], kinds: Any) -> Any:
    columns = [pa.array([_plain(row[at]) for row in rows], kind.type) for at, kind in enumerate(kinds)]
    return pa.record_batch(columns, schema=kinds)


def _plain(value: Any) -> Any:
    """Times of rows are local; bytearrays are bytes."""
    if hasattr(value, "astimezone"):
        return value.astimezone()
    return bytes(value) if isinstance(value, bytearray) else value


_ArrowStreamWriter: Any = None
if hasattr(api, "DataSourceStreamArrowWriter"):

    class _ArrowWriter(_StreamWriter, api.DataSourceStreamArrowWriter):  # type: ignore[misc]
        """From 4.1 on."""

    _ArrowStreamWriter = _ArrowWriter
