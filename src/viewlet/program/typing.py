"""Static kinds: for every variable, key and multiplicity of a program, how a machine can hold its values exactly.

An exact number is an integer of last places: DECIMAL(12,2) 3.14 is 314 with scale 2. Kinds carry a bound on the
integer, so that an engine knows where 64 bits do, where it takes 128, and where an overflow must be watched for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

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
from viewlet.algebra.terms import COMPARISONS, Const, Op, Term, Var
from viewlet.program.loops import (
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
from viewlet.program.names import columns_of
from viewlet.program.trigger import ViewDefinition
from viewlet.schema import Type

COUNT_BITS, WIDEST, DOUBLE_BITS = 63, 127, 53
MOST_PLACES = 38
DIGIT_BITS = 3.3219280948873626  # log₂ 10


class Unfit(Exception):
    """A program that is not for machine code, as fixed-width numbers cannot hold it; generated Python still runs it."""


@dataclass(frozen=True, slots=True)
class Exact:
    """integer × 10^-scale with |integer| ≤ 2^bits."""

    scale: int
    bits: int

    def __str__(self) -> str:
        return f"a number with {self.scale} digits after the point" if self.scale else "an integer"


@dataclass(frozen=True, slots=True)
class Inexact:
    """``double``: one IEEE double. ``real``: sums and products of doubles, which have more digits than one."""

    name: Literal["double", "real"]

    def __str__(self) -> str:
        return "a double" if self.name == "double" else "a sum or product of doubles"


@dataclass(frozen=True, slots=True)
class Other:
    """``null`` is the kind of NULL alone: every other kind holds it."""

    name: Literal["text", "boolean", "null"]

    def __str__(self) -> str:
        return "NULL" if self.name == "null" else f"a {self.name}"


Kind = Exact | Inexact | Other
Env = Mapping[str, Kind]

COUNT, ONE = Exact(0, COUNT_BITS), Exact(0, 1)
DOUBLE, REAL = Inexact("double"), Inexact("real")
TEXT, BOOLEAN, NULL = Other("text"), Other("boolean"), Other("null")


# -- kinds of values ---------------------------------------------------------------------------------------------------


def column_kind(type_: Type) -> Kind:
    match type_.kind:
        case "BOOLEAN":
            return BOOLEAN
        case "VARCHAR":
            return TEXT
        case "DOUBLE":
            return DOUBLE
        case "INTEGER" | "DATE":
            return Exact(0, 32)
        case "BIGINT" | "TIMESTAMP":
            return Exact(0, 63)
        case "DECIMAL":
            return Exact(type_.scale, int(type_.precision * DIGIT_BITS) + 1)


def constant_kind(value: object) -> Kind:
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case str():
            return TEXT
        case int():
            return _exact(0, value.bit_length())
        case Fraction():
            places = decimal_places(value)
            return REAL if places is None else _exact(places, abs(value * 10**places).__ceil__().bit_length())
    raise Unfit(f"{value!r} is no scalar")


def decimal_places(value: Fraction) -> int | None:
    """How many digits after the point write a fraction out; None where it never ends."""
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 and max(twos, fives) <= MOST_PLACES else None


def term_kind(term: Term, env: Env) -> Kind:
    match term:
        case Const(value):
            return constant_kind(value)
        case Var(name):
            return env[name]
        case Op(name, args):
            return _operator_kind(name, [term_kind(a, env) for a in args])


def _operator_kind(name: str, args: list[Kind]) -> Kind:
    if name in COMPARISONS or name in ("and", "or", "not", "is_null"):
        return BOOLEAN
    if name == "case":
        return either([*args[1::2], args[-1]])
    if name == "coalesce":
        return either(args)
    if NULL in args:
        return NULL
    match name:
        case "*":
            return times(args)
        case "+" | "-":
            return plus(args)
        case "/":
            return REAL
        case "double":
            return DOUBLE
        case "add_months":
            return Exact(0, 63)
        case "abs":
            return plus([args[0], args[0]]) if isinstance(args[0], Exact) else args[0]
    raise Unfit(f"no kind for {name}")


def times(kinds: list[Kind]) -> Kind:
    """The product of factors, 1 where there are none."""
    if len(kinds) == 1:
        return kinds[0]
    if any(isinstance(k, Inexact) for k in kinds):
        return REAL
    exact = [_number(k) for k in kinds]
    return _exact(sum(k.scale for k in exact), sum(k.bits for k in exact) or 1)


def plus(kinds: list[Kind]) -> Kind:
    """A sum of as many terms."""
    if len(kinds) == 1:
        return kinds[0]
    if any(isinstance(k, Inexact) for k in kinds):
        return REAL
    exact = [_number(k) for k in kinds]
    scale = max(k.scale for k in exact)
    bits = max(scaled_bits(k, scale) for k in exact)
    return _exact(scale, bits + (len(exact) - 1).bit_length())


def either(kinds: list[Kind]) -> Kind:
    """The kind that holds the values of each; NULL is in all of them."""
    found: Kind = NULL
    for kind in kinds:
        found = _either(found, kind)
    return found


def _either(a: Kind, b: Kind) -> Kind:
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if isinstance(a, Exact) and isinstance(b, Exact):
        if a.scale == b.scale:
            return Exact(a.scale, max(a.bits, b.bits))
        scale = max(a.scale, b.scale)
        return _exact(scale, max(scaled_bits(a, scale), scaled_bits(b, scale)))
    if isinstance(a, Other) or isinstance(b, Other):
        raise Unfit(f"{a} and {b} in one column")
    return REAL


def is_double(kind: Kind) -> bool:
    """Whether every number of an exact kind is a double."""
    return isinstance(kind, Exact) and kind.scale == 0 and kind.bits <= DOUBLE_BITS


def both(a: Kind, b: Kind) -> Kind:
    """The kind of values that are in each: what a join of two columns leaves."""
    if isinstance(a, Exact) and isinstance(b, Exact):
        scale = min(a.scale, b.scale)
        return Exact(scale, min(a.bits if a.scale == scale else WIDEST, b.bits if b.scale == scale else WIDEST))
    if isinstance(a, Inexact) and isinstance(b, Inexact):
        return DOUBLE if DOUBLE in (a, b) else REAL
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    for whole, other in ((a, b), (b, a)):
        if is_double(whole) and isinstance(other, Inexact):
            return whole  # those that are such integers
    raise Unfit(f"{a} joined with {b}")


def scaled_bits(kind: Exact, scale: int) -> int:
    return kind.bits + int((scale - kind.scale) * DIGIT_BITS) + 1 if scale > kind.scale else kind.bits


def key_kind(kind: Kind) -> Kind:
    """How a value is held in a key: what has more digits than a double is rounded to one."""
    return DOUBLE if kind == REAL else kind


def _number(kind: Kind) -> Exact:
    if not isinstance(kind, Exact):
        raise Unfit(f"arithmetic with {kind}")
    return kind


def _exact(scale: int, bits: int) -> Exact:
    """|v| ≤ 2^63 does not fit 64 bits: the next width, watched from 127 on, is due."""
    if scale > MOST_PLACES:
        raise Unfit(f"a number with {scale} digits after the point")
    return Exact(scale, min(bits + 1 if bits == COUNT_BITS else bits, WIDEST))


# -- kinds of a program ------------------------------------------------------------------------------------------------


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
                found, value = self.query(inner, env)
                return {v: k for v, k in found.items() if v in group}, _summed(value, is_count(inner))
            case Join(parts):
                return self._join(parts, env)
            case Union(parts):
                return self._union(parts, env)
            case Materialize():
                raise ValueError(f"{q.text} is not decided yet")
            case _:
                assert_never(q)

    def _join(self, parts: tuple[Query, ...], env: Env) -> tuple[dict[str, Kind], Kind]:
        found: dict[str, Kind] = {}
        values = []
        for part in join_order(parts, frozenset(env)):
            kinds, value = self.query(part, {**env, **found})
            found |= {v: both(found[v], k) if v in found else k for v, k in kinds.items()}
            values.append(value)
        return found, times(values)

    def _union(self, parts: tuple[Query, ...], env: Env) -> tuple[dict[str, Kind], Kind]:
        branches = [self.query(part, env) for part in parts]
        names = frozenset[str]().union(*(kinds for kinds, _ in branches))
        found = {v: either([kinds.get(v) or env[v] for kinds, _ in branches]) for v in names}
        return found, plus([value for _, value in branches])

    # -- views ---------------------------------------------------------------------------------------------------------

    def define(self, view: ViewDefinition, inputs: tuple[Kind, ...] = ()) -> None:
        given = dict(zip(view.inputs, inputs, strict=True))
        try:
            found, value = self.query(view.definition, given)
            self.values[view.name] = COUNT if is_count(view.definition) else _summed(value, False)
        except Unfit as unfit:
            raise Unfit(f"in {view.name}: {unfit}") from None
        self.columns[view.name] = inputs + tuple(key_kind(found[v]) for v in view.outputs)

    # -- loop nests ----------------------------------------------------------------------------------------------------

    def block(self, block: Block, env: Env) -> dict[str, Kind]:
        """Every name of a loop nest and its kind; a total or group is there by its own name."""
        found = dict(env)
        for step in block:
            match step:
                case Let(var, term, _):
                    _merge(found, var, term_kind(term, found))
                case Get(source, value, body):
                    found[value] = self.multiplicity(source)
                    found = self.block(body, found)
                case Loop(source, bound, value, body, order):
                    found[value] = self.multiplicity(source)
                    self.open_columns(source, bound, found)
                    self.inner_keys(order, found)
                    found = self.block(body, found)
                case EachSlice(source, bound, _, _, body):
                    self.open_columns(source, bound, found)
                    found = self.block(body, found)
                case RangeSum(var, source, bound, order):
                    self.open_columns(source, bound, found)
                    self.inner_keys(order, found)
                    found[var] = _summed(self.multiplicity(source), False)
                case Runs(var, source, bound, key, _, total, _):
                    self.open_columns(source, bound, found)
                    found[total] = _summed(self.multiplicity(source), False)
                    found[var] = found[key]
                case Extremum(var, source, bound, key, _):
                    self.open_columns(source, bound, found)
                    found[var] = found[key]
                case Total(var, body) | Group(var, body):
                    found = self.block(body, found)
                    found[var] = _total(var, body, found)
                case Same(_, _, _, body) | Test(_, _, _, body) | Nonzero(_, body) | EachGroup(_, _, body):
                    found = self.block(body, found)
                case Add() | Put() | Emit():
                    pass
                case _:
                    assert_never(step)
        return found

    def open_columns(self, source: Rel | Delta | View, bound: frozenset[str], found: dict[str, Kind]) -> None:
        """The kinds of the columns that a read gives values to."""
        for var, kind in _named(columns_of(source), self.columns[source.name]).items():
            if var not in bound:
                _merge(found, var, kind)

    def inner_keys(self, order: Order | None, found: dict[str, Kind]) -> None:
        """What the conditions of runs call the runs' keys."""
        for cut in (cut for cuts in order.ranges for cut in cuts) if order else ():
            if isinstance(cut, InRun):
                found[cut.inner] = found[cut.runs]

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


def _merge(found: dict[str, Kind], var: str, kind: Kind) -> None:
    """The branches of a union may give one name values of two kinds."""
    found[var] = either([found[var], kind]) if var in found else kind


def _named(names: tuple[str, ...], kinds: tuple[Kind, ...]) -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for name, kind in zip(names, kinds, strict=True):
        found[name] = both(found[name], kind) if name in found else kind
    return found


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
