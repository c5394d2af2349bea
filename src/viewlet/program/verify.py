"""Is a trigger program whole? Every view closed, every statement typed, every read of something that is kept."""

from __future__ import annotations

from collections.abc import Iterable

from viewlet.algebra.query import Delta, Query, View, different_atoms, inputs, outputs
from viewlet.algebra.terms import free
from viewlet.algebra.verify import VerifyError, verify
from viewlet.program.trigger import Event, Extreme, Gather, MapDefinition, Program, Result, Statement, Trigger


def verify_program(program: Program) -> None:
    """Raise VerifyError, naming the view, trigger or result, unless ``program`` can be run."""
    _distinct("relation", (r.name for r in program.relations))
    _distinct("view", (v.name for v in program.views))
    _distinct("result", (r.name for r in program.results))
    _distinct("trigger", (f"{t.event.kind}{t.event.relation}" for t in program.triggers))
    for view in program.views:
        _verify_view(view, program)
    for trigger in program.triggers:
        _verify_trigger(trigger, program)
    for result in program.results:
        _verify_result(result, program)


def _verify_view(view: MapDefinition, program: Program) -> None:
    """M_Q[x_in][x_out] declares exactly the inputs and outputs that Q has."""
    where = f"view {view.name}"
    _distinct(f"{where}: variable", view.inputs + view.outputs)
    declared = frozenset(view.inputs)
    verify(view.definition, "definition", bound=declared, where=where)
    _same(where, "inputs", declared, inputs(view.definition))
    _same(where, "outputs", frozenset(view.outputs), outputs(view.definition) - declared)
    if bool(view.inputs) != view.is_cache:
        raise VerifyError(f"{where}: a view has inputs if and only if it says how to fill them")
    if view.fill is not None:
        verify(view.fill, "statement", bound=declared, where=f"{where}, fill")
        _same(f"{where}, fill", "outputs", frozenset(view.outputs), outputs(view.fill) - declared)
        _verify_reads(view.fill, f"{where}, fill", program)


def _verify_trigger(trigger: Trigger, program: Program) -> None:
    event, where = trigger.event, f"trigger {trigger.event}"
    relation = next((r for r in program.relations if r.name == event.relation), None)
    if relation is None:
        raise VerifyError(f"{where}: there is no relation {event.relation}")
    if relation.static:
        raise VerifyError(f"{where}: {relation.name} is static and has no triggers")
    arity = 0 if event.kind == "Δ" else len(relation.columns)
    if len(event.params) != arity:
        raise VerifyError(f"{where}: {len(event.params)} parameters where {arity} are due")
    _distinct(f"{where}: parameter", event.params)
    for statement in trigger.statements:
        _verify_statement(statement, event, f"{where}, statement {statement.target.text}", program)


def _verify_statement(statement: Statement, event: Event, where: str, program: Program) -> None:
    """The expression gives every variable of the target that the event does not; what else it binds is summed out."""
    target, expression = statement.target, statement.expression
    given = frozenset(event.params) | frozenset(target.inputs)
    _verify_reads(target, where, program)
    verify(expression, "statement", bound=given, bulk=event.kind == "Δ", where=where)
    _verify_reads(expression, where, program)
    _verify_update(expression, event, where, program)
    _within(where, frozenset(target.outputs), outputs(expression) | given)


def _verify_result(result: Result, program: Program) -> None:
    """Rows, lookups and extremes are closed reads of views; every term uses their variables only."""
    where = f"result {result.name}"
    keys = frozenset[str]()
    if result.rows is not None:
        verify(result.rows, "statement", where=where)
        _verify_reads(result.rows, where, program)
        keys = outputs(result.rows)
    for name, query in result.lookups:
        verify(query, "statement", bound=keys, where=f"{where}, lookup {name}")
        _verify_reads(query, f"{where}, lookup {name}", program)
        _within(f"{where}, lookup {name}", outputs(query), keys)
    for query in result.single:
        verify(query, "statement", where=f"{where}, single")
        _verify_reads(query, f"{where}, single", program)
        _within(f"{where}, single", outputs(query), frozenset())
    earlier, looked_up = keys, frozenset(name for name, _ in result.lookups)
    for extreme in result.extremes:
        _verify_extreme(extreme, earlier, f"{where}, {extreme.end} {extreme.var}", program)
        if extreme.place is not None:
            _within(f"{where}, the place of {extreme.var}", free(extreme.place), earlier | looked_up)
        earlier |= {extreme.var}
    for gather in result.gathers:
        _verify_gather(gather, f"{where}, gather {gather.var}", program)
    ends = (*(e.var for e in result.extremes), *(g.var for g in result.gathers), *(w.var for w in result.windows))
    for window in result.windows:
        terms = (*window.arguments, *window.partition, *(order.term for order in window.order))
        _within(f"{where}, window {window.var}", frozenset().union(*map(free, terms)), keys)
    variables = (*(name for name, _ in result.lookups), *ends)
    _distinct(f"{where}: variable", (*keys, *variables))
    known = keys | set(variables)
    for column in result.columns:
        _within(f"{where}, column {column.name}", free(column.term), known)
    if result.having is not None:
        _within(f"{where}, having", free(result.having), known)
    for order in result.order:
        _within(f"{where}, order by {order.term.text}", free(order.term), known)
    if result.offset < 0 or (result.limit or 0) < 0:
        raise VerifyError(f"{where}: limit and offset are numbers of rows")


def _verify_extreme(extreme: Extreme, keys: frozenset[str], where: str, program: Program) -> None:
    """The query gives the key, which is no key of the row, and besides it only keys of the row and earlier extremes."""
    verify(extreme.query, "statement", where=where)
    _verify_reads(extreme.query, where, program)
    _within(where, frozenset({extreme.key}), outputs(extreme.query))
    _within(where, outputs(extreme.query) - {extreme.key}, keys)
    if extreme.key in keys:
        raise VerifyError(f"{where}: {extreme.key} is a key of the row, which has one value of it")


def _verify_gather(gather: Gather, where: str, program: Program) -> None:
    """The query gives what the values and their order are computed from."""
    verify(gather.query, "statement", where=where)
    _verify_reads(gather.query, where, program)
    for term in (gather.term, *(order.term for order in gather.order)):
        _within(where, free(term), outputs(gather.query))


def _verify_reads(q: Query, where: str, program: Program) -> None:
    """Every view that Q names is kept, with these many inputs and outputs."""
    views = {v.name: v for v in program.views}
    for read in (a for a in different_atoms(q) if isinstance(a, View)):
        view = views.get(read.name)
        if view is None:
            raise VerifyError(f"{where}: there is no view {read.name}")
        if (len(read.inputs), len(read.outputs)) != (len(view.inputs), len(view.outputs)):
            raise VerifyError(f"{where}: {read.text} does not fit the view {view.read.text}")


def _verify_update(q: Query, event: Event, where: str, program: Program) -> None:
    """The only update that a statement reads is that of its own event."""
    for update in (a for a in different_atoms(q) if isinstance(a, Delta)):
        if update.name != event.relation or len(update.vars) != len(program.relation(event.relation).columns):
            raise VerifyError(f"{where}: {update.text} is not the update of this event")


def _same(where: str, what: str, declared: frozenset[str], actual: frozenset[str]) -> None:
    if declared != actual:
        raise VerifyError(f"{where}: {what} {_list(declared)} declared, but the query has {_list(actual)}")


def _within(where: str, used: frozenset[str], known: frozenset[str]) -> None:
    if not used <= known:
        raise VerifyError(f"{where}: nothing gives {_list(used - known)} a value")


def _distinct(what: str, names: Iterable[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise VerifyError(f"{what} {name} is there twice")
        seen.add(name)


def _list(names: frozenset[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}"
