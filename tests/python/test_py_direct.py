"""Receivers with direct=True: callbacks on the thread of the library that delivers."""

from __future__ import annotations

import gc
import struct
import threading
import warnings
from typing import Any

import pytest
from pairs import SLOW, figure, loopback, numbered, pair, run_python, scaled, until

import um_cffi
from um_cffi import (
    Context,
    EventQueue,
    InvalidArgument,
    InvalidOperation,
    Message,
    MessageType,
    Receiver,
    ReceiverEvent,
    Source,
    WildcardReceiver,
)

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
    assert figure(run_python(MANY), "grew") < 8192


LEFT_OPEN = """
import time
from pairs import loopback
from um_cffi import Receiver, Source
context = loopback()
source = Source(context, "x", options={"transport": "lbtsmx"})
receiver = Receiver(context, "x", lambda message: source.send(message), direct=True)
source.wait_receivers(1, None)
receiver.wait_ready(1, None)
source.send(b"round and round")
time.sleep(0.1)
print("end")
"""


def test_a_program_may_end_while_callbacks_run() -> None:
    assert "end" in run_python(LEFT_OPEN)


def test_f2_closing_in_a_direct_callback_is_refused_and_all_goes_on() -> None:
    got: list[bytes] = []
    refused: list[str] = []
    with loopback() as sending, loopback() as receiving:
        source = Source(sending, "news", options=SMX)
        local = Source(receiving, "answers")
        other = Receiver(receiving, "other", lambda message: None)

        def on_message(message: Message) -> None:
            for each in (receiver, local, other, receiving):
                try:
                    each.close()
                except InvalidOperation as error:
                    refused.append(str(error))
                assert not each.closed
            got.append(bytes(message))

        receiver = Receiver(receiving, "news", on_message, direct=True)
        source.wait_receivers(1, 30 * SLOW)
        receiver.wait_ready(1, 30 * SLOW)
        for number in range(10):
            source.send(b"%d" % number)
        until(lambda: len(got) == 10)
        local.send(b"it lives", flush=True)
        receiver.close()
        receiver.close()
        assert receiver.closed
    assert receiving.closed and local.closed and other.closed
    assert got == [b"%d" % number for number in range(10)]
    assert len(refused) == 40 and all("on another thread" in words for words in refused)
    assert refused[0].startswith("the receiver of news cannot be closed inside a callback")


def test_f2_what_is_collected_in_a_direct_callback_is_closed_by_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    closing: list[int] = []
    ours: list[int] = []
    close = Context._close

    def noted(ctx: Context, patience: float | None) -> None:
        closing.append(threading.get_ident())
        close(ctx, patience)

    monkeypatch.setattr(Context, "_close", noted)
    before = um_cffi.object_counts()
    spare = [loopback()]
    Source(spare[0], "spare")
    Source(spare[0], "spare of shared memory", options=SMX)
    Receiver(spare[0], "spare")

    def on_message(_: Message) -> None:
        ours.append(threading.get_ident())
        spare.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    with pair(on_message, source_options=SMX, direct=True) as (source, _):
        source.send(b"x")
        until(lambda: closing)
        assert ours and closing[0] not in (ours[0], threading.get_ident())
    until(lambda: um_cffi.object_counts().sources == before.sources)
    until(lambda: um_cffi.object_counts().contexts == before.contexts)


FORGOTTEN = """
import gc
from pairs import loopback, until
from um_cffi import Receiver, Source
got = []
def on_message(message):
    gc.collect()
    got.append(bytes(message))
def start():
    Receiver(loopback(), "news", on_message, direct=True)
start()
gc.collect()
with loopback() as sending, Source(sending, "news", options={"transport": "lbtsmx"}) as source:
    source.wait_receivers(1, 600)
    for number in range(50):
        source.send(b"%d" % number)
        if number % 10 == 0:
            gc.collect()
    until(lambda: len(got) == 50)
print("all came")
"""


def test_f2_a_direct_receiver_lives_until_it_is_closed() -> None:
    assert "all came" in run_python(FORGOTTEN)


CLOSED_INSIDE = """
from pairs import loopback, until
from um_cffi import Receiver, Source
tries = []
with loopback() as sending, loopback() as receiving:
    def on_message(message):
        try:
            receiver.close()
        except Exception as error:
            tries.append(error)
    receiver = Receiver(receiving, "news", on_message, direct=True)
    source = Source(sending, "news", options={"transport": "lbtsmx"})
    source.wait_receivers(1, 600)
    for number in range(1000):
        source.send(bytes(100))
    until(lambda: len(tries) >= 1000)
print("closed")
"""


def test_f2_a_program_that_closes_in_its_callback_lives() -> None:
    assert "closed" in run_python(CLOSED_INSIDE)


def test_f21_names_of_many_topics_are_told_apart() -> None:
    """Messages of many topics in turn, and not one behind the other: each has its own name and source."""
    got: list[tuple[str, str, bytes]] = []

    def note(message: Message) -> None:
        got.append((message.topic, message.source, bytes(message)))

    with loopback() as sending, loopback() as receiving:
        WildcardReceiver(receiving, "^many/", note, direct=True)
        sources = [Source(sending, f"many/{number}") for number in range(100)]
        for source in sources:
            source.wait_receivers(1, 30 * SLOW)

        def everybody() -> bool:
            for number, source in enumerate(sources):
                source.send(b"%d" % number, flush=True)
            return len({topic for topic, _, _ in got}) == 100

        until(everybody)
    assert all(topic == f"many/{data.decode()}" and source.startswith("TCP:127.0.0.1") for topic, source, data in got)
