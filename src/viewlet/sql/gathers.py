"""STRING_AGG and LIST, by any of their names: the values of a group in an order, put together when a view is read.

SQL leaves the order open where rows tie, or where there is no ORDER BY. Every engine then sorts by the values.
"""

from __future__ import annotations

from sqlglot import exp

from viewlet.algebra.query import Query, join, sum_
from viewlet.algebra.terms import NULL, Const, Var, free, substitute_term
from viewlet.errors import shortened
from viewlet.program.trigger import Gather, Order
from viewlet.schema import INTEGER, VARCHAR, list_of
from viewlet.sql.aggregate import Call, aggregates, one_argument
from viewlet.sql.casts import as_text
from viewlet.sql.expr import Expr, constant, rounded, variable
from viewlet.sql.expression import expression
from viewlet.sql.grouping import Grouping, bound
from viewlet.sql.scope import Scope
from viewlet.sql.types import shown

_TOP = "select it in the outermost SELECT of a materialized view, which groups the rows"
_ALONE = "select the list as it is, and compute from it when you read"


@aggregates(exp.GroupConcat)
def _text(call: Call) -> Expr:
    """STRING_AGG(x, ','): texts that are not NULL. GROUP_CONCAT and LISTAGG are the same."""
    one_argument(call)
    _refuse_below(call)
    separator, x = _separator(call), call.argument()
    if separator is None or x.type is None:
        return constant(NULL, VARCHAR)
    shown_as = as_text(call.node, call.scope, variable("x", x.type, False)).term
    grouping = call.grouping.where(*x.guards) if x.nullable else call.grouping
    bare = Expr(x.bare, x.type, x.bare, binds=x.binds, unrounded=x.unrounded)
    var, query, order = _ordered(call, bare, grouping)
    gather = Gather("", substitute_term(shown_as, {"x": Var(var)}), order, query, separator, call.distinct)
    return variable(call.grouping.gather(gather, "text"), VARCHAR, not call.grouping.fills(x))


@aggregates(exp.ArrayAgg)
def _list(call: Call) -> Expr:
    """LIST(x), with the NULLs; ARRAY_AGG is the same."""
    one_argument(call)
    _refuse_below(call)
    x, grouping = call.argument(), call.grouping
    if not _is_item(call.node):
        raise call.unsupported(f"{call.name} inside an expression", _ALONE)
    var, query, order = _ordered(call, x, grouping)
    gather = Gather("", Var(var), order, query, None, call.distinct)
    may_lack = grouping.sparse or not grouping.grouped
    return variable(grouping.gather(gather, "list"), list_of(shown(x.type or INTEGER)), may_lack)


def _refuse_below(call: Call) -> None:
    """A list is no number, so that nothing above could be maintained."""
    if not call.grouping.at_top:
        source = call.scope.session.source
        construct = f"{call.name} in a subquery, or beside one, or in a DISTINCT SELECT"
        raise source.unsupported(source.called(call.node) or call.node, construct, _TOP)


def _is_item(node: exp.Expr) -> bool:
    while isinstance(node.parent, (exp.Alias, exp.Filter, exp.Paren, exp.Window)):
        node = node.parent
    return isinstance(node.parent, exp.Select)


def _separator(call: Call) -> str | None:
    """A constant; None for NULL, which makes the whole text NULL."""
    node = call.node.args.get("separator")
    if node is None:
        return ","
    match None if node.find(exp.Column) else expression(node, Scope(call.scope.session)).term:
        case Const(str() as text, "string"):
            return text
        case Const(None, _):
            return None
    message = f"the separator {shortened(node.sql('duckdb'))} is no constant text"
    raise call.error(message, f"write it out: {call.name}(x, ',')")


def _ordered(call: Call, x: Expr, grouping: Grouping) -> tuple[str, Query, tuple[Order, ...]]:
    """The variable of x, Sum_{keys, x, order}, and the order, which ends with x."""
    x = rounded(x)
    var, product = bound(grouping.names, join(*grouping.factors, *x.binds), x.term, apart_from=grouping.keys)
    order, variables = list[Order](), {*grouping.keys, var}
    for item in call.order:
        y = rounded(expression(item.this, call.scope))
        term = substitute_term(y.term, {x.term.name: Var(var)}) if isinstance(x.term, Var) else y.term
        if y.term == x.term:
            term = Var(var)
        elif call.distinct:
            _check_of_value(call, item, x, y)
        elif free(y.term):
            name, product = bound(grouping.names, join(product, *y.binds), y.term, "order")
            term = Var(name)
            variables.add(name)
        order.append(Order(term, bool(item.args.get("desc")), bool(item.args.get("nulls_first"))))
    return var, sum_(variables, product), (*order, Order(Var(var)))


def _check_of_value(call: Call, item: exp.Ordered, x: Expr, y: Expr) -> None:
    """Equal values have one place, whatever rows they come from."""
    if y.binds or not free(y.term) <= free(x.term) or not (isinstance(x.term, Var) or not free(y.term)):
        message = f"{call.name}(DISTINCT x ORDER BY y): y is no function of x"
        hint = "order by the value itself, or leave DISTINCT out"
        raise call.scope.session.source.error(item, message, hint)
