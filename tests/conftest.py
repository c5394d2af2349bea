"""Hypothesis draws the same examples on every run, so that a test means the same everywhere.

To go deeper, ``make soak`` runs the random families with more seeds: ``pytest --soak 20``. To explore other examples,
run ``pytest --hypothesis-profile explore tests/laws tests/engines``.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from viewlet.engines.native import build
from viewlet.loops import pipeline
from viewlet.loops.steps import Block
from viewlet.loops.text import parse_block, show_block

# Compiled programs are kept with the other caches of the tests, not among the user's.
os.environ.setdefault("VIEWLET_CACHE", str(Path(__file__).parent.parent / ".pytest_cache" / "viewlet"))

if shutil.which("g++") or shutil.which("clang++"):  # a wheel with a compiler in it is left as it is
    os.environ.setdefault("CXX", str(Path(__file__).parent / "quick-c++"))

settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile("repeat")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", type=int, default=1, help="how many seeds each random family has (1)", metavar="SEEDS")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes ``seeded`` is run with each seed. The first is the one that ``make test`` has."""
    if "seeded" in metafunc.fixturenames:
        metafunc.parametrize("seeded", range(metafunc.config.getoption("--soak")))


@pytest.fixture
def soaking(request: pytest.FixtureRequest) -> bool:
    """Whether there is time for everything: ``make soak``."""
    return bool(request.config.getoption("--soak") > 1)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What stays together on one worker begins first, so that none is left with it when all others are done."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.fixture(scope="session", autouse=True)
def _seldom_collected() -> Iterator[None]:
    """To look through the modules and nodes that stay took a sixth of the time of tests that compile."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    yield
    gc.set_threshold(*usual)
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def _everything_compiled_is_kept() -> Iterator[None]:
    """A run of the tests makes more programs than a user's cache keeps, and wants some of them again at its end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "KEPT_ARTEFACTS", 5_000)
        yield


@pytest.fixture(scope="session", autouse=True)
def _every_nest_comes_back() -> Iterator[None]:
    """parse(print(x)) = x for each loop nest that any test makes, plans and single statements alike."""
    seen: set[str] = set()

    def comes_back(block: Block) -> None:
        if (text := show_block(block)) not in seen:
            assert parse_block(text) == block, text
            seen.add(text)

    def verify_plan(plan: pipeline.Plan, *rest: Any) -> None:
        verify(plan, *rest)
        for block in plan.blocks:
            comes_back(block)

    def finished(block: Block) -> Block:
        done = finish(block)
        comes_back(done)
        return done

    verify, finish = pipeline.verify_plan, pipeline.finished
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "verify_plan", verify_plan)
        patch.setattr(pipeline, "finished", finished)
        yield
