"""Timers, and a descriptor of the application, on the context's callback thread."""

from __future__ import annotations

import os
import threading

from um_cffi import Context

done = threading.Event()
reading, writing = os.pipe()
ticks = 0


def tick() -> None:
    global ticks
    ticks += 1
    print(f"tick {ticks}")
    if ticks == 3:
        timer.cancel()
        os.write(writing, b"enough")


def readable() -> None:
    print("the pipe says:", os.read(reading, 100).decode())
    done.set()


with Context() as ctx:
    ctx.add_reader(reading, readable)
    timer = ctx.call_every(0.05, tick)
    ctx.call_later(0.01, print, "first of all")
    done.wait(10)
    ctx.remove_reader(reading)
