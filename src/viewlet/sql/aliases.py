"""Names of SELECT items that are used again: in later items, in WHERE and in HAVING, as DuckDB has it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from viewlet.sql.expr import Expr
from viewlet.sql.expression import expression
from viewlet.sql.scope import Aliases, Scope


@dataclass(frozen=True)
class AliasedScope(Scope):
    """The columns of FROM, then the names of SELECT items, then the query around it."""

    def visible(self, node: exp.Column) -> Expr | None:
        return super().visible(node) or meant(node, self)


def meant(node: exp.Column, scope: Scope) -> Expr | None:
    """The SELECT item that a plain name stands for; it sees only those before it, so none stands for itself."""
    aliases = scope.aliases
    place = next((i for i, (name, _) in enumerate(aliases) if name == node.name.lower()), None)
    if place is None or node.table:
        return None
    item = expression(aliases[place][1], replace(scope, aliases=aliases[:place]))
    if item.type is not None and item.type.kind == "LIST" and item.term.text not in scope.session.names.origins:
        hint = "select the list as it is, and compute from it when you read"
        raise scope.session.source.unsupported(node, f"the list {node.name} inside an expression", hint)
    return item


def seeing(scope: Scope, aliases: Aliases) -> Scope:
    if isinstance(scope, AliasedScope):
        return replace(scope, aliases=aliases)
    inner = scope.session, scope.fields, scope.outer, scope.common
    return AliasedScope(*inner, aliases, rows=scope.rows) if aliases else scope


def aliases_of(tree: exp.Select) -> Aliases:
    return tuple((item.alias.lower(), item.this) for item in tree.expressions if isinstance(item, exp.Alias))


def aliases_before(tree: exp.Select, node: exp.Expr) -> Aliases:
    """The names of the SELECT items before one."""
    aliases: list[tuple[str, exp.Expr]] = []
    for item in tree.expressions:
        if item is node or item.this is node:
            break
        if isinstance(item, exp.Alias):
            aliases.append((item.alias.lower(), item.this))
    return tuple(aliases)
