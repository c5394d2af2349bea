"""A stream or a table as its user holds it, and what there is in a database by name."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.database.readable import Readable
from viewlet.engines.base import Engine
from viewlet.errors import Error
from viewlet.program.trigger import Program
from viewlet.rows import arrow
from viewlet.rows.dml import as_arrow
from viewlet.rows.ledger import CHUNK
from viewlet.rows.unstored import refuse
from viewlet.schema import CLOCK, Relation
from viewlet.session.native import Ways
from viewlet.session.session import Session
from viewlet.session.turn import Turn
from viewlet.threads.engine import Machine

T = TypeVar("T")


class Owner(Protocol):
    """What a handle needs of the database that it is in."""

    _turn: Turn
    _session: Session | None
    _straight_in: Session | None
    _inserts: Ways
    _deletes: Ways
    _upserts: Ways
    _handles: WeakSet[Table]

    @property
    def program(self) -> Program: ...
    def insert(self, relation: str, rows: Any) -> None: ...
    def delete(self, relation: str, rows: Any) -> None: ...
    def upsert(self, relation: str, rows: Any) -> None: ...
    def _fresh(self) -> Session: ...
    def _go_straight(self) -> None: ...


class Table(Readable):
    """A handle on one stream or table: its stored rows, and updates of them. Rows come in no order.

    :meth:`Database.stream` and :meth:`Database.table` make one. ``name`` is the name of the stream or table. A handle
    can be iterated over and has a ``len()``. It hands itself to Arrow libraries by ``__arrow_c_stream__``, and shows
    itself in a notebook.
    """

    def __init__(self, database: Owner, name: str) -> None:
        self._database, self.name = database, name
        with database._turn.reading():
            database._fresh()  # machine code that is there: the methods are calls into it from the first row on
        self._go_straight()

    @property
    def _relation(self) -> Relation:
        relations = {r.name: r for r in self._database.program.relations}
        if self.name not in relations:  # it was dropped, or renamed
            raise missing(self.name, "stream or table", [name for name in relations if name != CLOCK.name])
        return relations[self.name]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in their order."""
        return tuple(c.name for c in self._relation.given)

    def _types(self) -> list[str]:
        return [str(c.type) for c in self._relation.given]

    # -- updates -------------------------------------------------------------------------------------------------------

    def insert(self, rows: Any) -> None:
        """Insert one row or many; see :meth:`Database.insert`. For a single tuple this is the fastest call."""
        self._database.insert(self.name, rows)
        if "insert" not in self.__dict__:
            self._go_straight()

    def delete(self, rows: Any) -> None:
        """Delete one row or many; see :meth:`Database.delete`."""
        self._database.delete(self.name, rows)
        if "delete" not in self.__dict__:
            self._go_straight()

    def upsert(self, rows: Any) -> None:
        """Insert rows in place of those that have the same PRIMARY KEY; see :meth:`Database.upsert`."""
        self._database.upsert(self.name, rows)
        if "upsert" not in self.__dict__:
            self._go_straight()

    def _go_straight(self) -> None:
        """Where rows can go straight in, these methods are calls into machine code until :meth:`_let_go`."""
        database = self._database
        if database._straight_in is not database._session:
            database._go_straight()
        if self.name in database._inserts:
            vars(self).update(insert=database._inserts[self.name], delete=database._deletes[self.name])
            database._handles.add(self)
        if self.name in database._upserts:
            vars(self).update(upsert=database._upserts[self.name])

    def _let_go(self) -> None:
        """Those calls are of a session that is no more."""
        for name in ("insert", "delete", "upsert"):
            vars(self).pop(name, None)

    # -- rows ----------------------------------------------------------------------------------------------------------

    def arrow(self) -> pa.Table:
        """All stored rows as an Arrow table."""
        refuse(self._relation, "there are none to read")
        with self._database._turn.reading():
            return stored_rows(self._database._fresh().engine, self._relation)

    def __len__(self) -> int:
        """The number of stored rows."""
        refuse(self._relation, "there are none to count")
        with self._database._turn.reading():
            return stored_count(self._database._fresh().engine, self._relation)

    def __repr__(self) -> str:
        kind = "table" if self._relation.static else "stream"
        return f"<{kind} {self.name}({', '.join(self.columns)}): {self._stored_rows()}>"

    def _stored_rows(self) -> str:
        """How many rows are stored, for a reader."""
        return f"{len(self)} rows" if self._relation.stored else "rows are not stored"


def stored_rows(engine: Engine, relation: Relation) -> pa.Table:
    """Rows as they were given, without derived columns."""
    width, batches = len(relation.given), _batches(engine, relation)
    if batches is None:
        rows = engine.table(relation.name)
        return as_arrow(relation.as_given, {row[:width]: n for row, n in rows.items()} if relation.derived else rows)
    parts = [_repeated(batch)[1 : width + 1] for batch in batches]
    return pa.Table.from_batches([_typed(part, relation) for part in parts])


def stored_count(engine: Engine, relation: Relation) -> int:
    if not relation.stored:
        return 0
    if isinstance(engine, Machine):
        return engine.total(relation.name)
    return sum(engine.table(relation.name).values())


def _batches(engine: Engine, relation: Relation) -> list[pa.StructArray] | None:
    """Behind a column of how often each row is there. None where they must be had row by row."""
    if not isinstance(engine, Machine):
        return None
    batches = list(engine.stored(relation.name, CHUNK))
    return None if None in batches or not batches else list(map(pa.array, batches))


def _repeated(batch: pa.StructArray) -> list[pa.Array]:
    """Each row as often as it is there."""
    times = batch.field(0)
    if pc.max(times).as_py() == 1:
        return list(batch.flatten())
    places = [place for place, n in enumerate(times.to_pylist()) for _ in range(n)]
    return list(batch.take(pa.array(places, pa.int64())).flatten())


def _typed(columns: list[pa.Array], relation: Relation) -> pa.RecordBatch:
    arrays = [arrow.made_of(c.type, held) for c, held in zip(relation.given, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [c.name for c in relation.given])


class Listing(Mapping[str, T], Generic[T]):
    """Handles by name: those of the streams, the tables or the views of a database, as of when it was asked."""

    def __init__(self, names: list[str], handle: Callable[[str], T], what: str) -> None:
        self._names, self._handle, self._what = names, handle, what

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        return self._handle(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{self._what}: {', '.join(self._names) or 'none'}>"

    def _repr_html_(self) -> str:
        items = "".join(f"<li><code>{html.escape(repr(handle)[1:-1])}</code></li>" for handle in self.values())
        return f"<ul>{items}</ul>" if items else f"no {self._what}"


def missing(name: str, what: str, there: list[str], elsewhere: str = "") -> Error:
    return Error(f"there is no {what} {name}; there are: {', '.join(there) or 'none'}{elsewhere}")
