"""Slices of events become one stream again: evenly, in order, and each delete names the row that came."""

from __future__ import annotations

import pyarrow as pa
import pytest

from viewlet.errors import DataError
from viewlet.workloads.event_bulk import bulk_stream


def slice_of(*events: tuple[int, int, str | None]) -> pa.Table:
    ops, keys, names = zip(*events, strict=True) if events else ((), (), ())
    return pa.table(
        {"k": pa.array(keys, pa.int64()), "name": pa.array(names, pa.string()), "op": pa.array(ops, pa.int32())}
    )


def test_relations_advance_evenly_within_a_slice_and_never_leave_it() -> None:
    many = [slice_of(*((1, n, "r") for n in range(4))), slice_of((1, 4, "r"))]
    few = [slice_of((1, 0, "s"), (1, 1, "s")), slice_of()]
    events = [(name, row[0]) for _, name, row in bulk_stream({"r": many, "s": few}).events()]
    assert events == [("r", 0), ("s", 0), ("r", 1), ("r", 2), ("s", 1), ("r", 3), ("r", 4)]


def test_the_first_of_equal_rows_is_the_first_to_go() -> None:
    stream = bulk_stream({"r": [slice_of((1, 7, "a"), (1, 7, "b"), (1, 7, "a")), slice_of((-1, 7, "a"), (-1, 7, "a"))]})
    assert stream.tables["r"].to_pydict() == {"k": [7, 7, 7], "name": ["a", "b", "a"]}
    assert stream.places.tolist() == [0, 1, 2, 0, 2]
    assert stream.ops.tolist() == [1, 1, 1, -1, -1]


def test_a_null_is_a_value_like_any_other() -> None:
    stream = bulk_stream({"r": [slice_of((1, 1, None), (1, 1, "a"), (-1, 1, None))]})
    assert stream.places.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "events",
    [
        [(-1, 1, "a")],
        [(1, 1, "a"), (-1, 1, "b")],
        [(1, 1, "a"), (-1, 1, "a"), (-1, 1, "a")],
        [(1, 2, "a"), (-1, 1, "a"), (1, 1, "a")],
    ],
)
def test_a_row_leaves_only_while_it_is_there(events: list[tuple[int, int, str | None]]) -> None:
    with pytest.raises(DataError, match="r: a row leaves that is not there"):
        bulk_stream({"r": [slice_of(*events)]})
