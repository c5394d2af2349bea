"""Derived columns: what DuckDB computes of a row when it arrives, and again when the row leaves.

A relation may have columns that no user gives (:attr:`viewlet.schema.Column.derived`): ``regexp_extract(url, …)`` of
its row. Rows get them here, at the door. Behind it every engine sees columns like all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from viewlet.duck import connection, first_line
from viewlet.errors import DataError
from viewlet.program.encoding import Row
from viewlet.rows import arrow
from viewlet.rows.boundary import given_values, is_one_row, to_cell, to_key, value_of
from viewlet.schema import Relation

REMEMBERED = 1 << 14  # rows by what their derived columns read
Values = tuple[Any, ...]


class Door:
    """What the rows of one relation pass through."""

    def __init__(self, relation: Relation) -> None:
        self.relation, self.given = relation, relation.as_given
        trees = [sqlglot.parse_one(column.derived, read="duckdb") for column in relation.derived]
        named = {column.name.lower() for tree in trees for column in tree.find_all(exp.Column)}
        self._read = [i for i, column in enumerate(self.given.columns) if column.name in named]
        self._remembered = lru_cache(REMEMBERED)(self._computed_one)

    # -- rows of any form ----------------------------------------------------------------------------------------------

    def widened(self, data: Any) -> Any:
        """One row or many, with the derived columns behind the given ones."""
        if is_one_row(data, self.given):
            return self.row(data)
        if arrow.is_arrow(data):
            return self.table(arrow.as_table(data, self.relation.name))
        return self.rows(list(data)) if isinstance(data, Iterable) and not isinstance(data, str) else data

    def row(self, row: Any) -> Values:
        """A single row, whose like may have been here before."""
        read = self._reads(to_key(self.given, row))
        return (*given_values(self.given, row, 0), *self._remembered(read))

    def rows(self, rows: Sequence[Any]) -> list[Values]:
        read = [self._reads(to_key(self.given, row, number)) for number, row in enumerate(rows)]
        derived = self._computed_rows(read)
        given = (given_values(self.given, row, number) for number, row in enumerate(rows))
        return [(*mine, *more) for mine, more in zip(given, derived, strict=True)]

    def table(self, table: pa.Table) -> pa.Table:
        """An Arrow table by the names of its columns. One that is missing is NULL."""
        names = {name.lower(): name for name in table.column_names}
        read = [self.given.columns[i] for i in self._read]
        nulls = {c.name: pa.nulls(table.num_rows, arrow.arrow_type(c.type)) for c in read if c.name not in names}
        columns = [nulls[c.name] if c.name in nulls else table.column(names[c.name]) for c in read]
        try:
            derived = self.computed(pa.Table.from_arrays(columns, [c.name for c in read]))
        except DataError:  # perhaps of a value that its column does not take: row by row it is told which
            cells = [to_key(self.given, row, number) for number, row in enumerate(arrow.rows(table, self.given.name))]
            derived = self.computed(self._batch(list(map(self._reads, cells))))
        for name, column in zip(derived.column_names, derived.columns, strict=True):
            table = table.append_column(name, column)
        return table

    def stored(self, rows: Iterable[Row]) -> Iterable[Row]:
        """Rows as engines hold them, given columns only: with the derived ones behind."""
        kept = list(rows)
        read = list(map(self._reads, kept))
        derived = [self._remembered(*read)] if len(read) == 1 else self._computed_rows(read)
        for row, more in zip(kept, derived, strict=True):
            cells = [to_cell(value, column.type) for value, column in zip(more, self.relation.derived, strict=True)]
            yield (*row[: len(self.given.columns)], *cells)

    # -- computing -----------------------------------------------------------------------------------------------------

    def computed(self, read: pa.Table) -> pa.Table:
        """The derived columns of rows, from the columns that they read."""
        import duckdb

        types = {column.name: column.type for column in self.given.columns}
        inputs = ", ".join(f"CAST({_quoted(name)} AS {types[name]}) AS {_quoted(name)}" for name in read.column_names)
        derived = ", ".join(f"CAST({c.derived} AS {c.type}) AS {_quoted(c.name)}" for c in self.relation.derived)
        try:
            connection().register("arrived", read)
            derived_columns = connection().sql(f"SELECT {derived} FROM (SELECT {inputs} FROM arrived)").to_arrow_table()
        except duckdb.Error as error:
            raise self._refused(read, error) from error
        finally:
            connection().unregister("arrived")
        return derived_columns.cast(pa.schema([(c.name, arrow.arrow_type(c.type)) for c in self.relation.derived]))

    def _reads(self, cells: Row) -> Row:
        return tuple([cells[i] for i in self._read])

    def _computed_rows(self, read: Sequence[Row]) -> list[Values]:
        if not read:
            return []
        return list(zip(*(column.to_pylist() for column in self.computed(self._batch(read)).columns), strict=True))

    def _computed_one(self, read: Row) -> Values:
        return self._computed_rows([read])[0]

    def _batch(self, read: Sequence[Row]) -> pa.Table:
        """Cells of the columns that are read, as Arrow."""
        columns = [self.given.columns[i] for i in self._read]
        values = list(zip(*read, strict=True)) or [()] * len(columns)
        arrays = [
            pa.array(arrow.written([value_of(cell, c.type) for cell in cells], c.type), arrow.arrow_type(c.type))
            for c, cells in zip(columns, values, strict=True)
        ]
        return pa.Table.from_arrays(arrays, [c.name for c in columns])

    def _refused(self, read: pa.Table, error: Exception) -> DataError:
        """The first row for which DuckDB refuses: the first half has it, or the second."""
        first, last = 0, read.num_rows
        while last - first > 1:
            middle = (first + last) // 2
            try:
                self.computed(read.slice(first, middle - first))
                first = middle
            except DataError:
                last = middle
        values = ", ".join(f"{name} {column[first].as_py()!r}" for name, column in _columns(read))
        message = f"{first_line(error)} ({values})"
        return DataError(message, relation=self.relation.name, row=first, value=values)


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("duckdb")


def _columns(table: pa.Table) -> Iterable[tuple[str, pa.ChunkedArray]]:
    return zip(table.column_names, table.columns, strict=True)


def doors(relations: Iterable[Relation]) -> dict[str, Door]:
    """For each relation that has derived columns."""
    return {relation.name: Door(relation) for relation in relations if relation.derived}


def widened_events(doors: Mapping[str, Door], events: Any) -> Any:
    """Events (op, relation, row), each row through its own door; the rows of a relation go together."""
    given = list(events)
    rows: dict[str, list[int]] = {name: [] for name in doors}
    for number, event in enumerate(given):
        if isinstance(event, (tuple, list)) and len(event) == 3 and event[1] in rows:
            rows[event[1]].append(number)
    for name, numbers in rows.items():
        for number, row in zip(numbers, doors[name].rows([given[n][2] for n in numbers]), strict=True):
            given[number] = (given[number][0], name, row)
    return given


def with_new_columns(
    tables: Mapping[str, Mapping[Row, int]], before: Iterable[Relation], now: Iterable[Relation]
) -> dict[str, Counter[Row]]:
    """Stored rows of relations to which a script gave other derived columns."""
    known = {relation.name: relation.columns for relation in before}
    stored = {name: Counter(rows) for name, rows in tables.items()}
    for relation in now:
        if relation.name in known and known[relation.name] != relation.columns and not relation.of:
            rows = stored[relation.name]
            wider = Door(relation).stored(rows) if relation.derived else (r[: len(relation.columns)] for r in rows)
            stored[relation.name] = Counter(dict(zip(wider, rows.values(), strict=True)))
    return stored


def without_derived(tables: Mapping[str, Mapping[Row, int]], relations: Iterable[Relation]) -> dict[str, Counter[Row]]:
    """Stored rows as they were given."""
    given = {name: Counter(rows) for name, rows in tables.items()}
    for relation in relations:
        if relation.derived:
            rows = {row[: len(relation.given)]: times for row, times in tables[relation.name].items()}
            given[relation.name] = Counter(rows)
    return given


def with_derived(tables: Mapping[str, Mapping[Row, int]], relations: Iterable[Relation]) -> dict[str, Counter[Row]]:
    """The opposite of :func:`without_derived`."""
    stored = {name: Counter(rows) for name, rows in tables.items()}
    for relation in relations:
        rows = stored.get(relation.name, Counter())
        if relation.derived and rows and not relation.of:
            stored[relation.name] = Counter(dict(zip(Door(relation).stored(rows), rows.values(), strict=True)))
    return stored


def widened_changes(doors: Mapping[str, Door], changes: list[tuple[str, Row, int]]) -> list[tuple[str, Row, int]]:
    """Stored rows with what becomes of them, given columns only: with the derived ones behind."""
    if not doors:
        return changes
    rows = {name: iter([*door.stored(row for n, row, _ in changes if n == name)]) for name, door in doors.items()}
    return [(name, next(rows[name]) if name in rows else row, times) for name, row, times in changes]
