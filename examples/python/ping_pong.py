"""Measure round trips, or answer: python ping_pong.py ping|pong [COUNT [PREFIX]]

Works against itself and against the C program lbmpong: topics are PREFIX/ping and PREFIX/pong. Without arguments it
does both in one process.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time

from um_cffi import Context, Message, Receiver, Source


def pong(ctx: Context, prefix: str) -> Receiver:
    """Send every ping back. Callbacks may send: they run on the callback thread, not on one of the library."""
    back = Source(ctx, f"{prefix}/pong")
    return Receiver(ctx, f"{prefix}/ping", lambda message: back.send(message.data, flush=True))


def ping(ctx: Context, prefix: str, count: int) -> list[float]:
    """Milliseconds of so many round trips."""
    out = Source(ctx, f"{prefix}/ping")
    times: list[float] = []
    done = threading.Event()

    def send() -> None:
        out.send([time.perf_counter_ns().to_bytes(8, "little"), bytes(12)], flush=True)

    def on_pong(message: Message) -> None:
        times.append((time.perf_counter_ns() - int.from_bytes(message.data[:8], "little")) / 1e6)
        if len(times) < count:
            send()
        else:
            done.set()

    back = Receiver(ctx, f"{prefix}/pong", on_pong)
    out.wait_receivers(timeout=60)
    back.wait_ready(timeout=60)
    send()
    if not done.wait(60):
        raise SystemExit(f"only {len(times)} of {count} answers have come")
    return times


role = sys.argv[1] if len(sys.argv) > 1 else "both"
count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
prefix = sys.argv[3] if len(sys.argv) > 3 else "lbmpong"
with Context() as here, Context() as there:
    if role in ("pong", "both"):
        answering = pong(there, prefix)
    if role in ("ping", "both"):
        times = sorted(ping(here, prefix, count))
        print(f"{len(times)} round trips: median {statistics.median(times):.3f} ms, best {times[0]:.3f} ms")
    else:
        while not (answering.counts().delivered and answering.counts().sources == 0):  # until the pinging side has gone
            time.sleep(0.1)
