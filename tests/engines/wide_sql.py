"""Random queries over the whole width of the SQL that is taken: all joins, sets, quantifiers, functions, orders.

``random_sql`` goes deep in few constructs; this family combines many. The choice of a row is always determined: by the
query itself, or by the rule that a view documents, which the referee's text of the query spells out. Numbers stay
exact, but for those that are only shown (the kind REAL).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import TypeVar

from tests.engines.wide_world import COMPARISONS, DOOR, EXACT, FUNCTIONS, LETTERS, LITERALS, NUMBERS, Kind

TIES = "/* ties */"
T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """What an expression may name; ``based``: a column of a table, which functions at the door may take."""

    sql: str
    kind: Kind
    based: bool = False


@dataclass(frozen=True)
class Scope:
    """The fields of a query and of those around it, and how deep expressions and subqueries may nest."""

    own: tuple[Field, ...]
    outer: tuple[Field, ...] = ()
    nesting: int = 2
    subqueries: int = 1

    def of(self, *kinds: Kind) -> list[Field]:
        return [f for f in self.own if f.kind in kinds]

    @property
    def deeper(self) -> Scope:
        return replace(self, nesting=self.nesting - 1)

    @property
    def flat(self) -> Scope:
        return replace(self, subqueries=0, outer=())


@dataclass(frozen=True)
class Query:
    """``view`` is the text that viewlet gets; the referee's spells out how ties are decided."""

    view: str
    referee: str
    ordered: bool


class Writer:
    """Writes a query over ``tables``. ``room`` is how many more tables and groupings it may take."""

    def __init__(self, rng: Random, tables: dict[str, dict[str, Kind]], room: int = 3) -> None:
        self.rng = rng
        self.tables = tables
        self.common: dict[str, tuple[Field, ...]] = {}
        self.room = room
        self._numbers = count(1)

    def one(self, options: Sequence[T]) -> T:
        return self.rng.choice(options)

    def either(self, *options: Callable[[], T]) -> T:
        return self.one(options)()

    def one_in(self, n: int) -> bool:
        return self.rng.randrange(n) == 0

    def name(self, stem: str) -> str:
        return f"{stem}{next(self._numbers)}"

    # -- values --------------------------------------------------------------------------------------------------------

    def value(self, kind: Kind, scope: Scope) -> str:
        fields = scope.of(kind)
        if fields and not self.one_in(4):
            return self.one(fields).sql
        if kind != "REAL" and (scope.nesting <= 0 or self.one_in(4)):
            return self.one(LITERALS[kind])
        return self.computed(kind, scope.deeper)

    def computed(self, kind: Kind, scope: Scope) -> str:
        based = [f for f in scope.of("TEXT") if f.based]
        if based and kind in DOOR and self.one_in(5):
            return self.filled(self.one(DOOR[kind]), replace(scope, own=(self.one(based),), nesting=0))
        if self.one_in(4) and kind != "REAL":
            return self.choice(kind, scope)
        if kind in NUMBERS and self.may_nest(scope) and self.one_in(4):
            return self.scalar_subquery(kind, scope)
        return self.filled(self.one(FUNCTIONS[kind]), scope)

    def filled(self, pattern: str, scope: Scope) -> str:
        """A pattern with values for its letters."""
        parts = []
        for before, letter, after in zip(" " + pattern, pattern, pattern[1:] + " ", strict=False):
            alone = not (before.isalpha() or after.isalpha() or before == "'")
            if letter == "#":
                parts.append(self.one("123"))
            elif letter in LETTERS and alone:
                parts.append(self.value(self.one(LETTERS[letter]), scope))
            else:
                parts.append(letter)
        return "".join(parts)

    def choice(self, kind: Kind, scope: Scope) -> str:
        first, second = self.value(kind, scope), self.value(kind, scope)
        return self.either(
            lambda: f"COALESCE({first}, {second})",
            lambda: f"CASE WHEN {self.condition(scope)} THEN {first} ELSE {second} END",
            lambda: f"CASE WHEN {self.condition(scope)} THEN {first} END",
            lambda: f"NULLIF({first}, {second})",
        )

    # -- conditions ----------------------------------------------------------------------------------------------------

    def condition(self, scope: Scope) -> str:
        inner = scope.deeper
        choices = [lambda: self.comparison(scope)] * 3 + [lambda: self.membership(scope)] * 2
        if scope.nesting > 0:
            choices += [
                lambda: f"({self.condition(inner)} AND {self.condition(inner)})",
                lambda: f"({self.condition(inner)} OR {self.condition(inner)})",
                lambda: f"NOT ({self.condition(inner)})",
                lambda: f"({self.condition(inner)}) IS {self.one(('', 'NOT '))}{self.one(('TRUE', 'FALSE'))}",
                lambda: self.row_comparison(inner),
                lambda: self.computed("BOOL", inner),
            ]
        if self.may_nest(scope):
            choices += [lambda: self.quantified(inner)] * 3
        return self.either(*choices)

    def kind_of(self, scope: Scope) -> Kind:
        return self.one([f.kind for f in scope.own if f.kind != "REAL"] or EXACT)

    def comparison(self, scope: Scope) -> str:
        kind = self.kind_of(scope)
        other: Kind = self.one(NUMBERS) if kind in NUMBERS else kind
        return f"{self.value(kind, scope)} {self.one(COMPARISONS)} {self.value(other, scope)}"

    def row_comparison(self, scope: Scope) -> str:
        kinds = [self.kind_of(scope) for _ in range(2)]
        left, right = (", ".join(self.value(kind, scope) for kind in kinds) for _ in range(2))
        return f"({left}) {self.one(COMPARISONS[:6])} ({right})"

    def membership(self, scope: Scope) -> str:
        kind = self.kind_of(scope)
        value, other, negated = self.value(kind, scope), self.value(kind, scope), self.one(("", "NOT "))
        return self.either(
            lambda: f"{value} IS {negated}NULL",
            lambda: f"{value} {negated}IN ({self.one(LITERALS[kind])}, {other})",
            lambda: f"{value} {negated}BETWEEN {self.one(LITERALS[kind])} AND {other}",
        )

    def may_nest(self, scope: Scope) -> bool:
        return scope.subqueries > 0 and self.room > 0

    def inside(self, scope: Scope) -> Scope:
        """What a subquery here starts from."""
        return Scope((), scope.own + scope.outer, nesting=1, subqueries=scope.subqueries - 1)

    def quantified(self, scope: Scope) -> str:
        """EXISTS, IN, ANY and ALL. DuckDB takes a row only before a subquery that is not correlated."""
        around, negated, kind = self.inside(scope), self.one(("", "NOT ")), self.kind_of(scope)
        value, other, alone = self.value(kind, scope.flat), self.kind_of(scope), replace(around, outer=())
        some = f"{self.one(COMPARISONS[:6])} {self.one(('ANY', 'ALL'))}"
        return self.either(
            lambda: f"{negated}EXISTS ({self.correlated(around, ())})",
            lambda: f"{value} {negated}IN ({self.correlated(around, (kind,))})",
            lambda: f"{value} {some} ({self.correlated(around, (kind,))})",
            lambda: f"({value}, {self.value(other, scope.flat)}) {negated}IN ({self.correlated(alone, (kind, other))})",
            lambda: f"{value} {negated}IN ({self.query(around, (kind,))[0]})",
        )

    def scalar_subquery(self, kind: Kind, scope: Scope) -> str:
        aggregates = ["SUM({})", "MAX({})", "MIN({})", *(["COUNT({})", "COUNT(DISTINCT {})"] if kind == "INT" else [])]
        return f"({self.correlated(self.inside(scope), (kind,), self.one(aggregates))})"

    def correlated(self, around: Scope, kinds: tuple[Kind, ...], around_value: str = "{}") -> str:
        """A subquery that is mostly tied to the query around it."""
        source, fields = self.from_clause(around, 2)
        scope = replace(around, own=fields)
        pairs = [(f, o) for f in fields for o in around.outer if f.kind == o.kind != "REAL"]
        parts = []
        if pairs:
            mine, other = self.one(pairs)
            parts.append(f"{mine.sql} {self.one(('=', '=', *COMPARISONS))} {other.sql}")
        if not parts or self.one_in(3):
            parts.append(self.condition(scope))
        shown = ", ".join(around_value.format(self.value(kind, scope)) for kind in kinds) or "1"
        return f"SELECT {shown} FROM {source} WHERE {' AND '.join(parts)}"

    # -- FROM ----------------------------------------------------------------------------------------------------------

    def from_clause(self, around: Scope, most: int = 3) -> tuple[str, tuple[Field, ...]]:
        if self.one_in(6):
            return self.merged_join()
        text, fields = self.from_item(around)
        for _ in range(self.one(range(most))):
            if self.room <= 0:
                break
            text, fields = self.joined(text, fields, around)
        return text, fields

    def joined(self, text: str, fields: tuple[Field, ...], around: Scope) -> tuple[str, tuple[Field, ...]]:
        if self.one_in(8) and not around.outer:
            query, columns = self.lateral(fields)
            alias = self.name("l")
            return f"{text}, LATERAL ({query}) {alias}", fields + qualified(alias, columns)
        other, added = self.from_item(around)
        if self.room > 0 and self.one_in(8):
            third, more = self.from_item(around)
            other = f"({other} {self.one(('', 'LEFT '))}JOIN {third} ON {self.join_condition(added, more)})"
            added += more
        side = self.one(("", "LEFT ", "LEFT ", "RIGHT ", "FULL ", "SEMI ", "ANTI ", "CROSS "))
        if side == "CROSS ":
            return f"{text} CROSS JOIN {other}", fields + added
        joined = f"{text} {side}JOIN {other} ON {self.join_condition(fields, added)}"
        return joined, fields if side in ("SEMI ", "ANTI ") else fields + added

    def lateral(self, fields: tuple[Field, ...]) -> tuple[str, tuple[Field, ...]]:
        kind = self.one(NUMBERS)
        name = self.name("c")
        around = Scope((), fields, nesting=1, subqueries=0)
        query = self.correlated(around, (kind,), self.one(("MAX({})", "{}", "SUM({})")))
        return query.replace(" FROM ", f" AS {name} FROM ", 1), (Field(name, kind),)

    def join_condition(self, left: tuple[Field, ...], right: tuple[Field, ...]) -> str:
        both = Scope(left + right, subqueries=0, nesting=1)
        pairs = [(a, b) for a in left for b in right if a.kind == b.kind != "REAL"]
        if not pairs or self.one_in(6):
            return self.either(lambda: self.condition(both), lambda: self.one(("TRUE", "FALSE", "1 = 1")))
        a, b = self.one(pairs)
        text = f"{a.sql} {self.one(('=', '=', '=', *COMPARISONS))} {b.sql}"
        return f"{text} AND {self.condition(both)}" if self.one_in(3) else text

    def merged_join(self) -> tuple[str, tuple[Field, ...]]:
        """NATURAL or USING; the columns that are merged go without the name of a table."""
        first, second = self.rng.sample(sorted(self.tables), 2)
        self.room -= 2
        mine, other = self.tables[first], self.tables[second]
        shared = [c for c in mine if c in other]
        kind = self.one(("", "LEFT ", "RIGHT ", "FULL "))
        a, b = self.name("x"), self.name("x")
        if self.one_in(2):
            merged, text = shared, f"{first} {a} NATURAL {kind}JOIN {second} {b}"
        else:
            merged = self.rng.sample(shared, 1)
            text = f"{first} {a} {kind}JOIN {second} {b} USING ({merged[0]})"
        fields = tuple(Field(c, mine[c]) for c in merged)
        fields += tuple(Field(f"{a}.{c}", k) for c, k in mine.items() if c not in merged)
        return text, fields + tuple(Field(f"{b}.{c}", k) for c, k in other.items() if c not in merged)

    def from_item(self, around: Scope) -> tuple[str, tuple[Field, ...]]:
        alias = self.name("x")
        self.room -= 1
        if self.room > 0 and self.one_in(5):
            query, columns = self.query(replace(around, outer=(), nesting=1, subqueries=0))
            return f"({query}) {alias}", qualified(alias, columns)
        if self.one_in(12):
            return self.constants(alias)
        if self.common and self.one_in(2):
            table = self.one(sorted(self.common))
            return f"{table} {alias}", qualified(alias, self.common[table])
        table = self.one(sorted(self.tables))
        fields = tuple(Field(f"{alias}.{c}", kind, True) for c, kind in self.tables[table].items())
        return f"{table} {alias}", fields

    def constants(self, alias: str) -> tuple[str, tuple[Field, ...]]:
        kinds = [self.one(EXACT) for _ in range(2)]
        rows = ", ".join(f"({', '.join(self.one(LITERALS[k]) for k in kinds)})" for _ in range(2))
        names = [self.name("c") for _ in kinds]
        fields = tuple(Field(f"{alias}.{n}", k) for n, k in zip(names, kinds, strict=True))
        return f"(VALUES {rows}) {alias} ({', '.join(names)})", fields

    # -- SELECT --------------------------------------------------------------------------------------------------------

    def query(self, around: Scope, kinds: tuple[Kind, ...] | None = None) -> tuple[str, tuple[Field, ...]]:
        """A SELECT, or two or three of them by UNION, INTERSECT and EXCEPT."""
        text, fields = self.select(around, kinds)
        for _ in range(self.one((0, 0, 0, 1, 2))):
            if self.room > 0 and all(f.kind != "REAL" for f in fields):
                other, columns = self.select(around, tuple(f.kind for f in fields))
                if self.one_in(6):
                    text = f"({text}) UNION{self.one((' ALL', ''))} BY NAME ({self.renamed(other, columns, fields)})"
                    continue
                text = f"({text}) {self.one(('UNION', 'INTERSECT', 'EXCEPT'))}{self.one((' ALL', ''))} ({other})"
        return text, fields

    def renamed(self, text: str, columns: tuple[Field, ...], names: tuple[Field, ...]) -> str:
        """The columns by other names and in another order; one of several may be missing."""
        alias = self.name("x")
        pairs = [f"{alias}.{c.sql} AS {n.sql}" for c, n in zip(columns, names, strict=True)]
        shuffled = self.rng.sample(pairs, max(1, len(pairs) - self.one_in(3)))
        return f"SELECT {', '.join(shuffled)} FROM ({text}) {alias}"

    def select(self, around: Scope, kinds: tuple[Kind, ...] | None = None) -> tuple[str, tuple[Field, ...]]:
        source, fields = self.from_clause(around)
        scope = replace(around, own=fields)
        where = [self.condition(scope)] if self.one_in(2) else []
        if self.one_in(4) and any(f.kind != "REAL" for f in fields):
            return self.first_rows(source, where, scope, kinds)
        tail, aggregates = "", self.one_in(2)
        if aggregates:
            scope, tail = self.grouped(scope)
        items = self.items(scope, kinds)
        if tail.startswith(" GROUP BY ") and kinds is None and "(" not in tail and self.one_in(3):
            tail, items = " GROUP BY ALL", [(self.name("c"), f) for f in scope.own]
        if not aggregates and self.one_in(3):
            where, items = self.with_alias(where, items, scope, kinds)
        conditions = f" WHERE {' AND '.join(where)}" if where else ""
        distinct = "DISTINCT " if self.one_in(6) else ""
        return f"SELECT {distinct}{shown(items)} FROM {source}{conditions}{tail}", named(items)

    def items(self, scope: Scope, kinds: tuple[Kind, ...] | None) -> list[tuple[str, Field]]:
        """Names and what they stand for."""
        if kinds is None:
            columns = [(f.sql, f.kind) for f in self.rng.sample(scope.own, min(len(scope.own), self.one((1, 2, 3))))]
            for _ in range(self.one((0, 1, 1))):
                kind = self.kind_of(scope)
                columns.append((self.computed(kind, scope.deeper), kind))
        else:
            columns = [(self.value(kind, scope), kind) for kind in kinds]
        return [(self.name("c"), Field(sql, kind)) for sql, kind in columns]

    def with_alias(
        self, where: list[str], items: list[tuple[str, Field]], scope: Scope, kinds: tuple[Kind, ...] | None
    ) -> tuple[list[str], list[tuple[str, Field]]]:
        """Names of SELECT in WHERE and in a later item."""
        usable = tuple(Field(n, f.kind) for n, f in items if f.kind != "REAL" and "SELECT" not in f.sql)
        if not usable:
            return where, items
        inner = replace(scope.flat, own=usable, nesting=1)
        kind = self.kind_of(inner)
        more = [(self.name("c"), Field(self.computed(kind, inner), kind))] if kinds is None else []
        return [*where, *([self.condition(inner)] if self.one_in(2) else [])], items + more

    def first_rows(
        self, source: str, where: list[str], scope: Scope, kinds: tuple[Kind, ...] | None
    ) -> tuple[str, tuple[Field, ...]]:
        """The first rows of each group; ties go by the columns, as documented."""
        fields = [f for f in scope.own if f.kind != "REAL"]
        if kinds is None:
            picked = self.rng.sample(fields, min(len(fields), self.one((1, 2, 3))))
            items = [(self.name("c"), f) for f in picked]
        else:
            items = self.items(scope.flat, kinds)
        ties = ", ".join(f.sql for _, f in items)
        by, order = self.one(fields).sql, self.order_term(self.one(fields).sql)
        part = self.one((f"PARTITION BY {by} ", ""))
        conditions = f" WHERE {' AND '.join(where)}" if where else ""
        function = self.one(("row_number", "rank"))
        mark = f"{TIES}, {ties}{TIES}" if function == "row_number" else ""
        window = f"{function}() OVER ({part}ORDER BY {order}{mark}) <= {self.one('12')}"
        return f"SELECT {shown(items)} FROM {source}{conditions} QUALIFY {window}", named(items)

    def order_term(self, sql: str) -> str:
        return f"{sql}{self.one(('', ' DESC'))}{self.one(('', '', ' NULLS FIRST'))}"

    # -- groups --------------------------------------------------------------------------------------------------------

    def grouped(self, scope: Scope) -> tuple[Scope, str]:
        """GROUP BY and HAVING; beyond it the keys and a few aggregates are all there is to name."""
        keys: dict[str, Field] = {}
        for _ in range(self.one((1, 0, 2, 2))):
            field = self.one([f for f in scope.own if f.kind != "REAL"] or scope.own)
            if self.one_in(4):
                field = Field(self.filled(self.one(FUNCTIONS[field.kind]), scope.flat.deeper), field.kind)
            if any(f.sql in field.sql for f in scope.own):
                keys[field.sql] = Field(field.sql, field.kind)
        aggregates = [self.aggregate(scope, list(keys.values())) for _ in range(self.one((1, 1, 2)))]
        self.room -= 1
        own, tail = (*keys.values(), *aggregates), f" GROUP BY {', '.join(keys)}" if keys else ""
        if keys and self.one_in(3):
            tail = f" GROUP BY {self.sets(list(keys))}"  # in the sets without it, any value of a key will do
            own = tuple(replace(field, sql=field.sql.replace("ANY_VALUE(", "MIN(")) for field in own)
            own += (Field(f"GROUPING({', '.join(keys)})", "INT"),)
        grouped = replace(scope.flat, own=own)
        return grouped, tail + (f" HAVING {self.condition(grouped)}" if self.one_in(3) else "")

    def sets(self, keys: list[str]) -> str:
        listed = ", ".join(keys)
        return self.one((f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({keys[0]}), ())"))

    def aggregate(self, scope: Scope, keys: list[Field]) -> Field:
        argument = replace(scope.flat, nesting=1)
        kind, number = self.kind_of(scope), self.one(NUMBERS)
        value, summand = self.value(kind, argument), self.value(number, argument)
        distinct = self.one(("", "", "", "DISTINCT "))
        up, plain = self.one(("", " DESC")), self.one([f for f in scope.own if f.kind != "REAL"] or scope.own)
        field = self.one((
            Field(f"SUM({distinct}{summand})", number),
            Field("COUNT(*)", "INT"),
            Field(f"COUNT({distinct}{value})", "INT"),
            Field(f"{self.one(('MIN', 'MAX'))}({value})", kind),
            Field(f"{self.one(('MIN', 'MAX'))}({value})", kind),
            Field(f"{self.one(('AVG', 'STDDEV', 'VAR_POP', 'VAR_SAMP'))}({summand})", "REAL"),
            Field(f"{self.one(('BOOL_AND', 'BOOL_OR'))}({self.condition(argument)})", "BOOL"),
            Field(f"COUNT_IF({self.condition(argument)})", "INT"),
            Field(f"{self.one(('ARG_MIN', 'ARG_MAX'))}({value}, {value})", kind),
            Field(f"{self.one(('FIRST', 'LAST'))}({plain.sql} ORDER BY {plain.sql}{up})", plain.kind),
            Field(f"COUNT(DISTINCT ({value}, {summand}))", "INT"),
            *(Field(f"STRING_AGG({f.sql}, '-' ORDER BY {f.sql}{up})", "REAL") for f in scope.of("TEXT")[:1]),
            *(Field(f"ANY_VALUE({key.sql})", key.kind) for key in keys[:1]),
        ))  # fmt: skip
        if self.one_in(4):
            return replace(field, sql=f"{field.sql} FILTER (WHERE {self.condition(argument)})")
        return field

    # -- views ---------------------------------------------------------------------------------------------------------

    def view(self) -> Query:
        """What stands after CREATE MATERIALIZED VIEW v AS."""
        common = ""
        if self.one_in(5):
            query, columns = self.query(Scope((), nesting=1, subqueries=0))
            name = self.name("w")
            common, self.common = f"WITH {name} AS ({query}) ", {name: columns}
        if self.one_in(12):
            return self.first_of_each(common)
        query, columns = self.query(Scope(()))
        text = common + query
        if self.one_in(4) and all(f.kind != "REAL" for f in columns):
            return self.in_order(text, columns)
        return finished(text, ordered=False)

    def first_of_each(self, common: str) -> Query:
        """DISTINCT ON; ties go by the columns."""
        source, fields = self.from_clause(Scope(()))
        fields = tuple(f for f in fields if f.kind != "REAL")
        items = [(self.name("c"), f) for f in self.rng.sample(fields, min(len(fields), 3))]
        conditions = f" WHERE {self.condition(Scope(fields))}" if self.one_in(2) else ""
        order = f"{self.order_term(self.one(fields).sql)}{TIES}, {', '.join(f.sql for _, f in items)}{TIES}"
        select = f"SELECT DISTINCT ON ({self.one(fields).sql}) {shown(items)} FROM {source}{conditions}"
        return finished(f"{common}{select} ORDER BY {order}", ordered=True)

    def in_order(self, text: str, columns: tuple[Field, ...]) -> Query:
        terms = [self.order_term(f.sql) for f in self.rng.sample(columns, self.one((1, min(2, len(columns)))))]
        ties = f"{TIES}, {', '.join(f.sql for f in columns)}{TIES}"
        cut = self.one((" LIMIT 2", " LIMIT 3 OFFSET 1", "", " OFFSET 1", " FETCH FIRST 1 ROWS ONLY"))
        return finished(f"{text} ORDER BY {', '.join(terms)}{ties}{cut}", ordered=True)


def shown(items: list[tuple[str, Field]]) -> str:
    return ", ".join(f"{field.sql} AS {name}" for name, field in items)


def named(items: list[tuple[str, Field]]) -> tuple[Field, ...]:
    return tuple(Field(name, field.kind) for name, field in items)


def qualified(alias: str, columns: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(Field(f"{alias}.{c.sql}", c.kind) for c in columns)


def finished(text: str, ordered: bool) -> Query:
    """Between two marks stands what only the referee is told."""
    return Query("".join(text.split(TIES)[::2]), text.replace(TIES, ""), ordered)
