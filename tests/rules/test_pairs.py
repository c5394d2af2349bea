"""Every rule on its pairs: as text, in meaning on random databases, and in what it does to binding patterns (§3.3)."""

from __future__ import annotations

import pytest

from tests.rules.meaning import keeps_binding_pattern, values
from tests.rules.pairs import RULES, Pair, all_pairs
from viewlet.algebra.query import ZERO

PAIRS = all_pairs()
APPLIED = [p for p in PAIRS if p.after is not None]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_text(pair: Pair) -> None:
    after = pair.rule(pair.before, pair.context)
    assert (after and after.text) == (pair.after and pair.after.text)


@pytest.mark.parametrize("pair", APPLIED, ids=str)
def test_meaning(pair: Pair) -> None:
    """Both sides are the same GMR, and not always the empty one, unless the rule says that it is."""
    assert pair.after is not None
    before, after = values(pair.context, pair.before, pair.after)
    assert after == before
    assert any(before) == (pair.after != ZERO)


@pytest.mark.parametrize("pair", APPLIED, ids=str)
def test_binding_pattern(pair: Pair) -> None:
    assert pair.after is not None
    assert keeps_binding_pattern(pair.before, pair.after, pair.context)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_has_pairs(name: str) -> None:
    """At least one where it applies, and one that it leaves alone."""
    mine = [p for p in PAIRS if p.rule.name == name]
    assert {p.after is None for p in mine} == {True, False}
