"""What a database has, by name, and any question about it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

from viewlet.database.asking import Answer, Question, Stored
from viewlet.database.handles import Listing, Table, missing, stored_rows
from viewlet.database.readable import html_row
from viewlet.database.stats import Counting, Stats
from viewlet.database.view import View
from viewlet.engines.base import Engine
from viewlet.errors import Error
from viewlet.program.trigger import Program, ResultColumn
from viewlet.rows import arrow
from viewlet.rows.unstored import refuse
from viewlet.schema import Column, Type
from viewlet.session.changes import Subscriptions
from viewlet.session.native import Ways
from viewlet.session.session import Session
from viewlet.session.tiers import NativeBuild
from viewlet.session.turn import Turn
from viewlet.sql.translate import Translation


class Inventory:
    """The part of a database that looks, and changes nothing."""

    _turn: Turn
    _session: Session | None
    _build: NativeBuild | None
    _subscriptions: Subscriptions
    _translation: Translation
    _straight_in: Session | None
    _inserts: Ways
    _deletes: Ways
    _upserts: Ways
    _handles: WeakSet[Table]
    _counting: Counting

    @property
    @abstractmethod
    def program(self) -> Program: ...
    @abstractmethod
    def view(self, name: str) -> View: ...
    @abstractmethod
    def insert(self, relation: str, rows: Any) -> None: ...
    @abstractmethod
    def delete(self, relation: str, rows: Any) -> None: ...
    @abstractmethod
    def upsert(self, relation: str, rows: Any) -> None: ...
    @abstractmethod
    def _fresh(self) -> Session: ...
    @abstractmethod
    def _go_straight(self) -> None: ...

    # -- any question --------------------------------------------------------------------------------------------------

    def sql(self, query: str) -> Answer:
        """Answer any SELECT of DuckDB's over streams, tables and views, as of now.

        ``db.sql("SELECT max(total) FROM sales").rows()``. The answer has the forms of a view: ``rows()``, ``arrow()``,
        ``df()``, ``pl()``. Only what the query names is read, and nothing is kept fresh: a question that comes again
        and again is better a view. Another statement raises :class:`SqlError`, which says what to use.
        """
        with self._turn.reading():
            engine = self._fresh().engine
            question = Question(query, self._translation.catalog, self._translation.script.dialect)
            tables = {name: self._stored(engine, name) for name in question.stored}
        return question.answer(tables)

    def _stored(self, engine: Engine, name: str) -> Stored:
        """The rows of a relation or of a materialized view, for DuckDB."""
        relations = self._translation.catalog.relations
        if name in relations:
            refuse(relations[name], "db.sql cannot read it")
            return Stored(stored_rows(engine, relations[name]), _other_types(relations[name].given))
        view = self.view(name)
        rows = view._native()
        table = arrow.table(view._result, view._rows()) if rows is None else rows
        return Stored(table, _other_types(view._result.columns))

    def stats(self) -> Stats:
        """Say what the database holds: rows and bytes of streams, tables, views, and of the maps behind them.

        ``print(db.stats())`` shows it as a table. Rows a second are those since this was called before.
        """
        with self._turn.reading():
            session = self._fresh()
            rows = {result.name: self.view(result.name)._count() for result in session.program.results}
            return self._counting.stats(session.program, session.engine, rows)

    # -- names ---------------------------------------------------------------------------------------------------------

    @property
    def streams(self) -> Listing[Table]:
        """The streams by name, as from :meth:`stream`."""
        return Listing(self._relations(static=False), self.stream, "streams")

    @property
    def tables(self) -> Listing[Table]:
        """The static tables by name, as from :meth:`table`."""
        return Listing(self._relations(static=True), self.table, "tables")

    @property
    def views(self) -> Listing[View]:
        """The materialized views by name, as from :meth:`view`."""
        return Listing([result.name for result in self.program.results], self.view, "views")

    def stream(self, name: str) -> Table:
        """A handle on a stream: ``bids.insert(row)``, ``bids.delete(row)``, and its stored rows."""
        if name not in (streams := self._relations(static=False)):
            raise missing(name, "stream", streams, self._elsewhere(name))
        return Table(self, name)

    def table(self, name: str) -> Table:
        """A handle on a stream or table by its name. It reads the stored rows as they are at each call."""
        if name not in (relations := [*self._relations(static=False), *self._relations(static=True)]):
            raise missing(name, "stream or table", relations, self._elsewhere(name))
        return Table(self, name)

    def _elsewhere(self, name: str) -> str:
        """For who asks for something of another kind."""
        kinds = (("stream", self.streams), ("table", self.tables), ("view", self.views))
        return "".join(f"; {name} is a {kind}: db.{kind}({name!r})" for kind, names in kinds if name in names)

    def _relations(self, *, static: bool) -> list[str]:
        relations = (relation for relation in self.program.relations if not relation.is_hidden)
        return [relation.name for relation in relations if relation.static == static]

    # -- how it shows itself -------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        try:
            listings = (self.streams, self.tables, self.views)
        except Error:
            return "<database, closed>"
        return f"<database: {'; '.join(repr(listing)[1:-1] for listing in listings)}>"

    def _repr_html_(self) -> str:
        kinds = (("stream", self.streams), ("table", self.tables), ("view", self.views))
        rows = [_shown(kind, handle) for kind, listing in kinds for handle in listing.values()]
        head = "<tr><th></th><th>name</th><th>columns</th><th>rows</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _shown(kind: str, handle: Table | View) -> str:
    rows = handle._stored_rows() if isinstance(handle, Table) and not handle._relation.stored else f"{len(handle):,}"
    cells = (kind, handle.name, ", ".join(handle.columns), rows)
    return html_row("td", cells)


def _other_types(columns: Sequence[Column | ResultColumn]) -> dict[str, str]:
    """Those that Arrow has as others."""
    return {c.name: str(c.type) for c in columns if _is_other(c.type)}


def _is_other(type_: Type) -> bool:
    return type_.uuid or type_.kind == "ENUM" or any(map(_is_other, type_.inner))
