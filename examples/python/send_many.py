"""Send a whole array with one call that loops in C, and see how fast that is."""

from __future__ import annotations

import time

import numpy as np

from um_cffi import Context, Receiver, Source

COUNT, SIZE = 200_000, 64

rows = np.zeros((COUNT, SIZE), np.uint8)
rows[:, 0] = np.arange(COUNT) % 251

received = 0
with Context() as sending, Context() as receiving:
    receiver, source = Receiver(receiving, "Rows"), Source(sending, "Rows")
    source.wait_receivers()
    begin = time.perf_counter()
    sent = source.send_many(rows, flush=True)
    middle = time.perf_counter()
    for batch in receiver.batches(timeout=10, events=False):
        received += len(batch)
        if received == COUNT or not batch:  # an empty batch: ten seconds without a message
            break
    end = time.perf_counter()
print(f"{sent} messages of {SIZE} bytes: handed over at {sent / (middle - begin) / 1e6:.1f} million/s,")
print(f"received {received} at {received / (end - begin) / 1e6:.1f} million/s")
