"""The referee: DuckDB re-evaluates a query over the rows that are left, and every contestant must say the same."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping

import duckdb
import pyarrow as pa

from bench.engine.workload import Row, Workload, survivors
from viewlet.workloads.bulk import BulkStream

RELATIVE = 1e-9  # between two ways of adding up the same doubles


class WrongAnswerError(Exception):
    """A contestant's rows are not the referee's."""


class Referee:
    """The query's relations as DuckDB tables, filled by the batch or changed by the row."""

    def __init__(self, workload: Workload, rows: Mapping[str, pa.Table]) -> None:
        self._select = workload.query.referee()
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.execute(workload.query.schema.replace("CREATE STREAM", "CREATE TABLE"))
        self._columns: dict[str, list[str]] = {}
        for name, table in (rows | workload.static_tables).items():
            self._columns[name] = table.column_names
            self.connection.register("arrived", table)
            self.connection.execute(f"INSERT INTO {name} SELECT * FROM arrived")
            self.connection.unregister("arrived")

    def change(self, op: str, relation: str, row: Row) -> None:
        if op == "+":
            self.connection.execute(f"INSERT INTO {relation} VALUES ({', '.join('?' * len(row))})", row)
        else:
            where = " AND ".join(f"{name} = ?" for name in self._columns[relation])
            first = f"SELECT min(rowid) FROM {relation} WHERE {where}"
            self.connection.execute(f"DELETE FROM {relation} WHERE rowid = ({first})", row)

    def rows(self) -> list[Row]:
        return self.connection.execute(self._select).fetchall()


def answer(workload: Workload, stream: BulkStream) -> list[Row]:
    """The view after a stream that started with nothing."""
    return Referee(workload, survivors(stream)).rows()


def check(who: str, ours: Iterable[Row], theirs: Iterable[Row]) -> None:
    """The same rows, as often, in any order; doubles may differ in their last digits."""
    left, right = list(ours), list(theirs)
    if Counter(left) != Counter(right):
        _compare(who, sorted(left, key=_exact), sorted(right, key=_exact))
    if not left:
        raise WrongAnswerError(f"{who} and the referee have no rows: that proves nothing")


def _compare(who: str, left: list[Row], right: list[Row]) -> None:
    if len(left) != len(right):
        raise WrongAnswerError(f"{who} has {len(left)} rows, not {len(right)}")
    for mine, other in zip(left, right, strict=True):
        if not all(map(_agree, mine, other)):
            raise WrongAnswerError(f"{who} says {mine}, not {other}")


def _exact(row: Row) -> tuple[tuple[bool, object], ...]:
    """All but the doubles, which may differ in the last digits; NULL last."""
    return tuple((cell is None, "" if cell is None else cell) for cell in row if not isinstance(cell, float))


def _agree(mine: object, other: object) -> bool:
    if isinstance(mine, float) and isinstance(other, float):
        return math.isclose(mine, other, rel_tol=RELATIVE, abs_tol=0.0)
    return mine == other


def checksum(rows: Iterable[Row]) -> str:
    """Of the rows in order; of a double, the digits on which everyone agrees."""
    shown = [[f"{cell:.9e}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    return hashlib.sha256(repr(sorted(shown)).encode()).hexdigest()[:12]
