"""Messages of arrays, batches and frames as places in memory: for sends that give each message something of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from um_cffi.batch import Batch
from um_cffi.binding.arguments import dtype_of, shown
from um_cffi.binding.deferred import np
from um_cffi.binding.frames import is_arrow, is_pandas, pandas_messages, spans
from um_cffi.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy.typing as npt

    from um_cffi.binding.frames import Span
    from um_cffi.pdm import Definition

_GATHERED_BYTES = 1 << 20  # messages of a list that are copied into one buffer at a time
_GATHERED = 4096


def located(messages: Any, dtype: npt.DTypeLike | None, definition: Definition | None) -> Iterator[Span] | None:
    """Where the messages lie, part by part; None for an iterable of buffers, which lie anywhere.

    InvalidArgument as of Source.send_many().
    """
    if definition is not None:
        if dtype is not None:
            raise InvalidArgument("send_many() with dtype and definition: give the one that makes the messages")
        return definition._spans(messages)
    layout = None if dtype is None else dtype_of("send_many()", dtype)
    if is_arrow(messages) and not isinstance(messages, Batch):
        return spans(messages, layout)
    if is_pandas(messages):
        found = pandas_messages(messages, layout)
        return gathered(found) if isinstance(found, list) else found
    if layout is not None:
        raise InvalidArgument(f"dtype={layout} with {type(messages).__name__}: it packs the rows of frames")
    if isinstance(messages, Batch):
        return iter([_of_batch(messages)])
    if isinstance(messages, np.ndarray):
        return iter([_of_array(messages)])
    return None


def _of_batch(batch: Batch) -> Span:
    records = batch._message_records()
    places = np.ascontiguousarray(records["offset"], np.uint64)
    return batch.data.ctypes.data, places, np.ascontiguousarray(records["length"], np.uint32), batch


def _of_array(messages: npt.NDArray[Any]) -> Span:
    if messages.ndim == 0 or (messages.ndim == 1 and messages.dtype.itemsize == 1) or messages.dtype.hasobject:
        raise InvalidArgument(
            f"array of shape {messages.shape} and type {messages.dtype}: each element along the first axis is a "
            "message; give rows (reshape to 2 dimensions) or structured elements, without Python objects"
        )
    rows = np.ascontiguousarray(messages)
    length = rows.nbytes // len(rows) if len(rows) else 0
    places = np.arange(len(rows), dtype=np.uint64) * np.uint64(length)
    return rows.ctypes.data, places, np.full(len(rows), length, np.uint32), rows


def gathered(messages: list[Any] | tuple[Any, ...]) -> Iterator[Span]:
    """The messages of a list, copied one behind the other, some at a time."""
    parts: list[memoryview] = []
    size = 0
    for row, message in enumerate(messages):
        try:
            parts.append(memoryview(message))
        except TypeError:
            raise InvalidArgument(
                f"send_many(): message {row}: {shown(message)} of type {type(message).__name__}: "
                "give bytes, or another contiguous buffer"
            ) from None
        size += parts[-1].nbytes
        if size >= _GATHERED_BYTES or len(parts) >= _GATHERED or row + 1 == len(messages):
            lengths = np.array([part.nbytes for part in parts], np.uint32)
            offsets = np.zeros(len(parts), np.uint64)
            np.cumsum(lengths[:-1], dtype=np.uint64, out=offsets[1:])
            data = np.frombuffer(b"".join(parts) or b"\0", np.uint8)
            yield data.ctypes.data, offsets, lengths, data
            parts, size = [], 0
