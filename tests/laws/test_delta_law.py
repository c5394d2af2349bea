"""The law of deltas (§3.2): Q(D + ΔD) = Q(D) + ΔQ(D, ΔD), on GMRs with negative and fractional multiplicities.

For insertions, deletions and bulk updates, for deltas as the rules give them and simplified, and for deltas of deltas.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.queries import MULTIPLICITIES, NUMBERS, SCHEMA, STRINGS, databases, is_string, queries
from viewlet.algebra.evaluate import Entries, evaluate, over
from viewlet.algebra.gmr import GMR
from viewlet.algebra.query import Query, outputs
from viewlet.algebra.terms import Scalar
from viewlet.compiler.context import Context
from viewlet.compiler.delta import delta
from viewlet.compiler.simplify import simplify
from viewlet.program.trigger import Event

Database = dict[str, Entries]


def plain(database: dict[str, GMR]) -> Database:
    return {name: dict(gmr.entries) for name, gmr in database.items()}


def plus(a: Entries, b: Entries, sign: int = 1) -> Entries:
    total = dict(a)
    for key, m in b.items():
        total[key] = total.get(key, 0) + sign * m
    return {key: m for key, m in total.items() if m != 0}


def updated(database: Database, relation: str, change: Entries) -> Database:
    return {**database, relation: plus(database[relation], change)}


def columns(q: Query) -> tuple[str, ...]:
    return tuple(sorted(outputs(q)))


@st.composite
def changes(draw: st.DrawFn, prefix: str = "@") -> tuple[Event, Entries, dict[str, Scalar]]:
    """An event, the change it makes, and the values of its parameters."""
    relation = draw(st.sampled_from(sorted(SCHEMA)))
    domains = [st.sampled_from(STRINGS if is_string(c) else NUMBERS) for c in SCHEMA[relation]]
    kind = draw(st.sampled_from("+-Δ"))
    if kind == "Δ":
        entries = st.dictionaries(st.tuples(*domains), st.sampled_from(MULTIPLICITIES), min_size=1, max_size=4)
        return Event("Δ", relation, ()), dict(draw(entries)), {}
    row = tuple(draw(d) for d in domains)
    params = tuple(f"{prefix}{c}" for c in SCHEMA[relation])
    event = Event(kind, relation, params)  # type: ignore[arg-type]
    return event, {row: event.sign}, dict(zip(params, row, strict=True))


def with_update(database: Database, event: Event, change: Entries) -> Database:
    """The database a delta is evaluated over: the old one, and for a bulk update ΔR beside it."""
    return {**database, f"Δ{event.relation}": change} if event.kind == "Δ" else database


@given(queries(), databases(), changes())
@settings(max_examples=300)
def test_delta_law(q: Query, database: dict[str, GMR], update: tuple[Event, Entries, dict[str, Scalar]]) -> None:
    """Q(D + ΔD) = Q(D) + ΔQ, for the raw and for the simplified delta"""
    event, change, params = update
    before, names = plain(database), columns(q)
    new = evaluate(q, over(updated(before, event.relation, change)), names)
    old = evaluate(q, over(before), names)
    raw = delta(q, event)
    simple = simplify(raw, Context(bound=frozenset(event.params), event=event))
    for d in (raw, simple):
        difference = evaluate(d, over(with_update(before, event, change)), names, params)
        assert plus(old, difference) == new, d.text


@given(queries(), databases(), changes("@"), changes("#"))
@settings(max_examples=200)
def test_second_order_delta_law(
    q: Query,
    database: dict[str, GMR],
    first: tuple[Event, Entries, dict[str, Scalar]],
    second: tuple[Event, Entries, dict[str, Scalar]],
) -> None:
    """ΔQ(D + Δ'D) = ΔQ(D) + Δ'ΔQ(D)"""
    (event, change, params), (event2, change2, params2) = first, second
    if event.kind == "Δ" and event2.kind == "Δ" and event.relation == event2.relation:
        return  # one name, ΔR, cannot stand for two updates
    before, names = plain(database), columns(q)
    context = Context(bound=frozenset(event.params), event=event)
    d = simplify(delta(q, event), context)
    after = updated(before, event2.relation, change2)
    dd = delta(d, event2)
    both = context.binding(frozenset(event2.params))
    for second_order in (dd, simplify(dd, both)):
        here = with_update(with_update(before, event, change), event2, change2)
        difference = evaluate(second_order, over(here), names, params | params2)
        old = evaluate(d, over(with_update(before, event, change)), names, params)
        new = evaluate(d, over(with_update(after, event, change)), names, params)
        assert plus(old, difference) == new, second_order.text


@given(queries(), databases())
@settings(max_examples=300)
def test_simplification_keeps_the_meaning(q: Query, database: dict[str, GMR]) -> None:
    """simplify(Q) has Q's outputs and Q's value"""
    simple = simplify(q, Context())
    read = over(plain(database))
    assert evaluate(simple, read, columns(q)) == evaluate(q, read, columns(q)), simple.text


@given(queries(), databases(), changes())
@settings(max_examples=150)
def test_tables_count_rows(
    q: Query, database: dict[str, GMR], update: tuple[Event, Entries, dict[str, Scalar]]
) -> None:
    """Where no multiplicity is negative, as in SQL's tables, simplifying may rely on it: Q and ΔQ keep their value"""
    event, change, params = update
    before: Database = {name: {key: abs(m) for key, m in entries.items()} for name, entries in plain(database).items()}
    context = Context(bound=frozenset(event.params), event=event, counted=True)
    for known, given_values, world in ((q, {}, before), (delta(q, event), params, with_update(before, event, change))):
        simple = simplify(known, context)
        expected = evaluate(known, over(world), columns(q), given_values)
        assert evaluate(simple, over(world), columns(q), given_values) == expected, simple.text
