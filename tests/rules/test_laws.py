"""What every rule owes on any query: wherever it applies, the binding pattern and the meaning are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.queries import SCHEMA, databases, queries
from tests.rules.meaning import keeps_binding_pattern
from tests.rules.pairs import FILES
from viewlet.algebra.evaluate import evaluate, over
from viewlet.algebra.gmr import GMR
from viewlet.algebra.query import Bind, Query, Value, children, inputs, outputs
from viewlet.algebra.terms import Scalar
from viewlet.compiler.context import Context
from viewlet.compiler.delta import delta
from viewlet.compiler.simplify import simplify
from viewlet.program.trigger import Event

VALUES: dict[bool, Scalar] = {True: "x", False: 1}


def events() -> st.SearchStrategy[Event]:
    return st.sampled_from([Event("+", name, tuple(f"@{c}" for c in columns)) for name, columns in SCHEMA.items()])


def nodes(q: Query) -> Iterator[Query]:
    """Q and every query in it; the term that a binding names is none: it may be a string."""
    yield q
    for child in children(q):
        if not (isinstance(q, Bind) and isinstance(child, Value)):
            yield from nodes(child)


def given_values(names: frozenset[str]) -> dict[str, Scalar]:
    """One value for each variable from outside: c… is a string, everything else a number."""
    return {name: VALUES[name.lstrip("@").startswith("c")] for name in sorted(names)}


@pytest.mark.parametrize("file", FILES)
@settings(max_examples=150, deadline=None)
@given(queries(), events(), databases())
def test_meaning_and_binding_pattern(file: str, q: Query, event: Event, database: dict[str, GMR]) -> None:
    context = Context(frozenset(event.params), event)
    read = over({name: dict(gmr.entries) for name, gmr in database.items()})
    change = delta(q, event)
    found = {*nodes(q), *nodes(change)}
    if file != "simplifications":  # the other rules are only ever applied to what is in normal form
        found = {simplify(node, context) for node in found}
    for node in found:
        if any(name.startswith("_") for name in inputs(node)):
            continue  # a local variable of a domain, whose type its name does not tell
        for rule in FILES[file]:
            after = rule(node, context)
            if after is None:
                continue
            assert isinstance(node, rule.kinds), f"{rule.name} is about more than it says"
            assert keeps_binding_pattern(node, after, context), (rule.name, node, after)
            columns = tuple(sorted(outputs(node)))
            env = given_values(inputs(node) | context.bound)
            expected = evaluate(node, read, columns, env)
            assert evaluate(after, read, columns, env) == expected, (rule.name, node, after)
