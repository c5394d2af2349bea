"""Names: what a column reference means, and fresh variables for the calculus."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import ClassVar

from sqlglot import exp

from viewlet.algebra.query import Query, Rel, inputs, outputs, rename, variables
from viewlet.schema import BIGINT, Column, Relation, Type
from viewlet.schema import Dialect as Dialect
from viewlet.sql.expr import Expr
from viewlet.sql.parse import Statement
from viewlet.sql.source import Source, did_you_mean

Aliases = tuple[tuple[str, exp.Expr], ...]  # names of SELECT items, in order


class Wider(Exception):
    """The script needs more of a relation than it has yet: translate again, with it."""

    relation: str


class NewColumn(Wider):
    """A derived column."""

    def __init__(self, relation: str, column: Column) -> None:
        super().__init__(relation, column)
        self.relation, self.column = relation, column


class NewElements(Wider):
    """The elements of a list."""

    def __init__(self, relation: str, unnested: Unnested) -> None:
        super().__init__(relation, unnested)
        self.relation, self.unnested = relation, unnested


class Names:
    """Variables, each given once in a view: ``b.price``, then ``b.price_2``, …"""

    def __init__(self) -> None:
        self._base: dict[str, str] = {}
        self._count: dict[str, int] = {}
        self.origins: dict[str, tuple[Rel, str]] = {}  # of a variable that is a column: who reads it, and its name

    def fresh(self, wanted: str) -> str:
        """A quoted name may hold anything; in a variable every part between dots is a plain name."""
        base = self._base.get(wanted) or re.sub(r"(?:^|(?<=\.))(?=[\d.]|$)|[^A-Za-z0-9_.]", "_", wanted)
        while True:
            self._count[base] = count = self._count.get(base, 0) + 1
            name = base if count == 1 else f"{base}_{count}"
            if name not in self._base:
                self._base[name] = base
                return name

    def apart(self, queries: Iterable[Query], keep: Iterable[str] = ()) -> list[Query]:
        """Queries over the same variables, so renamed that all may stand in one product; inputs and ``keep`` stay."""
        first, *others = queries
        return [first, *(self._copy(q, frozenset(keep)) for q in others)]

    def forget_rows_inside(self, product: Query) -> None:
        """A column has no origin any more where the product gives it and not the row that it was read from."""
        given = outputs(product)
        for var in given & self.origins.keys():
            if not given.issuperset(self.origins[var][0].vars):
                del self.origins[var]

    def _copy(self, q: Query, keep: frozenset[str]) -> Query:
        return rename(q, {old: self.fresh(old) for old in sorted(variables(q) - keep - inputs(q))})


@dataclass(frozen=True)
class Unnested:
    """A list that DuckDB computes of a row, the name of the relation of its elements, and their type."""

    name: str
    text: str
    type: Type

    def relation(self, parent: Relation, derived: tuple[Column, ...]) -> Relation:
        """The columns of the parent, the element, its place, and what is derived of all these."""
        taken = {column.name for column in parent.columns}
        free = next(f"element_{i}" for i in count(1) if f"element_{i}" not in taken)
        plain = tuple(replace(column, derived="") for column in parent.columns)
        more = Column(free, self.type), Column(f"{free}_place", BIGINT, nullable=False)
        return Relation(
            self.name,
            (*plain, *more, *derived),
            parent.static,
            parent.rate,
            parent.rows,
            of=parent.name,
            unnests=self.text,
            stored=parent.stored,
        )


@dataclass
class Catalog:
    """What the script has defined so far."""

    relations: dict[str, Relation] = field(default_factory=dict)
    views: dict[str, Statement] = field(default_factory=dict)
    derived: dict[str, tuple[Column, ...]] = field(default_factory=dict)  # of relations, defined or to be
    elements: dict[str, tuple[Unnested, ...]] = field(default_factory=dict)  # lists of relations, in the same way
    reads_clock: bool = False  # a view has now() in it
    types: dict[str, Type] = field(default_factory=dict)  # by CREATE TYPE

    def __contains__(self, name: str) -> bool:
        return name in self.relations or name in self.views

    @property
    def names(self) -> list[str]:
        return [*(name for name, relation in self.relations.items() if not relation.of), *self.views]

    def define(self, relation: Relation) -> None:
        """With the relations of the elements of its lists."""
        self.relations[relation.name] = relation
        for unnested in self.elements.get(relation.name, ()):
            self.define(unnested.relation(relation, self.derived.get(unnested.name, ())))

    def widen(self, new: Wider) -> None:
        """What the script needs more of, as if it had been there from the start."""
        if isinstance(new, NewColumn):
            self.derived[new.relation] = (*self.derived.get(new.relation, ()), new.column)
        elif isinstance(new, NewElements):
            self.elements[new.relation] = (*self.elements.get(new.relation, ()), new.unnested)


@dataclass(frozen=True)
class Session:
    """What the translation of one view shares."""

    source: Source
    catalog: Catalog
    dialect: Dialect
    names: Names
    single: list[Query] = field(default_factory=list)  # how many rows each subquery has that is used as a value


@dataclass(frozen=True)
class CommonTable:
    """A WITH query, and what it sees where it is defined: earlier WITH queries, and the query around it."""

    tree: exp.CTE
    common: Mapping[str, CommonTable]
    outer: Scope | None


@dataclass(frozen=True)
class Field:
    """A column that can be named: ``table.name``; one that USING ``merged`` into that of the left only so."""

    table: str
    name: str
    expr: Expr
    merged: bool = False

    def is_in(self, table: str) -> bool:
        """Whether ``table.*`` has it, or ``*`` where no table is named."""
        return self.table == table if table else not self.merged


@dataclass(frozen=True)
class Scope:
    """The columns of one FROM clause; ``outer`` is the query around it, whose columns correlate."""

    session: Session
    fields: tuple[Field, ...] = ()
    outer: Scope | None = None
    common: Mapping[str, CommonTable] = field(default_factory=dict)
    aliases: Aliases = ()
    rows: tuple[Query, ...] = field(default=(), kw_only=True)  # the product that has these columns, where it is known
    of_rows: ClassVar[bool] = True  # columns are read off rows, not off groups of them

    @property
    def levels(self) -> Iterator[Scope]:
        """This scope, then those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def adding(self, fields: tuple[Field, ...]) -> Scope:
        return replace(self, fields=self.fields + fields)

    def own(self, node: exp.Column) -> Field | None:
        """The column of this FROM clause that ``node`` names, if any."""
        fields = self._called(node)
        if len(fields) > 1:
            choices = " or ".join(f"{f.table}.{f.name}" for f in fields)
            raise self.session.source.error(node, f"column {node.name.lower()} is ambiguous", f"write {choices}")
        return fields[0] if fields else None

    def has(self, node: exp.Column) -> bool:
        """Whether ``node`` names a column of this FROM clause, or several, which is for :meth:`own` to refuse."""
        return bool(self._called(node))

    def _called(self, node: exp.Column) -> list[Field]:
        return [f for f in self.fields if f.name == node.name.lower() and f.is_in(node.table.lower())]

    def struct(self, node: exp.Column) -> exp.Column | None:
        """The column of this FROM clause that ``node`` names a field of: s of ``s.a``, t.s of ``t.s.a.b``."""
        return next((column for column in structs(node) if self._called(column)), None)

    def column(self, node: exp.Column) -> Expr:
        return self.resolved(node)[1]

    def resolved(self, node: exp.Column) -> tuple[Scope, Expr]:
        """The innermost scope that has the column, and what it is there."""
        for scope in self.levels:
            if (expr := scope.visible(node)) is not None:
                return scope, expr
        raise self._unknown(node)

    def visible(self, node: exp.Column) -> Expr | None:
        own = self.own(node)
        return own.expr if own else None

    def known(self, node: exp.Expr) -> Expr | None:
        """A whole expression that this scope has a name for (a GROUP BY expression)."""
        return None

    def aggregate(self, node: exp.AggFunc, condition: exp.Expr | None = None) -> Expr:
        hint = "aggregates stand in SELECT and HAVING, not inside one another; else write a subquery: (SELECT …)"
        written = self.session.source.called(node)
        name = node.key if written is None else written.text
        raise self.session.source.error(node, f"{name.upper()} cannot stand here", hint)

    def grouping_bits(self, node: exp.Expr) -> Expr:
        hint = "GROUPING stands in SELECT and HAVING of a query with GROUP BY"
        raise self.session.source.error(node, "GROUPING cannot stand here", hint)

    def _unknown(self, node: exp.Column) -> Exception:
        if any(level.struct(node) for level in self.levels):
            hint = "group by the field itself, or take it in a subquery over the stream or table"
            return self.session.source.unsupported(node, f"the field {node.sql()} here", hint)
        fields = [f for level in self.levels for f in level.fields]
        table = node.table.lower()
        if table and not any(table == f.table for f in fields):
            tables = sorted({f.table for f in fields})
            hint = did_you_mean(table, tables, f"the tables here are: {', '.join(tables) or 'none'}")
            return self.session.source.error(node, f"there is no table {table} in this query", hint)
        if not table and (refused := self._not_a_column(node, {f.table for f in fields})):
            return self.session.source.unsupported(node, *refused)
        names = list(dict.fromkeys(f.name for f in fields if f.is_in(table)))
        hint = did_you_mean(node.name.lower(), names, f"the columns here are: {', '.join(names) or 'none'}")
        return self.session.source.error(node, f"there is no column {node.sql()}", hint)

    def _not_a_column(self, node: exp.Column, tables: Collection[str]) -> tuple[str, str] | None:
        """What DuckDB knows by a plain name beside columns."""
        name = node.name.lower()
        if name in tables:
            return f"a whole row ({name}) as a value", "name the columns"
        if name in ("rowid", "user", "session_user"):
            return name, "keep it as a column of its own"
        return None


def structs(node: exp.Column) -> Iterator[exp.Column]:
    """The columns that a name with dots may be a field of: for ``a.b.c`` the column b of a table a, or the column a."""
    parts = node.parts
    if len(parts) > 2:
        yield exp.Column(this=parts[1].copy(), table=parts[0].copy())
    if len(parts) > 1:
        yield exp.Column(this=parts[0].copy())
