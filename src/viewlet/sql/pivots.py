"""PIVOT and UNPIVOT: the SELECT that each stands for.

``PIVOT t ON c IN ('a', 'b') USING sum(x) GROUP BY k`` has a column for each value that is listed:
``SELECT k, sum(x) FILTER (WHERE c::VARCHAR = 'a') AS a, … FROM t GROUP BY k``. UNPIVOT is a UNION ALL over its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product

from sqlglot import exp

from viewlet.sql.source import Source

_LISTED = "the columns of a view are fixed: list the values, ON x IN ('a', 'b')"
_NAMED = "name each of them: USING sum(x) AS total, count(*) AS n"


class Rest(exp.Star):
    """The columns that a PIVOT does not name. There may be none."""


def write_pivots_out(source: Source, tree: exp.Expr) -> exp.Expr:
    for pivot in reversed(list(tree.find_all(exp.Pivot))):  # the inner ones first
        item = pivot.parent if pivot.arg_key == "pivots" else None
        written: exp.Expr = _written_out(pivot, source) if item is None else _subquery(item, source)
        whole = pivot if item is None else item
        tree = written if whole is tree else tree
        if whole.parent is not None:
            whole.replace(written)
    return tree


def _written_out(tree: exp.Pivot, source: Source) -> exp.Query:
    """Of ``PIVOT t ON …`` and ``UNPIVOT t ON …``, which stand where a SELECT may."""
    into = tree.args.get("into")
    if tree.args.get("unpivot"):
        name, values = (into.this.name, into.expressions) if into else ("name", [exp.to_identifier("value")])
        return _unpivoted(tree, tree.this, name, values, tree.expressions, source)
    return _pivoted(tree, tree.this, tree.expressions, tree.args.get("using") or [exp.Count(this=exp.Star())], source)


def _subquery(item: exp.Expr, source: Source) -> exp.Subquery:
    """Of ``t PIVOT (…)`` and ``t UNPIVOT (…)`` in FROM."""
    item = item.copy()
    pivots = item.args.pop("pivots")
    if len(pivots) > 1:
        raise source.unsupported(pivots[1], "a PIVOT of a PIVOT", "write the first one in a subquery")
    pivot = pivots[0]
    if pivot.args.get("unpivot"):
        inside = pivot.args["fields"][0]
        query = _unpivoted(pivot, item, inside.this.name, pivot.expressions, inside.expressions, source)
    else:
        query = _pivoted(pivot, item, pivot.args["fields"], pivot.expressions, source)
    return exp.Subquery(this=query, alias=pivot.args.get("alias") or exp.TableAlias(this=exp.to_identifier("pivot")))


# -- PIVOT -------------------------------------------------------------------------------------------------------------


def _pivoted(
    tree: exp.Pivot, item: exp.Expr, on: Sequence[exp.Expr], using: Sequence[exp.Expr], source: Source
) -> exp.Select:
    choices = [list(_choices(field, source)) for field in on]
    if len(using) > 1 and any(not part.alias for part in using):
        raise source.unsupported(tree, "PIVOT by several aggregates without names", _NAMED, "PIVOT")
    columns = [_column(part, chosen) for chosen in product(*choices) for part in using]
    group = tree.args.get("group")
    if group is not None:
        keys = [key.copy() for key in group.expressions]
        return exp.select(*keys, *columns).from_(item).group_by(*(key.copy() for key in keys), copy=False)
    select = exp.select(_without(_names(on) + _names(using)), *columns).from_(item)
    select.set("group", exp.Group(all=True))
    return select


def _choices(field: exp.Expr, source: Source) -> Iterator[tuple[str, exp.Expr]]:
    """Each value of ``c IN ('a', 'b')`` by its name, and the condition; DuckDB compares the texts."""
    if not isinstance(field, exp.In) or not field.expressions or not isinstance(field.this, exp.Column):
        raise source.unsupported(field, "PIVOT by values that are not listed", _LISTED, "PIVOT")
    for choice in field.expressions:
        value = choice.this if isinstance(choice, exp.PivotAlias) else choice
        text = _text(value, source)
        column = field.this.copy()
        same = column.is_(exp.null()) if text is None else exp.cast(column, "VARCHAR").eq(exp.Literal.string(text))
        yield choice.alias or text or "NULL", same


def _text(value: exp.Expr, source: Source) -> str | None:
    """None for NULL."""
    if isinstance(value, exp.Null):
        return None
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        return f"-{value.this.name}"
    if isinstance(value, (exp.Literal, exp.Boolean)):
        return value.name if isinstance(value, exp.Literal) else str(value.this).lower()
    raise source.unsupported(value, "a value of PIVOT that is no constant", "write its text: 'a', 7 or '2024-01-01'")


def _column(using: exp.Expr, chosen: Sequence[tuple[str, exp.Expr]]) -> exp.Expr:
    condition = exp.and_(*(same.copy() for _, same in chosen))
    value = exp.Filter(this=using.unalias().copy(), expression=exp.Where(this=condition))
    name = "_".join([*(name for name, _ in chosen), *([using.alias] if using.alias else [])])
    return exp.alias_(value, name, quoted=True)


def _names(parts: Sequence[exp.Expr]) -> list[str]:
    return [column.name for part in parts for column in part.find_all(exp.Column)]


def _without(names: Sequence[str]) -> Rest:
    return Rest(except_=[exp.column(name, quoted=True) for name in dict.fromkeys(names)])


# -- UNPIVOT -----------------------------------------------------------------------------------------------------------


def _unpivoted(
    tree: exp.Pivot, item: exp.Expr, name: str, values: Sequence[exp.Expr], listed: Sequence[exp.Expr], source: Source
) -> exp.Query:
    columns = [(part.this if isinstance(part, exp.PivotAlias) else part, part.alias) for part in listed]
    if len(values) != 1 or any(not isinstance(column, exp.Column) for column, _ in columns):
        raise source.unsupported(tree, "UNPIVOT of more than single columns", "list columns: ON a, b", "UNPIVOT")
    star, value = _without([column.name for column, _ in columns]), values[0].name
    parts: list[exp.Query] = [
        exp.select(
            star.copy(), exp.alias_(exp.Literal.string(alias or column.name), name), exp.alias_(column.copy(), value)
        )
        .from_(item.copy())
        .where(*([] if tree.args.get("include_nulls") else [column.copy().is_(exp.null()).not_()]))
        for column, alias in columns
    ]
    return reduce(lambda above, below: exp.union(above, below, distinct=False), parts)
