"""Every rule on its pairs: as text, in meaning on random databases, and in what it may do to binding patterns (§3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from tests.rules.pairs import RULES, Pair, all_pairs
from viewlet.algebra.evaluate import Entries, evaluate, over
from viewlet.algebra.query import ZERO, Delta, Query, Rel, View, children, inputs, outputs
from viewlet.algebra.terms import Scalar
from viewlet.compiler.context import Context

DOMAIN = (0, 1, 2)
MULTIPLICITIES = (1, 2, -1, 3)
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
    columns = tuple(sorted(outputs(pair.before)))
    results = []
    for seed in range(60):
        database, env = random_database(pair.before, seed), random_inputs(pair.before, pair.context, seed)
        before = evaluate(pair.before, over(database), columns, env)
        assert evaluate(pair.after, over(database), columns, env) == before, (database, env)
        results.append(before)
    assert any(results) == (pair.after != ZERO)


@pytest.mark.parametrize("pair", APPLIED, ids=str)
def test_binding_pattern(pair: Pair) -> None:
    assert pair.after is not None
    assert keeps_binding_pattern(pair.before, pair.after, pair.context)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_has_pairs(name: str) -> None:
    """At least one where it applies, and one that it leaves alone."""
    mine = [p for p in PAIRS if p.rule.name == name]
    assert {p.after is None for p in mine} == {True, False}


def keeps_binding_pattern(before: Query, after: Query, context: Context) -> bool:
    """Outputs are kept, what comes from outside may become one, no input is added; 0 has any outputs."""
    if after == ZERO:
        return True
    allowed = outputs(before) | inputs(before) | context.bound
    return inputs(after) <= inputs(before) and outputs(before) <= outputs(after) <= allowed


def random_database(q: Query, seed: int) -> dict[str, Entries]:
    """A GMR over few values for every atom of Q, with deletions (negative multiplicities) among the tuples."""
    random = Random(seed)
    arities = {name: arity for name, arity in atoms(q)}
    return {name: random_entries(random, arity) for name, arity in sorted(arities.items())}


def random_entries(random: Random, arity: int) -> Entries:
    tuples = list(product(DOMAIN, repeat=arity))
    chosen = random.sample(tuples, random.randint(1, len(tuples)))
    return {row: random.choice(MULTIPLICITIES) for row in chosen}


def random_inputs(q: Query, context: Context, seed: int) -> dict[str, Scalar]:
    random = Random(seed)
    return {name: random.choice(DOMAIN) for name in sorted(inputs(q) | context.bound)}


def atoms(q: Query) -> Iterator[tuple[str, int]]:
    match q:
        case Rel(name, names):
            yield name, len(names)
        case Delta(name, names):
            yield f"Δ{name}", len(names)
        case View(name, ins, outs):
            yield name, len(ins) + len(outs)
    for child in children(q):
        yield from atoms(child)
