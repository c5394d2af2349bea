"""Random queries in layers: each layer reads the one below, and groups, ranks, shifts, joins or chooses its rows.

``random_sql`` and ``wide_sql`` draw expressions and joins. This family nests what goes by the order of rows, by values
of groups and by the clock: windows below the top, quantiles, ASOF and interval joins, UNNEST, PIVOT, now(). Numbers of
rows go by all columns of rows that are all different, so that no answer depends on how ties fall.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Literal, TypeVar

from viewlet.workloads.streams import Event, Row

NOON = dt.datetime(2026, 1, 1, 12)
SCHEMA = """
CREATE STREAM k (id INTEGER PRIMARY KEY, g INTEGER, t INTEGER NOT NULL, v INTEGER, s VARCHAR, ts TIMESTAMP NOT NULL);
CREATE STREAM r (g INTEGER, t INTEGER NOT NULL, v INTEGER, s VARCHAR, ts TIMESTAMP, xs INTEGER[]);
CREATE STREAM q (g INTEGER NOT NULL, t INTEGER NOT NULL, p DECIMAL(6,2), PRIMARY KEY (g, t));
"""
KEYS = {"k": (0,), "q": (0, 1)}
Kind = Literal["INT", "DEC", "TEXT", "TIME", "LIST", "REAL"]
T = TypeVar("T")
LITERALS: dict[Kind, tuple[str, ...]] = {
    "INT": ("0", "1", "2", "-1"),
    "DEC": ("1.00", "0.25", "-1.50"),
    "TEXT": ("'a'", "'b'", "''"),
    "TIME": (f"TIMESTAMP '{NOON}'", "now()", "now() - INTERVAL '5 minutes'", "now() - INTERVAL '1 hour'"),
}
FRAMES = (
    "", "", "RANGE UNBOUNDED PRECEDING", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)  # fmt: skip
DISTANCES = ("1 PRECEDING AND CURRENT ROW", "1 PRECEDING AND 1 FOLLOWING", "CURRENT ROW AND 2 FOLLOWING")
PLACES = (
    *DISTANCES,
    "UNBOUNDED PRECEDING AND 1 PRECEDING",
    "1 FOLLOWING AND 2 FOLLOWING",
    "2 PRECEDING AND 1 PRECEDING",
)
EXCLUDES = ("", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind
    known: bool = False  # never NULL


@dataclass(frozen=True)
class Layer:
    """What may stand in FROM. ``key``: no two rows have the same values there; None where rows may be equal."""

    sql: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None = None

    def of(self, *kinds: Kind) -> list[Column]:
        return [c for c in self.columns if c.kind in kinds]

    @property
    def exact(self) -> list[Column]:
        return [c for c in self.columns if c.kind not in ("REAL", "LIST")]


G, V, S = Column("g", "INT"), Column("v", "INT"), Column("s", "TEXT")
T_ = Column("t", "INT", True)
TABLES = (
    Layer("k", (Column("id", "INT", True), G, T_, V, S, Column("ts", "TIME", True)), ("id",)),
    Layer("r", (G, T_, V, S, Column("ts", "TIME"), Column("xs", "LIST"))),
    Layer("q", (Column("g", "INT", True), T_, Column("p", "DEC")), ("g", "t")),
)


class Writer:
    """Writes one query over the tables. ``room`` is how many more layers that cost something it may take."""

    def __init__(self, rng: Random, room: int = 3) -> None:
        self.rng, self.room = rng, room
        self._numbers = count(1)

    def one(self, options: Sequence[T]) -> T:
        return self.rng.choice(options)

    def one_in(self, n: int) -> bool:
        return self.rng.randrange(n) == 0

    def name(self, stem: str) -> str:
        return f"{stem}{next(self._numbers)}"

    def some(self, columns: Sequence[Column], most: int, least: int = 1) -> list[Column]:
        return self.rng.sample(columns, min(len(columns), self.rng.randint(least, most)))

    # -- queries -------------------------------------------------------------------------------------------------------

    def view(self) -> str:
        """What stands after CREATE MATERIALIZED VIEW v AS; it ends in an order where all columns have one."""
        layer = self.layers(self.one((1, 2, 2, 3)))
        if self.one_in(4) and len(layer.exact) == len(layer.columns):
            return f"SELECT * FROM {layer.sql} x ORDER BY ALL{self.one(('', ' LIMIT 3', ' LIMIT 2 OFFSET 1'))}"
        return layer.sql.removeprefix("(").removesuffix(")") if layer.sql.startswith("(") else f"FROM {layer.sql}"

    def layers(self, number: int) -> Layer:
        layer = self.one(TABLES)
        for _ in range(number):
            layer = self.next(layer)
        return layer

    def next(self, layer: Layer) -> Layer:
        """The first of the rules, in a random order, that this layer has the columns for."""
        rules: list[Callable[[Layer], Layer | None]] = [
            self.windowed, self.windowed, self.numbered, self.numbered, self.grouped, self.grouped, self.grouped,
            self.filtered, self.first_ones, self.as_of, self.near, self.elements, self.pivoted, self.unpivoted,
            self.recent, self.bucketed, self.united, self.looked_up, self.histogram, self.histogram, self.sets,
        ]  # fmt: skip
        for rule in self.rng.sample(rules, len(rules)):
            if made := rule(layer):
                return made
        return layer

    def select(
        self, layer: Layer, added: Sequence[tuple[str, Column]], tail: str = "", keep: Sequence[Column] | None = None
    ) -> Layer:
        """Columns of the layer and new ones behind them."""
        kept = list(layer.columns if keep is None else keep)
        items = ", ".join([*(f"x.{c.name}" for c in kept), *(f"{sql} AS {c.name}" for sql, c in added)])
        key = layer.key if layer.key is not None and {c.name for c in kept}.issuperset(layer.key) else None
        columns = (*kept, *(column for _, column in added))
        return Layer(f"(SELECT {items} FROM {layer.sql} x{tail})", columns, key)

    # -- conditions ----------------------------------------------------------------------------------------------------

    def condition(self, layer: Layer) -> str:
        column = self.one(layer.exact)
        symbol = self.one(("=", "<", ">=", ">", "<>", "IS DISTINCT FROM"))
        others = [c for c in layer.exact if c.kind == column.kind and c != column]
        choice = self.rng.randrange(6)
        if choice == 0 and others:
            return f"x.{column.name} {symbol} x.{self.one(others).name}"
        if choice == 1 and column.kind in ("INT", "DEC"):
            aggregate = self.one(("max({})", "min({})", "avg({})", "quantile_disc({}, 0.5)"))
            return f"x.{column.name} {symbol} (SELECT {aggregate.format('v')} FROM {self.one('kr')})"
        if choice == 2 and column.kind == "INT":
            return f"{self.one(('', 'NOT '))}EXISTS (SELECT 1 FROM q y WHERE y.t {self.one('=<>')} x.{column.name})"
        if choice == 3:
            return f"x.{column.name} IS {self.one(('', 'NOT '))}NULL"
        return f"x.{column.name} {symbol} {self.one(LITERALS[column.kind])}"

    def filtered(self, layer: Layer) -> Layer | None:
        if not layer.exact:
            return None
        condition = self.condition(layer)
        if self.one_in(3):
            condition = f"({condition} {self.one(('AND', 'OR'))} {self.condition(layer)})"
        return self.select(layer, [], f" WHERE {condition}")

    def recent(self, layer: Layer) -> Layer | None:
        """Rows between two moments of the clock."""
        if not (times := layer.of("TIME")):
            return None
        at = f"x.{self.one(times).name}"
        ends = (f"{at} > now() - INTERVAL '5 minutes'", f"{at} <= now()", f"now() < {at} + INTERVAL '1 hour'")
        return self.select(layer, [], f" WHERE {' AND '.join(self.rng.sample(ends, self.one((1, 2))))}")

    # -- windows -------------------------------------------------------------------------------------------------------

    def partition(self, layer: Layer) -> str:
        return f"PARTITION BY x.{self.one(layer.exact).name} " if not self.one_in(3) else ""

    def terms(self, columns: Sequence[Column]) -> str:
        ways = ("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST")
        return ", ".join(f"x.{c.name}{self.one(ways)}" for c in columns)

    def whole(self, layer: Layer, key: Sequence[str]) -> str:
        """An order in which no two rows tie but those that are equal."""
        first = self.some([c for c in layer.exact if c.name not in key], 1)
        last = [c for c in layer.columns if c.name in key]
        return self.terms([*first, *self.rng.sample(last, len(last))] or layer.exact[:1])

    def windowed(self, layer: Layer) -> Layer | None:
        """Functions that give rows that tie the same value."""
        numbers = layer.of("INT", "DEC")
        if not numbers or self.room <= 0:
            return None
        self.room -= 1
        return self.select(layer, [self.window(layer, numbers) for _ in range(self.one((1, 1, 2)))])

    def window(self, layer: Layer, numbers: Sequence[Column]) -> tuple[str, Column]:
        part, argument = self.partition(layer), self.one(numbers)
        order = self.terms(self.some(layer.exact, 2))
        if self.one_in(4):
            call, kind = self.one(
                (("rank", "INT"), ("dense_rank", "INT"), ("percent_rank", "REAL"), ("cume_dist", "REAL"))
            )
            return f"{call}() OVER ({part}ORDER BY {order})", Column(self.name("w"), kind, True)
        sql, column = self.aggregate(argument, self.one(("sum", "count", "avg", "min", "max", "median")))
        if self.one_in(3):
            return f"{sql} OVER ({part.strip()})", column
        single = [c for c in layer.of("INT") if c.known]
        if single and self.one_in(3):
            frame = f"RANGE BETWEEN {self.one(DISTANCES)}"
            return f"{sql} OVER ({part}ORDER BY x.{self.one(single).name} {frame}{self.one(EXCLUDES)})", column
        if layer.key is not None and self.one_in(3):
            return f"{sql} OVER ({part}ORDER BY {order} GROUPS BETWEEN {self.one(PLACES)}{self.one(EXCLUDES)})", column
        return f"{sql} OVER ({part}ORDER BY {order} {self.one(FRAMES)})", column

    def numbered(self, layer: Layer) -> Layer | None:
        """Functions and frames that go by numbers of rows, of which a key is the last to decide."""
        if layer.key is None or not layer.exact or self.room <= 0:
            return None
        self.room -= 1
        column = self.one(layer.exact)
        order = self.whole(layer, layer.key)
        over = f"OVER ({self.partition(layer)}ORDER BY {order}"
        made = Column(self.name("w"), column.kind)
        default = f", {self.one(LITERALS[column.kind])}" if column.kind in ("INT", "TEXT") and self.one_in(3) else ""
        frame, exclude = f"ROWS BETWEEN {self.one(PLACES)}", self.one(EXCLUDES)
        numbers = layer.of("INT", "DEC")
        calls = [
            (f"row_number() {over})", replace(made, kind="INT", known=True)),
            (f"ntile({self.one('23')}) {over})", replace(made, kind="INT", known=True)),
            (f"{self.one(('lag', 'lead'))}(x.{column.name}, {self.one('12')}{default}) {over})", made),
            (f"{self.one(('lag', 'lead'))}(x.{column.name}) {over})", made),
            (f"{self.one(('first_value', 'last_value'))}(x.{column.name}) {over} {frame})", made),
            (f"nth_value(x.{column.name}, 2) {over} {frame})", made),
        ]
        if numbers:
            sql, total = self.aggregate(self.one(numbers), self.one(("sum", "count", "avg", "min", "max")))
            calls += [(f"{sql} {over} {frame}{exclude})", total)] * 3
        return self.select(layer, [self.one(calls)])

    def first_ones(self, layer: Layer) -> Layer | None:
        """The first rows of each group, or those that a window chooses."""
        if not layer.exact or self.room <= 0 or (layer.key is None and len(layer.exact) != len(layer.columns)):
            return None
        self.room -= 1
        part = self.partition(layer)
        ties = self.terms(self.some(layer.exact, 2))
        whole = self.whole(layer, [c.name for c in layer.columns] if layer.key is None else layer.key)
        chosen = self.one((
            f"{self.one(('rank', 'dense_rank'))}() OVER ({part}ORDER BY {ties}) {self.one(('<=', '=', '<'))} 2",
            f"row_number() OVER ({part}ORDER BY {whole}) {self.one(('<= 2', '= 1', '> 1', 'BETWEEN 2 AND 3'))}",
            f"count(*) OVER ({part.strip()}) > 1",
        ))  # fmt: skip
        return self.select(layer, [], f" QUALIFY {chosen}")

    # -- groups --------------------------------------------------------------------------------------------------------

    def aggregate(self, column: Column, call: str) -> tuple[str, Column]:
        x = f"x.{column.name}"
        kinds: dict[str, Kind] = {"count": "INT", "avg": "REAL", "median": "REAL", "stddev": "REAL", "mad": "REAL"}
        kind = kinds.get(call, column.kind)
        text = {"quantile_disc": f"quantile_disc({x}, {self.one(('0.1', '0.5', '0.9'))})"}.get(call, f"{call}({x})")
        return text, Column(self.name("a"), kind, call == "count")

    def aggregates(self, layer: Layer) -> list[tuple[str, Column]]:
        made: list[tuple[str, Column]] = []
        for _ in range(self.one((1, 1, 2))):
            column = self.one(layer.exact)
            calls = ["count", "min", "max", "quantile_disc"]
            if column.kind in ("INT", "DEC"):
                calls += ["sum", "sum", "avg", "median"]
                calls += ["mad"] if layer in TABLES else []  # of groups by MIN and MAX the compiler does not take it
            sql, total = self.aggregate(column, self.one(calls))
            if self.one_in(6):
                sql, total = f"{sql} FILTER (WHERE {self.filter(layer)})", replace(total, known=False)
            made.append((sql, total))
        return [*made, ("count(*)", Column(self.name("n"), "INT", True))][: self.one((1, 2, 3))]

    def filter(self, layer: Layer) -> str:
        column = self.one(layer.exact)
        return f"x.{column.name} {self.one(('<', '>=', '='))} {self.one(LITERALS[column.kind])}"

    def grouped(self, layer: Layer) -> Layer | None:
        if not layer.exact or self.room <= 0:
            return None
        self.room -= 1
        keys, totals = self.some(layer.exact, 2, 0), self.aggregates(layer)
        tail = f" GROUP BY {', '.join(f'x.{c.name}' for c in keys)}" if keys else ""
        if keys and self.one_in(4):
            tail += f" HAVING count(*) {self.one(('> 1', '= 1', '<> 2'))}"
        return replace(self.select(layer, totals, tail, keys), key=tuple(c.name for c in keys))

    def histogram(self, layer: Layer) -> Layer | None:
        """Groups by the values of groups."""
        numbers = layer.of("INT", "DEC")
        if not numbers or self.room <= 1:
            return None
        self.room -= 1
        sql, total = self.aggregate(self.one(numbers), self.one(("sum", "count", "max", "min")))
        inner = replace(self.select(layer, [(sql, total)], f" GROUP BY x.{(key := self.one(layer.exact)).name}", [key]))
        return replace(inner, key=(key.name,)) if self.one_in(3) else self.grouped(inner)

    def sets(self, layer: Layer) -> Layer | None:
        if len(layer.exact) < 2 or self.room <= 0:
            return None
        self.room -= 1
        a, b = keys = self.rng.sample(layer.exact, 2)
        listed = f"x.{a.name}, x.{b.name}"
        how = self.one((f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), (x.{b.name}), ())"))
        added = [*self.aggregates(layer), (f"GROUPING({listed})", Column(self.name("g"), "INT", True))]
        unknown = [replace(c, known=False) for c in keys]
        key = (a.name, b.name, added[-1][1].name)
        return replace(self.select(layer, added, f" GROUP BY {how}", unknown), key=key)

    # -- joins ---------------------------------------------------------------------------------------------------------

    def as_of(self, layer: Layer) -> Layer | None:
        """The last row of q that is not later."""
        if len(numbers := layer.of("INT")) < 2:
            return None
        g, t = self.rng.sample(numbers, 2)
        condition = f"x.{g.name} = y.g AND x.{t.name} {self.one(('>=', '>', '<=', '<'))} y.t"
        added = [("y.p", Column(self.name("p"), "DEC")), ("y.t", Column(self.name("t"), "INT"))]
        return self.select(layer, added, f" ASOF {self.one(('', 'LEFT '))}JOIN q y ON {condition}")

    def near(self, layer: Layer) -> Layer | None:
        """Rows within a distance."""
        if not (numbers := layer.of("INT")) or self.room <= 0:
            return None
        self.room -= 1
        t, other = self.one(numbers), self.one(TABLES[:2])
        condition = f"y.t BETWEEN x.{t.name} - 1 AND x.{t.name} + {self.one('01')}"
        if self.one_in(2):
            condition += f" AND y.g {self.one(('=', 'IS NOT DISTINCT FROM'))} x.{self.one(numbers).name}"
        added = [(f"y.{c.name}", Column(self.name(c.name), c.kind)) for c in self.some(other.of("INT", "TEXT"), 2)]
        made = self.select(layer, added, f" {self.one(('', 'LEFT '))}JOIN {other.sql} y ON {condition}")
        return replace(made, key=None)

    def looked_up(self, layer: Layer) -> Layer | None:
        """A value of another table for each row."""
        if not (numbers := layer.of("INT")) or self.room <= 0:
            return None
        self.room -= 1
        call, kind = self.one((("max(y.v)", "INT"), ("sum(y.v)", "INT"), ("count(*)", "INT"), ("min(y.s)", "TEXT")))
        condition = f"y.t {self.one(('=', '=', '<', '>='))} x.{self.one(numbers).name}"
        sql = f"(SELECT {call} FROM {self.one('kr')} y WHERE {condition})"
        return self.select(layer, [(sql, Column(self.name("l"), kind))])

    def united(self, layer: Layer) -> Layer | None:
        other = self.one(TABLES)
        pairs = [(a, b) for a in layer.exact for b in other.exact if a.kind == b.kind]
        if not pairs or self.room <= 0:
            return None
        self.room -= 1
        chosen = self.rng.sample(pairs, min(2, len(pairs)))
        names = [self.name("u") for _ in chosen]
        mine = ", ".join(f"x.{a.name} AS {n}" for (a, _), n in zip(chosen, names, strict=True))
        theirs = ", ".join(f"y.{b.name}" for _, b in chosen)
        word = self.one(("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"))
        columns = tuple(Column(n, a.kind, a.known and b.known) for (a, b), n in zip(chosen, names, strict=True))
        text = f"(SELECT {mine} FROM {layer.sql} x {word} SELECT {theirs} FROM {other.sql} y)"
        return Layer(text, columns, None if word.endswith("ALL") else tuple(names))

    # -- shapes --------------------------------------------------------------------------------------------------------

    def elements(self, layer: Layer) -> Layer | None:
        """A row for each element of a list."""
        if layer.sql != "r":
            return None
        kept = [c for c in layer.columns if c.kind != "LIST" and not self.one_in(4)]
        added = [("e.v", Column(self.name("e"), "INT"))]
        if self.one_in(2):
            added.append(("e.i", Column(self.name("i"), "INT")))
        word = self.one((", UNNEST(x.xs) WITH ORDINALITY", " LEFT JOIN UNNEST(x.xs) WITH ORDINALITY"))
        tail = f"{word} AS e (v, i){' ON TRUE' if 'LEFT' in word else ''}"
        return replace(self.select(layer, added, tail, kept), key=None)

    def pivoted(self, layer: Layer) -> Layer | None:
        texts, numbers = layer.of("TEXT"), layer.of("INT")
        if not texts or len(numbers) < 2 or self.room <= 0:
            return None
        self.room -= 1
        on, (v, by) = self.one(texts), self.rng.sample(numbers, 2)
        call = self.one(("sum", "max", "count"))
        text = f"(PIVOT {layer.sql} ON {on.name} IN ('a', 'b') USING {call}({v.name}) GROUP BY {by.name})"
        return Layer(f"(SELECT * FROM {text})", (by, Column("a", "INT"), Column("b", "INT")), (by.name,))

    def unpivoted(self, layer: Layer) -> Layer | None:
        numbers = [c for c in layer.of("INT") if c.name in ("t", "v", "g")]
        if len(numbers) < 2:
            return None
        names = [c.name for c in self.rng.sample(numbers, 2)]
        nulls = self.one(("", "INCLUDE NULLS "))
        label, value = Column(self.name("c"), "TEXT", True), Column(self.name("v"), "INT", not nulls)
        text = f"SELECT {label.name}, {value.name} FROM {layer.sql} UNPIVOT {nulls}({value.name} FOR {label.name}"
        return Layer(f"({text} IN ({', '.join(names)})))", (label, value))

    def bucketed(self, layer: Layer) -> Layer | None:
        """Windows of time as keys."""
        if not (times := layer.of("TIME")) or self.room <= 0:
            return None
        self.room -= 1
        at = f"x.{self.one(times).name}"
        bucket = self.one((f"time_bucket(INTERVAL '5 minutes', {at})", f"date_trunc('hour', {at})"))
        added = [(bucket, Column(self.name("b"), "TIME")), *self.aggregates(layer)]
        return replace(self.select(layer, added, " GROUP BY 1", ()), key=(added[0][1].name,))


# -- streams -----------------------------------------------------------------------------------------------------------

Step = tuple[Literal["tick"], dt.datetime] | tuple[Literal["rows"], list[Event]]


def cells(rng: Random, name: str) -> Row:
    g, t, v = rng.choice((1, 2, None)), rng.randrange(4), rng.choice((-1, 0, 1, 1, 3, None))
    at = NOON + dt.timedelta(seconds=rng.choice((0, 0, 60, -60, 240, 300, -300, 3600)))
    s = rng.choice(("a", "b", "", None))
    if name == "k":
        return rng.randrange(8), g, t, v, s, at
    if name == "q":
        return rng.choice((1, 2)), t, rng.choice((None, "1.00", "-2.50"))
    return g, t, v, s, rng.choice((at, at, None)), rng.choice(([], [1], [1, 1], [2, None, 1], None))


def steps(rng: Random, length: int) -> list[Step]:
    """Inserts, deletes, updates and ticks; tables fill, and are empty again."""
    live: list[tuple[str, Row]] = []
    moment, made, leaving = NOON, list[Step](), False
    while len(made) < length:
        leaving = bool(live) and (leaving or len(live) > 12) and rng.random() < 0.9
        choice = rng.random()
        if choice < 0.15:
            moment += dt.timedelta(seconds=rng.choice((1, 60, 300, -60, 3600)))
            made.append(("tick", moment))
            continue
        events: list[Event] = []
        if live and (leaving or choice < 0.45):
            events.append(("-", *live.pop(rng.randrange(len(live)))))
        if not events or choice < 0.25:
            name = events[0][1] if events else rng.choice("kkrrq")
            row = cells(rng, name)
            key = [row[i] for i in KEYS.get(name, ())]
            if not key or not any(n == name and [r[i] for i in KEYS[name]] == key for n, r in live):
                live.append((name, row))
                events.append(("+", name, row))
        if events:
            made.append(("rows", events))
    return made
