"""Columns of relations that no view reads: they stay out of the calculus while a script is compiled.

A query is its text, and each rewrite looks at all variables. A table of thirty columns, of which a view reads three,
would make both ten times as long. So R(a, b, c) with b and c unread is compiled as R(a), which means Sum_a(R(a, b, c)).
The finished program has all columns again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from viewlet.algebra.query import (
    Bind,
    Delta,
    Exists,
    Join,
    Query,
    Rel,
    Sum,
    Union,
    children,
    different_atoms,
    factors,
    inputs,
    join,
    map_children,
    outputs,
    sum_,
    variables,
)
from viewlet.algebra.rewrite import Trace
from viewlet.compiler.narrow import narrow
from viewlet.program.trigger import Event, MapDefinition, Program, Result, Statement, Trigger
from viewlet.schema import Relation

LEAST_UNREAD = 8  # columns; for fewer nothing is won

Places = Mapping[str, tuple[int, ...]]  # relation → the columns that are read, for relations that are cut


def cut(relations: Sequence[Relation], results: Sequence[Result]) -> tuple[Cut, tuple[Result, ...]]:
    """What to compile instead of ``relations``, and the results over it."""
    narrowed = [_mapped(result, lambda q: q if inputs(q) else narrow(q)) for result in results]
    read: dict[str, set[int]] = {}
    for q in (q for result in narrowed for q in (*result.reads, *result.single)):
        _reads(q, outputs(q), read)
    places = {r.name: p for r in relations if r.name in read and (p := _kept(r, read[r.name])) is not None}
    if not places:
        return Cut(tuple(relations), places), tuple(results)
    return Cut(tuple(relations), places), tuple(_mapped(r, lambda q: _without(q, places)) for r in narrowed)


def _mapped(result: Result, f: Callable[[Query], Query]) -> Result:
    return replace(
        result,
        rows=None if result.rows is None else f(result.rows),
        lookups=tuple((var, f(q)) for var, q in result.lookups),
        extremes=tuple(replace(e, query=f(e.query)) for e in result.extremes),
        gathers=tuple(replace(g, query=f(g.query)) for g in result.gathers),
        single=tuple(map(f, result.single)),
    )


def _kept(relation: Relation, read: set[int]) -> tuple[int, ...] | None:
    """The columns to keep, at least one; None where the relation stays as it is."""
    kept = tuple(sorted(read)) or (0,)
    if len(relation.columns) - len(kept) < LEAST_UNREAD:
        return None
    same_names = _cut_relation(relation, kept).params == tuple(relation.params[i] for i in kept)
    return kept if same_names else None


def _cut_relation(relation: Relation, kept: tuple[int, ...]) -> Relation:
    return replace(relation, columns=tuple(relation.columns[i] for i in kept))


def _reads(q: Query, needed: frozenset[str], into: dict[str, set[int]]) -> None:
    """Note in ``into`` the columns of each relation of Q that something in Q, or ``needed`` around it, names."""
    match q:
        case Rel(name, names):
            used = {i for i, v in enumerate(names) if v in needed or names.count(v) > 1}
            into.setdefault(name, set()).update(used)
        case Join(parts):
            uses = Counter(v for f in parts for v in variables(f))
            needed |= {v for v, n in uses.items() if n > 1}
        case Sum(group, _):
            needed |= group
        case Union():
            needed |= inputs(q)  # what only some branches give comes from outside for the others
        case Bind(_, inner) | Exists(inner):
            needed |= outputs(inner)
    for child in children(q):
        _reads(child, needed, into)


def _without(q: Query, places: Places) -> Query:
    """R(a, b, c) as R(a) everywhere in Q."""
    if isinstance(q, Rel):
        return Rel(q.name, tuple(q.vars[i] for i in places[q.name])) if q.name in places else q
    return map_children(q, lambda child: _without(child, places))


@dataclass(frozen=True)
class Cut:
    """The relations of a script, and which columns of them are compiled."""

    whole: tuple[Relation, ...]
    places: Places

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Each relation with the columns that are read."""
        return tuple(_cut_relation(r, self.places[r.name]) if r.name in self.places else r for r in self.whole)

    def undone(self, program: Program) -> Program:
        """The program over whole relations."""
        if not self.places:
            return program
        return replace(
            program,
            relations=self.whole,
            views=tuple(map(self._view, program.views)),
            triggers=tuple(map(self._trigger, program.triggers)),
            trace=self._trace(program),
        )

    def _view(self, view: MapDefinition) -> MapDefinition:
        return replace(view, definition=self._query(view.definition))

    def _trigger(self, trigger: Trigger) -> Trigger:
        return Trigger(self._event(trigger.event), tuple(map(self._statement, trigger.statements)))

    def _statement(self, statement: Statement) -> Statement:
        return replace(statement, expression=self._query(statement.expression))

    def _event(self, event: Event) -> Event:
        if event.relation not in self.places or not event.params:
            return event
        return replace(event, params=next(r.params for r in self.whole if r.name == event.relation))

    def _trace(self, program: Program) -> Trace:
        """The record names events with all their columns, too; its deltas show the columns that are read."""
        names = {f" on {t.event}": f" on {self._event(t.event)}" for t in program.triggers}

        def place(before: str) -> str:
            view, on, event = before.partition(" on ")
            return view + names.get(on + event, on + event)

        old = program.trace
        steps = [replace(step, place=place(step.place)) for step in old.steps]
        return Trace(steps, place(old.place), {place(p): q for p, q in old.deltas.items()})

    def _query(self, q: Query) -> Query:
        """Q over whole relations: Sum_a(R(a, b, c)) for R(a), and R(a, b, c) where a Sum stands around it already."""
        if not any(a.name in self.places for a in different_atoms(q)):
            return q
        return self._whole(q, dict.fromkeys(variables(q), 1), {})

    def _whole(self, q: Query, taken: dict[str, int], done: dict[Query, Query]) -> Query:
        """``done``: what stands in several places has the same names in each, since a Sum keeps them inside."""
        if q not in done:
            done[q] = self._made_whole(q, taken, done)
        return done[q]

    def _made_whole(self, q: Query, taken: dict[str, int], done: dict[Query, Query]) -> Query:
        match q:
            case Rel() | Delta():
                return sum_(outputs(q), self._atom(q, taken))
            case Sum(group, inner):
                parts = factors(inner)
                whole = (
                    self._atom(f, taken) if isinstance(f, (Rel, Delta)) else self._whole(f, taken, done) for f in parts
                )
                return sum_(group, join(*whole))
        return map_children(q, lambda child: self._whole(child, taken, done))

    def _atom(self, q: Rel | Delta, taken: dict[str, int]) -> Rel | Delta:
        """The atom with a new name in each column that was left out."""
        if q.name not in self.places:
            return q
        relation = next(r for r in self.whole if r.name == q.name)
        given = dict(zip(self.places[q.name], q.vars, strict=True))
        names = [given[i] if i in given else _new(p.removeprefix("@"), taken) for i, p in enumerate(relation.params)]
        return type(q)(q.name, tuple(names))


def _new(name: str, taken: dict[str, int]) -> str:
    """A name that is not in ``taken``, where it then is; a number there says which names were tried."""
    candidate = name
    while candidate in taken:
        taken[name] += 1
        candidate = f"{name}_{taken[name]}"
    taken[candidate] = 1
    return candidate
