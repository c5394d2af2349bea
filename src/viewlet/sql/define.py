"""What statements do to the names that a script has defined: create, replace, drop and rename."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlglot import exp

from viewlet.program.trigger import Result
from viewlet.schema import CLOCK, Relation
from viewlet.sql.checks import checks
from viewlet.sql.ddl import data_type, relation
from viewlet.sql.heads import Head, Kind
from viewlet.sql.parse import AnyStatement, Change, Drop, Rename, Statement
from viewlet.sql.result import result
from viewlet.sql.scope import Catalog, Dialect, Names, Session
from viewlet.sql.source import Place, Source, did_you_mean
from viewlet.sql.table import defined_view

T = TypeVar("T")


@dataclass(frozen=True)
class Dropped:
    """The rows of a relation go."""

    name: str


@dataclass(frozen=True)
class Moved:
    """The rows of a relation have a new name."""

    name: str
    new: str


@dataclass(frozen=True)
class Changed:
    """A statement that changes rows, and what its names mean where it stands."""

    statement: Change
    catalog: Catalog
    source: Source


Step = Dropped | Moved | Changed  # what a script does to rows, in order


@dataclass
class Definitions:
    """The names of a script while its statements are read."""

    source: Source
    dialect: Dialect
    catalog: Catalog
    results: dict[str, Result]
    steps: list[Step] = field(default_factory=list)
    dropped: set[Dropped] = field(default_factory=set)

    def take(self, statement: AnyStatement) -> None:
        match statement:
            case Statement():
                self._create(statement)
            case Drop(head) if head.kind == "TYPE":
                self._drop_type(head)
            case Drop(head):
                if self._is_there(head):
                    self._drop(head)
            case Rename(head, column, new):
                if self._is_there(head):
                    self._rename(head, column, new)
            case Change():
                self._change(statement)

    # -- CREATE --------------------------------------------------------------------------------------------------------

    def _create(self, statement: Statement) -> None:
        if statement.name == CLOCK.name:
            raise self.source.error(statement.place, "now() is the clock", "choose another name")
        if statement.kind == "TYPE":
            self._create_type(statement)
            return
        if statement.name in self.catalog:
            if statement.unless_there:
                return
            if not statement.replaces:
                hint = "choose another name, or write CREATE OR REPLACE"
                raise self.source.error(statement.place, f"{statement.name} is defined twice", hint)
            self._check_kind(statement.place, statement.name, statement.kind)
            self._check_unread(statement.place, statement.name, "be replaced")
            self._forget(statement.name)
        if statement.kind == "VIEW":
            self._create_view(statement)
        else:
            self._create_relation(statement)

    def _create_type(self, statement: Statement) -> None:
        """Another name for a type: what is defined with it has the type itself."""
        known = statement.name in self.catalog.types
        if known and not statement.replaces and not statement.unless_there:
            hint = "choose another name, or write CREATE OR REPLACE TYPE"
            raise self.source.error(statement.place, f"type {statement.name} is defined twice", hint)
        assert isinstance(statement.tree, exp.DataType)
        if not (known and statement.unless_there):
            place = exp.Identifier(this=statement.name)
            place.meta["start"] = statement.place.start
            self.catalog.types[statement.name] = data_type(self.source, place, statement.tree)

    def _create_relation(self, statement: Statement) -> None:
        relation_, derived = relation(self.source, statement), self.catalog.derived.get(statement.name, ())
        if (derived or statement.name in self.catalog.elements) and Dropped(statement.name) in self.dropped:
            hint = "choose another name: functions of its rows were computed for the one before"
            raise self.source.unsupported(statement.place, f"{statement.name} defined again", hint)
        checked = checks(self.source, statement.tree.this, relation_.columns)
        self.catalog.define(replace(relation_, columns=relation_.columns + checked + derived))

    def _create_view(self, statement: Statement) -> None:
        session = Session(self.source, self.catalog, self.dialect, Names())
        if statement.materialized:
            self.results[statement.name] = result(session, statement)
            self.catalog.views[statement.name] = statement
            return
        with_it = Catalog(self.catalog.relations, {**self.catalog.views, statement.name: statement})
        defined_view(replace(session, catalog=with_it), statement.name)  # as others will read it
        self.catalog.views[statement.name] = statement

    # -- DROP and ALTER ------------------------------------------------------------------------------------------------

    def _is_there(self, head: Head) -> bool:
        if head.name not in self.catalog:
            if head.optional:
                return False
            raise self._unknown(head.place, head.name)
        self._check_kind(head.place, head.name, head.kind, head.materialized)
        return True

    def _drop_type(self, head: Head) -> None:
        if self.catalog.types.pop(head.name, None) is None and not head.optional:
            known = ", ".join(self.catalog.types) or "none"
            raise self.source.error(head.place, f"there is no type {head.name}", f"there are: {known}")

    def _drop(self, head: Head) -> None:
        self._check_unread(head.place, head.name, "be dropped")
        self._forget(head.name)

    def _forget(self, name: str) -> None:
        for child in [r.name for r in self.catalog.relations.values() if r.of == name]:
            self._forget(child)
        if self.catalog.relations.pop(name, None) is not None:
            self.steps.append(Dropped(name))
            self.dropped.add(Dropped(name))
        self.catalog.views.pop(name, None)
        self.results.pop(name, None)

    def _rename(self, head: Head, column: str, new: str) -> None:
        self._check_unread(head.place, head.name, "be renamed")
        computed = head.name in self.catalog.elements or head.name in self.catalog.derived
        if head.name in self.catalog.relations and (computed or self.catalog.relations[head.name].derived):
            hint = "drop it, and define it with another name"
            raise self.source.unsupported(head.place, "RENAME where functions of the rows were computed", hint)
        if column:
            self._rename_column(head, column, new)
        elif new != head.name:
            if new in self.catalog or new == CLOCK.name:
                raise self.source.error(head.place, f"the name {new} is taken", "choose another name")
            self._rename_whole(head.name, new)

    def _rename_whole(self, name: str, new: str) -> None:
        self.catalog.relations = _renamed(self.catalog.relations, name, new, lambda r: replace(r, name=new))
        self.catalog.views = _renamed(self.catalog.views, name, new, lambda s: replace(s, name=new))
        self.results = _renamed(self.results, name, new, lambda r: replace(r, name=new))
        if new in self.catalog.relations:
            self.steps.append(Moved(name, new))

    def _rename_column(self, head: Head, column: str, new: str) -> None:
        table = self.catalog.relations.get(head.name)
        if table is None:
            hint = "drop the view, and create it with other names: CREATE MATERIALIZED VIEW v (a, b) AS …"
            raise self.source.unsupported(head.place, "RENAME COLUMN of a view", hint)
        names = [c.name for c in table.columns]
        if column not in names:
            hint = did_you_mean(column, names, f"the columns are: {', '.join(names)}")
            raise self.source.error(head.place, f"there is no column {column} in {head.name}", hint)
        if new in names:
            raise self.source.error(head.place, f"there is a column {new} already", "choose another name")
        self.catalog.relations[head.name] = _with_column(table, column, new)

    # -- INSERT, UPDATE, DELETE ----------------------------------------------------------------------------------------

    def _change(self, statement: Change) -> None:
        if statement.name in self.catalog.views:
            message = f"{statement.name} is a view: it follows from its tables"
            raise self.source.error(statement.place, message, "change the rows of its tables")
        if statement.name not in self.catalog:
            raise self._unknown(statement.place, statement.name)
        if self.dialect == "paper" and (views := tables_read(statement.tree) & self.catalog.views.keys()):
            hint = "read it in Python, and insert its rows: DuckDB would give NULL for a sum of nothing"
            construct = f"reading the view {min(views)} in the paper's dialect"
            raise self.source.unsupported(statement.place, construct, hint)
        now = Catalog(dict(self.catalog.relations), dict(self.catalog.views), types=dict(self.catalog.types))
        self.steps.append(Changed(statement, now, self.source))

    # -- what stands in the way ----------------------------------------------------------------------------------------

    def _unknown(self, place: Place, name: str) -> Exception:
        known = self.catalog.names
        hint = did_you_mean(name, known, f"there are: {', '.join(known) or 'none'}")
        return self.source.error(place, f"there is no stream, table or view {name}", hint)

    def _check_kind(self, place: Place, name: str, kind: Kind, materialized: bool = False) -> None:
        """A view is no table; a stream is a table to other engines, and may be called one."""
        is_view = name in self.catalog.views
        if is_view != (kind == "VIEW"):
            actual = "a view" if is_view else "a stream" if not self.catalog.relations[name].static else "a table"
            raise self.source.error(place, f"{name} is {actual}", f"write {actual.removeprefix('a ').upper()}")
        if materialized and not self.catalog.views[name].materialized:
            raise self.source.error(place, f"{name} is a plain view", "leave MATERIALIZED out")

    def _check_unread(self, place: Place, name: str, fate: str) -> None:
        readers = [view for view, statement in self.catalog.views.items() if name in tables_read(statement.tree)]
        if readers:
            message = f"{name} cannot {fate}: {', '.join(readers)} read{'s' * (len(readers) == 1)} it"
            raise self.source.error(place, message, f"drop {readers[-1]} first")


def tables_read(tree: exp.Expr) -> set[str]:
    """The names in FROM clauses, those of WITH queries included: a name that may be read counts as read."""
    return {table.name.lower() for table in tree.find_all(exp.Table)}


def _renamed(named: dict[str, T], name: str, new: str, change: Callable[[T], T]) -> dict[str, T]:
    """At the same place."""
    return {
        new if known == name else known: change(value) if known == name else value for known, value in named.items()
    }


def _with_column(table: Relation, column: str, new: str) -> Relation:
    def named(name: str) -> str:
        return new if name == column else name

    return replace(
        table,
        columns=tuple(replace(c, name=named(c.name)) for c in table.columns),
        distinct={named(name): n for name, n in table.distinct.items()},
        hot={named(name): part for name, part in table.hot.items()},
        key=tuple(map(named, table.key)),
        unique=tuple(tuple(map(named, key)) for key in table.unique),
    )
