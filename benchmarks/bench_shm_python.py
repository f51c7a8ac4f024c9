"""Rates and round trips of the Python binding over LBT-SMX, with iceoryx2's Python binding measured in the same run.

Usage: python benchmarks/bench_shm_python.py [--seconds S] [--runs N] [--only FIGURE] [--json]

Messages have 64 bytes. The sender is a process on core 0, the receiver one on core 1; both sides of a round trip
busy-wait. iceoryx2 is left out where it is not installed. Prints one line for each figure, or with --json one object.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from bench_python import Meter, on_core

LOOPBACK = {"default_interface": "127.0.0.1"}
SMX = {"transport": "lbtsmx", "transport_lbtsmx_transmission_window_size": 8 << 20}
SIZE = 64
BATCH = 64  # messages completed together where it says batched
EVERY = 4096
HAS_ICEORYX = find_spec("iceoryx2") is not None


# ---- sending: messages per second handed over, with a receiver that takes everything ----


def send_new_view(source: Any, count: int) -> None:
    acquire, complete, payload = source.acquire, source.complete, bytes(SIZE)
    for _ in range(count):
        view = acquire(SIZE)
        view[:] = payload
        complete()


def send_reused_view(source: Any, count: int) -> None:
    slot, pack = source.slot(SIZE), struct.Struct("<Q56x").pack_into
    acquire, complete = slot.acquire, slot.complete
    for number in range(count):
        acquire()
        pack(slot, 0, number)
        complete()


def send_batched_views(source: Any, count: int) -> None:
    acquire, payload = source.acquire, bytes(SIZE)
    for _ in range(count // BATCH):
        for _ in range(BATCH):
            acquire(SIZE)[:] = payload
        source.complete()


def send_rows(source: Any, count: int) -> None:
    number = 0
    while number < count:
        rows = source.acquire_rows(BATCH, ("<u8", SIZE // 8))
        rows[:, 0] = number
        number += len(rows)
        del rows
        source.complete()


SENDING: dict[str, Callable[[Any, int], None]] = {
    "new_view": send_new_view,
    "reused_view": send_reused_view,
    "batched_views": send_batched_views,
    "rows": send_rows,
}


def measure_sending(name: str, seconds: float) -> float:
    from um_cffi import Context, Source

    meter = Meter(seconds)
    with Context(LOOPBACK) as ctx, Source(ctx, "bench", options=SMX) as source:
        source.wait_receivers(1, 30)
        while True:
            SENDING[name](source, EVERY)
            if meter.add(EVERY):
                return meter.result()


def drain() -> None:
    from um_cffi import Context, Receiver

    with Context(LOOPBACK) as ctx, Receiver(ctx, "bench") as receiver:
        for _ in receiver.batches():
            pass


# ---- receiving ----


def feed() -> None:
    from um_cffi import Context, Source

    with Context(LOOPBACK) as ctx, Source(ctx, "bench", options=SMX) as source:
        source.wait_receivers(1, 30)
        messages = np.zeros((10000, SIZE), np.uint8)
        while True:
            source.send_many(messages)


def receive_batches(seconds: float) -> float:
    """Into numpy: the sum over one column and one field of every payload."""
    from um_cffi import Context, Receiver

    meter, total = Meter(seconds), 0
    with Context(LOOPBACK) as ctx, Receiver(ctx, "bench") as receiver:
        for batch in receiver.batches():
            lengths = batch.records["length"]
            if not lengths.all():  # the beginning of the session, or messages dropped
                continue
            total += int(batch.decode(np.dtype(("<u8", SIZE // 8)))[:, 0].sum()) + int(lengths.sum())
            if meter.add(len(lengths)):
                return meter.result()
    raise AssertionError("the source went away")


# ---- round trips: the median in microseconds ----


def ping_um(seconds: float, echo: bool) -> float:
    """Direct callbacks on both sides: the next message leaves in the callback of the one before."""
    from um_cffi import Context, Message, Receiver, Source

    times: list[int] = []
    over = threading.Event()
    with Context(LOOPBACK) as ctx, Source(ctx, "pong" if echo else "ping", options=SMX) as source:
        slot, pack, unpack = source.slot(SIZE), struct.Struct("<Q56x").pack_into, struct.Struct("<Q").unpack_from
        acquire, complete, clock = slot.acquire, slot.complete, time.perf_counter_ns

        def send(number: int) -> None:
            acquire()
            pack(slot, 0, number)
            complete()

        def answer(message: Message) -> None:
            send(unpack(message)[0])

        def answered(message: Message) -> None:
            now = clock()
            times.append(now - unpack(message)[0])
            if over.is_set():
                return
            send(clock())

        with Receiver(ctx, "ping" if echo else "pong", answer if echo else answered, direct=True) as receiver:
            source.wait_receivers(1, 30)
            receiver.wait_ready(1, 30)
            if echo:
                threading.Event().wait()
            send(clock())
            time.sleep(seconds)
            over.set()
            time.sleep(0.05)
    return statistics.median(times) / 1e3


class Payload(ctypes.Structure):
    """64 bytes for iceoryx2."""

    _fields_ = [("number", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 7)]


def iceoryx_ports(out: str, back: str) -> tuple[Any, Any, Any]:
    import iceoryx2

    iceoryx2.set_log_level(iceoryx2.LogLevel.Fatal)
    node = iceoryx2.NodeBuilder.new().create(iceoryx2.ServiceType.Ipc)

    def service(name: str) -> Any:
        builder = node.service_builder(iceoryx2.ServiceName.new(f"um-bench/{name}")).publish_subscribe(Payload)
        return builder.subscriber_max_buffer_size(1024).enable_safe_overflow(False).open_or_create()

    publisher = service(out).publisher_builder().create() if out else None
    subscriber = service(back).subscriber_builder().buffer_size(1024).create() if back else None
    return node, publisher, subscriber


def ping_iceoryx(seconds: float, echo: bool) -> float:
    node, publisher, subscriber = iceoryx_ports(*(("pong", "ping") if echo else ("ping", "pong")))
    payload, times = Payload(), []
    loan, receive = publisher.loan_uninit, subscriber.receive
    end = time.monotonic() + seconds + 1
    while echo or time.monotonic() < end:
        begin = time.perf_counter_ns()
        if not echo:
            payload.number = begin
            loan().write_payload(payload).send()
        sample = receive()
        patience = 200_000
        while sample is None and (echo or patience):
            sample = receive()
            patience -= 1
        if sample is None:
            continue  # the other side is not there yet
        times.append(time.perf_counter_ns() - begin)
        if echo:
            payload.number = sample.payload().contents.number
            del sample
            loan().write_payload(payload).send()
            times.clear()
        else:
            del sample
    del node
    return statistics.median(times) / 1e3


# ---- one message at a time, one way, each read by the receiver: messages per second ----


def oneway_um_send() -> None:
    from um_cffi import Context, Source

    with Context(LOOPBACK) as ctx, Source(ctx, "bench", options=SMX) as source:
        source.wait_receivers(1, 30)
        while True:
            send_reused_view(source, EVERY)


def oneway_um(seconds: float) -> float:
    from um_cffi import Context, Receiver

    meter, count, total = Meter(seconds), 0, 0
    unpack = struct.Struct("<Q").unpack_from
    with Context(LOOPBACK) as ctx, Receiver(ctx, "bench") as receiver:
        for batch in receiver.batches():
            for message in batch.messages():
                total += unpack(message)[0] if len(message) else 0
                count += 1
                if count % EVERY == 0 and meter.add(EVERY):
                    return meter.result()
    raise AssertionError("the source went away")


def oneway_iceoryx_send() -> None:
    _node, publisher, _ = iceoryx_ports("oneway", "")
    payload, number = Payload(), 0
    loan = publisher.loan_uninit
    while True:
        payload.number = number
        loan().write_payload(payload).send()
        number += 1


def oneway_iceoryx(seconds: float) -> float:
    _node, _, subscriber = iceoryx_ports("", "oneway")
    meter, count, total = Meter(seconds), 0, 0
    receive = subscriber.receive
    while True:
        sample = receive()
        if sample is None:
            continue
        total += sample.payload().contents.number
        count += 1
        if count % EVERY == 0 and meter.add(EVERY):
            return meter.result()


# ---- pairs of processes ----

FIGURES: dict[str, tuple[Callable[[], object], Callable[[float], float]]] = {
    **{name: (drain, functools.partial(measure_sending, name)) for name in SENDING},
    "batches": (feed, receive_batches),
    "oneway": (oneway_um_send, oneway_um),
    "pingpong_us": (lambda: ping_um(0, True), lambda seconds: ping_um(seconds, False)),
}
if HAS_ICEORYX:
    FIGURES["iceoryx2_oneway"] = (oneway_iceoryx_send, oneway_iceoryx)
    FIGURES["iceoryx2_pingpong_us"] = (lambda: ping_iceoryx(0, True), lambda seconds: ping_iceoryx(seconds, False))


def figure(name: str, seconds: float) -> float:
    """One figure, measured once: a helper and the process that measures."""
    command = [sys.executable, __file__, "--seconds", str(seconds), "--role"]
    helper = subprocess.Popen([*command, f"{name}:helper"])
    try:
        done = subprocess.run([*command, f"{name}:measure"], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        return float(done.stdout.strip().splitlines()[-1])
    finally:
        helper.kill()
        helper.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", action="append", choices=FIGURES)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role is not None:
        name, _, role = arguments.role.partition(":")
        sends = name in SENDING
        on_core(0 if (role == "measure") == sends else 1)
        helper, measure = FIGURES[name]
        print(helper() if role == "helper" else measure(arguments.seconds))
        return
    names = arguments.only or list(FIGURES)
    runs: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(arguments.runs):
        for name in names:
            runs[name].append(figure(name, arguments.seconds))
    medians = {name: statistics.median(found) for name, found in runs.items()}
    if arguments.json:
        print(json.dumps({"size": SIZE, "figures": medians, "runs": runs}))
        return
    for name, value in medians.items():
        unit = "us" if name.endswith("_us") else "M messages/s"
        print(f"{name:<22} {value if unit == 'us' else value / 1e6:8.3f} {unit}")


if __name__ == "__main__":
    main()
