"""Functions that read the rows of a SQL view off its maps, for results that are one pass over one view."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from viewlet.algebra.query import View, atoms
from viewlet.engines.native.emit.keys import column
from viewlet.engines.native.emit.layout import MapLayout, index_slices
from viewlet.engines.native.emit.lines import Code
from viewlet.engines.native.emit.nest import Nest
from viewlet.engines.native.emit.sources import sources
from viewlet.engines.native.emit.terms import Terms
from viewlet.engines.native.emit.triggers import Triggers
from viewlet.engines.native.emit.values import Cpp, Scope
from viewlet.loops.lower import Scope as Bound
from viewlet.loops.steps import Block, Emit, Extremum, Product
from viewlet.program.kinds import BOOLEAN, COUNT, DOUBLE, NULL, REAL, TEXT, Exact, Inexact, Kind, Unfit
from viewlet.program.limits import is_product
from viewlet.program.trigger import Extreme, Result
from viewlet.schema import Type


def plan_reader(triggers: Triggers, result: Result) -> None:
    """Give the maps the indexes that a reader goes through."""
    if is_one_pass(result):
        index_slices(triggers.layout, row_block(triggers, result))
    if _is_looked_up(triggers, result):
        index_slices(triggers.layout, row_block(triggers, result, key_variables(result)))


def is_one_pass(result: Result) -> bool:
    """Lists are put together outside, and rows are numbered there."""
    if result.gathers or result.windows:
        return False
    return result.rows is None or isinstance(result.rows, View)


def reader(triggers: Triggers, result: Result) -> Code | None:
    """The body of ``read_…`` of rows that have no order.

    None where the rows are more than the entries of one view, or a column is no cell.
    """
    if result.order or not is_one_pass(result):
        return None
    nest = triggers.nest()
    nest.context.names |= {"out", "program"}
    try:
        block = row_block(triggers, result)
        triggers.put_in_order(nest, block)
        nest.statement(block, {}, lambda steps, scope, _: _row(nest, triggers.terms, result, steps[0], scope))
    except Unfit:
        return None
    return nest.code()


def _is_looked_up(triggers: Triggers, result: Result) -> bool:
    """Only the program itself knows the ends of its maps without a scan; other rows are found from outside."""
    has_keys = isinstance(result.rows, View) and not triggers.layout[result.rows.name][0].is_single
    ranges = any(not isinstance(q, View) for _, q in result.lookups)
    return has_keys and is_one_pass(result) and (bool(result.extremes) or ranges)


def reader_of_one(triggers: Triggers, result: Result) -> tuple[str, Code] | None:
    """The type of a key, and the body of the ``read_…`` that takes the row of one; None where nobody asks for it."""
    if not _is_looked_up(triggers, result):
        return None
    assert isinstance(result.rows, View)
    nest, (map_, _) = triggers.nest(), triggers.layout[result.rows.name]
    nest.context.names |= {"out", "program", "given"}
    scope = {v: column("given", f) for v, f in zip(result.rows.outputs, map_.key, strict=True)}
    block = row_block(triggers, result, key_variables(result))
    triggers.put_in_order(nest, block)
    nest.statement(block, scope, lambda steps, scope, _: _row(nest, triggers.terms, result, steps[0], scope))
    return f"{map_.type_name}Key", nest.code()


def key_variables(result: Result) -> frozenset[str]:
    return frozenset(result.rows.outputs) if isinstance(result.rows, View) else frozenset()


def row_block(triggers: Triggers, result: Result, given: frozenset[str] = frozenset()) -> Block:
    """One Emit for each row; ``given`` are the key variables that have a value already."""
    lowering = triggers.lowering

    def row(scope: Bound, weight: Product) -> Block:
        totals = tuple(lowering.total(name, q, scope) for name, q in result.lookups)
        earlier = accumulate(({e.var} for e in result.extremes), frozenset.union, initial=scope.bound)
        extremes = tuple(_extremum(e, known) for e, known in zip(result.extremes, earlier, strict=False))
        return (*totals, *extremes, Emit((), weight, result.name))

    start = Bound(given, frozenset())
    return row(start, ()) if result.rows is None else lowering.query(result.rows, start, row)


def _extremum(extreme: Extreme, bound: frozenset[str]) -> Extremum:
    source = extreme.query
    assert isinstance(source, View), f"{source.text} is not compiled"
    given = frozenset(source.outputs) & bound - {extreme.key}
    return Extremum(extreme.var, source, given, extreme.key, extreme.end == "greatest", extreme.place)


def key_of_rows(triggers: Triggers, result: Result) -> str:
    """The type of the keys that rows are read by."""
    if not isinstance(result.rows, View):
        return "Keyless"
    map_, _ = triggers.layout[result.rows.name]
    return "Keyless" if map_.is_single else f"{map_.type_name}Key"


def given_key(triggers: Triggers, result: Result) -> Scope:
    """The variables of a row whose key is ``given``."""
    if not isinstance(result.rows, View):
        return {}
    map_, _ = triggers.layout[result.rows.name]
    return {v: column("given", f) for v, f in zip(result.rows.outputs, map_.key, strict=True)}


def each_row(triggers: Triggers, result: Result, then: Callable[[str], str]) -> list[str]:
    """For the key of each row that is there."""
    if not isinstance(result.rows, View):
        return [f"    {then('Keyless{}')}"]
    map_, member = triggers.layout[result.rows.name]
    if map_.is_single:
        return [f"    if (!is_zero({map_.name}.only.values.{member.name})) {then('Keyless{}')}"]
    there = f"if (!is_zero(row->values.{member.name}))"
    return [f"    for (auto* row : {map_.name}.all())", f"        {there} {then('row->key')}"]


def maps_of(triggers: Triggers, result: Result) -> list[MapLayout]:
    """The maps that rows are read off."""
    maps = [triggers.layout[source.view][0] for source in sources(result)]
    return list({m.name: m for m in maps}.values())


def check_products(nest: Nest, terms: Terms, result: Result, scope: Scope) -> None:
    """What a reader multiplied is no infinity: its factors may be of a program that had nothing against one."""
    finite = nest.context.shared.limits.finite
    for name, q in result.lookups:
        if (
            scope[name].kind == REAL
            and is_product(q)
            and any(isinstance(a, View) and a.name in finite for a in atoms(q))
        ):
            nest.out.add(f"finite(faults, {terms.view}, {scope[name].text});")


def _row(nest: Nest, terms: Terms, result: Result, step: Emit, scope: Scope) -> None:
    check_products(nest, terms, result, scope)
    if result.having is None:
        _columns(nest, terms, result, step, scope)
        return
    with nest.out.inside(f"if (holds({terms.term(result.having, scope, False).text}))"):
        _columns(nest, terms, result, step, scope)


def _columns(nest: Nest, terms: Terms, result: Result, step: Emit, scope: Scope) -> None:
    put_columns(nest, terms, result, scope)
    if not result.distinct:
        nest.out.add(f"out.weight({weight(terms, step, scope)});")
    nest.out.add("out.end();")
    nest.out.add("if (out.is_full()) return;")


def put_columns(nest: Nest, terms: Terms, result: Result, scope: Scope) -> None:
    for i, shown in enumerate(result.columns):
        value = cell(terms, terms.term(shown.term, scope, False), shown.type)
        nest.out.add(f"out.null({i});" if value is None else f"out.put({i}, {value.text});")


def weight(terms: Terms, step: Emit, scope: Scope) -> str:
    """How often a row is there."""
    return terms.to(terms.product(step.product, scope), COUNT).text


def cell(terms: Terms, value: Cpp, type_: Type) -> Cpp | None:
    """A value as a cell of its column; None for NULL itself."""
    if value.kind == NULL:
        return None
    return terms.held(terms.bounded(value), _cell_kind(value.kind, type_), value.optional)


def _cell_kind(kind: Kind, type_: Type) -> Kind:
    match type_.held.kind, kind:
        case "DOUBLE", (Exact() | Inexact()):
            return DOUBLE
        case "DECIMAL", Exact(scale, bits) if scale <= type_.scale:
            return Exact(type_.scale, max(bits, 64))
        case _, Exact(0, _) if type_.held.is_integer or type_.held.kind in ("DATE", "TIMESTAMP"):
            return kind
        case "VARCHAR", _ if kind == TEXT:
            return TEXT
        case "BOOLEAN", _ if kind == BOOLEAN:
            return BOOLEAN
    raise Unfit(f"{kind} as {type_}")
