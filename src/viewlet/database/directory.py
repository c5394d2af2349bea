"""A database in a directory: what was acknowledged is there again when the directory is opened again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from viewlet.compiler.script import compile_script
from viewlet.compiler.strategy import StrategyName
from viewlet.database.listening import WORTH_WAITING
from viewlet.database.memory import DEFAULT_ENGINE, ENGINES, Database, EngineName
from viewlet.database.recovery import Functions, Replay
from viewlet.database.stats import Stats
from viewlet.durable.beside import Beside
from viewlet.durable.directory import Directory
from viewlet.engines.native.compiled import compile_program
from viewlet.engines.native.spoiled import SpoiledError
from viewlet.errors import Error, StorageError, warn
from viewlet.program.kinds import Unfit
from viewlet.program.trigger import Program
from viewlet.rows.ledger import CHUNK, Blob, Ledger, stored_blobs, table_blobs
from viewlet.schema import Dialect, Relation
from viewlet.session.session import Session
from viewlet.session.turn import BusyError
from viewlet.threads.engine import Machine

Durability = Literal["none", "process", "machine"]
MOST_THREADS = 64
WORTH_A_SNAPSHOT = 1 << 25  # bytes of log, which are read in less than a second


class StoredDatabase(Database):
    """Every update is written down when it is done, and before the call returns."""

    _ledger: Ledger
    _least = WORTH_A_SNAPSHOT
    _beside: Beside | None = None  # a snapshot in the making
    _between = False  # whether the next one is written between two calls

    def _open(self, path: Path, dialect: Dialect, durability: Durability, functions: Functions) -> None:
        directory, replay = Directory(path, dialect), Replay(dialect, functions, self.create_function)
        try:
            for payload in directory.snapshot():
                replay.take(payload)
            for payload in directory.log(buffered=durability == "none", synced=durability == "machine"):
                replay.take(payload)
            self._restore(replay)
        except BaseException:
            directory.close()
            raise
        self._ledger = Ledger(directory, replay.scripts)
        self._subscriptions.tell_first(self._ledger)
        self._wind()  # a kill may have come between a script and its first tick

    def _restore(self, replay: Replay) -> None:
        self._translation = replay.translation
        program = compile_script(replay.translation.script, self._strategy)
        large = self._tiered and self._threads == 1 and replay.has(WORTH_WAITING)
        session = self._natively(program, replay) if large else None
        self._session = session or self._session_for(program, replay.tables(), replay.translation.script)
        self._compile_natively()

    def _natively(self, program: Program, replay: Replay) -> Session | None:
        """Rows go from the files to the native program as they are; None where only exact numbers hold the sums."""
        try:
            compiled = compile_program(program, checks_keys=True)
            return None if compiled is None else replay.session(compiled, self._subscriptions)
        except (Unfit, SpoiledError):
            return None

    # -- updates -------------------------------------------------------------------------------------------------------

    def execute(self, script: str) -> None:
        super().execute(script)
        self._tidy()

    def _do(self, update: Callable[[Session, Any], None], data: Any) -> None:
        super()._do(update, data)
        self._tidy()

    def tick(self, moment: dt.datetime | None = None) -> None:
        super().tick(moment)
        self._tidy()

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def _tidy(self) -> None:
        """A snapshot is due when the logs are as long as the last one, so a row is written twice on average."""
        beside = self._beside
        if self._is_due() if beside is None else beside.is_done:
            with suppress(BusyError), self._turn.writing():  # the update is in: another one may see to this
                self._snapshot()

    def _is_due(self) -> bool:
        return self._ledger.size >= self._least and self._ledger.outgrown

    def _snapshot(self) -> None:
        """What :meth:`_tidy` says, once it is this thread's turn."""
        beside, self._beside = self._beside, None
        try:
            if beside is not None:
                self._judge(beside)
            elif self._is_due() and self._between:
                self._checkpoint()
            elif self._is_due():
                self._beside = self._ledger.snapshot_beside()
        except StorageError as error:
            self._least = 2 * max(self._least, self._ledger.size)
            warn(f"no snapshot was made, and the log goes on: {error}")

    def _judge(self, beside: Beside) -> None:
        """Where it failed, the next one is written by this process, between two calls."""
        self._between = beside.failure is not None
        if beside.failure is not None:
            raise StorageError(beside.failure)
        self._least = WORTH_A_SNAPSHOT

    def checkpoint(self) -> None:
        with self._turn.writing():
            self._running  # noqa: B018  it must not be closed
            beside, self._beside = self._beside, None
            if beside is not None:
                beside.give_up()
            self._checkpoint()

    def _checkpoint(self) -> None:
        session = self._running
        self._ledger.snapshot(
            blob for relation in session.program.relations if not relation.of for blob in _blobs(session, relation)
        )
        self._least, self._between = WORTH_A_SNAPSHOT, False

    def sync(self) -> None:
        with self._turn.writing():
            self._running  # noqa: B018  it must not be closed
            self._ledger.sync()

    def stats(self) -> Stats:
        log, snapshot = self._ledger.bytes
        return replace(super().stats(), log=log, snapshot=snapshot)

    def close(self) -> None:
        """A snapshot in the making is waited for: else the log of a database that is never open for long would grow."""
        if self._session is None:
            return
        super().close()
        self._subscriptions.tell_first(None)
        try:
            if self._beside is not None:
                self._beside.wait()
        finally:
            self._ledger.close()


def _blobs(session: Session, relation: Relation) -> Iterator[Blob]:
    engine = session.engine
    shown = engine.stored(relation.name, CHUNK) if isinstance(engine, Machine) else iter(())
    first = next(shown, None)
    if first is None:
        yield from table_blobs(relation, engine.table(relation.name))
        return
    for rows in chain((first,), shown):
        assert rows is not None, "a type is beyond Arrow for all rows or for none"
        yield from stored_blobs(relation, pa.array(rows))


def connect(
    path: str | PathLike[str] | None = None,
    *,
    engine: EngineName = DEFAULT_ENGINE,
    strategy: StrategyName = "optimized",
    dialect: Dialect = "sql",
    threads: int = 1,
    wait_native: bool = False,
    durability: Durability = "process",
    functions: Functions | None = None,
) -> Database:
    """Make a new database in memory, or open the one in the directory ``path``, which is made if it is not there.

    ``engine="native"`` answers at once from generated Python. A C++ compiler works in the background, and the database
    goes over to machine code between two calls. ``wait_native=True`` makes each :meth:`Database.execute` wait for it.
    ``engine="python"`` stays with generated Python. ``engine="interpreter"`` is the reference, and slow.

    ``strategy`` says what to keep besides the answers; the answers are the same. In the dialect ``"paper"`` a SUM of no
    rows is 0, in ``"sql"`` it is NULL.

    ``durability`` says what a call that returned survives, in a directory: ``"process"`` the death of the process,
    ``"machine"`` the death of the machine (the call waits for the disk), ``"none"`` neither of them, up to the next
    :meth:`Database.checkpoint`, :meth:`Database.sync` or :meth:`Database.close`. One process at a time has a directory
    open: a second one gets a :class:`StorageError`. A directory that was damaged raises :class:`CorruptError`. Views
    may call Python functions (:meth:`Database.create_function`), which no directory stores: ``functions`` has them by
    name.

    ``threads`` lets the native engine use several cores: rows are divided among as many cells by columns of theirs, as
    the views allow it. Views that no cell has whole are summed up after each update. It pays for batches of Arrow by
    the thousand rows. Where the views cannot be divided, one thread runs, and :meth:`Database.explain` says why.
    """
    if engine not in ENGINES:
        raise Error(f"there is no engine {engine!r}: choose one of {', '.join(ENGINES)}")
    if not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS or (threads > 1 and engine != "native"):
        why = f"there are 1 to {MOST_THREADS}" if engine == "native" else "only the native engine runs in several"
        raise Error(f"threads={threads!r}: {why}")
    if dialect not in get_args(Dialect):
        raise Error(f"no dialect {dialect!r}: choose sql or paper")
    if durability not in get_args(Durability):
        raise Error(f"no durability {durability!r}: choose none, process or machine")
    if path is None:
        return Database(engine=engine, strategy=strategy, dialect=dialect, wait_native=wait_native, threads=threads)
    database = StoredDatabase(
        engine=engine, strategy=strategy, dialect=dialect, wait_native=wait_native, threads=threads
    )
    database._open(Path(path).absolute(), dialect, durability, functions or {})
    return database
