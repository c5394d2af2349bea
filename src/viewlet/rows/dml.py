"""INSERT, UPDATE, DELETE and TRUNCATE: DuckDB evaluates the statement, and what it did becomes events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from viewlet.duck import opened
from viewlet.errors import DataError, SqlError
from viewlet.program.encoding import Row, Stored
from viewlet.rows import arrow
from viewlet.rows.boundary import UnfitError, to_cell, values_of
from viewlet.rows.keys import Event, Keys
from viewlet.rows.unstored import refuse
from viewlet.schema import Column, Relation
from viewlet.sql.define import Changed, Dropped, Moved, Step, tables_read
from viewlet.sql.scope import Catalog

if TYPE_CHECKING:
    import duckdb

Table = Callable[[str], Mapping[Row, int]]
Encode = Callable[[Relation, object, int], Row]  # a row of values with its number in the statement ↦ cells
IN_SQL = ("ParserException", "SyntaxException", "BinderException", "CatalogException", "NotImplementedException")
CHOOSING: tuple[type[exp.Expr], ...] = (exp.Limit, exp.Fetch, exp.Offset, exp.Window, exp.First, exp.Last)
CHOOSING += (exp.AnyValue, exp.ArgMax, exp.ArgMin, exp.ArrayAgg, exp.GroupConcat)
READ_ONLY = "DuckDB reads no files here: insert their rows with db.insert"


class Workbench:
    """A DuckDB in which one statement at a time finds its tables, and nothing stays."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None

    def events(self, changed: Changed, table: Table, keys: Keys | None, encode: Encode) -> list[Event]:
        """What a statement does to the rows of its relation. ``keys`` find single rows without reading them all."""
        relation = changed.catalog.relations[changed.statement.name].as_given
        if isinstance(changed.statement.tree, exp.TruncateTable):
            refuse(relation, "none can be deleted by a statement")
            return [(relation.name, _given(relation, row), -times) for row, times in table(relation.name).items()]
        try:
            with self._transaction() as connection:
                return _Run(connection, changed, relation, table, keys, encode).events()
        except _duckdb().Error as error:
            raise _translated(changed, error) from error

    def _transaction(self) -> _Transaction:
        if self._connection is None:
            self._connection = opened()
        return _Transaction(self._connection)


class _Transaction:
    """All that happens inside is undone."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def __enter__(self) -> duckdb.DuckDBPyConnection:
        return self._connection.begin()

    def __exit__(self, *error: object) -> None:
        self._connection.rollback()


def _duckdb() -> Any:
    import duckdb  # a quarter of the time that it takes to import viewlet

    return duckdb


def _translated(changed: Changed, error: Exception) -> SqlError | DataError:
    kind, _, message = str(error).partition("\n")[0].partition(": ")
    statement = changed.statement
    if type(error).__name__ == "PermissionException":
        return changed.source.unsupported(statement.place, "a file in a statement", READ_ONLY)
    if type(error).__name__ in IN_SQL:
        return changed.source.error(statement.place, message or kind, "the statement is read by DuckDB's rules")
    return DataError(message or kind, relation=statement.name)


class _Run:
    """One statement."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        changed: Changed,
        relation: Relation,
        table: Table,
        keys: Keys | None,
        encode: Encode,
    ) -> None:
        self._connection, self._relation, self._rows_of, self._encode = connection, relation, table, encode
        self._statement, self._catalog, self._source = changed.statement, changed.catalog, changed.source
        self._keys = keys if keys is not None and relation.name in keys else None
        self._read = _all_read(self._catalog, _sources(self._statement.tree))

    def events(self) -> list[Event]:
        tree = self._statement.tree
        if isinstance(tree, exp.Insert):
            return self._upserted(tree) if _resolves_conflicts(tree) else self._inserted()
        pinned = _pinned(tree, self._relation) if self._keys is not None and not self._read else None
        if pinned is None or self._keys is None:
            return self._difference(self._table(self._relation.name), keyed=False)
        row = self._keys.primary(self._relation.name, pinned)
        return self._difference({} if row is None else {_given(self._relation, row): 1}, keyed=False)

    def _inserted(self) -> list[Event]:
        self._prepare({}, keyed=False)
        rows = self._rows(f"{self._statement.text} RETURNING *")
        return [(self._relation.name, row, 1) for row in rows]

    def _upserted(self, tree: exp.Insert) -> list[Event]:
        """Only the rows that are in the way matter: the statement without its conflict clause says which keys come."""
        if self._keys is None or self._relation.name in self._read:
            return self._difference(self._table(self._relation.name), keyed=True)
        plain = tree.copy()
        plain.set("conflict", None)
        plain.set("alternative", None)
        self._prepare({}, keyed=False)
        comes = self._rows(f"{plain.sql('duckdb')} RETURNING *")
        self._connection.rollback()
        self._connection.begin()
        holders = (holder for row in comes for holder in self._keys.holders(self._relation.name, row))
        there = {_given(self._relation, holder): 1 for holder in holders}
        return self._difference(there, keyed=True)

    def _difference(self, before: Mapping[Row, int], keyed: bool) -> list[Event]:
        self._prepare(before, keyed)
        self._connection.execute(self._statement.text)
        after = Counter(self._rows(f"SELECT * FROM {quoted(self._relation.name)}"))
        name = self._relation.name
        goes = [(name, row, after[row] - n) for row, n in before.items() if after[row] < n]
        comes = [(name, row, n - before.get(row, 0)) for row, n in after.items() if before.get(row, 0) < n]
        return [*goes, *comes]

    def _table(self, name: str) -> Mapping[Row, int]:
        refuse(self._catalog.relations[name], "a statement cannot read, update or delete them")
        relation, rows = self._catalog.relations[name], self._rows_of(name)
        return {_given(relation, row): times for row, times in rows.items()} if relation.derived else rows

    def _rows(self, sql: str) -> list[Row]:
        table: pa.Table = self._connection.sql(sql).to_arrow_table()
        try:
            rows = list(zip(*(table.column(i).to_pylist() for i in range(table.num_columns)), strict=True))
        except (OverflowError, ValueError) as error:  # an infinite date
            raise DataError(f"a value that no column holds: {error}", relation=self._relation.name) from error
        return [self._encode(self._relation, row, number) for number, row in enumerate(rows)]

    def _prepare(self, rows: Mapping[Row, int], keyed: bool) -> None:
        """The target with some of its rows; the other tables, and the views, that the statement reads."""
        for type_name, type_ in self._catalog.types.items():
            self._connection.execute(f"CREATE TYPE {quoted(type_name)} AS {type_}")
        whole = self._relation.name in self._read
        self._create(self._relation, self._table(self._relation.name) if whole else rows, keyed)
        for name in self._read:
            if name in self._catalog.relations and name != self._relation.name:
                self._create(self._catalog.relations[name].as_given, self._table(name), keyed=False)
        for name in self._catalog.views:
            if name in self._read:
                self._check_same(name)
                self._connection.execute(create_view(self._catalog, name))

    def _check_same(self, view: str) -> None:
        """Where rows are chosen among equals, or by their order, a view may have others than DuckDB finds."""
        tree = self._catalog.views[view].tree
        distinct_on = any(node.args.get("on") for node in tree.find_all(exp.Distinct))
        if distinct_on or tree.find(*CHOOSING) is not None:
            hint = f"read {view} in Python, and insert its rows with db.insert"
            raise self._source.unsupported(self._statement.place, f"reading {view}, which chooses among rows,", hint)

    def _create(self, relation: Relation, rows: Mapping[Row, int], keyed: bool) -> None:
        name = quoted(relation.name)
        columns = [f"{quoted(c.name)} {c.type}" + f" DEFAULT {c.default}" * bool(c.default) for c in relation.columns]
        if keyed:
            columns += [f"PRIMARY KEY ({', '.join(map(quoted, relation.key))})"] * bool(relation.key)
            columns += [f"UNIQUE ({', '.join(map(quoted, key))})" for key in relation.unique]
        self._connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        if rows:
            self._connection.register("viewlet_rows", as_arrow(relation, rows))
            self._connection.execute(f"INSERT INTO {name} SELECT * FROM viewlet_rows")
            self._connection.unregister("viewlet_rows")


def _given(relation: Relation, row: Row) -> Row:
    """Without derived columns, which stand at the end."""
    return row[: len(relation.given)]


def _sources(tree: exp.Expr) -> set[str]:
    """The tables that a statement reads beside the rows that it changes."""
    named = tree.this
    target = named.this if isinstance(named, exp.Schema) else named
    return {table.name.lower() for table in tree.find_all(exp.Table) if table is not target}


def _all_read(catalog: Catalog, names: Iterable[str]) -> set[str]:
    """With the tables behind views."""
    read: set[str] = set()
    waiting = [name for name in names if name in catalog]
    while waiting:
        name = waiting.pop()
        if name not in read:
            read.add(name)
            below = tables_read(catalog.views[name].tree) if name in catalog.views else set()
            waiting += [table for table in below if table in catalog]
    return read


def _resolves_conflicts(tree: exp.Insert) -> bool:
    return bool(tree.args.get("conflict") or tree.args.get("alternative"))


def _pinned(tree: exp.Expr, relation: Relation) -> Row | None:
    """The primary key that a WHERE names by literals: no other row can be meant."""
    where = tree.args.get("where")
    if where is None or where.find(exp.Query) is not None:
        return None
    literals = dict(_equalities(where.this))
    cells = [_literal_cell(relation.column(name), literals.get(name)) for name in relation.key]
    return None if None in cells else tuple(cells)


def _equalities(condition: exp.Expr) -> Iterator[tuple[str, exp.Literal]]:
    for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Literal):
            yield part.this.name.lower(), part.expression


def _literal_cell(column: Column | None, literal: exp.Literal | None) -> Stored:
    if column is None or literal is None or literal.is_string != (column.type.kind == "VARCHAR"):
        return None
    try:
        return to_cell(literal.name if literal.is_string else int(literal.name), column.type)
    except (UnfitError, ValueError):
        return None


def create_view(catalog: Catalog, name: str, *, temporary: bool = False) -> str:
    """The statement by which DuckDB knows a view."""
    statement = catalog.views[name]
    columns = f" ({', '.join(map(quoted, statement.columns))})" if statement.columns else ""
    kind = "TEMPORARY VIEW" if temporary else "VIEW"
    return f"CREATE {kind} {quoted(name)}{columns} AS {statement.tree.sql('duckdb')}"


def quoted(name: str) -> str:
    """A name as DuckDB takes it, whatever characters it has."""
    return exp.to_identifier(name, quoted=True).sql("duckdb")


def as_arrow(relation: Relation, rows: Mapping[Row, int]) -> pa.Table:
    """Rows of cells, each as often as it is there."""
    cells = [row for row, times in rows.items() for _ in range(times)]
    columns = list(zip(*cells, strict=True)) or [()] * len(relation.columns)
    pairs = zip(relation.columns, columns, strict=True)
    arrays = [arrow.made_of(c.type, arrow.held_array(c.type.held, values)) for c, values in pairs]
    return pa.Table.from_arrays(arrays, names=[c.name for c in relation.columns])


# -- scripts -----------------------------------------------------------------------------------------------------------


def changed_tables(
    tables: Mapping[str, Mapping[Row, int]], steps: Iterable[Step], bench: Workbench, encode: Encode
) -> dict[str, Counter[Row]]:
    """Tables after the statements of a script that define names as well; nothing else has seen any of it yet."""
    changed = {name: Counter(rows) for name, rows in tables.items()}
    for step in steps:
        match step:
            case Dropped(name):
                changed.pop(name, None)
            case Moved(name, new):
                changed[new] = changed.pop(name, Counter())
            case Changed():
                name = step.statement.name
                changed[name] = +_changed(changed, step, bench, encode)
    return changed


def rows_changed(
    before: Mapping[str, Mapping[Row, int]], steps: Sequence[Step], after: Mapping[str, Mapping[Row, int]]
) -> list[Event]:
    """What the statements of a script changed besides dropping tables and giving them new names."""
    if not any(isinstance(step, Changed) for step in steps):
        return []
    moved = dict(before)
    for step in steps:
        match step:
            case Dropped(name):
                moved.pop(name, None)
            case Moved(name, new):
                moved[new] = moved.pop(name, {})
    events: list[Event] = []
    for name, rows in after.items():
        was = moved.get(name, {})
        events += [(name, row, times - was.get(row, 0)) for row, times in rows.items() if times != was.get(row, 0)]
        events += [(name, row, -times) for row, times in was.items() if row not in rows]
    return events


def _changed(tables: Mapping[str, Counter[Row]], changed: Changed, bench: Workbench, encode: Encode) -> Counter[Row]:
    def table(name: str) -> Counter[Row]:
        return tables.get(name, Counter())

    name = changed.statement.name
    keys = Keys([changed.catalog.relations[name]], table)
    events = bench.events(changed, table, keys, encode)
    keys.check(events, lambda number: values_of(changed.catalog.relations[name], events[number][1]))
    return _after(table, events, name)


def changes(steps: Iterable[Step], table: Table, keys: Keys, bench: Workbench, encode: Encode) -> list[Event]:
    """The events of statements that change rows; each sees what those before it did."""
    events: list[Event] = []
    for step in steps:
        assert isinstance(step, Changed)
        untouched = all(step.statement.name != name for name, _, _ in events)
        now = partial(_now, step.catalog, table, events)
        events += bench.events(step, now, keys if untouched else None, encode)
    return events


def _now(catalog: Catalog, table: Table, events: Sequence[Event], name: str) -> Mapping[Row, int]:
    """The rows of a table after events, which have no derived columns."""
    if all(name != changed for changed, _, _ in events):
        return table(name)
    given = {_given(catalog.relations[name], row): times for row, times in table(name).items()}
    return +_after(lambda _: given, events, name)


def _after(table: Table, events: Iterable[Event], name: str) -> Counter[Row]:
    rows = Counter(table(name))
    for relation, row, times in events:
        if relation == name:
            rows[row] += times
    return rows
