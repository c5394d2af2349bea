"""The narrow waist: a compiled script, as engines run it and pages print or draw it.

Everything to the left of a :class:`Program` knows nothing of engines, everything to the right nothing of SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

from viewlet.algebra.query import Query, View
from viewlet.algebra.rewrite import Trace
from viewlet.algebra.terms import Term, op
from viewlet.program.nodes import Graph
from viewlet.schema import Dialect, Relation, Type


@dataclass(frozen=True, slots=True)
class Event:
    """What fires a trigger: ``+`` and ``-`` are single-tuple updates ±R(x⃗); ``Δ`` is a bulk update, a whole GMR."""

    kind: Literal["+", "-", "Δ"]
    relation: str
    params: tuple[str, ...]  # for "Δ": none, the update is the relation-valued parameter itself

    @property
    def sign(self) -> int:
        return -1 if self.kind == "-" else 1

    def __str__(self) -> str:
        return f"{self.kind}{self.relation}({', '.join(self.params)})" if self.params else f"{self.kind}{self.relation}"


@dataclass(frozen=True, slots=True)
class MapDefinition:
    """A materialised view M_Q[x_in][x_out]. ``inputs`` are empty but for a view cache (§5.1).

    ``fill`` says how a view cache computes the entry of an input that it does not hold yet: a query over other views.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    definition: Query
    why: str
    fill: Query | None = None

    @property
    def is_cache(self) -> bool:
        return self.fill is not None

    @property
    def read(self) -> View:
        return View(self.name, self.inputs, self.outputs)


@dataclass(frozen=True, slots=True)
class Statement:
    """``target += expression`` (an increment, reads old versions) or ``target := expression`` (reads new ones).

    ``buffered``: no order of the statements lets every read see the version it needs, so the expression is evaluated
    before the trigger's first statement is applied, and applied where the statement stands.

    ``late``: an increment that refreshes some groups only, Q[k] += D[k] ⋈ (Q'[k] − Q[k]), or Q[@p] += Q'[@p] − Q[@p].
    Like a replacement it reads new versions, but for its own.
    """

    target: View
    op: Literal["+=", ":="]
    expression: Query
    buffered: bool = False
    late: bool = False

    @property
    def reads_new(self) -> bool:
        return self.op == ":=" or self.late

    def __str__(self) -> str:
        return f"{self.target.text} {self.op} {self.expression.text}"


@dataclass(frozen=True, slots=True)
class Trigger:
    """The statements that refresh every view when ``event`` happens, in an order that is right.

    Buffered statements are all evaluated before the first statement is applied.
    """

    event: Event
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a SQL view: ``term`` over the result's keys and looked-up values."""

    name: str
    type: Type
    nullable: bool
    term: Term


End = Literal["least", "greatest"]


@dataclass(frozen=True, slots=True)
class Extreme:
    """SQL's MIN and MAX at the top of a view: ``var`` is the least or greatest ``key`` that a row's group has.

    With a ``place``, a term over the variables before it, ``var`` is the first key, from that end on, up to which there
    are more rows than ``place`` says: a quantile. It is NULL where there are no more, and where ``place`` is NULL.

    ``query`` gives ``key`` and some of the result's key variables; its multiplicities count rows. The group has the
    keys whose multiplicity is not 0 where those variables agree with the row, and ``var`` is NULL where it has none.
    One of the variables may be that of an earlier extreme: ARG_MAX(x, y) is the least x under the greatest y.
    An insert or delete changes only the count; a read looks at one end, or goes down the tree by the counts in it.
    NULL is never a key.
    """

    var: str
    end: End
    key: str
    query: Query
    place: Term | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """One term of an ORDER BY. NaN is the greatest number, and texts go by code points."""

    term: Term
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Gather:
    """SQL's LIST and STRING_AGG at the top of a view: ``var`` is all that ``term`` is in a row's group, in ``order``.

    ``query`` gives some of the result's key variables and further ones, which ``term`` and ``order`` are over. Its
    multiplicities count how often a value is there; ``distinct``: it counts once. A ``separator`` makes one text of
    texts, and without one they are a list. ``var`` is NULL where the group has no entry.
    An insert or delete changes only the count; a read sorts the group.
    """

    var: str
    term: Term
    order: tuple[Order, ...]
    query: Query
    separator: str | None = None
    distinct: bool = False


RowFunction = Literal["row_number", "ntile", "lag", "lead", "sum", "count", "min", "max", "nth_value"]
ROW_FUNCTIONS: tuple[RowFunction, ...] = get_args(RowFunction)
FrameUnit = Literal["rows", "groups"]
Excluded = Literal["current", "group", "ties"]
EXCLUDED: tuple[Excluded, ...] = get_args(Excluded)


@dataclass(frozen=True, slots=True)
class RowWindow:
    """A window function that goes by the numbers of rows: ``var`` is its value for each copy of a row.

    Rows that agree in the terms of ``partition`` are sorted by ``order``; those that agree in all of its terms are
    copies of one row. Rows that agree in the first ``peers`` terms are a group. ``frame`` says from how many rows (or
    groups, as ``unit`` has it) behind this one, to how many; None is without an end. ``excluded`` is what it lacks: the
    row itself, its group, or the others of its group.
    """

    var: str
    function: RowFunction
    arguments: tuple[Term, ...] = ()
    partition: tuple[Term, ...] = ()
    order: tuple[Order, ...] = ()
    frame: tuple[int | None, int | None] = (None, None)
    unit: FrameUnit = "rows"
    excluded: Excluded | None = None
    peers: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """How the rows of a SQL view are read off its ring-valued maps: what is not linear at the top happens here.

    ``rows`` enumerates the row keys (its outputs, which are variables of the terms); its multiplicity counts the
    underlying rows, and a key is there while that is not 0. ``rows`` is None for an aggregate without GROUP BY: exactly
    one row. ``lookups`` give further variables: the multiplicity of a closed query at the row's key (0 where absent);
    the outputs of each are among the key variables. ``extremes``, ``gathers`` and ``windows`` give more. ``having``, if
    any, must be TRUE. ``distinct``: a key is one row; else it is as many rows as its multiplicity.

    ``order`` is how rows follow one another. Rows that agree in all of its terms are equal rows, so that the first
    ``limit`` after ``offset`` rows are a function of the data.

    ``single`` count the rows of subqueries that are used as values: an update that gives one of them a second row is
    refused (:func:`viewlet.program.limits.limits`).

    Before compilation all of these queries are definitions, after it reads of views.
    """

    name: str
    columns: tuple[ResultColumn, ...]
    rows: Query | None
    lookups: tuple[tuple[str, Query], ...] = ()
    having: Term | None = None
    distinct: bool = True
    sql: str = ""
    extremes: tuple[Extreme, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    gathers: tuple[Gather, ...] = ()
    single: tuple[Query, ...] = ()
    windows: tuple[RowWindow, ...] = ()

    @property
    def is_cut(self) -> bool:
        """Whether a row depends on all others: some may be left out, or they are numbered."""
        return self.limit is not None or self.offset > 0 or bool(self.windows)

    def column_of(self, order: Order) -> ResultColumn | None:
        """The first column that shows what an order goes by; a DOUBLE is rounded where it is shown."""
        return next((c for c in self.columns if order.term in (c.term, op("double", c.term))), None)

    @property
    def reads(self) -> tuple[Query, ...]:
        """Every query that a row is read off."""
        rows = () if self.rows is None else (self.rows,)
        ends = (*(e.query for e in self.extremes), *(g.query for g in self.gathers))
        return (*rows, *(q for _, q in self.lookups), *ends)


@dataclass(frozen=True)
class Script:
    """What the SQL front end hands to the compiler."""

    relations: tuple[Relation, ...]
    results: tuple[Result, ...]
    dialect: Dialect = "sql"
    source: str = ""


@dataclass(frozen=True)
class Program:
    """A compiled script: the maps to keep, the triggers that keep them fresh, and how rows are read off them.

    :func:`compile` makes one. ``print(program)`` shows it in the paper's notation. ``statistics`` holds the cost that
    the strategy ``cost`` expects.
    """

    relations: tuple[Relation, ...]
    views: tuple[MapDefinition, ...]
    triggers: tuple[Trigger, ...]
    results: tuple[Result, ...]
    strategy: str
    dialect: Dialect = "sql"
    source: str = ""
    ordered: bool = True  # False: without ordered access paths, as in the paper
    trace: Trace = field(default_factory=Trace, compare=False)
    statistics: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), compare=False)

    def relation(self, name: str) -> Relation:
        """The stream or table of this name."""
        return next(r for r in self.relations if r.name == name)

    def view(self, name: str) -> MapDefinition:
        """The kept map of this name."""
        return next(v for v in self.views if v.name == name)

    def result(self, name: str) -> Result:
        """The SQL view of this name."""
        return next(r for r in self.results if r.name == name)

    def to_text(self) -> str:
        """The program in the paper's notation (Figure 4). :meth:`from_text` reads it back."""
        from viewlet.program.text import program_to_text

        return program_to_text(self)

    @staticmethod
    def from_text(text: str) -> Program:
        """Read a program that :meth:`to_text` wrote."""
        from viewlet.program.text import program_from_text

        return program_from_text(text)

    def cpp(self) -> str:
        """The C++ that the native engine runs."""
        from viewlet.program.sources import source_of

        return source_of(self, "cpp")

    def graph(self) -> Graph:
        """Which maps there are, and which of them each one is refreshed from."""
        from viewlet.program.graph import graph

        return graph(self)

    def __str__(self) -> str:
        return self.to_text()
