"""Many processes on one host, with default options: contexts one after another, side by side, and in a pool of workers.

What is counted are failures; nothing here judges how long it takes.
"""

from __future__ import annotations

import faulthandler
import logging
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from um_cffi import Batch, Context, MessageType, Receiver, Source, UmError, WildcardReceiver, logs

HANG = 480.0 if os.environ.get("UM_SANITIZED") else 240.0  # beside 24 busy processes 100 to 234 s sanitized
REQUEST_PORTS = range(14391, 14396)
SESSION_PORTS = range(14371, 14391)


def _publish(pipe: Connection, number: int) -> None:
    """One of the hundred processes: says what failed, or nothing once it has sent; sends until the parent has heard:
    a receiver that got no answer for four seconds, because a hundred start at once, has left and comes again.
    """
    faulthandler.register(signal.SIGUSR1)
    try:
        with Context() as ctx:
            source = Source(ctx, f"many.{number}")
            source.wait_receivers(1, HANG)
            source.send(b"%d" % number, flush=True)
            pipe.send("")
            while not pipe.poll(1.0):
                source.send(b"%d" % number, flush=True)
    except BaseException as error:
        pipe.send(f"{number}: {type(error).__name__}: {error}")
        pipe.recv()
    finally:
        os._exit(0)


def test_a_hundred_processes_with_a_context_each_start_and_publish() -> None:
    kind = multiprocessing.get_context("fork")
    pipes, processes = [], []
    for number in range(100):
        mine, its = kind.Pipe()
        processes.append(kind.Process(target=_publish, args=(its, number), daemon=True))
        processes[-1].start()
        its.close()
        pipes.append(mine)
    try:
        with Context() as ctx:
            receiver = WildcardReceiver(ctx, r"^many\.\d+$")
            heard = _take(receiver, 100, pipes, processes)
            ended = _answers(pipes)
        for pipe, process in zip(pipes, processes):
            pipe.send("")
            process.join(HANG)
    finally:
        for process in processes:
            process.kill()
    assert [each for each in ended if each] == []
    assert sorted(heard) == sorted(str(number) for number in range(100))


def _where(process: BaseProcess) -> str:
    """What each thread of a process waits for; the stacks of those that Python knows go to standard error."""
    if process.pid is None or not process.is_alive():
        return f"process {process.pid}: ended with {process.exitcode}"
    os.kill(process.pid, signal.SIGUSR1)
    time.sleep(2)
    facts = [f"process {process.pid}:"]
    with suppress(OSError):  # it may end meanwhile, and not everybody may look
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            facts += [(thread / name).read_text().strip() for name in ("comm", "wchan", "syscall")]
    return "\n".join(facts)


def _take(
    receiver: WildcardReceiver, count: int, pipes: Sequence[Connection] = (), processes: Sequence[BaseProcess] = ()
) -> list[str]:
    """The first `count` different messages."""
    heard: set[str] = set()
    deadline = time.monotonic() + HANG
    while len(heard) < count:
        batch = receiver.recv_batch(timeout=HANG)
        if batch is None or time.monotonic() > deadline:
            missing = sorted(set(range(count)) - set(map(int, heard)))
            told = [pipe.recv() for pipe in pipes if pipe.poll()]
            facts = (f"not heard: {missing}; told: {told}", str(receiver.counts()), str(receiver.context.counts()))
            pytest.fail("\n".join((*facts, *(_where(processes[number]) for number in missing[: len(processes)]))))
        heard.update(data.decode() for data in _payloads(batch))
    return sorted(heard)


def _payloads(batch: Batch) -> list[bytes]:
    return [bytes(message.data) for message in batch if message.type == MessageType.DATA]


def _answers(pipes: list[Connection]) -> list[str]:
    waiting, told = set(pipes), []
    while waiting:
        ready = wait(list(waiting), HANG)
        assert ready, f"{len(waiting)} processes have not answered"
        for pipe in ready:
            assert isinstance(pipe, Connection)
            told.append(pipe.recv())
            waiting.discard(pipe)
    return told


def _time_wait(ports: range) -> int:
    """Connections of these local ports that wait in TIME-WAIT."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[3] == "06" and int(row[1].split(":")[1], 16) in ports for row in rows)


def test_two_hundred_starts_and_stops_do_not_fail() -> None:
    failures = []
    used = 0
    for number in range(200):
        try:
            with Context() as receiving, Context() as sending:
                receiver = Receiver(receiving, "again")
                source = Source(sending, "again")
                source.wait_receivers(1, HANG)
                source.send(b"x", flush=True)
                assert _first(receiver) == b"x"
                source.close()  # of a connection the side that closes first leaves its port in TIME-WAIT
                used = max(used, _time_wait(SESSION_PORTS))  # for a minute
        except UmError as error:
            failures.append(f"{number}: {error}")
    assert failures == []
    assert used == len(SESSION_PORTS), "the range was not used up: this test shows nothing"


def _first(receiver: Receiver) -> bytes:
    while True:
        batch = receiver.recv_batch(timeout=HANG)
        assert batch is not None, "a message sent is not there"
        if _payloads(batch):
            return _payloads(batch)[0]


def work(number: int) -> int:
    """A task of the pool: a context of its own, as short-lived workers have."""
    with Context() as ctx:
        source = Source(ctx, f"pool.{number}")
        source.wait_receivers(1, HANG)
        source.send(b"%d" % number, flush=True)
    return number


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_eight_publishes(method: str) -> None:
    with Context() as ctx, ProcessPoolExecutor(8, multiprocessing.get_context(method)) as pool:
        receiver = WildcardReceiver(ctx, r"^pool\.\d+$")
        assert sorted(pool.map(work, range(40))) == list(range(40))
        assert sorted(map(int, _take(receiver, 40))) == list(range(40))


def test_a_used_up_default_range_is_told_once_at_level_info(caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as stack, caplog.at_level(logging.INFO, "um_cffi"):
        for port in REQUEST_PORTS:
            _occupy(stack, port)
        with Context() as ctx:
            port = int(ctx.getopt("request_tcp_port"))
        logs.flush()
        told = [record for record in caplog.records if "any free port" in record.getMessage()]
    assert port not in REQUEST_PORTS
    assert [record.levelno for record in told] == [logging.INFO]
    assert "request_tcp_port_low..request_tcp_port_high 14391..14395" in told[0].getMessage()


def test_a_range_that_somebody_set_still_ends_in_an_error_that_names_the_remedy() -> None:
    with ExitStack() as stack:
        for port in REQUEST_PORTS:
            _occupy(stack, port)
        with pytest.raises(UmError, match=r"request_tcp_port_low.*14391\.\.14395.*set both to 0"):
            Context(request_tcp_port_low=14391, request_tcp_port_high=14395)


def test_default_sizes_of_buffers_that_the_kernel_cuts_are_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "um_cffi"), Context() as ctx, Source(ctx, "cut", transport="lbtrm"):
        Context(default_interface="127.0.0.1").close()
        logs.flush()
    cut = [record for record in caplog.records if "the system grants only" in record.getMessage()]
    assert all(record.levelno == logging.INFO for record in cut), [record.getMessage() for record in cut]


def _occupy(stack: ExitStack, port: int) -> None:
    holder = stack.enter_context(socket.socket())
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # over what waits in TIME-WAIT
    holder.bind(("", port))
    holder.listen()
