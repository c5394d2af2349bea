"""The trigger program in the notation of Figure 4, and back: ``program_from_text(program_to_text(p)) == p``.

::

    on insert into O values (@ck, @ok) do {
      q[][@ck] += q_o1[][@ck] * q_o2[][@ok];
      foreach qty do q_li[][@ck, qty] += q_o1[][@ck] * q_qty[][@ok, qty];
    }

``foreach`` names what the statement loops over: the variables of its target that the event does not give. What a
program says of itself beyond that (the types of relations, the reason for a view, the SQL behind a result) is in the
text as well, so that an engine can run a program from a file. Trace and statistics are not part of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Literal, TypeVar, get_args

from viewlet.algebra.query import Query, View, label
from viewlet.algebra.terms import Const, number, string
from viewlet.algebra.text import Reader, pretty
from viewlet.program.trigger import (
    EXCLUDED,
    ROW_FUNCTIONS,
    End,
    Event,
    Extreme,
    FrameUnit,
    Gather,
    MapDefinition,
    Order,
    Program,
    Result,
    ResultColumn,
    RowWindow,
    Statement,
    Trigger,
)
from viewlet.schema import (
    TIMESTAMPTZ,
    UUID,
    Column,
    Relation,
    Type,
    TypeName,
    decimal,
    enum,
    list_of,
    map_of,
    struct_of,
)

T = TypeVar("T")

WIDTH = 100
DEFAULT = Relation("", ())
EVENTS: dict[Literal["+", "-", "Δ"], str] = {"+": "on insert into", "-": "on delete from", "Δ": "on update"}


# -- to text -----------------------------------------------------------------------------------------------------------


def program_to_text(program: Program) -> str:
    head = [f"strategy {label(program.strategy)};\ndialect {program.dialect};"]
    blocks = [
        "\n".join(head + [_relation(r) for r in program.relations]),
        *map(_view, program.views),
        *map(_trigger, program.triggers),
        *map(_result, program.results),
    ]
    if program.source:
        blocks.append(f"source {string(program.source).text};")
    return "\n\n".join(blocks) + "\n"


def statement_to_text(statement: Statement, params: tuple[str, ...] = (), indent: int = 0) -> str:
    """``foreach x do q[][x] += …`` where the event gives ``params``; on several lines where it is long."""
    loops = ", ".join(loop_variables(statement.target, params))
    start = "buffered " * statement.buffered + "late " * statement.late + (f"foreach {loops} do " if loops else "")
    start += f"{statement.target.text} {statement.op}"
    return start + _after(statement.expression, len(start), indent)


def loop_variables(target: View, params: Iterable[str]) -> tuple[str, ...]:
    return tuple(v for v in dict.fromkeys(target.inputs + target.outputs) if v not in params)


def _after(q: Query, used: int, indent: int) -> str:
    """Q behind ``used`` characters if there is room for it and a semicolon, else below."""
    if indent + used + len(q.text) + 2 <= WIDTH:
        return f" {q.text}"
    return f"\n{' ' * (indent + 2)}{pretty(q, WIDTH - 1, indent + 2)}"


def _relation(r: Relation) -> str:
    columns = ", ".join(_column(c) + _derived(c) for c in r.columns)
    words = ["table" if r.static else "stream", label(r.name), f"({columns})"]
    if r.rate != DEFAULT.rate:
        words += ["rate", number(r.rate).text]
    if r.rows != DEFAULT.rows:
        words += ["rows", str(r.rows)]
    if r.distinct:
        words.append(f"distinct ({', '.join(f'{label(name)} {n}' for name, n in r.distinct.items())})")
    if r.options:
        words.append(f"with ({', '.join(f'{label(name)} {string(v).text}' for name, v in r.options.items())})")
    words += [f"{word} ({', '.join(map(label, key))})" for word, key in _keys(r)]
    words += ["of", label(r.of), string(r.unnests).text] if r.of else []
    words += [] if r.stored else ["unstored"]
    return " ".join(words) + ";"


def _keys(r: Relation) -> Iterator[tuple[str, tuple[str, ...]]]:
    if r.key:
        yield "key", r.key
    yield from (("unique", key) for key in r.unique)


def _column(c: Column | ResultColumn) -> str:
    return f"{label(c.name)} {c.type}" + " NOT NULL" * (not c.nullable)


def _derived(c: Column) -> str:
    if c.default:
        return f" DEFAULT {string(c.default).text}"
    return f" AS {string(c.derived).text}" if c.derived else ""


def _view(v: MapDefinition) -> str:
    start = f"view {v.read.text} :="
    fill = "" if v.fill is None else f"\n  fill{_after(v.fill, 4, 2)}"
    return f"{start}{_after(v.definition, len(start), 0)}{fill}\n  why {string(v.why).text};"


def _trigger(t: Trigger) -> str:
    given = f"Δ{label(t.event.relation)}" if t.event.kind == "Δ" else f"({', '.join(t.event.params)})"
    statements = "".join(f"  {statement_to_text(s, t.event.params, 2)};\n" for s in t.statements)
    return f"{EVENTS[t.event.kind]} {label(t.event.relation)} values {given} do {{\n{statements}}}"


def _result(r: Result) -> str:
    body = "".join(f"  {line};\n" for line in _result_lines(r))
    return f"result {label(r.name)} {{\n{body}}}"


def _result_lines(r: Result) -> Iterator[str]:
    for c in r.columns:
        yield f"column {_column(c)} := {c.term.text}"
    yield "one row" if r.rows is None else "rows" + _after(r.rows, 4, 2)
    for name, query in r.lookups:
        start = f"lookup {name} :="
        yield start + _after(query, len(start), 2)
    for e in r.extremes:
        place = "" if e.place is None else f" at {e.place.text}"
        start = f"extreme {e.var} := {e.end} {e.key}{place} of"
        yield start + _after(e.query, len(start), 2)
    yield from map(_gather, r.gathers)
    for query in r.single:
        yield "single" + _after(query, 6, 2)
    yield from map(_window, r.windows)
    if r.having is not None:
        yield f"having {r.having.text}"
    if not r.distinct:
        yield "as often as counted"
    yield from map(order_to_text, r.order)
    if r.limit is not None:
        yield f"limit {r.limit}"
    if r.offset:
        yield f"offset {r.offset}"
    if r.sql:
        yield f"sql {string(r.sql).text}"


def _gather(g: Gather) -> str:
    parts = [f"gather {g.var} := {g.term.text}", *["distinct"] * g.distinct]
    parts += [] if g.separator is None else [f"separated by {string(g.separator).text}"]
    start = " ".join([*parts, *map(order_to_text, g.order), "of"])
    return start + _after(g.query, len(start), 2)


def _window(w: RowWindow) -> str:
    """``window n := sum of (x) per (k) groups from -2 to 0 without ties peers 1 order by t order by x``"""
    arguments, partition = (", ".join(term.text for term in terms) for terms in (w.arguments, w.partition))
    sides = zip(("from", "to"), w.frame, strict=True)
    rows = "".join(f" {word} {side}" for word, side in sides if side is not None)
    order = "".join(f" {order_to_text(o)}" for o in w.order)
    rows += (f" without {w.excluded}" if w.excluded else "") + (f" peers {w.peers}" if w.peers else "")
    return f"window {w.var} := {w.function} of ({arguments}) per ({partition}) {w.unit}{rows}{order}"


def order_to_text(o: Order) -> str:
    return f"order{' descending' * o.descending}{' nulls first' * o.nulls_first} by {o.term.text}"


# -- from text ---------------------------------------------------------------------------------------------------------


def program_from_text(text: str) -> Program:
    return ProgramReader(text).program()


class ProgramReader(Reader):
    def program(self) -> Program:
        self.expect("strategy")
        strategy = self.line(self.label)
        self.expect("dialect")
        dialect = self.line(self.dialect)
        program = Program(
            relations=tuple(self.while_next(("stream", "table"), self.relation)),
            views=tuple(self.while_next(("view",), self.view)),
            triggers=tuple(self.while_next(("on",), self.trigger)),
            results=tuple(self.while_next(("result",), self.result)),
            strategy=strategy,
            dialect=dialect,
            source=self.optional_string("source"),
        )
        self.end()
        return program

    def while_next(self, words: tuple[str, ...], read: Callable[[], T]) -> Iterator[T]:
        while self.peek() in words:
            yield read()

    def line(self, read: Callable[[], T]) -> T:
        """``…;``"""
        value = read()
        self.expect(";")
        return value

    def optional_string(self, word: str) -> str:
        """``word '…';`` or nothing, which is the empty string."""
        return self.line(self.string) if self.take(word) else ""

    def number(self) -> Fraction:
        """An exact number, as constants of the calculus are written."""
        start = self.at
        match self.term():
            case Const(int() | Fraction() as value, "number"):
                return Fraction(value)
        self.fail("expected a number", start)

    def whole(self) -> int:
        start, value = self.at, self.number()
        return value.numerator if value.denominator == 1 else self.fail("expected a whole number", start)

    def dialect(self) -> Literal["sql", "paper"]:
        if self.take("sql"):
            return "sql"
        self.expect("paper")
        return "paper"

    # -- relations -----------------------------------------------------------------------------------------------------

    def relation(self) -> Relation:
        static = self.next() == "table"
        name = self.label()
        columns = self.listed(self.column, "(", ")")
        rate = self.number() if self.take("rate") else DEFAULT.rate
        rows = self.whole() if self.take("rows") else DEFAULT.rows
        distinct = self.listed(lambda: (self.label(), self.whole()), "(", ")") if self.take("distinct") else ()
        options = self.listed(lambda: (self.label(), self.string()), "(", ")") if self.take("with") else ()
        key = self.listed(self.label, "(", ")") if self.take("key") else ()
        unique = list[tuple[str, ...]]()
        while self.take("unique"):
            unique.append(self.listed(self.label, "(", ")"))
        of, unnests = (self.label(), self.string()) if self.take("of") else ("", "")
        stored = not self.take("unstored")
        self.expect(";")
        head = name, columns, static, rate, rows, dict(distinct), dict(options)
        return Relation(*head, key, tuple(unique), of, unnests, stored)

    def column(self) -> Column:
        name, type_, nullable = self.typed()
        default = self.string() if self.take("DEFAULT") else ""
        return Column(name, type_, nullable, self.string() if self.take("AS") else "", default)

    def typed(self) -> tuple[str, Type, bool]:
        """``name TYPE`` or ``name TYPE NOT NULL``; the last is whether it is nullable."""
        return self.label(), self.type(), not self.take("NOT", "NULL")

    def type(self) -> Type:
        type_ = self.one_type()
        while self.take("[", "]"):
            type_ = list_of(type_)
        return type_

    def one_type(self) -> Type:
        if self.take("UUID"):
            return UUID
        kind = next((kind for kind in get_args(TypeName) if self.take(kind)), None)
        match kind:
            case None:
                self.fail(f"expected a type, one of {', '.join(get_args(TypeName))}")
            case "DECIMAL":
                return decimal(*self.listed(self.whole, "(", ")"))
            case "ENUM":
                return enum(self.listed(self.string, "(", ")"))
            case "STRUCT":
                return struct_of(dict(self.listed(lambda: (self.label(), self.type()), "(", ")")))
            case "MAP":
                return map_of(*self.listed(self.type, "(", ")"))
        return TIMESTAMPTZ if self.take("WITH", "TIME", "ZONE") else Type(kind)

    # -- views and triggers --------------------------------------------------------------------------------------------

    def view(self) -> MapDefinition:
        self.expect("view")
        read = self.target()
        self.expect(":=")
        definition = self.query()
        fill = self.query() if self.take("fill") else None
        self.expect("why")
        why = self.line(self.string)
        return MapDefinition(read.name, read.inputs, read.outputs, definition, why, fill)

    def target(self) -> View:
        name = self.name()
        return View(name, self.listed(self.name, "[", "]"), self.listed(self.name, "[", "]"))

    def trigger(self) -> Trigger:
        event = self.event()
        self.expect("do", "{")
        statements = list[Statement]()
        while not self.take("}"):
            statements.append(self.line(lambda: self.statement(event.params)))
        return Trigger(event, tuple(statements))

    def event(self) -> Event:
        kind = next((kind for kind, words in EVENTS.items() if self.take(*words.split())), None)
        if kind is None:
            self.fail(f"expected one of {', '.join(EVENTS.values())}")
        relation = self.label()
        self.expect("values")
        if kind == "Δ":
            self.expect(*(["Δ", label(relation)] if label(relation) != relation else [f"Δ{relation}"]))
            return Event(kind, relation, ())
        return Event(kind, relation, self.listed(self.name, "(", ")"))

    def statement(self, params: tuple[str, ...]) -> Statement:
        buffered, late = self.take("buffered"), self.take("late")
        start, loops = self.at, self.loops()
        target = self.target()
        if loops != loop_variables(target, params):
            self.fail(f"foreach must name {', '.join(loop_variables(target, params)) or 'nothing'}", start)
        op: Literal["+=", ":="] = "+=" if self.take("+=") else ":="
        if op == ":=":
            self.expect(":=")
        return Statement(target, op, self.query(), buffered, late)

    def loops(self) -> tuple[str, ...]:
        return self.listed(self.name, "foreach", "do") if self.peek() == "foreach" else ()

    # -- results -------------------------------------------------------------------------------------------------------

    def result(self) -> Result:
        self.expect("result")
        name = self.label()
        self.expect("{")
        columns = tuple(self.while_next(("column",), self.result_column))
        rows = self.rows()
        lookups = tuple(self.while_next(("lookup",), self.lookup))
        extremes = tuple(self.while_next(("extreme",), self.extreme))
        gathers = tuple(self.while_next(("gather",), self.gather))
        single = tuple(self.while_next(("single",), self.single))
        windows = tuple(self.while_next(("window",), lambda: self.line(self.window)))
        having = self.line(self.term) if self.take("having") else None
        distinct = not self.take("as", "often", "as", "counted", ";")
        order = tuple(self.while_next(("order",), lambda: self.line(self.order)))
        limit = self.line(self.whole) if self.take("limit") else None
        offset = self.line(self.whole) if self.take("offset") else 0
        sql = self.optional_string("sql")
        self.expect("}")
        head = name, columns, rows, lookups, having, distinct, sql, extremes, order, limit, offset, gathers, single
        return Result(*head, windows)

    def single(self) -> Query:
        self.expect("single")
        return self.line(self.query)

    def order(self) -> Order:
        """``order descending nulls first by x``"""
        self.expect("order")
        descending, nulls_first = self.take("descending"), self.take("nulls", "first")
        self.expect("by")
        return Order(self.term(), descending, nulls_first)

    def result_column(self) -> ResultColumn:
        self.expect("column")
        name, kind, nullable = self.typed()
        self.expect(":=")
        return ResultColumn(name, kind, nullable, self.line(self.term))

    def rows(self) -> Query | None:
        if self.take("one", "row", ";"):
            return None
        self.expect("rows")
        return self.line(self.query)

    def lookup(self) -> tuple[str, Query]:
        self.expect("lookup")
        name = self.name()
        self.expect(":=")
        return name, self.line(self.query)

    def extreme(self) -> Extreme:
        """``extreme m := least k at n / 2 of Q;``"""
        self.expect("extreme")
        name = self.name()
        self.expect(":=")
        end: End = "least" if self.take("least") else "greatest"
        if end == "greatest":
            self.expect("greatest")
        key = self.name()
        place = self.term() if self.take("at") else None
        self.expect("of")
        return Extreme(name, end, key, self.line(self.query), place)

    def window(self) -> RowWindow:
        self.expect("window")
        var = self.name()
        self.expect(":=")
        function = next((f for f in ROW_FUNCTIONS if self.take(f)), ROW_FUNCTIONS[0])
        self.expect("of")
        arguments = self.listed(self.term, "(", ")")
        self.expect("per")
        partition = self.listed(self.term, "(", ")")
        unit: FrameUnit = "groups" if self.take("groups") else "rows"
        if unit == "rows":
            self.expect("rows")
        first, last = (self.signed() if self.take(word) else None for word in ("from", "to"))
        excluded = next((e for e in EXCLUDED if self.take("without", e)), None)
        peers = self.whole() if self.take("peers") else 0
        order = tuple(self.while_next(("order",), self.order))
        return RowWindow(var, function, arguments, partition, order, (first, last), unit, excluded, peers)

    def signed(self) -> int:
        return -self.whole() if self.take("-") else self.whole()

    def gather(self) -> Gather:
        """``gather l := x distinct separated by ',' order descending by y of Q;``"""
        self.expect("gather")
        name = self.name()
        self.expect(":=")
        term, distinct = self.term(), self.take("distinct")
        separator = self.string() if self.take("separated", "by") else None
        order = tuple(self.while_next(("order",), self.order))
        self.expect("of")
        return Gather(name, term, order, self.line(self.query), separator, distinct)
