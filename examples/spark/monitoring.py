"""The report of a day of monitored processes; `um pipeline monitoring` does the same for each day.

um record /29west/statistics -o RECORDING
spark-submit examples/spark/monitoring.py RECORDING YYYY-MM-DD report.html

The records are messages of a topic, which monitored() decodes: rows with a map of numbers, for whatever else is asked.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from um_cffi.spark import pipelines

recording, day, path = sys.argv[1:4]
spark = SparkSession.builder.appName("monitoring").getOrCreate()

records = pipelines.monitored(pipelines.statistics(spark, recording, day=day)).cache()
counted = pipelines.increases(records).cache()

# A question of one's own: who lost datagrams, and how many for each that came?
lossy = counted.where("kind = 'receiver' and counted['lost'] > 0").groupBy("application", "name")
lossy.agg(F.sum(F.col("counted")["lost"]).alias("lost"), F.sum(F.col("counted")["msgs_rcved"]).alias("came")).show()

pipelines.write_report(pipelines.report_of(day, records, counted, recording), path)
