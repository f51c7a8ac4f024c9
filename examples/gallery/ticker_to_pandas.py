"""A ticker into pandas: prices go out as rows of an array and come in as columns."""

import numpy as np
import pandas as pd

from um_cffi import Context, Receiver, Source

TICK = np.dtype([("second", "<u4"), ("price", "<f8"), ("volume", "<u4")])

ticks = np.zeros(3600, TICK)
ticks["second"] = np.arange(3600)
ticks["price"] = 100 + np.sin(ticks["second"] / 600).round(2)
ticks["volume"] = 100

frames: list[pd.DataFrame] = []
with Context() as ctx, Receiver(ctx, "AAPL") as receiver, Source(ctx, "AAPL") as source:
    source.wait_receivers()
    source.send_many(ticks, flush=True)
    for batch in receiver.batches():
        frames.append(pd.DataFrame(batch.decode(TICK)))
        if sum(map(len, frames)) == 3600:
            break

frame = pd.concat(frames)
minutes = frame.groupby(frame["second"] // 60)["price"].ohlc()
print(minutes.head(3).to_string())
