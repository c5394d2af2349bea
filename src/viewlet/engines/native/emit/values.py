"""Values as C++ expressions, and all that is known of one: its kind, whether it may be NULL, whether it can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from viewlet.program.kinds import BOOLEAN, COUNT_BITS, DOUBLE, NULL, REAL, TEXT, WIDEST, Exact, Inexact, Kind

SIZES = {  # of C++ types: bytes and alignment
    "i64": (8, 8),
    "i128": (16, 16),
    "double": (8, 8),
    "Real": (16, 8),
    "RealSum": (24, 8),
    "Text": (4, 4),
    "bool": (1, 1),
}


@dataclass(frozen=True, slots=True)
class Cpp:
    """A C++ expression; where it is ``optional`` its type is Opt<T>.

    ``counts``: it says how often a row is there. ``summed``: it is a sum over rows, of whatever. ``made_of``: the
    doubles that arithmetic made it of; None where it is no outcome of arithmetic with doubles. ``can_fail``: to
    evaluate it may report a fault, so it must not be evaluated before the tests around it.
    """

    text: str
    kind: Kind
    optional: bool = False
    constant: Fraction | None = None
    counts: bool = False
    summed: bool = False
    made_of: tuple[str, ...] | None = None
    can_fail: bool = False

    @property
    def doubles(self) -> tuple[str, ...]:
        """The doubles in it."""
        if self.made_of is not None:
            return self.made_of
        return (self.text,) if isinstance(self.kind, Inexact) and self.constant is None else ()

    @property
    def type(self) -> str:
        return f"Opt<{type_of(self.kind)}>" if self.optional else type_of(self.kind)


Scope = Mapping[str, Cpp]


def made(
    text: str,
    kind: Kind,
    *parts: Cpp,
    optional: bool = False,
    made_of: tuple[str, ...] | None = None,
    can_fail: bool = False,
) -> Cpp:
    """An expression with others in it: it can fail where one of them can."""
    return Cpp(text, kind, optional, made_of=made_of, can_fail=can_fail or any(p.can_fail for p in parts))


def value_of(a: Cpp) -> Cpp:
    """The value of an optional that is there."""
    return made(f"{a.text}.value", a.kind, a)


@dataclass(frozen=True, slots=True)
class Listed:
    """The list of an IN, a constant of the program: texts, or numbers of one C++ type in order."""

    kind: Kind
    values: tuple[str | int | float, ...]

    @staticmethod
    def of(kind: Kind, values: tuple[str | int | float, ...]) -> Listed:
        return Listed(Exact(0, width(kind)) if isinstance(kind, Exact) else kind, values)


def width(kind: Exact) -> int:
    """The bits of the C++ integer that holds such numbers, its sign aside."""
    return COUNT_BITS if kind.bits <= COUNT_BITS else WIDEST


def type_of(kind: Kind) -> str:
    match kind:
        case Exact():
            return "i64" if width(kind) == COUNT_BITS else "i128"
        case Inexact("double"):
            return "double"
        case Inexact():
            return "Real"
    return {TEXT: "Text", BOOLEAN: "bool", NULL: "bool"}[kind]


def value_type(kind: Kind) -> str:
    """How a map holds multiplicities of a kind."""
    return "RealSum" if kind == REAL else type_of(kind)


def tree_key(kind: Kind) -> str:
    """How a tree holds a key: a truth value as 0 or 1."""
    return "i64" if kind == BOOLEAN else type_of(kind)


def unlikely_wide(kind: Kind) -> bool:
    """Whether 128 bits may not hold a number: arithmetic with it is watched."""
    return isinstance(kind, Exact) and kind.bits >= WIDEST


def lifted(args: list[Cpp], f: Callable[[list[Cpp]], Cpp]) -> Cpp:
    """f of the values, NULL where one of them is."""
    if not any(a.optional for a in args):
        return f(args)
    names = "ABCDEFGH"  # capitals, which no variable has
    given = [(i, a) for i, a in enumerate(args) if a.optional]
    inside = list(args)
    for i, a in given:
        inside[i] = Cpp(names[i], a.kind, made_of=a.made_of)
    result = f(inside)
    params = ", ".join(f"{type_of(a.kind)} {names[i]}" for i, a in given)
    values = ", ".join(a.text for _, a in given)
    made_of = None if result.made_of is None else of(*args)
    text = f"lift([&]({params}) {{ return {result.text}; }}, {values})"
    return made(text, result.kind, result, *args, optional=True, made_of=made_of)


def of(*args: Cpp) -> tuple[str, ...]:
    """The doubles that these are made of."""
    return tuple(dict.fromkeys(double for a in args for double in a.doubles))


def as_type(a: Cpp, kind: Kind) -> str:
    """``a`` in the width of the result, so that C++ computes in it."""
    return a.text if type_of(a.kind) == type_of(kind) else f"{type_of(kind)}({a.text})"


def integer(value: int, kind: Exact) -> str:
    if width(kind) == COUNT_BITS:
        return f"{value}LL"
    high, low = value >> 64, value & (1 << 64) - 1
    return f"((i128({high}LL) << 64) + {low}ULL)"


def real(value: Fraction) -> Cpp:
    """A constant next to doubles: one itself where it can be."""
    hi = float(value)
    if Fraction(hi) == value:
        return Cpp(repr(hi), DOUBLE, constant=value)
    return Cpp(f"Real({hi!r}, {float(value - Fraction(hi))!r})", REAL, constant=value)
