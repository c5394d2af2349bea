"""Whole scripts: every view of a script into one program; equal auxiliary views are shared across views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from types import MappingProxyType
from typing import TypedDict

from viewlet.algebra.query import (
    ZERO,
    Join,
    Query,
    Rel,
    Sum,
    Union,
    View,
    factors,
    inputs,
    join,
    outputs,
    relations,
    sum_,
    union,
)
from viewlet.algebra.remembered import forget, uncollected
from viewlet.algebra.rewrite import rewrite
from viewlet.algebra.terms import Var
from viewlet.algebra.verify import verify
from viewlet.compiler.aggregates import SUMS_OF_GROUPS, as_count, only_tested, shows_all
from viewlet.compiler.alike import with_one_of_each
from viewlet.compiler.catalog import Catalog
from viewlet.compiler.context import Context
from viewlet.compiler.finish import apart, may_multiply, only_where, rows_apart, with_maps
from viewlet.compiler.narrow import narrow
from viewlet.compiler.order import CircularError, depth, order_statements
from viewlet.compiler.reuse import Reuse
from viewlet.compiler.search import cheapest_choices, total_cost
from viewlet.compiler.simplify import simplify
from viewlet.compiler.strategy import CLASSICAL, OPTIMIZED, PARTS, Choice, Strategy, strategy_named
from viewlet.compiler.transform import Compilation
from viewlet.compiler.unread import cut
from viewlet.compiler.wide import is_star, is_wide
from viewlet.errors import Error
from viewlet.loops.cost_class import growth
from viewlet.program.trigger import Event, Program, Result, Script, Statement, Trigger
from viewlet.program.verify import verify_program
from viewlet.schema import Relation


class RelationStatistics(TypedDict, total=False):
    """What is known of a relation's traffic; overrides what the script declares."""

    rate: float
    rows: int
    distinct: Mapping[str, int]


Statistics = Mapping[str, RelationStatistics]
MORE_LEVELS = 4  # of nesting, that a map may have beyond those of the views; one by values has some


@dataclass(frozen=True)
class Start:
    """What a compilation is told beside the views and the strategy; see :class:`Compilation`."""

    ordered: bool
    counted: bool
    by_value: bool = True


WHOLE_PROGRAMS = (
    OPTIMIZED,
    PARTS,
    CLASSICAL,
)  # beside what the search puts together; the first is the measure of growth


def compile_query(
    name: str, q: Query, schema: Sequence[Relation], strategy: str = "optimized", *, ordered: bool = True
) -> Program:
    """VT of one query of the calculus: the form in which the paper gives its examples."""
    program = _compile(tuple(schema), (Result(name, (), q),), strategy, ordered, counted=False)
    forget()
    return program


@uncollected()
def compile_script(
    script: Script, strategy: str = "optimized", statistics: Statistics | None = None, *, ordered: bool = True
) -> Program:
    """The trigger program of a script under one of the five strategies."""
    schema = tuple(_informed(r, statistics or {}) for r in script.relations)
    unknown = sorted(set(statistics or {}) - {r.name for r in schema})
    if unknown:
        raise Error(f"statistics for {unknown[0]!r}, which the script does not create")
    read, results = cut(schema, script.results)
    program = read.undone(_compile(read.relations, results, strategy, ordered, counted=True))
    forget()
    return replace(program, dialect=script.dialect, source=script.source)


def _informed(relation: Relation, statistics: Statistics) -> Relation:
    known = statistics.get(relation.name, {})
    return replace(
        relation,
        rate=Fraction(known.get("rate", relation.rate)),
        rows=known.get("rows", relation.rows),
        distinct=MappingProxyType({**relation.distinct, **known.get("distinct", {})}),
    )


def _compile(
    schema: tuple[Relation, ...], results: tuple[Result, ...], name: str, ordered: bool, counted: bool
) -> Program:
    try:
        return _planned(schema, results, strategy_named(name), Start(ordered, counted))
    except CircularError:  # maps that are kept by the values of groups may be each other's source, or go on for ever
        return _planned(schema, results, strategy_named(name), Start(ordered, counted, by_value=False))


def _planned(schema: tuple[Relation, ...], results: tuple[Result, ...], strategy: Strategy, start: Start) -> Program:
    if not strategy.search:
        return _compiled(schema, results, strategy, {}, start)
    plain = replace(start, by_value=False)  # the search would go into every map by values that no program needs
    scratch, _ = _start(schema, results, strategy, {}, plain)
    searched = _compiled(schema, results, strategy, cheapest_choices(scratch), plain)
    others = [_compiled(schema, results, replace(s, name=strategy.name), {}, start) for s in WHOLE_PROGRAMS]
    most = growth(others[0])  # estimates are for the sizes that are declared, a class is for those to come
    fit = (program for program in (searched, *others) if growth(program) <= most)
    return min(fit, key=lambda program: program.statistics["total"])


def _compiled(
    schema: tuple[Relation, ...],
    results: tuple[Result, ...],
    strategy: Strategy,
    choices: Mapping[tuple[str, str], Choice],
    start: Start,
) -> Program:
    compilation, roots = _start(schema, results, strategy, choices, start)
    compilation.run()
    compilation.trace.normal_forms.clear()
    program = Program(
        schema,
        tuple(compilation.catalog.views.values()),
        _triggers(compilation),
        roots,
        strategy.name,
        ordered=start.ordered,
        trace=compilation.trace,
    )
    verify_program(program)
    return replace(program, statistics=_Estimate(lambda: total_cost(program, compilation.cache_domains)))


class _Estimate(Mapping[str, float]):
    """§5.1's costs of a program, estimated when somebody looks: a view that is just created is not to wait for them."""

    def __init__(self, estimate: Callable[[], Mapping[str, float]]) -> None:
        self._estimate = estimate

    @cached_property
    def _costs(self) -> Mapping[str, float]:
        return self._estimate()

    def __getitem__(self, name: str) -> float:
        return self._costs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._costs)

    def __len__(self) -> int:
        return len(self._costs)


def _start(
    schema: tuple[Relation, ...],
    results: tuple[Result, ...],
    strategy: Strategy,
    choices: Mapping[tuple[str, str], Choice],
    start: Start,
) -> tuple[Compilation, tuple[Result, ...]]:
    catalog = Catalog(reserved=frozenset(r.name for r in schema))
    compilation = Compilation(schema, strategy, catalog, choices=choices, **vars(start))
    roots = tuple(_root(compilation, r) for r in results)
    compilation.deepest = max((depth(view.definition) for view in catalog.views.values()), default=0) + MORE_LEVELS
    return compilation, roots


def _root(compilation: Compilation, result: Result) -> Result:
    """The result with its definitions replaced by reads of views."""
    finished = _finished_when_read(compilation, result)
    if finished is not None:
        return finished
    wide = is_wide(result, compilation.static)
    star = compilation.strategy.row_by_row and not wide and is_star(result, compilation.static)
    tested = only_tested(result) if compilation.counted else frozenset[str]()

    def root(name: str, q: Query, why: str, tested: bool = False) -> Query:
        compilation.trace.place = name
        definition = _defined(compilation, q, tested)
        if definition == ZERO:
            definition = q  # a view that stays empty still has its columns
        verify(definition, "definition", where=name)
        view = compilation.catalog.root(name, definition, why)
        if wide:
            compilation.wide.add(view.name)
        if star:
            compilation.stars.add(view.name)
        return view

    is_set = result.distinct and compilation.counted and not shows_all(result)
    rows = None if result.rows is None else root(result.name, result.rows, f"the rows of {result.name}", is_set)

    def read(name: str, q: Query, why: str, tested: bool) -> Query:
        """Sum_A(Q ⋈ [b <= c]), c being of the row: a map of Sum_{A, b}(Q), and the part of it that a row asks for."""
        if not inputs(q):
            return root(name, q, why, tested)
        group, body = (q.group, q.query) if isinstance(q, Sum) else (outputs(q), q)
        asked = [f for f in factors(body) if inputs(f) & inputs(q)]
        kept = join(*(f for f in factors(body) if f not in asked))
        compared = frozenset().union(*map(inputs, asked))
        view = root(name, sum_(group | (compared & outputs(kept)), kept), why)
        return union(*(sum_(group, join(view, case)) for case in _cases(join(*asked))))

    lookups = tuple(
        (var, read(f"{result.name}_{var}", q, f"an aggregate of {result.name}", var in tested))
        for var, q in result.lookups
    )
    extremes = tuple(
        replace(e, query=root(f"{result.name}_{e.var}", e.query, f"the values of a MIN or MAX of {result.name}"))
        for e in result.extremes
    )
    gathers = tuple(
        replace(g, query=root(f"{result.name}_{g.var}", g.query, f"the values of a list of {result.name}"))
        for g in result.gathers
    )
    why = f"how many rows a subquery of {result.name} has that is used as a value"
    single = tuple(root(f"{result.name}_single", q, why) for q in result.single)
    return replace(result, rows=rows, lookups=lookups, extremes=extremes, gathers=gathers, single=single)


def _finished_when_read(compilation: Compilation, result: Result) -> Result | None:
    """The result over maps that its readers multiply; None where one of its numbers is no product."""
    unfit = not compilation.counted or not may_multiply(result) or is_wide(result, compilation.static)
    if unfit or any(inputs(q) for _, q in result.lookups):
        return None
    context = Context(static=compilation.static, strategy=compilation.strategy, counted=True)
    tested = only_tested(result)
    compilation.trace.place = result.name
    lookups = {var: apart(_defined(compilation, q, var in tested), context) for var, q in result.lookups}
    rows = None if result.rows is None else _defined(compilation, result.rows, result.distinct)
    split = None if rows is None or not result.distinct else rows_apart(rows, context)
    if None in lookups.values() or rows == ZERO or (split is None and not lookups):
        return None

    def factor(name: str, q: Query) -> View:
        verify(q, "definition", where=name)
        why = f"a factor of {name}, which readers multiply"
        return compilation.catalog.root("_".join([name, *sorted(relations(q))]), q, why, result.name)

    def read(var: str, parts: Query) -> Query:
        compilation.trace.record("finished_when_read", "Figure 2 (1) at the root", Var(var), parts)
        return with_maps(parts, partial(factor, f"{result.name}_{var}"))

    keys, others = (rows, []) if split is None else split
    view = None if keys is None else compilation.catalog.root(result.name, keys, f"the rows of {result.name}")
    compilation.catalog.serves.setdefault(result.name, result.name)
    named = tuple((var, read(var, parts)) for var, parts in lookups.items() if parts is not None)
    compiled = replace(result, rows=view, lookups=named)
    return only_where(compiled, [with_maps(q, partial(factor, result.name)) for q in others])


def _defined(compilation: Compilation, q: Query, tested: bool) -> Query:
    """Q as the definition of a map; ``tested``: its readers only ask where it is 0."""
    context, trace = Context(static=compilation.static, counted=compilation.counted), compilation.trace
    definition = rewrite(simplify(narrow(q), context, trace), SUMS_OF_GROUPS, context, trace)
    definition = simplify(definition, context, trace)
    definition = simplify(as_count(definition), context, trace) if tested else definition
    return with_one_of_each(definition, compilation.alike)


def _cases(q: Query) -> list[Query]:
    """Q₁ ⋈ (Q₂ + Q₃) as Q₁ ⋈ Q₂ and Q₁ ⋈ Q₃, so that each case has its own access path."""
    if isinstance(q, Union):
        return [case for branch in q.branches for case in _cases(branch)]
    if isinstance(q, Join):
        return [join(*cases) for cases in product(*map(_cases, factors(q)))]
    return [q]


def _triggers(compilation: Compilation) -> tuple[Trigger, ...]:
    everything = union(*(Rel(r.name, ()) for r in compilation.relations))
    reuse = Reuse(compilation.trace)

    def statements(event: Event) -> list[Statement]:
        compiled = compilation.statements[event]
        return reuse.statements(compiled, event) if compilation.strategy.depth == "recursive" else compiled

    return tuple(
        Trigger(event, order_statements(statements(event), compilation.catalog.views))
        for events in compilation.events(everything)
        for event in events
        if event in compilation.statements
    )
