"""Hypothesis draws the same examples on every run, so that a test means the same everywhere.

To explore instead: ``pytest --hypothesis-profile explore tests/laws tests/engines``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Compiled programs are kept with the other caches of the tests, not among the user's.
os.environ.setdefault("VIEWLET_CACHE", str(Path(__file__).parent.parent / ".pytest_cache" / "viewlet"))

settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile("repeat")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What stays together on one worker begins first, so that none is left with it when all others are done."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
