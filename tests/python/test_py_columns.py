"""Channels, properties and numbers of hot failover as columns: of send_many(), of batches, of Arrow data."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest
from pairs import HANG, collect, loopback, pair, until

from um_cffi import (
    Batch,
    HFReceiver,
    HFSource,
    InvalidArgument,
    Message,
    NotSupported,
    Properties,
    PropertyType,
    Source,
    UmError,
)

pa = pytest.importorskip("pyarrow")

LAST = 4294967295
ROWS = np.arange(8, dtype="<u4").reshape(4, 2)


def messages_of(receiver: Any, count: int) -> list[Message]:
    return [message for batch in collect(receiver, count) for message in batch.messages()]


def channels_of(receiver: Any, count: int) -> list[int | None]:
    return [message.channel for message in messages_of(receiver, count)]


def properties_of(receiver: Any, count: int) -> list[dict[str, Any]]:
    return [dict(message.properties) for message in messages_of(receiver, count)]


def whole_batch(receiver: Any, count: int, before: int = 0) -> Batch:
    """One batch of all messages, behind so many: `messages` counts them alone, what waits counts events, too."""
    until(lambda: receiver.queue_stats().messages == before + count)
    batch = receiver.recv_batch(timeout=HANG)
    assert batch is not None and len(batch) == count
    return batch  # type: ignore[no-any-return]


# -- sending: channels --


@pytest.mark.parametrize(
    "channels",
    [
        [7, None, 0, LAST],
        (7, -1, 0, LAST),
        np.array([7, -1, 0, LAST]),
        np.array([7, -1, 0, LAST], object),
        np.array([7, -1, 0, LAST], ">i8")[::1],
        np.ma.MaskedArray([7, 5, 0, LAST], mask=[False, True, False, False]),
        pa.array([7, None, 0, LAST]),
        pa.chunked_array([[7, None], [0, LAST]]),
        pa.array([9, 7, None, 0, LAST, 9], pa.uint32())[1:5],
    ],
)
def test_channels_are_a_column_of_send_many(channels: Any) -> None:
    with pair(channels=[7]) as (source, receiver):
        assert source.send_many(ROWS, True, channels=channels) == 4
        assert channels_of(receiver, 4) == [7, None, 0, LAST]
        assert source.send_many([b"a", b"", bytearray(b"c"), memoryview(b"d")], True, channels=channels) == 4
        assert [(m.channel, bytes(m)) for m in messages_of(receiver, 4)] == [
            (7, b"a"),
            (None, b""),
            (0, b"c"),
            (LAST, b"d"),
        ]


def test_one_channel_and_one_set_of_properties_may_be_those_of_all_messages() -> None:
    with pair(channels=[7]) as (source, receiver):
        alike: list[Any] = [{"a": 1, "b": "x"}, Properties({"a": 1, "b": "x"})]
        for properties in alike:
            source.send_many(ROWS, True, channels=7, properties=properties)
            got = messages_of(receiver, 4)
            assert [(m.channel, dict(m.properties)) for m in got] == [(7, {"a": 1, "b": "x"})] * 4
        source.send_many(
            (each for each in (b"a", b"b")), True, channels=np.array([7, 7], np.int32), properties={"a": 1}
        )
        assert [(m.channel, dict(m.properties)) for m in messages_of(receiver, 2)] == [(7, {"a": 1})] * 2


# -- sending: properties --

COLUMNS: dict[str, tuple[Any, PropertyType]] = {
    "bool": (np.array([True, False, True, False]), PropertyType.BOOLEAN),
    "int8": (np.array([-128, 127, 0, 1], np.int8), PropertyType.BYTE),
    "int16": (np.array([-1, 2, 3, 4], ">i2"), PropertyType.SHORT),
    "int32": (np.arange(8, dtype=np.int32)[::2], PropertyType.INT),
    "int64": ([1, -(2**63), 2**63 - 1, 0], PropertyType.LONG),
    "float32": (np.array([0.5, 1, 2, 3], np.float32), PropertyType.FLOAT),
    "float64": ((0.25, 1.0, -2.0, 1e300), PropertyType.DOUBLE),
    "text": (["", "ä", "x" * 300, "y"], PropertyType.STRING),
    "U": (np.array(["a", "bc", "", "é"]), PropertyType.STRING),
    "for all": ("same", PropertyType.STRING),
    "one int32": (np.int32(-5), PropertyType.INT),
    "one bool": (False, PropertyType.BOOLEAN),
    "arrow": (pa.array([1, 2, 3, 4], pa.int16()), PropertyType.SHORT),
    "arrow bools": (pa.array([True, True, False, False]), PropertyType.BOOLEAN),
    "arrow texts": (pa.chunked_array([["a"], ["b", "c", "d"]]), PropertyType.STRING),
    "arrow names": (pa.array(["a", "b", "a", "b"]).dictionary_encode(), PropertyType.STRING),
}


def plain(values: Any, at: int) -> Any:
    if isinstance(values, (str, bool, np.generic)):
        return values
    value = values[at]
    return value.as_py() if hasattr(value, "as_py") else value


@pytest.mark.parametrize("lazily", [False, True])
def test_properties_are_columns_of_send_many_whose_types_say_how_they_travel(lazily: bool) -> None:
    with pair() as (source, receiver):
        messages: Any = (row.tobytes() for row in ROWS) if lazily else ROWS
        source.send_many(messages, True, properties={name: values for name, (values, _) in COLUMNS.items()})
        got = messages_of(receiver, 4)
    for at, message in enumerate(got):
        assert bytes(message) == ROWS[at].tobytes()
        assert dict(message.properties) == {name: plain(values, at) for name, (values, _) in COLUMNS.items()}
        if not lazily or at == 0:
            assert message.properties.types == {name: kind for name, (_, kind) in COLUMNS.items()}


@pytest.mark.parametrize(
    "values",
    [
        [None, 1, None, 2],
        np.array([None, 1, None, 2], object),
        np.ma.MaskedArray([9, 1, 9, 2], mask=[True, False, True, False]),
        pa.array([None, 1, None, 2]),
        pa.array([None, "1", None, "2"]),
        pa.array([None, "1", None, "2"]).dictionary_encode(),
        [None, "1", None, "2"],
    ],
)
def test_a_message_without_a_value_has_no_such_property(values: Any) -> None:
    with pair() as (source, receiver):
        source.send_many(ROWS, True, properties={"p": values, "q": ["a", None, None, None], "none": [None] * 4})
        got = properties_of(receiver, 4)
        assert [{name: str(value) for name, value in each.items()} for each in got] == [
            {"q": "a"},
            {"p": "1"},
            {},
            {"p": "2"},
        ]


def test_columns_of_pandas_and_polars_are_taken() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    with pair(channels=[1]) as (source, receiver):
        frame = pandas.DataFrame({"payload": [b"a", b"b"], "n": pandas.array([1, None], "Int64"), "c": [1, 2]})
        source.send_many(frame, True, channels=frame["c"], properties={"n": frame["n"], "c": frame["c"]})
        got = messages_of(receiver, 2)
        assert [(bytes(m), m.channel, dict(m.properties)) for m in got] == [
            (b"a", 1, {"n": 1, "c": 1}),
            (b"b", 2, {"c": 2}),
        ]
        table = polars.DataFrame({"payload": [b"a", b"b"], "t": ["x", None], "c": [None, 2]})
        source.send_many(table, True, channels=table["c"], properties={"t": table["t"]})
        got = messages_of(receiver, 2)
        assert [(bytes(m), m.channel, dict(m.properties)) for m in got] == [(b"a", None, {"t": "x"}), (b"b", 2, {})]


def test_properties_may_be_a_list_of_mappings() -> None:
    house = Properties({"h": np.int8(1)})
    rows = [{"a": 1}, None, house, {"a": True}, {"a": 1.0}, {}, {"a": 1}, house]
    with pair() as (source, receiver):
        source.send_many(np.zeros((8, 3)), True, properties=rows)
        got = messages_of(receiver, 8)
        assert [dict(m.properties) for m in got] == [dict(row or {}) for row in rows]
        kinds = [dict(m.properties.types).get("a") for m in got]
        assert kinds[0] is PropertyType.LONG and kinds[3] is PropertyType.BOOLEAN and kinds[4] is PropertyType.DOUBLE
        assert got[2].properties.types == {"h": PropertyType.BYTE}


def test_many_messages_keep_their_rows() -> None:
    count = 20000
    numbers = np.arange(count)
    with pair(channels=[0]) as (source, receiver):
        source.send_many(
            [b"%d" % number for number in range(count)],
            True,
            channels=numbers // 7 % 5,
            properties={"n": numbers, "text": [str(number) for number in range(count)]},
        )
        for number, message in enumerate(messages_of(receiver, count)):
            assert bytes(message) == b"%d" % number and message.channel == number // 7 % 5
            assert dict(message.properties) == {"n": number, "text": str(number)}


# -- sending: what is refused --


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"channels": [1, 2, 3]}, "channels: 3 values for 4 messages: give one for each"),
        ({"channels": [1, 2, 3, 4, 5]}, "channels: 5 values for 4 messages"),
        ({"channels": [1, 2, 3, LAST + 1]}, "channels, row 3: channel 4294967296: must be an int, 0 to"),
        ({"channels": np.array([1, 2, -2, 4])}, "channels, row 2: -2: must be 0 to 4294967295, or -1"),
        ({"channels": [1.0, 2, 3, 4]}, "channels, row 0: channel 1.0: must be an int"),
        ({"channels": np.zeros(4)}, "channels of the type float64: must be integers"),
        ({"channels": np.zeros((4, 1), int)}, "channels: an array of 2 dimensions: must have one"),
        ({"channels": -1}, "channel -1: must be an int"),
        ({"channels": True}, "channel True: must be an int"),
        ({"channels": "1234"}, "channels '1234': must be a value for all messages, or an array or list"),
        ({"channels": iter([1, 2, 3, 4])}, "must be a value for all messages, or an array or list"),
        ({"properties": {"p": [1, 2, 3]}}, "property p: 3 values for 4 messages"),
        ({"properties": {"p": [1, 2, "3", 4]}}, "property p: values of the types int and str: must all be of one"),
        ({"properties": {"p": [1, 2, b"3", 4]}}, r"property p, row 2: b'3' is of type bytes"),
        ({"properties": {"p": [1, 2, 2**63, 4]}}, "property p, row 2: 9223372036854775808 does not fit into 64"),
        ({"properties": {"p": 2**63}}, "property p: 9223372036854775808 does not fit into 64 bits"),
        ({"properties": {"p": ["a", "b\0", "c", "d"]}}, "property p, row 1 .* contains a NUL"),
        ({"properties": {"p": ["a", "b", "\ud800", "d"]}}, "property p, row 2 .* UTF-8"),
        ({"properties": {"p": np.zeros(4, np.uint32)}}, "property p: values of the type uint32: must be bool, int8"),
        ({"properties": {"p": np.zeros(4, "S2")}}, r"property p: values of the type \|S2"),
        ({"properties": {"p": pa.array([b"a"] * 4)}}, "property p, row 0: b'a' is of type bytes"),
        ({"properties": {"p": b"abcd"}}, "must be a value for all messages, or an array or list"),
        ({"properties": {"": [1, 2, 3, 4]}}, "of 0 bytes: must have 1..250"),
        ({"properties": {"x" * 251: 1}}, "of 251 bytes"),
        ({"properties": {7: 1}}, "property 7 is of type int: give a str"),
        ({"properties": [{}, {}, {}]}, "properties: 3 values for 4 messages"),
        ({"properties": [{}, {}, {"p": b"x"}, {}]}, "properties, row 2: properties: p: b'x' is of type bytes"),
        ({"properties": [{}, {}, {"p": []}, {}]}, "properties, row 2"),
        ({"properties": [{}, {}, 3, {}]}, "properties, row 2: 3: must be a mapping"),
        ({"properties": "abcd"}, "give a mapping of names to columns, or a list"),
    ],
)
def test_wrong_columns_are_named_and_nothing_is_sent(columns: Any, said: str) -> None:
    with pair(channels=[7]) as (source, receiver):
        for messages in (ROWS, [b"a", b"b", b"c", b"d"], pa.table({"payload": [b"a", b"b", b"c", b"d"]})):
            with pytest.raises(InvalidArgument, match=said) as refused:
                source.send_many(messages, **columns)
            assert refused.value.sent == 0  # type: ignore[attr-defined]
        source.send(b"end", flush=True)
        message = receiver.recv(HANG)
        assert message is not None and bytes(message) == b"end"


def test_an_iterator_that_is_longer_or_shorter_than_the_columns_says_how_many_went() -> None:
    with pair(channels=[7]) as (source, receiver):
        for count, sent in ((5, 3), (2, 2)):
            with pytest.raises(InvalidArgument, match=r"channels: 3 values for") as refused:
                source.send_many(itertools.repeat(b"x", count), True, channels=[1, 2, 3])
            assert refused.value.sent == sent  # type: ignore[attr-defined]
        source.flush()
        assert channels_of(receiver, 5) == [1, 2, 3, 1, 2]


def test_a_message_that_is_none_says_how_many_went() -> None:
    messages: list[Any] = [b"x"] * 5000
    messages[4900] = "text"
    with pair() as (source, _):
        with pytest.raises(InvalidArgument, match="message 4900: 'text' of type str: give bytes") as refused:
            source.send_many(messages, properties={"a": 1})
        assert refused.value.sent == 4096  # type: ignore[attr-defined]
        with pytest.raises(InvalidArgument, match="give messages, as a list of bytes"):
            source.send_many(b"bytes", channels=7)  # type: ignore[arg-type]


def test_shared_memory_refuses_columns() -> None:
    with loopback() as ctx:
        source = Source(ctx, "memory", transport="lbtsmx")
        refusals: list[Any] = [({"channels": 7}, NotSupported), ({"properties": {"a": [1, 2, 3, 4]}}, UmError)]
        for columns, error in refusals:
            with pytest.raises(error) as refused:
                source.send_many(ROWS, **columns)
            assert refused.value.sent == 0
        source.close()
        with pytest.raises(InvalidArgument, match="closed"):
            source.send_many(ROWS, channels=7)


def test_sends_that_find_no_room_wait_and_go_on() -> None:
    count = 30000
    with pair(channels=[7], queue_bytes=1 << 16) as (source, receiver):
        taken: list[int | None] = []

        thread = threading.Thread(
            target=lambda: source.send_many(
                [b"x" * 1000] * count, True, channels=np.arange(count), properties={"n": [1] * count}
            )
        )
        thread.start()
        while len(taken) < count:
            batch = receiver.recv_batch(timeout=HANG)
            assert batch is not None
            taken.extend(batch.channels().tolist())
        thread.join(HANG)
        assert taken == list(range(count))


# -- hot failover --


@pytest.mark.parametrize("bits", [32, 64])
def test_numbers_channels_and_properties_go_together(bits: Any) -> None:
    with loopback() as sending, loopback() as receiving:
        receiver = HFReceiver(receiving, "news", channels=[7], events=False)
        source = HFSource(sending, "news", bits=bits)
        receiver.wait_ready(1, HANG)
        first = (1 << bits) - 4
        more: dict[str, Any] = {"channels": [7, 8, None, 7], "properties": {"n": [1, None, 3, 4]}}
        source.send_many(ROWS, True, numbers=first, **more)
        source.send_many((row.tobytes() for row in ROWS[:1]), True, channels=[9], properties=[{"z": 1}])
        batch = whole_batch(receiver, 5)
        assert batch.hf_numbers().tolist() == [*range(first, first + 4), 0]
        assert batch.channels().tolist() == [7, 8, -1, 7, 9]
        assert [dict(each) for each in batch.properties()] == [{"n": 1}, {}, {"n": 3}, {"n": 4}, {"z": 1}]
        table = batch.to_arrow(extra=["hf_number", "channel"])
        assert table.column("hf_number").to_pylist() == [*range(first, first + 4), None]
        with pytest.raises(InvalidArgument, match="channels: 3 values for 4 messages") as refused:
            source.send_many(ROWS, numbers=0, channels=[1, 2, 3])
        assert refused.value.sent == 0  # type: ignore[attr-defined]
        with pytest.raises(InvalidArgument, match="5 numbers for 4 messages") as refused:
            source.send_many(ROWS, numbers=[1, 2, 3, 4, 5])
        assert refused.value.sent == 0  # type: ignore[attr-defined]


# -- batches --


def test_batches_have_columns_when_they_are_asked_for() -> None:
    with pair(channels=[7], events=False) as (source, receiver):
        sent: list[dict[str, Any]] = [{"a": 1, "b": "ä"}, {}, {"a": True}, {"a": 1, "b": "ä"}]
        source.send_many(ROWS, True, channels=[7, None, 8, LAST], properties=sent)
        batch = whole_batch(receiver, 4)
        assert batch.channels().tolist() == [7, -1, 8, LAST]
        assert batch.hf_numbers().tolist() == [0] * 4
        assert [dict(each) for each in batch.properties()] == sent
        assert batch.properties()[0] is not batch.properties()[2]
        plain_names = ["payload", "topic", "source", "sequence_number", "flags", "type", "timestamp"]
        assert batch.to_arrow().schema.names == plain_names
        wide = batch.to_arrow(extra=["channel", "hf_number", "properties", "properties_bytes"])
        assert wide.schema.names == [*plain_names, "channel", "hf_number", "properties", "properties_bytes"]
        wide.validate(full=True)
        assert [
            wide.schema.field(name).type for name in ("channel", "hf_number", "properties", "properties_bytes")
        ] == [
            pa.int64(),
            pa.uint64(),
            pa.map_(pa.string(), pa.string()),
            pa.binary(),
        ]
        assert wide.column("channel").to_pylist() == [7, None, 8, LAST]
        assert wide.column("hf_number").to_pylist() == [None] * 4
        texts = [[("a", "1"), ("b", "ä")], None, [("a", "true")], [("a", "1"), ("b", "ä")]]
        assert wide.column("properties").to_pylist() == texts
        written = wide.column("properties_bytes").to_pylist()
        assert written[1] is None and written[0] == written[3] and written[0] != written[2]
        # and back
        source.send_many(batch, True, channels=batch.channels(), properties=batch.properties())
        again = whole_batch(receiver, 4, before=4)
        assert again.to_arrow(extra=["channel", "properties_bytes"]).column("channel").to_pylist() == [7, None, 8, LAST]
        assert again.to_arrow(extra=["properties_bytes"]).column("properties_bytes").to_pylist() == written
        for wrong in ("channel", ["colour"], 3):
            with pytest.raises(InvalidArgument, match=r"extra"):
                batch.to_arrow(extra=wrong)  # type: ignore[arg-type]


def test_batches_without_any_have_empty_columns() -> None:
    with pair(events=False) as (source, receiver):
        source.send_many(ROWS, True, channels=7)
        batch = whole_batch(receiver, 4)
        assert batch.channels().tolist() == [-1] * 4 and batch.properties() == [Properties()] * 4
        wide = batch.to_arrow(extra=["channel", "hf_number", "properties", "properties_bytes"])
        wide.validate(full=True)
        assert all(wide.column(at).null_count == 4 for at in range(7, 11))


def test_streams_have_extra_columns() -> None:
    with pair(channels=[7], events=False) as (source, receiver):
        source.send_many(ROWS, True, channels=[7, None, 8, 7], properties={"n": [1, 2, None, 4]})
        until(lambda: receiver.queue_stats().messages == 4)
        reader = receiver.arrow_reader(ROWS.dtype.descr and "2<u4", timeout=0.0, extra=["properties", "channel"])
        table = pa.RecordBatchReader.from_stream(reader).read_all()
        table.validate(full=True)
        assert table.schema.names == ["value", "topic", "source", "timestamp", "properties", "channel"]
        assert table.column("channel").to_pylist() == [7, None, 8, 7]
        assert table.column("properties").to_pylist() == [[("n", "1")], [("n", "2")], None, [("n", "4")]]
        with pytest.raises(InvalidArgument, match="field 'channel': that is the name of another column"):
            receiver.arrow_reader([("channel", "<u4")], extra=["channel"])
