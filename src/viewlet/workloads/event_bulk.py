"""From files of events back to one stream in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from viewlet.errors import DataError
from viewlet.workloads.bulk import BulkStream, Floats, Ints

_OP = "op"


def bulk_stream(slices: Mapping[str, Sequence[pa.Table]]) -> BulkStream:
    """``slices[r][n]`` has the events of relation r in slice n, in order, and says in ``op`` what happens."""
    tables, ops, places, times = {}, [], [], []
    for name, parts in slices.items():
        events = pa.concat_tables(parts)
        ops.append(events[_OP].to_numpy().astype(np.int8))
        rows = events.drop_columns([_OP])
        places.append(_places(name, rows, ops[-1]))
        times.append(_times([len(part) for part in parts]))
        tables[name] = rows.filter(ops[-1] > 0).combine_chunks()
    codes = np.repeat(np.arange(len(tables), dtype=np.int8), [len(each) for each in ops])
    order = np.argsort(np.concatenate(times), kind="stable")
    return BulkStream(tables, np.concatenate(ops)[order], codes[order], np.concatenate(places)[order])


def _times(sizes: Sequence[int]) -> Floats:
    """Slice n is the time from n to n + 1, and a relation's events are spread evenly over it."""
    return np.concatenate([n + (np.arange(size) + 0.5) / max(size, 1) for n, size in enumerate(sizes)])


def _places(relation: str, rows: pa.Table, ops: npt.NDArray[np.int8]) -> Ints:
    """For each event, where its row is among those that come; of equal rows, the first that came is the first to go."""
    came, went = np.flatnonzero(ops > 0), np.flatnonzero(ops < 0)
    kinds = _kinds(rows)
    keys = kinds * (len(rows) + 1)  # and below that, the how manyth of its kind
    keys[came] += _how_manyth(kinds[came])
    keys[went] += _how_manyth(kinds[went])
    by_key = np.argsort(keys[came])
    arrivals = by_key[np.searchsorted(keys[came][by_key], keys[went][np.isin(keys[went], keys[came])])]
    if len(arrivals) < len(went) or (came[arrivals] > went).any():
        raise DataError("a row leaves that is not there", relation=relation)
    places = np.empty(len(rows), np.int64)
    places[came], places[went] = np.arange(len(came)), arrivals
    return places


def _kinds(rows: pa.Table) -> Ints:
    """Numbers that are equal for equal rows, column by column."""
    kinds = np.zeros(len(rows), np.int64)
    for column in rows.columns:
        values = column.combine_chunks().dictionary_encode(null_encoding="encode")
        codes = values.indices.to_numpy().astype(np.int64)
        kinds = np.unique(kinds * len(values.dictionary) + codes, return_inverse=True)[1].astype(np.int64)
    return kinds


def _how_manyth(kinds: Ints) -> Ints:
    """Of each number: how often it stood before."""
    by_kind = np.argsort(kinds, kind="stable")
    sorted_ = kinds[by_kind]
    starts = np.flatnonzero(np.diff(sorted_, prepend=-1))
    often = np.empty(len(kinds), np.int64)
    often[by_kind] = np.arange(len(kinds)) - np.repeat(starts, np.diff([*starts, len(kinds)]))
    return often
