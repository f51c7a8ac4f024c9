"""One Spark session for all files named test_spark_*, since a Java machine takes seconds to start.

Everything is bound to loopback, so that the tests hold in a private network where nothing else is up. Workers find the
package and the binding of the build by the environment that they inherit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from spark_clusters import Cluster
from spark_clusters import cluster as running_cluster
from spark_sessions import environment, session

os.environ.update(environment())


@pytest.fixture(scope="session", name="spark")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with two cores. What a test sets in its configuration it sets back."""
    spark = session(tmp_path_factory.mktemp("spark"))
    yield spark
    spark.stop()


@pytest.fixture(scope="session", name="cluster")
def cluster_of_two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers, for programs that are given its address. They have it one after the other."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as one:
        yield one
