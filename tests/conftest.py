"""Hypothesis draws the same examples on every run, so that a test means the same everywhere.

To explore instead: ``pytest --hypothesis-profile explore tests/laws tests/engines``.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile("repeat")
