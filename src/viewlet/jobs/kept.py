"""A job whose sources are read on from where they were read up to, in this process or by an earlier one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.database.directory import connect
from viewlet.database.looking import Window, window
from viewlet.errors import DataError
from viewlet.jobs import local
from viewlet.jobs.file import OP, unreadable, with_op
from viewlet.jobs.growing import next_piece
from viewlet.jobs.position import Position, begun, with_positions
from viewlet.jobs.run import LOOK_SHARE, Options, Progress, Stop, given_relations, streams_and_tables
from viewlet.jobs.source import Files, OrderBook, Source, Tpch, sources_of
from viewlet.jobs.verify import Row
from viewlet.rows import dml
from viewlet.schema import CLOCK, Relation
from viewlet.sql.translate import nothing

POLL = 0.2  # seconds between two looks at files that still grow
TICK = 1.0  # seconds between two moments that now() shows
GONE = "{file} vanished while it was read, so nobody knows which of its rows are missing: put it back, and run again"


@dataclass(frozen=True)
class Update:
    """Events, and the position behind them, which one call applies: a death in between loses or repeats neither."""

    events: pa.Table
    position: Position


class KeptRun:
    """``directory`` keeps streams, views and positions; without one they end with the process."""

    def __init__(self, script: str, options: Options, directory: Path | None, watch: bool) -> None:
        translation = nothing(options.dialect).followed(script)
        self._relations = given_relations(translation)
        self._sources = sources_of(self._relations)
        self._named = tuple(relation.name for relation in streams_and_tables(translation.script.relations))
        self._has_clock, self._next_tick = CLOCK in translation.script.relations, 0.0
        self.is_endless, self.look_share, self.stop = watch, LOOK_SHARE, Stop()
        self._seen: dict[str, tuple[int, int]] = {}  # by file, its size and time when it had no more rows
        self._db = connect(directory, strategy=options.strategy, dialect=options.dialect, wait_native=True)
        try:
            self._positions = begun(self._db, script, directory)
        except BaseException:
            self._db.close()
            raise
        self.views: Mapping[str, Window] = {
            result.name: window(self._db, result.name) for result in translation.script.results
        }

    # -- batches -------------------------------------------------------------------------------------------------------

    def batches(self) -> Iterator[Progress]:
        """Each is a file, or a piece of one, or some generated events."""
        number = rows = 0
        updates: Iterable[Update] = chain(self._statics(), self._streams())
        while not self.stop.asked:
            of = number + self._waiting()
            started = time.perf_counter()
            self._tick()
            for update in updates:
                rows += self._apply(update)
                number += 1
                yield Progress(number, max(of, number), rows, time.perf_counter() - started, self._db.tier)
                if self.stop.asked:
                    return
                started = time.perf_counter()
            if not self.is_endless:
                return
            time.sleep(POLL)
            updates = self._streams()

    def _apply(self, update: Update) -> int:
        self._tick()
        position = update.position
        self._db.apply(with_positions(update.events, self._positions.get(position.key), position))
        self._positions[position.key] = position
        return len(update.events)

    def _tick(self) -> None:
        """Often enough for people, and not so often that a directory holds little else."""
        if self._has_clock and time.monotonic() >= self._next_tick:
            self._db.tick()
            self._next_tick = time.monotonic() + TICK

    def _statics(self) -> Iterator[Update]:
        for relation in self._relations:
            source = self._sources[relation.name]
            if relation.static:
                yield from self._table(relation, source)

    def _table(self, relation: Relation, source: Source) -> Iterator[Update]:
        if isinstance(source, Files):
            return self._from_files(relation, source)
        return self._generated_table(relation, source)

    def _streams(self) -> Iterator[Update]:
        """One batch of each stream in turn."""
        streams = [relation for relation in self._relations if not relation.static]
        feeds = [self._from_files(r, s) for r in streams if isinstance(s := self._sources[r.name], Files)]
        generated = dict.fromkeys(s for r in streams if not isinstance(s := self._sources[r.name], Files))
        feeds += [self._generated(source) for source in generated]
        for step in zip_longest(*feeds):
            yield from (update for update in step if update is not None)

    def _generated_table(self, relation: Relation, source: OrderBook | Tpch) -> Iterator[Update]:
        position = Position(relation.name, repr(source))
        if position.key not in self._positions:
            for table in local.static_tables([relation], self._sources)[relation.name]:
                yield Update(_events(relation, table), replace(position, read_rows=len(table)))

    def _generated(self, source: OrderBook | Tpch) -> Iterator[Update]:
        """The same seed gives the same events, of which the first are left out."""
        streams = {r.name: r for r in self._relations if not r.static and self._sources[r.name] == source}
        key = Position(",".join(streams), repr(source))
        position = self._positions.get(key.key, key)
        if position.read_rows >= source.events:
            return
        made, done = 0, position.read_rows
        for batch in chain.from_iterable(local.from_generator(source, streams)):
            made += batch.num_rows
            if made > done:
                yield Update(pa.Table.from_batches([batch]), replace(position, read_rows=made))

    # -- files ---------------------------------------------------------------------------------------------------------

    def _from_files(self, relation: Relation, source: Files) -> Iterator[Update]:
        grows = self.is_endless and not relation.static
        for file in self._changed_files(relation, source):
            start, state = Position(relation.name, os.path.abspath(file)), _state(file)
            position = self._positions.get(start.key, start)
            while piece := _piece(relation, source, file, position, grows):
                table, position = piece
                yield Update(_events(relation, table), position)
            if state is not None:
                self._seen[file] = state

    def _changed_files(self, relation: Relation, source: Files) -> list[str]:
        known = any(key[0] == relation.name for key in self._positions)
        files = local.data_files(source) if self.is_endless or known else local.some_data_files(relation, source)
        return [file for file in files if (state := _state(file)) is not None and self._seen.get(file) != state]

    def _waiting(self) -> int:
        """About how many batches there are to read now."""
        pairs = [(r, self._sources[r.name]) for r in self._relations]
        files = (os.path.abspath(f) for _, s in pairs if isinstance(s, Files) for f in local.data_files(s))
        read = {position.source for position in self._positions.values()}
        generated = {s for _, s in pairs if not isinstance(s, Files) and repr(s) not in read}
        return sum(file not in read for file in files) + sum(-(-s.events // s.events_per_batch) for s in generated)

    # -- answers -------------------------------------------------------------------------------------------------------

    def rows(self, view: str) -> list[Row]:
        return self._db.view(view).rows()

    def arrow(self, view: str) -> pa.Table:
        return self._db.view(view).arrow()

    def live_rows(self) -> Mapping[str, list[pa.Table]]:
        """Those that the database holds: where they came from may be gone."""
        relations = [r for r in self._db.program.relations if r.name in self._named]
        return {r.name: [with_op(dml.as_arrow(r, self._db.engine.table(r.name)))] for r in relations}

    def close(self) -> None:
        self._db.close()


def _piece(
    relation: Relation, source: Files, file: str, position: Position, grows: bool
) -> tuple[pa.Table, Position] | None:
    """A file of which nothing was read yet may go, or get another name. Rows behind those that were read may not."""
    try:
        return next_piece(relation, source, file, position, grows)
    except FileNotFoundError as error:
        if grows and not position.bytes:
            return None
        raise DataError(GONE.format(file=file), relation=relation.name) from error
    except OSError as error:
        raise unreadable(relation, file, error) from error


def _state(file: str) -> tuple[int, int] | None:
    """Its size and time; None where it is gone."""
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def _events(relation: Relation, table: pa.Table) -> pa.Table:
    """Rows come before they go, except where a key makes them replace one another."""
    table = with_op(table)
    if not local.is_keyed(relation):
        ops = table[OP]
        table = pa.concat_tables([table.filter(pc.greater(ops, 0)), table.filter(pc.less(ops, 0))])
    return pa.Table.from_batches([local.events_in(relation, table)])
