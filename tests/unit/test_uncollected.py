"""What a compilation made has no cycles, so Python need not look for them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from viewlet.algebra.remembered import uncollected

MANY = 20_000


@pytest.fixture(autouse=True)
def nothing_frozen() -> Iterator[None]:
    """As in a process of a user; that of the tests has frozen what it imported."""
    were = gc.get_freeze_count()
    gc.unfreeze()
    yield
    if were:
        gc.freeze()


def made() -> list[list[int]]:
    with uncollected():
        return [[i] for i in range(MANY)]


def test_what_was_made_goes_to_the_oldest_generation_without_a_search() -> None:
    gc.collect()
    kept = made()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    assert len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1)) < MANY / 2
    assert len(kept) == MANY


def test_what_a_user_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        made()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
