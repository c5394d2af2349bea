"""The Python tier as an engine: the interpreter's stores, with a generated function in the place of each trigger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from viewlet.algebra.evaluate import Entries, Env, Key
from viewlet.algebra.terms import Number, Scalar, apply
from viewlet.engines.interpreter import Interpreter
from viewlet.engines.python.emit import Source, collect
from viewlet.engines.store import Map
from viewlet.program.lower import Lowering, Scope
from viewlet.program.nulls import nullable_columns
from viewlet.program.text import statement_to_text
from viewlet.program.trigger import Program, Statement, Trigger

Fire = Callable[..., None]


def number(value: Scalar) -> Scalar:
    """NULL adds nothing to a sum."""
    return 0 if value is None else value


def nonzero(entries: Entries) -> Entries:
    return {key: m for key, m in entries.items() if m != 0}


class PythonEngine(Interpreter):
    """As exact as the interpreter, and some ten times as fast: no query is walked when an event arrives."""

    def __init__(self, program: Program, tables: Mapping[str, Mapping[Key, Number]] | None = None) -> None:
        super().__init__(program, tables)
        self.source = python_source(program)
        self._generated = self._load(program)

    def _fire(self, trigger: Trigger, env: Env) -> None:
        generated = self._generated.get(trigger)
        if generated is None:
            super()._fire(trigger, env)
        else:
            generated(*env.values())

    def _load(self, program: Program) -> dict[Trigger, Fire]:
        statements = {
            f"REFRESH_{i}_{j}": partial(self.refresh, s)
            for i, t in enumerate(program.triggers)
            for j, s in enumerate(t.statements)
        }
        adds = {f"ADD_{name}": store.add for name, store in self._views.items() if isinstance(store, Map)}
        scope: dict[str, object] = {
            "APPLY": apply,
            "NUMBER": number,
            "NONZERO": nonzero,
            **{f"DELTA_{name}": update for name, update in self._deltas.items()},
            **{f"VIEW_{name}": store for name, store in self._views.items()},
            **statements,
            **adds,
            **self.source.constants,
        }
        try:
            code = compile("\n".join(self.source.lines), f"<triggers of {len(program.views)} views>", "exec")
        except SyntaxError:  # more than twenty loops inside each other: Python compiles no such code
            return {}
        exec(code, scope)
        return {t: scope[f"fire_{i}"] for i, t in enumerate(program.triggers)}  # type: ignore[misc]


def python_source(program: Program) -> Source:
    """Every trigger of a program as a Python function ``fire_i`` of the event's parameters."""
    source = Source()
    lowering = Lowering(nullable_columns(program))
    for i, trigger in enumerate(program.triggers):
        source.names.clear()
        params = ", ".join(source.name(p) for p in trigger.event.params)
        source.add(0, f"def fire_{i}({params}):")
        source.add(1, repr(f"on {trigger.event}"))
        _emit_trigger(source, lowering, program, trigger, i)
        source.add(0, "")
    return source


def _emit_trigger(source: Source, lowering: Lowering, program: Program, trigger: Trigger, i: int) -> None:
    """Buffered changes first, against the state before the trigger; then each statement in its turn."""
    buffered = [(j, s) for j, s in enumerate(trigger.statements) if s.buffered]
    for j, statement in buffered:
        _emit_collected(source, lowering, program, trigger, statement, f"CHANGE_{j}")
    for j, statement in enumerate(trigger.statements):
        for line in statement_to_text(statement, trigger.event.params).splitlines():
            source.add(1, f"# {line}")
        if statement.buffered:
            source.add(1, f"REFRESH_{i}_{j}(CHANGE_{j})")
        elif statement.op == ":=" or program.view(statement.target.name).is_cache:
            _emit_collected(source, lowering, program, trigger, statement, f"CHANGE_{j}")
            source.add(1, f"REFRESH_{i}_{j}(CHANGE_{j})")
        else:
            scope = _scope(program, trigger, statement)
            block = lowering.change(statement.expression, statement.target.outputs, scope)
            source.block(block, 1, f"ADD_{statement.target.name}({{key}}, {{m}})")


def _emit_collected(
    source: Source, lowering: Lowering, program: Program, trigger: Trigger, statement: Statement, into: str
) -> None:
    """The change as a dictionary for each input tuple that the target holds; a view without inputs holds ⟨⟩."""
    block = lowering.change(statement.expression, statement.target.outputs, _scope(program, trigger, statement))
    if not program.view(statement.target.name).is_cache:
        source.add(1, "ENTRIES = {}")
        source.block(block, 1, collect("ENTRIES"))
        source.add(1, f"{into} = {{(): NONZERO(ENTRIES)}}")
        return
    source.add(1, f"{into} = {{}}")
    source.add(1, f"for GIVEN in VIEW_{statement.target.name}.held():")
    for k, name in enumerate(statement.target.inputs):
        if name in trigger.event.params:  # foreach x⃗_in do, where the statement is about one value of x
            source.add(2, f"if GIVEN[{k}] != {source.name(name)}:")
            source.add(3, f"{into}[GIVEN] = None")
            source.add(3, "continue")
        else:
            source.add(2, f"{source.name(name)} = GIVEN[{k}]")
    source.add(2, "ENTRIES = {}")
    source.block(block, 2, collect("ENTRIES"))
    source.add(2, f"{into}[GIVEN] = NONZERO(ENTRIES)")


def _scope(program: Program, trigger: Trigger, statement: Statement) -> Scope:
    columns = program.relation(trigger.event.relation).columns if trigger.event.params else ()
    solid = [p for p, c in zip(trigger.event.params, columns, strict=True) if not c.nullable]
    return Scope(frozenset(trigger.event.params) | frozenset(statement.target.inputs), frozenset(solid))
