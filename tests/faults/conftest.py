"""One cluster for all tests that need one, and one driver on it for all that do not kill it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.cluster import Cluster, started_cluster
from tests.spark.conftest import spark as spark
from tests.spark.drive import Driver, started_driver


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def driver(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with started_driver(tmp_path_factory.mktemp("driver") / "log", cluster.settings) as driver:
        yield driver
