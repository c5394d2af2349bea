"""ORDER BY at the end of a view: what each of its terms means.

A name alone means a SELECT item; within an expression the columns of FROM come first. An expression that no SELECT
item gives becomes one more item, which is not shown. Of DISTINCT rows and of a set operation there are no further
items, so that an expression is one over their columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewlet.errors import shortened
from viewlet.program.trigger import Order
from viewlet.sql.ending import Ending
from viewlet.sql.expr import rounded
from viewlet.sql.expression import expression
from viewlet.sql.scope import Field, Names, Scope, Session
from viewlet.sql.select_list import ORDER_ITEM, Item, OutputColumn, written_items
from viewlet.sql.table import block
from viewlet.sql.top import split_qualify

_CLOSED = (exp.Query, exp.SubqueryPredicate)
_NOT_SELECTED = "select it too, or order by a column that is selected"


@dataclass(frozen=True)
class Wanted:
    """A term of ORDER BY: the number of a SELECT item, or an expression over the columns of ``#``, the result."""

    meant: int | exp.Expr
    node: exp.Ordered


def with_order_items(tree: exp.Select, ending: Ending, session: Session) -> tuple[exp.Select, list[Wanted], int]:
    """The query with a SELECT item for each term of its ORDER BY, and how many items of it are shown: the first."""
    scope = block(split_qualify(tree)[0], Scope(replace(session, names=Names()))).scope
    items, added = written_items(tree, scope), list[exp.Expr]()
    terms = list[Wanted]()
    for node in ending.order:
        for meant in _meant(node, items, scope):
            if isinstance(meant, exp.Expr) and not tree.args.get("distinct"):
                added.append(meant)
                meant = len(items) + len(added) - 1
            elif isinstance(meant, exp.Expr):
                meant = _over_items(meant, items, scope)
            terms.append(Wanted(meant, node))
    if added:
        tree = tree.copy()
        for i, node_ in enumerate(added, 1):
            tree.append("expressions", exp.alias_(node_, f"{ORDER_ITEM}{i}", copy=True))
    return tree, terms, len(items)


def of_columns(names: Sequence[str], ending: Ending, session: Session) -> list[Wanted]:
    """The terms of an ORDER BY that sees nothing but the columns of a result."""
    scope = Scope(session, tuple(Field("", name, expression(exp.null(), Scope(session))) for name in names))
    items = [Item(name, exp.column(name)) for name in names]
    wanted = [Wanted(meant, node) for node in ending.order for meant in _meant(node, items, scope)]
    return [w if isinstance(w.meant, int) else replace(w, meant=_over_items(w.meant, items, scope)) for w in wanted]


def orders(
    wanted: Sequence[Wanted], columns: Sequence[OutputColumn], shown: int, session: Session
) -> tuple[Order, ...]:
    """In full: rows that agree in all terms of the ORDER BY follow one another by their columns, NULLs last."""
    scope = Scope(session, tuple(Field("#", str(i), c.expr) for i, c in enumerate(columns)))
    everything = [*(_order(w, scope) for w in wanted), *(Order(rounded(c.expr).term) for c in columns[:shown])]
    first = {order.term: order for order in reversed(everything)}
    return tuple(order for order in everything if first[order.term] is order)


def _order(wanted: Wanted, scope: Scope) -> Order:
    node = _result_column(wanted.meant) if isinstance(wanted.meant, int) else wanted.meant
    key = rounded(expression(node, scope))
    flags = bool(wanted.node.args.get("desc")), bool(wanted.node.args.get("nulls_first"))
    return Order(key.term, *flags)


def _result_column(place: int) -> exp.Column:
    return exp.column(str(place), table="#")


def _meant(ordered: exp.Ordered, items: Sequence[Item], scope: Scope) -> Iterator[int | exp.Expr]:
    """The SELECT items that a term of ORDER BY names, or itself."""
    node, source = ordered.this.unnest(), scope.session.source
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        yield from range(len(items))
        return
    number = node.this if isinstance(node, exp.Neg) else node
    if isinstance(number, (exp.Literal, exp.Null, exp.Boolean)):
        yield _place(node, len(items), scope)
        return
    if ordered.args.get("with_fill"):
        source.refuse(source.unsupported(ordered, "WITH FILL", "leave it out"))
    named = [i for i, item in enumerate(items) if _is_name(node) and item.name == node.name.lower()]
    same = named if len(named) == 1 else [i for i, item in enumerate(items) if item.node == node]
    yield same[0] if same else _written_out(node, items, scope)


def _place(node: exp.Expr, width: int, scope: Scope) -> int:
    """ORDER BY 2."""
    if isinstance(node, exp.Literal) and node.this.isdecimal() and 1 <= int(node.this) <= width:
        return int(node.this) - 1
    source, what = scope.session.source, shortened(node.sql("duckdb"))
    source.refuse(source.error(node, f"there is no SELECT item {what}", f"number the SELECT items from 1 to {width}"))
    return 0


def _is_name(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not node.table


def _written_out(node: exp.Expr, items: Sequence[Item], scope: Scope) -> exp.Expr:
    """The expression with each alias as what it stands for."""
    aliases = {item.name: item.node for item in items if item.name}

    def meant(part: exp.Expr) -> exp.Expr:
        if not _is_name(part) or part.find_ancestor(exp.Query) or scope.own(part) is not None:  # type: ignore[arg-type]
            return part
        stands_for = aliases.get(part.name.lower())
        return part if stands_for is None else exp.paren(stands_for, copy=True)

    return node.transform(meant)


def _over_items(node: exp.Expr, items: Sequence[Item], scope: Scope) -> exp.Expr:
    """The expression over columns of the result; what DISTINCT does not select has no one value."""

    def meant(part: exp.Expr) -> exp.Expr:
        place = next((i for i, item in enumerate(items) if _is_same(part, item.node, scope)), None)
        if place is not None:
            return _result_column(place)
        if isinstance(part, (exp.Column, exp.AggFunc, *_CLOSED)):
            source = scope.session.source
            raise source.unsupported(part, "ORDER BY what the rows do not show", _NOT_SELECTED)
        return part

    return node.transform(meant)


def _is_same(node: exp.Expr, item: exp.Expr, scope: Scope) -> bool:
    if isinstance(node, exp.Column) and isinstance(item, exp.Column):
        mine = scope.own(node)
        return mine is not None and mine is scope.own(item)
    return node == item
