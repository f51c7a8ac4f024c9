"""One Spark session for all files named test_spark_*, since a Java machine takes seconds to start.

Everything is bound to loopback, so that the tests hold in a private network where nothing else is up. Workers find the
package and the binding of the build by the environment that they inherit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from spark_sessions import environment, session

os.environ.update(environment())


@pytest.fixture(scope="session", name="spark")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with two cores. What a test sets in its configuration it sets back."""
    spark = session(tmp_path_factory.mktemp("spark"))
    yield spark
    spark.stop()
