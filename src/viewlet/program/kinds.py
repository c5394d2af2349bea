"""Static kinds: for every variable, key and multiplicity of a program, how a machine can hold its values exactly.

An exact number is an integer of last places: DECIMAL(12,2) 3.14 is 314 with scale 2. Kinds carry a bound on the
integer, so that an engine knows where 64 bits do, where it takes 128, and where an overflow must be watched for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.functions.base import Function, ValueKind
from viewlet.algebra.terms import COMPARISONS, Const, Op, Term, Var
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
    match type_.held.kind:
        case "BOOLEAN":
            return BOOLEAN
        case "VARCHAR":
            return TEXT
        case "DOUBLE":
            return DOUBLE
        case "TINYINT" | "UTINYINT":
            return Exact(0, 8)
        case "SMALLINT" | "USMALLINT":
            return Exact(0, 16)
        case "INTEGER" | "UINTEGER" | "DATE":
            return Exact(0, 32)
        case "BIGINT" | "TIMESTAMP":
            return Exact(0, 63)
        case "DECIMAL":
            return Exact(type_.scale, int(type_.precision * DIGIT_BITS) + 1)
        case "REAL" | "TIME" | "INTERVAL" | "ENUM" | "BLOB" | "LIST" | "STRUCT" | "MAP":
            raise AssertionError(f"{type_} is held as {type_.held}")


def kind_scale(kind: Kind) -> int:
    """An exact number is an integer of units 10⁻ˢ; all other values are what they are."""
    return kind.scale if isinstance(kind, Exact) else 0


def constant_kind(value: object) -> Kind:
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case str():
            return TEXT
        case int():
            return _exact(0, value.bit_length()) if value.bit_length() <= WIDEST else REAL  # 1e300
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
    if name in COMPARISONS or name in ("and", "or", "not", "in", "is_null"):
        return BOOLEAN
    if name == "case":
        return either([*args[1::2], args[-1]])
    if name == "coalesce":
        return either(args)
    if NULL in args:
        return NULL
    if name in FUNCTIONS:
        return given_kind(FUNCTIONS[name], args)
    match name:
        case "*":
            return times(args)
        case "+" | "-":
            return plus(args)
        case "/":
            return REAL
        case "double":
            return DOUBLE
        case "abs":
            return plus([args[0], args[0]]) if isinstance(args[0], Exact) else args[0]
    raise Unfit(f"no kind for {name}")


_FUNCTION_KINDS: dict[ValueKind, Kind] = {"text": TEXT, "boolean": BOOLEAN, "integer": COUNT, "double": DOUBLE}


def given_kind(function: Function, args: list[Kind]) -> Kind:
    """The kind of what a function gives."""
    match function.gives:
        case "same":
            return _same_kind(function, args)
        case "last":
            return args[-1]
        case "number":
            return _exact(function.places, _bits_of(function, args))
        case known:
            return _FUNCTION_KINDS[known]


def _bits_of(function: Function, args: list[Kind]) -> int:
    """Of the number that a function gives: where the function takes none, as many as there can be."""
    taken = args[0]
    if function.takes[0] != "number" or not isinstance(taken, Exact):
        return WIDEST
    dropped = int((taken.scale - function.places) * DIGIT_BITS)
    return max(taken.bits - dropped, 1) + 1 if dropped > 0 else scaled_bits(taken, function.places) + 1


def taken_kinds(function: Function, args: list[Kind]) -> list[Kind]:
    """The kinds as which a function takes its arguments."""
    same = _same_kind(function, args)
    words = function.kinds(len(args))
    return [a if w == "number" else _FUNCTION_KINDS.get(w, same) for w, a in zip(words, args, strict=True)]


def _same_kind(function: Function, args: list[Kind]) -> Kind:
    return either([a for word, a in zip(function.kinds(len(args)), args, strict=True) if word == "same"])


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
    widest: Kind = NULL
    for kind in kinds:
        widest = _either(widest, kind)
    return widest


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
