"""Arrow: batches and readers for pyarrow, polars, pandas and DuckDB without a copy of payloads; frames sent."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pairs import HANG, SANITIZED, collect, loopback, numbered, pair, payloads, until

from um_cffi import Batch, InvalidArgument, MessageType, Receiver, Source, object_counts

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")
duckdb = pytest.importorskip("duckdb")

TICK = np.dtype(
    [
        ("number", "<u4"),
        ("price", ">f8"),
        ("symbol", "S6"),
        ("at", "<M8[us]"),
        ("sizes", "<i2", (2,)),
        ("live", "?"),
        ("name", "<U4"),
        ("rest", "V3"),
    ]
)


def ticks(count: int = 1000) -> Any:
    rows = np.zeros(count, TICK)
    rows["number"] = np.arange(count)
    rows["price"] = rows["number"] / 8
    rows["symbol"] = [b"AAPL" if number % 2 else b"IBM" for number in range(count)]
    rows["at"] = np.arange(count).astype("M8[us]")
    rows["sizes"] = np.arange(2 * count).reshape(count, 2) % 1000
    rows["live"] = rows["number"] % 3 == 0
    rows["name"] = "grün"
    return rows


def bring(source: Source, receiver: Receiver, messages: Any) -> None:
    """Send, and wait until all of it can be taken: a reader with a timeout then finds everything at once."""
    before = receiver.queue_stats().messages
    source.send_many(messages, flush=True)
    until(lambda: receiver.queue_stats().messages == before + len(messages))


def one_batch(source: Source, receiver: Receiver, messages: Any) -> Batch:
    bring(source, receiver, messages)
    batch = receiver.recv_batch(timeout=0)
    assert batch is not None
    return batch


def within(address: int, batch: Batch) -> bool:
    begin = batch.data.__array_interface__["data"][0]
    return bool(begin <= address < begin + len(batch.data))


def received(receiver: Receiver, count: int) -> list[bytes]:
    return [data for batch in collect(receiver, count) for data in payloads(batch)]


# -- batches --


def test_pyarrow_takes_a_batch_as_it_is() -> None:
    with pair() as (source, receiver):
        batch = one_batch(source, receiver, [b"x" * (number % 40) for number in range(1000)])
        for record_batch in (pa.record_batch(batch), pa.table(batch).to_batches()[0], batch.to_arrow()):
            record_batch.validate(full=True)
            assert within(record_batch.column("payload").buffers()[2].address, batch)
            assert record_batch.column("timestamp").to_numpy().tolist() == batch.records["timestamp_ns"].tolist()
            assert record_batch.schema.field("timestamp").type == pa.timestamp("ns", "UTC")
            assert record_batch.column("payload").to_pylist() == [bytes(message.data) for message in batch]
            assert record_batch.column("topic").to_pylist() == [message.topic for message in batch]
            assert record_batch.column("source").to_pylist() == [message.source for message in batch]
            for name in ("sequence_number", "flags", "type"):
                assert record_batch.column(name).to_pylist() == batch.records[name].tolist()
            assert len(batch.events()) == sum(kind != MessageType.DATA for kind in record_batch["type"].to_pylist())


def test_polars_takes_a_batch_as_it_is() -> None:
    with pair() as (source, receiver):
        batch = one_batch(source, receiver, numbered(1000))
        frame = pl.DataFrame(batch)
        assert frame.height == len(batch)
        assert frame["payload"].to_list() == [bytes(message.data) for message in batch]
        assert frame["timestamp"].dtype == pl.Datetime("ns", "UTC")
        assert frame["topic"].unique().to_list() == ["news"]
        views = frame["payload"].to_arrow(compat_level=pl.CompatLevel.newest())  # what polars holds
        assert any(within(buffer.address, batch) for buffer in views.buffers()[2:] if buffer is not None)


def test_pandas_takes_a_batch_through_arrow() -> None:
    with pair() as (source, receiver):
        batch = one_batch(source, receiver, numbered(1000))
        frames = [pa.table(batch).to_pandas()]
        if hasattr(pd.DataFrame, "from_arrow"):
            frames.append(pd.DataFrame.from_arrow(batch))
        for frame in frames:
            assert frame["payload"].tolist() == [bytes(message.data) for message in batch]
            assert str(frame["timestamp"].dtype) == "datetime64[ns, UTC]"
        arrow = pa.table(batch).to_pandas(types_mapper=pd.ArrowDtype)["payload"].array._pa_array
        assert within(arrow.chunk(0).buffers()[2].address, batch)


def test_payloads_with_gaps_are_views() -> None:
    """Gaps come of what is taken out of the middle; here the batch is told to leave rows out."""
    with pair() as (source, receiver):
        batch = one_batch(source, receiver, [b"%020d" % number if number % 3 else b"short" for number in range(300)])
        batch.records = batch.records[1:][::2]
        record_batch = pa.record_batch(batch)
        record_batch.validate(full=True)
        column = record_batch.column("payload")
        assert column.type == pa.binary_view()
        assert within(column.buffers()[2].address, batch)
        assert column.to_pylist() == [
            batch.data[at : at + length].tobytes()
            for at, length in zip(batch.records["offset"].tolist(), batch.records["length"].tolist())
        ]


def test_arrow_data_keeps_the_memory_and_gives_it_back() -> None:
    gc.collect()  # what earlier tests kept
    before = object_counts()
    with pair() as (source, receiver):
        arrow = pa.record_batch(one_batch(source, receiver, numbered(1000)))
        stream = pa.RecordBatchReader.from_stream(one_of(source, receiver))
    column = arrow.column("payload")
    del arrow
    gc.collect()
    assert len(column.to_pylist()) == 1001
    dropped = threading.Thread(target=lambda kept: kept.clear(), args=([column],))  # released on any thread
    del column
    dropped.start()
    dropped.join()
    assert stream.read_all().num_rows > 0
    del stream
    gc.collect()
    until(lambda: object_counts() == before)


def one_of(source: Source, receiver: Receiver) -> Batch:
    source.send(b"one", flush=True)
    batch = receiver.recv_batch(timeout=HANG)
    assert batch is not None
    return batch


def test_capsules_nobody_takes_are_released() -> None:
    gc.collect()  # what earlier tests kept
    before = object_counts()
    with pair() as (source, receiver):
        batch = one_of(source, receiver)
        batch.__arrow_c_array__()
        batch.__arrow_c_stream__()
        receiver.arrow_reader().__arrow_c_stream__()
        receiver.arrow_reader(TICK).__arrow_c_schema__()
        del batch
        gc.collect()
    until(lambda: object_counts() == before)


def test_arrow_data_may_outlive_the_interpreter() -> None:
    program = (
        "from pairs import HANG, pair\nimport pyarrow as pa\n"
        "with pair() as (source, receiver):\n"
        "    source.send(b'x' * 100, flush=True)\n"
        "    pa.kept = pa.record_batch(receiver.recv_batch(timeout=HANG))\n"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, timeout=300)
    assert done.returncode == 0


# -- readers --


def test_reader_gives_payloads_without_events_and_without_a_copy() -> None:
    with pair() as (source, receiver):
        taken: list[Batch] = []
        original = receiver.recv_batch

        def remembering(**limits: Any) -> Any:
            batch = original(**limits)
            if batch is not None:
                taken.append(batch)
            return batch

        receiver.recv_batch = remembering  # type: ignore[method-assign]
        rows = numbered(3000)
        bring(source, receiver, rows)
        reader = pa.RecordBatchReader.from_stream(receiver.arrow_reader(timeout=0.1))
        assert reader.schema.names == ["payload", "topic", "source", "timestamp"]
        assert reader.schema.field("timestamp").type == pa.timestamp("ns", "UTC")
        got: list[bytes] = []
        for record_batch in reader:
            record_batch.validate(full=True)
            assert within(record_batch.column("payload").buffers()[2].address, taken[-1])
            got += record_batch.column("payload").to_pylist()
        assert got == [row.tobytes() for row in rows]


def test_reader_gives_the_fields_of_a_dtype() -> None:
    with pair() as (source, receiver):
        rows = ticks()
        bring(source, receiver, rows)
        table = pa.table(receiver.arrow_reader(TICK, timeout=0.1))
        table.validate(full=True)
        assert table.schema.names == [*(TICK.names or ()), "topic", "source", "timestamp"]
        for name in ("number", "price", "sizes", "live", "name"):
            assert table[name].to_pylist() == rows[name].tolist()
        assert table["symbol"].to_pylist() == rows["symbol"].tolist()
        assert table["at"].to_numpy().astype("M8[us]").tolist() == rows["at"].tolist()
        assert table["rest"].to_pylist() == [b"\0\0\0"] * len(rows)
        assert set(table["topic"].to_pylist()) == {"news"}


def test_duckdb_queries_a_reader() -> None:
    with pair() as (source, receiver):
        bring(source, receiver, ticks())
        reader = receiver.arrow_reader(TICK, timeout=0.1)  # noqa: F841  found by its name
        found = duckdb.sql("select count(*), sum(number), max(price), min(topic) from reader").fetchall()
        assert found == [(1000, 499500, 124.875, "news")]
        bring(source, receiver, [b"one", b"two"])
        raw = receiver.arrow_reader(timeout=0.1)  # noqa: F841
        assert duckdb.sql("select payload from raw order by payload").fetchall() == [(b"one",), (b"two",)]


def test_polars_reads_a_reader() -> None:
    with pair() as (source, receiver):
        bring(source, receiver, ticks())
        frame = pl.DataFrame(receiver.arrow_reader(TICK, timeout=0.1))
        assert frame["number"].sum() == 499500


def test_reader_ends_when_the_receiver_is_closed() -> None:
    with pair() as (source, receiver):
        source.send_many([b"1", b"2"], flush=True)
        reader = pa.RecordBatchReader.from_stream(receiver.arrow_reader())
        got: list[bytes] = []

        def read() -> None:
            for batch in reader:
                got.extend(batch["payload"].to_pylist())

        thread = threading.Thread(target=read)
        thread.start()
        until(lambda: len(got) == 2)
        receiver.close()
        thread.join(HANG)
        assert not thread.is_alive()
        assert got == [b"1", b"2"]


def test_reader_waits_for_messages_not_for_events() -> None:
    """The beginning of the session alone is no message: the time passes, and there is an empty table."""
    with pair() as (_, receiver):
        assert pa.table(receiver.arrow_reader(timeout=0.1)).num_rows == 0


def test_reader_tells_what_does_not_fit() -> None:
    with pair() as (source, receiver):
        bring(source, receiver, [b"123"])
        with pytest.raises(Exception, match="has 3 bytes: the dtype needs 4"):
            pa.table(receiver.arrow_reader("<u4", timeout=0.1))
        with pytest.raises(InvalidArgument, match="no Arrow type"):
            receiver.arrow_reader([("x", "c16")])
        with pytest.raises(InvalidArgument, match="another column"):
            receiver.arrow_reader([("topic", "u4")])
        with pytest.raises(ValueError, match="timeout"):
            receiver.arrow_reader(timeout=-1)


# -- sending frames --

FRAMES: dict[str, Callable[[Any], Any]] = {
    "pyarrow table": lambda table: table,
    "pyarrow record batch": lambda table: table.combine_chunks().to_batches()[0],
    "pyarrow reader": lambda table: table.to_reader(max_chunksize=7),
    "part of a table": lambda table: pa.concat_tables([table.slice(0, 13), table.slice(13)]),
    "polars": lambda table: pl.DataFrame(table),
    "pandas": lambda table: table.to_pandas(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_send_many_packs_the_rows_of_frames(kind: str) -> None:
    rows = ticks(100)
    layout = np.dtype([(name, TICK.fields[name][0]) for name in ("number", "price", "symbol", "at", "sizes", "live")])  # type: ignore[index]
    with pair() as (source, receiver):
        bring(source, receiver, rows)
        table = pa.table(receiver.arrow_reader(TICK, timeout=0.1))
        assert source.send_many(FRAMES[kind](table), flush=True, dtype=layout) == 100
        got = np.frombuffer(b"".join(received(receiver, 100)), layout)
        for name in layout.names or ():
            assert (got[name] == rows[name]).all(), name


@pytest.mark.parametrize("kind", FRAMES)
def test_send_many_sends_the_payloads_of_frames(kind: str) -> None:
    messages = [b"x" * number for number in range(100)]
    table = pa.table({"more": range(100), "payload": messages})
    with pair() as (source, receiver):
        assert source.send_many(FRAMES[kind](table), flush=True) == 100
        assert received(receiver, 100) == messages


@pytest.mark.parametrize(
    "kind", ["binary", "large_binary", "binary_view", "string", "large_string", "string_view", "fixed", "dictionary"]
)
def test_send_many_takes_payloads_of_every_arrow_type(kind: str) -> None:
    messages = [b"%05d" % number + b"!" * (0 if kind == "fixed" else number % 20) for number in range(100)]
    types = {
        "fixed": lambda: pa.binary(5),
        "dictionary": lambda: pa.dictionary(pa.int32(), pa.binary()),
    }
    type = types[kind]() if kind in types else getattr(pa, kind)()
    values = messages if "string" not in kind else [message.decode() for message in messages]
    array = pa.array(values, pa.binary()).dictionary_encode() if kind == "dictionary" else pa.array(values, type)
    with pair() as (source, receiver):
        for many in (array, pa.chunked_array([array[:30], array[30:]]), pa.table({"payload": array})):
            assert source.send_many(many, flush=True) == 100
            assert received(receiver, 100) == messages
        assert source.send_many(array[50:60]) == 10
        assert source.send_many(array[:0], flush=True) == 0
        assert received(receiver, 10) == messages[50:60]


def test_send_many_takes_arrays_of_numbers() -> None:
    with pair() as (source, receiver):
        assert source.send_many(pa.array([1, 2, 3], pa.uint16())[1:], flush=True) == 2
        assert received(receiver, 2) == [b"\x02\0", b"\x03\0"]


def test_send_many_sends_on_what_a_reader_gives() -> None:
    messages = [b"%d" % number for number in range(500)]
    with pair() as (source, receiver), pair(topic="second") as (onward, last):
        bring(source, receiver, messages)
        assert onward.send_many(receiver.arrow_reader(timeout=0.1), flush=True) == 500
        assert received(last, 500) == messages


@pytest.mark.parametrize(
    ("frame", "dtype", "text"),
    [
        (lambda: pl.DataFrame({"id": [1]}), None, "no column 'payload', but 'id'; give the layout"),
        (lambda: pl.DataFrame({"id": [1]}), [("price", "f8")], "no column 'price', but 'id'"),
        (lambda: pd.DataFrame({"id": [1]}), [("price", "f8")], "no column 'price', but 'id'"),
        (lambda: pl.DataFrame({"id": [1, None]}), [("id", "u4")], "row 1 is null"),
        (lambda: pd.DataFrame({"id": [1, None]}), [("id", "u4")], "row 1: nan does not fit"),
        (lambda: pl.DataFrame({"payload": [b"", None]}), None, "row 1 is null"),
        (lambda: pl.DataFrame({"id": [1, -1]}), [("id", "u4")], "row 1: -1 does not fit"),
        (lambda: pl.DataFrame({"id": [1, 256]}), [("id", "u1")], "row 1: 256 does not fit"),
        (lambda: pl.DataFrame({"id": [1.0, 1.5]}), [("id", "u1")], "row 1: 1.5 does not fit"),
        (lambda: pl.DataFrame({"id": [1.5, 1e300]}), [("id", "f4")], "row 1: 1e\\+300 does not fit"),
        (lambda: pd.DataFrame({"id": [70000]}), [("id", "f2")], "row 0: 70000 does not fit"),
        (lambda: pl.DataFrame({"id": ["a", "abc"]}), [("id", "S2")], "row 1: b'abc' does not fit"),
        (lambda: pl.DataFrame({"id": ["a"]}), [("id", "u4")], "field is of type uint32"),
        (lambda: pd.DataFrame({"id": [5]}), [("id", "S4")], "neither text nor bytes"),
        (lambda: pl.DataFrame({"id": [1]}), "u4", "must have fields"),
        (lambda: pa.array([1.5]), [("id", "u4")], "leave it out"),
        (lambda: [b"x"], [("id", "u4")], "packs the rows of frames"),
        (lambda: pa.table({"payload": [[1]]}), None, "payloads are binary"),
    ],
)
def test_frames_that_do_not_fit_are_refused(frame: Any, dtype: Any, text: str) -> None:
    with loopback() as ctx, Source(ctx, "news") as source, pytest.raises(InvalidArgument, match=text):
        source.send_many(frame(), dtype=dtype)


# -- iterators --


def test_slow_generator_is_sent_as_it_comes() -> None:
    with pair() as (source, receiver):

        def slow() -> Iterator[bytes]:
            for number in range(5):
                yield b"%d" % number
                source.flush()
                until(lambda number=number: receiver.queue_stats().messages == number + 1)  # type: ignore[misc]

        assert source.send_many(slow()) == 5


def test_generator_of_large_messages_takes_no_memory() -> None:
    count, size = 300, 1 << 20
    with loopback() as ctx, Source(ctx, "news") as source:
        source.send_many(bytes(size) for _ in range(10))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert source.send_many(bytes([number % 256]) * size for number in range(count)) == count
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert SANITIZED or grown < count * size // 1024 // 4


def test_exception_of_a_generator_tells_what_was_sent() -> None:
    def failing() -> Iterator[bytes]:
        yield from (b"1", b"2", b"3")
        raise ZeroDivisionError

    with pair() as (source, receiver):
        with pytest.raises(ZeroDivisionError) as caught:
            source.send_many(failing())
        assert caught.value.sent == 3  # type: ignore[attr-defined]
        with pytest.raises(InvalidArgument, match="messages are bytes") as refused:
            source.send_many(iter([b"4", "text"]))  # type: ignore[arg-type]
        assert refused.value.sent == 1  # type: ignore[attr-defined]
        source.flush()
        assert received(receiver, 4) == [b"1", b"2", b"3", b"4"]
        source.close()
        with pytest.raises(InvalidArgument, match="closed"):
            source.send_many(iter([b"5"]))
