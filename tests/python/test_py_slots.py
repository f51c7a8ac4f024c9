"""Sources of a fixed layout: slots as arrays, what is refused, and arrays that outlive everything."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from pairs import HANG, loopback, scaled

import um_cffi
from um_cffi import (
    InvalidArgument,
    NotSupported,
    Receiver,
    Responder,
    SlotSource,
    UmError,
)
from um_cffi.binding._native import lib
from um_cffi.stats import LbtruSourceStats

QUOTE = np.dtype([("id", "<u4"), ("price", "<f8"), ("name", "S5")])


@contextlib.contextmanager
def quotes(dtype: Any = QUOTE, transport: Any = "lbtru", **options: Any) -> Iterator[tuple[SlotSource, Receiver]]:
    """A source and a receiver in contexts of their own that have found each other."""
    with loopback() as sending, loopback() as receiving:
        receiver = Receiver(receiving, "quotes", events=False)
        source = SlotSource(sending, "quotes", dtype, transport=transport, **options)
        receiver.wait_ready(1, HANG)
        yield source, receiver


def take(receiver: Receiver, count: int) -> list[bytes]:
    messages: list[bytes] = []
    for _ in range(count):
        message = receiver.recv(HANG)
        assert message is not None, f"{len(messages)} of {count} messages came"
        messages.append(bytes(message))
    return messages


def test_what_is_written_into_a_slot_is_sent() -> None:
    with quotes() as (source, receiver):
        assert len(source) == len(source.slots) == 32 and source.slots.dtype == source.dtype == QUOTE
        assert source.topic == "quotes" and source.slots.flags.writeable and not source.slots["id"].any()
        source.slots[0] = (1, 1.5, b"one")
        source.send()
        source.slots[31]["id"] = 31
        source.send(31)
        source.slots["price"] = np.arange(32)
        source.send(-1)
        source.send(7)
        got = [np.frombuffer(message, QUOTE)[0] for message in take(receiver, 4)]
        assert [each.tolist() for each in got] == [
            (1, 1.5, b"one"),
            (31, 0.0, b""),
            (31, 31.0, b""),
            (0, 7.0, b""),
        ]
        stats = source.stats()
        assert isinstance(stats, LbtruSourceStats) and stats.msgs_sent >= 4


@pytest.mark.parametrize("dtype", ["u1", ("u1", 64), ("<f4", (3, 5)), [("a", "<u2", 3)]])
def test_layouts_of_every_kind(dtype: Any) -> None:
    kind = np.dtype(dtype)
    with quotes(dtype, smart_src_user_buffer_count=4) as (source, receiver):
        wanted = np.random.default_rng(1).integers(0, 100, (4, kind.itemsize), "u1")
        assert source.slots.shape == (4, *kind.shape)
        for at in range(4):
            source.slots[at] = np.frombuffer(wanted[at].tobytes(), kind)[0]
            source.send(at)
        assert take(receiver, 4) == [row.tobytes() for row in wanted]


def test_one_slot_is_enough_for_many_messages() -> None:
    count = scaled(2000)
    with quotes("<u8", smart_src_user_buffer_count=1) as (source, receiver):
        assert len(source) == 1
        got: list[int] = []
        for number in range(count):
            source.slots[0] = number
            source.send()
            if number % 100 == 99:  # no window is overrun, whoever is late
                got += [int.from_bytes(message, "little") for message in take(receiver, 100)]
        got += [int.from_bytes(message, "little") for message in take(receiver, count - len(got))]
        assert got == list(range(count))


def test_over_multicast() -> None:
    with loopback() as sending, loopback() as receiving:
        receiver = Receiver(receiving, "quotes", events=False)
        with SlotSource(sending, "quotes", "<u8", transport="lbtrm") as source:
            for number in range(10**9):  # a source over LBT-RM does not know who listens
                source.slots[0] = number
                source.send()
                if receiver.recv(0.01) is not None:
                    break


# -- what is refused --


@pytest.mark.parametrize("transport", ["tcp", "lbtipc", "lbtsmx"])
def test_other_transports_are_refused(transport: Any) -> None:
    with loopback() as ctx, pytest.raises(NotSupported, match="smart source"):
        SlotSource(ctx, "quotes", QUOTE, transport=transport)


@pytest.mark.parametrize("dtype", ["O", [("a", "O")], "V0", [], "no type"])
def test_other_types_are_refused(dtype: Any) -> None:
    with loopback() as ctx, pytest.raises(InvalidArgument, match="type"):
        SlotSource(ctx, "quotes", dtype, transport="lbtru")
    gc.collect()
    assert um_cffi.object_counts().sources == 0


def test_more_than_a_datagram_holds_is_refused() -> None:
    with loopback() as ctx:
        with pytest.raises(InvalidArgument, match="a buffer has"):
            SlotSource(ctx, "quotes", ("u1", 100000), transport="lbtru")
        with pytest.raises(InvalidArgument, match="a buffer has 50"):
            SlotSource(ctx, "quotes", ("u1", 51), transport="lbtru", smart_src_max_message_length=50)
        with SlotSource(ctx, "quotes", ("u1", 50), transport="lbtru", smart_src_max_message_length=50) as source:
            source.send()
    assert um_cffi.object_counts().sources == 0


def test_there_is_no_other_slot() -> None:
    with quotes() as (source, _):
        for wrong in (32, -33, 1.0, "1", None):
            with pytest.raises(InvalidArgument, match="slot"):
                source.send(wrong)  # type: ignore[arg-type]


def test_options_are_checked() -> None:
    with loopback() as ctx:
        with pytest.raises(InvalidArgument, match="no_option"):
            SlotSource(ctx, "quotes", QUOTE, options={"no_option": 1})
        with pytest.raises(UmError, match="leave no room"):
            SlotSource(ctx, "quotes", QUOTE, transport="lbtru", smart_src_message_property_int_count=1000)


# -- life --


def test_arrays_outlive_source_and_context() -> None:
    with quotes() as (source, receiver):
        slots, element, column = source.slots, source.slots[3], source.slots["price"]
        slots[3] = (3, 3.5, b"three")
        source.send(3)
        take(receiver, 1)
        source.close()
        with pytest.raises(InvalidArgument, match="closed"):
            source.send(3)
        with pytest.raises(InvalidArgument, match="closed"):
            source.stats()
        slots["id"] = 9
    del source, receiver
    gc.collect()
    slots[31] = (31, 31.5, b"after")
    column[:] = 7.0
    element["name"] = b"here"
    assert slots[3].tolist() == (9, 7.0, b"here") and slots[31].tolist() == (31, 7.0, b"after")
    del slots, column
    gc.collect()
    assert element.tolist() == (9, 7.0, b"here")
    counts = um_cffi.object_counts()
    assert (counts.contexts, counts.sources, counts.receivers) == (0, 0, 0)


def test_closing_in_any_order_and_twice() -> None:
    for _ in range(5):
        with loopback() as ctx:
            one, two = (SlotSource(ctx, topic, QUOTE, transport="lbtru") for topic in ("one", "two"))
            one.close()
            one.close()
            two.send(1)
            assert repr(two) == "<um_cffi slot source of two, 32 slots>"
        with pytest.raises(InvalidArgument, match="closed"):
            two.send(1)
    assert um_cffi.object_counts().sources == 0


def test_closing_while_other_threads_send() -> None:
    with loopback() as ctx:
        for _ in range(scaled(20)):
            source = SlotSource(ctx, "busy", QUOTE, transport="lbtru")
            slots, begun, ended = source.slots, threading.Semaphore(0), threading.Semaphore(0)

            def send(source: SlotSource = source, begun: Any = begun, ended: Any = ended) -> None:
                with contextlib.suppress(InvalidArgument):
                    source.send()
                    begun.release()
                    while True:
                        source.slots[1] = (1, 2.0, b"x")
                        source.send(1)
                ended.release()

            threads = [threading.Thread(target=send) for _ in range(3)]
            for thread in threads:
                thread.start()
            assert begun.acquire(timeout=HANG)
            source.close()
            for thread in threads:
                assert ended.acquire(timeout=HANG)
                thread.join(HANG)
            slots[:] = (2, 3.0, b"y")


def test_after_fork_the_child_is_refused_and_its_arrays_are_its_own() -> None:
    with quotes() as (source, receiver):
        source.slots[0] = (1, 1.0, b"parent")
        child = os.fork()
        if child == 0:
            try:
                source.slots[0] = (2, 2.0, b"child")
                with pytest.raises(InvalidArgument, match="fork"):
                    source.send()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        source.send()
        assert np.frombuffer(take(receiver, 1)[0], QUOTE)[0].tolist() == (1, 1.0, b"paren")


def test_memory_lives_as_long_as_arrays_and_no_longer() -> None:
    gc.collect()
    assert lib.um_py_block_count() == 0
    kept: list[Any] = []
    with loopback() as ctx:
        for number in range(10):
            with SlotSource(ctx, "memory", ("u1", 64), transport="lbtru") as source:
                kept.append(source.slots[-1])
                assert lib.um_py_block_count() == number + 1
        with pytest.raises(InvalidArgument, match="a buffer has"):
            SlotSource(ctx, "memory", ("u1", 64), transport="lbtru", smart_src_max_message_length=50)
        open_still = SlotSource(ctx, "memory", ("u1", 64), transport="lbtru")
    del source
    gc.collect()
    assert lib.um_py_block_count() == 11, "those of ten closed sources, and of one that is open"
    assert len(open_still) == 32
    for left in range(10, 0, -1):
        kept.pop()
        assert lib.um_py_block_count() == left
    del open_still
    gc.collect()
    assert lib.um_py_block_count() == 0


def test_requests_of_slots_are_answered() -> None:
    with loopback() as asks, loopback() as responds:
        responder = Responder(responds, "quotes", lambda message: bytes(reversed(message.data)))
        source = SlotSource(asks, "quotes", "u1", transport="lbtru", smart_src_enable_spectrum_channel=1)
        responder.wait_ready(1, HANG)
        source.slots[:] = np.arange(len(source))
        assert source.request(3, HANG).result().data == b"\x03"
        assert source.request(4, HANG, channel=7).result().data == b"\x04"

        async def ask() -> bytes:
            return (await source.request(5, HANG)).data

        assert asyncio.run(ask()) == b"\x05"
        with pytest.raises(InvalidArgument, match="request\\(\\) of the slot source of quotes: slot 32: must be"):
            source.request(32)
        late = source.request(0)
        source.close()
        with pytest.raises(InvalidArgument, match="closed"):
            late.result()


def test_a_send_tells_the_number_of_its_message() -> None:
    with quotes("u1", smart_src_enable_spectrum_channel=1) as (source, receiver):
        told = [source.send_numbered(at) for at in range(3)]
        source.send(3)
        told.append(source.send_numbered(4, channel=9))
        messages = [receiver.recv(HANG) for _ in range(5)]
        got = [message.sequence_number for message in messages if message is not None]
        assert told == got[:3] + got[4:] == [0, 1, 2, 4]
        with pytest.raises(InvalidArgument, match=r"send_numbered\(\) of the slot source of quotes: slot 99"):
            source.send_numbered(99)
