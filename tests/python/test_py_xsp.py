"""XSPs from Python: who receives what, closing in any order, the sequential kind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from pairs import HANG

from um_cffi import XSP, Context, InvalidArgument, InvalidOperation, Message, Receiver, Source


def until(met: Callable[[], bool], seconds: float = HANG) -> bool:
    end = time.monotonic() + seconds
    while not met() and time.monotonic() < end:
        time.sleep(0.005)
    return met()


class Seen:
    def __init__(self) -> None:
        self.threads: dict[str, int] = {}
        self.texts: list[bytes] = []

    def __call__(self, message: Message) -> None:
        self.threads[message.topic] = threading.get_native_id()
        self.texts.append(bytes(message.data))


def test_sessions_go_to_the_xsps_in_turn() -> None:
    seen = Seen()
    with Context() as sending, Context() as ctx, XSP(ctx) as one, XSP(ctx) as two:
        assert one.context is ctx and two.sources == "*"
        sources = [Source(sending, topic) for topic in ("a", "b")]
        with Receiver(ctx, "a", seen, direct=True) as a, Receiver(ctx, "b", seen, direct=True) as b:
            a.wait_ready(1, HANG)
            b.wait_ready(1, HANG)
            for source in sources:
                source.send(b"x", flush=True)
            assert until(lambda: len(seen.threads) == 2)
    assert len(set(seen.threads.values())) == 2


def test_an_xsp_takes_only_the_sessions_that_its_pattern_fits() -> None:
    seen = Seen()
    with Context() as sending, Context() as ctx, XSP(ctx, "LBTRM:*") as multicast:
        tcp, rm = Source(sending, "tcp"), Source(sending, "rm", transport="lbtrm")
        with (
            Receiver(ctx, "tcp", seen, direct=True) as a,
            Receiver(ctx, "rm", seen, direct=True) as b,
        ):
            a.wait_ready(1, HANG)
            rm.send(b"y", flush=True)
            b.wait_ready(1, HANG)
            tcp.send(b"x", flush=True)
            rm.send(b"y", flush=True)
            assert until(lambda: len(seen.threads) == 2)
            with pytest.raises(InvalidOperation):
                multicast.close()  # it has a session
            assert not multicast.closed
    assert seen.threads["tcp"] != seen.threads["rm"]


def test_batches_and_ordinary_callbacks_come_through_an_xsp() -> None:
    seen = Seen()
    with Context() as sending, Context() as ctx, XSP(ctx):
        source = Source(sending, "t")
        with Receiver(ctx, "t", seen) as called, Receiver(ctx, "t") as batched:
            called.wait_ready(1, HANG)
            batched.wait_ready(1, HANG)
            source.send_many([b"1", b"2", b"3"])
            source.flush()
            got: list[bytes] = []

            def three() -> bool:
                batch = batched.recv_batch(timeout=0.1)
                if batch is not None:
                    got.extend(bytes(message.data) for message in batch.messages() if bytes(message.data))
                return len(got) >= 3

            assert until(three)
            assert until(lambda: len(seen.texts) >= 3)
            assert called.counts().delivered == 3
    assert got == seen.texts == [b"1", b"2", b"3"]


def test_closing_the_context_closes_its_xsps_after_its_receivers() -> None:
    seen = Seen()
    with Context() as sending:
        source = Source(sending, "t")
        ctx = Context()
        xsp = XSP(ctx)
        receiver = Receiver(ctx, "t", seen)
        receiver.wait_ready(1, HANG)
        late = XSP(ctx)
        ctx.close()
        assert xsp.closed and late.closed and receiver.closed
        source.close()
    with pytest.raises(InvalidArgument):
        XSP(ctx)


def test_a_sequential_xsp_receives_when_the_application_lets_it() -> None:
    seen = Seen()
    with Context() as sending, Context() as ctx, XSP(ctx, sequential=True) as xsp:
        source = Source(sending, "t")
        with Receiver(ctx, "t", seen, direct=True) as receiver:

            def ready() -> bool:
                xsp.process_events(0.01)
                return receiver.counts().sources == 1

            assert until(ready)

            def sent() -> bool:
                source.send(b"x", flush=True)
                xsp.process_events(0.01)
                return len(seen.texts) > 0

            assert until(sent)
            assert seen.threads["t"] == threading.get_native_id()
            xsp.unblock()
            xsp.process_events(30)
    with Context() as ctx, XSP(ctx) as embedded:
        with pytest.raises(InvalidArgument):
            embedded.process_events()
        with pytest.raises(InvalidArgument):
            embedded.unblock()
