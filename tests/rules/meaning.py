"""The meaning of the two sides of a rewrite: over the same random databases, for the same values from outside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

from viewlet.algebra.evaluate import Entries, evaluate, over
from viewlet.algebra.query import ZERO, Delta, Query, Rel, View, children, inputs, outputs
from viewlet.algebra.terms import Scalar
from viewlet.compiler.context import Context

DOMAIN = (0, 1, 2)
MULTIPLICITIES = (1, 2, -1, 3)
COUNTS = (1, 2, 3)
DATABASES = 60


def values(context: Context, before: Query, *after: Query) -> list[list[Entries]]:
    """For each query its GMR over every random database, by the columns of the first."""
    columns = tuple(sorted(outputs(before)))
    worlds = [
        (random_database(before, seed, context.counted), random_inputs(before, context, seed))
        for seed in range(DATABASES)
    ]
    return [[evaluate(q, over(database), columns, env) for database, env in worlds] for q in (before, *after)]


def keeps_binding_pattern(before: Query, after: Query, context: Context) -> bool:
    """Outputs are kept, what comes from outside may become one, no input without a value comes; 0 has any outputs."""
    given = inputs(before) | context.bound
    kept = outputs(before) <= outputs(after) <= outputs(before) | given
    return after == ZERO or (kept and inputs(after) <= given)


def random_database(q: Query, seed: int, counted: bool = False) -> dict[str, Entries]:
    """A GMR over few values for every atom of Q, with deletions (negative multiplicities) among the tuples.

    Where relations are ``counted``, only an update has deletions.
    """
    random = Random(seed)
    arities = dict(atoms(q))
    return {
        name: random_entries(random, arity, COUNTS if counted and not name.startswith("Δ") else MULTIPLICITIES)
        for name, arity in sorted(arities.items())
    }


def random_entries(random: Random, arity: int, multiplicities: tuple[int, ...]) -> Entries:
    tuples = list(product(DOMAIN, repeat=arity))
    chosen = random.sample(tuples, random.randint(1, len(tuples)))
    return {row: random.choice(multiplicities) for row in chosen}


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
