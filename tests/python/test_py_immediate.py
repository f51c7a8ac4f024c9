"""Immediate messages of the Python package, and answers to requests that receivers get."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from collections.abc import Iterator
from typing import Literal

import pytest
from fixtures import WITHOUT_MULTICAST
from pairs import HANG, until

import um_cffi
from um_cffi import (
    Context,
    EventQueue,
    ImmediateReceiver,
    InvalidArgument,
    InvalidOperation,
    Message,
    MessageFlags,
    MessageType,
    Receiver,
    ReceiverEvent,
    RequestMessage,
    Source,
    TimedOut,
    WildcardReceiver,
    WouldBlock,
)
from um_cffi.testing import set_loss_rate

LOCAL = {"default_interface": "127.0.0.1/32", "resolver_multicast_interface": "127.0.0.1/32"}
LISTENING = {**LOCAL, "mim_address": "224.10.10.21"}
multicast = pytest.mark.skipif(WITHOUT_MULTICAST, reason="the messages are multicast")


@pytest.fixture
def here() -> Iterator[Context]:
    with Context(LISTENING) as ctx:
        yield ctx


@pytest.fixture
def there() -> Iterator[Context]:
    with Context(LISTENING) as ctx:
        yield ctx


def taken(receiver: ImmediateReceiver | Receiver) -> Message:
    message = receiver.recv(timeout=HANG)
    assert message is not None
    return message


# -- unicast --


def test_a_message_without_a_topic_reaches_the_context_it_is_sent_to(here: Context, there: Context) -> None:
    with ImmediateReceiver(there) as receiver, ImmediateReceiver(here) as other:
        assert there.immediate_target.startswith("TCP:127.0.0.1:")
        here.send_immediate(there.immediate_target, b"first")
        here.send_immediate(there, bytearray(b"second"))
        first, second = taken(receiver), taken(receiver)
        assert (bytes(first), bytes(second)) == (b"first", b"second")
        assert first.topic == ""
        assert first.type == MessageType.DATA
        assert first.flags == MessageFlags.IMMEDIATE | MessageFlags.TOPICLESS
        here.send_immediate(first.source, b"to myself")  # where it came from is where an answer can go
        assert bytes(taken(other)) == b"to myself"
        assert other.recv(timeout=0) is None
        assert receiver.recv(timeout=0) is None


def test_a_message_with_a_topic_goes_to_its_receivers_then_to_patterns_then_to_the_rest(
    here: Context, there: Context
) -> None:
    with (
        Receiver(there, "orders") as orders,
        WildcardReceiver(there, "^ord") as wild,
        ImmediateReceiver(there, other_topics=True) as rest,
    ):
        here.send_immediate(there, b"a", "orders")
        here.send_immediate(there, b"b", "ordinary")
        here.send_immediate(there, b"c", "prices")
        message = taken(orders)
        assert (bytes(message), message.topic) == (b"a", "orders")
        assert message.flags == MessageFlags.IMMEDIATE
        found = wild.recv(timeout=HANG)
        assert found is not None
        assert (bytes(found), found.topic) == (b"b", "ordinary")
        message = taken(rest)
        assert (bytes(message), message.topic) == (b"c", "prices")
        assert [each.recv(timeout=0) for each in (orders, wild, rest)] == [None] * 3


def test_without_other_topics_messages_to_them_are_dropped_and_counted(here: Context, there: Context) -> None:
    with ImmediateReceiver(there) as receiver:
        here.send_immediate(there, b"nobody's", "prices")
        here.send_immediate(there, b"mine")
        assert bytes(taken(receiver)) == b"mine"
        assert there.counts().immediate_dropped == 1


def test_the_source_of_a_message_is_a_target(here: Context, there: Context) -> None:
    with (
        Source(here, "news", retain=1) as source,
        Receiver(there, "news") as receiver,
        ImmediateReceiver(here) as answers,
    ):
        receiver.wait_ready(timeout=HANG)
        source.send(b"hello", flush=True)
        there.send_immediate(f"SOURCE:{taken(receiver).source}", b"seen")
        assert bytes(taken(answers)) == b"seen"


def test_messages_are_given_to_callbacks_in_batches_and_awaited(here: Context, there: Context) -> None:
    got: list[tuple[bytes, str]] = []
    came = threading.Event()

    def on_message(message: Message) -> None:
        got.append((bytes(message), threading.current_thread().name))
        if len(got) == 3:
            came.set()

    with ImmediateReceiver(there, on_message):
        for i in range(3):
            here.send_immediate(there, b"%d" % i)
        assert came.wait(HANG)
        assert [data for data, _ in got] == [b"0", b"1", b"2"]
    queue = EventQueue()
    with queue, ImmediateReceiver(there, on_message, queue=queue):
        here.send_immediate(there, b"queued")
        end = time.monotonic() + HANG
        while len(got) < 4 and time.monotonic() < end:
            queue.dispatch(0.05)
        assert got[3] == (b"queued", threading.current_thread().name)
    came.clear()
    del got[:]
    with ImmediateReceiver(there, on_message, direct=True):
        for i in range(3):
            here.send_immediate(there, b"%d" % i)
        assert came.wait(HANG)
        assert [data for data, _ in got] == [b"0", b"1", b"2"]
    with ImmediateReceiver(there) as receiver:
        here.send_immediate(there, b"batched")
        batch = receiver.recv_batch(timeout=HANG)
        assert batch is not None
        assert [bytes(each) for each in batch] == [b"batched"]

    async def main() -> None:
        async with ImmediateReceiver(there) as receiver:
            await here.asend_immediate(there, b"awaited")
            async for message in receiver:
                assert bytes(message) == b"awaited"
                break

    asyncio.run(asyncio.wait_for(main(), HANG))


def test_a_context_has_one_immediate_receiver_at_a_time(there: Context) -> None:
    with ImmediateReceiver(there) as first:
        with pytest.raises(InvalidOperation, match="immediate receiver already"):
            ImmediateReceiver(there)
        assert repr(first) == "<um_cffi immediate receiver>"
    with ImmediateReceiver(there, other_topics=True):
        pass
    with pytest.raises(InvalidArgument, match="closed"):
        first.recv(timeout=0)
    receiver = ImmediateReceiver(there)
    there.close()
    assert receiver.closed


def test_wrong_arguments_are_refused_with_the_remedy(here: Context) -> None:
    with pytest.raises(InvalidArgument, match="target None"):
        here.send_immediate(None, b"x")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="elsewhere"):
        here.send_immediate("elsewhere", b"x")
    with pytest.raises(InvalidArgument, match="SOURCE"):
        here.send_immediate("SOURCE:TCP:127.0.0.1:1", b"x")
    with pytest.raises(InvalidArgument, match=r"text\.encode\(\)"):
        here.send_immediate(here, "text")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="topic 3 is of type int"):
        here.send_immediate(here, b"x", 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="at most"):
        here.send_immediate(here, bytes(65265))
    with pytest.raises(InvalidArgument, match="at most 7866"):
        here.send_multicast(bytes(7867))
    with pytest.raises(InvalidArgument, match="timeout -1"):
        here.send_immediate(here, b"x", timeout=-1)
    with pytest.raises(InvalidArgument, match="is not a Context"):
        ImmediateReceiver("here")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="timeout -1"):
        here.request_immediate(here, b"x", timeout=-1)
    with Context(LOCAL, request_tcp_bind_request_port=0) as deaf:
        with pytest.raises(InvalidOperation, match="request_tcp_bind_request_port"):
            deaf.immediate_target  # noqa: B018
        with pytest.raises(InvalidOperation, match="request_tcp_bind_request_port"):
            here.send_immediate(deaf, b"x")
    here.close()
    with pytest.raises(InvalidArgument, match="closed"):
        here.send_immediate("TCP:127.0.0.1:1", b"x")


def test_a_target_that_takes_nothing_makes_senders_wait_and_time_out() -> None:
    """A context of the sequential mode that nobody runs reads no connection."""
    with (
        Context({**LOCAL, "operational_mode": "sequential"}) as asleep,
        Context(LOCAL, response_session_maximum_buffer=4096) as ctx,
    ):
        with pytest.raises(TimedOut, match="has taken nothing"):
            for _ in range(100000):
                ctx.send_immediate(asleep, b"x" * 60000, timeout=0.2)

        async def flood() -> None:
            while True:
                await ctx.asend_immediate(asleep, b"x" * 60000)

        async def main() -> None:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(flood(), 0.2)

        asyncio.run(main())


def test_a_direct_callback_that_finds_no_room_is_told_instead_of_waiting(there: Context) -> None:
    raised: list[BaseException] = []
    over = threading.Event()
    with (
        Context({**LOCAL, "operational_mode": "sequential"}) as asleep,
        Context(LOCAL, response_session_maximum_buffer=4096) as ctx,
    ):

        def flood(message: Message) -> None:
            try:
                for _ in range(100000):
                    ctx.send_immediate(asleep, b"x" * 60000)
            except WouldBlock as error:
                raised.append(error)
            over.set()

        with ImmediateReceiver(ctx, flood, direct=True):
            there.send_immediate(ctx, b"go")
            assert over.wait(HANG)
    assert "direct=True" in str(raised[0])


@contextlib.contextmanager
def blocked() -> Iterator[tuple[Context, Context]]:
    """A context that has no room for what it sends to the other one, until that is run."""
    with (
        Context({**LOCAL, "operational_mode": "sequential"}) as asleep,
        Context(LOCAL, response_session_maximum_buffer=4096) as ctx,
    ):
        with pytest.raises(TimedOut, match="has taken nothing for 0 s"):
            for _ in range(100000):
                ctx.send_immediate(asleep, b"x" * 60000, timeout=0)
        yield ctx, asleep


def run_until(asleep: Context, over: threading.Event) -> threading.Thread:
    def run() -> None:
        while not over.is_set():
            asleep.process_events(0.01)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.fixture
def without_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for room and is not told of it waits for longer than a test."""
    monkeypatch.setattr("um_cffi._room.SLICE_MS", int(10 * HANG * 1000))
    monkeypatch.setattr("um_cffi._room._CHECK", 10 * HANG)


def all_end(asleep: Context, threads: list[threading.Thread]) -> bool:
    """Whether the threads end once the context is run."""
    over = threading.Event()
    for thread in threads:
        thread.start()
    running = run_until(asleep, over)
    for thread in threads:
        thread.join(HANG)
    over.set()
    running.join()
    return not any(thread.is_alive() for thread in threads)


@pytest.mark.usefixtures("without_looking")
def test_senders_that_wait_on_threads_are_told_of_room() -> None:
    with blocked() as (ctx, asleep):

        def send() -> None:
            for _ in range(5):
                ctx.send_immediate(asleep, b"x" * 60000)

        assert all_end(asleep, [threading.Thread(target=send, daemon=True) for _ in range(3)])


@pytest.mark.usefixtures("without_looking")
def test_senders_that_wait_in_event_loops_are_told_of_room() -> None:
    async def send(ctx: Context, asleep: Context) -> None:
        await asyncio.gather(*(ctx.asend_immediate(asleep, b"x" * 60000) for _ in range(5)))

    with blocked() as (ctx, asleep):
        threads = [threading.Thread(target=lambda: asyncio.run(send(ctx, asleep)), daemon=True) for _ in range(2)]
        assert all_end(asleep, threads)
        assert ctx._room._waiting == {}


def test_a_request_that_waits_for_room_is_sent_when_there_is_some() -> None:
    with blocked() as (ctx, asleep), ImmediateReceiver(asleep) as receiver:
        answers: list[bytes] = []
        request = ctx.request_immediate(asleep, b"?" * 60000, timeout=HANG)
        thread = threading.Thread(target=lambda: answers.append(request.result().data))
        thread.start()
        over = threading.Event()
        running = run_until(asleep, over)
        try:
            while (message := taken(receiver)).type != MessageType.REQUEST:
                pass
            message.respond(b"yes")
            thread.join(HANG)
        finally:
            over.set()
            running.join()
        assert answers == [b"yes"]


def test_senders_that_wait_end_with_their_context() -> None:
    raised: list[BaseException] = []

    with blocked() as (ctx, asleep):

        def send() -> None:
            try:
                for _ in range(100000):  # the kernel may have room for some
                    ctx.send_immediate(asleep, b"x" * 60000)
            except InvalidArgument as error:
                raised.append(error)

        thread = threading.Thread(target=send)
        thread.start()
        ctx.close()
        thread.join(HANG)
        assert not thread.is_alive() and "closed" in str(raised[0])


# -- multicast --


@multicast
def test_a_multicast_message_reaches_all_that_listen(here: Context, there: Context) -> None:
    with (
        Context(LOCAL) as deaf,
        ImmediateReceiver(deaf) as nothing,
        ImmediateReceiver(here) as first,
        ImmediateReceiver(there) as second,
        Receiver(there, "orders") as orders,
        Context(LISTENING) as sender,
    ):
        sender.send_multicast(b"everybody")
        sender.send_multicast(b"an order", "orders")
        for receiver in (first, second):
            message = taken(receiver)
            assert (bytes(message), message.topic) == (b"everybody", "")
            assert message.source.startswith("LBTRM:127.0.0.1:")
        message = taken(orders)
        assert (bytes(message), message.topic) == (b"an order", "orders")
        assert nothing.recv(timeout=0) is None

        async def main() -> None:
            await sender.asend_multicast(b"awaited", "orders")

        asyncio.run(main())
        assert bytes(taken(orders)) == b"awaited"


@multicast
def test_a_multicast_request_is_answered_by_all_that_receive_the_topic(here: Context, there: Context) -> None:
    def name(message: RequestMessage) -> bytes:
        return b"here" if message.data == b"who?" else b"?"

    with Context(LISTENING) as asks:
        one, two = here.responder("names")(name), Receiver(there, "names", lambda message: message.respond(b"there"))
        with asks.request_multicast(b"who?", "names", timeout=HANG, responses=2) as request:
            assert sorted(each.data for each in request) == [b"here", b"there"]
        one.close()
        two.close()


# -- requests --


def test_an_immediate_request_is_answered_through_respond(here: Context, there: Context) -> None:
    with ImmediateReceiver(there, lambda message: message.respond(b"no topic: " + bytes(message))):
        response = here.request_immediate(there, b"1", timeout=HANG).result()
        assert response.data == b"no topic: 1"
        assert response.source.startswith("TCP:127.0.0.1:")
    with Receiver(there, "sums", lambda message: message.respond(b"on sums: " + bytes(message))):
        assert here.request_immediate(there.immediate_target, b"2", "sums", timeout=HANG).result().data == b"on sums: 2"
    with there.responder("sums")(lambda request: b"from a responder: " + request.data) as responder:
        assert responder.topic == "sums"
        assert here.request_immediate(there, b"3", "sums", timeout=HANG).result().data == b"from a responder: 3"
    with pytest.raises(TimedOut, match=r"request to TCP:127\.0\.0\.1:\d+ on 'sums': no response in 0\.2 s"):
        here.request_immediate(there, b"4", "sums", timeout=0.2).result()


def test_immediate_requests_are_awaited_and_iterated(here: Context, there: Context) -> None:
    async def main() -> None:
        async def twice(message: Message) -> None:
            await message.arespond(b"one")
            await message.arespond(b"two")

        async with ImmediateReceiver(there, twice):
            got = [each.data async for each in here.request_immediate(there, b"?", timeout=HANG, responses=2)]
            assert got == [b"one", b"two"]
            many = await asyncio.gather(*(here.request_immediate(there, b"?", timeout=HANG) for _ in range(100)))
            assert {each.data for each in many} == {b"one"}

    asyncio.run(asyncio.wait_for(main(), 4 * HANG))


@pytest.mark.parametrize("transport", ["tcp", "lbtipc"])
def test_a_plain_receiver_answers_requests_of_a_source(
    here: Context, there: Context, transport: Literal["tcp", "lbtipc"]
) -> None:
    with Source(here, "quotes", transport=transport) as source, Receiver(there, "quotes") as receiver:
        receiver.wait_ready(timeout=HANG)
        asked: list[bytes] = []

        def ask() -> None:
            request = here.request(source, b"price?", timeout=HANG, responses=2)
            asked.extend(each.data for each in request)

        thread = threading.Thread(target=ask)
        thread.start()
        message = taken(receiver)
        assert message.type == MessageType.REQUEST
        assert MessageFlags.ANSWERABLE in message.flags
        assert (bytes(message), len(message)) == (b"price?", 6)
        kept = message.retain()
        assert (bytes(kept), bytes(kept.data)) == (b"price?", b"price?")
        kept.respond(b"x" * 200000, timeout=HANG)  # as long as it takes several pieces
        kept.respond(memoryview(b"42"))
        thread.join(HANG)
        assert asked == [b"x" * 200000, b"42"]
        source.send(b"no request", flush=True)
        with pytest.raises(InvalidOperation, match="only messages of the type REQUEST"):
            taken(receiver).respond(b"what for?")
        with pytest.raises(InvalidArgument, match=r"text\.encode\(\)"):
            kept.respond("text")  # type: ignore[arg-type]
        there.close()
        with pytest.raises(InvalidArgument, match="closed"):
            kept.respond(b"too late")


@pytest.mark.parametrize("on_full", ["pause", "drop_oldest", "conflate"])
def test_requests_and_messages_of_a_batch_keep_their_payloads(here: Context, there: Context, on_full: str) -> None:
    """The way back lies between payloads, where nobody sees it."""
    topics = [f"mixed {i}" for i in range(4)]
    with ImmediateReceiver(there, other_topics=True, on_full=on_full) as receiver:  # type: ignore[arg-type]
        requests = [here.request_immediate(there, b"ask %d" % i, topics[i], timeout=HANG) for i in (0, 2)]
        for i in range(4):
            if i % 2:
                here.send_immediate(there, b"say %d" % i, topics[i])
            else:
                requests[i // 2]._send_waiting()
        records: list[tuple[str, bytes]] = []
        while len(records) < 4:
            batch = receiver.recv_batch(timeout=HANG)
            assert batch is not None
            records += [(each.topic, bytes(each)) for each in batch]
            assert sum(int(each) for each in batch.records["length"]) == sum(len(each) for each in batch)
            for each in batch:
                if each.type == MessageType.REQUEST:
                    each.respond(b"to " + bytes(each))
        assert sorted(records) == sorted((topics[i], b"%s %d" % (b"say" if i % 2 else b"ask", i)) for i in range(4))
        assert [each.result().data for each in requests] == [b"to ask 0", b"to ask 2"]


def test_two_receivers_of_one_context_answer_one_request(here: Context, there: Context) -> None:
    with (
        Receiver(there, "poll", lambda message: message.respond(b"1" * 100000)),
        Receiver(there, "poll", lambda message: message.respond(b"2" * 100000)),
    ):
        request = here.request_immediate(there, b"?", "poll", timeout=HANG, responses=2)
        assert sorted(each.data for each in request) == [b"1" * 100000, b"2" * 100000]


def test_direct_callbacks_answer_and_answers_outlive_nothing(here: Context, there: Context) -> None:
    gc.collect()  # what logs and tracebacks of earlier tests kept
    before = um_cffi.object_counts().responses
    kept: list[Message] = []

    def keep(message: Message) -> None:
        message.respond(b"at once")
        kept.append(message)

    with Receiver(there, "direct", keep, direct=True):
        assert here.request_immediate(there, b"?", "direct", timeout=HANG).result().data == b"at once"
        until(lambda: kept)  # the answer may be here before the callback goes on
        assert bytes(kept[0]) == b"?"
        kept[0].respond(b"again")
        assert um_cffi.object_counts().responses > before
        del kept[:]
    assert um_cffi.object_counts().responses <= before


# -- losses --


@multicast
@pytest.mark.parametrize("direct", [False, True])
def test_multicast_messages_that_are_lost_for_good_are_events(here: Context, direct: bool) -> None:
    losses: list[ReceiverEvent] = []
    options = {**LISTENING, "mim_send_naks": 0, "mim_nak_generation_interval": 20}
    with Context(options) as hearer:
        heard = threading.Event()
        with ImmediateReceiver(
            hearer, lambda _: heard.set(), lambda event: losses.append(event), direct=direct
        ) as receiver:
            here.send_multicast(b"first")
            assert heard.wait(HANG)
            end = time.monotonic() + HANG
            number = 0
            while not losses and time.monotonic() < end:  # until one was lost, and others after it were not
                set_loss_rate(lbtrm=0 if number % 20 == 10 else 100)
                here.send_multicast(b"next")
                number += 1
                time.sleep(0.001)
            set_loss_rate(lbtrm=0)
            assert not receiver.closed
    assert losses and {event.type for event in losses} <= {MessageType.LOSS, MessageType.BURST_LOSS}
    assert losses[0].topic == ""
    assert losses[0].source.startswith("LBTRM:127.0.0.1:")
    assert losses[0].count >= 1
