"""What must not hurt: exceptions in callbacks, interpreter exit, fork, signals, garbage collection in any order."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import os
import pickle
import random
import re
import signal
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from figures import record
from pairs import HANG, SOAK, figure, loopback, numbered, pair, run_python, scaled, until

import um_cffi
from um_cffi import EventQueue, InvalidArgument, InvalidOperation, Message, Receiver, Source, WildcardReceiver

LIVE = """
import sys, threading
import numpy as np
from um_cffi import Context, EventQueue, Receiver, Source
import um_cffi.binding.lifetime as lifetime
lifetime.EXIT_PATIENCE = 60.0  # a callback that is only late is not to be abandoned, which is told
sending, receiving = Context(default_interface="127.0.0.1"), Context(default_interface="127.0.0.1")
mode = sys.argv[1]
count = 0
def on_message(message):
    global count
    count += len(message.data)
enough = threading.Event()
def busy():
    rows = np.zeros((1000, 64), np.uint8)
    while True:
        source.send_many(rows)
        if count > 100000 or mode == "batch":
            enough.set()
receiver = Receiver(receiving, "news", None if mode == "batch" else on_message)
source = Source(sending, "news", lambda event: None)
source.wait_receivers(1, 600)
threading.Thread(target=busy, daemon=True).start()
if mode == "batch":
    threading.Thread(target=lambda: [None for _ in receiver.batches()], daemon=True).start()
assert enough.wait(600)
if mode == "error":
    raise SystemExit(0)
"""


def test_p5_exit_with_live_contexts_and_traffic_is_clean() -> None:
    """Exit code 0 and nothing printed, a hundred times in the long run."""
    for number in range(scaled(18, 100)):
        mode = ("callback", "batch", "error")[number % 3]
        output = run_python(LIVE, mode)
        complaints = [line for line in output.splitlines() if "rmem_max" not in line and "still queued" not in line]
        assert not complaints, output
    if SOAK:
        record("100 exits of an interpreter with live contexts and traffic", "exit code 0 each time, nothing printed")


STUCK = """
import threading, sys
from pairs import HANG, loopback
from um_cffi import Receiver, Source
count, direct = int(sys.argv[1]), sys.argv[2] == "direct"
inside = threading.Semaphore(0)
def stuck(message):
    inside.release()
    threading.Event().wait()
sending, receiving = loopback(), [loopback() for _ in range(count)]
receivers = [Receiver(each, "news", stuck, direct=direct) for each in receiving]
source = Source(sending, "news")
source.wait_receivers(count, HANG)
for each in receivers:
    each.wait_ready(1, HANG)
source.send(b"x", flush=True)
for each in receivers:
    assert inside.acquire(timeout=HANG)
import um_cffi.binding.lifetime as lifetime
import um_cffi.dispatch as dispatch
given, bounded = [], lifetime.bounded
def noted(patience):
    given.append(bounded(patience))
    return given[-1]
lifetime.bounded = dispatch.bounded = noted
lifetime.at_exit(lambda: print(f"waits {len(given)}, together {sum(given):.2f} of {lifetime.EXIT_PATIENCE}"))
"""


@pytest.mark.parametrize("way", ["queue", "direct"])
def test_p5_exit_while_callbacks_are_stuck(way: str) -> None:
    """One time of 1.5 s for all of them, not three of 2 s for each; with direct callbacks there was no end at all.

    Each wait lasts as long as it was given, because no callback returns, and the next is given what is left.
    """
    output = run_python(STUCK, "4", way)
    assert "abandoned" in output
    found = re.search(r"^waits (\d+), together ([0-9.]+) of ([0-9.]+)$", output, re.MULTILINE)
    assert found and float(found.group(2)) <= float(found.group(3)) == 1.5, output
    assert way == "direct" or int(found.group(1)) >= 4  # one for each receiver


def test_exception_in_a_callback_is_logged_and_raised_by_close(caplog: pytest.LogCaptureFixture) -> None:
    got: list[bytes] = []

    def on_message(message: Message) -> None:
        got.append(bytes(message.data))
        raise LookupError(f"number {len(got)}")

    with loopback() as sending, loopback() as receiving:
        receiver = Receiver(receiving, "news", on_message)
        source = Source(sending, "news")
        source.wait_receivers(1, HANG)
        source.send(b"1")
        source.send(b"2", flush=True)
        until(lambda: len(got) == 2)
        until(lambda: "number 2" in caplog.text)
        with pytest.raises(LookupError, match="number 1"):
            receiver.raise_pending()
        receiver.raise_pending()
        source.send(b"3", flush=True)
        until(lambda: len(got) == 3)
        with pytest.raises(LookupError, match="number 3"):
            receiver.close()
    assert "callback of receiver of news raised" in caplog.text


def test_exception_in_a_callback_is_raised_by_the_context() -> None:
    done = threading.Event()

    def on_message(message: Message) -> None:
        done.set()
        raise LookupError("late")

    with pytest.raises(LookupError, match="late"), loopback() as sending, loopback() as receiving:
        Receiver(receiving, "news", on_message)
        source = Source(sending, "news")
        source.wait_receivers(1, HANG)
        source.send(b"1", flush=True)
        done.wait(HANG)


def test_exception_of_the_body_is_not_hidden_by_one_of_a_callback() -> None:
    done = threading.Event()

    def on_message(message: Message) -> None:
        done.set()
        raise LookupError("callback")

    with pytest.raises(ZeroDivisionError), pair(on_message) as (source, _):
        source.send(b"1", flush=True)
        done.wait(HANG)
        raise ZeroDivisionError


def test_fork_leaves_the_child_without_inherited_objects() -> None:
    program = """
import os, sys
from um_cffi import Context, Receiver, Source, InvalidArgument
ctx = Context(default_interface="127.0.0.1")
source = Source(ctx, "news", lambda event: None)
receiver = Receiver(ctx, "news", lambda message: None)
other = Receiver(ctx, "news")
child = os.fork()
if child == 0:
    for call in (ctx.stats, lambda: source.send(b"x"), lambda: source.send_many([b"x"]), lambda: receiver.counts(),
                 lambda: other.recv_batch(timeout=1), lambda: Source(ctx, "more"), lambda: ctx.call_later(1, print)):
        try:
            call()
        except InvalidArgument as error:
            assert "before fork()" in str(error), error
        else:
            os._exit(3)
    source.close(); receiver.close(); ctx.close()
    del source, receiver, other, ctx
    with Context(default_interface="127.0.0.1") as own:
        Source(own, "own").send(b"x")
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
source.wait_receivers(1, 600)
source.send(b"parent goes on", flush=True)
"""
    run_python(program)


def test_a_child_of_fork_gives_its_own_batches_back_and_leaves_those_of_its_parent() -> None:
    program = """
import gc, os
from pairs import collect, numbered, pair
from um_cffi import object_counts
def receive(keep):
    with pair() as (source, receiver):
        before = object_counts().batches
        source.send_many(numbered(1000), flush=True)
        got = collect(receiver, 1000, 100)
        assert object_counts().batches > before
        if not keep:
            del got
            gc.collect()
            assert object_counts().batches == before, (before, object_counts())
            return None
        return got
inherited = receive(True)
child = os.fork()
if child == 0:
    receive(False)
    before = object_counts().batches
    del inherited
    gc.collect()
    assert object_counts().batches == before
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
del inherited
gc.collect()
assert object_counts().batches == 0
"""
    run_python(program)


def test_interrupt_ends_every_wait() -> None:
    program = """
import os, signal, sys, threading
import pyarrow
from um_cffi import XSP, Context, EventQueue, Receiver, Source
# What a shell runs in the background inherits SIGINT ignored, and Python leaves it so: then there is nothing to raise.
signal.signal(signal.SIGINT, signal.default_int_handler)
with Context(default_interface="127.0.0.1") as ctx, EventQueue() as queue:
    slow = dict(transport_session_maximum_buffer=65536, transport_tcp_sender_socket_buffer=20000)
    receiver, source = Receiver(ctx, "news", queue_bytes=4096), Source(ctx, "news", options=slow)
    source.wait_receivers(1, None)
    def full():
        while True:
            source.send(bytes(1000))
    def full_many():
        while True:
            source.send_many([bytes(1000)] * 100)
    empty = Receiver(ctx, "other")
    lonely = Source(ctx, "lonely")
    driven, xsp = Context(default_interface="127.0.0.1", operational_mode="sequential"), XSP(ctx, sequential=True)
    read_all = pyarrow.RecordBatchReader.from_stream(empty.arrow_reader()).read_all
    for wait in (empty.recv, lambda: list(empty), lambda: empty.recv_batch(), read_all,
                 lambda: lonely.wait_receivers(1, None), lambda: empty.wait_ready(5, None),
                 lambda: ctx.request(lonely, b"x", None).result(), lambda: driven.process_events(None),
                 lambda: xsp.process_events(None), queue.dispatch, full, full_many):
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            try:
                wait()
            except OSError as error:  # of the library between: the interrupt comes as soon as Python goes on
                assert "KeyboardInterrupt" in str(error), error
                threading.Event().wait()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        timer.join()
"""
    assert run_python(program, seconds=360).count("interrupted") == 12  # twelve waits


def test_garbage_collection_in_any_order(request: pytest.FixtureRequest) -> None:
    gc.collect()
    before = um_cffi.object_counts()
    seed = random.Random(1)
    gc.freeze()  # what is there already need not be searched again and again
    request.addfinalizer(gc.unfreeze)
    for _ in range(scaled(30)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            sending, receiving = loopback(), loopback()
            source = Source(sending, "news")
            receiver = Receiver(receiving, "news")
            source.wait_receivers(1, HANG)
            receiver.wait_ready(1, HANG)
            source.send_many(numbered(10), flush=True)
            batch = receiver.recv_batch(timeout=HANG)
            assert batch is not None
            things: list[Any] = [sending, receiving, source, receiver, batch, batch.data, batch.records, *batch]
            del sending, receiving, source, receiver, batch
            seed.shuffle(things)
            while things:
                things.pop()
                if seed.random() < 0.3:
                    gc.collect()
            gc.collect()
    # Tracebacks of earlier tests may have kept some of their batches. What was collected on another thread goes later.
    until(lambda: um_cffi.object_counts().batches <= before.batches)
    until(lambda: but_for_batches() == dataclasses.replace(before, batches=0))


def but_for_batches() -> um_cffi.stats.ObjectCounts:
    return dataclasses.replace(um_cffi.object_counts(), batches=0)


def test_forgotten_objects_are_reported() -> None:
    ctx = loopback()
    with pytest.warns(ResourceWarning, match="context was not closed"):
        del ctx
        gc.collect()


def test_context_with_callbacks_lives_until_closed() -> None:
    got: list[bytes] = []

    def start() -> None:
        Receiver(loopback(), "news", lambda message: got.append(bytes(message.data)))

    start()
    gc.collect()
    with loopback() as sending, Source(sending, "news") as source:
        source.wait_receivers(1, HANG)
        source.send(b"x", flush=True)
        until(lambda: got == [b"x"])
    (ctx,) = [each for each in um_cffi.context._with_callbacks if each._children]
    ctx.close()


@pytest.mark.parametrize("kind", ["receiver", "source"])
def test_f2_an_object_that_the_library_refuses_to_delete_stays_open(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    deleting, go_on = threading.Event(), threading.Event()
    errors: list[BaseException] = []
    before = um_cffi.object_counts()
    with loopback() as ctx:
        victim: Any = Source(ctx, "news") if kind == "source" else Receiver(ctx, "news", lambda message: None)
        delete = type(victim)._delete

        def refuse_first(self: Any) -> None:
            if not deleting.is_set():
                deleting.set()
                assert go_on.wait(HANG)
                raise InvalidOperation("contexts wait for each other")
            delete(self)

        def close() -> None:
            try:
                victim.close()
            except InvalidOperation as error:
                errors.append(error)

        monkeypatch.setattr(type(victim), "_delete", refuse_first)
        first, second = threading.Thread(target=close), threading.Thread(target=close)
        first.start()
        assert deleting.wait(HANG)
        second.start()  # waits for the first, and then closes
        go_on.set()
        first.join(HANG)
        second.join(HANG)
        assert len(errors) == 1 and victim.closed
        assert getattr(um_cffi.object_counts(), f"{kind}s") == getattr(before, f"{kind}s")


def test_f2_a_context_that_the_library_refuses_to_delete_stays_open() -> None:
    before = um_cffi.object_counts()
    ctx = loopback()
    source = Source(ctx, "news", lambda event: None)
    children, ctx._children = ctx._children, {}  # the library knows of the source, and refuses
    with pytest.raises(InvalidOperation):
        ctx.close()
    assert not ctx.closed
    ctx._children = children
    source.send(b"it lives", flush=True)
    ctx.close()
    assert ctx.closed and source.closed
    assert um_cffi.object_counts().contexts == before.contexts


def test_f2_objects_with_views_in_use_are_closed_once_they_are_gone() -> None:
    def start() -> memoryview:
        source = Source(loopback(), "news", options={"transport": "lbtsmx"})
        return memoryview(source.acquire(8)).cast("Q")

    gc.collect()
    before = um_cffi.object_counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        view = start()
        gc.collect()
    view[0] = 7
    assert um_cffi.object_counts().sources == before.sources + 1
    view.release()
    until(lambda: um_cffi.object_counts().contexts == before.contexts)


@pytest.mark.parametrize("call", ["unblock", "call_later"])
def test_f3_an_event_queue_is_closed_while_another_thread_calls_it(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other thread has found the queue open, and wakes it when it is closed and its descriptor is another's."""
    found, go_on = threading.Event(), threading.Event()
    queue = EventQueue()
    wake = queue._wake

    def late_wake() -> None:
        if threading.current_thread() is thread:
            found.set()
            assert go_on.wait(HANG)
        wake()

    monkeypatch.setattr(queue, "_wake", late_wake)
    target = queue.unblock if call == "unblock" else lambda: queue.call_later(0, print)
    thread = threading.Thread(target=target)
    thread.start()
    assert found.wait(HANG)
    queue.close()
    taken = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(8)]  # whoever gets the number
    go_on.set()
    thread.join(HANG)
    for descriptor in taken:
        with pytest.raises(BlockingIOError):
            os.eventfd_read(descriptor)
        os.close(descriptor)


def test_f3_an_event_queue_is_closed_while_many_threads_use_it() -> None:
    for _ in range(scaled(30)):
        queue = EventQueue()
        begun = threading.Barrier(4)

        def use(queue: EventQueue = queue, begun: threading.Barrier = begun) -> None:
            begun.wait()
            try:
                while True:
                    queue.unblock()
                    queue.call_later(0, int)
                    queue.dispatch(0)
            except InvalidArgument:
                return

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        begun.wait()
        queue.close()
        for thread in threads:
            thread.join(HANG)
            assert not thread.is_alive()


def test_closing_from_many_threads_at_once() -> None:
    for _ in range(20):
        with loopback() as sending:
            ctx = loopback()
            receiver = Receiver(ctx, "news", lambda message: None)
            source = Source(sending, "news")
            source.wait_receivers(1, HANG)
            stop = threading.Event()

            def send(source: Source = source, stop: threading.Event = stop) -> None:
                while not stop.is_set():
                    try:
                        source.send_many(numbered(100))
                    except InvalidArgument:
                        return

            threads = [threading.Thread(target=send)]
            threads += [threading.Thread(target=each.close) for each in (receiver, ctx, source, ctx, receiver)]
            for thread in threads:
                thread.start()
            for thread in threads[1:]:
                thread.join(HANG)
                assert not thread.is_alive()
            stop.set()
            threads[0].join(HANG)


def close_from_two_sides(victim: str) -> list[BaseException]:
    """What a callback gets that closes the context while another thread closes something in it."""
    failures: list[BaseException] = []
    inside, done = threading.Event(), threading.Event()

    def on_message(message: Message) -> None:
        inside.set()
        while not closing.closed:
            pass  # no sleep: it is closed before the library's object is gone
        try:
            ctx.close()
        except Exception as error:
            failures.append(error)
        done.set()

    ctx = loopback()
    make = WildcardReceiver if victim == "pattern" else Receiver
    receiver = make(ctx, "news", on_message)
    source = Source(ctx, "news")
    closing = source if victim == "source" else receiver
    source.wait_receivers(1, HANG)
    source.send(b"x", flush=True)
    assert inside.wait(HANG)
    closing.close()
    assert done.wait(HANG)
    assert ctx.closed
    receiver.close()
    source.close()
    return failures


@pytest.mark.parametrize("victim", ["receiver", "source", "pattern"])
def test_a_callback_closes_the_context_while_another_thread_closes_what_is_in_it(victim: str) -> None:
    before = but_for_batches()
    for _ in range(scaled(60)):
        assert close_from_two_sides(victim) == []
    until(lambda: but_for_batches() == before)  # the callback that closed the last one may still be on its way out


def test_closing_twice_waits_for_the_first() -> None:
    """After any close() no callback runs, also when another thread began to close before."""
    inside, go, after = threading.Event(), threading.Event(), threading.Event()

    def on_message(message: Message) -> None:
        inside.set()
        go.wait(HANG)
        after.set()

    with pair(on_message) as (source, receiver):
        source.send(b"x", flush=True)
        assert inside.wait(HANG)
        first = threading.Thread(target=receiver.close)
        first.start()
        until(lambda: receiver.closed)
        order: list[bool] = []

        def close_again() -> None:
            receiver.close()
            order.append(after.is_set())

        second = threading.Thread(target=close_again)
        second.start()
        second.join(0.2)
        assert second.is_alive()
        go.set()
        for thread in (first, second):
            thread.join(HANG)
            assert not thread.is_alive()
        assert order == [True]


def test_async_close_lets_the_event_loop_go_on() -> None:
    """A callback that waits for the event loop does not keep it from closing."""
    got: list[bytes] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        started = asyncio.Event()

        async def handle(data: bytes) -> None:
            started.set()
            await asyncio.sleep(0.05)
            got.append(data)

        def on_message(message: Message) -> None:
            asyncio.run_coroutine_threadsafe(handle(bytes(message.data)), loop).result(HANG)

        async with loopback() as sending, loopback() as receiving:
            receiver = Receiver(receiving, "news", on_message)
            async with Source(sending, "news") as source:
                await source.await_receivers(1, HANG)
                await source.asend(b"x", flush=True)
                await asyncio.wait_for(started.wait(), HANG)
                await asyncio.wait_for(receiver.aclose(), HANG)

    asyncio.run(main())
    assert got == [b"x"]


def test_pickling_and_copying_are_refused_with_the_reason() -> None:
    with EventQueue() as queue, pair() as (source, receiver):
        for each in (source, receiver, source.context, queue):
            for way in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match="cannot be pickled or copied: it belongs to this process"):
                    way(each)
    error = pickle.loads(pickle.dumps(InvalidArgument("what is wrong")))
    assert isinstance(error, InvalidArgument) and str(error) == "what is wrong" and error.errnum == 1


FLAT = """
import asyncio, gc, os, sys, threading, time, tracemalloc
import numpy as np
from pairs import pair, until
import um_cffi
way, count = sys.argv[1], int(sys.argv[2])
mark = count // 10
counts = um_cffi.object_counts  # read now, with what it needs
def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
class Watch:
    got, before, after = 0, 0, 0
    def add(self, number):
        old, self.got = self.got, self.got + number
        if old < mark <= self.got:
            self.traced = tracemalloc.get_traced_memory()[0]
            self.before = resident()
        return self.got >= count
watch, over = Watch(), threading.Event()
def fill(number):
    if number < 20:
        time.sleep(0.02)  # let the buffers grow to what a full queue needs
def on_message(message):
    fill(watch.got)
    if len(message.data) == 64 and watch.add(1):
        over.set()
def feed(source):
    rows = np.zeros((10000, 64), np.uint8)
    try:
        while not over.is_set():
            source.send_many(rows)
    except um_cffi.UmError:
        pass
async def read(receiver):
    async for message in receiver:
        if watch.add(len(message.data) == 64):
            return
tracemalloc.start()
with pair(on_message if way == "callbacks" else None, queue_bytes=4 << 20) as (source, receiver):
    thread = threading.Thread(target=feed, args=(source,))
    thread.start()
    if way == "callbacks":
        over.wait()
    elif way == "async":
        asyncio.run(read(receiver))
    else:
        for number, batch in enumerate(receiver.batches()):
            fill(number)
            if watch.add(int((batch.records["length"] == 64).sum())):
                break
        del batch
    after = resident()
    until(lambda: tracemalloc.get_traced_memory()[0] - watch.traced < 100_000)  # but for what is being received
    traced = tracemalloc.get_traced_memory()[0]
    until(lambda: counts().messages == 0 and counts().batches <= 2)
    over.set()
    source.close()
    thread.join()
gc.collect()
left = counts()
assert (left.contexts, left.sources, left.receivers, left.collectors) == (0, 0, 0, 0), left
print("grown", after - watch.before, "traced", traced - watch.traced, flush=True)
"""


@pytest.mark.parametrize(("way", "share"), [("callbacks", 0.3), ("async", 0.2), ("batches", 0.5)])
def test_memory_stays_flat(way: str, share: float) -> None:
    """Fifty million messages in the long run: resident size, tracemalloc and the library's counts do not grow.

    What is traced besides comes and goes with the messages: it is small again and again.
    """
    count = int(scaled(400_000, 50_000_000) * share)
    output = run_python(FLAT, way, str(count), seconds=3600 if SOAK else 240)
    grown, traced = figure(output, "grown"), figure(output, "traced")
    if SOAK:  # short runs are still growing into their buffers
        # The queue may take its 4 MiB at any time: when the reader first falls behind by that much, is chance. A byte
        # lost for each message would be more than is allowed.
        assert grown < (4 << 20) + (1 << 20)
        record(
            f"{count} messages of 64 bytes to Python, {way}: growth over the last 90 % of the run",
            f"resident {grown // 1024} KiB, traced by tracemalloc {traced} bytes; no object of the library left",
        )


def blocked_signals(thread: int) -> int:
    """As a set of bits, those of signal 1 first."""
    (line,) = re.findall(r"^SigBlk:\s*(\w+)$", Path(f"/proc/self/task/{thread}/status").read_text(), re.MULTILINE)
    return int(line, 16)


def test_threads_of_the_library_take_no_signals() -> None:
    """Python calls handlers on its main thread whoever took the signal: what the threads block tells."""
    got: list[int] = []
    old = signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
    before = set(map(int, os.listdir("/proc/self/task")))
    try:
        with pair(lambda message: None):
            here = set(map(int, os.listdir("/proc/self/task"))) - before
            library = here - {thread.native_id for thread in threading.enumerate()}
            assert len(library) >= 2  # of two contexts
            for signals in map(blocked_signals, library):
                assert all(signals >> number - 1 & 1 for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGTERM))
            os.kill(os.getpid(), signal.SIGUSR1)
            until(lambda: got)
    finally:
        signal.signal(signal.SIGUSR1, old)


def test_contexts_in_threads() -> None:
    done: list[str] = []

    def run(name: str) -> None:
        with pair(topic=name) as (source, receiver):
            source.send(name.encode(), flush=True)
            while True:
                batch = receiver.recv_batch(timeout=HANG)
                assert batch is not None
                if [bytes(message.data) for message in batch.messages()] == [name.encode()]:
                    done.append(name)
                    return

    threads = [threading.Thread(target=run, args=(f"topic {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
        assert not thread.is_alive()
    assert len(done) == 8
