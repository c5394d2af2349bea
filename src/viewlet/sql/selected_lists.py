"""SELECT unnest(xs): written out as FROM …, UNNEST(xs), which has the same rows."""

from __future__ import annotations

from sqlglot import exp

from viewlet.sql.source import Source

_CLOSED = (exp.Query, exp.AggFunc, exp.Window)


def unnest_in_from(source: Source, select: exp.Select) -> None:
    """Each ``unnest(xs)`` in the items, GROUP BY and ORDER BY as a column of what stands in FROM instead."""
    found = [node for node in select.find_all(exp.Explode) if node.find_ancestor(exp.Select) is select]
    if not found:
        return
    _check(source, select, found)
    name = exp.to_identifier("unnest", quoted=True)
    joined = exp.Unnest(
        expressions=[found[0].this.copy()],
        alias=exp.TableAlias(this=exp.to_identifier("unnest()", quoted=True), columns=[name]),
    )
    for node in found:
        whole = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        column = exp.column("unnest", table="unnest()", quoted=True)
        column.meta.update(node.meta)
        node.replace(exp.alias_(column, f"unnest({node.this.sql('duckdb')})", quoted=True) if whole else column)
    if select.args.get("from_") is None:
        select.set("from_", exp.From(this=joined))
    else:
        select.append("joins", exp.Join(this=joined))


def _check(source: Source, select: exp.Select, found: list[exp.Explode]) -> None:
    if any(node != found[0] for node in found):
        hint = "unnest one of them, or one list of both: unnest(list_zip(xs, ys))"
        raise source.unsupported(found[1], "several lists unnested in one SELECT", hint)
    first = found[0]
    if first.this.find(*_CLOSED) is not None or select.find(exp.Window) is not None:
        hint = "unnest in a subquery: FROM (SELECT unnest(xs) AS x FROM …)"
        raise source.unsupported(first, "unnest of an aggregate, or beside a window function,", hint)
