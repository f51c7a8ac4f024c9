"""Ticks to bars of a minute with VWAP, as the recording grows; `um pipeline ohlcv --stream` does the same.

spark-submit examples/spark/ohlcv.py RECORDING DEFINITION BARS

RECORDING is a folder of `um record '^Ticks/'`, DEFINITION a file with the fields of a tick, at least time
(nanoseconds), price and size, BARS the folder for Parquet. Ends when all that is recorded so far is done; started again
it goes on there, because the checkpoint beside BARS knows where that was.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

recording, definition, out = sys.argv[1:4]
spark = SparkSession.builder.appName("bars").getOrCreate()

ticks = (
    spark.readStream.format("ultramessaging")
    .option("recording", recording)
    .option("definition", definition)
    .option("startingOffsets", "earliest")
    .load()
)
# Of ticks of the same time, the one that was sent first is the earlier one.
order = F.struct("time", "source", "session", "sequence")
bars = (
    ticks.withColumn("moment", F.expr("timestamp_micros(time div 1000)"))
    .withWatermark("moment", "30 seconds")
    .groupBy(F.window("moment", "1 minute"), "topic")
    .agg(
        F.min_by("price", order).alias("open"),
        F.max("price").alias("high"),
        F.min("price").alias("low"),
        F.max_by("price", order).alias("close"),
        F.sum("size").alias("volume"),
        (F.sum(F.col("price") * F.col("size")) / F.sum("size")).alias("vwap"),
        F.count("*").alias("ticks"),
    )
    .select(F.col("window.start").alias("begin"), "topic", "open", "high", "low", "close", "volume", "vwap", "ticks")
)
query = (
    bars.writeStream.format("parquet")
    .option("path", out)
    .option("checkpointLocation", f"{out}.checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
spark.read.parquet(out).orderBy("begin", "topic").show(truncate=False)
