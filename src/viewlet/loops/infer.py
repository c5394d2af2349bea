"""The kind of every column, multiplicity and name of a program: how a machine can hold its values exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from typing_extensions import assert_never

from viewlet.algebra.evaluate import join_order
from viewlet.algebra.query import (
    Bind,
    Compare,
    Delta,
    Exists,
    Join,
    Materialize,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    View,
    children,
)
from viewlet.algebra.terms import Const, Term
from viewlet.loops.names import columns_of
from viewlet.loops.steps import (
    Add,
    Block,
    EachGroup,
    EachSlice,
    Emit,
    Extremum,
    Get,
    Group,
    InRun,
    Let,
    Loop,
    Nonzero,
    Order,
    Product,
    Put,
    RangeSum,
    Runs,
    Same,
    Test,
    Total,
)
from viewlet.program.kinds import (
    COUNT,
    DOUBLE,
    NULL,
    ONE,
    REAL,
    WIDEST,
    Env,
    Exact,
    Inexact,
    Kind,
    Other,
    Unfit,
    both,
    column_kind,
    either,
    is_double,
    key_kind,
    plus,
    term_kind,
    times,
)
from viewlet.program.trigger import MapDefinition, Program


@dataclass
class Kinds:
    """``columns``: of each relation and view (inputs first); ``values``: of each view's multiplicities."""

    columns: dict[str, tuple[Kind, ...]] = field(default_factory=dict)
    values: dict[str, Kind] = field(default_factory=dict)

    # -- queries: the kinds of the outputs, and of the multiplicity ----------------------------------------------------

    def query(self, q: Query, env: Env) -> tuple[dict[str, Kind], Kind]:
        match q:
            case Rel(name, names) | Delta(name, names):
                return _named(names, self.columns[name]), COUNT
            case View(name, ins, outs):
                return _named(ins + outs, self.columns[name]), self.values[name]
            case Value(term):
                return {}, factor_kind(term, env)
            case Compare():
                return {}, ONE
            case Bind(var, Value(term)):
                return {var: term_kind(term, env)}, ONE
            case Bind(var, inner):
                return {var: self.query(inner, env)[1]}, ONE
            case Exists(inner):
                return self.query(inner, env)[0], ONE
            case Sum(group, inner):
                kinds, value = self.query(inner, env)
                return {v: k for v, k in kinds.items() if v in group}, _summed(value, is_count(inner))
            case Join(parts):
                return self._join(parts, env)
            case Union(parts):
                return self._union(parts, env)
            case Materialize():
                raise ValueError(f"{q.text} is not decided yet")
            case _:
                assert_never(q)

    def _join(self, parts: tuple[Query, ...], env: Env) -> tuple[dict[str, Kind], Kind]:
        columns: dict[str, Kind] = {}
        values = []
        for part in join_order(parts, frozenset(env)):
            kinds, value = self.query(part, {**env, **columns})
            columns |= {v: both(columns[v], k) if v in columns else k for v, k in kinds.items()}
            values.append(value)
        return columns, times(values)

    def _union(self, parts: tuple[Query, ...], env: Env) -> tuple[dict[str, Kind], Kind]:
        branches = [self.query(part, env) for part in parts]
        names = frozenset[str]().union(*(kinds for kinds, _ in branches))
        columns = {v: either([kinds.get(v) or env[v] for kinds, _ in branches]) for v in names}
        return columns, plus([value for _, value in branches])

    # -- views ---------------------------------------------------------------------------------------------------------

    def define(self, view: MapDefinition, inputs: tuple[Kind, ...] = ()) -> None:
        given = dict(zip(view.inputs, inputs, strict=True))
        try:
            kinds, value = self.query(view.definition, given)
            self.values[view.name] = COUNT if is_count(view.definition) else _summed(value, False)
        except Unfit as unfit:
            raise Unfit(f"in {view.name}: {unfit}") from None
        self.columns[view.name] = inputs + tuple(key_kind(kinds[v]) for v in view.outputs)

    # -- loop nests ----------------------------------------------------------------------------------------------------

    def block(self, block: Block, env: Env) -> dict[str, Kind]:
        """Every name of a loop nest and its kind; a total or group is there by its own name."""
        kinds = dict(env)
        for step in block:
            match step:
                case Let(var, term, _):
                    _merge(kinds, var, term_kind(term, kinds))
                case Get(source, value, body):
                    kinds[value] = self.multiplicity(source)
                    kinds = self.block(body, kinds)
                case Loop(source, bound, value, body, order):
                    kinds[value] = self.multiplicity(source)
                    self.open_columns(source, bound, kinds)
                    self.inner_keys(order, kinds)
                    kinds = self.block(body, kinds)
                case EachSlice(source, bound, _, _, body):
                    self.open_columns(source, bound, kinds)
                    kinds = self.block(body, kinds)
                case RangeSum(var, source, bound, order):
                    self.open_columns(source, bound, kinds)
                    self.inner_keys(order, kinds)
                    kinds[var] = _summed(self.multiplicity(source), False)
                case Runs(var, source, bound, key, _, total, _):
                    self.open_columns(source, bound, kinds)
                    kinds[total] = _summed(self.multiplicity(source), False)
                    kinds[var] = kinds[key]
                case Extremum(var, source, bound, key, _):
                    self.open_columns(source, bound, kinds)
                    kinds[var] = kinds[key]
                case Total(var, body) | Group(var, body):
                    kinds = self.block(body, kinds)
                    kinds[var] = _total(var, body, kinds)
                case EachGroup(name, _, body, value):
                    kinds |= {value: kinds[name]} if value else {}
                    kinds = self.block(body, kinds)
                case Same(_, _, _, body) | Test(_, _, _, body) | Nonzero(_, body):
                    kinds = self.block(body, kinds)
                case Add() | Put() | Emit():
                    pass
                case _:
                    assert_never(step)
        return kinds

    def open_columns(self, source: Rel | Delta | View, bound: frozenset[str], kinds: dict[str, Kind]) -> None:
        """The kinds of the columns that a read gives values to."""
        for var, kind in _named(columns_of(source), self.columns[source.name]).items():
            if var not in bound:
                _merge(kinds, var, kind)

    def inner_keys(self, order: Order | None, kinds: dict[str, Kind]) -> None:
        """What the conditions of runs call the runs' keys."""
        for cut in (cut for cuts in order.ranges for cut in cuts) if order else ():
            if isinstance(cut, InRun):
                kinds[cut.inner] = kinds[cut.runs]

    def multiplicity(self, source: Rel | Delta | View) -> Kind:
        return self.values[source.name] if isinstance(source, View) else COUNT


def product_kind(product: Product, env: Env) -> Kind:
    return times([factor_kind(f.term, env) for f in product])


def factor_kind(term: Term, env: Env) -> Kind:
    """A factor that is NULL counts 0."""
    kind = term_kind(term, env)
    return ONE if kind == NULL else kind


def _total(name: str, body: Block, env: Env) -> Kind:
    """What the steps that add to ``name`` come to; in a loop, as much as a number can hold."""
    added = list(additions(name, body))
    if not added:
        return ONE
    kind = plus([product_kind(product, env) for product, _ in added])
    return _summed(kind, False) if any(looped for _, looped in added) else kind


def additions(name: str, block: Block, looped: bool = False) -> Iterator[tuple[Product, bool]]:
    """What the steps of a block add to a total or group, and whether in a loop."""
    for step in block:
        match step:
            case Add(var, product) if var == name:
                yield product, looped
            case Put(var, _, product) if var == name:
                yield product, True
            case Loop(body=body) | EachSlice(body=body) | EachGroup(body=body):
                yield from additions(name, body, True)
            case Same(body=body) | Test(body=body) | Get(body=body) | Total(body=body):
                yield from additions(name, body, looped)
            case Nonzero(body=body) | Group(body=body):
                yield from additions(name, body, looped)
            case _:
                pass


def _merge(kinds: dict[str, Kind], var: str, kind: Kind) -> None:
    """The branches of a union may give one name values of two kinds."""
    kinds[var] = either([kinds[var], kind]) if var in kinds else kind


def _named(names: tuple[str, ...], kinds: tuple[Kind, ...]) -> dict[str, Kind]:
    by_name: dict[str, Kind] = {}
    for name, kind in zip(names, kinds, strict=True):
        by_name[name] = both(by_name[name], kind) if name in by_name else kind
    return by_name


def _summed(kind: Kind, count: bool) -> Kind:
    match kind:
        case Exact(scale, _):
            return COUNT if count else Exact(scale, WIDEST)
        case Inexact():
            return REAL
        case Other():
            raise Unfit(f"a sum of {kind.name}s")


def is_count(q: Query) -> bool:
    """The multiplicities count rows: no value of a column is among the factors."""
    match q:
        case Value(term):
            return isinstance(term, Const) and isinstance(term.value, int)
        case Bind() | Exists() | Compare() | Rel() | Delta():
            return True
        case View():
            return False
        case _:
            return all(map(is_count, children(q)))


def program_kinds(program: Program) -> Kinds:
    """The kinds of all relations and views; the inputs of a view cache have those of the values it is read with."""
    kinds = Kinds({r.name: tuple(column_kind(c.type) for c in r.columns) for r in program.relations})
    for view in program.views:
        if not view.is_cache:
            kinds.define(view)
    caches = {v.name: v for v in program.views if v.is_cache}
    while caches:
        before = dict(kinds.columns)
        for q, env in _readers(program, kinds):
            _read_caches(q, env, caches, kinds)
        if kinds.columns == before:
            break
    if missing := [name for name in caches if name not in kinds.columns]:
        raise Unfit(f"nothing reads the view cache {', '.join(missing)}")
    return kinds


def _readers(program: Program, kinds: Kinds) -> Iterator[tuple[Query, Env]]:
    for trigger in program.triggers:
        params = dict(zip(trigger.event.params, kinds.columns[trigger.event.relation], strict=False))
        for statement in trigger.statements:
            target = statement.target
            if target.name in kinds.columns:
                yield statement.expression, params | dict(zip(target.inputs, kinds.columns[target.name], strict=False))
    for view in program.views:
        if view.fill is not None and view.name in kinds.columns:
            yield view.fill, dict(zip(view.inputs, kinds.columns[view.name], strict=False))


def _read_caches(q: Query, env: Env, caches: Mapping[str, MapDefinition], kinds: Kinds) -> None:
    """Learn the kinds of cache inputs from the reads in Q where ``env`` is bound."""
    if isinstance(q, View):
        if q.name in caches:
            known = kinds.columns.get(q.name, (NULL,) * len(q.inputs))
            given = tuple(_asked(a, env[v]) for a, v in zip(known, q.inputs, strict=False))
            if known[: len(given)] != given or q.name not in kinds.columns:
                kinds.define(caches[q.name], given)
        return
    if not isinstance(q, Join):
        for child in children(q):
            _read_caches(child, env, caches, kinds)
        return
    inside = dict(env)
    for part in join_order(q.factors, frozenset(env)):
        _read_caches(part, inside, caches, kinds)
        for v, k in kinds.query(part, inside)[0].items():
            inside[v] = both(inside[v], k) if v in inside else k


def _asked(known: Kind, given: Kind) -> Kind:
    """What a view cache is asked for with values of both kinds: some integers are doubles."""
    if DOUBLE in (known, given) and (is_double(known) or is_double(given)):
        return DOUBLE
    return either([known, given])
