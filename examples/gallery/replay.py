"""A recording, sent again at the pace at which it came: here ten times as fast."""

import time

import polars as pl

from um_cffi import Context, Receiver, Source

SPEED = 10
recording = pl.DataFrame(
    {
        "payload": [b"%d" % number for number in range(100)],
        "timestamp": pl.Series([number * 50_000_000 for number in range(100)]).cast(pl.Datetime("ns", "UTC")),
    }
)  # pl.read_parquet("recording.parquet") of the program before this one has these columns, too

with Context() as ctx, Receiver(ctx, "replay") as receiver, Source(ctx, "replay") as source:
    source.wait_receivers()
    began = time.monotonic()
    offsets = (recording["timestamp"] - recording["timestamp"][0]).dt.total_nanoseconds() / 1e9 / SPEED
    for moment, part in recording.with_columns(at=offsets.round(2)).group_by("at", maintain_order=True):
        time.sleep(max(0.0, began + moment[0] - time.monotonic()))
        source.send_many(part, flush=True)
    seconds = time.monotonic() - began
    got = [bytes(message) for _, message in zip(range(100), receiver)]

print(got == recording["payload"].to_list(), f"{seconds > 0.4}")
