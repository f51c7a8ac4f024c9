"""Batches as Arrow data. Imported only when asked for: pyarrow is optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

try:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]
except ImportError as error:
    raise ImportError("Batch.to_arrow() needs pyarrow: pip install pyarrow") from error

if TYPE_CHECKING:
    from um_cffi.batch import Batch

INLINE_MAX = 12  # bytes of a value that a view of the Arrow columnar format holds itself
VIEW = np.dtype([("length", np.int32), ("prefix", "S4"), ("buffer", np.int32), ("offset", np.int32)])
COLUMNS = (("sequence_number", "uint32"), ("flags", "int32"), ("type", "int32"))


def record_batch(batch: Batch) -> pa.RecordBatch:
    """What Batch.to_arrow() returns."""
    records = batch.records
    arrays = [_payload(batch), _names(records["topic"], batch.topics), _names(records["source"], batch.sources)]
    names = ["payload", "topic", "source"]
    for name, kind in COLUMNS:
        arrays.append(pa.array(np.ascontiguousarray(records[name]), type=pa.type_for_alias(kind)))
        names.append(name)
    arrays.append(pa.array(np.ascontiguousarray(records["timestamp_ns"]), type=pa.int64()).view(pa.timestamp("ns")))
    return pa.RecordBatch.from_arrays(arrays, names=[*names, "timestamp"])


def _names(indexes: npt.NDArray[np.uint32], names: Sequence[str]) -> pa.DictionaryArray:
    kept = np.ascontiguousarray(indexes).view(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(kept), pa.array(list(names), type=pa.string()))


def _payload(batch: Batch) -> pa.Array:
    records = batch.records
    count = len(records)
    if count == 0:
        return pa.array([], type=pa.large_binary())
    lengths = records["length"].astype(np.int64)
    # Events have no payload, and their offsets do not matter.
    first = int(np.flatnonzero(lengths)[0]) if lengths.any() else 0
    begin = int(records["offset"][first]) if lengths.any() else 0
    offsets = np.empty(count + 1, np.int64)
    offsets[0] = begin
    np.cumsum(lengths, out=offsets[1:])
    offsets[1:] += begin
    in_a_row = (records["offset"].astype(np.int64) == offsets[:-1]) | (lengths == 0)
    data = pa.py_buffer(memoryview(batch.data))
    if bool(in_a_row.all()):
        return pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(offsets), data])
    return _views(batch, data)


def _views(batch: Batch, data: pa.Buffer) -> pa.Array:
    records = batch.records
    views = np.zeros(len(records), VIEW)
    views["length"] = records["length"]
    views["offset"] = records["offset"]
    payload = batch.view
    raw = views.view(np.uint8).reshape(-1, VIEW.itemsize)
    for at, (offset, length) in enumerate(zip(records["offset"].tolist(), records["length"].tolist())):
        head = payload[offset : offset + min(length, INLINE_MAX if length <= INLINE_MAX else 4)]
        if length <= INLINE_MAX:
            raw[at, 4:] = 0
        raw[at, 4 : 4 + len(head)] = np.frombuffer(head, np.uint8)
    return pa.Array.from_buffers(pa.binary_view(), len(records), [None, pa.py_buffer(views), data])
