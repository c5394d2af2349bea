"""What the tests of the paper's examples share: schemas in a word, triggers as text, the update that makes a delta."""

from __future__ import annotations

from collections.abc import Iterable

from viewlet.algebra.query import Query
from viewlet.compiler.context import Context
from viewlet.compiler.delta import delta
from viewlet.compiler.simplify import simplify
from viewlet.program.text import statement_to_text
from viewlet.program.trigger import Event, Program, Statement
from viewlet.schema import BIGINT, Column, Relation

KINDS = {"insert into": "+", "delete from": "-", "update": "Δ"}


def stream(name: str, *columns: str, rows: int = 10_000, static: bool = False) -> Relation:
    return Relation(name, tuple(Column(c, BIGINT, nullable=False) for c in columns), static=static, rows=rows)


def insertion(relation: Relation) -> Event:
    """+R(x⃗)"""
    return Event("+", relation.name, tuple(f"@{c.name}" for c in relation.columns))


def deletion(relation: Relation) -> Event:
    """−R(x⃗)"""
    return Event("-", relation.name, tuple(f"@{c.name}" for c in relation.columns))


def simple_delta(q: Query, *events: Event) -> Query:
    """Δ…ΔQ, simplified where the parameters of all ``events`` have values."""
    context = Context(frozenset(p for e in events for p in e.params))
    for event in events:
        q = simplify(delta(q, event), context)
    return q


def statements(program: Program, event: str) -> tuple[Statement, ...]:
    """The statements of ``"insert into R"``."""
    words, _, relation = event.rpartition(" ")
    (trigger,) = (t for t in program.triggers if (t.event.kind, t.event.relation) == (KINDS[words], relation))
    return trigger.statements


def trigger_text(program: Program, event: str) -> list[str]:
    """The same as Figure 4 prints it, each on one line."""
    words, _, relation = event.rpartition(" ")
    params = next(
        t.event.params for t in program.triggers if (t.event.kind, t.event.relation) == (KINDS[words], relation)
    )
    return [" ".join(statement_to_text(s, params).split()) for s in statements(program, event)]


def definitions(program: Program, names: Iterable[str] | None = None) -> dict[str, str]:
    """View ↦ definition, as text."""
    wanted = set(names) if names is not None else {v.name for v in program.views}
    return {v.read.text: v.definition.text for v in program.views if v.name in wanted}
