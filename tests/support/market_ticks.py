"""Ticks for tests: what is published, and what bars pandas makes of it.

As a program: `market_ticks.py FOLDER COUNT PERCENT` publishes COUNT ticks over LBT-RM and records them into FOLDER,
while the kernel loses PERCENT of the datagrams. It has to run in a private network. Prints JSON: what was recorded and
lost.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

SYMBOLS = ("AAPL", "GOOG", "MSFT")
TICK = np.dtype([("time", "<i8"), ("price", "<f8"), ("size", "<i8")])
BEGIN_NS = 1_700_000_000_000_000_000
NAMES = ("topic", "open", "high", "low", "close", "volume", "vwap", "ticks")
SENT = "sent"  # property of the last tick: when it was sent
PORTS = "14390-14400"  # where LBT-RM data and NAKs go


def definition() -> Any:
    """What a tick is as a pre-defined message."""
    from um_cffi import pdm

    return pdm.Definition.from_dtype(TICK, id=16)


def ticks(count: int, seed: int = 1, every_ns: int = 1_000_000) -> npt.NDArray[Any]:
    """Ticks of all symbols in turn, one about every millisecond, a part of them at equal times and some before those
    in front of them. Prices are whole 64ths and sums of them exact, in whatever order they are added."""
    draw = np.random.default_rng(seed)
    made = np.zeros(count, TICK)
    made["time"] = BEGIN_NS + np.arange(count) // 2 * 2 * every_ns + draw.integers(-3, 4, count) * every_ns
    made["price"] = 100 + draw.integers(-640, 640, count) / 64
    made["size"] = draw.integers(1, 500, count)
    return made


def closing(made: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A tick two days behind all others: a watermark of a day closes all windows but its own."""
    last = made[-1:].copy()
    last["time"] = made["time"].max() + 2 * 86_400 * 10**9
    return last


def topic(symbol: str) -> str:
    return f"Ticks/{symbol}"


def frame(made: npt.NDArray[Any]) -> pd.DataFrame:
    """As a table with topics and, by symbol, the sequence numbers that a source gives."""
    table = pd.DataFrame({name: made[name] for name in ("time", "price", "size")})
    numbers = np.arange(len(made))
    table["topic"] = [topic(SYMBOLS[at]) for at in numbers % len(SYMBOLS)]
    table["sequence"] = numbers // len(SYMBOLS)
    return table.assign(source="s", session="1")


def bars(made: npt.NDArray[Any], window_ns: int) -> list[tuple[Any, ...]]:
    """What the bars of the ticks are: begin in microseconds, topic, open, high, low, close, volume, VWAP, ticks."""
    table = frame(made)
    table["begin"] = table["time"] // window_ns * window_ns // 1000
    table["value"] = table["price"] * table["size"]
    table = table.sort_values(["time", "sequence"], kind="stable")
    grouped = table.groupby(["begin", "topic"], sort=True)
    found = pd.DataFrame(
        {
            "open": grouped["price"].first(),
            "high": grouped["price"].max(),
            "low": grouped["price"].min(),
            "close": grouped["price"].last(),
            "volume": grouped["size"].sum(),
            "vwap": grouped["value"].sum() / grouped["size"].sum(),
            "ticks": grouped["size"].count(),
        }
    ).reset_index()
    return [tuple(row) for row in found.itertuples(index=False)]


def rows_of(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Bars that Spark has made, as rows with names, as those of bars()."""
    since = datetime(1970, 1, 1)
    found = []
    for row in rows:
        begin = (row["begin"].replace(tzinfo=None) - since) // timedelta(microseconds=1)
        found.append((begin, *(row[name] for name in NAMES)))
    return sorted(found)


# -- as a program --


def lose(percent: int) -> None:
    """The kernel drops so many of the datagrams that come in."""
    for words in (
        "add table ip feed",
        "add chain ip feed in { type filter hook input priority 0; }",
        f"add rule ip feed in udp dport {PORTS} numgen random mod 100 < {percent} counter drop",
    ):
        subprocess.run(["nft", words], check=True)


def publish(folder: Path, count: int, percent: int) -> dict[str, int]:
    from pairs import HANG, loopback, until

    from um_cffi import Source
    from um_cffi.recording import Recorder, Recording

    made, tick = ticks(count), definition()
    # Datagrams of one packet each, and many of them, so that some are lost.
    options = {"um_profile": "low_latency", "um_udp_segmentation_offload": 0, "transport_lbtrm_datagram_max_size": 1472}
    with loopback(options) as sending, loopback(options) as receiving:
        sources = [
            Source(sending, topic(symbol), transport="lbtrm", transport_topic_sequence_number_info_interval=200)
            for symbol in SYMBOLS
        ]
        with Recorder(
            receiving,
            folder,
            "^Ticks/",
            segment_seconds=0.5,
            flush_seconds=0.05,
            source_timestamp=SENT,
            options={"transport_lbtrm_nak_generation_interval": 60_000},  # asks as long as a test may take
        ) as recorder:
            recorder.receiver.wait_ready(len(sources), HANG)
            if percent:
                lose(percent)
            step = 3000
            for begin in range(0, count, step):
                for at, source in enumerate(sources):
                    source.send_many(tick.encode_many(made[begin + at : begin + step : len(SYMBOLS)]), flush=True)
                # No further ahead than what a source keeps for repairs.
                until(lambda: recorder.stats().messages + recorder.stats().lost > begin - 20 * step)  # noqa: B023
            until(lambda: recorder.stats().messages + recorder.stats().lost >= count)
            # What closes all windows comes when everything else can be read, however topics go on.
            until(lambda: sum(each.messages for each in Recording(folder).segments()) >= count)
            last = bytes(tick.encode_many(closing(made))[0])
            sources[0].send(last, flush=True, properties={SENT: time.time_ns()})
            until(lambda: recorder.stats().messages + recorder.stats().lost >= count + 1)
            missing = sum(getattr(session, "lost", 0) for session in receiving.receiver_stats())
        stats = recorder.stats()
    return {"messages": stats.messages, "lost": stats.lost, "dropped": stats.dropped, "repaired": missing}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    print(json.dumps(publish(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))), flush=True)
