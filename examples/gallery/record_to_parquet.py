"""Everything of some topics into a Parquet file, with topic and time of arrival, a row group for each batch."""

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq

from um_cffi import Context, Source, WildcardReceiver

with Context() as ctx, WildcardReceiver(ctx, "^Prices/") as receiver:
    sources = [Source(ctx, f"Prices/{symbol}") for symbol in ("AAPL", "IBM", "MSFT")]
    receiver.wait_ready(len(sources), timeout=60)
    for source in sources:
        source.send_many((f"{price}".encode() for price in range(100, 1100)), flush=True)

    # A recorder would leave the timeout out, and end when a signal handler closes the receiver.
    stream = pa.RecordBatchReader.from_stream(receiver.arrow_reader(timeout=5))
    with pq.ParquetWriter("recording.parquet", stream.schema) as file:
        for batch in stream:
            file.write_batch(batch)

table = pq.read_table("recording.parquet")
print(table.num_rows, table.schema.names)
print(sorted(Counter(table["topic"].to_pylist()).items()))
