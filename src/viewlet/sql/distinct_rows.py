"""By which variables no two rows of a product agree, where that is known: only then a row has one number."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from viewlet.algebra.query import Bind, Compare, Exists, Query, Rel, Union, Value, branches, factors, outputs
from viewlet.algebra.terms import Const
from viewlet.schema import Relation
from viewlet.sql.scope import Catalog


def row_key(product: Iterable[Query], known: Collection[str], catalog: Catalog) -> tuple[str, ...] | None:
    """The key of each factor: its PRIMARY KEY or all of its columns; of several keys one of ``known`` variables.

    None where rows may have copies.
    """
    found = list[str]()
    for factor in product:
        key = _key(factor, known, catalog)
        if key is None:
            return None
        found += key
    return tuple(dict.fromkeys(found))


def _key(factor: Query, known: Collection[str], catalog: Catalog) -> tuple[str, ...] | None:
    match factor:
        case Bind() | Compare():
            return ()
        case Union() if not outputs(factor) and all(_is_test(f) for b in branches(factor) for f in factors(b)):
            return ()  # the cases of a condition
        case Exists():
            return tuple(sorted(outputs(factor)))
        case Rel():
            keys = [tuple(_variables(factor, relation, key)) for relation, key in _keys(catalog, factor.name)]
            return min(keys, key=lambda key: len(set(key) - set(known)), default=None)
    return None


def _is_test(factor: Query) -> bool:
    return isinstance(factor, (Compare, Bind)) or (isinstance(factor, Value) and isinstance(factor.term, Const))


def _keys(catalog: Catalog, name: str) -> Iterable[tuple[Relation, tuple[str, ...]]]:
    """Those without a NULL: rows that have one may agree in all columns."""
    relation = catalog.relations.get(name)
    if relation is None:
        return []
    never_null = {column.name for column in relation.columns if not column.nullable} | set(relation.key)
    return [(relation, key) for key in (relation.key, *relation.unique) if key and never_null.issuperset(key)]


def _variables(atom: Rel, relation: Relation, key: Collection[str]) -> Iterable[str]:
    by_name = {column.name: var for column, var in zip(relation.columns, atom.vars, strict=True)}
    return [by_name[name] for name in key]
