"""Two processes and shared memory (LBT-SMX): the parent writes into the ring, the child reads it there."""

import multiprocessing
from multiprocessing.synchronize import Event

import numpy as np

from um_cffi import Context, Receiver, Source

COUNT = 100_000
SUM = COUNT * (COUNT - 1) // 2


def child(ready: Event) -> None:
    total = 0
    with Context() as ctx, Receiver(ctx, "numbers") as receiver:
        receiver.wait_ready()
        ready.set()
        while total < SUM:
            batch = receiver.recv_batch(events=False)
            total += int(batch.decode("<u8").sum()) if batch is not None else 0
        print("the sum is", total, flush=True)


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    process = spawn.Process(target=child, args=(ready,))
    process.start()
    with Context() as ctx, Source(ctx, "numbers", transport="lbtsmx") as source:
        ready.wait()
        sent = 0
        while sent < COUNT:
            rows = source.acquire_rows(min(1000, COUNT - sent), "<u8")
            rows[:] = np.arange(sent, sent + len(rows))
            sent += len(rows)
            del rows
            source.complete()
        process.join()
