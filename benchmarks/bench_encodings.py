"""One trade (8 characters, two numbers, an optional text) in each encoding: bytes, processor time to make and to read
one message in Python, and for each of 10000 as columns. One thread, nothing is sent. Some 5 s:

    UM_BUILD_DIR=build PYTHONPATH=. .venv/bin/python benchmarks/bench_encodings.py
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from um_cffi import pdm
from um_cffi.sdm import SDMMessage, SDMType

COUNT = 10000
LAYOUT = struct.Struct("<8sdi")
DTYPE = np.dtype([("symbol", "S8"), ("price", "<f8"), ("size", "<i4")])
TRADE = pdm.Definition.from_schema(
    {"symbol": "FIX_STRING(8)", "price": "DOUBLE", "size": "INT32", "note": "STRING?"}, id=7
)


def nanoseconds(call: Callable[[], object], each: int = 1) -> float:
    """Processor time of this thread for one message: the fastest of ten rounds of some 30 ms."""
    begin = time.thread_time_ns()
    call()
    calls = max(30_000_000 // max(time.thread_time_ns() - begin, 1), 1)
    best = float("inf")
    for _ in range(10):
        begin = time.thread_time_ns()
        for _ in range(calls):
            call()
        best = min(best, (time.thread_time_ns() - begin) / calls / each)
    return best


def make_sdm() -> bytes:
    message = SDMMessage()
    message.add("symbol", "IBM", SDMType.STRING)
    message.add("price", 191.5, SDMType.DOUBLE)
    message.add("size", 100, SDMType.INT32)
    return message.to_bytes()


def read_sdm(data: bytes) -> tuple[Any, ...]:
    message = SDMMessage.parse(data)
    return message["symbol"], message["price"], message["size"]


def make_pdm() -> bytes:
    return TRADE.message(symbol="IBM", price=191.5, size=100).to_bytes()


def read_pdm(message: pdm.Message, data: bytes) -> tuple[Any, ...]:
    message.parse(data)
    return message["symbol"], message["price"], message["size"]


def row(name: str, size: int, *figures: float | None) -> None:
    cells = ["-" if figure is None else f"{figure:,.{figure < 10:d}f} ns" for figure in figures]
    print(f"| {name} | {size} | {' | '.join(cells)} |")


def arrow(columns: np.ndarray[Any, Any]) -> None:
    try:
        import pyarrow as pa
    except ImportError:
        return
    names = columns.dtype.names or ()

    def make() -> Any:
        batch = pa.record_batch([pa.array(columns[name]) for name in names], names=list(names))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue()

    stream = make()
    row(
        "Arrow (stream of 10000 rows)", round(stream.size / COUNT), None, None,
        nanoseconds(make, COUNT), nanoseconds(lambda: pa.ipc.open_stream(stream).read_all(), COUNT),
    )  # fmt: skip


def main() -> None:
    print("| encoding | bytes | make one | read one | make 10000, each | read 10000, each |\n|---|---|---|---|---|---|")
    columns = np.zeros(COUNT, DTYPE)
    columns["symbol"], columns["price"], columns["size"] = b"IBM", 191.5, 100
    raw, sdm, one = LAYOUT.pack(b"IBM", 191.5, 100), make_sdm(), make_pdm()
    packed = columns.tobytes()
    row(
        "raw struct", len(raw), nanoseconds(lambda: LAYOUT.pack(b"IBM", 191.5, 100)),
        nanoseconds(lambda: LAYOUT.unpack(raw)), nanoseconds(columns.tobytes, COUNT),
        nanoseconds(lambda: np.frombuffer(packed, DTYPE).copy(), COUNT),
    )  # fmt: skip
    rows = TRADE.encode_many(columns)
    reused = TRADE.message()
    row(
        "PDM", len(one), nanoseconds(make_pdm), nanoseconds(lambda: read_pdm(reused, one)),
        nanoseconds(lambda: TRADE.encode_many(columns), COUNT), nanoseconds(lambda: TRADE.decode_many(rows), COUNT),
    )  # fmt: skip
    many = [sdm] * COUNT
    row(
        "SDM", len(sdm), nanoseconds(make_sdm), nanoseconds(lambda: read_sdm(sdm)),
        None, nanoseconds(lambda: [read_sdm(data) for data in many], COUNT),
    )  # fmt: skip
    arrow(columns)


if __name__ == "__main__":
    main()
