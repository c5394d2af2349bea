"""Random scripts of the supported SQL with random streams, drawn by hypothesis; simple choices come first.

Sums, products and comparisons stay exact, so that the referee's doubles cannot round to the other side of a
comparison: columns of DOUBLE (the kind FLOAT here) hold halves and quarters, and a quotient or an average (the kind
DOUBLE) is shown, tested for NULL or compared with a whole number, nothing else. Some columns of the kind BIGINT are
INTEGER, and meet doubles as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import count
from random import Random
from typing import Literal, TypeVar

from hypothesis import strategies as st

from tests.engines.conformance import Case
from viewlet.workloads.streams import Event, Row

SCHEMA = """\
CREATE STREAM r (k BIGINT NOT NULL, a INTEGER, p DECIMAL(6,2), s VARCHAR, y DOUBLE);
CREATE STREAM q (k BIGINT NOT NULL, b INTEGER NOT NULL, d DATE, f BOOLEAN);
CREATE STREAM t (k BIGINT, x DECIMAL(6,2) NOT NULL, d DATE NOT NULL, s VARCHAR NOT NULL, y DOUBLE NOT NULL);
CREATE TABLE u (k BIGINT NOT NULL, w INTEGER, f BOOLEAN NOT NULL);
"""
Kind = Literal["BIGINT", "DECIMAL", "VARCHAR", "DATE", "BOOLEAN", "FLOAT", "DOUBLE"]
COLUMNS: dict[str, dict[str, Kind]] = {
    "r": {"k": "BIGINT", "a": "BIGINT", "p": "DECIMAL", "s": "VARCHAR", "y": "FLOAT"},
    "q": {"k": "BIGINT", "b": "BIGINT", "d": "DATE", "f": "BOOLEAN"},
    "t": {"k": "BIGINT", "x": "DECIMAL", "d": "DATE", "s": "VARCHAR", "y": "FLOAT"},
    "u": {"k": "BIGINT", "w": "BIGINT", "f": "BOOLEAN"},
}
NOT_NULL = {("r", "k"), ("q", "k"), ("q", "b"), *(("t", c) for c in "xdsy"), ("u", "k"), ("u", "f")}
VALUES: dict[Kind, tuple[object, ...]] = {
    "BIGINT": (1, 2, 0, -1),
    "DECIMAL": (Decimal("1.00"), Decimal("0.00"), Decimal("-1.50"), Decimal("2.25")),
    "VARCHAR": ("a", "b", ""),
    "DATE": (date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 4)),
    "BOOLEAN": (True, False),
    "FLOAT": (1.0, 0.5, 0.0, -0.75),
}
LITERALS: dict[Kind, tuple[str, ...]] = {
    "BIGINT": ("1", "0", "2", "-1", "3", "1", "0", "CAST(NULL AS BIGINT)"),
    "DECIMAL": ("1.00", "0.00", "-1.50", "2.25", "0.50"),
    "VARCHAR": ("'a'", "'b'", "''"),
    "DATE": ("DATE '2020-01-02'", "DATE '2020-01-01'"),
    "BOOLEAN": ("TRUE", "FALSE"),
    "FLOAT": ("1e0", "5e-1", "0e0", "-75e-2"),
    "DOUBLE": ("CAST(1 AS DOUBLE)", "CAST(NULL AS DOUBLE)"),
}
EXACT: tuple[Kind, ...] = ("BIGINT", "DECIMAL", "VARCHAR", "DATE", "BOOLEAN", "FLOAT")
NUMBERS: tuple[Kind, ...] = ("BIGINT", "DECIMAL", "FLOAT")
COMPARISONS = ("=", "<", "<>", ">=", ">", "<=")
ROOM = 4
T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """What an expression may name; ``shared`` is whether a subquery may name it too, which holds for columns alone."""

    sql: str
    kind: Kind
    shared: bool = True


@dataclass(frozen=True)
class Scope:
    """The fields of a query and of those around it, and how deep further expressions and subqueries may nest."""

    own: tuple[Field, ...]
    outer: tuple[Field, ...] = ()
    nesting: int = 2
    subqueries: int = 2

    def of(self, *kinds: Kind) -> list[Field]:
        return [f for f in self.own if f.kind in kinds]

    @property
    def deeper(self) -> Scope:
        return replace(self, nesting=self.nesting - 1)

    @property
    def around_subquery(self) -> Scope:
        """What a subquery here starts from."""
        outer = tuple(f for f in self.own if f.shared) + self.outer
        return Scope((), outer, nesting=1, subqueries=self.subqueries - 1)


class Writer:
    """Writes queries by drawing choices; ``views`` are the names that FROM may take, ``used`` what it took.

    ``room`` is how many more tables and aggregates the view may take, with those of the views that it reads.
    """

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.views: dict[str, tuple[Field, ...]] = {}
        self.used: set[str] = set()
        self.sizes = dict.fromkeys(COLUMNS, 1)
        self.room = 0
        self._numbers = count(1)

    def one(self, options: Sequence[T]) -> T:
        return options[self.draw(st.integers(0, len(options) - 1))]

    def either(self, *options: Callable[[], T]) -> T:
        return self.one(options)()

    def one_in(self, n: int) -> bool:
        return self.draw(st.integers(0, n - 1)) == n - 1

    def name(self, stem: str) -> str:
        return f"{stem}{next(self._numbers)}"

    # -- values --------------------------------------------------------------------------------------------------------

    def value(self, kind: Kind, scope: Scope) -> str:
        fields = scope.of(kind)
        if fields and not self.one_in(3):
            return self.one(fields).sql
        if scope.nesting <= 0 or self.one_in(3):
            return self.one(LITERALS[kind])
        inner = scope.deeper
        choices = [lambda: self.choice(kind, inner), *self._compounds(kind, inner)]
        return self.either(*reversed(choices))

    def subject(self, kind: Kind, scope: Scope) -> str:
        """What a condition is about: mostly a field as it is."""
        fields = scope.of(kind)
        return self.one(fields).sql if fields and (kind == "DOUBLE" or not self.one_in(4)) else self.value(kind, scope)

    def number(self, scope: Scope) -> str:
        return self.value(self.one(("BIGINT", "BIGINT", "DECIMAL")), scope)

    def choice(self, kind: Kind, scope: Scope) -> str:
        """CASE, COALESCE and NULLIF work on every kind."""
        first, second = self.value(kind, scope), self.value(kind, scope)
        return self.either(
            lambda: f"COALESCE({first}, {second})",
            lambda: f"CASE WHEN {self.condition(scope)} THEN {first} ELSE {second} END",
            lambda: f"CASE WHEN {self.condition(scope)} THEN {first} END",
            lambda: f"NULLIF({first}, {second})",
        )

    def _compounds(self, kind: Kind, scope: Scope) -> list[Callable[[], str]]:
        def arithmetic() -> str:
            return f"({self.value(kind, scope)} {self.one('+-*')} {self.value('BIGINT', scope)})"

        def days() -> str:
            return f"({self.value('DATE', scope)} - {self.value('DATE', scope)})"

        match kind:
            case "BIGINT" | "DECIMAL" | "FLOAT":
                compounds = [arithmetic, arithmetic, lambda: f"ABS({self.value(kind, scope)})"]
                compounds += [lambda: f"(- {self.value(kind, scope)})"]
                if kind == "BIGINT":
                    compounds.append(days)
                return compounds + [lambda: self.scalar_subquery(kind, scope)] * (2 if self.may_nest(scope) else 0)
            case "DATE":
                return [lambda: f"({self.value('DATE', scope)} + {self.one('123')})"]
            case "BOOLEAN":
                return [lambda: f"({self.condition(scope)})"]
            case "DOUBLE":
                return [lambda: f"({self.number(scope)} / {self.number(scope)})"]
            case _:
                return []

    # -- conditions ----------------------------------------------------------------------------------------------------

    def condition(self, scope: Scope) -> str:
        inner = scope.deeper
        choices = [lambda: self.comparison(scope), lambda: self.comparison(scope), lambda: self.membership(inner)]
        if scope.nesting > 0:
            choices += [
                lambda: f"({self.condition(inner)} AND {self.condition(inner)})",
                lambda: f"({self.condition(inner)} OR {self.condition(inner)})",
                lambda: f"NOT ({self.condition(inner)})",
            ]
        if self.may_nest(scope):
            choices += [lambda: self.subquery_condition(scope)] * 3
        return self.either(*choices)

    def comparison(self, scope: Scope) -> str:
        """Two values of one kind, or of two kinds of numbers."""
        kind = self.one([f.kind for f in scope.own] or EXACT)
        if kind == "DOUBLE":
            return f"{self.subject(kind, scope)} {self.one(COMPARISONS)} {self.one(('1', '0', '2'))}"
        other: Kind = self.one(NUMBERS) if kind in NUMBERS else kind
        left, right = self.subject(kind, scope), self.value(other, scope)
        return f"{left} {self.one(COMPARISONS)} {right if right != left else self.one(LITERALS[kind])}"

    def membership(self, scope: Scope) -> str:
        kind = self.one([f.kind for f in scope.own] or EXACT)
        value = self.subject(kind, scope)
        options = LITERALS[kind]
        if kind == "DOUBLE" or self.one_in(2):
            return f"{value} IS {self.one(('', 'NOT '))}NULL"
        negated = self.one(("", "NOT "))
        return self.either(
            lambda: f"{value} {negated}IN ({self.one(options)}, {self.value(kind, scope)})",
            lambda: f"{value} {negated}BETWEEN {self.one(options)} AND {self.value(kind, scope)}",
        )

    def may_nest(self, scope: Scope) -> bool:
        return scope.subqueries > 0 and self.room > 0

    # -- subqueries ----------------------------------------------------------------------------------------------------

    def subquery_condition(self, scope: Scope) -> str:
        around, negated = scope.around_subquery, self.one(("", "NOT "))
        if self.one_in(2):
            source, where, _ = self.correlated(around)
            return f"{negated}EXISTS (SELECT 1 FROM {source} WHERE {where})"
        kind = self.one([f.kind for f in scope.own if f.kind != "DOUBLE"] or EXACT)
        value = self.subject(kind, scope.deeper)
        if self.one_in(4):
            query, _ = self.select(around, (kind,))
            return f"{value} {negated}IN ({query})"
        source, where, inside = self.correlated(around)
        member = self.subject(kind, inside.deeper)
        return f"{value} {negated}IN (SELECT {member} FROM {source} WHERE {where})"

    def scalar_subquery(self, kind: Kind, scope: Scope) -> str:
        source, where, inside = self.correlated(scope.around_subquery)
        aggregates = [f"SUM({self.value(kind, inside.deeper)})"]
        if kind == "BIGINT":
            aggregates += ["COUNT(*)", f"COUNT(DISTINCT {self.value('BIGINT', inside.deeper)})"]
        return f"(SELECT {self.one(aggregates)} FROM {source} WHERE {where})"

    def correlated(self, around: Scope) -> tuple[str, str, Scope]:
        """FROM and WHERE of a subquery, and what its SELECT sees; mostly tied to the query around it."""
        source, fields, parts = self.from_clause(around, most=2)
        inside = replace(around, own=fields)
        for _ in range(self.one((1, 1, 0, 2))):
            pairs = [(f, o) for f in fields for o in around.outer if f.kind == o.kind != "DOUBLE"]
            if pairs:
                mine, other = self.one(pairs)
                parts.append(f"{mine.sql} {self.one(('=', '=', *COMPARISONS))} {other.sql}")
        if not parts or self.one_in(3):
            parts.append(self.condition(inside))
        return source, " AND ".join(parts), inside

    # -- queries -------------------------------------------------------------------------------------------------------

    def from_clause(self, around: Scope, most: int = 3) -> tuple[str, tuple[Field, ...], list[str]]:
        """FROM with its fields, and what it leaves to WHERE.

        Commas throughout or JOIN … ON throughout: with both, what ON may name is a matter of precedence.
        """
        text, fields = self.from_item(around)
        commas, where = self.one((False, True)), list[str]()
        for _ in range(min(self.one((0, 1, 1, 2)[: most + 1]), self.room)):
            more, added = self.from_item(around)
            condition = self.join_condition(fields, added)
            text += f", {more}" if commas else f" JOIN {more} ON {condition}"
            if commas and not self.one_in(4):
                where.append(condition)
            fields += added
        return text, fields, where

    def join_condition(self, left: tuple[Field, ...], right: tuple[Field, ...]) -> str:
        pairs = [(a, b) for a in left for b in right if a.kind == b.kind != "DOUBLE"]
        if not pairs or self.one_in(6):
            return self.condition(Scope(left + right, subqueries=0, nesting=0))
        a, b = self.one(pairs)
        return f"{a.sql} {self.one(('=', '=', '=', *COMPARISONS))} {b.sql}"

    def from_item(self, around: Scope) -> tuple[str, tuple[Field, ...]]:
        alias = self.name("x")
        if self.may_nest(around) and self.one_in(8):
            query, columns = self.select(replace(around, subqueries=around.subqueries - 1, nesting=1))
            return f"({query}) {alias}", tuple(replace(c, sql=f"{alias}.{c.sql}", shared=True) for c in columns)
        fitting = [t for t in self.sizes if self.sizes[t] <= max(self.room, 1)]
        table = self.one(fitting + [t for t in fitting if t in self.views] * 3)
        self.used.add(table)
        self.room -= self.sizes[table]
        columns = self.views.get(table) or tuple(Field(c, kind) for c, kind in COLUMNS[table].items())
        return f"{table} {alias}", tuple(replace(c, sql=f"{alias}.{c.sql}", shared=True) for c in columns)

    def select(self, around: Scope, kinds: tuple[Kind, ...] | None = None) -> tuple[str, tuple[Field, ...]]:
        """SELECT … FROM … [WHERE …] [GROUP BY …] [HAVING …], and its columns; of given kinds for IN and UNION ALL."""
        source, fields, conditions = self.from_clause(around)
        scope = replace(around, own=fields)
        if self.one_in(3):
            conditions.append(self.condition(scope))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        aggregating = self.one_in(2) if kinds or around.outer else not self.one_in(3)
        tail = ""
        if aggregating:
            scope, tail = self.grouped(scope)
        distinct = "DISTINCT " if self.one_in(6) else ""
        columns = self.columns(scope, kinds)
        shown = ", ".join(f"{c.sql} AS c{i}" for i, c in enumerate(columns, 1))
        named = tuple(Field(f"c{i}", c.kind) for i, c in enumerate(columns, 1))
        return f"SELECT {distinct}{shown} FROM {source}{where}{tail}", named

    def columns(self, scope: Scope, kinds: tuple[Kind, ...] | None) -> list[Field]:
        if kinds is not None:
            return [Field(self.value(kind, scope), kind) for kind in kinds]
        shown = [f for f in scope.own if not self.one_in(3)][:4]
        for _ in range(self.one((0, 1, 1))):
            kind = self.one(("BIGINT", "DOUBLE", "DECIMAL", *EXACT))
            shown.append(Field(self.value(kind, scope), kind))
        return shown or [scope.own[0]]

    def grouped(self, scope: Scope) -> tuple[Scope, str]:
        """GROUP BY none to two keys and HAVING; beyond it the keys and a few aggregates are all there is to name."""
        keys: dict[str, Field] = {}
        for _ in range(self.one((1, 0, 2))):
            key = self.one([f for f in scope.own if f.kind != "DOUBLE"] or [Field("1 + 1", "BIGINT", False)])
            if self.one_in(6):
                key = Field(self.value(key.kind, replace(scope, subqueries=0, outer=())), key.kind, False)
            if key.shared or "x" in key.sql:  # a constant key would be a column's position
                keys[key.sql] = key
        aggregates = [self.aggregate(scope) for _ in range(self.one((1, 2, 3)))]
        self.room -= len(aggregates)
        grouped = replace(scope, own=(*keys.values(), *aggregates))
        tail = f" GROUP BY {', '.join(keys)}" if keys else ""
        if self.one_in(3):
            tail += f" HAVING {self.condition(grouped)}"
        return grouped, tail

    def aggregate(self, scope: Scope) -> Field:
        argument = replace(scope, nesting=min(scope.nesting, 1), subqueries=min(scope.subqueries, int(self.one_in(4))))
        kind = self.one(NUMBERS)
        distinct = "DISTINCT " if self.one_in(8) else ""
        return self.either(
            lambda: Field(f"SUM({distinct}{self.subject(kind, argument)})", kind, False),
            lambda: Field("COUNT(*)", "BIGINT", False),
            lambda: Field(f"COUNT({distinct}{self.subject(self.one(EXACT), argument)})", "BIGINT", False),
            lambda: Field(f"AVG({self.subject(kind, argument)})", "DOUBLE", False),
        )

    def body(self) -> tuple[str, tuple[Field, ...]]:
        """What stands after CREATE MATERIALIZED VIEW v AS."""
        self.room = ROOM
        common = self.common_table() if self.one_in(8) else ""
        query, columns = self.select(Scope(()))
        if self.room and self.one_in(6):
            other, _ = self.select(Scope((), subqueries=1), tuple(c.kind for c in columns))
            query += f" UNION ALL {other}"
        self.forget("common")
        return common + query, columns

    def common_table(self) -> str:
        query, columns = self.select(Scope((), subqueries=1))
        self.remember("common", columns)
        return f"WITH common AS ({query}) "

    def remember(self, name: str, columns: tuple[Field, ...]) -> None:
        """Let FROM take this name from now on; it costs what its query took."""
        self.views[name], self.sizes[name] = columns, ROOM - self.room

    def forget(self, name: str) -> None:
        self.views.pop(name, None)
        self.sizes.pop(name, None)


# -- streams -----------------------------------------------------------------------------------------------------------


def cells(table: str, column: str) -> tuple[object, ...]:
    return VALUES[COLUMNS[table][column]] + (() if (table, column) in NOT_NULL else (None,))


def rows(table: str) -> st.SearchStrategy[Row]:
    return st.tuples(*(st.sampled_from(cells(table, column)) for column in COLUMNS[table]))


@st.composite
def streams(draw: st.DrawFn, tables: Sequence[str]) -> list[Event]:
    """Inserts and deletes of few different rows, so that they repeat, meet in joins and leave tables empty."""
    pool = [(table, row) for table in tables for row in draw(st.lists(rows(table), min_size=2, max_size=5))]
    live: list[tuple[str, Row]] = []
    events: list[Event] = []
    for number in draw(st.lists(st.integers(0, 3 * len(pool) - 1), min_size=30, max_size=45)):
        table, row = pool[number % len(pool)]
        leaves = number >= 2 * len(pool) or sum(name == table for name, _ in live) >= 7
        if leaves and (table, row) not in live and live:
            table, row = live[number % len(live)]
        if leaves and live:
            live.remove((table, row))
            events.append(("-", table, row))
        else:
            live.append((table, row))
            events.append(("+", table, row))
    return events


def seeded_rows(rng: Random, table: str, number: int) -> list[Row]:
    """The same without hypothesis, for a script that is given. Doubles are drawn apart from what joins and groups."""
    apart = Random(number)
    options = [(apart if kind == "FLOAT" else rng, cells(table, column)) for column, kind in COLUMNS[table].items()]
    return [tuple(which.choice(values) for which, values in options) for _ in range(number)]


def seeded_stream(rng: Random, events: int) -> list[Event]:
    """Events on all streams; each of them grows to a few rows and shrinks again."""
    pool = [(table, row) for table in ("r", "q", "t") for row in seeded_rows(rng, table, 6)]
    live: list[tuple[str, Row]] = []
    stream: list[Event] = []
    for _ in range(events):
        if rng.random() < len(live) / 24:
            table, row = live.pop(rng.randrange(len(live)))
            stream.append(("-", table, row))
        else:
            live.append(rng.choice(pool))
            stream.append(("+", *live[-1]))
    return stream


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One to three views, later ones over earlier ones too, and a stream of the tables that they read."""
    writer = Writer(draw)
    views, prepare = "", []
    for number in range(1, writer.one((1, 1, 2, 3)) + 1):
        body, columns = writer.body()
        views += f"CREATE MATERIALIZED VIEW v{number} AS {body};\n"
        prepare.append(f"CREATE VIEW v{number} AS {body}")
        writer.remember(f"v{number}", columns)
    tables = [name for name in ("r", "q", "t") if name in writer.used] or ["r"]
    static = (
        {"u": draw(st.lists(rows("u"), min_size=draw(st.sampled_from((2, 2, 2, 0))), max_size=4))}
        if "u" in writer.used
        else {}
    )
    selects = {view: f"SELECT * FROM {view}" for view in writer.views}
    return Case(SCHEMA, views, selects, draw(streams(tables)), static, "sql", tuple(prepare))
