"""The state of a trigger program in Python: base tables, views, and how both are read, filled and refreshed.

What an engine in Python adds is how a trigger fires. One that knows nothing better fires it as here: by the living
definition, statement by statement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Literal

from typing_extensions import assert_never

from viewlet.algebra.evaluate import Entries, Env, Key, Pattern, evaluate
from viewlet.algebra.query import Atom, Delta, Rel, View, relations
from viewlet.algebra.terms import Number, Scalar, evaluate_term
from viewlet.engines.exact.store import Cache, Content, Guarded, Map
from viewlet.engines.exact.tree import Held
from viewlet.engines.initial import evaluated
from viewlet.errors import OutOfRangeError
from viewlet.program.encoding import AS_IT_IS, Codec, Row, row_codec
from viewlet.program.limits import key_limits, limits
from viewlet.program.trigger import MapDefinition, Program, Statement, Trigger

# A target's input tuple (⟨⟩ unless it is a cache) ↦ what the expression came to; None where the statement is not meant.
Refresh = dict[Held, Content | None]


class State:
    """A map for each view and a base table for each relation. ``tables`` is what the relations hold at the start.

    Tables and updates hold cells, views what ``codecs`` says: scalars unless told. The base tables change when the
    trigger is over; no trigger may read the one of its own relation, since it could not say which version it means.
    """

    takes_wild = False

    def __init__(
        self, program: Program, tables: Mapping[str, Mapping[Row, int]] | None, codecs: Mapping[str, Codec]
    ) -> None:
        for trigger in program.triggers:
            _check_reads(trigger)
        self._program = program
        self._tables = {r.name: Map((tables or {}).get(r.name)) for r in program.relations}
        self._deltas = {r.name: Map() for r in program.relations}
        self._row_codecs = {r.name: row_codec(r) for r in program.relations}
        self._codecs = {v.name: codecs.get(v.name, AS_IT_IS) for v in program.views}
        self._limits, self._key_limits = limits(program), key_limits(program)
        self._views = {v.name: self._store(v) for v in program.views}
        self._triggers = {(t.event.kind, t.event.relation): t for t in program.triggers}
        self._bounds = {name: limit.units(self._codecs[name].value) for name, limit in self._limits.items()}
        self._suspects: list[tuple[str, Held]] = []
        self._in_between = False
        self._initialise(program.views)

    # -- views ---------------------------------------------------------------------------------------------------------

    def _store(self, view: MapDefinition) -> Map | Cache:
        if view.is_cache:
            return Cache(len(view.inputs), partial(self._fill, view))
        if view.name not in self._key_limits:
            return Map()
        return Guarded(lambda key: not self._unfit_key(view, key), partial(self._suspect, view.name))

    def _initialise(self, views: Iterable[MapDefinition]) -> None:
        """Evaluate the definitions over the base tables; a view cache starts empty and fills when read."""
        chosen = tuple(views)
        for view in chosen:
            if isinstance(cache := self._views[view.name], Cache):
                cache.drop(cache.held())
        for view, entries in evaluated(self._program, chosen, {n: t.content for n, t in self._tables.items()}):
            content = self._views[view.name]
            assert isinstance(content, Map)
            content.replace(self._codecs[view.name].encode_entries(entries))
            self._watch(view.name, content.content)
        self._settle()

    def _fill(self, view: MapDefinition, given: Held) -> Content:
        """What a view cache holds for an input tuple, by the definition it has for that."""
        assert view.fill is not None
        codec, n = self._codecs[view.name], len(view.inputs)
        env = dict(zip(view.inputs, codec.head(n).decode_key(given), strict=True))
        return codec.tail(n).encode_entries(evaluate(view.fill, self.read, view.outputs, env))

    def load(self, relation: str, entries: Mapping[Row, int]) -> None:
        table = self._tables[relation]
        table.update(entries)
        try:
            self._initialise(v for v in self._program.views if relation in relations(v.definition))
        except BaseException:
            table.update({row: -m for row, m in entries.items()})
            raise

    # -- triggers ------------------------------------------------------------------------------------------------------

    def _trigger(self, kind: Literal["+", "-", "Δ"], relation: str) -> Trigger | None:
        """None for a relation that no view depends on; one with other triggers but not this is half a program."""
        trigger = self._triggers.get((kind, relation))
        if trigger is None and any(name == relation for _, name in self._triggers):
            raise ValueError(f"the program has triggers for {relation}, but none for {kind}{relation}")
        return trigger

    def _apply_bulk(self, relation: str, entries: Mapping[Row, int], fire: Callable[[], None]) -> None:
        """``fire`` reads the update through ``Delta`` atoms."""
        delta = self._deltas[relation]
        delta.replace(entries)
        try:
            fire()
        finally:
            delta.replace({})
        self._tables[relation].update(entries)

    def _evaluate_trigger(self, trigger: Trigger, row: Row = ()) -> None:
        """Buffered expressions see the state before the trigger, the others that of their turn."""
        relation = trigger.event.relation
        cells = self._row_codecs[relation].decode_key(row) if trigger.event.params else ()
        env = dict(zip(trigger.event.params, cells, strict=True))
        buffer = {i: self._evaluate(s, env) for i, s in enumerate(trigger.statements) if s.buffered}
        for i, statement in enumerate(trigger.statements):
            self._refresh(statement, buffer[i] if statement.buffered else self._evaluate(statement, env))
        self._settle()

    def _evaluate(self, statement: Statement, env: Env) -> Refresh:
        """The expression under each input tuple of the target; a map has but the empty one."""
        target, codec = statement.target, self._codecs[statement.target.name]
        n = len(target.inputs)

        def change(env: Env) -> Content:
            return codec.tail(n).encode_entries(evaluate(statement.expression, self.read, target.outputs, env))

        match self._views[target.name]:
            case Map():
                return {(): change(env)}
            case Cache() as cache:
                bound = [(given, _bind_inputs(target, codec.head(n).decode_key(given), env)) for given in cache.held()]
                return {given: None if e is None else change(e) for given, e in bound}

    def _refresh(self, statement: Statement, refresh: Refresh) -> None:
        """Apply what the expression came to.

        What a cache took in since then (the expression may read the cache itself) missed this refresh: it is dropped.
        """
        name = statement.target.name
        store = self._views[name]
        if isinstance(store, Cache):
            store.drop([given for given in store.held() if given not in refresh])
        for given, entries in refresh.items():
            content = store if isinstance(store, Map) else store[given]
            if entries is not None:
                (content.update if statement.op == "+=" else content.replace)(entries)
                self._watch(name, entries)

    # -- limits --------------------------------------------------------------------------------------------------------

    def _watch(self, view: str, keys: Iterable[Held]) -> None:
        """Note what is out of its limits now; the trigger may bring it back."""
        if view in self._bounds:
            for key in keys:
                if self._unfit_sum(view, key):
                    self._suspect(view, key)

    def _suspect(self, view: str, key: Held) -> None:
        self._suspects.append((view, key))

    def _unfit_sum(self, view: str, key: Held) -> str:
        """Why a sum cannot be shown; "" where it can."""
        low, high = self._bounds.get(view, (-math.inf, math.inf))
        value = self._value(view, key)
        return "" if low <= value <= high else self._limits[view].refusal(self._codecs[view].decode_value(value))

    def _unfit_key(self, view: MapDefinition, key: Held) -> str:
        """The same for what is computed of a key."""
        env = dict(zip(view.outputs, self._codecs[view.name].decode_key(key), strict=True))
        for term, limit in self._key_limits.get(view.name, {}).items():
            try:
                value = evaluate_term(term, env)
            except (OverflowError, ValueError) as error:
                return f"{limit.column}: {error}"
            if isinstance(value, (int, Fraction)) and not limit.low <= value <= limit.high:
                return limit.refusal(value)
        return ""

    def _settle(self) -> None:
        """The end of a trigger: refuse what is still out of its limits, unless more is to come before anybody looks."""
        if self._in_between:
            return
        for view, key in self._suspects:
            there = self._value(view, key) != 0
            if there and (why := self._unfit_sum(view, key) or self._unfit_key(self._program.view(view), key)):
                raise OutOfRangeError(why)
        self._suspects.clear()

    def _value(self, view: str, key: Held) -> Number:
        store = self._views[view]
        assert isinstance(store, Map), f"{view} is a view cache, which no user sees"
        value: Number = store[key]
        return value

    # -- reads ---------------------------------------------------------------------------------------------------------

    def read(self, atom: Atom, pattern: Pattern) -> Iterable[tuple[Key, Number]]:
        match atom:
            case Rel(name, _):
                return _decoded(self._tables[name], self._row_codecs[name], pattern)
            case Delta(name, _):
                return _decoded(self._deltas[name], self._row_codecs[name], pattern)
            case View(name, _, _):
                return _decoded(self._views[name], self._codecs[name], pattern)
            case _:
                assert_never(atom)

    def entries(self, view: str) -> Entries:
        return self._codecs[view].decode_entries(self._views[view].entries())

    def result(self, name: str, most: int | None = None) -> None:
        """Rows are read off the views, one by one."""
        return

    def result_row(self, name: str, key: Mapping[str, Scalar]) -> None:
        return

    def size(self, view: str) -> int:
        store = self._views[view]
        assert isinstance(store, Map), f"{view} is a view cache, which no user sees"
        return len(store)

    def weigh(self, view: str) -> tuple[int, int]:
        store = self._views[view]
        assert isinstance(store, Map), f"{view} is a view cache, which no user sees"
        return len(store), int(self._codecs[view].decode_value(sum(store.content.values())))

    def table(self, relation: str) -> dict[Row, int]:
        return self._tables[relation].entries()

    def count(self, relation: str, row: Row) -> int:
        times: int = self._tables[relation][row]
        return times


def _decoded(store: Map | Cache, codec: Codec, pattern: Pattern) -> Iterator[tuple[Key, Number]]:
    """The entries that agree with a pattern of scalars, as scalars."""
    for key, m in store.read(codec.encode_key(pattern)):
        yield codec.decode_key(key), codec.decode_value(m)


def _bind_inputs(target: View, given: Key, env: Env) -> Env | None:
    """One turn of ``foreach x⃗_in do`` (Definition 1); None where an input is a parameter of another value."""
    extended = {**env, **dict(zip(target.inputs, given, strict=True))}
    return extended if all(extended[name] == value for name, value in env.items()) else None


def _check_reads(trigger: Trigger) -> None:
    changed = trigger.event.relation
    for statement in trigger.statements:
        if changed in relations(statement.expression):
            raise ValueError(f"{trigger.event} reads the base table {changed} that it changes: {statement}")
