"""LIMIT and OFFSET in a subquery: the first rows of one group, which is all rows.

``SELECT a FROM r ORDER BY b LIMIT 3`` is ``SELECT a FROM r QUALIFY row_number() OVER (ORDER BY b) <= 3``. A query that
groups rows, has DISTINCT or is a set operation becomes a subquery first, and the limit stands outside. Rows that tie
are sorted by their columns, as at the end of a view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from viewlet.sql.scope import Session
from viewlet.sql.select_list import ORDER_ITEM, is_aggregating

_ROWS = "limited"  # the name of the subquery; its columns are called as before
_NAMED = "name the SELECT items that ORDER BY goes by: SELECT … AS x … ORDER BY x"


def limited(
    tree: exp.Expr, order: Sequence[exp.Ordered], limit: int | None, offset: int, session: Session
) -> exp.Select:
    """The query ``tree`` without its ending, but with no other rows than those that the ending leaves."""
    if isinstance(tree, exp.Select) and is_plain(tree):
        kept, terms = tree.copy(), [*_by_item(tree, order, session)]
    else:
        kept, terms = _around(tree, order, session)
    window = exp.Window(this=exp.RowNumber(), partition_by=[], over="OVER")
    if terms:
        window.set("order", exp.Order(expressions=terms))
    kept.set("qualify", exp.Qualify(this=_between(window, offset, limit)))
    return kept


def is_plain(tree: exp.Select) -> bool:
    """Its rows are those of FROM and WHERE."""
    return not is_aggregating(tree) and not tree.args.get("distinct") and not tree.args.get("qualify")


def first_value(tree: exp.Select, order: Sequence[exp.Ordered], session: Session) -> exp.Select:
    """(SELECT x … ORDER BY y LIMIT 1) as a value: SELECT first(x ORDER BY y) …, NULL where there is no row."""
    value, terms = tree.expressions[0].unalias().copy(), [*_by_item(tree, order, session)]
    kept = tree.copy()
    kept.set("expressions", [exp.First(this=exp.Order(this=value, expressions=terms) if terms else value)])
    return kept


def _between(window: exp.Window, offset: int, limit: int | None) -> exp.Expr:
    if limit is None:
        return exp.GT(this=window, expression=exp.Literal.number(offset))
    last = exp.Literal.number(offset + limit)
    if not offset:
        return exp.LTE(this=window, expression=last)
    return exp.Between(this=window, low=exp.Literal.number(offset + 1), high=last)


def _by_item(tree: exp.Select, order: Sequence[exp.Ordered], session: Session) -> Iterator[exp.Ordered]:
    """A place and a name alone mean a SELECT item; ALL is the order of rows that tie."""
    for node in order:
        if not _is_all(node, session):
            item = _item(tree, node, session)
            yield node if item is None else _ordered(node, exp.paren(item.unalias(), copy=True))


def _around(tree: exp.Expr, order: Sequence[exp.Ordered], session: Session) -> tuple[exp.Select, list[exp.Ordered]]:
    """SELECT * EXCLUDE (…) FROM (tree): with a column more for each term that no item has."""
    first, inner, added = _first_select(tree), tree.copy(), list[str]()
    terms = list[exp.Ordered]()
    for node in order:
        if _is_all(node, session):
            continue
        item = _item(first, node, session)
        name = item.alias_or_name if item is not None else ""
        if not name:
            if not isinstance(inner, exp.Select) or tree.args.get("distinct"):
                raise session.source.unsupported(node, "this ORDER BY of a subquery with LIMIT", _NAMED)
            name = f"{ORDER_ITEM}{len(added) + 1}"
            added.append(name)
            inner.append("expressions", exp.alias_(node.this if item is None else item, name, copy=True, quoted=True))
        terms.append(_ordered(node, exp.column(name, table=_ROWS, quoted=True)))
    star = exp.Star(except_=[exp.column(name, quoted=True) for name in added]) if added else exp.Star()
    rows = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(_ROWS)))
    return exp.select(star, copy=False).from_(rows, copy=False), terms


def _first_select(tree: exp.Expr) -> exp.Select:
    while not isinstance(tree, exp.Select):
        tree = tree.this
    return tree


def _item(tree: exp.Select, node: exp.Ordered, session: Session) -> exp.Expr | None:
    """The SELECT item that a term of ORDER BY means; None where it is an expression."""
    term, items = node.this.unnest(), tree.expressions
    if isinstance(term, exp.Literal) and not term.is_string:
        stars = any(item.find(exp.Star) and not item.find(exp.AggFunc) for item in items)
        if stars or not term.this.isdecimal() or not 1 <= int(term.this) <= len(items):
            raise session.source.unsupported(node, f"ORDER BY {term.this} in a subquery with LIMIT", _NAMED)
        item: exp.Expr = items[int(term.this) - 1]
        return item
    if not isinstance(term, exp.Column) or term.table:
        return next((item for item in items if isinstance(item, exp.Alias) and item.this == term), None)
    named = [item for item in items if item.alias_or_name.lower() == term.name.lower()]
    return named[0] if len(named) == 1 else None


def _is_all(node: exp.Ordered, session: Session) -> bool:
    term = node.this
    if not isinstance(term, exp.Var) or term.name.upper() != "ALL":
        return False
    if node.args.get("desc") or node.args.get("nulls_first"):
        raise session.source.unsupported(node, "ORDER BY ALL DESC in a subquery with LIMIT", _NAMED)
    return True


def _ordered(node: exp.Ordered, term: exp.Expr) -> exp.Ordered:
    changed = node.copy()
    changed.set("this", term)
    return changed
