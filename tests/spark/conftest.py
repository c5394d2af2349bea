"""One Spark inside the test process, for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import viewlet.spark

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # nothing here runs long enough to be worth optimising


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = viewlet.spark.session("local[2]", app="viewlet tests", **{"spark.driver.defaultJavaOptions": SHORT_LIVED})
    yield session
    session.stop()


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On one worker of xdist, so that there is one Spark; tests that say another group have another."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark"))
