"""What was lost, recovered and out of order in a recording; `um pipeline quality` does the same and more.

spark-submit examples/spark/quality.py RECORDING

With includeLosses there are rows also for what did not come: `kind` is "loss" or "dropped", `count` how many.
"""

import sys

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

RETRANSMIT = 8  # um_cffi.MessageFlags.RETRANSMIT: recovered, not from the live stream

spark = SparkSession.builder.appName("quality").getOrCreate()
rows = spark.read.format("ultramessaging").option("recording", sys.argv[1]).option("includeLosses", "true").load()

# In the order of arrival: a message is out of order when one of a larger number has come before.
arrival = Window.partitionBy("topic", "source", "session").orderBy("timestamp_ns", "sequence")
before = arrival.rowsBetween(Window.unboundedPreceding, -1)
message = F.col("kind") == "message"
looked = rows.withColumn("newest", F.max(F.when(message, F.col("sequence"))).over(before))
sessions = looked.groupBy("topic", "source", "session").agg(
    F.count_if(message).alias("messages"),
    F.sum(F.when(F.col("kind") == "loss", F.col("count")).otherwise(0)).alias("lost"),
    F.sum(F.when(F.col("kind") == "dropped", F.col("count")).otherwise(0)).alias("dropped"),
    F.count_if(message & (F.col("flags").bitwiseAND(RETRANSMIT) != 0)).alias("recovered"),
    F.count_if(message & (F.col("sequence") < F.col("newest"))).alias("out_of_order"),
)
sessions.orderBy("topic", "source", "session").show(truncate=False)

timeline = rows.groupBy(F.window("timestamp", "1 second"), "source").agg(
    F.count_if(message).alias("messages"),
    F.sum(F.when(F.col("kind").isin("loss", "dropped"), F.col("count")).otherwise(0)).alias("missing"),
)
timeline.where("missing > 0").orderBy("window", "source").show(truncate=False)
