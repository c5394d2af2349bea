"""One Spark inside the test process, for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import viewlet.spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = viewlet.spark.session("local[2]", app="viewlet tests")
    yield session
    session.stop()
