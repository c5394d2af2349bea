"""The Python tier as an engine: a generated function in the place of each trigger, written when it first fires."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, Literal

from viewlet.algebra.query import relations
from viewlet.algebra.sessions import is_sessions
from viewlet.engines.exact.python.emit import Orders, Source
from viewlet.engines.exact.python.source import labels, trigger_source
from viewlet.engines.exact.python.terms import SCOPE
from viewlet.engines.exact.state import State
from viewlet.engines.exact.store import Map
from viewlet.engines.initial import KINDS, Way, cheapest_way
from viewlet.loops.infer import Kinds, program_kinds
from viewlet.loops.lower import Lowering
from viewlet.program.encoding import Row, decode, view_codec
from viewlet.program.kinds import Unfit
from viewlet.program.trigger import MapDefinition, Program, Trigger

Fire = Callable[[Row], None]


class PythonEngine(State):
    """As exact as the interpreter, and far faster: no query is walked when an event arrives.

    Its views hold scaled integers. A trigger that no code can be written for is evaluated like the interpreter's.
    """

    def __init__(self, program: Program, tables: Mapping[str, Mapping[Row, int]] | None = None) -> None:
        self._kinds = _kinds(program)
        kinds = self._kinds or Kinds()
        codecs = {name: view_codec(kinds.columns[name], value) for name, value in kinds.values.items()}
        self._lowering = Lowering.of(program)
        self._fires: dict[str, dict[str, Fire]] = {"+": {}, "-": {}, "Δ": {}}
        self._orders: Orders = {}
        moving = [v.definition for v in program.views if is_sessions(v.definition)]
        self._by_the_row = frozenset().union(*map(relations, moving))
        super().__init__(program, tables, codecs)

    def apply(self, kind: Literal["+", "-"], relation: str, row: Row) -> None:
        """±R(t⃗)."""
        fire = self._fires[kind].get(relation)
        if fire is None:
            fire = self._fires[kind][relation] = self._write(kind, relation)
        fire(row)

    def apply_bulk(self, relation: str, entries: Mapping[Row, int]) -> None:
        """ΔR; where rows move sessions, one after the other: together they would have all sessions found again."""
        if relation in self._by_the_row:
            for row, times in sorted(entries.items(), key=lambda entry: -entry[1]):
                for _ in range(abs(times)):
                    self.apply("+" if times > 0 else "-", relation, row)
            return
        fires = self._fires["Δ"]
        if relation not in fires:
            fires[relation] = self._write("Δ", relation)
        self._apply_bulk(relation, entries, lambda: fires[relation](()))

    def source(self, trigger: Trigger) -> Source:
        """The code of a trigger; ``Unfit`` where kinds do not hold its values."""
        if self._kinds is None:
            raise Unfit("the program has values that no kind holds")
        watched = self._bounds.keys() | self._key_limits.keys()
        return trigger_source(self._program, trigger, self._kinds, self._lowering, self._bounds, watched, self._orders)

    # -- from rows that are there already ------------------------------------------------------------------------------

    def _initialise(self, views: Iterable[MapDefinition]) -> None:
        chosen = tuple(views)
        way = cheapest_way(self._program, chosen, {name: table.content for name, table in self._tables.items()})
        if way == "definitions" or not self._has_code(KINDS[way]):
            super()._initialise(chosen)
            return
        try:
            self._replay(way)
        except (ValueError, ArithmeticError):  # a number in between, which the rows taken together do not come to
            super()._initialise(self._program.views)

    def _has_code(self, kind: Literal["+", "Δ"]) -> bool:
        """What a trigger without code costs, no access path says."""
        try:
            for trigger in self._program.triggers:
                if trigger.event.kind == kind:
                    self.source(trigger)
        except Unfit:
            return False
        return True

    def _replay(self, way: Way) -> None:
        """The views over static tables and empty streams, which need not be empty; then all rows come again.

        Only what the last of them leaves must be inside the limits.
        """
        streams = {r.name: self.table(r.name) for r in self._program.relations if not r.static}
        for name in streams:
            self._tables[name].replace({})
        self._in_between = True
        try:
            super()._initialise(self._program.views)
            for name, rows in streams.items():
                self._replay_stream(name, rows, way)
        except BaseException:
            for name, rows in streams.items():
                self._tables[name].replace(rows)
            raise
        finally:
            self._in_between = False
        self._settle()

    def _replay_stream(self, relation: str, rows: Mapping[Row, int], way: Way) -> None:
        if way == "batches":
            self.apply_bulk(relation, rows)
            return
        for row, times in rows.items():
            for _ in range(abs(times)):  # of a trusted delete there may be less than none
                self.apply("+" if times > 0 else "-", relation, row)

    # -- writing the code ----------------------------------------------------------------------------------------------

    def _write(self, kind: Literal["+", "-", "Δ"], relation: str) -> Fire:
        trigger = self._trigger(kind, relation)
        if trigger is None:
            return partial(self._change_table, kind, relation)
        try:
            source = self._ordered_source(trigger)
            code = compile("\n".join(source.lines), f"<{trigger.event}>", "exec")
        except (Unfit, SyntaxError):  # Python takes no more than twenty loops inside each other
            return partial(self._evaluated, trigger)
        statements = {f"REFRESH_{i}": partial(self._refresh, s) for i, s in enumerate(trigger.statements)}
        indexes = {name: self._maps[store].index(at).get for name, (store, at) in source.indexes.items()}
        scope: dict[str, Any] = {**self._scope, **statements, **indexes, **self._ordered(), **source.constants}
        exec(code, scope)
        fire: Fire = scope["fire"]
        return fire

    def _ordered_source(self, trigger: Trigger) -> Source:
        """The code of a trigger. If it reads by a new order, all code that writes to that store must touch it."""
        source = self.source(trigger)
        while source.orders != self._orders:
            self._orders = dict(source.orders)
            for fires in self._fires.values():
                fires.clear()
            source = self.source(trigger)
        return source

    def _ordered(self) -> dict[str, object]:
        orders = {name: self._maps[store].ordered(at, key) for name, (store, at, key) in self._orders.items()}
        return {**orders, **{f"TOUCHED_{name}": order.touched for name, order in orders.items()}}

    def _evaluated(self, trigger: Trigger, row: Row) -> None:
        self._evaluate_trigger(trigger, row)
        self._change_table(trigger.event.kind, trigger.event.relation, row)

    def _change_table(self, kind: str, relation: str, row: Row) -> None:
        if kind != "Δ":
            self._tables[relation].add(row, 1 if kind == "+" else -1)

    @cached_property
    def _maps(self) -> dict[str, Map]:
        """Everything that the code of a trigger knows as a dictionary."""
        label = labels(self._program)
        return {
            **{f"TABLE_{label[name]}": table for name, table in self._tables.items()},
            **{f"DELTA_{label[name]}": update for name, update in self._deltas.items()},
            **{f"VIEW_{label[name]}": view for name, view in self._views.items() if isinstance(view, Map)},
        }

    @cached_property
    def _scope(self) -> dict[str, object]:
        """What the code of a trigger may name."""
        label = labels(self._program)
        caches = {f"VIEW_{label[name]}": view for name, view in self._views.items() if not isinstance(view, Map)}
        suspects = {f"SUSPECT_VIEW_{label[name]}": partial(self._suspect, name) for name in self._bounds}
        scope: dict[str, object] = {**SCOPE, "EXACT": decode, **caches, **suspects}
        scope |= {"SUSPECTS": self._suspects, "SETTLE": self._settle}
        for name, store in self._maps.items():
            scope |= {name: store.content, f"GET_{name}": store.content.get}
            scope |= {f"CREATE_{name}": store.create, f"DROP_{name}": store.drop}
        return scope


def _kinds(program: Program) -> Kinds | None:
    """None where no kind holds some value exactly: the views then hold scalars, as the interpreter's do."""
    try:
        return program_kinds(program)
    except Unfit:
        return None
