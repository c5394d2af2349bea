"""A view of a database as its user holds it: its rows, one group, Arrow and frames, its changes."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.algebra.evaluate import Reader
from viewlet.algebra.query import View as Read
from viewlet.algebra.terms import Scalar
from viewlet.database.readable import SHOWN_ROWS, html_row, html_table, text_table
from viewlet.engines.base import Engine
from viewlet.engines.ordering import shown_count
from viewlet.engines.results import key_columns, result_rows, row_count
from viewlet.errors import DataError, Error, OutOfRangeError
from viewlet.program.trigger import Program, Result, ResultColumn
from viewlet.rows import arrow
from viewlet.rows.boundary import UnfitError, at_least, to_python, to_python_row, to_scalar
from viewlet.rows.containers import countable
from viewlet.session.changes import Change, Feed, Row
from viewlet.session.changing import MOST_WAITING, Changes
from viewlet.session.session import Session
from viewlet.session.told import one_nan
from viewlet.session.turn import Turn


def weights(result: Result, read: Reader) -> Counter[Row]:
    """Each row that a view has by these maps, and how often it is there."""
    return _counted(_weighed(result, read))


def _weighed(result: Result, read: Reader) -> Iterator[tuple[int, Row]]:
    return ((weight, to_python_row(result, row)) for weight, row in result_rows(result, read))


def _counted(weighed: Iterable[tuple[int, Row]]) -> Counter[Row]:
    """There is one NaN for all, so that rows which have it are equal. Lists and dicts become what can be counted."""
    rows: Counter[Row] = Counter()
    for weight, row in weighed:
        rows[tuple([countable(v) if type(v) in (list, dict) else v for v in one_nan(row)])] += weight
    return rows


class Owner(Protocol):
    """What a view needs of the database that it is in."""

    _turn: Turn

    @property
    def program(self) -> Program: ...
    def subscribe(
        self, view: str, callback: Callable[[Change], object], gone: Callable[[], None] | None
    ) -> Callable[[], None]: ...
    def _subscribe(
        self, view: str, callback: Callable[[Any], object], gone: Callable[[], None] | None, feed: Feed | None
    ) -> Callable[[], None]: ...
    def _result(self, results: tuple[Result, ...], name: str) -> Result: ...
    def _warm_listening(self) -> None: ...
    def _fresh(self) -> Session: ...


class View:
    """A handle on one view. Every read sees all updates made so far. Rows come as its ORDER BY says, or in no order.

    :meth:`Database.view` makes one. ``name`` is the view's name. A handle can be iterated over and has a ``len()``. It
    hands itself to Arrow libraries by ``__arrow_c_stream__``, and shows itself in a notebook.
    """

    def __init__(self, database: Owner, name: str) -> None:
        self._database = database
        self.name = name

    @property
    def _result(self) -> Result:
        return self._database._result(self._database.program.results, self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in their order."""
        return tuple(c.name for c in self._result.columns)

    # -- rows ----------------------------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """All rows as tuples. A row that is there n times is listed n times. A LIST is a list."""
        return self._database._turn.read(self._rows)

    def first(self, most: int = SHOWN_ROWS) -> list[Row]:
        """At most so many rows: the first of its ORDER BY, or any.

        With the native engine a look at a large view costs what these rows cost, unless it must be sorted for them:
        by an ORDER BY without LIMIT.
        """
        return self._database._turn.read(self._first, at_least(0, most, "first"))

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table. The native engine hands its columns over without a copy."""
        result, rows = self._database._turn.read(self._columns)
        return arrow.table(result, rows) if isinstance(rows, list) else arrow.from_struct(result, rows)

    def df(self) -> Any:
        """All rows as a pandas frame."""
        return arrow.frame(self.arrow())

    def pl(self) -> Any:
        """All rows as a polars frame."""
        import polars

        return polars.from_arrow(self.arrow())

    def weights(self) -> Counter[Row]:
        """Each row, and how often it is there. A LIST is a tuple."""
        return self._database._turn.read(self._weights)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    # -- one group -----------------------------------------------------------------------------------------------------

    def get(self, **keys: object) -> Row | None:
        """The row of one group, found by the values of all its key columns. None if there is no such group.

        ``view.get(broker_id=7)`` looks one group up. It does not read the whole view.
        """
        result = self._result
        columns = {c.name: c for c in key_columns(result)}
        if unknown := [name for name in keys if name not in columns]:
            raise Error(f"{self.name} has no key column {', '.join(unknown)}; its key is ({', '.join(columns)})")
        if missing := [name for name in columns if name not in keys]:
            raise Error(f"{self.name}.get needs the whole key: {', '.join(missing)} is missing")
        key = {columns[name].term.text: self._key_scalar(columns[name], value) for name, value in keys.items()}
        rows = self._database._turn.read(self._group, result, key)
        if len(rows) > 1:
            raise Error(f"{self.name} does not show all of its key: {len(rows)} rows have these values")
        return rows[0] if rows else None

    def _group(self, result: Result, key: Mapping[str, Scalar]) -> list[Row]:
        """The native engine alone knows the end of a MIN or MAX, and the sum of a range, without a scan.

        So it does of the first rows of an order. Rows that are numbered when they are read are few: one partition.
        """
        ranges = any(not isinstance(q, Read) for _, q in result.lookups)
        is_native = (result.extremes or result.is_cut or ranges) and not result.windows
        rows = self._native_group(result, key) if is_native else None
        if rows is None:
            rows = [to_python_row(result, row) for _, row in result_rows(result, self._engine.read, key)]
        return rows

    def _native_group(self, result: Result, key: Mapping[str, Scalar]) -> list[Row] | None:
        """By its key, or of all rows where the key is not whole.

        None on other engines, and where some row cannot be shown, which need not be the one asked for.
        """
        if not result.is_cut and (row := self._engine.result_row(self.name, key)) is not None:
            return arrow.listed(result, arrow.from_struct(result, row))
        try:
            table = self._native()
        except OutOfRangeError:
            return None
        if table is None:
            return None
        for place, column in enumerate(result.columns):
            if column.term.text in key and table.num_rows:
                (known,) = arrow.written([to_python(self.name, column, key[column.term.text])], column.type)
                value = pa.scalar(known, table.schema.field(place).type)
                cells = table.column(place)
                table = table.filter(pc.equal(cells, value) if value.is_valid else pc.is_null(cells))
        return arrow.listed(result, table)

    def _key_scalar(self, column: ResultColumn, value: object) -> Scalar:
        try:
            return to_scalar(value, column.type)
        except UnfitError as unfit:
            raise DataError(str(unfit), relation=self.name, column=column.name, value=value) from None

    # -- what changes --------------------------------------------------------------------------------------------------

    def subscribe(
        self, callback: Callable[[Change], object], gone: Callable[[], None] | None = None
    ) -> Callable[[], None]:
        """Call back with each ``(weight, row)`` from now on, in order. The returned function ends the subscription.

        The weight says how often the row came; it is negative for a row that went. A callback that raises is logged,
        and the update stands. ``gone`` is called when the view is dropped or the database is closed.
        """
        return self._database.subscribe(self.name, callback, gone)

    def changes(self, *, snapshot: bool = False, most: int = MOST_WAITING) -> Changes:
        """The changes from now on, as an iterator of ``(weight, row)``.

        A loop over it ends when no change is waiting. The next loop goes on from there. ``async for`` waits for the
        next change instead. With ``snapshot=True`` the rows that are there now come first, each with how often it is
        there, and then every change since: no gap, and nothing twice. ``most`` bounds how many changes may wait.
        """
        changes = Changes(self.name, most)
        self._database._warm_listening()
        with self._database._turn.reading():
            there = self._weights().items() if snapshot else ()
            subscribe = self._database._subscribe
            changes._start(((n, row) for row, n in there), partial(subscribe, self.name))
        return changes

    def widget(self, most: int = SHOWN_ROWS) -> Any:
        """A table for a notebook that repaints when the view changes: at most so many rows. ``close()`` ends it.

        Needs ``pip install 'viewlet[notebook]'``. Updates do not wait for it: many of them are painted as one.
        """
        from viewlet.database.widget import LiveView

        return LiveView(self, most)

    # -- how it shows itself -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of rows. It is known even if some row holds a value that can no longer be shown."""
        return self._database._turn.read(self._count)

    def __repr__(self) -> str:
        return f"<view {self.name}({', '.join(self.columns)}): {len(self)} rows>"

    def __str__(self) -> str:
        try:
            return text_table(self.columns, *self._database._turn.read(self._look))
        except OutOfRangeError as error:
            return str(error)

    def _repr_html_(self) -> str:
        try:
            return html_table(self.columns, *self._database._turn.read(self._look))
        except OutOfRangeError as error:
            head = html_row("th", self.columns)
            return f"<table><caption>{html.escape(str(error))}</caption><thead>{head}</thead></table>"

    # -- inside a turn -------------------------------------------------------------------------------------------------

    @property
    def _engine(self) -> Engine:
        return self._database._fresh().engine

    def _columns(self) -> tuple[Result, Any]:
        """What ``arrow`` makes a table of, when the turn is over: an Arrow struct from the native engine, or rows."""
        result, rows = self._result, self._engine.result(self.name)
        return result, list(self._repeated()) if rows is None else rows

    def _native(self, most: int | None = None) -> pa.Table | None:
        """The columns as the native engine hands them over, without a copy; None on other engines."""
        rows = self._engine.result(self.name, most)
        return None if rows is None else arrow.from_struct(self._result, rows)

    def _rows(self) -> list[Row]:
        table = self._native()
        return list(self._repeated()) if table is None else arrow.listed(self._result, table)

    def _first(self, n: int) -> list[Row]:
        table = self._native(n)
        return list(islice(self._repeated(), n)) if table is None else arrow.listed(self._result, table.slice(0, n))

    def _look(self) -> tuple[list[Row], int]:
        return self._first(SHOWN_ROWS), self._count()

    def _repeated(self) -> Iterator[Row]:
        return (row for weight, row in _weighed(self._result, self._engine.read) for _ in range(weight))

    def _weights(self) -> Counter[Row]:
        table = self._native()
        if table is None:
            return weights(self._result, self._engine.read)
        return _counted((1, row) for row in arrow.listed(self._result, table))

    def _count(self) -> int:
        """Without the rows themselves, where each entry of a map is a row or some."""
        result, engine = self._result, self._engine
        if result.having is None and isinstance(result.rows, Read):
            rows = engine.size(result.rows.name) if result.distinct else engine.weigh(result.rows.name)[1]
            return shown_count(result, rows)
        try:
            table = self._native()
        except OutOfRangeError:
            table = None
        return row_count(result, engine.read) if table is None else int(table.num_rows)
