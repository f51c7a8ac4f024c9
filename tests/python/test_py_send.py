"""Sending: every kind of buffer, scatter lists, many at once, without waiting, and awaited."""

from __future__ import annotations

import array
import asyncio
import ctypes
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pairs import HANG, collect, loopback, numbered, pair, payloads

from um_cffi import Batch, Context, InvalidArgument, Receiver, Source, WouldBlock

SLOW_CONSUMER = {"transport_tcp_sender_socket_buffer": 20000, "transport_session_maximum_buffer": 65536}


def received(receiver: Receiver, count: int) -> list[bytes]:
    return [data for batch in collect(receiver, count) for data in payloads(batch)]


def test_p4_any_buffer_can_be_sent() -> None:
    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_uint32), ("b", ctypes.c_uint32))

    kinds: list[Any] = [
        b"bytes",
        b"",
        bytearray(b"bytearray"),
        memoryview(b"memoryview")[2:],
        array.array("I", [1, 2, 3]),
        np.arange(6, dtype="<u2").reshape(2, 3),
        np.float64(1.5),
        Pair(1, 2),
    ]
    with pair() as (source, receiver):
        for data in kinds:
            source.send(data)
        source.flush()
        assert received(receiver, len(kinds)) == [
            bytes(memoryview(data).cast("B")) if data.__class__ is not bytes else data for data in kinds
        ]


def test_what_is_no_contiguous_buffer_is_refused() -> None:
    with loopback() as ctx, Source(ctx, "news") as source:
        for data in ("text", 5, None, np.arange(10)[::2], memoryview(b"abcd")[::2]):
            with pytest.raises(InvalidArgument, match=r"send\(\) of"):
                source.send(data)  # type: ignore[arg-type]


def test_scatter_list_is_one_message() -> None:
    with pair() as (source, receiver):
        source.send([b"head", bytearray(b"-"), np.frombuffer(b"tail", np.uint8)])
        source.send((b"single",), flush=True)
        assert received(receiver, 2) == [b"head-tail", b"single"]
        with pytest.raises(InvalidArgument, match="segments"):
            source.send([])


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=60))
def test_send_many_equals_single_sends(messages: list[bytes]) -> None:
    source, receiver = shared()
    assert source.send_many(iter(messages), flush=True) == len(messages)
    for data in messages:
        source.send(data)
    source.flush()
    assert received(receiver, 2 * len(messages)) == [*messages, *messages]


_shared: list[tuple[Source, Receiver]] = []


def shared() -> tuple[Source, Receiver]:
    """One pair for all examples of a property; closed at the end of the process."""
    if not _shared:
        sending, receiving = loopback(), loopback()
        receiver = Receiver(receiving, "shared")
        source = Source(sending, "shared")
        source.wait_receivers(1, HANG)
        receiver.wait_ready(1, HANG)
        _shared.append((source, receiver))
    return _shared[0]


def test_send_many_of_arrays() -> None:
    rows = numbered(100, 32)
    structured = np.array([(1, 2.5), (2, 3.5)], dtype=[("id", "<u4"), ("price", "<f8")])
    with pair() as (source, receiver):
        for many in (rows, rows[::2], rows[:, :8], rows[::-1], np.asfortranarray(rows), structured, rows[:1], rows[:0]):
            assert source.send_many(many, flush=True) == len(many)
            assert received(receiver, len(many)) == [row.tobytes() for row in many]
        cube = np.arange(24, dtype="<u2").reshape(2, 3, 4)
        source.send_many(cube, flush=True)
        assert received(receiver, 2) == [cube[0].tobytes(), cube[1].tobytes()]
        for wrong in (np.zeros(10, np.uint8), np.array(5), np.array([[object()]])):
            with pytest.raises(InvalidArgument, match="array of"):
                source.send_many(wrong)


def test_send_many_of_a_batch_sends_it_on() -> None:
    with pair() as (source, receiver):
        messages = [b"x" * number for number in range(500)]
        source.send_many(messages, flush=True)
        batches: list[Batch] = collect(receiver, 500)
        for batch in batches:
            source.send_many(batch, flush=True)
        assert received(receiver, 500) == messages


def test_send_many_of_many_parts() -> None:
    count = 70000  # more than are joined at a time
    with pair() as (source, receiver):
        assert source.send_many((b"%d" % number for number in range(count)), flush=True) == count
        assert received(receiver, count) == [b"%d" % number for number in range(count)]


def fill(source: Source, data: bytes) -> int:
    """Send until it would block, and still does after the buffers on the way have filled."""
    sent, blocked = 0, 0
    while blocked < 5:
        try:
            source.send_nowait(data)
        except WouldBlock as error:
            assert isinstance(error, BlockingIOError) and error.errnum == 2
            blocked += 1
            time.sleep(0.05)
        else:
            sent += 1
            blocked = 0
    return sent


def test_send_nowait_raises_would_block_and_loses_nothing() -> None:
    with pair(queue_bytes=4096, source_options=SLOW_CONSUMER) as (source, receiver):
        sent = fill(source, bytes(1000))
        got = 0
        while got < sent:
            got += len(received(receiver, 1))
        assert fill(source, b"again") > 0


def test_send_waits_for_room() -> None:
    with pair(queue_bytes=4096, source_options=SLOW_CONSUMER) as (source, receiver):
        count = fill(source, bytes(1000))

        def send() -> None:
            for _ in range(2000):
                source.send(bytes(1000))

        thread = threading.Thread(target=send)
        thread.start()
        got = 0
        while got < count + 2000:
            got += len(received(receiver, 1))
        thread.join(HANG)
        assert got == count + 2000


def test_asend_waits_without_blocking_the_loop() -> None:
    async def main() -> None:
        with pair(queue_bytes=4096, source_options=SLOW_CONSUMER) as (source, receiver):
            count = fill(source, bytes(1000))
            turns = 0

            async def ticking() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0.001)

            ticker = asyncio.ensure_future(ticking())

            async def sending(number: int) -> None:
                for _ in range(number):
                    await source.asend(bytes(1000))

            async def receiving() -> None:
                while turns <= 20:  # the loop goes on while two tasks wait for room
                    await asyncio.sleep(0.001)
                got = 0
                async for _ in receiver:
                    got += 1
                    if got == count + 600:
                        return

            await asyncio.wait_for(asyncio.gather(sending(300), sending(300), receiving()), HANG)
            ticker.cancel()

    asyncio.run(main())


def test_cancelled_asend_sends_nothing() -> None:
    async def main() -> None:
        with pair(queue_bytes=4096, source_options=SLOW_CONSUMER) as (source, receiver):
            count, tries = 0, 0
            while True:  # buffers of the kernel may grow after all: then it was sent
                count += fill(source, bytes(1000))
                try:
                    await asyncio.wait_for(source.asend(b"try %d" % tries), 0.3)
                except asyncio.TimeoutError:
                    break
                count, tries = count + 1, tries + 1
            got: list[bytes] = []
            while len(got) < count:
                got += received(receiver, 1)
            await source.asend(b"last", flush=True)
            while got[-1] != b"last":
                got += received(receiver, 1)
            assert len(got) == count + 1
            assert [data for data in got if data.startswith(b"try")] == [b"try %d" % number for number in range(tries)]

    asyncio.run(main())


def test_closing_ends_a_send_that_waits() -> None:
    with pair(queue_bytes=4096, source_options=SLOW_CONSUMER) as (source, _):
        errors: list[BaseException] = []

        def send() -> None:
            try:
                while True:
                    source.send_many(numbered(1000))
            except InvalidArgument as error:
                errors.append(error)

        threads = [threading.Thread(target=send) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        source.close()
        for thread in threads:
            thread.join(HANG)
            assert not thread.is_alive()
        assert len(errors) == 3 and all("source of news is closed" in str(error) for error in errors)


def test_threads_may_send_on_one_source() -> None:
    with pair() as (source, receiver):

        def send(mark: bytes) -> None:
            for number in range(2000):
                source.send(b"%s %d" % (mark, number))

        threads = [threading.Thread(target=send, args=(mark,)) for mark in (b"a", b"b", b"c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        source.flush()
        got = received(receiver, 6000)
        for mark in (b"a", b"b", b"c"):
            assert [data for data in got if data.startswith(mark)] == [b"%s %d" % (mark, n) for n in range(2000)]


def test_big_messages_travel_in_fragments() -> None:
    with pair() as (source, receiver):
        data = bytes(range(256)) * 40000
        source.send(memoryview(data), flush=True)
        assert received(receiver, 1) == [data]


def test_sending_on_a_closed_source_says_which() -> None:
    with loopback() as ctx:
        source = Source(ctx, "news")
        source.close()
        source.close()
        for call in (
            lambda: source.send(b"x"),
            lambda: source.send([b"x"]),
            lambda: source.send_nowait(b"x"),
            lambda: source.send_many([b"x"]),
            lambda: asyncio.run(source.asend(b"x")),
            source.flush,
            source.stats,
            source.wait_receivers,
        ):
            with pytest.raises(InvalidArgument, match="source of news is closed"):
                call()
        assert isinstance(ctx, Context)
