"""Rates of the Python binding, 64-byte messages over TCP on two cores, with pyzmq measured in the same run.

Usage: python benchmarks/bench_python.py [--seconds S] [--size N] [--runs N] [--json]

The sender is a process on core 0, the receiver one on core 1. Where the receiver is measured, the sender offers more
than it can take and is held back by TCP; the figure is what the receiver's Python code has got, looking at the payload
of every message. Prints one line for each figure, or with --json one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

LOOPBACK = {"default_interface": "127.0.0.1"}
BATCH = 10000  # messages in one call of send_many()
WARM_UP = 0.3  # seconds before counting begins

Rate = float


def on_core(core: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


# ---- senders: run until killed ----


def send_um(size: int, single: bool) -> None:
    from um_cffi import Context, Source

    with Context(LOOPBACK) as ctx, Source(ctx, "bench", implicit_batching_minimum_length=8192) as source:
        source.wait_receivers(1, 30)
        messages = np.zeros((BATCH, size), np.uint8)
        one = bytes(size)
        while True:
            if single:
                source.send(one)
            else:
                source.send_many(messages)


def send_zmq(size: int) -> None:
    import zmq

    socket = zmq.Context().socket(zmq.PUSH)
    socket.setsockopt(zmq.SNDHWM, 100000)
    socket.connect("tcp://127.0.0.1:15555")
    message = bytes(size)
    send = socket.send
    while True:
        send(message)


# ---- receivers: count for so many seconds after warming up ----


class Meter:
    """Counts between two instants; the clock is read once every so many messages."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.first: float | None = None
        self.begin = 0.0
        self.count = 0
        self.rate: Rate | None = None

    def add(self, number: int) -> bool:
        """Messages have been handled; whether the measurement is over."""
        now = time.perf_counter()
        if self.first is None:
            self.first = now
        elif self.begin == 0.0:
            if now - self.first > WARM_UP:
                self.begin = now
        else:
            self.count += number
            if now - self.begin >= self.seconds:
                self.rate = self.count / (now - self.begin)
                return True
        return False

    def result(self) -> Rate:
        assert self.rate is not None
        return self.rate


EVERY = 4096


def receive_callback(seconds: float) -> Rate:
    import threading

    from um_cffi import Context, Message, Receiver

    meter, over = Meter(seconds), threading.Event()
    count = length = 0

    def on_message(message: Message) -> None:
        nonlocal count, length
        length += len(message.data)
        count += 1
        if count % EVERY == 0 and meter.add(EVERY):
            over.set()

    with Context(LOOPBACK) as ctx, Receiver(ctx, "bench", on_message):
        over.wait(60)
    return meter.result()


def receive_async(seconds: float) -> Rate:
    from um_cffi import Context, Receiver

    meter = Meter(seconds)

    async def main() -> None:
        count = length = 0
        async with Context(LOOPBACK) as ctx, Receiver(ctx, "bench") as receiver:
            async for message in receiver:
                length += len(message.data)
                count += 1
                if count % EVERY == 0 and meter.add(EVERY):
                    return

    asyncio.run(main())
    return meter.result()


def receive_batches(seconds: float) -> Rate:
    """Into numpy: the sum over one column and one field of every payload."""
    from um_cffi import Context, Receiver

    meter = Meter(seconds)
    total = 0
    with Context(LOOPBACK) as ctx, Receiver(ctx, "bench") as receiver:
        receiver.wait_ready(1, 30)
        for batch in receiver.batches():
            lengths = batch.records["length"]
            if not lengths.all():  # the beginning of the session is a record too
                continue
            first = batch.decode(np.dtype(("<u8", int(lengths[0]) // 8)))[:, 0]
            total += int(first.sum()) + int(lengths.sum())
            if meter.add(len(lengths)):
                break
    return meter.result()


def receive_recv(seconds: float) -> Rate:
    """recv() in a loop."""
    from um_cffi import Context, Receiver

    meter = Meter(seconds)
    length = 0
    with Context(LOOPBACK) as ctx, Receiver(ctx, "bench") as receiver:
        recv = receiver.recv
        while True:
            for _ in range(EVERY):
                message = recv()
                assert message is not None
                length += len(message.data)
            if meter.add(EVERY):
                return meter.result()


def receive_for(seconds: float) -> Rate:
    """for message in receiver"""
    from um_cffi import Context, Receiver

    meter = Meter(seconds)
    count = length = 0
    with Context(LOOPBACK) as ctx, Receiver(ctx, "bench") as receiver:
        for message in receiver:
            length += len(message.data)
            count += 1
            if count % EVERY == 0 and meter.add(EVERY):
                break
    return meter.result()


def receive_single(seconds: float) -> Rate:
    """Batches of one message each."""
    from um_cffi import Context, Receiver

    meter = Meter(seconds)
    count = length = 0
    with Context(LOOPBACK) as ctx, Receiver(ctx, "bench") as receiver:
        while True:
            batch = receiver.recv_batch(max_messages=1)
            assert batch is not None
            length += len(batch.data)
            count += 1
            if count % EVERY == 0 and meter.add(EVERY):
                return meter.result()


def receive_zmq(seconds: float) -> Rate:
    import zmq

    socket = zmq.Context().socket(zmq.PULL)
    socket.setsockopt(zmq.RCVHWM, 100000)
    socket.bind("tcp://127.0.0.1:15555")
    meter = Meter(seconds)
    recv = socket.recv
    length = 0
    while True:
        for _ in range(EVERY):
            length += len(recv())
        if meter.add(EVERY):
            return meter.result()


def receive_zmq_async(seconds: float) -> Rate:
    import zmq
    import zmq.asyncio

    meter = Meter(seconds)

    async def main() -> None:
        socket = zmq.asyncio.Context().socket(zmq.PULL)
        socket.setsockopt(zmq.RCVHWM, 100000)
        socket.bind("tcp://127.0.0.1:15555")
        length = 0
        while True:
            for _ in range(EVERY):
                length += len(await socket.recv())
            if meter.add(EVERY):
                return

    asyncio.run(main())
    return meter.result()


def drain(seconds: float) -> None:
    """Takes everything as cheaply as possible, for the senders to be measured."""
    from um_cffi import Context, Receiver

    with Context(LOOPBACK) as ctx, Receiver(ctx, "bench") as receiver:
        for _ in receiver.batches():
            pass


def measure_sending(seconds: float, size: int, single: bool) -> Rate:
    """Messages handed to the transport, with a receiver on the other core."""
    from um_cffi import Context, Source

    meter = Meter(seconds)
    with Context(LOOPBACK) as ctx, Source(ctx, "bench", implicit_batching_minimum_length=8192) as source:
        source.wait_receivers(1, 30)
        messages = np.zeros((BATCH, size), np.uint8)
        one = bytes(size)
        while True:
            if single:
                for _ in range(EVERY):
                    source.send(one)
                done = EVERY
            else:
                done = source.send_many(messages)
            if meter.add(done):
                return meter.result()


# ---- pairs of processes ----

RECEIVERS: dict[str, tuple[str, Callable[[float], Rate]]] = {
    "callback": ("um", receive_callback),
    "async": ("um", receive_async),
    "batches": ("um", receive_batches),
    "recv": ("um", receive_recv),
    "for": ("um", receive_for),
    "single": ("um", receive_single),
    "pyzmq": ("zmq", receive_zmq),
    "pyzmq_async": ("zmq", receive_zmq_async),
}
SENDERS = {"send_many": False, "send": True}
FIGURES = [*RECEIVERS, *SENDERS]


def child(role: str, arguments: argparse.Namespace) -> None:
    """What runs in a process of its own: `feed-um`, `feed-zmq`, `drain`, or the name of a figure."""
    on_core(0 if role.startswith("feed") or role in SENDERS else 1)
    if role == "feed-um":
        send_um(arguments.size, False)
    elif role == "feed-zmq":
        send_zmq(arguments.size)
    elif role == "drain":
        drain(arguments.seconds)
    elif role in SENDERS:
        print(measure_sending(arguments.seconds, arguments.size, SENDERS[role]))
    else:
        print(RECEIVERS[role][1](arguments.seconds))


def start(role: str, arguments: argparse.Namespace, stdout: int | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--role", role, "--size", str(arguments.size)]
    return subprocess.Popen([*command, "--seconds", str(arguments.seconds)], text=True, stdout=stdout)


def figure(name: str, arguments: argparse.Namespace) -> Rate:
    """Messages per second of one figure, measured once."""
    other = "drain" if name in SENDERS else f"feed-{RECEIVERS[name][0]}"
    helper = start(other, arguments)
    try:
        measured = start(name, arguments, stdout=subprocess.PIPE)
        output, _ = measured.communicate(timeout=120)
        if measured.returncode != 0:
            raise SystemExit(f"{name} failed")
        return float(output.strip().splitlines()[-1])
    finally:
        helper.kill()
        helper.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", action="append", choices=FIGURES)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role is not None:
        child(arguments.role, arguments)
        return
    names = arguments.only or FIGURES
    runs: dict[str, list[Rate]] = {name: [] for name in names}
    for _ in range(arguments.runs):
        for name in names:
            runs[name].append(figure(name, arguments))
    medians = {name: statistics.median(found) for name, found in runs.items()}
    if arguments.json:
        print(json.dumps({"size": arguments.size, "rates": medians, "runs": runs}))
        return
    for name, rate in medians.items():
        print(f"{name:<12} {rate / 1e6:8.3f} M messages/s")


if __name__ == "__main__":
    main()
