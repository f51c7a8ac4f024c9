"""Percentiles of the time from sending to arrival, by topic; `um pipeline latency` does so for each hop, with plots.

spark-submit examples/spark/latency.py RECORDING PROPERTY

PROPERTY is the message property in which the publisher says when it has sent a message, in nanoseconds.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

recording, sent = sys.argv[1:3]
spark = SparkSession.builder.appName("latency").getOrCreate()
rows = spark.read.format("ultramessaging").option("recording", recording).option("includeProperties", "true").load()

micros = (F.col("timestamp_ns") - F.col("properties")[sent].cast("long")) / 1000
points = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
spread = rows.withColumn("us", micros).where("us is not null").groupBy("topic")
spread.agg(
    F.count("*").alias("messages"),
    *[F.percentile_approx("us", share, 1_000_000).alias(f"{name} us") for name, share in points.items()],
    F.max("us").alias("max us"),
).orderBy("topic").show(truncate=False)
