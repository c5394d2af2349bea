"""DuckDB as the referee: the same events, the query run afresh after each, and an exact notion of "the same rows"."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

import duckdb

from viewlet.schema import Relation

Row = tuple[object, ...]

RELATIVE = 1e-9  # between two ways of adding up the same doubles


class DuckOracle:
    """The relations as DuckDB tables, changed one row at a time."""

    def __init__(self, relations: Iterable[Relation]) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        # Without these two x / 0 is infinite or an error; in standard SQL as we read it, it is NULL.
        self.connection.execute("SET ieee_floating_point_ops = false")
        self.connection.execute("SET error_on_division_by_zero = false")
        self._insert: dict[str, str] = {}
        self._delete: dict[str, str] = {}
        self._parsed: dict[str, duckdb.Statement] = {}
        for relation in relations:
            self._create(relation)

    def _create(self, relation: Relation) -> None:
        columns = [f'"{c.name}" {c.type}{"" if c.nullable else " NOT NULL"}' for c in relation.columns]
        self.connection.execute(f'CREATE TABLE "{relation.name}" ({", ".join(columns)})')
        places = ", ".join("?" for _ in relation.columns)
        match = " AND ".join(f'"{c.name}" IS NOT DISTINCT FROM CAST(? AS {c.type})' for c in relation.columns)
        self._insert[relation.name] = f'INSERT INTO "{relation.name}" VALUES ({places})'
        self._delete[relation.name] = (
            f'DELETE FROM "{relation.name}" WHERE rowid = (SELECT min(rowid) FROM "{relation.name}" WHERE {match})'
        )

    def apply(self, op: str, relation: str, row: Row) -> None:
        """``-`` removes exactly one copy of ``row``; to remove a row that is not there is an error of the stream."""
        statement = {"+": self._insert, "-": self._delete}[op][relation]
        ((changed,),) = self._answer(statement, row)
        if changed != 1:
            raise LookupError(f"{op}{relation}{row}: {changed} rows changed")

    def load(self, relation: str, rows: Iterable[Row]) -> None:
        for row in rows:
            self.apply("+", relation, row)

    def rows(self, select: str) -> list[Row]:
        return sorted(self._answer(select), key=_order)

    def _answer(self, sql: str, values: Row = ()) -> list[Row]:
        """Parsed once, which is a third of the time; planned and run every time."""
        if sql not in self._parsed:
            (self._parsed[sql],) = duckdb.extract_statements(sql)
        return self.connection.execute(self._parsed[sql], values).fetchall()


# -- comparing ---------------------------------------------------------------------------------------------------------


def difference(ours: Iterable[Row], theirs: Iterable[Row]) -> str | None:
    """What differs between two multisets of rows, or None: doubles may differ by rounding, nothing else at all.

    Rows are first classed by all that is exact and by where NULLs stand, and only then paired by their doubles: in
    sorted lists a rounding error in one column could tear a pair apart.
    """
    left, right = _classes(ours), _classes(theirs)
    for key in left.keys() | right.keys():
        unmatched = right.get(key, [])
        for mine in left.get(key, []):
            partner = next((i for i, other in enumerate(unmatched) if _close(mine, other)), None)
            if partner is None:
                return f"ours has {mine}, theirs has instead {unmatched or 'nothing'}"
            del unmatched[partner]
        if unmatched:
            return f"ours lacks {unmatched}"
    return None


def same_rows(ours: Iterable[Row], theirs: Iterable[Row]) -> bool:
    return difference(ours, theirs) is None


def _classes(rows: Iterable[Row]) -> defaultdict[tuple[object, ...], list[Row]]:
    classes: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        classes[tuple(_exact_part(v) for v in row)].append(row)
    return classes


def _exact_part(value: object) -> object:
    """Equal for equal values of any exact type; one mark for all doubles; NULL is NULL, and True is not 1."""
    match value:
        case bool():
            return ("bool", value)
        case float():
            return "a double"
        case int() | Decimal() | Fraction():
            return Fraction(value)
        case list():
            return tuple(_exact_part(v) for v in value)
        case dict():
            return tuple((k, _exact_part(v)) for k, v in value.items())
        case _:
            return (type(value).__name__, value)


def _close(mine: Row, other: Row) -> bool:
    """Of two rows of one class only the doubles can differ."""
    return all(_close_values(x, y) for x, y in zip(mine, other, strict=True))


def _close_values(x: object, y: object) -> bool:
    if isinstance(x, list) and isinstance(y, list):
        return _close(tuple(x), tuple(y))
    if isinstance(x, dict) and isinstance(y, dict):
        return _close(tuple(x.values()), tuple(y.values()))
    return not (isinstance(x, float) and isinstance(y, float)) or math.isclose(x, y, rel_tol=RELATIVE, abs_tol=0.0)


def _order(row: Row) -> tuple[tuple[str, object], ...]:
    """Any rows, in one order: NULL first, then by type, then by value."""
    return tuple(_order_value(value) for value in row)


def _order_value(value: object) -> tuple[str, object]:
    match value:
        case None:
            return ("", 0)
        case int() | float() | Decimal() | Fraction():
            return ("number", value)
        case list():
            return ("list", [_order_value(v) for v in value])
        case dict():
            return ("dict", [(k, _order_value(v)) for k, v in value.items()])
        case _:
            return (type(value).__name__, value)


# -- a stream that proves nothing --------------------------------------------------------------------------------------


class Vacuous(AssertionError):
    """The answer was empty too often: agreeing with it would prove nothing."""


class Vacuity:
    """Watches the answers over a stream; NULLs and zeros only, as of an aggregate over nothing, count as empty."""

    def __init__(self, limit: Fraction = Fraction(3, 4)) -> None:
        self.limit = limit
        self.seen = self.empty = 0

    def watch(self, rows: Sequence[Row]) -> None:
        self.seen += 1
        self.empty += all(value is None or value == 0 for row in rows for value in row)

    def check(self) -> None:
        if not self.seen or Fraction(self.empty, self.seen) > self.limit:
            raise Vacuous(f"the answer was empty after {self.empty} of {self.seen} events")
