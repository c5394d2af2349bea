"""The reference engine: a trigger program run statement by statement by the living definition, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from typing_extensions import assert_never

from viewlet.algebra.evaluate import Entries, Env, Key, Pattern, evaluate
from viewlet.algebra.query import Atom, Delta, Rel, View, relations
from viewlet.algebra.terms import Number
from viewlet.engines.store import Cache, Map
from viewlet.program.trigger import Program, Statement, Trigger, ViewDefinition

# A target's input tuple (⟨⟩ unless it is a cache) ↦ what the expression came to; None where the statement is not meant.
Refresh = dict[Key, Entries | None]


class Interpreter:
    """Holds a map for each view and a base table for each relation. ``tables`` is what the relations hold at the start.

    The base tables change when the trigger is over; no trigger may read the one of its own relation, since it could
    not say which version it means.
    """

    def __init__(self, program: Program, tables: Mapping[str, Mapping[Key, Number]] | None = None) -> None:
        self._program = program
        self._tables = {r.name: Map((tables or {}).get(r.name)) for r in program.relations}
        self._views: dict[str, Map | Cache] = {
            v.name: Cache(v, self.read) if v.is_cache else Map() for v in program.views
        }
        self._triggers = {(t.event.kind, t.event.relation): t for t in program.triggers}
        self._deltas = {r.name: Map() for r in program.relations}
        for trigger in program.triggers:
            _check_reads(trigger)
        for view in program.views:
            self._initialise(view)

    # -- updates -------------------------------------------------------------------------------------------------------

    def apply(self, kind: Literal["+", "-"], relation: str, row: Key) -> None:
        """±R(t⃗)."""
        if trigger := self._trigger(kind, relation):
            self._fire(trigger, dict(zip(trigger.event.params, row, strict=True)))
        self._tables[relation].add(row, 1 if kind == "+" else -1)

    def apply_bulk(self, relation: str, entries: Mapping[Key, Number]) -> None:
        """ΔR, which the statements read through ``Delta`` atoms."""
        if trigger := self._trigger("Δ", relation):
            self._deltas[relation].replace(entries)
            self._fire(trigger, {})
            self._deltas[relation].replace({})
        self._tables[relation].update(entries)

    def load(self, relation: str, entries: Mapping[Key, Number]) -> None:
        self._tables[relation].update(entries)
        try:
            for view in self._program.views:
                if relation in relations(view.definition):
                    self._initialise(view)
        except BaseException:
            self._tables[relation].update({row: -m for row, m in entries.items()})
            raise

    def _trigger(self, kind: Literal["+", "-", "Δ"], relation: str) -> Trigger | None:
        """None for a relation that no view depends on; one with other triggers but not this is half a program."""
        found = self._triggers.get((kind, relation))
        if found is None and any(name == relation for _, name in self._triggers):
            raise ValueError(f"the program has triggers for {relation}, but none for {kind}{relation}")
        return found

    def _initialise(self, view: ViewDefinition) -> None:
        """Evaluate the definition over the base tables; a view cache starts empty and fills when read."""
        match self._views[view.name]:
            case Cache() as cache:
                cache.drop(cache.held())
            case Map() as content:
                content.replace(evaluate(view.definition, self.read, view.outputs))

    # -- triggers ------------------------------------------------------------------------------------------------------

    def _fire(self, trigger: Trigger, env: Env) -> None:
        """Buffered expressions see the state before the trigger, the others that of their turn."""
        buffer = {i: self._evaluate(s, env) for i, s in enumerate(trigger.statements) if s.buffered}
        for i, statement in enumerate(trigger.statements):
            self.refresh(statement, buffer[i] if statement.buffered else self._evaluate(statement, env))

    def _evaluate(self, statement: Statement, env: Env) -> Refresh:
        """The expression under each input tuple of the target; a map has but the empty one."""
        target = statement.target
        match self._views[target.name]:
            case Map():
                return {(): evaluate(statement.expression, self.read, target.outputs, env)}
            case Cache() as cache:
                bound = [(given, _bind_inputs(target, given, env)) for given in cache.held()]
                return {
                    given: None if e is None else evaluate(statement.expression, self.read, target.outputs, e)
                    for given, e in bound
                }

    def refresh(self, statement: Statement, refresh: Refresh) -> None:
        """Apply what the expression came to.

        What a cache took in since then (the expression may read the cache itself) missed this refresh: it is dropped.
        """
        store = self._views[statement.target.name]
        if isinstance(store, Cache):
            store.drop([given for given in store.held() if given not in refresh])
        for given, entries in refresh.items():
            content = store if isinstance(store, Map) else store[given]
            if entries is not None and statement.op == "+=":
                content.update(entries)
            elif entries is not None:
                content.replace(entries)

    # -- reads ---------------------------------------------------------------------------------------------------------

    def read(self, atom: Atom, pattern: Pattern) -> Iterable[tuple[Key, Number]]:
        match atom:
            case Rel(name, _):
                return self._tables[name].read(pattern)
            case Delta(name, _):
                return self._deltas[name].read(pattern)
            case View(name, _, _):
                return self._views[name].read(pattern)
            case _:
                assert_never(atom)

    def entries(self, view: str) -> Entries:
        return self._views[view].entries()

    def table(self, relation: str) -> Entries:
        return self._tables[relation].entries()

    def count(self, relation: str, row: Key) -> Number:
        return self._tables[relation][row]


def _bind_inputs(target: View, given: Key, env: Env) -> Env | None:
    """One turn of ``foreach x⃗_in do`` (Definition 1); None where an input is a parameter of another value."""
    extended = {**env, **dict(zip(target.inputs, given, strict=True))}
    return extended if all(extended[name] == value for name, value in env.items()) else None


def _check_reads(trigger: Trigger) -> None:
    changed = trigger.event.relation
    for statement in trigger.statements:
        if changed in relations(statement.expression):
            raise ValueError(f"{trigger.event} reads the base table {changed} that it changes: {statement}")
