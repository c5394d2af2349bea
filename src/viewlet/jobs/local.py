"""A job's rows read or generated in this process, batch by batch, for the engine in this process."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, count, zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.errors import DataError, Error
from viewlet.jobs.file import OP, read, with_op
from viewlet.jobs.source import Files, OrderBook, Source, Tpch
from viewlet.schema import Relation
from viewlet.workloads.streams import NATION


def static_tables(relations: Iterable[Relation], sources: Mapping[str, Source]) -> dict[str, list[pa.Table]]:
    """Each file whole: every change of a static table computes the views over it again."""
    return {r.name: list(_whole(r, sources[r.name])) for r in relations if r.static}


def _whole(relation: Relation, source: Source) -> Iterator[pa.Table]:
    if isinstance(source, Files):
        pieces = ([*read(relation, source, file)] for file in some_data_files(relation, source))
        yield from (pa.concat_tables(some) for some in pieces if some)
    else:
        columns = [c.name for c in relation.given]
        yield pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in NATION])


def batches(relations: Iterable[Relation], sources: Mapping[str, Source]) -> Iterator[Iterator[pa.RecordBatch]]:
    """Steps of the streams together; each is batches of events, in order, made while they are taken."""
    streams = {r.name: r for r in relations if not r.static}
    read = {name: source for name in streams if isinstance(source := sources[name], Files)}
    generated = dict.fromkeys(sources[name] for name in streams if name not in read)
    feeds = [_from_files(streams, read)]
    feeds += [from_generator(s, {n: r for n, r in streams.items() if sources[n] == s}) for s in generated]
    for steps in zip_longest(*feeds, fillvalue=iter(())):
        yield chain.from_iterable(steps)


def batch_count(relations: Iterable[Relation], sources: Mapping[str, Source]) -> int:
    """How many steps :func:`batches` takes."""
    return max((_steps(r, sources[r.name]) for r in relations if not r.static), default=0)


def _steps(relation: Relation, source: Source) -> int:
    if isinstance(source, Files):
        return -(-len(some_data_files(relation, source)) // source.files_per_batch)
    return -(-source.events // source.events_per_batch)


def from_generator(source: Source, streams: Mapping[str, Relation]) -> Iterator[Iterator[pa.RecordBatch]]:
    from viewlet.workloads import bulk  # needs numpy

    match source:
        case OrderBook():
            events = bulk.order_book(source.seed, source.events, live=source.live, brokers=source.brokers)
        case Tpch():
            events = bulk.tpch(source.seed, source.events, scale=source.scale, live=source.live)
        case Files():
            raise AssertionError("not generated")
    mine = events.only(streams)
    mine = replace(mine, tables={name: _declared(streams[name], table) for name, table in mine.tables.items()})
    return (iter([batch]) for batch in mine.batches(source.events_per_batch, "structs"))


def _declared(relation: Relation, table: pa.Table) -> pa.Table:
    for column in relation.given:
        if column.name not in table.column_names:
            there = ", ".join(table.column_names)
            raise DataError(
                f"no such column is generated; there are {there}", relation=relation.name, column=column.name
            )
    return table.select([column.name for column in relation.given])


# -- files -------------------------------------------------------------------------------------------------------------


def _from_files(streams: Mapping[str, Relation], sources: Mapping[str, Files]) -> Iterator[Iterator[pa.RecordBatch]]:
    files = {name: some_data_files(streams[name], source) for name, source in sources.items()}
    for step in count():
        chosen = {
            name: files[name][step * source.files_per_batch : (step + 1) * source.files_per_batch]
            for name, source in sources.items()
        }
        if not any(chosen.values()):
            return
        files_of = {
            name: [partial(_events_of, streams[name], sources[name], file) for file in some]
            for name, some in chosen.items()
        }
        keyed = [events for name, some in files_of.items() if is_keyed(streams[name]) for events in some]
        others = [events for name, some in files_of.items() if not is_keyed(streams[name]) for events in some]
        yield chain(_comes_then_goes(others), chain.from_iterable(events() for events in keyed))


def is_keyed(relation: Relation) -> bool:
    """A row leaves before another one with its key comes: such files are taken in their order."""
    return bool(relation.key or relation.unique)


def _comes_then_goes(files: Iterable[Callable[[], Iterator[pa.RecordBatch]]]) -> Iterator[pa.RecordBatch]:
    """Files say which rows are in a batch, not in which order. One that is too large to be held is read twice."""
    goes: list[Callable[[], Iterable[pa.RecordBatch]]] = []
    for events in files:
        pieces, last = 0, list[pa.RecordBatch]()
        some_go = False
        for batch in events():
            pieces += 1
            yield from _some(batch.filter(pc.greater(batch.column(OP), 0)))
            last = _some(batch.filter(pc.less(batch.column(OP), 0)))
            some_go |= bool(last)
        if some_go:
            goes.append(events if pieces > 1 else last.copy)
    for again in goes:
        for batch in again():
            yield from _some(batch.filter(pc.less(batch.column(OP), 0)))


def _some(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [batch] if batch.num_rows else []


def _events_of(relation: Relation, source: Files, file: str) -> Iterator[pa.RecordBatch]:
    return (events_in(relation, piece) for piece in read(relation, source, file))


def some_data_files(relation: Relation, source: Files) -> list[str]:
    files = data_files(source)
    if not files:
        raise Error(f"{relation.name}: there is no file {source.path}")
    return files


def data_files(source: Files) -> list[str]:
    """The oldest first, as Spark takes them; hidden ones and marks like ``_SUCCESS`` are no data."""
    inside = os.path.join(source.path, "*") if os.path.isdir(source.path) else source.path
    files = [f for f in glob.glob(inside) if Path(f).is_file() and not Path(f).name.startswith((".", "_"))]
    times = {file: time for file in files if (time := _written(file)) is not None}
    return sorted(times, key=lambda file: (times[file], file))


def _written(file: str) -> int | None:
    """When; None where it is gone since it was listed."""
    try:
        return os.stat(file).st_mtime_ns
    except FileNotFoundError:
        return None


def events_in(relation: Relation, table: pa.Table) -> pa.RecordBatch:
    table = with_op(table)
    names = [c.name for c in relation.given]
    columns = [table[name].combine_chunks() for name in names]
    rows = pa.StructArray.from_arrays(columns, names)
    named = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), len(rows)), [relation.name])
    return pa.record_batch({OP: table[OP].combine_chunks(), "relation": named, relation.name: rows})


# -- all of it ---------------------------------------------------------------------------------------------------------


def live_rows(relations: Iterable[Relation], sources: Mapping[str, Source]) -> dict[str, list[pa.Table]]:
    """By relation, tables of its columns and ``op``: whose sums are the rows that are there at the end."""
    relations = list(relations)
    rows: dict[str, list[pa.Table]] = {r.name: [] for r in relations}
    for name, tables in static_tables(relations, sources).items():
        rows[name] += [with_op(table) for table in tables]
    for step in batches(relations, sources):
        for batch in step:
            for name in {*batch.column("relation").dictionary.to_pylist()}:
                rows[name].append(_of_relation(batch, name))
    return rows


def _of_relation(batch: pa.RecordBatch, name: str) -> pa.Table:
    mine = batch.filter(batch.column(name).is_valid())
    rows = pa.Table.from_struct_array(mine.column(name))
    return rows.append_column(OP, mine.column(OP).cast(pa.int64()))
