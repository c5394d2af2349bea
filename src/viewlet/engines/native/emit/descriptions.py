"""The constant tables by which a C++ program describes itself to the bridge."""

from __future__ import annotations

from collections.abc import Collection

from viewlet.algebra.query import variables
from viewlet.engines.native.emit.declare import (
    column,
    quoted,
    shown_column,
    table,
)
from viewlet.engines.native.emit.identifiers import named, plain
from viewlet.engines.native.emit.layout import Field, Layout
from viewlet.engines.native.emit.structs import row_type
from viewlet.program.kinds import Exact
from viewlet.program.trigger import Program, Trigger
from viewlet.schema import Relation


def descriptions(
    program: Program,
    layout: Layout,
    rows: dict[str, tuple[Field, ...]],
    readers: dict[str, str],
    signed: Collection[str],
    summed: Collection[str],
) -> str:
    """``readers`` are results with the type of the keys by which a row of them is read alone, if it is.

    ``signed`` are relations with one function for inserts and deletes, ``summed`` those with one for a whole batch.
    """
    lines = []
    for relation in program.relations:
        columns = zip(relation.columns, rows[relation.name], _read(program, relation), strict=True)
        cells = [column(c.name, f, row_type(relation.name), c.type, read=read) for c, f, read in columns]
        lines += table("Column", f"columns_{plain(relation.name)}", cells)
    for m in layout.maps:
        if not m.is_single:
            cells = [column(f.name, f, f"{m.type_name}Key", None) for f in m.key]
            lines += table("Column", named("key", m.name), cells)
    for name in readers:
        result = program.result(name)
        lines += table("ResultColumn", f"shown_{plain(name)}", [shown_column(c) for c in result.columns])
    relations = [_relation(r, r.name in signed, r.name in summed) for r in program.relations]
    lines += table("Relation<Program>", "RELATIONS", relations)
    lines += table("ViewOf<Program>", "VIEWS", [_view(v.name, layout) for v in program.views])
    lines += table("ResultOf<Program>", "RESULTS", [_result(name, key) for name, key in readers.items()])
    names = {f"table_{plain(r.name)}": f"table_{r.name}" for r in program.relations}
    names |= {m.name: m.shown for m in layout.maps}
    names |= {held: held for held in (named("held", m.name) for m in layout.maps if m.inputs)}
    orders = {m.name: "".join(f", &Program::{order.name}" for order in m.orders.values()) for m in layout.maps}
    maps = [f"map_of<Program, &Program::{n}{orders.get(n, '')}>({quoted(shown)})" for n, shown in names.items()]
    lines += table("MapOf<Program>", "MAPS", maps)
    return "\n".join(lines) + "\n"


def _read(program: Program, relation: Relation) -> tuple[bool, ...]:
    """Which columns of an event something depends on: all where the row is stored, else those that triggers name."""
    if relation.stored or relation.static:
        return (True,) * len(relation.columns)
    triggers = [t for t in program.triggers if t.event.relation == relation.name]
    return tuple(any(place in _read_by(t) for t in triggers) for place in range(len(relation.columns)))


def _read_by(trigger: Trigger) -> frozenset[int]:
    named = [variables(s.expression) | {*s.target.inputs, *s.target.outputs} for s in trigger.statements]
    return frozenset(i for i, param in enumerate(trigger.event.params) if any(param in names for names in named))


def _relation(relation: Relation, signed: bool, summed: bool) -> str:
    name = plain(relation.name)
    table = f"&Program::table_{name}"
    if relation.static:
        return f"static_table<Program, {table}>({quoted(relation.name)}, columns_{name})"
    both = f"&Program::change_{name}, nullptr" if signed else f"&Program::insert_{name}, &Program::delete_{name}"
    triggers = f"{both}, &Program::foresee_{name}" + (f", &Program::sum_up_{name}" if summed else "")
    stored = "" if relation.stored else ", false"
    return f"relation<Program, {table}, {triggers}>({quoted(relation.name)}, columns_{name}{stored})"


def _result(name: str, key: str) -> str:
    read = f"[](Program& program, Rows& out) {{ program.read_{plain(name)}(out); }}"
    given = f"*static_cast<const {key}*>(key)"
    one = (
        f", [](Program& program, const void* key, Rows& out) {{ program.read_{plain(name)}({given}, out); }}"
        if key
        else ""
    )
    return f"{{{quoted(name)}, shown_{plain(name)}, {read}{one}}}"


def _view(name: str, layout: Layout) -> str:
    m, member = layout[name]
    scale = member.kind.scale if isinstance(member.kind, Exact) else 0
    target = f"&Program::{m.name}, &{m.type_name}Values::{member.name}"
    if m.is_single:
        return f"single<Program, {target}>({quoted(name)}, {scale})"
    return f"view<Program, {target}>({quoted(name)}, {named('key', m.name)}, {scale})"
