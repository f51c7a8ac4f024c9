"""Receivers with direct=True: callbacks on the thread of the library that delivers."""

from __future__ import annotations

import struct
import threading
from typing import Any

import pytest
from pairs import SLOW, loopback, numbered, pair, run_python, scaled, until

from um_cffi import EventQueue, InvalidArgument, Message, MessageType, Receiver, ReceiverEvent, Source, WildcardReceiver

SMX = {"transport": "lbtsmx"}


@pytest.mark.parametrize("transport", ["lbtsmx", "lbtipc", "tcp"])
def test_everything_arrives_in_order_and_may_be_kept(transport: str) -> None:
    count = scaled(5000)
    got: list[Message] = []
    threads: set[int] = set()

    def on_message(message: Message) -> None:
        got.append(message)
        threads.add(threading.get_ident())

    events: list[ReceiverEvent] = []
    options: dict[str, object] = {"transport": transport}
    if transport == "lbtipc":
        options["transport_lbtipc_behavior"] = "receiver_paced"
    with pair(on_message, events.append, source_options=options, direct=True) as (source, receiver):
        rows = numbered(count)
        source.send_many(rows, flush=True)
        until(lambda: len(got) == count)
        name = got[0].source
        source.close()
        until(lambda: len(events) >= 2)
        assert receiver.ready() == 0
    assert [bytes(message.data) for message in got] == [row.tobytes() for row in rows]
    assert [message.sequence_number for message in got] == list(range(count))
    assert {message.topic for message in got} == {"news"} and {message.source for message in got} == {name}
    assert [event.type for event in events] == [MessageType.BEGIN_OF_SESSION, MessageType.END_OF_SESSION]
    assert threading.get_ident() not in threads and len(threads) == 1
    assert got[0].data.readonly


def test_a_callback_answers_over_shared_memory() -> None:
    got: list[int] = []
    over = threading.Event()
    with loopback() as one, loopback() as other:
        there, back = Source(one, "ping", options=SMX), Source(other, "pong", options=SMX)
        slot = back.slot(8)

        def answer(message: Message) -> None:
            slot.acquire()
            struct.pack_into("<Q", slot, 0, struct.unpack_from("<Q", message)[0] + 1)
            slot.complete()

        def answered(message: Message) -> None:
            got.append(struct.unpack_from("<Q", message)[0])
            if len(got) == 1000:
                over.set()
                return
            there.acquire(8)[:] = bytes(memoryview(message))
            there.complete()

        Receiver(other, "ping", answer, direct=True)
        receiver = Receiver(one, "pong", answered, direct=True)
        there.wait_receivers(1, 30 * SLOW)
        back.wait_receivers(1, 30 * SLOW)
        receiver.wait_ready(1, 30 * SLOW)
        there.send(struct.pack("<Q", 0))
        assert over.wait(60 * SLOW)
    assert got == list(range(1, 1001))


def test_exceptions_are_raised_by_close() -> None:
    def fail(message: Message) -> None:
        raise LookupError(bytes(message.data).decode())

    with loopback() as sending, loopback() as receiving:
        receiver = Receiver(receiving, "news", fail, direct=True)
        source = Source(sending, "news", options=SMX)
        source.wait_receivers(1, 30 * SLOW)
        receiver.wait_ready(1, 30 * SLOW)
        source.send(b"the first")
        source.send(b"the second")
        until(lambda: receiver.counts().delivered >= 2)
        with pytest.raises(LookupError, match="the first"):
            receiver.close()


def test_patterns() -> None:
    got: list[tuple[str, bytes]] = []

    def note(message: Message) -> None:
        got.append((message.topic, bytes(message.data)))

    with loopback() as sending, loopback() as receiving:
        WildcardReceiver(receiving, "^news", note, direct=True)
        sources = [Source(sending, f"news/{i}", options=SMX) for i in range(3)]
        for source in sources:
            source.wait_receivers(1, 30 * SLOW)

        def everybody() -> bool:
            for i, source in enumerate(sources):
                source.send(b"%d" % i)
            return len(set(got)) == 3

        until(everybody)
    assert set(got) == {(f"news/{i}", b"%d" % i) for i in range(3)}


def test_what_does_not_go_together() -> None:
    def ignore(_: Any) -> None: ...

    with loopback() as context, EventQueue() as queue:
        with pytest.raises(InvalidArgument, match="on_message"):
            Receiver(context, "news", direct=True)
        with pytest.raises(InvalidArgument, match="no queue"):
            Receiver(context, "news", ignore, queue=queue, direct=True)


MANY = """
import resource
from pairs import pair, until
def round(count):
    for i in range(count):
        got = []
        with pair(got.append, source_options={"transport": "lbtsmx"}, direct=True) as (source, receiver):
            source.send(b"x")
            until(lambda: got)
round(5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
round(30)
print("grew", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_contexts_come_and_go() -> None:
    assert int(run_python(MANY, seconds=120).split("grew")[1]) < 8192


LEFT_OPEN = """
import time
from pairs import loopback
from um_cffi import Receiver, Source
context = loopback()
source = Source(context, "x", options={"transport": "lbtsmx"})
receiver = Receiver(context, "x", lambda message: source.send(message), direct=True)
source.wait_receivers(1)
receiver.wait_ready(1)
source.send(b"round and round")
time.sleep(0.1)
print("end")
"""


def test_a_program_may_end_while_callbacks_run() -> None:
    assert "end" in run_python(LEFT_OPEN)
