"""One cluster for all tests that need one, and a driver on it that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.spark.cluster import Cluster, started_cluster
from tests.spark.conftest import spark as spark
from tests.spark.drive import Driver, started_driver

# A task that takes this long is done twice, if another is over: no task here does unless a test wants it to.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.minTaskRuntime": "2s",
    "spark.speculation.quantile": "0.5",
}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def drivers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Driver]]:
    """A driver that runs: the last one, or another if a test has killed that."""
    started: list[Driver] = []
    log = tmp_path_factory.mktemp("driver") / "log"
    with ExitStack() as ends:

        def running() -> Driver:
            if not started or not started[-1].is_alive:
                started.append(ends.enter_context(started_driver(log, {**cluster.settings, **SPECULATION})))
            return started[-1]

        yield running


@pytest.fixture
def driver(drivers: Callable[[], Driver]) -> Driver:
    return drivers()
