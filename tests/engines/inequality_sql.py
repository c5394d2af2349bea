"""Random queries with inequalities, and random streams for them, drawn by hypothesis; simple choices come first.

Five families, each of what an ordered access path must get right: joins by inequalities, thresholds on running sums,
products of tables that are restricted each on its own, comparisons with totals, and memberships. Keys are few, so that
they tie; weights are negative, too; columns are nullable or not at random.

Every double here is a small multiple of a half or a power of two, so that the referee's arithmetic is exact as ours
is. What is added up or multiplied is never extreme: the referee's BIGINT would overflow where ours need not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import count, pairwise
from typing import Literal, TypeVar

import sqlglot
from hypothesis import strategies as st
from sqlglot import exp

from tests.engines.conformance import Case
from viewlet.compilation import Dialect
from viewlet.workloads.streams import Event, Row

TABLES = ("r", "q", "t")
TYPES = {
    "g": "BIGINT",
    "n": "BIGINT",
    "v": "DOUBLE",
    "w": "DECIMAL(10,2)",
    "i": "BIGINT",
    "f": "DOUBLE",
    "m": "DECIMAL(10,2)",
    "d": "DATE",
    "s": "VARCHAR",
}
GROUP, WEIGHTS, NUMBERS = "g", ("n", "v", "w"), ("i", "f", "m")
VALUES: Mapping[str, tuple[object, ...]] = {
    "g": (1, 2),
    "n": (1, 3, -2, 0),
    "v": (1.0, 2.5, -1.5, 0.0),
    "w": (Decimal("1.00"), Decimal("2.25"), Decimal("-1.50")),
    "i": (1, 2, 3, 0, -2, 5),
    "f": (1.0, 2.0, 2.5, 0.0, -1.5, 4.0),
    "m": (Decimal("1.00"), Decimal("2.00"), Decimal("2.50"), Decimal("0.00"), Decimal("-1.25")),
    "d": (date(2020, 2, 28), date(2020, 2, 29), date(2020, 3, 1), date(2020, 3, 5)),
    "s": ("b", "a", "ab", "c"),
}
EXTREMES: Mapping[str, tuple[object, ...]] = {
    "i": (2**61, -(2**61)),
    "f": (2.0**50, -(2.0**50) + 0.5, -0.0),
    "m": (Decimal("99999999.75"), Decimal("-99999999.75")),
    "d": (date(1, 1, 9), date(9999, 12, 20)),
    "s": ("", "\U0010ffff", "a\U0001f600", "long " * 9),
}
LITERALS: Mapping[str, tuple[str, ...]] = {
    "i": ("2", "1", "0", "-1"),
    "f": ("2", "0.5", "1.5"),
    "m": ("2", "1.00", "-1.5"),
    "d": ("DATE '2020-02-29'", "DATE '2020-03-01'"),
    "s": ("'b'", "'ab'", "''"),
}
ORDERS = (">", "<", ">=", "<=")
SHIFTS = ("1", "0", "2", "3", "-1", "0.5")
FACTORS = ("2", "0.5", "3", "-1", "-2")
Family = Literal["joins", "thresholds", "products", "totals", "memberships"]
T = TypeVar("T")


@dataclass(frozen=True)
class Item:
    """A table in FROM, under its alias."""

    table: str
    alias: str

    @property
    def source(self) -> str:
        return f"{self.table} {self.alias}"


class Writer:
    """Writes queries by drawing choices; ``used`` are the columns that each table needs."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.used: dict[str, set[str]] = {}
        self.compared: list[str] = []
        self._numbers = count(1)

    def one(self, options: Sequence[T]) -> T:
        return options[self.draw(st.integers(0, len(options) - 1))]

    def either(self, *options: Callable[[], T]) -> T:
        return self.one(options)()

    def one_in(self, n: int) -> bool:
        return self.draw(st.integers(0, n - 1)) == n - 1

    def item(self, like: Item | None = None) -> Item:
        """A table for FROM: in a subquery mostly the one that the query around it reads."""
        table = like.table if like and not self.one_in(3) else self.one(TABLES)
        self.used.setdefault(table, set())
        return Item(table, f"{table}{next(self._numbers)}")

    def column(self, item: Item, name: str) -> str:
        self.used[item.table].add(name)
        return f"{item.alias}.{name}"

    # -- comparing two keys --------------------------------------------------------------------------------------------

    def ranges(self, mine: Item, other: Item) -> str:
        """Which keys of ``mine`` go with one of ``other``: a range, two that must or may hold, or all but a range."""
        left, right = self.keys()
        key, bound = self.column(mine, left), self.column(other, right)
        self.compared += [key, bound]

        def single() -> str:
            return self.range(left, key, bound)

        return self.either(
            single,
            single,
            single,
            lambda: f"({single()} OR {single()})",
            lambda: f"({single()} OR {single()})",
            lambda: f"{single()} AND {single()}",
            lambda: f"NOT ({single()})",
            lambda: f"({single()} OR {single()} AND {single()})",
        )

    def keys(self) -> tuple[str, str]:
        """Columns to compare: mostly the same of both tables, but numbers of one type also with those of another."""
        column = self.one(("i", "f", "m", "d", "s", "i"))
        if column in NUMBERS and self.one_in(4):
            return column, self.one(NUMBERS)
        return column, column

    def range(self, column: str, key: str, bound: str) -> str:
        """A condition on the key that holds from some key on, up to some key, between two, or off one."""
        order = self.one(ORDERS)
        plain = [lambda: f"{key} {order} {bound}", lambda: f"{bound} {order} {key}", lambda: f"{key} <> {bound}"]
        if column == "s":
            literal = self.one(LITERALS["s"])
            return self.either(
                *plain,
                lambda: f"{key} BETWEEN {literal} AND {bound}",
                lambda: f"{key} NOT BETWEEN {bound} AND {literal}",
            )
        shift = self.one(SHIFTS) if column in NUMBERS else self.one(SHIFTS[:4])
        moved = [
            lambda: f"{key} - {bound} {order} {shift}",
            lambda: f"{key} {order} {bound} + {shift}",
            lambda: f"{bound} - {key} {order} {shift}",
            lambda: f"{key} BETWEEN {bound} - 2 AND {bound} + {shift}",
            lambda: f"{bound} NOT BETWEEN {key} - 1 AND {key} + {shift}",
        ]
        if column == "d":
            return self.either(*plain, *moved)
        factor = self.one(FACTORS)
        scaled = [
            lambda: f"{factor} * {key} {order} {bound} + {shift}",
            lambda: f"{bound} {order} {factor} * {key} - {shift}",
            lambda: f"{key} + {bound} {order} {shift}",
            lambda: f"- {key} {order} {bound}",
            lambda: f"{key} / 2 {order} {bound}",
        ]
        return self.either(*plain, *moved, *scaled)

    def filter(self, item: Item) -> str:
        name = self.one(("n", "i", "m", "d", "s", "f"))
        column = self.column(item, name)
        if self.one_in(6):
            return f"{column} IS {self.one(('NOT ', ''))}NULL"
        return f"{column} {self.one(ORDERS)} {self.one(LITERALS.get(name, ('0', '1')))}"

    def equality(self, mine: Item, other: Item) -> str:
        return f"{self.column(mine, GROUP)} = {self.column(other, GROUP)}"

    # -- nested aggregates ---------------------------------------------------------------------------------------------

    def aggregate(self, item: Item) -> str:
        weight = self.column(item, self.one(WEIGHTS))
        return self.either(
            lambda: f"SUM({weight})",
            lambda: "COUNT(*)",
            lambda: f"SUM({weight} * {self.column(item, 'n')})",
            lambda: f"COUNT({weight})",
            lambda: f"SUM(1 - {weight})",
        )

    def nested(self, item: Item, conditions: Sequence[str]) -> str:
        parts = [*conditions, *([self.filter(item)] if self.one_in(4) else [])]
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        query = f"(SELECT {self.aggregate(item)} FROM {item.source}{where})"
        return f"COALESCE({query}, 0)" if self.one_in(3) else query

    def running(self, outer: Item) -> str:
        """What rows with a greater or a smaller key add up to."""
        inner = self.item(outer)
        conditions = [self.ranges(inner, outer)]
        if self.one_in(4):
            conditions.append(self.equality(inner, outer))
        return self.nested(inner, conditions)

    def total(self, outer: Item) -> str:
        inner = self.item(outer)
        query = self.nested(inner, [self.equality(inner, outer)] if self.one_in(5) else [])
        return f"{self.one(('0.25', '0.5', '2', '0.25', '-0.5'))} * {query}"

    def side(self, outer: Item) -> str:
        """What a running sum is compared with: mostly something that does not change with the row."""
        return self.either(
            lambda: self.one(("2", "1", "0", "-1", "4", "0.5", "9")),
            lambda: self.total(outer),
            lambda: self.total(outer),
            lambda: f"{self.column(outer, self.one((*WEIGHTS, *NUMBERS)))} {self.one('+-')} {self.one(SHIFTS)}",
        )

    def threshold(self, outer: Item) -> str:
        running, side, order = self.running(outer), self.side(outer), self.one(ORDERS)
        return self.either(
            lambda: f"{running} {order} {side}",
            lambda: f"{side} {order} {running}",
            lambda: f"{side} {order} {running}",
            lambda: f"{self.one(FACTORS)} * {running} {order} {side}",
            lambda: f"{running} - {side} {order} {self.one(SHIFTS)}",
            lambda: f"{running} BETWEEN {self.one(('0', '-9'))} AND {side}",
            lambda: f"NOT ({running} {order} {side})",
            lambda: f"{running} {self.one(('<>', '='))} {side}",
            lambda: f"({running} {order} {side} OR {self.filter(outer)})",
        )

    def against_total(self, outer: Item) -> str:
        value = self.column(outer, self.one((*WEIGHTS, *NUMBERS)))
        order = self.one((*ORDERS, "<>"))
        return self.either(
            lambda: f"{value} {order} {self.total(outer)}",
            lambda: f"{self.total(outer)} {order} {value} {self.one('+-')} {self.one(SHIFTS)}",
            lambda: f"{value} - {self.total(outer)} {order} {self.one(SHIFTS)}",
            lambda: f"{value} BETWEEN {self.one(('-1', '0'))} AND {self.total(outer)}",
        )

    def membership(self, outer: Item) -> str:
        """EXISTS or IN over rows that are found by an inequality, or kept by a threshold of their own."""
        inner, negated = self.item(outer), self.one(("", "NOT "))
        parts = [self.either(*[lambda: self.ranges(inner, outer)] * 3, lambda: self.threshold(inner))]
        if self.one_in(3):
            parts.append(self.equality(inner, outer))
        if self.one_in(4):
            parts.append(self.filter(inner))
        where = f"FROM {inner.source} WHERE {' AND '.join(parts)}"
        name = self.one(("i", "m", "d", "s"))
        return self.either(
            lambda: f"{negated}EXISTS (SELECT 1 {where})",
            lambda: f"{self.column(outer, name)} {negated}IN (SELECT {self.column(inner, name)} {where})",
        )

    # -- families ------------------------------------------------------------------------------------------------------

    def joins(self, items: Sequence[Item]) -> list[str]:
        conditions = [self.ranges(item, other) for other, item in pairwise(items)]
        return conditions + [self.equality(items[-1], other) for other in items[:-1] if self.one_in(3)]

    def thresholds(self, items: Sequence[Item]) -> list[str]:
        more = self.one(((), (), (self.threshold,), (self.against_total,)))
        return [condition(item) for item in items for condition in (self.threshold, *more)]

    def products(self, items: Sequence[Item]) -> list[str]:
        first, *others = items
        restrictions = [(self.threshold,), (self.against_total,), (self.threshold,), ()]
        conditions = [condition(item) for item in others for condition in self.one(restrictions)]
        return [self.threshold(first), *conditions, *(self.equality(first, item) for item in others if self.one_in(4))]

    def totals(self, items: Sequence[Item]) -> list[str]:
        conditions = [self.against_total(item) for item in items]
        if self.one_in(3):
            absent = self.item()
            conditions.append(f"0 = (SELECT COUNT(*) FROM {absent.source} WHERE {self.equality(absent, items[0])})")
        return conditions + [self.equality(items[0], item) for item in items[1:] if self.one_in(3)]

    def memberships(self, items: Sequence[Item]) -> list[str]:
        conditions = [self.membership(item) for item in items]
        return conditions + [self.one((self.equality, self.ranges))(item, items[0]) for item in items[1:]]

    # -- queries -------------------------------------------------------------------------------------------------------

    def select(self, family: Family) -> str:
        self.compared = []
        write, sizes = {
            "joins": (self.joins, (2, 2, 2, 3)),
            "thresholds": (self.thresholds, (1,)),
            "products": (self.products, (2,)),
            "totals": (self.totals, (1, 1, 2)),
            "memberships": (self.memberships, (1, 1, 1, 2)),
        }[family]
        items = [self.item() for _ in range(self.one(sizes))]
        conditions = write(items)
        if self.one_in(8):
            conditions.append(self.filter(self.one(items)))
        source = ", ".join(item.source for item in items)
        where = " AND ".join(self.draw(st.permutations(conditions)))
        if len(items) == 1 and self.one_in(5):
            return f"SELECT {self.column(items[0], GROUP)}, {self.column(items[0], 'n')} FROM {source} WHERE {where}"
        keys = self.group_keys(items)
        shown = ", ".join([*keys, *(f"{self.shown(items)} AS c{i}" for i in range(1, self.one((1, 2, 3)) + 1))])
        return f"SELECT {shown} FROM {source} WHERE {where}{' GROUP BY ' * bool(keys)}{', '.join(keys)}"

    def group_keys(self, items: Sequence[Item]) -> list[str]:
        """Nothing, what equalities are about, what is compared, or another column."""
        aliases = {item.alias for item in items}
        compared = [column for column in self.compared if column.split(".")[0] in aliases]
        return self.either(
            list,
            lambda: [self.column(self.one(items), GROUP)],
            lambda: [self.one(compared or [self.column(items[0], "s")])],
            lambda: [self.column(self.one(items), self.one(("n", "d", "s")))],
        )

    def shown(self, items: Sequence[Item]) -> str:
        """An aggregate of one item, or of a product or difference that takes two."""
        if len(items) == 1 or self.one_in(3):
            return self.aggregate(self.one(items))
        left, right = (self.column(item, self.one(WEIGHTS)) for item in items[:2])
        return f"SUM({left} {self.one('*-+')} {right})"


# -- tables and streams ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Columns with whether they are nullable."""

    name: str
    columns: Mapping[str, bool]
    extreme: bool

    @property
    def sql(self) -> str:
        columns = (f"{c} {TYPES[c]}{'' if nullable else ' NOT NULL'}" for c, nullable in self.columns.items())
        return f"CREATE STREAM {self.name} ({', '.join(columns)});\n"

    @property
    def rows(self) -> st.SearchStrategy[list[Row]]:
        """Some different rows."""
        row = st.tuples(*(st.sampled_from(self.values(column)) for column in self.columns))
        return st.lists(row, min_size=2, max_size=7, unique=True)

    def values(self, column: str) -> tuple[object, ...]:
        extremes = EXTREMES.get(column, ()) if self.extreme else ()
        return VALUES[column] + (None,) * self.columns[column] + extremes


@st.composite
def tables(draw: st.DrawFn, used: Mapping[str, set[str]]) -> list[Table]:
    """The tables that are read, with the columns that are."""
    extreme = draw(st.sampled_from((False, False, True)))
    return [
        Table(
            name,
            {c: draw(st.sampled_from((False, False, True))) for c in TYPES if c in (used[name] or {GROUP})},
            extreme,
        )
        for name in TABLES
        if name in used
    ]


@st.composite
def streams(draw: st.DrawFn, read: Sequence[Table]) -> list[Event]:
    """Inserts and deletes of few different rows, so that they repeat and tables run empty."""
    pool = [(table.name, row) for table in read for row in draw(table.rows)]
    live: list[tuple[str, Row]] = []
    events: list[Event] = []
    for number in draw(st.lists(st.integers(0, 3 * len(pool) - 1), min_size=30, max_size=60)):
        copy = pool[number % len(pool)]
        if live and (number >= 2 * len(pool) or len(live) >= 8 * len(read)):
            gone = copy if copy in live else live[number % len(live)]
            live.remove(gone)
            events.append(("-", *gone))
        else:
            live.append(copy)
            events.append(("+", *copy))
    return events


def zero_for_nothing(select: str) -> str:
    """Dialect 'paper' in standard SQL: COALESCE(…, 0) around each SUM, for a group may hold nothing but NULLs."""
    tree = sqlglot.parse_one(select, read="duckdb")
    for aggregate in list(tree.find_all(exp.Sum)):
        aggregate.replace(exp.Coalesce(this=aggregate.copy(), expressions=[exp.Literal.number(0)]))
    return tree.sql(dialect="duckdb")


@st.composite
def cases(draw: st.DrawFn, family: Family) -> Case:
    """One or two views of a family, and a stream of the tables that they read."""
    writer = Writer(draw)
    selects = {f"v{number}": writer.select(family) for number in range(1, writer.one((1, 1, 2)) + 1)}
    dialect: Dialect = writer.one(("sql", "sql", "paper"))
    read = draw(tables(writer.used))
    views = "".join(f"CREATE MATERIALIZED VIEW {view} AS {select};\n" for view, select in selects.items())
    referee = {v: zero_for_nothing(select) if dialect == "paper" else select for v, select in selects.items()}
    return Case("".join(table.sql for table in read), views, referee, draw(streams(read)), dialect=dialect)
