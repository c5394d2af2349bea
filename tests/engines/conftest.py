"""How much the machine code of tests is worth optimising."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.conformance import compiled_quickly


@pytest.fixture(scope="module")
def quick_compiler() -> Iterator[None]:
    """For suites of many programs that run for a moment each. The paper's queries are compiled as users have them."""
    with compiled_quickly():
        yield
