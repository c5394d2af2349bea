"""Scalar terms f and conditions: arithmetic over constants and variables (§3.1).

Numbers are exact: ``int`` or ``Fraction``, never ``float``. A DATE is its number of days since 1970-01-01 and a
TIMESTAMP its number of microseconds, so that every comparison is one of numbers or of strings; a constant keeps its
``kind`` only to be told apart and to print well. NULL is ``None``: every operator is strict in it except
``coalesce``, ``case``, ``is_null`` and the three-valued ``and``, ``or``, ``not``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from threading import RLock
from typing import Any, ClassVar, Literal, TypeVar
from weakref import WeakValueDictionary

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.functions.base import Function
from viewlet.algebra.functions.calendar import EPOCH
from viewlet.algebra.remembered import remembered

Part = TypeVar("Part")

Number = int | Fraction
Scalar = int | Fraction | str | bool | None
ConstKind = Literal["number", "string", "boolean", "date", "timestamp", "null"]

BEYOND_DOUBLES = 2**1024 - 2**970  # the least number that would round to more than the greatest double


class Interned(type):
    """Hash consing: equal nodes are one object, so that to compare or look one up costs no walk and no text."""

    __match_args__: tuple[str, ...]  # the names of the fields
    nodes: ClassVar[WeakValueDictionary[tuple[object, ...], Node]] = WeakValueDictionary()
    making = RLock()  # no two threads make the same node

    def __call__(cls, *fields: object) -> Any:
        key = (cls, *fields)
        node = cls.nodes.get(key)
        if node is not None:
            return node
        if omitted := cls.__match_args__[len(fields) :]:
            return cls(*fields, *(getattr(cls, name) for name in omitted))  # their defaults
        with cls.making:
            return cls.nodes.setdefault(key, super().__call__(*fields))


class Node(metaclass=Interned):
    """A tree that is another when its parts are; the text is made once."""

    @property
    def text(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """A copy, or what comes back from a file, is the node that is there."""
        return type(self), tuple(getattr(self, name) for name in type(self).__match_args__)


@dataclass(frozen=True, eq=False, repr=False)
class Const(Node):
    value: Scalar
    kind: ConstKind

    @cached_property
    def text(self) -> str:
        return show_constant(self.value, self.kind)


@dataclass(frozen=True, eq=False, repr=False)
class Var(Node):
    name: str

    @property
    def text(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class Op(Node):
    """``name`` is one of OPERATORS; build with :func:`op`, which folds constants."""

    name: str
    args: tuple[Term, ...]

    def __post_init__(self) -> None:
        if self.name not in OPERATORS:
            raise ValueError(f"no such operator: {self.name}")

    @cached_property
    def text(self) -> str:
        if self.name in INFIX:
            return "(" + f" {self.name} ".join(a.text for a in self.args) + ")"
        return f"{self.name}({', '.join(a.text for a in self.args)})"


Term = Const | Var | Op

NULL = Const(None, "null")
TRUE, FALSE = Const(True, "boolean"), Const(False, "boolean")
ZERO_TERM, ONE_TERM = Const(0, "number"), Const(1, "number")


def number(value: int | Fraction) -> Const:
    """An exact number; whole fractions become integers so that equal numbers print the same."""
    return Const(value.numerator if value.denominator == 1 else value, "number")


def string(value: str) -> Const:
    return Const(value, "string")


def date(days: int) -> Const:
    return Const(days, "date")


def timestamp(microseconds: int) -> Const:
    return Const(microseconds, "timestamp")


# -- what each operator does to values -------------------------------------------------------------------------------


def _divide(a: Number, b: Number) -> Number | None:
    """x / 0 is NULL (DuckDB with ``ieee_floating_point_ops`` and ``error_on_division_by_zero`` off)."""
    if b == 0:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return a / b  # type: ignore[return-value]  # infinities and NaN of the native engine are no rational numbers
    return bounded(Fraction(a) / Fraction(b))


def exact(value: Number) -> Number:
    if type(value) is int:  # nearly always, and to ask for a Fraction takes ten times as long
        return value
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def bounded(value: Number) -> Number:
    """What arithmetic came to. Only doubles can come to numbers that no type of SQL holds, not even theirs."""
    if isinstance(value, float) or value.numerator.bit_length() < 1024:
        return exact(value)
    if not -BEYOND_DOUBLES < value < BEYOND_DOUBLES:
        raise OverflowError("a number is beyond the greatest double, which is about 1.8e308")
    return exact(value)


def nearest_double(value: Number) -> Number:
    """What is left of an exact number as a DOUBLE."""
    return exact(Fraction(float(bounded(value))))


COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

STRICT: dict[str, Callable[..., Scalar]] = {
    "+": lambda a, b: bounded(a + b),
    "-": lambda a, b: bounded(a - b),
    "*": lambda a, b: bounded(a * b),
    "/": _divide,
    "abs": abs,
    "double": nearest_double,
    **COMPARISONS,
    **{name: function.meaning for name, function in FUNCTIONS.items()},
}
INFIX = frozenset({"+", "-", "*", "/", "and", "or", *COMPARISONS})
LAZY = frozenset({"and", "or", "coalesce", "case"})  # whose later arguments may not matter, even where they fail
OPERATORS = {*STRICT, *LAZY, "not", "in", "is_null"}


def declare(function: Function) -> None:
    """One more function, for the whole process."""
    FUNCTIONS[function.name] = function
    STRICT[function.name] = function.meaning
    OPERATORS.add(function.name)


def apply(name: str, values: tuple[Scalar, ...]) -> Scalar:
    """The meaning of an operator. ``case`` takes condition, value, condition, value, …, otherwise.

    ``in`` takes a value and the constants of a list, of which none is NULL.
    """
    match name:
        case "not":
            return None if values[0] is None else not values[0]
        case "in":
            return None if values[0] is None else values[0] in values[1:]
        case "is_null":
            return values[0] is None
    if name in LAZY:
        return apply_lazily(name, values, lambda value: value)
    return None if None in values else STRICT[name](*values)


def apply_lazily(name: str, parts: Sequence[Part], value: Callable[[Part], Scalar]) -> Scalar:
    """The meaning of a lazy operator: ``value`` is asked for the parts that decide, from left to right."""
    match name:
        case "coalesce":
            return next((known for p in parts if (known := value(p)) is not None), None)
        case "case":
            for condition, taken in zip(parts[:-1:2], parts[1::2], strict=True):
                if value(condition) is True:
                    return value(taken)
            return value(parts[-1])
    decisive = name == "or"
    outcome: bool | None = not decisive
    for part in parts:
        truth = value(part)
        if truth is decisive:
            return decisive
        if truth is None:
            outcome = None
    return outcome


def evaluate_term(term: Term, env: Mapping[str, Scalar]) -> Scalar:
    """The value of ``term`` where ``env`` gives every variable."""
    match term:
        case Const(value):
            return value
        case Var(name):
            return env[name]
        case Op("in", (value, *_)):
            sought = evaluate_term(value, env)
            return None if sought is None else sought in constants(term)
        case Op(name, args) if name in LAZY:
            return apply_lazily(name, args, lambda a: evaluate_term(a, env))
        case Op(name, args):
            return apply(name, tuple(evaluate_term(a, env) for a in args))


@remembered(1 << 14)
def can_fail(term: Term) -> bool:
    """Whether some function in a term has no value for some arguments; tests around it must come first."""
    if not isinstance(term, Op):
        return False
    return (term.name in FUNCTIONS and FUNCTIONS[term.name].can_fail) or any(map(can_fail, term.args))


def op(name: str, *args: Term) -> Term:
    """Apply an operator, folding constants, NULL in a strict operator, and the unit laws of + and *."""
    if args and all(isinstance(a, Const) for a in args):
        folded = _fold(name, args)
        if folded is not None:
            return folded
    match name, args:
        case "+", (a, b) if b == ZERO_TERM:
            return a
        case "+", (a, b) if a == ZERO_TERM:
            return b
        case "-", (a, b) if b == ZERO_TERM:
            return a
        case "*", (a, b) if b == ONE_TERM:
            return a
        case "*", (a, b) if a == ONE_TERM:
            return b
    return Op(name, args)


def _fold(name: str, args: tuple[Term, ...]) -> Const | None:
    constants = [a for a in args if isinstance(a, Const)]
    try:
        result = apply(name, tuple(c.value for c in constants))
    except (ValueError, OverflowError):
        if name in FUNCTIONS:
            return None  # it may stand in a branch that no row takes
        raise
    if result is None:
        return NULL
    if isinstance(result, bool):
        return TRUE if result else FALSE
    if name in ("coalesce", "case"):
        return next((c for c in constants if c.value == result and type(c.value) is type(result)), None)
    return string(result) if isinstance(result, str) else number(result)


@remembered(1 << 6)
def constants(term: Op) -> frozenset[Scalar]:
    """What stands in the list of an ``in``."""
    return frozenset(a.value for a in term.args[1:] if isinstance(a, Const))


@remembered(1 << 16)
def free(term: Term) -> frozenset[str]:
    """The variables of a term."""
    match term:
        case Const():
            return frozenset()
        case Var(name):
            return frozenset({name})
        case Op(_, args):
            return frozenset().union(*map(free, args))


def substitute_term(term: Term, by: Mapping[str, Term]) -> Term:
    """Replace variables by terms."""
    match term:
        case Const():
            return term
        case Var(name):
            return by.get(name, term)
        case Op(name, args):
            if by.keys().isdisjoint(free(term)):
                return term
            return op(name, *(substitute_term(a, by) for a in args))


def show_constant(value: Scalar, kind: ConstKind) -> str:
    if kind == "date":
        assert isinstance(value, int)
        return f"DATE '{EPOCH + dt.timedelta(days=value)}'"
    if kind == "timestamp":
        assert isinstance(value, int)
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)
        return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return show_number(value)


def show_number(value: Number) -> str:
    """A decimal where the fraction ends (0.25), else a quotient (1/3)."""
    if isinstance(value, int):
        return str(value)
    rest, tens = value.denominator, 0
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
            tens += 1
    if rest != 1:
        return f"({value.numerator} / {value.denominator})"
    digits = str(abs(value.numerator) * 10**tens // value.denominator).rjust(tens + 1, "0")
    return ("-" if value < 0 else "") + (f"{digits[:-tens]}.{digits[-tens:]}".rstrip("0"))
