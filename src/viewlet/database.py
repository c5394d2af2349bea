"""A database of streams, tables and views that stay fresh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from viewlet import arrow
from viewlet.algebra.evaluate import Key
from viewlet.boundary import is_one_row, to_key, to_python_row
from viewlet.changes import Change, Row, Subscriptions, differences
from viewlet.compilation import Dialect
from viewlet.compiler.script import compile_script
from viewlet.engines.base import Engine
from viewlet.engines.interpreter import Interpreter
from viewlet.engines.python.engine import PythonEngine
from viewlet.engines.results import result_rows
from viewlet.errors import DataError, Error, SqlError, refusing_depth
from viewlet.program.trigger import Program, Result
from viewlet.schema import Relation
from viewlet.sql.source import script_text
from viewlet.sql.translate import translate
from viewlet.view import View

if TYPE_CHECKING:
    from viewlet.explain import Explanation

BETWEEN_SCRIPTS = "\n;\n"


ENGINES: dict[str, Callable[[Program, Mapping[str, Mapping[Key, int]]], Engine]] = {
    "python": PythonEngine,
    "interpreter": Interpreter,
}
DEFAULT_ENGINE = "python"


@dataclass(frozen=True, slots=True)
class _Change:
    """A checked row and how often it comes (or goes); ``given`` and ``number`` are for the error that it may be."""

    relation: Relation
    row: Key
    times: int
    number: int
    given: object


@dataclass(frozen=True, slots=True)
class _Step:
    """What one trigger takes at once."""

    relation: Relation
    entries: Mapping[Key, int]


class Database:
    """Made by :func:`connect`. Every update is checked whole before it changes anything. Not for several threads."""

    def __init__(self, *, engine: str = DEFAULT_ENGINE, strategy: str = "optimized", dialect: Dialect = "sql") -> None:
        self._start, self._strategy, self._dialect = ENGINES[engine], strategy, dialect
        self._source = ""
        self._script = translate("", dialect)
        self._program = compile_script(self._script, strategy)
        self._engine: Engine | None = self._start(self._program, {})
        self._subscriptions = Subscriptions()

    # -- definitions ---------------------------------------------------------------------------------------------------

    def execute(self, script: str) -> None:
        """Add streams, tables and views; new views start from the rows that are there."""
        tables, script = self._tables(), script_text(script)
        before = self._source + BETWEEN_SCRIPTS if self._source else ""
        try:
            with refusing_depth():
                parsed = translate(before + script, self._dialect)
                program = compile_script(parsed, self._strategy)
                engine = self._start(program, tables)
        except SqlError as error:
            error.point_into(script, before.count("\n"))
            raise
        except (ValueError, ArithmeticError) as error:
            message = f"a view cannot be computed from the rows that are there, so nothing changed: {error}"
            raise Error(message) from error
        self._engine = engine
        self._source, self._script, self._program = before + script, parsed, program

    @property
    def program(self) -> Program:
        """The trigger program that runs now."""
        return self._program

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            raise Error("the database is closed")
        return self._engine

    def explain(self, view: str | None = None) -> Explanation:
        """How the views (or one of them) are kept fresh: what is kept and why, the triggers, what an update costs."""
        from viewlet.explain import explain

        return explain(self._program, view)

    # -- updates -------------------------------------------------------------------------------------------------------

    def insert(self, relation: str, rows: Any) -> None:
        """One row (tuple or dict) or many (a list, an Arrow table, a pandas or polars frame)."""
        self._update(relation, rows, 1)

    def delete(self, relation: str, rows: Any) -> None:
        """The same; a row that is not there is an error that names it."""
        self._update(relation, rows, -1)

    def apply(self, events: Any) -> None:
        """An ordered mix of (op, relation, row), op "+", "-" or a multiplicity; or one Arrow batch of events."""
        triples = arrow.events(events) if arrow.is_arrow(events) else events
        if not isinstance(triples, Iterable):
            raise Error(f"apply takes events (op, relation, row), not {events!r}")
        changes = [self._event(event, number) for number, event in enumerate(triples)]
        self._check_deletes(changes)
        self._run([_Step(c.relation, {c.row: c.times}) for c in changes if c.times])

    def _update(self, name: str, data: Any, times: int) -> None:
        relation = self._relation(name)
        rows = [data] if is_one_row(data) else arrow.rows(data, name) if arrow.is_arrow(data) else data
        if isinstance(rows, str) or not isinstance(rows, Iterable):
            raise DataError(f"{rows!r} is neither a row nor rows", relation=name, value=rows)
        changes = [_Change(relation, to_key(relation, row, i), times, i, row) for i, row in enumerate(rows)]
        self._check_deletes(changes)
        entries: dict[Key, int] = {}
        for change in changes:
            entries[change.row] = entries.get(change.row, 0) + times
        self._run([_Step(relation, entries)] if entries else [])

    def _event(self, event: Any, number: int) -> _Change:
        if not isinstance(event, (tuple, list)) or len(event) != 3:
            raise Error(f"event {number} is {event!r}, not (op, relation, row)")
        op, name, row = event
        relation = self._relation(name, number)
        times = {"+": 1, "-": -1}.get(op) if isinstance(op, str) else op
        if not isinstance(times, int) or isinstance(times, bool):
            raise DataError('op is "+", "-" or an integer', relation=name, row=number, column="op", value=op)
        return _Change(relation, to_key(relation, row, number), times, number, row)

    def _relation(self, name: object, number: int | None = None) -> Relation:
        for relation in self._program.relations:
            if relation.name == name:
                return relation
        if any(result.name == name for result in self._program.results):
            raise DataError("is a view: it follows from its tables", relation=str(name), row=number, value=name)
        there = ", ".join(relation.name for relation in self._program.relations) or "none"
        message = f"there is no such stream or table; there are: {there}"
        raise DataError(message, relation=str(name), row=number, value=name)

    def _check_deletes(self, changes: list[_Change]) -> None:
        """In the batch's own order: what it inserted before, it may delete."""
        there: dict[tuple[str, Key], int] = {}
        for c in changes:
            place = (c.relation.name, c.row)
            if place not in there:
                there[place] = int(self.engine.count(*place))
            there[place] += c.times
            if there[place] < 0:
                raise DataError(f"{c.given!r} is not there", relation=c.relation.name, row=c.number, value=c.given)

    def _run(self, steps: list[_Step]) -> None:
        """All steps or, should one fail, none: the views are then built again from the tables as they were."""
        done: list[_Step] = []
        try:
            for step in steps:
                self._fire(step)
                done.append(step)
            rows = {name: self.view(name).weights() for name in self._subscriptions}
        except BaseException as error:
            self._restore(done)
            if isinstance(error, (ValueError, ArithmeticError, RecursionError)):
                raise Error(f"a view cannot be computed with these rows, so nothing changed: {error}") from error
            raise
        self._subscriptions.publish(rows)

    def _fire(self, step: _Step) -> None:
        name, entries = step.relation.name, step.entries
        if step.relation.static:
            self.engine.load(name, entries)
        elif len(entries) == 1 and (times := next(iter(entries.values()))) in (1, -1):
            self.engine.apply("+" if times > 0 else "-", name, next(iter(entries)))
        else:
            self.engine.apply_bulk(name, entries)

    def _restore(self, done: list[_Step]) -> None:
        tables = self._tables()
        for step in done:
            for row, times in step.entries.items():
                tables[step.relation.name][row] -= times
        self._engine = self._start(self._program, tables)

    def _tables(self) -> dict[str, Counter[Key]]:
        return {r.name: Counter(self.engine.table(r.name)) for r in self._program.relations}

    # -- views ---------------------------------------------------------------------------------------------------------

    def view(self, name: str) -> View:
        self._result(self._program.results, name)
        return View(self, name)

    def verify(self, name: str) -> list[Change]:
        """Compare a view with its query evaluated over the tables; (+n, row): n too many, (-n, row): n are missing."""
        defined = self._weights(self._result(self._script.results, name))
        return differences(defined, self._weights(self._result(self._program.results, name)))

    def subscribe(self, view: str, callback: Callable[[Change], object]) -> Callable[[], None]:
        return self._subscriptions.add(view, callback, self.view(view).weights())

    def _weights(self, result: Result) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for weight, row in result_rows(result, self.engine.read):
            found[row] += weight
        return Counter({to_python_row(result, row): weight for row, weight in found.items()})

    def _result(self, results: tuple[Result, ...], name: str) -> Result:
        for result in results:
            if result.name == name:
                return result
        there = ", ".join(result.name for result in results) or "none"
        raise Error(f"there is no view {name}; there are: {there}")

    # -- the end -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._engine = None

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def connect(
    path: str | None = None,
    *,
    engine: str = DEFAULT_ENGINE,
    strategy: str = "optimized",
    dialect: Dialect = "sql",
    threads: int = 1,
) -> Database:
    """A new database in memory. Durable ones, the native engine and threads come later and are refused until then.

    ``engine="python"`` runs generated Python, ``engine="interpreter"`` the reference interpreter; both are exact.
    """
    if path is not None:
        raise Error("a durable database (a path) is not there yet: viewlet.connect() keeps everything in memory")
    if engine not in ENGINES:
        raise Error(f"there is no engine {engine!r} yet: choose one of {', '.join(ENGINES)}")
    if threads != 1:
        raise Error(f"threads={threads}: the engines of today run in one thread; more come with the native engine")
    if dialect not in ("sql", "paper"):
        raise Error(f"no dialect {dialect!r}: choose sql or paper")
    return Database(engine=engine, strategy=strategy, dialect=dialect)
