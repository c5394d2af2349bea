"""A view of a database as its user holds it: rows, one group, Arrow and frames, and what changes."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from viewlet import arrow
from viewlet.algebra.terms import Scalar
from viewlet.boundary import UnfitError, to_python, to_python_row, to_scalar
from viewlet.changes import Change, Changes, Row
from viewlet.engines.results import key_columns, result_rows
from viewlet.errors import DataError, Error, OverflowError_
from viewlet.program.trigger import Result

if TYPE_CHECKING:
    from viewlet.database import Database

SHOWN_ROWS = 20


class View:
    """Always fresh: every read sees the updates made so far. Rows come in no particular order."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self.name = name

    @property
    def _result(self) -> Result:
        return self._database.program.result(self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(c.name for c in self._result.columns)

    def rows(self) -> list[Row]:
        """All rows; one that is there n times is listed n times."""
        table = self._native()
        if table is not None:
            return _rows(table)
        return [row for row, weight in self._weighed() for _ in range(weight)]

    def get(self, **keys: object) -> Row | None:
        """The row of one group, by all its key columns; None where there is no such group."""
        result, read = self._result, self._database.engine.read
        columns = {c.name: c for c in key_columns(result)}
        if unknown := [name for name in keys if name not in columns]:
            raise Error(f"{self.name} has no key column {', '.join(unknown)}; its key is ({', '.join(columns)})")
        if missing := [name for name in columns if name not in keys]:
            raise Error(f"{self.name}.get needs the whole key: {', '.join(missing)} is missing")
        key = {name: self._key_scalar(name, value) for name, value in keys.items()}
        found = self._native_group(key) if result.extremes else None
        if found is None:
            env = {columns[name].term.text: value for name, value in key.items()}
            found = [to_python_row(result, row) for _, row in result_rows(result, read, env)]
        if len(found) > 1:
            raise Error(f"{self.name} does not show all of its key: {len(found)} rows have these values")
        return found[0] if found else None

    def _native_group(self, key: Mapping[str, Scalar]) -> list[Row] | None:
        """Those of the native engine's rows that have this key: it alone knows the ends of its maps without a scan.

        None on other engines, and where some row cannot be shown, which need not be the one asked for.
        """
        try:
            table = self._native()
        except OverflowError_:
            return None
        if table is None:
            return None
        for place, column in enumerate(self._result.columns):
            if column.name in key and table.num_rows:
                value = pa.scalar(to_python(self.name, column, key[column.name]), table.schema.field(place).type)
                cells = table.column(place)
                table = table.filter(pc.equal(cells, value) if value.is_valid else pc.is_null(cells))
        return _rows(table)

    def arrow(self) -> pa.Table:
        table = self._native()
        return arrow.table(self._result, self.rows()) if table is None else table

    def _native(self) -> pa.Table | None:
        """The columns as the native engine hands them over, without a copy; None on other engines."""
        rows = self._database.engine.result(self.name)
        return None if rows is None else arrow.from_struct(self._result, rows)

    def df(self) -> Any:
        """A pandas frame."""
        return arrow.frame(self.arrow())

    def pl(self) -> Any:
        """A polars frame."""
        import polars

        return polars.from_arrow(self.arrow())

    def subscribe(self, callback: Callable[[Change], object]) -> Callable[[], None]:
        """Call back with each (weight, row) from now on, in order; returns a function that ends it."""
        return self._database.subscribe(self.name, callback)

    def changes(self) -> Changes:
        """The (weight, row) changes from now on, to be iterated over whenever some are wanted."""
        return Changes(self.subscribe)

    def weights(self) -> Counter[Row]:
        """Row ↦ how often it is there."""
        if self._native() is not None:
            return Counter(tuple(math.nan if v != v else v for v in row) for row in self.rows())  # one NaN for all
        found: Counter[Row] = Counter()
        for row, weight in self._weighed():
            found[row] += weight
        return found

    def _weighed(self) -> Iterator[tuple[Row, int]]:
        result = self._result
        for weight, row in result_rows(result, self._database.engine.read):
            yield to_python_row(result, row), weight

    def _key_scalar(self, name: str, value: object) -> Any:
        column = next(c for c in self._result.columns if c.name == name)
        try:
            return to_scalar(value, column.type)
        except UnfitError as unfit:
            raise DataError(str(unfit), relation=self.name, column=name, value=value) from None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def __len__(self) -> int:
        """How many rows, also where a value in one can no longer be read."""
        return sum(weight for weight, _ in result_rows(self._result, self._database.engine.read))

    def __repr__(self) -> str:
        return f"<view {self.name}({', '.join(self.columns)}): {len(self)} rows>"

    def _repr_html_(self) -> str:
        head = _html_row("th", self.columns)
        try:
            rows = self.rows()
        except OverflowError_ as error:
            return f"<table><caption>{html.escape(str(error))}</caption><thead>{head}</thead></table>"
        body = "".join(_html_row("td", row) for row in rows[:SHOWN_ROWS])
        more = f"<caption>{SHOWN_ROWS} of {len(rows)} rows</caption>" if len(rows) > SHOWN_ROWS else ""
        return f"<table>{more}<thead>{head}</thead><tbody>{body}</tbody></table>"


def _rows(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _html_row(tag: str, cells: tuple[Any, ...]) -> str:
    shown = ("NULL" if cell is None else html.escape(str(cell)) for cell in cells)
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in shown) + "</tr>"
