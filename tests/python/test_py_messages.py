"""Messages as objects: buffers of their own, safe in any order of going, through callbacks, iterators and async for."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import pickle
import signal
import struct
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from pairs import HANG, collect, numbered, pair, until

import um_cffi
from um_cffi import EventQueue, InvalidOperation, Message, MessageFlags, Receiver, Source
from um_cffi.batch import Stream


def send_and_take(source: Source, receiver: Receiver, count: int) -> list[Message]:
    source.send_many(numbered(count), flush=True)
    return [message for batch in collect(receiver, count) for message in batch.messages()]


def test_message_is_a_read_only_buffer() -> None:
    with pair() as (source, receiver):
        sent = numbered(3)
        message = send_and_take(source, receiver, 3)[2]
        assert bytes(message) == bytes(message.data) == sent[2].tobytes()
        assert len(message) == len(message.data) == 64 and message
        assert struct.unpack_from("<Q", message) == (2,)
        array = np.frombuffer(message, "<u8")
        assert array[0] == 2 and not array.flags.writeable
        assert (message.data.format, message.data.shape, message.data.readonly) == ("B", (64,), True)
        with pytest.raises((BufferError, TypeError)):
            struct.pack_into("<Q", message, 0, 7)
        with pytest.raises(AttributeError):
            message.data = b""  # type: ignore[misc,assignment]
        source.send(message, flush=True)
        (again,) = collect(receiver, 1)[-1].messages()
        assert bytes(again) == sent[2].tobytes()
        assert again.sequence_number == message.sequence_number + 1


def test_message_of_no_bytes_is_true() -> None:
    with pair() as (source, receiver):
        source.send(b"", flush=True)
        (message,) = collect(receiver, 1)[-1].messages()
        assert message and len(message) == 0 and bytes(message.data) == b""
        assert bytes(message.retain()) == b""


def test_message_comes_from_receivers_only() -> None:
    with pytest.raises(TypeError, match="receivers"):
        Message()
    with pytest.raises(TypeError):

        class Mine(Message):
            pass


def test_views_outlive_message_and_retain() -> None:
    with pair() as (source, receiver):
        message = send_and_take(source, receiver, 1)[0]
        sent = numbered(1)[0].tobytes()
        before = message.data
        assert message.retain() is message and message.retain() is message
        after = message.data
        fields = (message.topic, message.source, message.sequence_number, message.type, message.timestamp_ns)
        assert fields[0] == "news" and fields[1].startswith("TCP:")
        gc.collect()  # what earlier tests kept
        batches = um_cffi.object_counts().batches
        assert batches >= 1, "the earlier view has lost its memory"
        del message
        gc.collect()
        assert bytes(before) == bytes(after) == sent
        del before
        gc.collect()
        assert um_cffi.object_counts().batches == batches - 1
    assert bytes(after) == sent


def test_hr_timestamp_is_none_where_the_transport_has_none() -> None:
    with pair() as (source, receiver):
        message = send_and_take(source, receiver, 1)[0]
        assert message.hr_timestamp is None
        assert not message.flags & MessageFlags.HR_TIMESTAMP


def test_callback_may_be_any_callable_and_keep_messages() -> None:
    kept: deque[Message] = deque()
    with pair(kept.append) as (source, _):
        source.send_many(numbered(5000), flush=True)
        until(lambda: len(kept) == 5000)
    gc.collect()
    assert [struct.unpack_from("<Q", message)[0] for message in kept] == list(range(5000))


def test_exception_of_a_callback_has_its_traceback_and_the_next_messages_come() -> None:
    got: list[int] = []

    def on_message(message: Message) -> None:
        got.append(message.sequence_number)
        if len(got) % 2:
            raise LookupError(f"number {len(got)}")

    with pytest.raises(LookupError, match=r"number 1$") as caught, pair(on_message) as (source, receiver):
        source.send_many(numbered(600), flush=True)
        until(lambda: len(got) == 600)
        receiver.close()
    assert caught.traceback[-1].name == "on_message"


def test_signal_is_handled_between_callbacks_that_are_not_python() -> None:
    kept: list[Message] = []
    with EventQueue() as queue, pair(kept.append, None, queue) as (source, _):
        source.send_many(numbered(8000), flush=True)
        until(lambda: queue.size() > 8000)
        came: list[int] = []
        old = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(len(kept)))
        try:
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
            queue.dispatch(0)
        finally:
            signal.signal(signal.SIGUSR1, old)
        assert came and came[0] < 8000
        until(lambda: queue.dispatch(0) >= 0 and len(kept) == 8000)


def test_interrupted_dispatch_loses_nothing_wherever_the_interrupt_comes() -> None:
    """A timer signal raises at ever other places of the dispatch, the binding's own code included."""

    class Now(BaseException):
        pass

    armed: list[bool] = []

    def interrupt(number: int, frame: Any) -> None:
        if armed:
            raise Now

    got: list[int] = []
    count = 60000
    with (
        EventQueue() as queue,
        pair(lambda message: got.append(message.sequence_number), None, queue) as (source, receiver),
    ):
        sender = threading.Thread(target=lambda: source.send_many(numbered(count), flush=True))
        sender.start()
        old = signal.signal(signal.SIGALRM, interrupt)
        interrupts = 0
        try:
            while (
                interrupts <= 10
                or sender.is_alive()
                or receiver.counts().delivered < count  # sent, but still on its way
                or queue.size()
                or receiver._intake.pending
            ):
                try:
                    armed.append(True)
                    signal.setitimer(signal.ITIMER_REAL, 0.0002 + interrupts % 37 * 0.00003)
                    queue.dispatch(0.001)
                    armed.clear()
                except Now:
                    armed.clear()
                    interrupts += 1
        finally:
            armed.clear()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        sender.join()
        assert interrupts > 10
        # A message whose callback is interrupted counts as given: it may be missing in the list, others may not.
        assert got == sorted(set(got)) and got[-1] < count
        assert count - len(got) <= interrupts


def test_awaited_late_or_twice_the_next_message_is_still_the_next() -> None:
    async def main() -> None:
        with pair() as (source, receiver):
            source.send_many(numbered(3), flush=True)
            stream = receiver.__aiter__()
            first = await stream.__anext__()  # the other two wait in the stream now
            second, third, fourth = stream.__anext__(), stream.__anext__(), stream.__anext__()
            assert struct.unpack_from("<Q", first) == (0,)
            assert struct.unpack_from("<Q", await third) == (1,)
            assert struct.unpack_from("<Q", await asyncio.wait_for(second, HANG)) == (2,)
            late = asyncio.ensure_future(wait(fourth))
            await asyncio.sleep(0.02)
            assert not late.done()
            source.send(b"12345678", flush=True)
            assert bytes(await asyncio.wait_for(late, HANG)) == b"12345678"
            source.send_many(numbered(2), flush=True)
            await stream.__anext__()
            forgotten = stream.__anext__()  # never awaited: its message is not lost
            del forgotten
            assert struct.unpack_from("<Q", await stream.__anext__()) == (1,)
            unlucky, waiting = stream.__anext__(), None
            waiting = asyncio.ensure_future(wait(unlucky))
            await asyncio.sleep(0.02)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert isinstance(stream, AsyncIterator)

    async def wait(awaitable: Any) -> Message:
        message: Message = await awaitable
        return message

    asyncio.run(main())


def test_stream_in_a_cycle_is_collected() -> None:
    class Holder:
        stream: object

    with pair() as (_, receiver):

        async def more(holder: Holder) -> Message:
            raise StopAsyncIteration

        holder = Holder()
        holder.stream = Stream(receiver._intake, functools.partial(more, holder))
        gone = weakref.ref(holder)
        del holder
        gc.collect()
        assert gone() is None


def test_iterating_survives_its_batch() -> None:
    with pair() as (source, receiver):
        source.send_many(numbered(100), flush=True)
        batches = collect(receiver, 100)
        iterators = [batch.messages() for batch in batches]
        del batches
        gc.collect()
        numbers = [struct.unpack_from("<Q", message)[0] for each in iterators for message in each]
        assert numbers == list(range(100))


def test_record_by_position() -> None:
    with pair() as (source, receiver):
        source.send_many(numbered(10), flush=True)
        until(lambda: receiver.queue_stats().messages == 10)
        batch = receiver.recv_batch(timeout=0)
        assert batch is not None
        assert struct.unpack_from("<Q", batch[-1]) == (9,)
        assert struct.unpack_from("<Q", batch[len(batch) - 10]) == (0,)
        for wrong in (len(batch), -len(batch) - 1):
            with pytest.raises(IndexError, match=f"record {wrong} of {len(batch)}"):
                batch[wrong]
        with pytest.raises(TypeError):
            batch["x"]  # type: ignore[index]


def test_a_message_is_pickled_and_copied_with_all_it_says() -> None:
    with pair() as (source, receiver):
        message = send_and_take(source, receiver, 3)[1]
        for again in (pickle.loads(pickle.dumps(message)), copy.copy(message), copy.deepcopy(message)):
            assert type(again) is Message
            assert again is not message
            assert bytes(again) == bytes(message.data) == bytes(again.data)
            for name in ("topic", "source", "sequence_number", "flags", "type", "timestamp_ns", "hr_timestamp"):
                assert getattr(again, name) == getattr(message, name), name
            assert repr(again) == repr(message)
            assert bytes(pickle.loads(pickle.dumps(again.retain()))) == bytes(message)


def test_a_pickled_request_cannot_be_answered_but_the_message_itself_can() -> None:
    with pair() as (source, receiver):
        request = source.context.request(source, b"?", timeout=HANG)
        request._send_waiting()
        message = receiver.recv(timeout=HANG)
        assert message is not None and MessageFlags.ANSWERABLE in message.flags
        again = pickle.loads(pickle.dumps(message))
        assert bytes(again) == b"?" and MessageFlags.ANSWERABLE not in again.flags
        with pytest.raises(InvalidOperation, match="only messages"):
            again.respond(b"!")
        message.respond(b"!")
        assert request.result().data == b"!"
