"""The newest value of every topic, for a display that is slower than the feed."""

import numpy as np

from um_cffi import Context, Source, WildcardReceiver

newest: dict[str, float] = {}
with Context() as ctx, WildcardReceiver(ctx, "^Rates/") as receiver:
    sources = [Source(ctx, f"Rates/{name}") for name in ("EURUSD", "USDJPY", "GBPUSD")]
    receiver.wait_ready(len(sources), timeout=60)
    for at, source in enumerate(sources):
        source.send_many((at + np.arange(1, 10001) / 10000).reshape(-1, 1), flush=True)

    updates = 0
    while updates < 30000:
        batch = receiver.recv_batch(timeout=10, events=False)
        if batch is None:
            raise SystemExit(f"only {updates} updates have come")
        values = batch.decode("<f8")
        updates += len(values)
        # One look at each topic of a batch, however many messages there are: the last of its rows.
        topics, last = np.unique(batch.records["topic"][::-1], return_index=True)
        for topic, row in zip(topics, len(values) - 1 - last):
            newest[batch.topics[topic]] = float(values[row])

for name in sorted(newest):
    print(name, newest[name])
