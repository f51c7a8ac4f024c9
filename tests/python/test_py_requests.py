"""Requests, responses and responders of the Python package."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import pytest
from pairs import HANG

import um_cffi
from um_cffi import (
    Context,
    InvalidArgument,
    NotSupported,
    Request,
    RequestMessage,
    Responder,
    Response,
    Source,
    TimedOut,
    requests,
)
from um_cffi.binding._native import ffi, lib
from um_cffi.requests import Way

LOCAL = {"default_interface": "127.0.0.1/32", "resolver_multicast_interface": "127.0.0.1/32"}

BEFORE = [0, 0]


@pytest.fixture(autouse=True)
def start_counting() -> None:
    """What logs and tracebacks of earlier tests keep does not count, nor what is collected meanwhile."""
    gc.collect()
    BEFORE[:] = [0, 0]
    BEFORE[:] = counts()


def counts() -> tuple[int, int]:
    """Requests and responses that came to be in this test and are there."""
    found = um_cffi.object_counts()
    return found.requests - BEFORE[0], found.responses - BEFORE[1]


def echo(message: RequestMessage) -> bytes:
    return b"echo " + message.data


def test_a_request_is_answered_by_what_a_plain_function_returns() -> None:
    with Context(LOCAL) as asks, Context(LOCAL) as responds:
        source, responder = Source(asks, "quotes"), Responder(responds, "quotes", echo)
        responder.wait_ready(timeout=HANG)
        response = asks.request(source, b"price?", timeout=HANG).result()
        assert isinstance(response, Response)
        assert (response.data, bytes(response), len(response)) == (b"echo price?",) * 2 + (11,)
        assert response.source.startswith("TCP:127.0.0.1:")
        assert response.sequence_number == 0
        assert abs(response.timestamp_ns - time.time_ns()) < 60 * 10**9
        assert counts()[0] == 0
        assert responder.dropped == 0
    assert counts() == (0, 0)


def test_a_decorated_coroutine_answers_awaited_requests() -> None:
    async def main() -> None:
        async with Context(LOCAL) as ctx, Source(ctx, "quotes") as source:

            @ctx.responder("quotes")
            async def answer(message: RequestMessage) -> bytes:
                await asyncio.sleep(0)
                return message.data.upper()

            await asyncio.wait_for(answer.await_ready(), HANG)
            assert isinstance(answer, Responder)
            assert (await ctx.request(source, b"how much", timeout=HANG)).data == b"HOW MUCH"
            many = await asyncio.gather(*(ctx.request(source, b"%d" % i, timeout=HANG) for i in range(500)))
            assert [each.data for each in many] == [b"%d" % i for i in range(500)]

    asyncio.run(main())
    assert counts() == (0, 0)


def test_all_responses_of_several_responders_are_iterated_until_the_deadline() -> None:
    async def main() -> None:
        async with Context(LOCAL) as asks, Context(LOCAL) as responds, Source(asks, "poll") as source:

            def thrice(message: RequestMessage) -> None:
                for i in range(3):
                    message.respond(b"%d" % i, timeout=HANG)

            first, second = Responder(responds, "poll", thrice), Responder(responds, "poll", thrice)
            for each in (first, second):
                await asyncio.wait_for(each.await_ready(), HANG)
            got = [each.data async for each in asks.request(source, b"?", timeout=HANG, responses=6)]
            assert sorted(got) == [b"0", b"0", b"1", b"1", b"2", b"2"]
            began = time.monotonic()
            got = [each.data async for each in asks.request(source, b"?", timeout=1)]  # those that come in time
            assert len(got) <= 6 and set(got) <= {b"0", b"1", b"2"}
            assert time.monotonic() - began >= 0.99

    asyncio.run(main())
    assert counts() == (0, 0)


def test_responses_are_iterated_on_a_thread() -> None:
    with Context(LOCAL) as ctx, Source(ctx, "poll") as source:

        @ctx.responder("poll")
        def twice(message: RequestMessage) -> bytes:
            message.respond(b"one")
            return b"two"

        twice.wait_ready(timeout=HANG)
        with ctx.request(source, b"?", timeout=HANG, responses=2) as request:
            assert [each.data for each in request] == [b"one", b"two"]
            assert list(request) == []
        request = ctx.request(source, b"?", timeout=None)
        for response in request:
            assert response.data == b"one"
            break
        request.close()
        request.close()
        assert counts()[0] == 0


def test_a_request_that_nobody_answers_ends_with_its_time() -> None:
    with Context(LOCAL) as ctx, Source(ctx, "void") as source:
        with pytest.raises(TimedOut, match=r"request on 'void': no response in 0\.2 s"):
            ctx.request(source, b"?", timeout=0.2).result()
        assert list(ctx.request(source, b"?", timeout=0.2)) == []

        async def main() -> None:
            with pytest.raises(TimedOut, match=r"no response in 0\.2 s"):
                await ctx.request(source, b"?", timeout=0.2)
            assert [each async for each in ctx.request(source, b"?", timeout=0.2)] == []
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(ctx.request(source, b"?", timeout=HANG), 0.2)

        asyncio.run(main())
        assert counts() == (0, 0)


def test_each_awaited_request_ends_at_its_own_time() -> None:
    ended: list[float] = []

    async def wait(ctx: Context, source: Source, timeout: float) -> None:
        began = time.monotonic()
        request = ctx.request(source, b"?", timeout=timeout)
        with pytest.raises(TimedOut):
            await request
        assert time.monotonic() - began >= timeout
        ended.append(request._end)

    async def main() -> None:
        async with Context(LOCAL) as ctx, Source(ctx, "nobody") as source:
            never = asyncio.ensure_future(ctx.request(source, b"?", timeout=None)._first())
            late = asyncio.ensure_future(wait(ctx, source, 0.4))
            await asyncio.sleep(0)  # the one that ends later has begun
            await asyncio.gather(wait(ctx, source, 0.1), late)
            assert not never.done()
            never.cancel()

    asyncio.run(main())
    assert len(ended) == 2 and ended == sorted(ended)
    assert counts() == (0, 0)


def test_an_iteration_that_is_busy_at_its_end_ends_when_it_goes_on() -> None:
    async def main() -> None:
        async with Context(LOCAL) as ctx, Source(ctx, "poll") as source:

            @ctx.responder("poll")
            def once(message: RequestMessage) -> bytes:
                return b"one"

            await asyncio.wait_for(once.await_ready(), HANG)
            request = ctx.request(source, b"?", timeout=1)
            async for response in request:
                assert response.data == b"one"
                await asyncio.sleep(max(0.0, request._end - time.monotonic()) + 0.05)

    asyncio.run(asyncio.wait_for(main(), HANG))
    assert counts() == (0, 0)


def test_requests_that_were_answered_leave_nothing_until_their_time_is_over() -> None:
    async def main() -> None:
        async with Context(LOCAL) as ctx, Source(ctx, "quotes") as source:
            answer = ctx.responder("quotes")(echo)
            await asyncio.wait_for(answer.await_ready(), HANG)
            for _ in range(20):
                await asyncio.gather(*(ctx.request(source, b"?", timeout=HANG) for _ in range(50)))
            (known,) = ctx._requests_of()._loops.values()
            assert len(known.deadlines._due) <= 64 + 2 * 50 + 1

    asyncio.run(main())
    assert counts() == (0, 0)


def test_a_message_is_answered_later_and_from_another_thread() -> None:
    with Context(LOCAL) as ctx, Source(ctx, "later") as source:
        kept: list[RequestMessage] = []
        there = threading.Event()

        def keep(message: RequestMessage) -> None:
            kept.append(message)
            there.set()

        responder = Responder(ctx, "later", keep)
        responder.wait_ready(timeout=HANG)

        def work() -> None:
            assert there.wait(HANG)
            kept[0].respond(bytearray(b"done"))

        thread = threading.Thread(target=work)
        thread.start()
        assert ctx.request(source, b"do it", timeout=HANG).result().data == b"done"
        thread.join()
        assert kept[0].data == b"do it"
        assert kept[0].topic == "later"
        assert "later" in repr(kept[0])
        responder.close()
        with pytest.raises(InvalidArgument, match="closed"):
            kept[0].respond(b"too late")
        kept.clear()
    assert counts()[0] == 0


def test_an_exception_in_a_handler_is_kept_and_the_next_request_answered() -> None:
    with Context(LOCAL) as ctx, Source(ctx, "fragile") as source:

        @ctx.responder("fragile")
        def once(message: RequestMessage) -> bytes:
            if message.data == b"break":
                raise ZeroDivisionError("on purpose")
            return b"fine"

        once.wait_ready(timeout=HANG)
        assert list(ctx.request(source, b"break", timeout=0.3)) == []
        assert ctx.request(source, b"work", timeout=HANG).result().data == b"fine"
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            once.close()


def test_waiting_requests_end_when_their_context_is_closed() -> None:
    ctx = Context(LOCAL)
    source = Source(ctx, "closing")
    raised: list[BaseException] = []
    waiting = threading.Event()

    def wait() -> None:
        request = ctx.request(source, b"?", timeout=None)
        waiting.set()
        try:
            request.result()
        except InvalidArgument as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert waiting.wait(HANG)
    end = time.monotonic() + HANG
    while counts()[0] == 0 and time.monotonic() < end:
        time.sleep(0.01)
    ctx.close()
    thread.join(HANG)
    assert not thread.is_alive()
    assert raised
    assert counts()[0] == 0


def test_wrong_arguments_are_refused_with_the_remedy() -> None:
    with Context(LOCAL) as ctx, Context(LOCAL) as other, Source(ctx, "args") as source:
        with pytest.raises(InvalidArgument, match="is not a Source"):
            ctx.request("args", b"?")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="another context"):
            other.request(source, b"?")
        with pytest.raises(InvalidArgument, match="timeout -1: must be None or a number of seconds"):
            ctx.request(source, b"?", timeout=-1)
        with pytest.raises(InvalidArgument, match="responses 0"):
            ctx.request(source, b"?", responses=0)
        with pytest.raises(InvalidArgument, match=r"text\.encode\(\)"):
            ctx.request(source, "text").result()  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="no event loop runs here"):

            async def handler(message: RequestMessage) -> None: ...

            Responder(ctx, "args", handler)
        with pytest.raises(InvalidArgument, match="cannot be called"):
            Responder(ctx, "args", 3)  # type: ignore[arg-type]
        with (
            pytest.raises(NotSupported, match="LBT-SMX carries no requests"),
            Source(ctx, "memory", transport="lbtsmx") as shared,
        ):
            ctx.request(shared, b"?").result()
        request: Request = ctx.request(source, b"?", timeout=0)
        assert list(request) == []
        with pytest.raises(InvalidArgument, match="it is over"):
            request._begin()
    assert counts()[0] == 0


def test_a_slow_requester_makes_answers_wait_and_time_out() -> None:
    """A responder whose connection is full: respond() with a timeout says so."""
    options = {**LOCAL, "operational_mode": "sequential"}
    with Context(options) as asks, Context(LOCAL, response_session_maximum_buffer=4096) as responds:
        source = Source(asks, "flood")
        raised: list[BaseException] = []
        over = threading.Event()

        @responds.responder("flood")
        def flood(message: RequestMessage) -> None:
            try:
                for _ in range(100000):
                    message.respond(b"x" * 60000, timeout=0.2)
            except TimedOut as error:
                raised.append(error)
            over.set()

        end = time.monotonic() + HANG
        while not source.receivers() and time.monotonic() < end:
            asks.process_events(0.05)
        assert source.receivers() == 1
        request = ctx_request = asks.request(source, b"?", timeout=0.1)
        assert list(ctx_request) == []  # sent; nobody runs the context from here on
        assert over.wait(HANG)
        assert "has taken nothing" in str(raised[0])
        request.close()


def test_requests_that_nobody_refers_to_are_closed() -> None:
    with Context(LOCAL) as asks, Context(LOCAL) as responds:
        source, responder = Source(asks, "dropped"), Responder(responds, "dropped", echo)
        responder.wait_ready(timeout=HANG)
        for i in range(50):
            for response in asks.request(source, b"%d" % i, timeout=HANG):
                assert response.data == b"echo %d" % i
                break

        async def dropped() -> None:
            for i in range(50):
                async for response in asks.request(source, b"%d" % i, timeout=HANG):
                    assert response.data == b"echo %d" % i
                    break

        asyncio.run(dropped())
        gc.collect()
        assert counts()[0] == 0


class NoRoom(Way):
    """Nothing can be sent, and while it is waited for room the context is closed."""

    name = "without room"

    def __init__(self, ctx: Context) -> None:
        self.ctx, self.tries = ctx, 0

    def prepare(self, data: object) -> object:
        return data

    def send(self, inbox: object, number: int, payload: object, wait_ms: int) -> object:
        self.tries += 1
        return ffi.NULL

    async def room(self) -> None:
        await asyncio.to_thread(self.ctx.close)


def test_a_request_that_waits_for_room_ends_when_its_context_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def lbm_errnum(self) -> int:
            return requests._WOULD_BLOCK

        def __getattr__(self, name: str) -> object:
            return getattr(lib, name)

    monkeypatch.setattr(requests, "lib", Refusing())
    ctx = Context(LOCAL)
    way = NoRoom(ctx)

    async def main() -> None:
        await Request(ctx._requests_of(), way, b"?", None, None)

    with pytest.raises(InvalidArgument, match="its context was closed while it waited"):
        asyncio.run(main())
    assert way.tries == 1
