"""Rows to their cells, what cells sent to be summed on to the merge cells, and what all of them answer.

Either a task has all rows of a cell, and has it apply them; or each task hands a cell what it has, and the driver has
the cell apply what it then holds.
"""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce
from itertools import chain, islice, product
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.durable.chain import START, Address, Chain, Version
from viewlet.durable.manifest import read_manifest
from viewlet.durable.store import Store
from viewlet.engines.native.engine import MOST_COPIES
from viewlet.errors import CorruptError, DataError, OutOfRangeError
from viewlet.schema import CLOCK
from viewlet.spark.pipeline import Absent, Arrival, Works
from viewlet.spark.process.client import (
    Answer,
    Artefact,
    Rows,
    Split,
    Ticket,
    apply,
    apply_held,
    hold,
    open_here,
    part_rows,
)
from viewlet.spark.process.events import INSTEAD
from viewlet.spark.process.protocol import UnreachableError, described, raised
from viewlet.spark.process.standby import here, leave, stand_by
from viewlet.spark.process.ticket import Standby

ANSWER, PARTIAL, OPEN, REFUSED, HELD, LOST = "answer", "partial", "open", "refused", "held", "lost"
HERE = "here"  # which executor a task ran on, and the cells that make themselves ready there
LETTERS = "letters"  # of rows that no cell could take: JSON, a line for each
DEAD = "dead"  # their column, where a job keeps any
NOBODY = -1  # the copy of a row that only opens its cell
HOPELESS = (DataError, OutOfRangeError, CorruptError)  # what another attempt would not mend
HANDED_AT_ONCE = 50  # Arrow batches of Spark's: as much as a task has in memory

A = TypeVar("A")
B = TypeVar("B")


class Message(NamedTuple):
    """``part`` is where it goes next. The partial changes of a view travel as Arrow bytes."""

    part: int
    kind: str
    name: str
    body: bytes


class Arrived(NamedTuple):
    """Rows of a relation, by the columns that a cell knows."""

    arrival: Arrival
    rows: Rows


@dataclass(frozen=True)
class Turn:
    """One micro-batch: from which versions the cells start, and where they were last seen.

    Small, since it goes to every task. A cell that must be made again has its chain read from the manifest ``before``,
    which a batch and a run name.
    """

    works: Works
    batch: int
    before: tuple[int, str] | None
    versions: Mapping[str, Version]
    addresses: Mapping[str, Address]
    moment: int | None = None  # what now() is, in microseconds; None where no view asks
    absent: Mapping[str, Absent] = field(default_factory=dict)  # whose deletes of what is not there are letters
    counts: bool = False  # a batch of the stream, not of what was before it
    moves: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # executor ↦ cells to come ↦ since which batch
    left: Mapping[str, Address] = field(default_factory=dict)  # cells that have moved ↦ where they were

    def to_text(self) -> str:
        """For who hands rows over: the batch, and where the cells are."""
        cells = {name: self.addresses[name].to_json() for name in map(cell_name, range(self.works.cells))}
        return json.dumps([self.batch, cells])

    @staticmethod
    def from_text(works: Works, text: str) -> Turn:
        batch, cells = json.loads(text)
        return Turn(works, batch, None, {}, {name: Address.from_json(address) for name, address in cells.items()})

    def with_all_cells(self) -> Turn:
        """Cells that nobody knows of are opened here."""
        missing = [cell for cell in range(self.works.cells) if cell_name(cell) not in self.addresses]
        opened = {cell_name(cell): open_here(self.ticket(cell)) for cell in missing}
        return replace(self, addresses={**self.addresses, **opened})

    def without(self, cells: Iterable[int]) -> Turn:
        gone = set(map(cell_name, cells))
        return replace(self, addresses={name: a for name, a in self.addresses.items() if name not in gone})

    def ticket(self, cell: int) -> Ticket:
        works, name = self.works, cell_name(cell)
        told = {copy: absent.of if cell in absent.cells else "" for copy, absent in self.absent.items()}
        ticket = self._ticket(name, works.cell, works.local, works.splits)
        return replace(ticket, absent=told, bounds=self.bounds)

    @property
    def bounds(self) -> dict[str, tuple[str, int]]:
        """By copy, the rows that are gone: those whose column says a moment before this."""
        if self.moment is None or not self.counts:
            return {}
        return {copy: (expiry.column, expiry.bound(self.moment)) for copy, expiry in self.works.expiries.items()}

    def merge_ticket(self, cell: int) -> Ticket:
        works, name = self.works, merge_name(cell)
        assert works.merge is not None, "no view is summed across cells"
        return self._ticket(name, works.merge, (*works.merged, *(works.global_ if cell == 0 else ())), ())

    def ticket_of(self, name: str) -> Ticket:
        number = int(name[1:])
        return self.ticket(number) if name == cell_name(number) else self.merge_ticket(number)

    def ticks(self, cell: int) -> Iterator[Rows]:
        """The moment, as the one row of each clock that the cell has."""
        if self.moment is not None:
            row = pa.record_batch({CLOCK.columns[0].name: pa.array([self.moment], pa.timestamp("us"))})
            yield from (Rows(clock, INSTEAD, row) for clock, cells in self.works.clocks.items() if cell in cells)

    def _ticket(self, name: str, artefact: Artefact, publish: tuple[str, ...], splits: tuple[Split, ...]) -> Ticket:
        return Ticket(
            run=self.works.run,
            artefact=artefact,
            cell=name,
            batch=self.batch,
            version=self.versions.get(name, START),
            chain=partial(self._chain, name),
            address=self.addresses.get(name),
            publish=publish,
            splits=splits,
        )

    def _chain(self, name: str) -> Chain:
        version = self.versions.get(name, START)
        if self.before is None or version == START:
            return Chain()
        chain = chains_of(self.works.run.store, *self.before).get(name, Chain())
        if chain.version != version:
            raise CorruptError(f"the manifest of batch {self.before[0]} is not the one that cell {name} goes on from")
        return chain


_reading = Lock()  # many cells at once want the same manifest


def chains_of(store: str, batch: int, run: str) -> Mapping[str, Chain]:
    with _reading:
        return _chains_of(store, batch, run)


@lru_cache(maxsize=1)
def _chains_of(store: str, batch: int, run: str) -> Mapping[str, Chain]:
    manifest = read_manifest(Store(store), batch, run)
    if manifest is None:
        raise CorruptError(f"{store} has no manifest of batch {batch}: restore the checkpoint as a whole")
    return manifest.cells


def cell_name(number: int) -> str:
    return f"c{number}"


def merge_name(number: int) -> str:
    return f"m{number}"


# -- cells -------------------------------------------------------------------------------------------------------------


def feed_cells(turn: Turn, batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """Each cell its rows, all that there are of them."""

    def applied(cell: int, arrived: list[Arrived]) -> list[Message]:
        rows = chain(turn.ticks(cell), in_order(arrived))
        return _asked(turn, cell, lambda ticket: apply(ticket, rows))

    letters = list[str]()
    yield _here(turn)
    yield from chain.from_iterable(_at_once(applied, _by_cell(turn.works.arrivals, _living(batches, letters))))
    yield from _told(letters)


def _here(turn: Turn) -> Message:
    """So the driver learns of executors that have no cell yet, and of cells that are ready to move."""
    home = here(turn.works.run)
    ready = [stand_by(turn.ticket_of(cell), since) for cell, since in turn.moves.get(home, {}).items()]
    return Message(0, HERE, home, json.dumps([standby.to_json() for standby in ready if standby]).encode())


def _moved(turn: Turn, answer: Answer) -> None:
    """The process that the cell was elsewhere is needed no more."""
    before = turn.left.get(answer.cell)
    if before is not None and before != answer.address:
        leave(turn.works.run, answer.cell, before)


def hand_over(turn: Turn, batches: Iterator[pa.RecordBatch]) -> Iterator[Message]:
    """Each cell the rows that there are of it here; it holds them. A message says under which name."""
    while some := list(islice(batches, HANDED_AT_ONCE)):
        whole = pa.Table.from_batches(some).combine_chunks().to_batches()  # few large pieces are cut up sooner
        letters = list[str]()
        yield from _at_once(partial(_hand_over, turn), _by_cell(turn.works.arrivals, _living(whole, letters)))
        yield from _told(letters)


def _living(batches: Iterable[pa.RecordBatch], letters: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows that cells can take; of the others, the letters."""
    for batch in batches:
        if DEAD not in batch.schema.names:
            yield batch
            continue
        column = batch.column(DEAD)
        letters += column.drop_null().to_pylist()
        yield batch.filter(pc.is_null(column)).drop_columns([DEAD])


def _told(letters: list[str]) -> Iterator[Message]:
    if letters:
        yield Message(0, LETTERS, "", "\n".join(letters).encode())


def _hand_over(turn: Turn, cell: int, arrived: list[Arrived]) -> Message:
    return _held(turn, cell, in_order(arrived))


def _held(turn: Turn, cell: int, rows: Iterable[Rows]) -> Message:
    name = secrets.token_hex(8)
    with suppress(UnreachableError):  # the task that has it apply them will notice
        hold(turn.ticket(cell), name, rows)
    return Message(cell, HELD, name, b"")


def hand_over_ticks(turn: Turn) -> list[Message]:
    """Each cell that has a clock the moment, rows or not."""
    ticks = {cell: list(turn.ticks(cell)) for cell in range(turn.works.cells)}
    return _at_once(partial(_held, turn), {cell: rows for cell, rows in ticks.items() if rows or turn.bounds})


def apply_handed_over(turn: Turn, messages: Iterable[Message]) -> list[Message]:
    """Each cell what these messages say that it holds; it is lost if it does not."""
    by_cell: dict[int, list[str]] = defaultdict(list)
    letters = list[Message]()
    for message in messages:
        if message.kind == LETTERS:
            letters.append(message)
        else:
            by_cell[message.part].append(message.name)

    def applied(cell: int, names: list[str]) -> list[Message]:
        try:
            return _asked(turn, cell, lambda ticket: apply_held(ticket, names))
        except UnreachableError:
            return [Message(cell, LOST, "", b"")]

    return [*chain.from_iterable(_at_once(applied, by_cell)), *letters]


def _by_cell(arrivals: tuple[Arrival, ...], batches: Iterable[pa.RecordBatch]) -> dict[int, list[Arrived]]:
    """Each cell's rows as its relations have them. Of a cell that is only to be opened there are none."""
    by_cell: dict[int, list[Arrived]] = defaultdict(list)
    for batch in (batch for batch in batches if batch.num_rows):
        copies, ops = _places(batch, "copy"), _places(batch, "op")
        _refuse_other_ops(arrivals, batch, ops)
        copies.pop(NOBODY, None)
        named = {c: batch.select(arrivals[c].slots).rename_columns(list(arrivals[c].columns)) for c in copies}
        for cell, its in _places(batch, "cell").items():
            mine = by_cell[cell]
            for copy, op in product(copies, ops):
                rows = _chosen(named[copy], its, copies[copy], ops[op])
                if rows.num_rows:
                    mine.append(Arrived(arrivals[copy], Rows(arrivals[copy].relation, op, rows)))
    return by_cell


def _refuse_other_ops(arrivals: tuple[Arrival, ...], batch: pa.RecordBatch, ops: dict[int, pa.Array | None]) -> None:
    """And leave out what comes 0 times."""
    for op in ops:
        if op is None or not -MOST_COPIES <= op <= MOST_COPIES:
            there = batch.column("op")
            rows = batch.filter(pc.is_null(there) if op is None else pc.equal(there, op))
            relation, what = arrivals[next(iter(_places(rows, "copy")))].relation, "NULL" if op is None else op
            raise DataError(f"{relation}.op is {what}; it is +1 (insert), -1 (delete), or how often", relation=relation)
    ops.pop(0, None)


def _places(batch: pa.RecordBatch, column: str) -> dict[int, pa.Array | None]:
    """Value ↦ the rows that have it (None: all). Values are few; a column that would always say 0 is left out."""
    if column not in batch.schema.names:
        return {0: None}
    there = batch.column(column)
    values = pc.unique(there).to_pylist()
    return {value: pc.equal(there, value) if len(values) > 1 else None for value in values}


def _chosen(rows: pa.RecordBatch, *masks: pa.Array | None) -> pa.RecordBatch:
    """The rows that are in all of them, copied once."""
    given = [mask for mask in masks if mask is not None]
    return rows.filter(reduce(pc.and_, given)) if given else rows


def _asked(turn: Turn, cell: int, ask: Callable[[Ticket], Answer]) -> list[Message]:
    opened = cell_name(cell) not in turn.versions
    try:
        answer = ask(turn.ticket(cell))
    except HOPELESS as error:
        return [_refused(cell, error)]
    _moved(turn, answer)
    opens = [Message(cell, OPEN, "", b"")] if opened and cell < turn.works.merge_cells else []
    partials = [Message(part.part, PARTIAL, _label(part.view, answer), part.data) for part in answer.parts]
    letters = list(_told(list(answer.letters)))
    sent = {"sent_to": sorted({part.part for part in answer.parts})}
    return [_answered(cell, replace(answer, letters=()), sent), *opens, *partials, *letters]


def _label(view: str, answer: Answer) -> str:
    """Which view, and which attempt of which cell, a partial change is of."""
    return json.dumps([view, answer.cell, answer.log.id])


def in_order(arrived: Iterable[Arrived]) -> Iterator[Rows]:
    """What comes before what goes: a batch is a bag, its rows have no order of their own.

    Static tables come before all. Each load of one computes views again, so its rows are kept together.
    """
    loads: dict[tuple[str, int], list[pa.RecordBatch]] = defaultdict(list)
    events: list[Rows] = []
    for arrival, rows in arrived:
        if arrival.static:
            loads[rows.relation, rows.times].append(rows.batch)
        else:
            events.append(rows)
    for (relation, times), parts in sorted(loads.items(), key=lambda load: -load[0][1]):
        yield Rows(relation, times, pa.concat_batches(parts))
    yield from sorted(events, key=lambda rows: rows.times < 0)


# -- merge cells -------------------------------------------------------------------------------------------------------


def feed_merge_cells(turn: Turn, messages: Iterable[Message]) -> Iterator[Message]:
    """Each merge cell the partial changes that the cells sent it; their answers are passed on."""
    by_cell: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        if message.kind in (ANSWER, REFUSED, LETTERS, HERE):
            yield message
        else:
            by_cell[message.part].append(message)
    yield from _at_once(partial(_feed_merge_cell, turn), by_cell)


def _at_once(feed: Callable[[int, list[A]], B], by_cell: Mapping[int, list[A]]) -> list[B]:
    """Cells are processes of their own: none waits for another's disk."""
    if len(by_cell) < 2:
        return [feed(cell, given) for cell, given in by_cell.items()]
    with ThreadPoolExecutor(len(by_cell)) as pool:
        return list(pool.map(feed, by_cell.keys(), by_cell.values()))


def _feed_merge_cell(turn: Turn, cell: int, messages: list[Message]) -> Message:
    partials: dict[str, list[bytes]] = defaultdict(list)
    summed: set[tuple[str, str]] = set()
    for message in messages:
        if message.kind == PARTIAL:
            view, sender, log = json.loads(message.name)
            partials[view].append(message.body)
            summed.add((sender, log))
    rows = [r for view, parts in partials.items() for r in part_rows(turn.works.partials[view], parts)]
    try:
        answer = apply(turn.merge_ticket(cell), sorted(rows, key=lambda r: -r.times))
    except HOPELESS as error:
        return _refused(cell, error)
    _moved(turn, answer)
    return _answered(cell, answer, {"summed": sorted(summed)})


# -- answers -----------------------------------------------------------------------------------------------------------


def _answered(cell: int, answer: Answer, more: dict[str, Any]) -> Message:
    return Message(cell, ANSWER, answer.cell, json.dumps({"answer": answer.to_json(), **more}).encode())


def _refused(cell: int, error: Exception) -> Message:
    return Message(cell, REFUSED, "", json.dumps(described(error)).encode())


def letters_in(messages: Iterable[Message]) -> list[str]:
    """Of rows that no cell could take."""
    return [line for m in messages if m.kind == LETTERS for line in bytes(m.body).decode().split("\n")]


def executors_in(messages: Iterable[Message]) -> dict[str, list[Standby]]:
    """Those on which tasks ran, and the cells that are ready to move there."""
    told: dict[str, list[Standby]] = defaultdict(list)
    for message in messages:
        if message.kind == HERE:
            told[message.name] += map(Standby.from_json, json.loads(bytes(message.body)))
    return told


def answers(messages: list[Message]) -> list[Answer] | None:
    """What the cells answered; None where a merge cell summed what no answer tells of. A refusal is raised."""
    for message in messages:
        if message.kind == REFUSED:
            raise raised(json.loads(bytes(message.body)))
    bodies = {m.name: json.loads(bytes(m.body)) for m in messages if m.kind == ANSWER}
    given = {name: Answer.from_json(told["answer"]) for name, told in bodies.items()}
    sent = {(merge_name(part), name, given[name].log.id) for name, t in bodies.items() for part in t.get("sent_to", ())}
    summed = {(name, sender, log) for name, told in bodies.items() for sender, log in told.get("summed", ())}
    return list(given.values()) if sent == summed else None
