"""Spark reads recordings and publishes what it computes: the data source "ultramessaging" of PySpark 4.

Spark finds it by itself wherever um-cffi is installed (pyspark_ultramessaging); where it does not look,
`spark.dataSource.register(UltraMessagingDataSource)` makes it known. docs/python/spark.md is the guide. Needs PySpark,
pyarrow and a Java runtime: pip install 'um-cffi[spark]'.
"""

from __future__ import annotations

from um_cffi.spark._needs import check_java, need_arrow, need_pyspark

need_pyspark()
from um_cffi.spark._source import UltraMessagingDataSource  # noqa: E402  (says plainly what is missing first)

__all__ = ["UltraMessagingDataSource", "check_java", "need_arrow"]
