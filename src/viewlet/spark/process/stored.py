"""The rows of a cell's tables, as events: what any program, engine and version of viewlet can begin again from.

A state in memory belongs to the code that made it. Rows belong to nobody, so each snapshot has them too, in the format
of a log.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.engines.base import Engine
from viewlet.engines.native.engine import MOST_COPIES, NativeEngine
from viewlet.rows.ledger import CHUNK, cells_batch, schema_of
from viewlet.schema import CLOCK, Relation
from viewlet.session.session import Session
from viewlet.spark.process.events import INSTEAD, Rows

Counted = tuple[pa.Array, pa.RecordBatch]  # how often each row is there, and the rows


def stored_rows(session: Session) -> Iterator[Rows]:
    for relation in session.program.relations:
        for times, rows in _counted(session.engine, relation):
            if is_clock(relation.name):
                yield Rows(relation.name, INSTEAD, rows)
            else:
                yield from by_powers(relation.name, times, rows)


def is_clock(name: str) -> bool:
    """Or a copy of the clock, as a grid names it."""
    return name == CLOCK.name or name.startswith(f"{CLOCK.name}_")


def _counted(engine: Engine, relation: Relation) -> Iterator[Counted]:
    if isinstance(engine, NativeEngine):
        shown = list(engine.state.stored(relation.name, CHUNK))
        if None not in shown:  # a type is beyond Arrow for all rows or for none
            for batch in map(pa.array, shown):
                times, *columns = batch.flatten()
                yield times, pa.RecordBatch.from_arrays(columns, schema=schema_of(relation))
            return
    counts = engine.table(relation.name)
    rows = [row for row, n in counts.items() if n]
    for at in range(0, len(rows), CHUNK):
        some = rows[at : at + CHUNK]
        yield pa.array([counts[row] for row in some], pa.int64()), cells_batch(relation, some)


def by_powers(relation: str, times: pa.Array, rows: pa.RecordBatch) -> Iterator[Rows]:
    """A row that is there n times comes once for each binary digit of n: so there are few different numbers.

    >>> rows = pa.record_batch({"a": ["once", "three times"]})
    >>> [(r.times, r.batch["a"].to_pylist()) for r in by_powers("r", pa.array([1, 3]), rows)]
    [(1, ['once', 'three times']), (2, ['three times'])]
    """
    power, most = 1, pc.max(times).as_py() or 0
    while power <= most:
        chosen = rows.filter(pc.not_equal(pc.bit_wise_and(times, power), 0))
        if chosen.num_rows:
            at_once = min(power, MOST_COPIES)
            yield from (Rows(relation, at_once, chosen) for _ in range(power // at_once))
        power *= 2
