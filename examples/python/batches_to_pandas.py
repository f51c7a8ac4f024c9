"""Take batches and turn them into pandas and Arrow columns. Needs pandas and pyarrow."""

from __future__ import annotations

import numpy as np
import pandas as pd

from um_cffi import Context, Receiver, Source

TICK = np.dtype([("id", "<u4"), ("price", "<f8")])
COUNT = 100_000

ticks = np.zeros(COUNT, TICK)
ticks["id"] = np.arange(COUNT)
ticks["price"] = np.sin(ticks["id"] / 1000) + 100

frames, payload_bytes, received = [], 0, 0
with Context() as sending, Context() as receiving:
    receiver, source = Receiver(receiving, "Ticks"), Source(sending, "Ticks")
    source.wait_receivers()
    source.send_many(ticks, flush=True)
    while received < COUNT:
        batch = receiver.recv_batch(timeout=10)
        if batch is None:
            raise SystemExit(f"only {received} of {COUNT} messages have come")
        frames.append(pd.DataFrame(batch.decode(TICK)))
        payload_bytes += batch.to_arrow().column("payload").nbytes
        received += len(frames[-1])

frame = pd.concat(frames, ignore_index=True)
print(frame["price"].describe().round(3).to_string())
print(f"{received} messages, {payload_bytes >> 10} KiB of Arrow payload columns")
