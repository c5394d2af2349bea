"""Window functions over groups: ``sum(sum(x)) OVER (PARTITION BY k) … GROUP BY k, m`` is a window over a subquery.

The subquery has the groups, with a column for each aggregate and each key that the SELECT items use. The items are
then over its columns, and no longer an aggregation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from viewlet.sql.scope import Scope
from viewlet.sql.select_list import is_of_window

GROUPS = "groups#"  # which no table of the user's is called
_OUTER = ("expressions", "qualify", "distinct")
_WRITTEN = "name what to group by"


def over_groups(tree: exp.Select, scope: Scope) -> exp.Select:
    """``scope`` has the columns of FROM."""
    items = list(tree.expressions)
    aliases = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}
    _check(tree, scope)
    written = _written_out(scope, aliases)
    groups = [_group(node, items, written) for node in _keys(tree)]
    inner = _Inner(groups, scope, aliases)
    shown = [_named(item, inner.outside(item)) for item in items]
    outer = exp.Select(expressions=shown, distinct=tree.args.get("distinct"))
    if tree.args.get("qualify"):
        outer.set("qualify", exp.Qualify(this=inner.outside(tree.args["qualify"].this)))
    query = tree.copy()
    for part in _OUTER:
        query.set(part, None)
    query.set(
        "expressions",
        [exp.alias_(node.copy(), name) for node, name in inner.columns.items()]
        or [exp.alias_(exp.Literal.number(1), "one#")],
    )
    if tree.args.get("group") and not tree.args["group"].args.get("all"):
        query.args["group"].set("expressions", [*(node.copy() for node in groups), *_sets(tree)])
    for part in ("where", "having"):
        if query.args.get(part):
            query.args[part].set("this", query.args[part].this.transform(written))
    outer.set("from_", exp.From(this=exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(GROUPS)))))
    return outer


def _check(tree: exp.Select, scope: Scope) -> None:
    source = scope.session.source
    group = tree.args.get("group")
    if group is not None and group.args.get("all"):
        raise source.unsupported(group, "GROUP BY ALL beside a window function", _WRITTEN, "GROUP")
    star = next((item for item in tree.expressions if item.find(exp.Star) and not item.find(exp.AggFunc)), None)
    if star is not None:
        raise source.unsupported(star, "* beside a window function over groups", "name the columns")


def _keys(tree: exp.Select) -> Iterator[exp.Expr]:
    group = tree.args.get("group")
    for node in group.expressions if group is not None else ():
        if not isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            yield node


def _sets(tree: exp.Select) -> list[exp.Expr]:
    group = tree.args["group"]
    return [node.copy() for node in group.expressions if isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets))]


def _group(node: exp.Expr, items: list[exp.Expr], written: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """GROUP BY 1 means a SELECT item."""
    if isinstance(node, exp.Literal) and not node.is_string and 1 <= int(node.this) <= len(items):
        item = items[int(node.this) - 1]
        return item.this if isinstance(item, exp.Alias) else item
    written_out = node.copy().transform(written)
    return written_out.unnest() if isinstance(node, exp.Column) else written_out


def _written_out(scope: Scope, aliases: Mapping[str, exp.Expr]) -> Callable[[exp.Expr], exp.Expr]:
    """Each name of a SELECT item as what it stands for; a column of FROM comes first."""

    def meant(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.table or scope.has(part):
            return part
        stands_for = aliases.get(part.name.lower())
        return part if stands_for is None else exp.paren(stands_for, copy=True)

    return meant


def _named(item: exp.Expr, over: exp.Expr) -> exp.Expr:
    plain = item.unnest()
    return exp.alias_(over, plain.name.lower()) if isinstance(plain, exp.Column) else over


@dataclass(frozen=True)
class _Inner:
    """The columns of the subquery, by what they are there."""

    groups: list[exp.Expr]
    scope: Scope
    aliases: Mapping[str, exp.Expr]
    columns: dict[exp.Expr, str] = field(default_factory=dict)

    def outside(self, node: exp.Expr) -> exp.Expr:
        """An expression over groups as one over the columns of the subquery."""
        if self.is_column(node):
            name = self.columns.setdefault(node, f"column{len(self.columns) + 1}#")
            made = exp.column(name, table=GROUPS)
            for part in (made, *made.parts):
                part.meta.update(next((p.meta for p in node.walk() if "start" in p.meta), {}))
            return made
        copy = node.copy()
        for child in list(copy.iter_expressions()):
            child.replace(self.outside(child))
        return copy

    def is_column(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Column):
            return bool(node.table) or self.scope.has(node) or node.name.lower() not in self.aliases
        if isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.IgnoreNulls)) and not is_of_window(node):
            return not isinstance(node, exp.IgnoreNulls) or isinstance(node.this, exp.AnyValue)
        is_closed = isinstance(node, (exp.Query, exp.SubqueryPredicate, exp.Grouping, exp.GroupingId))
        return is_closed or any(node == group for group in self.groups)
