"""SELECT, GROUP BY and HAVING over the product of a FROM and WHERE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from itertools import chain, count

from sqlglot import exp

from viewlet.algebra.query import Query, join, outputs
from viewlet.algebra.terms import Term, Var, can_fail, free
from viewlet.errors import shortened
from viewlet.sql.aggregate import GroupedScope, is_shortened
from viewlet.sql.aliases import aliases_before, aliases_of, seeing
from viewlet.sql.expr import Expr, rounded, variable
from viewlet.sql.expression import boolean, expression, output
from viewlet.sql.grouping import Grouping, Keys, bound
from viewlet.sql.grouping_sets import GROUP_HINTS, expanded, grouping_sets
from viewlet.sql.scope import Aliases, Scope, Session
from viewlet.sql.star import star_items
from viewlet.sql.unsupported import only

_AROUND_CALL = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
ORDER_ITEM = "order#"  # begins the name of an item that only ORDER BY wants


@dataclass(frozen=True)
class OutputColumn:
    name: str
    expr: Expr


@dataclass(frozen=True)
class Item:
    """An item of SELECT; ``name`` is empty where nobody gave it one."""

    name: str
    node: exp.Expr


@dataclass(frozen=True)
class Block:
    """FROM and WHERE."""

    factors: tuple[Query, ...]
    scope: Scope


@dataclass(frozen=True)
class Aggregation:
    """GROUP BY, SELECT and HAVING of an aggregating block."""

    grouping: Grouping
    columns: tuple[OutputColumn, ...]
    having: Expr | None


def is_aggregating(tree: exp.Select) -> bool:
    own = [*tree.expressions, *([tree.args["having"]] if tree.args.get("having") else [])]
    return bool(tree.args.get("group") or tree.args.get("having")) or any(map(_has_aggregate, own))


def _has_aggregate(node: exp.Expr) -> bool:
    """An aggregate of this block, not of a subquery in it; one of a partition is none of this block."""
    return any(isinstance(n, exp.AggFunc) and not is_of_window(n) for n in _own_nodes(node))


def _own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    return node.walk(prune=lambda n: isinstance(n, exp.Query))


def is_of_window(node: exp.Expr) -> bool:
    """Whether a function stands before OVER."""
    parent = node.parent
    while isinstance(parent, _AROUND_CALL) and parent.this is node:
        node, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is node


def has_windows(tree: exp.Select) -> bool:
    """Whether SELECT or QUALIFY has a window function."""
    own = [*tree.expressions, *([tree.args["qualify"]] if tree.args.get("qualify") else [])]
    return any(isinstance(n, exp.Window) for node in own for n in _own_nodes(node))


def plain_columns(tree: exp.Select, from_where: Block) -> tuple[OutputColumn, ...]:
    named = _select_list(tree, from_where.scope)
    scopes = (seeing(from_where.scope, aliases_before(tree, node)) for _, node in named)
    return tuple(OutputColumn(name, output(node, s)) for (name, node), s in zip(named, scopes, strict=True))


def aggregation(tree: exp.Select, from_where: Block, at_top: bool = False) -> Aggregation:
    """``at_top``: the block is a view, not a part of one."""
    items = _select_list(tree, from_where.scope)
    grouping, keys = _grouping(tree, from_where, items)
    base, grouping = from_where.scope, replace(grouping, at_top=at_top)
    scope = GroupedScope(base.session, base.fields, base.outer, base.common, (), base, grouping, keys, dict(items))

    def knowing(aliases: Aliases) -> GroupedScope:
        return replace(scope, aliases=aliases, base=seeing(base, aliases))

    columns = tuple(OutputColumn(name, output(node, knowing(aliases_before(tree, node)))) for name, node in items)
    having = tree.args.get("having")
    condition = boolean(having.this, knowing(aliases_of(tree))) if having is not None else None
    return Aggregation(grouping, columns, condition)


def _grouping(tree: exp.Select, from_where: Block, items: list[tuple[str, exp.Expr]]) -> tuple[Grouping, Keys]:
    """One set of keys is columns of the product itself; several are :func:`expanded`."""
    session, sets = from_where.scope.session, _sets(tree, from_where.scope, items)
    nested = {node: expression(node, from_where.scope) for node in chain.from_iterable(sets) if node.find(exp.Query)}
    translated = [[nested.get(node) or expression(node, from_where.scope) for node in nodes] for nodes in sets]
    by_text = {node: key.term for node, key in nested.items()}
    if len(sets) > 1:
        _refuse_constants(session, chain.from_iterable(sets), chain.from_iterable(translated))
        written = chain.from_iterable(grouping_sets(session.source, tree.args["group"]))
        _refuse_twins(session, written, chain.from_iterable(translated))
        grouping, of_sets = expanded(session.names, join(*from_where.factors), translated)
        return grouping, replace(of_sets, written=by_text)
    product, keys, variables = join(*from_where.factors), dict[Term, Expr](), list[str]()
    columns = {key.term.name for key in translated[0] if isinstance(key.term, Var)} & outputs(product)
    for key in translated[0]:
        if _follows(key, columns):
            keys[key.term] = rounded(key)
            continue
        product = join(product, *key.binds)
        var, product = bound(session.names, product, rounded(key).term, "key")
        keys[key.term] = variable(var, key.type, key.nullable)
        variables.append(var)
    return Grouping(session.names, tuple(variables), (product,), bool(variables)), Keys(keys, written=by_text)


def _follows(key: Expr, columns: Set[str]) -> bool:
    """GROUP BY d, year(d): the year says nothing new, and the groups are those of d."""
    simple = not isinstance(key.term, Var) and not key.binds and not can_fail(key.term)
    return simple and bool(columns) and free(key.term) <= columns


def _refuse_constants(session: Session, nodes: Iterable[exp.Expr], keys: Iterable[Expr]) -> None:
    """In DuckDB every such constant of the SELECT is NULL in a set that lacks it; a term cannot say which ones.

    Nor can it say whether a COALESCE of the SELECT is a key, or that of a key which the set lacks.
    """
    for node, key in zip(nodes, keys, strict=True):
        if not free(key.term):
            hint = "group by columns and expressions over them"
            raise session.source.unsupported(node, "a constant among grouping sets", hint)
        if is_shortened(node, key):
            what, hint = "COALESCE of what is never NULL as a key of grouping sets", "group by its first argument"
            raise session.source.unsupported(node, what, hint)


def _refuse_twins(session: Session, written: Iterable[exp.Expr], keys: Iterable[Expr]) -> None:
    """CUBE (a, CAST(a AS DOUBLE)) has four sets, but one term cannot be there and missing.

    Nor can it in ((a), (t.a), (1)): DuckDB takes what is written in three ways for three keys.
    """
    first: dict[Term, exp.Expr] = {}
    for word, key in zip(written, keys, strict=True):
        if first.setdefault(key.term, word.unnest()) != word.unnest():
            hint = "leave one of them out, or write a key in one way: always a, t.a or 1"
            raise session.source.unsupported(word, "one value as two keys of grouping sets", hint)


def _sets(tree: exp.Select, scope: Scope, items: list[tuple[str, exp.Expr]]) -> list[list[exp.Expr]]:
    """The grouping sets of a GROUP BY, in which positions and aliases mean SELECT items."""
    clause, source = tree.args.get("group"), scope.session.source
    if clause is None:
        return [[]]
    only(source, clause, frozenset({"expressions", "all"}), GROUP_HINTS)
    if clause.args.get("all"):
        shown = [node for name, node in items if not name.startswith(ORDER_ITEM)]
        return [[node for node in shown if not _has_aggregate(node) and node.find(exp.Column)]]
    return [[_group_item(node, scope, items) for node in nodes] for nodes in grouping_sets(source, clause)]


def _group_item(node: exp.Expr, scope: Scope, items: list[tuple[str, exp.Expr]]) -> exp.Expr:
    """GROUP BY 1 and GROUP BY alias mean a SELECT item; a column of FROM comes before an alias."""
    if isinstance(node, exp.Literal) and not node.is_string:
        places = {str(i): item for i, (_, item) in enumerate(items, 1)}
        if node.this not in places:
            hint = f"number the SELECT items from 1 to {len(items)}"
            source = scope.session.source
            source.refuse(source.error(node, f"there is no SELECT item {shortened(node.this)}", hint))
        return places.get(node.this, exp.Null())
    if isinstance(node, exp.Column) and not node.table and not scope.has(node):
        return next((item for name, item in items if name == node.name.lower()), node)
    return node


def written_items(tree: exp.Select, scope: Scope) -> list[Item]:
    """The SELECT items by the names that their query calls them; ``*`` written out."""
    named = (exp.Alias, exp.Column, exp.Star)
    return [
        Item(name if isinstance(item.unnest(), named) else "", node)
        for i, item in enumerate(tree.expressions, 1)
        for name, node in _expanded(item, scope, i)
    ]


def _select_list(tree: exp.Select, scope: Scope) -> list[tuple[str, exp.Expr]]:
    """The SELECT items with their names; ``*`` written out, a name that comes again numbered as DuckDB does."""
    result: list[tuple[str, exp.Expr]] = []
    if not tree.expressions:
        raise scope.session.source.error(tree, "this SELECT has no columns", "name them, or write SELECT *")
    for i, item in enumerate(tree.expressions):
        for name, node in _expanded(item, scope, i + 1):
            taken = {n for n, _ in result}
            if name in taken and isinstance(item, exp.Alias):
                hint = "give each its own name: AS …"
                source = scope.session.source
                source.refuse(source.unsupported(item, f"the name {name} for two columns", hint))
            numbered = chain((name,), (f"{name}_{k}" for k in count(1)))
            unique = next(n for n in numbered if n not in taken)
            result.append((unique, node))
    return result


def _expanded(item: exp.Expr, scope: Scope, place: int) -> list[tuple[str, exp.Expr]]:
    if isinstance(item, exp.Alias):
        return [(item.alias.lower(), item.this)]
    if isinstance(item.unnest(), exp.Column):
        item = item.unnest()  # (a) is called a
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star):
        return star_items(item, star, scope)
    if isinstance(item, exp.Column):
        return [(item.name.lower(), item)]
    return [(_called(item, scope) or f"column_{place}", item)]


def _called(item: exp.Expr, scope: Scope) -> str:
    """The name of an aggregate as it is written, in small letters."""
    while isinstance(item, (exp.Filter, exp.IgnoreNulls)):
        item = item.this
    name = scope.session.source.called(item) if isinstance(item, exp.AggFunc) else None
    return name.text.lower() if name is not None else ""
