"""Rows to their cells, what cells sent to be summed on to the merge cells, and what all of them answer.

A task does this for the rows that Spark gave it; where Spark is all on this machine, the driver does it for a batch.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.errors import CorruptError, DataError, OverflowError_
from viewlet.spark.chain import Address, Chain
from viewlet.spark.client import Answer, Artefact, Rows, Split, Ticket, apply, part_rows
from viewlet.spark.pipeline import Arrival, Works
from viewlet.spark.protocol import described, raised

ANSWER, PARTIAL, OPEN, REFUSED = "answer", "partial", "open", "refused"
NOBODY = -1  # the copy of a row that only opens its cell
HOPELESS = (DataError, OverflowError_, CorruptError)  # what another attempt would not mend

A = TypeVar("A")
B = TypeVar("B")


class Message(NamedTuple):
    """``part`` is where it goes next. The partial changes of a view travel as Arrow bytes."""

    part: int
    kind: str
    name: str
    body: bytes


@dataclass(frozen=True)
class Turn:
    """One micro-batch: from which versions the cells start, and where they were last seen."""

    works: Works
    batch: int
    chains: Mapping[str, bytes]  # packed
    addresses: Mapping[str, Address]

    def ticket(self, cell: int) -> Ticket:
        works, name = self.works, cell_name(cell)
        return self._ticket(name, works.cell, works.local, works.splits)

    def merge_ticket(self, cell: int) -> Ticket:
        works, name = self.works, merge_name(cell)
        assert works.merge is not None, "no view is summed across cells"
        return self._ticket(name, works.merge, (*works.merged, *(works.global_ if cell == 0 else ())), ())

    def _ticket(self, name: str, artefact: Artefact, publish: tuple[str, ...], splits: tuple[Split, ...]) -> Ticket:
        return Ticket(
            run=self.works.run,
            artefact=artefact,
            cell=name,
            batch=self.batch,
            chain=Chain.unpacked(self.chains[name]) if name in self.chains else Chain(),
            address=self.addresses.get(name),
            publish=publish,
            splits=splits,
        )


def cell_name(number: int) -> str:
    return f"c{number}"


def merge_name(number: int) -> str:
    return f"m{number}"


# -- cells -------------------------------------------------------------------------------------------------------------


def feed_cells(turn: Turn, batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """Each cell its rows, which it is left to the cell's own thread to find."""
    by_cell: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for batch in (batch for batch in batches if batch.num_rows):
        for cell in _values(batch, "cell"):
            by_cell[cell].append(batch)
    yield from chain.from_iterable(_at_once(partial(_feed_cell, turn), by_cell))


def _feed_cell(turn: Turn, cell: int, batches: list[pa.RecordBatch]) -> list[Message]:
    opened = turn.chains.get(cell_name(cell)) is None
    try:
        answer = apply(turn.ticket(cell), in_order(turn.works.arrivals, (_of(b, "cell", cell) for b in batches)))
    except HOPELESS as error:
        return [_refused(cell, error)]
    opens = [Message(cell, OPEN, "", b"")] if opened and cell < turn.works.merge_cells else []
    partials = [Message(part.part, PARTIAL, _label(part.view, answer), part.data) for part in answer.parts]
    return [_answered(cell, answer, {"sent_to": sorted({part.part for part in answer.parts})}), *opens, *partials]


def _label(view: str, answer: Answer) -> str:
    """Which view, and which attempt of which cell, a partial change is of."""
    return json.dumps([view, answer.cell, answer.log.id])


def in_order(arrivals: tuple[Arrival, ...], batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
    """What comes before what goes: a batch is a bag, its rows have no order of their own.

    Static tables have a batch to themselves. Each load of one computes views anew, so its rows are kept together.
    """
    loads: dict[tuple[str, int], list[pa.RecordBatch]] = defaultdict(list)
    deletes: list[Rows] = []
    for batch in batches:
        for arrival, rows in _by_copy(arrivals, batch):
            if arrival.static:
                loads[rows.relation, rows.times].append(rows.batch)
            elif rows.times < 0:
                deletes.append(rows)
            else:
                yield rows
    for (relation, times), parts in sorted(loads.items(), key=lambda load: -load[0][1]):
        yield Rows(relation, times, pa.concat_batches(parts))
    yield from deletes


def _by_copy(arrivals: tuple[Arrival, ...], batch: pa.RecordBatch) -> Iterator[tuple[Arrival, Rows]]:
    for copy in _values(batch, "copy"):
        if copy != NOBODY:
            arrival, rows = arrivals[copy], _of(batch, "copy", copy)
            for op in _values(rows, "op"):
                renamed = _of(rows, "op", op).select(arrival.slots).rename_columns(list(arrival.columns))
                yield arrival, Rows(arrival.relation, op, renamed)


def _values(batch: pa.RecordBatch, column: str) -> list[int]:
    """Those that occur, which are few; a column that would always say 0 is left out."""
    found: list[int] = pc.unique(batch.column(column)).to_pylist() if column in batch.schema.names else [0]
    return found


def _of(batch: pa.RecordBatch, column: str, value: int) -> pa.RecordBatch:
    """The rows that have this value there."""
    if column not in batch.schema.names:
        return batch
    chosen = pc.equal(batch.column(column), value)
    return batch if chosen.true_count == len(chosen) else batch.filter(chosen)


# -- merge cells -------------------------------------------------------------------------------------------------------


def feed_merge_cells(turn: Turn, messages: Iterable[Message]) -> Iterator[Message]:
    """Each merge cell the partial changes that the cells sent it; their answers are passed on."""
    by_cell: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        if message.kind in (ANSWER, REFUSED):
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
    return _answered(cell, answer, {"summed": sorted(summed)})


# -- answers -----------------------------------------------------------------------------------------------------------


def _answered(cell: int, answer: Answer, more: dict[str, Any]) -> Message:
    return Message(cell, ANSWER, answer.cell, json.dumps({"answer": answer.to_json(), **more}).encode())


def _refused(cell: int, error: Exception) -> Message:
    return Message(cell, REFUSED, "", json.dumps(described(error)).encode())


def answers(messages: list[Message]) -> list[Answer] | None:
    """What the cells answered; None where a merge cell summed what no answer tells of. A refusal is raised."""
    for message in messages:
        if message.kind == REFUSED:
            raise raised(json.loads(bytes(message.body)))
    found = {m.name: json.loads(bytes(m.body)) for m in messages if m.kind == ANSWER}
    given = {name: Answer.from_json(told["answer"]) for name, told in found.items()}
    sent = {(merge_name(part), name, given[name].log.id) for name, t in found.items() for part in t.get("sent_to", ())}
    summed = {(name, sender, log) for name, told in found.items() for sender, log in told.get("summed", ())}
    return list(given.values()) if sent == summed else None
