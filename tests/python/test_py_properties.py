"""Message properties: from values in Python to types and back, with every way to send and to receive."""

from __future__ import annotations

import asyncio
import copy
import enum
import gc
import pickle
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from pairs import HANG, collect, loopback, numbered, pair, scaled, until

import um_cffi
from um_cffi import (
    Batch,
    InvalidArgument,
    Message,
    MessageFlags,
    Properties,
    PropertyType,
    Receiver,
    ReceiverEvent,
    Source,
)
from um_cffi.properties import properties_of

VALUES: dict[str, Any] = {
    "boolean": np.bool_(True),
    "bool": False,
    "byte": np.int8(-128),
    "short": np.int16(-32768),
    "int": np.int32(2**31 - 1),
    "long": -(2**63),
    "long of numpy": np.int64(2**63 - 1),
    "float": np.float32(0.1),
    "double": 0.1,
    "double of numpy": np.float64(1e300),
    "string": "grün",
    "empty": "",
}
TYPES = ["BOOLEAN", "BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "LONG", "FLOAT", "DOUBLE", "DOUBLE", "STRING", "STRING"]


def is_whole(properties: Mapping[str, object]) -> bool:
    """What came is what VALUES has, as values of Python."""
    assert list(properties) == list(VALUES)
    for name, wanted in VALUES.items():
        got = properties[name]
        assert got == wanted, name
        assert type(got) in (bool, int, float, str), name
        assert (type(got) is bool) == (name in ("boolean", "bool"))
    return True


# -- values and types --


def test_each_type_of_python_has_one_type_of_property() -> None:
    properties = Properties(VALUES)
    assert {name: kind.name for name, kind in properties.types.items()} == dict(zip(VALUES, TYPES))
    assert is_whole(properties)


def test_enumerations_and_derived_classes_are_their_values() -> None:
    class Side(enum.IntEnum):
        BUY = 1

    class Text(str):
        __slots__ = ()

    properties = Properties({"side": Side.BUY, "text": Text("t")})
    assert dict(properties) == {"side": 1, "text": "t"}
    assert [kind.name for kind in properties.types.values()] == ["LONG", "STRING"]


@pytest.mark.parametrize("value", [None, b"bytes", 2**63, -(2**63) - 1, np.uint8(1), np.float16(1), 1j, [1], "a\0b"])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="prop"):
        Properties({"prop": value})


@pytest.mark.parametrize("name", ["", "a\0b", "n" * 251, "ü" * 126, 5, b"n"])
def test_other_names_are_refused(name: Any) -> None:
    with pytest.raises(InvalidArgument, match="properties: name"):
        Properties({name: 1})


def test_only_mappings_are_properties() -> None:
    with pytest.raises(InvalidArgument, match="give a mapping"):
        Properties([("a", 1)])  # type: ignore[arg-type]
    with pair() as (source, _), pytest.raises(InvalidArgument, match="give a mapping"):
        source.send(b"", properties=5)  # type: ignore[arg-type]


def test_they_do_not_change() -> None:
    values: dict[str, Any] = {"a": 1}
    properties = Properties(values)
    values["a"] = 2
    assert properties == {"a": 1} and properties != {"a": 2}
    with pytest.raises(TypeError):
        properties["a"] = 3  # type: ignore[index]
    properties.types["a"] = PropertyType.INT  # type: ignore[index]
    assert properties.types["a"] is PropertyType.LONG
    with pytest.raises(KeyError):
        properties["b"]
    assert "a" in properties and "b" not in properties
    assert repr(properties) == "Properties({'a': 1})"


def test_pickle_copy_and_making_of_others_keep_types() -> None:
    properties = Properties(VALUES)
    for other in (pickle.loads(pickle.dumps(properties)), copy.deepcopy(properties), Properties(properties)):
        assert other == properties and other.types == properties.types


def test_malformed_bytes_are_refused() -> None:
    written = properties_of(Properties(VALUES)._freeze())._freeze()
    for cut in range(0, len(written), 7):
        with pytest.raises(InvalidArgument):
            properties_of(written[:cut])


# -- every way to receive --


def sent(source: Source) -> None:
    """Three messages: the second one has all properties, the third one has one."""
    source.send(b"none")
    source.send(b"all", properties=VALUES)
    source.send(b"one", properties={"n": 3}, flush=True)


def right(messages: list[Message]) -> bool:
    none, many, one = messages
    assert [bytes(message) for message in messages] == [b"none", b"all", b"one"]
    assert none.properties == {} and is_whole(many.properties) and one.properties == {"n": 3}
    assert [bool(message.flags & MessageFlags.PROPERTIES) for message in messages] == [False, True, True]
    return True


def test_taken_one_by_one() -> None:
    with pair() as (source, receiver):
        sent(source)
        assert right([receiver.recv() for _ in range(3)])


def test_taken_in_batches_of_any_size() -> None:
    for most in (1, 2, 3):
        with pair(events=False) as (source, receiver):
            sent(source)
            messages = [message for batch in collect(receiver, 3, most) for message in batch.messages()]
            assert right(messages)


def test_given_to_a_callback() -> None:
    got: list[Message] = []
    with pair(got.append) as (source, _):
        sent(source)
        until(lambda: len(got) == 3)
    gc.collect()
    assert right(got)


def test_given_on_the_librarys_thread() -> None:
    got: list[Message] = []
    with pair(got.append, direct=True) as (source, _):
        sent(source)
        until(lambda: len(got) == 3)
    assert right(got)


def test_conflated() -> None:
    with pair(on_full="conflate") as (source, receiver):
        source.send(b"old", properties={"n": 1})
        source.send(b"new", properties=VALUES, flush=True)
        while bytes(message := receiver.recv()) != b"new":
            assert message.properties == {"n": 1}
        assert is_whole(message.properties)


def test_in_asyncio_both_ways() -> None:
    async def run() -> list[Message]:
        got: list[Message] = []
        with pair() as (source, receiver):
            await source.asend(b"none")
            await source.asend(b"all", properties=VALUES)
            await source.asend([b"o", b"ne"], properties={"n": 3}, flush=True)
            async for message in receiver:
                got.append(message)
                if len(got) == 3:
                    return got
        return got

    assert right(asyncio.run(run()))


def test_columns_leave_them_out_and_say_so() -> None:
    with pair(events=False) as (source, receiver):
        for number in range(3):
            source.send(number.to_bytes(4, "little"), properties={"n": number} if number != 1 else None, flush=True)
        batches = collect(receiver, 3)
        values = [int(value) for batch in batches for value in batch.decode("<u4")]
        flags = [int(flag) for batch in batches for flag in batch.records["flags"]]
        assert values == [0, 1, 2]
        assert [bool(flag & MessageFlags.PROPERTIES) for flag in flags] == [True, False, True]
        source.send_many(batches[0])
        for batch in batches[1:]:
            source.send_many(batch)
        source.flush()
        again = [message for batch in collect(receiver, 3) for message in batch.messages()]
        assert [bytes(message)[0] for message in again] == [0, 1, 2]
        assert [dict(message.properties) for message in again] == [{}, {}, {}]


# -- life --


def test_they_outlive_everything() -> None:
    with pair() as (source, receiver):
        sent(source)
        kept = [receiver.recv() for _ in range(3)]
        retained = [message.retain() for message in kept]
        assert retained == kept
        many = kept[1].properties
        assert kept[1].properties is many, "they are read once"
    del receiver, source
    gc.collect()
    assert right(kept)
    copies = [copy.copy(message) for message in kept] + [pickle.loads(pickle.dumps(message)) for message in kept]
    batches = um_cffi.object_counts().batches
    del kept, retained
    gc.collect()
    assert um_cffi.object_counts().batches == batches, "retained messages kept the batch"
    assert right(copies[:3]) and right(copies[3:])
    assert is_whole(many)


def test_sent_on_they_keep_their_types() -> None:
    with pair() as (source, receiver):
        source.send(b"first", properties=VALUES, flush=True)
        first = receiver.recv()
        source.send(first, flush=True)
        source.send(first, properties=first.properties, flush=True)
        bare, second = receiver.recv(), receiver.recv()
        assert bytes(bare) == bytes(second) == b"first"
        assert bare.properties == {} and second.properties.types == Properties(VALUES).types
        assert is_whole(second.properties)


def test_one_object_is_sent_by_several_threads() -> None:
    count = scaled(300)
    common, received = Properties(VALUES), 0
    with pair(events=False) as (source, receiver):
        again = pickle.loads(pickle.dumps(common))

        def send(properties: Properties) -> None:
            for _ in range(count):
                source.send(b"m", properties=properties)

        threads = [threading.Thread(target=send, args=(each,)) for each in (common, common, again, again)]
        for thread in threads:
            thread.start()
        while received < 4 * count:
            message = receiver.recv(0.01)
            if message is None:
                source.flush()
                continue
            received += 1
            assert is_whole(message.properties)
        for thread in threads:
            thread.join(HANG)


def test_large_ones_travel_in_fragments() -> None:
    properties = {f"name {number}": "x" * 100 for number in range(1000)}
    with pair() as (source, receiver):
        source.send(numbered(1000), properties=properties, flush=True)
        message = receiver.recv()
        assert len(message) == 64000 and message.properties == properties


def test_empty_ones_are_none() -> None:
    with pair() as (source, receiver):
        source.send(b"", properties={}, flush=True)
        source.send(b"", properties=Properties(), flush=True)
        for _ in range(2):
            message = receiver.recv()
            assert not message.properties and not message.flags & MessageFlags.PROPERTIES


def test_losses_and_events_have_none() -> None:
    told: list[ReceiverEvent] = []
    with pair(on_event=told.append) as (source, receiver):
        sent(source)
        batch = receiver.recv_batch(timeout=HANG)
        assert isinstance(batch, Batch)
        assert all(message.properties == {} for message in batch if message.is_event())


def test_lbtsmx_refuses_them_and_goes_on() -> None:
    with loopback() as ctx, Source(ctx, "ring", transport="lbtsmx") as source, Receiver(ctx, "ring") as receiver:
        source.wait_receivers(1, HANG)
        receiver.wait_ready(1, HANG)
        with pytest.raises(InvalidArgument, match="LBT-SMX"):
            source.send(b"", properties={"n": 1})
        source.send(b"plain", flush=True)
        assert bytes(receiver.recv()) == b"plain"


def objects() -> Iterator[int]:
    yield len([each for each in gc.get_objects() if isinstance(each, Properties)])


def test_nothing_is_left_behind() -> None:
    gc.collect()
    before = next(objects())
    with pair() as (source, receiver):
        for _ in range(50):
            sent(source)
            assert right([receiver.recv() for _ in range(3)])
        with pytest.raises(InvalidArgument):
            source.send(b"", properties={"n": 2**70})
        with pytest.raises(InvalidArgument):
            source.send("text", properties=VALUES)  # type: ignore[arg-type]
    gc.collect()
    assert next(objects()) == before
    counts = um_cffi.object_counts()
    assert (counts.sources, counts.receivers, counts.messages) == (0, 0, 0)


def test_closed_sources_refuse() -> None:
    with pair() as (source, _):
        source.close()
        with pytest.raises(InvalidArgument, match="closed"):
            source.send(b"", properties=VALUES)
        with pytest.raises(InvalidArgument, match="closed"):
            source.send_nowait(b"", properties=VALUES)
