"""What Spark looks for: a module named pyspark_* with a DefaultSource is registered by Spark 4 without any call.

So `spark.read.format("ultramessaging")` works wherever um-cffi is installed. Everything is in um_cffi.spark.
"""

from um_cffi.spark import UltraMessagingDataSource as DefaultSource

__all__ = ["DefaultSource"]
