"""Staged rows: what a task has made of its partition, as a file that outlasts it. Written by executors, read by whoever
publishes.

An Arrow stream of the column `payload`, and of `properties` and `channel` where rows have them; each record batch is of
one topic, which its metadata tells.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from um_cffi.errors import InvalidArgument, InvalidOperation
from um_cffi.pdm import Definition, PDMError, Type
from um_cffi.spark import _extras
from um_cffi.spark._needs import need_arrow
from um_cffi.spark._numbers import STAGING, Batch, sync_folder
from um_cffi.spark._sink_options import PAYLOAD, TOPIC, WriteOptions

ONCE = "once-"  # begins the ids of writes that nobody can repeat
_ABANDONED = 24 * 3600  # seconds after which staged files of such a write have nobody any more
_NAME_MAX = 150
_KEY = b"topic"


@dataclass
class Staged:
    """A staged file: its path, its size in bytes, and how many rows of each topic it has, in the order they came."""

    path: Path
    size: int = 0
    counts: dict[str, int] = field(default_factory=dict)


def folder_of(state: str, batch: Batch) -> Path:
    """Where the files of a batch are staged."""
    return query_folder(state, batch.query) / str(batch.number)


def query_folder(state: str, query: str) -> Path:
    """Where those of a query are."""
    name = quote(query, safe="")
    if len(name) > _NAME_MAX or name.startswith("."):
        name = hashlib.sha256(query.encode()).hexdigest()
    return Path(state) / STAGING / name


def stage(options: WriteOptions, batch: Batch, partition: int, batches: Iterable[Any]) -> Staged:
    """Write the rows of a partition into a new file, durable when this returns. A file that is not finished is gone.

    InvalidArgument for rows that cannot be messages, InvalidOperation for more than `maxStagedBytes`, OSError.
    """
    folder = folder_of(options.state, batch)
    folder.mkdir(parents=True, exist_ok=True)
    made = Staged(folder / f"part-{partition:06d}-{uuid.uuid4().hex}.arrow")
    try:
        with made.path.open("xb") as file:
            _write(options, partition, batches, made, file)
            file.flush()
            os.fsync(file.fileno())
            made.size = file.tell()
        sync_folder(folder)
    except BaseException as error:
        made.path.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise OSError(
                error.errno, f"stateLocation {options.state}: {error.strerror}; rows are staged there"
            ) from error
        raise
    return made


def _write(options: WriteOptions, partition: int, batches: Iterable[Any], made: Staged, file: Any) -> None:
    pa = need_arrow()
    maker = _Payloads(options)
    suffix = f"/{partition}" if options.partition_topics else ""
    writer, rows = None, 0
    for given in batches:
        where = f"partition {partition}, row {rows}"
        columns = {PAYLOAD: maker.column(given, where)}
        columns.update((name, _extras.checked(name, given.column(name), where)) for name in options.extras)
        for topic, part in _by_topic(options, given, pa.RecordBatch.from_pydict(columns), where):
            name = topic + suffix
            if writer is None:
                writer = pa.ipc.new_stream(file, part.schema)
            made.counts[name] = made.counts.get(name, 0) + len(part)
            writer.write_batch(part, custom_metadata={_KEY: name.encode()})
            if file.tell() > options.staged_max:
                raise InvalidOperation(
                    f"option maxStagedBytes {options.staged_max}: partition {partition} has more after {rows} rows; "
                    "make more partitions (repartition()), smaller batches, or raise it"
                )
        rows += given.num_rows
    if writer is not None:
        writer.close()


class _Payloads:
    """Makes messages of rows."""

    def __init__(self, options: WriteOptions) -> None:
        self._columns = options.columns
        self._definition: Definition | None = None if options.definition is None else options.definition.pdm()

    def column(self, given: Any, where: str) -> Any:
        """The messages of a record batch, as an array of binaries."""
        pa = need_arrow()
        if self._definition is not None:
            arrays = [self._fitting(name, given.column(column)) for name, column in self._columns]
            names = [name for name, _ in self._columns]
            try:
                made = self._definition.encode_many(pa.record_batch(arrays, names=names))
            except (PDMError, ValueError) as error:
                raise InvalidArgument(f"rows from {where}: {error}") from None
            return pa.array(made)
        payload = given.column(PAYLOAD)
        if payload.null_count:
            raise InvalidArgument(
                f"rows from {where}: column payload is null: filter such rows out, or fill in a value"
            )
        return (
            payload if pa.types.is_binary(payload.type) or pa.types.is_large_binary(payload.type) else _bytes(payload)
        )

    def _fitting(self, name: str, column: Any) -> Any:
        """Numbers without a sign and of 64 bits are decimals in Spark."""
        pa = need_arrow()
        assert self._definition is not None
        if self._definition[name].type is Type.UINT64 and pa.types.is_decimal(column.type):
            return column.cast(pa.uint64())
        return column


def _bytes(text: Any) -> Any:
    pa = need_arrow()
    return text.cast(pa.large_binary() if pa.types.is_large_string(text.type) else pa.binary())


def _by_topic(options: WriteOptions, given: Any, messages: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The messages of each topic, in their order."""
    if len(messages) == 0:
        return
    if options.topic is not None:
        yield options.topic, messages
        return
    named = given.column(TOPIC)
    if named.null_count:
        raise InvalidArgument(f"rows from {where}: column topic is null: filter such rows out, or fill in a value")
    found = named.dictionary_encode()
    topics = found.dictionary.to_pylist()
    if len(topics) == 1:
        yield topics[0], messages
        return
    codes = found.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ordered = messages.take(need_arrow().array(order))
    ends = np.cumsum(np.bincount(codes, minlength=len(topics)))
    for topic, end, count in zip(topics, ends.tolist(), np.diff(ends, prepend=0).tolist()):
        yield topic, ordered.slice(end - count, count)


def claim(made: Staged, partition: int) -> Staged:
    """The file that all attempts of a partition publish: that of the first one. Later ones are dropped."""
    chosen = made.path.with_name(f"chosen-{partition:06d}.arrow")
    try:
        os.link(made.path, chosen)
        sync_folder(chosen.parent)
    except FileExistsError:
        counts: dict[str, int] = {}
        for topic, rows in parts(chosen):
            counts[topic] = counts.get(topic, 0) + rows.num_rows
        return Staged(chosen, chosen.stat().st_size, counts)
    finally:
        made.path.unlink(missing_ok=True)
    return Staged(chosen, made.size, made.counts)


def parts(path: Path) -> Iterator[tuple[str, Any]]:
    """The record batches of a staged file, each with its topic, mapped into memory. InvalidOperation: it is cut."""
    pa = need_arrow()
    if path.stat().st_size == 0:
        return
    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
            while True:
                try:
                    rows, about = reader.read_next_batch_with_custom_metadata()
                except StopIteration:
                    return
                yield about[_KEY].decode(), rows
    except (pa.ArrowInvalid, KeyError) as error:
        raise InvalidOperation(f"{path}: not a staged file as it was written: {error}") from None


def drop_query(state: str, query: str) -> None:
    """Delete what a query has staged. It is not wanted any more; what cannot be deleted is left."""
    shutil.rmtree(query_folder(state, query), ignore_errors=True)


def drop_others(state: str, batch: Batch, keep: Iterable[str]) -> None:
    """Delete what a batch has staged, but for some names within the state's folder."""
    kept = {Path(state) / name for name in keep}
    folder = folder_of(state, batch)
    for path in folder.glob("*.arrow") if folder.is_dir() else ():
        if path not in kept:
            path.unlink(missing_ok=True)
    if not kept:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(state: str) -> None:
    """Delete what writes have left that were killed and cannot be repeated, a day later."""
    for folder in (Path(state) / STAGING).glob(f"{ONCE}*"):
        try:
            newest = max(path.stat().st_mtime for path in [folder, *folder.rglob("*")])
        except OSError:
            continue  # somebody else deletes it
        if time.time() - newest > _ABANDONED:
            shutil.rmtree(folder, ignore_errors=True)
