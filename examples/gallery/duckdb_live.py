"""SQL over what arrives: DuckDB reads the receiver as an Arrow stream, and no table is made in between."""

import duckdb
import numpy as np

from um_cffi import Context, Source, WildcardReceiver

TRADE = np.dtype([("price", "<f8"), ("size", "<u4")])

with Context() as ctx, WildcardReceiver(ctx, "^Trades/") as receiver:
    sources = [Source(ctx, f"Trades/{symbol}") for symbol in ("AAPL", "IBM")]
    receiver.wait_ready(len(sources), timeout=60)
    for at, source in enumerate(sources):
        trades = np.zeros(1000, TRADE)
        trades["price"] = 100 * (at + 1) + np.arange(1000) % 10
        trades["size"] = 10
        source.send_many(trades, flush=True)

    trades_now = receiver.arrow_reader(TRADE, timeout=5)  # five seconds without trades ends the query
    query = """
        select topic, count(*) as trades, sum(price * size) / sum(size) as vwap
        from trades_now group by topic order by topic
    """
    for topic, count, vwap in duckdb.execute(query).fetchall():
        print(topic, count, vwap)
