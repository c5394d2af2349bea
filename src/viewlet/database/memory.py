"""A database of streams, tables and views that stay fresh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet, ref

from viewlet.algebra.functions.python import SIGNATURES, Signature
from viewlet.algebra.query import relations
from viewlet.algebra.terms import declare
from viewlet.cells.explain import explain_grid
from viewlet.compilation import Dialect
from viewlet.compiler.script import compile_script
from viewlet.compiler.strategy import StrategyName
from viewlet.database.clock import Clock
from viewlet.database.listening import WORTH_WAITING
from viewlet.database.stats import Counting
from viewlet.database.view import View, weights
from viewlet.duck import create_function, functions_in, type_name
from viewlet.engines.base import Engine
from viewlet.engines.exact.interpreter import Interpreter
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.engines.initial import fewest_steps
from viewlet.engines.native.compiled import Compiled, compile_program
from viewlet.engines.native.emit.watch import UNWATCHED, Watched
from viewlet.engines.native.engine import NativeEngine
from viewlet.engines.native.spoiled import SpoiledError
from viewlet.engines.tables import tables_reader
from viewlet.errors import Error, SqlError, refusing_depth
from viewlet.program.encoding import Row
from viewlet.program.kinds import Unfit
from viewlet.program.trigger import Program, Script
from viewlet.rows import dml
from viewlet.rows.arrow import Schemas
from viewlet.rows.boundary import is_wild, to_key
from viewlet.rows.dml import Workbench
from viewlet.rows.door import widened_changes, with_derived, with_new_columns, without_derived
from viewlet.rows.elements import with_element_tables
from viewlet.rows.keys import Event
from viewlet.rows.unstored import IN_A_DIRECTORY, cannot_go_on, check_rows_needed, refuse, refuse_all
from viewlet.schema import Relation
from viewlet.session.changes import Change, Subscriptions, differences
from viewlet.session.native import NativeSession
from viewlet.session.session import Session, Start, Tables, finite_row
from viewlet.session.threads import ThreadsSession
from viewlet.session.tiers import WORTH_HANDING_OVER, Made, NativeBuild, natively
from viewlet.session.turn import Turn
from viewlet.sql.define import Changed, Step
from viewlet.sql.source import before_the_next, script_text
from viewlet.sql.translate import Translation, nothing
from viewlet.threads.engine import ThreadsEngine
from viewlet.threads.spread import CompiledCells, spread_over

if TYPE_CHECKING:
    from viewlet.explain import Explanation

EngineName = Literal["native", "python", "interpreter"]
ENGINES: dict[EngineName, Start] = {
    "native": PythonEngine,  # until the native program is compiled, and where it cannot be
    "python": PythonEngine,
    "interpreter": Interpreter,
}
TIERS: dict[EngineName, tuple[type, ...]] = {
    "native": (NativeEngine, ThreadsEngine),
    "python": (PythonEngine,),
    "interpreter": (Interpreter,),
}
DEFAULT_ENGINE: EngineName = "native"
ONLY_NATIVE = "the tables hold NaN or infinities, and there is no machine code for this script that could take them"
IN_MEMORY = "this database is in memory, and nothing of it is kept: viewlet.connect(directory) makes one that lasts"


class Database(Clock):
    """Streams, static tables and views, in memory. :func:`connect` makes one.

    Every update is checked whole before it changes anything: a refused update leaves the database as it was. One thread
    at a time may write: another one gets an :class:`Error`. Any number of threads may read. Each sees the database
    between two updates, and waits for the one in flight at most. As a context manager it closes itself.
    """

    def __init__(
        self,
        *,
        engine: EngineName = DEFAULT_ENGINE,
        strategy: StrategyName = "optimized",
        dialect: Dialect = "sql",
        wait_native: bool = False,
        threads: int = 1,
    ) -> None:
        self._tiered, self._strategy, self._waits, self._threads = engine == "native", strategy, wait_native, threads
        self._start: Start = ENGINES[engine]
        self._translation = nothing(dialect)
        self._subscriptions = Subscriptions(self)
        self._watched = UNWATCHED  # what the native program was asked to tell
        self._turn = Turn(self._subscriptions.tell)
        self._build: NativeBuild | None = None
        self._updating = False
        self._bench, self._schemas, self._handles = Workbench(), Schemas(), WeakSet()
        self._counting = Counting()
        self._let_go()
        self._session: Session | None = Session(
            compile_script(self._translation.script, strategy), self._start, {}, self._subscriptions
        )

    # -- definitions ---------------------------------------------------------------------------------------------------

    def execute(self, script: str) -> None:
        """Run statements that define streams, tables and views, or change rows.

        These are CREATE, DROP and ALTER … RENAME, and INSERT, UPDATE, DELETE and TRUNCATE. A new view starts from the
        rows that its tables hold. A script with an error changes nothing, whichever statement of it is wrong.
        """
        text = script_text(script)
        self._warm(text)
        with self._turn.writing():
            self._execute(text)

    def _execute(self, script: str) -> None:
        with refusing_depth():
            changes = self._translation.changes(script)
        if changes is None:
            self._define(script)
        else:
            self._meanwhile(self._change, changes)

    def _change(self, session: Session, steps: tuple[Step, ...]) -> None:
        events = dml.changes(steps, session.engine.table, session.keys, self._bench, session.row)
        session.update(widened_changes(session.doors, events))

    def _define(self, script: str) -> None:
        before = before_the_next(self._translation.script.source)
        try:
            with refusing_depth():
                translation = self._translation.followed(before + script)
                self._check_stored(translation)
                program = compile_script(translation.script, self._strategy)
                replaced = self._replaced(translation.script)
                self._subscriptions.look_back(replaced)
                session = None if translation.steps else self._session_after(program, script)
                if session is not None:
                    self._session, self._translation = session, translation
                elif isinstance(self._running, NativeSession) and self._running.came:
                    raise cannot_go_on(self._running.came)
                else:
                    self._subscriptions.look_back(self._subscriptions.listening)
                    tables, changes = self._tables_after(translation)
                    session = self._session_for(program, tables, translation.script)
                    self._take(session, translation, script, changes)
        except SqlError as error:
            error.point_into(script, before.count("\n"))
            raise
        except (ValueError, ArithmeticError) as error:
            message = f"a view cannot be computed from the rows that are there, so nothing changed: {error}"
            raise Error(message) from error
        self._build = None
        self._wind()
        self._let_go()
        self._subscriptions.keep({result.name for result in session.program.results})
        if replaced or any(isinstance(step, Changed) for step in translation.steps):
            self._subscriptions.publish(self._subscriptions.look())
        self._subscriptions.settle()
        self._compile_natively()

    def _replaced(self, after: Script) -> list[str]:
        """The views that somebody listens to, and that a script defines in another way."""
        before = {result.name: result for result in self._translation.script.results}
        heard = (result for result in after.results if result.name in self._subscriptions.listening)
        return [result.name for result in heard if before.get(result.name) != result]

    def _check_stored(self, translation: Translation) -> None:
        """What a script needs of streams that store no rows."""
        session, after = self._running, translation.script
        if self._subscriptions.log is not None:
            refuse_all(after.relations, IN_A_DIRECTORY)
        check_rows_needed(session.came, self._translation.script.results, after, bool(translation.steps))

    def _tables_after(self, translation: Translation) -> tuple[Tables, list[Event]]:
        """The stored rows as a script leaves them that defines names, and those that it changes."""
        before, after = self._running.program.relations, translation.script.relations
        tables = self._running.tables()
        if not translation.steps:
            return with_element_tables(with_new_columns(tables, before, after), after), []
        given = without_derived(tables, before)
        changed = dml.changed_tables(given, translation.steps, self._bench, self._first_row)
        wide = with_element_tables(with_derived(changed, after), after)
        return wide, dml.rows_changed(given, translation.steps, changed)

    def _session_after(self, program: Program, script: str) -> Session | None:
        """The native session goes on with another program, whose new maps alone are filled; None where it cannot.

        That waits for the compiler. A database of a few rows answers sooner if all is computed again.
        """
        session = self._running
        if not isinstance(session, NativeSession) or not program.views or session.engine.has_wild:
            return None
        if not self._waits and not session.came and session.engine.rows() < WORTH_HANDING_OVER:
            return None
        before = {relation.name: relation for relation in session.program.relations}
        if any(relation.columns != before.get(relation.name, relation).columns for relation in program.relations):
            return None
        if any(relation.of and relation.name not in before for relation in program.relations):
            return None
        if self._threads > 1:
            return None  # the rows may be divided in another way
        watched = self._watched_in(program)
        try:
            compiled = compile_program(program, watched, checks_keys=True)
        except (Unfit, Error):  # the Python tier says why
            return None
        return None if compiled is None else self._followed(session, compiled, watched, script)

    def _followed(
        self, session: NativeSession, compiled: Compiled, watched: Watched, script: str
    ) -> NativeSession | None:
        """The log has the script first: what changed hands could not be given back."""
        noted = self._subscriptions.noted
        relations = {relation.name: relation for relation in compiled.program.relations}
        try:
            self._subscriptions.note(lambda log: log.define(script, functions_in(script), relations, []))
            after = NativeSession(compiled, {}, self._subscriptions, session.engine)
        except (SpoiledError, Unfit):
            self._subscriptions.take_back(noted)
            return None
        except BaseException:
            self._subscriptions.take_back(noted)
            raise
        after.follow(session)
        self._watched = watched
        return after

    def _take(self, session: Session, translation: Translation, script: str, changes: list[Event]) -> None:
        """A script that was worked out becomes the database's, once the log has it."""
        was, noted, relations = (self._session, self._translation), self._subscriptions.noted, session.relations
        try:
            self._subscriptions.note(lambda log: log.define(script, functions_in(script), relations, changes))
            self._session, self._translation = session, translation
        except BaseException:
            self._subscriptions.take_back(noted)
            self._session, self._translation = was
            raise

    def _first_row(self, relation: Relation, row: object, number: int) -> Row:
        """A row that a script brings which also defines names: the engine for it is still to be chosen."""
        takes_wild = relation.static or self._tiered
        return finite_row(relation, to_key(relation, row, number, takes_wild=takes_wild), number)

    def _session_for(self, program: Program, tables: Tables, script: Script) -> Session:
        """Long work is worth waiting for the native program; NaN and infinities no other can take over at all."""
        if self._tiered and fewest_steps(program, tables) >= WORTH_WAITING:
            build = NativeBuild(program, lambda: True, at_once=True, script=script, threads=self._threads)
            build.wait()
            if (compiled := build.take()) is not None:
                self._watched = UNWATCHED
                with suppress(SpoiledError):  # perhaps by a number in between, which exact arithmetic can hold
                    return self._on_machine_code(compiled, tables)
        if self._tiered and any(is_wild(cell) for rows in tables.values() for row in rows for cell in row):
            try:
                compiled = natively(program, UNWATCHED, script, self._threads)
            except Unfit as unfit:
                raise Error(f"{ONLY_NATIVE}: {unfit}") from None
            if compiled is not None:
                self._watched = UNWATCHED
                return self._on_machine_code(compiled, tables)
        return Session(program, self._start, tables, self._subscriptions)

    def _on_machine_code(self, compiled: Made, tables: Tables, before: Engine | None = None) -> Session:
        if isinstance(compiled, CompiledCells):
            return ThreadsSession(compiled, tables, self._subscriptions, before)
        return NativeSession(compiled, tables, self._subscriptions, before)

    def create_function(self, name: str, function: Callable[..., Any], parameters: Sequence[str], returns: str) -> None:
        """Let views call a Python function: ``db.create_function("risk", risk, ["DOUBLE", "VARCHAR"], "INTEGER")``.

        The function is called once for each row that arrives, and again when the row leaves. So the same arguments must
        always give the same value. NULL for an argument gives NULL. Functions belong to the process: databases share
        them. Where the arguments are no columns of one stream or table, the function is called where the rows meet, and
        the view is kept fresh by generated Python.
        """
        create_function(name, function, parameters, returns)
        signature = Signature.of(name, list(map(type_name, parameters)), type_name(returns))
        if signature is not None:
            SIGNATURES[signature.name] = signature
            declare(signature.function(function))

    # -- tiers ---------------------------------------------------------------------------------------------------------

    def _compile_natively(self) -> None:
        """The engine of now answers until the native program is compiled that tells what somebody listens to."""
        program, build = self._running.program, self._build
        watched = self._watched_in(program)
        is_there = isinstance(self._session, (NativeSession, ThreadsSession)) and self._watched == watched
        if not self._tiered or not program.views or is_there:
            self._build = None
            return
        if build is not None and build.program is program and build.watched == watched:
            return
        this = ref(self)

        def wanted() -> bool:
            database = this()
            session = None if database is None else database._session
            return session is not None and session.program is program

        script, threads = self._translation.script, self._threads
        self._build = NativeBuild(program, wanted, at_once=self._waits, watched=watched, script=script, threads=threads)
        if self._waits:
            self._build.wait()

    def _fresh(self) -> Session:
        """The session, on the native engine from the moment that it is there."""
        build = self._build
        if build is not None and build.is_done and not self._updating:
            self._build = None
            compiled = build.take()
            if compiled is not None:
                with suppress(SpoiledError, Unfit):  # numbers that only exact arithmetic can hold: it goes on
                    before = self._running
                    self._session = self._on_machine_code(compiled, {}, before.engine)
                    self._session.follow(before)
                    self._let_go()
                    self._watched = build.watched
                    self._subscriptions.settle()
        return self._running

    @property
    def tier(self) -> EngineName:
        """The engine that runs the triggers now: ``"native"``, ``"python"`` or ``"interpreter"``."""
        engine = self.engine
        return next(name for name, kind in TIERS.items() if isinstance(engine, kind))

    @property
    def _running(self) -> Session:
        if self._session is None:
            raise Error("the database is closed")
        return self._session

    @property
    def program(self) -> Program:
        """The trigger program of all scripts so far."""
        return self._running.program

    @property
    def engine(self) -> Engine:
        """The engine of this moment, for measuring: ``db.engine.memory()`` lists the maps of the native one."""
        with self._turn.reading():
            return self._fresh().engine

    def explain(self, view: str | None = None) -> Explanation:
        """Explain how all views, or one of them, are kept fresh.

        The answer says which maps are kept and why, which triggers run, and what an update costs. It prints as text
        and shows itself in a notebook.
        """
        from viewlet.explain import explain

        if self._threads == 1:
            return explain(self.program, view)
        spread = spread_over(self._translation.script, self.program, self._threads)
        return explain(self.program, view, threads=explain_grid(spread.grid))

    # -- views ---------------------------------------------------------------------------------------------------------

    def view(self, name: str) -> View:
        """A handle on a view by its name. It reads the view as it is at each call."""
        self._result(self.program.results, name)
        return View(self, name)

    def verify(self, name: str) -> list[Change]:
        """Compare a view with its query, evaluated now over the stored tables. An empty list means that both agree.

        ``(+n, row)`` says that the view holds the row n times too often, ``(-n, row)`` that n are missing.
        """
        with self._turn.reading():
            return self._verify(name)

    def _verify(self, name: str) -> list[Change]:
        tables = self._running.tables()
        definition = self._result(self._translation.script.results, name)
        read = frozenset().union(*map(relations, definition.reads))
        for stream in self._running.unstored & read:
            refuse(self._running.relations[stream], f"view {name} cannot be verified")
        if any(is_wild(cell) for table in read for row in tables[table] for cell in row):
            raise Error(f"{name} cannot be verified: its definition is evaluated exactly, over no NaN and no infinity")
        over_tables = tables_reader([r for r in self.program.relations if r.name in read], tables)
        return differences(weights(definition, over_tables), self.view(name)._weights())

    # -- keeping -------------------------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Write a snapshot of all rows, and begin a new log behind it: the next start has no more to read.

        A database in a directory does so by itself when its log has become as long as its last snapshot. One in memory
        raises an :class:`Error`.
        """
        raise Error(IN_MEMORY)

    def sync(self) -> None:
        """Return when all that was acknowledged is on the disk, whatever the database's ``durability`` is."""
        raise Error(IN_MEMORY)

    def close(self) -> None:
        """End the database. Each later call raises an :class:`Error`.

        What is in memory is gone. A directory can be opened again, and has everything. An update in flight is waited
        for. Who waits for changes is told that no more will come.
        """
        with self._turn.reading():
            self._session = self._build = None
            self._let_go()
        self._subscriptions.tell()
        self._subscriptions.keep(())

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
