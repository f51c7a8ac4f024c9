"""Source.acquire() and its kin: messages written where they lie in the shared memory of LBT-SMX."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pairs import HANG, collect, figure, loopback, numbered, pair, payloads, run_python, scaled, until

from um_cffi import InvalidArgument, InvalidOperation, NotSupported, Receiver, Slot, Source, WouldBlock

SMX = {"transport": "lbtsmx"}
SMALL = {**SMX, "transport_lbtsmx_transmission_window_size": 65536, "transport_lbtsmx_datagram_max_size": 1024}


@pytest.fixture
def smx() -> Iterator[tuple[Source, Receiver]]:
    with pair(source_options=SMX) as both:
        yield both


def messages(receiver: Receiver, count: int) -> list[bytes]:
    """The next so many messages."""
    return [each for batch in collect(receiver, count) for each in payloads(batch) if each]


def test_what_is_written_into_the_view_arrives(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    view = source.acquire(5)
    assert (view.nbytes, view.readonly, view.format, view.ndim) == (5, False, "B", 1)
    view[:] = b"hello"
    assert source.complete() == 1
    assert messages(receiver, 1) == [b"hello"]


def test_several_are_published_together_and_not_before(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    for i in range(10):
        source.acquire(8)[:] = struct.pack("<Q", i)
    time.sleep(0.2)
    early = receiver.recv_batch(timeout=0)
    assert early is None or not any(payloads(early))
    assert source.complete() == 10
    assert messages(receiver, 10) == [struct.pack("<Q", i) for i in range(10)]
    assert source.complete() == 0


def test_many_times_round_the_ring_nothing_is_lost_or_changed() -> None:
    count = scaled(200_000)
    with pair(source_options=SMALL) as (source, receiver):

        def send() -> None:
            for i in range(count):
                source.acquire(8)[:] = struct.pack("<Q", i)
                if i % 7 == 0:
                    source.complete()
            source.complete()

        thread = threading.Thread(target=send)
        thread.start()
        numbers: list[np.ndarray[Any, Any]] = []
        for batch in collect(receiver, count):
            data = batch.records[batch.records["length"] == 8]
            numbers.append(np.array([struct.unpack_from("<Q", batch.data, int(at))[0] for at in data["offset"]]))
        thread.join()
        assert np.array_equal(np.concatenate(numbers), np.arange(count))


def test_a_view_used_after_complete_is_refused(smx: tuple[Source, Receiver]) -> None:
    source, _ = smx
    view = source.acquire(8)
    source.complete()
    with pytest.raises(ValueError, match="released"):
        view[0] = 1


@pytest.mark.parametrize("use", ["frombuffer", "cast", "slice"])
def test_complete_is_refused_while_something_looks_at_the_memory(smx: tuple[Source, Receiver], use: str) -> None:
    source, receiver = smx
    view = source.acquire(8)
    view[:] = bytes(8)
    makers: dict[str, Callable[[], Any]] = {
        "frombuffer": lambda: np.frombuffer(view, np.uint64),
        "cast": lambda: view.cast("Q"),
        "slice": lambda: view[2:],
    }
    other = makers[use]()
    for refused in (source.complete, source.cancel, source.close):
        with pytest.raises(BufferError, match="1 views of acquired messages"):
            refused()
    other[0] = 1  # still its memory: nothing was published
    del other
    assert source.complete() == 1
    assert messages(receiver, 1) == [bytes([1, *bytes(7)]) if use != "slice" else bytes([0, 0, 1, 0, 0, 0, 0, 0])]


def test_cancelled_messages_are_never_seen(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    source.acquire(3)[:] = b"bad"
    source.acquire(3)[:] = b"bad"
    assert source.cancel() == 2
    source.acquire(4)[:] = b"good"
    source.complete()
    got = collect(receiver, 1)[-1]
    assert [each for each in payloads(got) if each] == [b"good"]
    assert [int(each) for each in got.records["sequence_number"][got.records["length"] == 4]] == [0]


def test_a_slot_is_reused(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    slot = source.slot(16)
    assert (type(slot), len(slot), bool(slot), slot.acquired) == (Slot, 0, True, 0)
    with pytest.raises(BufferError, match="acquire"):
        memoryview(slot)
    for i in range(1000):
        slot.acquire()
        struct.pack_into("<QQ", slot, 0, i, i * i)
        assert (len(slot), slot.acquired) == (16, 1)
        assert slot.complete() == 1
    slot.acquire(4)
    memoryview(slot)[:] = bytes([7] * 4)
    slot.complete()
    got = messages(receiver, 1001)
    assert got[:-1] == [struct.pack("<QQ", i, i * i) for i in range(1000)]
    assert got[-1] == bytes([7] * 4)


@pytest.mark.parametrize(
    ("given", "named", "kind", "words"),
    [
        ((1, True, 3), {}, TypeError, "at most 2"),
        ((1,), {"size": 2}, TypeError, "multiple values.*size"),
        ((), {"length": 2}, TypeError, "unexpected.*length"),
        ((1.5,), {}, InvalidArgument, "1.5 bytes: must be a whole number"),
        ((1 << 80,), {}, InvalidArgument, "at most [0-9]+ bytes fit"),
        ((-1,), {}, InvalidArgument, "must be 0 or more"),
    ],
)
def test_wrong_arguments_acquire_nothing(
    smx: tuple[Source, Receiver], given: Any, named: Any, kind: type[Exception], words: str
) -> None:
    slot = smx[0].slot(8)
    for acquire in (slot.acquire, smx[0].acquire):
        with pytest.raises(kind, match=words):
            acquire(*given, **named)
    assert slot.acquired == 0
    slot.acquire(size=4, wait=False)
    assert (len(slot), slot.complete()) == (4, 1)


def test_a_weak_reference_may_acquire_while_views_are_released(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    kept: list[memoryview] = []
    view = source.acquire(5)
    view[:] = b"first"
    dying = weakref.ref(view, lambda _: kept.append(source.acquire(6)))
    del view
    with pytest.raises(BufferError):  # of the view that complete() has caused
        source.complete()
    assert dying() is None
    kept.pop()[:] = b"second"
    assert source.complete() == 2
    assert messages(receiver, 2) == [b"first", b"second"]


def test_slots_are_not_made_by_hand() -> None:
    with pytest.raises(TypeError):
        Slot()


def test_rows_are_a_numpy_array_of_messages(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    kind = np.dtype([("number", "<u8"), ("price", "<f8")])
    done = 0
    while done < 5000:
        rows = source.acquire_rows(min(100, 5000 - done), kind)
        assert 1 <= len(rows) <= 100
        rows["number"] = np.arange(done, done + len(rows))
        rows["price"] = rows["number"] * 0.5
        done += len(rows)
        del rows
        source.complete()
    assert messages(receiver, 5000) == [struct.pack("<Qd", i, i * 0.5) for i in range(5000)]


def test_rows_of_several_dimensions_and_single_numbers(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    rows = source.acquire_rows(3, ("<u2", (2, 4)))
    assert rows.shape == (3, 2, 4)
    rows[:] = np.arange(24).reshape(3, 2, 4)
    del rows
    source.complete()
    numbers = source.acquire_rows(1, "<u4")
    numbers[0] = 5
    del numbers
    source.complete()
    everything = np.arange(24, dtype="<u2").tobytes()
    assert messages(receiver, 4) == [everything[0:16], everything[16:32], everything[32:48], struct.pack("<I", 5)]


def test_rows_end_where_the_ring_ends() -> None:
    with pair(source_options=SMALL) as (source, receiver):
        lengths, done = [], 0
        while done < 2000:
            rows = source.acquire_rows(300, "<u8")
            rows[:] = np.arange(done, done + len(rows))
            lengths.append(len(rows))
            done += len(rows)
            del rows
            source.complete()
        assert min(lengths) < 300
        got = [struct.unpack("<Q", each)[0] for each in messages(receiver, done)]
        assert got == list(range(done))


def test_rows_are_acquired_by_themselves(smx: tuple[Source, Receiver]) -> None:
    source, _ = smx
    source.acquire(8)
    with pytest.raises(InvalidOperation, match="by themselves"):
        source.acquire_rows(2, "u1")
    source.cancel()
    for count, kind in ((0, "u1"), (1, object)):
        with pytest.raises(InvalidArgument):
            source.acquire_rows(count, kind)


def test_other_transports_say_that_they_cannot() -> None:
    with loopback() as context, Source(context, "news") as source:
        for call in (lambda: source.acquire(8), source.complete, source.cancel, lambda: source.slot(8)):
            with pytest.raises(NotSupported, match="transport tcp: only sources with transport lbtsmx"):
                call()


def test_sizes_that_cannot_be(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    with pytest.raises(InvalidArgument, match="does not fragment"):
        source.acquire(8177)
    for refused in (lambda: source.acquire(-1), lambda: source.slot(-1)):
        with pytest.raises(InvalidArgument, match="0 or more"):
            refused()
    source.acquire(8176)[:] = bytes(8176)
    assert len(source.acquire(0)) == 0
    source.complete()
    assert [len(each) for batch in collect(receiver, 2) for each in payloads(batch)][-2:] == [8176, 0]


def test_sends_between_acquire_and_complete_are_refused(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    source.acquire(1)[:] = b"a"
    for refused in (
        lambda: source.send(b"x"),
        lambda: source.send([b"x", b"y"]),
        lambda: source.send_many(numbered(2)),
        source.flush,
        source.context.flush,
    ):
        with pytest.raises(InvalidOperation, match="not complete"):
            refused()
    source.complete()
    source.send(b"b")
    source.context.flush()
    assert messages(receiver, 2) == [b"a", b"b"]


def test_sources_of_one_session_take_turns() -> None:
    options = {**SMX, "transport_lbtsmx_id": 30009}
    with loopback() as context, Source(context, "a", options=options) as a, Source(context, "b", options=options) as b:
        a.acquire(8)
        with pytest.raises(InvalidOperation, match="another source"):
            b.acquire(8)
        with pytest.raises(InvalidOperation, match="not complete"):
            b.send(b"x")
        a.close()  # gives back what it had acquired
        b.acquire(8)
        assert b.complete() == 1


def test_more_than_the_window_is_refused() -> None:
    with pair(source_options=SMALL) as (source, _), pytest.raises(InvalidOperation, match="too many outstanding"):
        while True:
            source.acquire(1000)


STOPPED = """
import os, signal, sys
from pairs import HANG, loopback
from um_cffi import Receiver
with loopback() as context, Receiver(context, "slow") as receiver:
    receiver.wait_ready(1, HANG)
    print("ready", flush=True)
    sys.stdin.readline()
    print("stops", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        receiver.recv_batch(timeout=1)
"""


@contextlib.contextmanager
def stopped_receiver() -> Iterator[subprocess.Popen[str]]:
    """A process that receives "slow" and has been stopped, by itself: so it cannot be stopped already."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline().strip() == "stops"
        os.waitpid(process.pid, os.WUNTRACED)  # each of its threads has stopped
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_stopped_receiver_blocks_the_source_which_names_it() -> None:
    with loopback() as context, Source(context, "slow", options=SMALL) as source, stopped_receiver() as process:
        with pytest.raises(WouldBlock):
            while True:
                source.acquire(100, wait=False)
                source.complete()
        with pytest.raises(WouldBlock):
            while True:
                len(source.acquire_rows(5, ("u1", 100), wait=False))
                source.complete()
        assert source.counts().blocked_by_pid == process.pid
        got: list[int] = []
        thread = threading.Thread(target=lambda: got.append(len(source.acquire(100))))
        thread.start()
        time.sleep(0.3)
        assert not got
        os.kill(process.pid, signal.SIGCONT)
        thread.join(HANG)
        assert got == [100]
        assert source.complete() == 1


def test_close_ends_a_wait() -> None:
    with loopback() as context, Source(context, "slow", options=SMALL) as source, stopped_receiver() as process:
        failures: list[Exception] = []

        def fill() -> None:
            try:
                while True:
                    source.acquire(100)
                    source.complete()
            except InvalidArgument as error:
                failures.append(error)

        thread = threading.Thread(target=fill)
        thread.start()
        until(lambda: source.counts().blocked_by_pid == process.pid)
        source.close()
        thread.join(HANG)
        assert "closed" in str(failures[0])


def test_what_a_closed_source_says(smx: tuple[Source, Receiver]) -> None:
    source, _ = smx
    slot, view = source.slot(8), source.acquire(8)
    source.close()
    for call in (lambda: source.acquire(8), source.complete, slot.acquire, slot.complete, lambda: source.slot(8)):
        with pytest.raises(InvalidArgument, match="closed"):
            call()
    with pytest.raises(ValueError, match="released"):
        view[0] = 1
    with pytest.raises(BufferError):
        memoryview(slot)


def test_a_child_of_fork_may_not_acquire(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    pid = os.fork()
    if pid == 0:
        try:
            source.acquire(8)
        except InvalidArgument as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    source.acquire(1)[:] = b"p"
    source.complete()
    assert messages(receiver, 1) == [b"p"]


def test_threads_that_send_and_threads_that_acquire_take_turns(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    count = scaled(5000)

    def patiently(call: Any) -> None:
        while True:
            try:
                call()
                return
            except InvalidOperation:
                time.sleep(0)

    def acquire() -> None:
        for i in range(count):
            source.acquire(9)[:] = b"a%08d" % i
            source.complete()

    def send() -> None:
        for i in range(count):
            patiently(lambda number=i: source.send(b"s%08d" % number))

    threads = [threading.Thread(target=each) for each in (acquire, send)]
    for thread in threads:
        thread.start()
    got = messages(receiver, 2 * count)
    for thread in threads:
        thread.join()
    for kind in (b"a", b"s"):
        assert [each for each in got if each[:1] == kind] == [kind + b"%08d" % i for i in range(count)]


def test_batches_and_messages_are_read_only(smx: tuple[Source, Receiver]) -> None:
    source, receiver = smx
    source.acquire(8)[:] = bytes(8)
    source.complete()
    batch = collect(receiver, 1)[-1]
    assert not batch.data.flags.writeable and not batch.records.flags.writeable
    message = next(each for each in batch if len(each) == 8)
    assert message.data.readonly
    assert not np.frombuffer(message, np.uint8).flags.writeable
    source.close()
    assert bytes(message.data) == bytes(8)  # its own memory, whatever becomes of the ring


LEFT_OPEN = """
from pairs import loopback
from um_cffi import Source
import numpy as np
context = loopback()
source = Source(context, "x", options={"transport": "lbtsmx"})
array = np.frombuffer(source.acquire(8), np.uint64)
print("end")
"""


def test_a_program_may_end_with_views_in_use() -> None:
    assert "end" in run_python(LEFT_OPEN)


def test_nothing_leaks() -> None:
    program = """
import gc, resource, struct
from pairs import loopback
from um_cffi import Source
with loopback() as context, Source(context, "x", options={"transport": "lbtsmx"}) as source:
    def round(count):
        slot = source.slot(8)
        for i in range(count):
            source.acquire(8)[:] = b"12345678"
            source.complete()
            slot.acquire(); struct.pack_into("<Q", slot, 0, i); slot.complete()
            rows = source.acquire_rows(4, "<u8"); del rows; source.cancel()
    round(20000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    round(100000)
    print("grew", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    grew = figure(run_python(program), "grew")
    assert grew < 2048, f"{grew} KiB"
