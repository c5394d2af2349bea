"""A cell in a process of its own: applies batches, writes them down before it answers, and can always begin again.

The process holds one version, and knows the chain of files that leads to it. A request says from which version it
starts. If that is another one, the cell says that it is behind, is told the chain, and makes itself again from the
store. So it does not matter how often, in which order or from where it is asked.

A cell and the driver have the same chain of a version: each batch makes a version with a name of its own, from the
chain before it, a log and perhaps a snapshot, all of which are in the one answer that the driver has of it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from viewlet.durable.chain import START, Chain, Log, Snapshot, Version
from viewlet.durable.store import Store, digest
from viewlet.errors import CorruptError
from viewlet.spark.process.cell import Cell
from viewlet.spark.process.events import log_parts, log_segments, stream
from viewlet.spark.process.merging import fork_merging, to_merge
from viewlet.spark.process.partition import split
from viewlet.spark.process.process import Process, home_of
from viewlet.spark.process.protocol import BehindError, Message, UnreachableError
from viewlet.spark.process.server import Listener, Reply, say
from viewlet.spark.process.snapshot import (
    Child,
    Making,
    directory_of,
    fork_snapshot,
    is_due,
    is_outgrown,
    write_parquet,
)
from viewlet.spark.process.taking import Bound, take
from viewlet.spark.process.ticket import Answer, Part, Request, Split, Standby


class CellProcess:
    """``fresh`` makes an empty cell of the program."""

    def __init__(self, name: str, store: Store, fresh: Callable[[], Cell], listener: Listener, directory: Path) -> None:
        self._name, self._store, self._fresh, self._listener, self._directory = name, store, fresh, listener, directory
        self._cell = fresh()
        self._version: Version | None = START  # None: the cell failed in the middle of something
        self._chain = Chain()  # leads to the version, while there is one
        self._last: tuple[Request, Answer] | None = None
        self._bounds: Mapping[str, Bound] = {}  # of rows that it let go last
        self._held: tuple[int, dict[str, pa.Buffer]] = START.batch, {}
        self._making: Making | None = None
        self._stopped = False
        self._asked = time.monotonic()
        self._home = ""

    def run(self, owner: Process, idle: float) -> None:
        """Until told to stop, or the owner is gone, or nobody has asked for long: the store has all it takes."""
        self._home = home_of(self._listener.address.host, owner)

        def go_on() -> bool:
            return not self._stopped and owner.is_alive and time.monotonic() - self._asked < idle

        self._listener.serve(self.answer, go_on)
        if self._making is not None:
            self._making.stop()

    def answer(self, message: Message) -> Reply:
        match message.header:
            case {"do": "hold", "cell": self._name, "batch": batch, "name": name}:
                self._hold(batch, name, message.buffers[0])
                self._asked = time.monotonic()
                return Reply({})
            case {"do": "apply", "cell": self._name}:
                request = Request.from_json(message.header["request"])
                self._refuse_if_behind(request)
                names = message.header.get("held")
                log = message.buffers[0] if names is None else self._log_of_held(request.batch, names)
                self._held = request.batch, {}
                answer = self._answer(request, log)
                self._asked = time.monotonic()
                parts = [[part.view, part.part] for part in answer.parts]
                buffers = [part.data for part in answer.parts]
                header = {"answer": answer.to_json(), "parts": parts}
                return Reply(header, buffers, lambda: self._consider_snapshot(request))
            case {"do": "prepare", "cell": self._name, "since": since, "chain": chain, "note": note}:
                self._asked = time.monotonic()
                return Reply({}, (), lambda: self._prepare(since, Chain.from_json(chain), Path(note)))
            case {"do": "stop"} | {"do": "leave", "cell": self._name}:
                self._stopped = True
                return Reply({})
        raise UnreachableError(f"cell {self._name} has the port now")

    def _answer(self, request: Request, log: pa.Buffer) -> Answer:
        """What is asked again, with the same events, is answered again."""
        if self._last is not None and request.is_again(self._last[0]) and digest(log) == self._last[1].log.file.digest:
            return self._last[1]
        answer = self._apply(request, log)
        self._last = request, answer
        return answer

    def _refuse_if_behind(self, request: Request) -> None:
        """Before anything is done with rows that wait here."""
        again = self._last is not None and request.is_again(self._last[0])
        if request.chain is None and request.version != self._version and not again:
            raise BehindError(f"cell {self._name} is not at batch {request.version.batch}")

    # -- rows that may come to count ----------------------------------------------------------------------------------

    def _hold(self, batch: int, name: str, rows: pa.Buffer) -> None:
        """Until the next batch at the latest. Who is late, a worker that Spark has given up, is not heard."""
        if batch > self._held[0]:
            self._held = batch, {}
        if batch == self._held[0]:
            self._held[1][name] = rows

    def _log_of_held(self, batch: int, names: Sequence[str]) -> pa.Buffer:
        held = self._held[1] if self._held[0] == batch else {}
        if not held.keys() >= set(names):
            raise UnreachableError(f"cell {self._name} has not got all rows of batch {batch}")
        given = [segment for name in names for segment in log_segments(held[name], batch, "the request")]
        log = pa.BufferOutputStream()
        for part in log_parts(batch, sorted(given, key=lambda segment: segment.times < 0)):
            log.write(part)
        return log.getvalue()

    # -- a batch -------------------------------------------------------------------------------------------------------

    def _apply(self, request: Request, log: pa.Buffer) -> Answer:
        started = time.perf_counter()
        reloaded = self._version != request.version
        if reloaded:
            if request.chain is None:
                raise BehindError(f"cell {self._name} is not at batch {request.version.batch}")
            reloaded = self._go_to(request.chain)
        self._version, self._last = None, None  # until all is written
        begun = time.perf_counter()
        taken = take(
            self._cell,
            log,
            request.batch,
            "the request",
            request.absent,
            request.bounds,
            swept=request.bounds == self._bounds,
        )
        self._bounds = request.bounds
        changes, partials = self._cell.changes(), self._cell.partials()
        engine_seconds = time.perf_counter() - begun
        published = {view: changes[view] for view in request.publish if view in changes}
        written = self._write(request, taken.log(log, request.batch), published, taken.rows, engine_seconds)
        snapshot, merged = self._finished()
        self._chain, self._version = self._chain.followed(written, snapshot, merged), written.version
        return Answer(
            cell=self._name,
            batch=request.batch,
            log=written,
            snapshot=snapshot,
            rows=taken.rows,
            engine_seconds=engine_seconds,
            seconds=time.perf_counter() - started,
            reloaded=reloaded,
            state_bytes=self._cell.bytes(),
            address=self._listener.address,
            engine=self._cell.engine,
            pid=os.getpid(),
            merged=merged,
            parts=tuple(part for split_ in request.splits for part in _parts(split_, partials)),
            home=self._home,
            letters=tuple(taken.letters),
        )

    def _write(
        self, request: Request, log: pa.Buffer, changes: dict[str, pa.RecordBatch], rows: int, seconds: float
    ) -> Log:
        stem = f"{request.batch}-{self._name}-{request.attempt}"
        tables = {f"changes/{directory_of(v)}/{stem}.parquet": _numbered(c, request.batch) for v, c in changes.items()}
        file, *files = self._store.write_new({f"logs/{stem}.events": log, **tables})
        return Log(request.batch, request.attempt, file, dict(zip(changes, files, strict=True)), rows, seconds)

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def _finished(self) -> tuple[Snapshot | None, Log | None]:
        """A snapshot or a merged log. One of a version that does not count in the end is forgotten."""
        if self._making is None:
            return None, None
        is_over, made = self._making.taken(self._store)
        if is_over:
            self._making = None
        if made is None or all(made.version != log.version for log in self._chain.logs):
            return None, None
        return (made, None) if isinstance(made, Snapshot) else (None, made)

    def _consider_snapshot(self, request: Request) -> None:
        chain = self._chain
        if self._making is not None or self._version != chain.version or not is_due(chain):
            return
        child = Child(self._store, self._name, chain.version, self._listener, self._directory)
        if self._store.is_local and not is_outgrown(chain):
            self._making = fork_merging(child, to_merge(chain))
        else:
            self._making = fork_snapshot(child, self._cell, request.publish)

    # -- from the store ------------------------------------------------------------------------------------------------

    def _prepare(self, since: int, chain: Chain, note: Path) -> None:
        """Before rows come here: another process is the cell meanwhile."""
        began, why = time.perf_counter(), ""
        try:
            if self._version != chain.version:
                self._go_to(chain)
        except CorruptError as error:
            why = str(error)
        seconds = time.perf_counter() - began
        standby = Standby(self._name, since, self._listener.address, self._cell.engine, seconds, why)
        draft = note.with_suffix(".draft")
        draft.write_text(json.dumps(standby.to_json()))
        draft.replace(note)

    def _go_to(self, chain: Chain) -> bool:
        """Whether it had to begin again: a cell that is on the way to the version takes the logs that it lacks."""
        lacking = _logs_since(self._version, chain)
        if lacking is not None:
            with suppress(CorruptError):
                self._version, self._last, self._bounds = None, None, {}
                self._take(lacking, chain)
                self._chain, self._version = chain, chain.version
                return False
        self._reload(chain)
        return True

    def _take(self, logs: Sequence[Log], chain: Chain) -> None:
        for log in logs:
            take(self._cell, self._store.checked(log.file), log.batch, log.file.path)
        if chain.version != START:  # what a cell told before, it does not tell again
            self._cell.changes()
            self._cell.partials()

    def _reload(self, chain: Chain) -> None:
        """From the newest snapshot that is whole, or from the first log where no log has been given up yet."""
        self._version, self._last, self._bounds = None, None, {}
        starts: list[Snapshot | None] = list(reversed(chain.snapshots))
        reasons = []
        for start in starts if len(starts) > 1 else [*starts, None]:
            self._cell = self._fresh()  # the old one goes before its like is made
            try:
                self._restore(chain, start)
                self._chain, self._version = chain, chain.version
                return
            except CorruptError as error:
                say(f"cell {self._name}: {error}")
                reasons.append(str(error))
        what = "; ".join(dict.fromkeys(reasons))
        raise CorruptError(f"cell {self._name} cannot be restored, and nothing was applied: {what}")

    def _restore(self, chain: Chain, start: Snapshot | None) -> None:
        if start is not None:
            self._load(start)
        self._take(chain.after(start), chain)

    def _load(self, start: Snapshot) -> None:
        """Its state. Where that is damaged, or of another engine or version: its rows, if they come to the same."""
        try:
            with self._store.opened(start.file) as file:
                self._cell.load(file.fileno())
        except CorruptError as error:
            if start.rows is None or not self._cell.is_exact:
                raise
            say(f"cell {self._name}: {error}; it is made again of its rows")
            self._cell = self._fresh()
            take(self._cell, self._store.checked(start.rows), start.version.batch, start.rows.path)


def _logs_since(version: Version | None, chain: Chain) -> Sequence[Log] | None:
    """The logs that lead from a version to the chain's; None where they do not."""
    if version is None or version == START:
        return None
    after = next((at + 1 for at, log in enumerate(chain.logs) if log.version == version), None)
    if after is not None:
        return chain.logs[after:]
    return next((chain.after(snapshot) for snapshot in chain.snapshots if snapshot.version == version), None)


def _numbered(changed: pa.RecordBatch, batch: int) -> pa.Buffer:
    """(batch, weight, columns…) as a Parquet file."""
    column = pa.repeat(pa.scalar(batch, pa.int64()), changed.num_rows)
    schema = changed.schema.insert(0, pa.field("batch", pa.int64(), nullable=False))
    sink = pa.BufferOutputStream()
    write_parquet(pa.RecordBatch.from_arrays([column, *changed.columns], schema=schema), sink)
    return sink.getvalue()


def _parts(wanted: Split, partials: dict[str, pa.RecordBatch]) -> list[Part]:
    """The weight comes before the key columns."""
    if wanted.view not in partials:
        return []
    columns = tuple(place + 1 for place in wanted.partition)
    batches = split(partials[wanted.view], columns, wanted.parts)
    return [Part(wanted.view, part, bytes(stream(batch.schema, [batch]))) for part, batch in batches.items()]
