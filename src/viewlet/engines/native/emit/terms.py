"""Terms as C++ expressions: exact numbers as integers of last places, NULL only where a value may be NULL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from viewlet.algebra.terms import COMPARISONS, Const, Op, Scalar, Term, Var, constants
from viewlet.loops.steps import Factor, Product
from viewlet.program.kinds import (
    BOOLEAN,
    COUNT,
    COUNT_BITS,
    DOUBLE,
    NULL,
    REAL,
    TEXT,
    WIDEST,
    Exact,
    Inexact,
    Kind,
    Unfit,
    constant_kind,
    either,
    plus,
    scaled_bits,
    times,
)


@dataclass(frozen=True, slots=True)
class Cpp:
    """A C++ expression; where it is ``optional`` its type is Opt<T>.

    ``counts``: it says how often a row is there. ``summed``: it is a sum over rows, of whatever. ``made_of``: the
    doubles that arithmetic made it of; None where it is no outcome of arithmetic with doubles.
    """

    text: str
    kind: Kind
    optional: bool = False
    constant: Fraction | None = None
    counts: bool = False
    summed: bool = False
    made_of: tuple[str, ...] | None = None

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


def type_of(kind: Kind) -> str:
    match kind:
        case Exact(_, bits):
            return "i64" if bits <= COUNT_BITS else "i128"
        case Inexact("double"):
            return "double"
        case Inexact():
            return "Real"
    return {TEXT: "Text", BOOLEAN: "bool", NULL: "bool"}[kind]


def unlikely_wide(kind: Kind) -> bool:
    """Whether 128 bits may not hold a number: arithmetic with it is watched."""
    return isinstance(kind, Exact) and kind.bits >= WIDEST


@dataclass
class Terms:
    """``view`` is the C++ name of the view that an overflow is reported for; ``strings`` are the texts met so far.

    ``lists`` are those of IN: words, or a C++ type and its values in order.
    """

    strings: dict[str, str] = field(default_factory=dict)
    lists: dict[tuple[str | int | float, ...], str] = field(default_factory=dict)
    view: str = "0"

    # -- terms ---------------------------------------------------------------------------------------------------------

    def term(self, term: Term, scope: Scope, plain: bool) -> Cpp:
        """``plain`` says that nothing in it can be NULL, whatever the types of the variables allow."""
        match term:
            case Const(value):
                return self.constant(value)
            case Var(name):
                found = scope[name]
                return Cpp(f"{found.text}.value", found.kind) if plain and found.optional else found
            case Op("in", (value, *_)):
                return lifted([self.term(value, scope, plain)], lambda known: self.member(known[0], constants(term)))
            case Op(name, args):
                return self.operator(name, [self.term(a, scope, plain) for a in args])

    def constant(self, value: Scalar) -> Cpp:
        kind = constant_kind(value)
        match kind:
            case Exact(scale, _):
                number = Fraction(value)  # type: ignore[arg-type]
                return Cpp(integer(int(number * 10**scale), kind), kind, constant=number)
            case Inexact():
                return real(Fraction(value))  # type: ignore[arg-type]
        if isinstance(value, str):
            name = self.strings.setdefault(value, f"text_{len(self.strings)}")
            return Cpp(name, TEXT)
        return Cpp("Opt<bool>{}", NULL, True) if value is None else Cpp("true" if value else "false", BOOLEAN)

    def operator(self, name: str, args: list[Cpp]) -> Cpp:
        if name in ("and", "or"):
            return self.logic(name, args)
        if name == "is_null":
            return Cpp(f"is_null({args[0].text})", BOOLEAN)
        if name == "case":
            return self.case(args)
        if name == "coalesce":
            return self.coalesce(args)
        if any(a.kind == NULL for a in args):
            return Cpp("Opt<bool>{}", BOOLEAN if name in COMPARISONS or name == "not" else NULL, True)
        return lifted(args, lambda known: self.strict(name, known))

    def strict(self, name: str, args: list[Cpp]) -> Cpp:
        match name, args:
            case "*", [a, b]:
                return self.times(a, b)
            case (("+" | "-"), [a, b]):
                return self.plus(name, a, b)
            case "/", [a, b]:
                return Cpp(f"divide({self.to(a, REAL).text}, {self.to(b, REAL).text})", REAL, True, made_of=of(a, b))
            case "not", [a]:
                return Cpp(f"!{a.text}", BOOLEAN)
            case "abs", [a]:
                kind = plus([a.kind, a.kind]) if isinstance(a.kind, Exact) else a.kind
                return Cpp(f"absolute({self.to(a, kind).text})", kind, made_of=a.made_of)
            case "double", [a]:
                return self.to(self.bounded(a), DOUBLE)
            case "add_months", [a, b]:
                return Cpp(f"add_months(faults, {self.view}, {a.text}, {b.text})", Exact(0, COUNT_BITS))
            case _, [a, b] if name in COMPARISONS:
                return Cpp(f"({self.compare(name, a, b)})", BOOLEAN)
        raise Unfit(f"no C++ for {name}")

    def member(self, value: Cpp, listed: frozenset[Scalar]) -> Cpp:
        """x IN (…): the list is a constant of the program, in the units of x."""
        if value.kind == REAL:  # has more digits than any key
            return self.logic("or", [self.strict("=", [value, self.constant(c)]) for c in sorted(listed, key=str)])
        if value.kind == TEXT:
            words = tuple(sorted(c for c in listed if isinstance(c, str)))
            return Cpp(f"{self.lists.setdefault(words, f'list_{len(self.lists)}')}.has({value.text})", BOOLEAN)
        numbers = tuple(sorted(n for c in listed if (n := self.units(c, value.kind)) is not None))
        if not numbers:
            return Cpp("false", BOOLEAN)
        name = self.lists.setdefault((value.type, *numbers), f"list_{len(self.lists)}")
        return Cpp(f"member({value.text}, {name}, {len(numbers)})", BOOLEAN)

    def units(self, constant: Scalar, kind: Kind) -> int | float | None:
        """A constant as ``kind`` holds it; None where it is none of its values."""
        number = Fraction(constant)  # type: ignore[arg-type]
        if not isinstance(kind, Exact):
            return float(number) if Fraction(float(number)) == number else None
        units = number * 10**kind.scale
        width = 63 if type_of(kind) == "i64" else 127
        return int(units) if units.denominator == 1 and -(1 << width) <= units < 1 << width else None

    def logic(self, name: str, args: list[Cpp]) -> Cpp:
        if any(a.optional for a in args):
            return Cpp(f"{name}3({', '.join(a.text for a in args)})", BOOLEAN, True)
        return Cpp("(" + f" {'&&' if name == 'and' else '||'} ".join(a.text for a in args) + ")", BOOLEAN)

    def case(self, args: list[Cpp]) -> Cpp:
        values = [*args[1::2], args[-1]]
        kind, optional = either([v.kind for v in values]), any(v.optional for v in values)
        taken = [self.held(v, kind, optional).text for v in values]
        choices = "".join(f"holds({c.text}) ? {v} : " for c, v in zip(args[:-1:2], taken, strict=False))
        return Cpp(f"({choices}{taken[-1]})", kind, optional, made_of=of(*values) if kind == REAL else None)

    def coalesce(self, args: list[Cpp]) -> Cpp:
        kind = either([a.kind for a in args])
        found = self.held(args[-1], kind, args[-1].optional)
        for a in reversed(args[:-1]):
            found = Cpp(f"coalesce({self.held(a, kind, True).text}, {found.text})", kind, found.optional)
        return replace(found, made_of=of(*args)) if kind == REAL else found

    def compare(self, op: str, a: Cpp, b: Cpp) -> str:
        """SQL's comparison of two values that are there."""
        if isinstance(a.kind, Exact) and isinstance(b.kind, Exact):
            scale = max(a.kind.scale, b.kind.scale)
            a, b = self.rescaled(a, scale), self.rescaled(b, scale)
        elif isinstance(a.kind, Inexact) or isinstance(b.kind, Inexact):
            a, b = self.bounded(a), self.bounded(b)
            if (a.kind, b.kind) != (DOUBLE, DOUBLE):
                a, b = self.to(a, REAL), self.to(b, REAL)
            return inexact_comparison(op, a.text, b.text)
        elif TEXT in (a.kind, b.kind) and op not in ("=", "<>"):
            return f"texts.compare({a.text}, {b.text}) {op} 0"
        return f"{a.text} { ({'=': '==', '<>': '!='}.get(op, op)) } {b.text}"

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def times(self, a: Cpp, b: Cpp) -> Cpp:
        kind = times([a.kind, b.kind])
        if not isinstance(kind, Exact):
            return self.real_times(a, b)
        if not unlikely_wide(kind):
            return Cpp(f"({as_type(a, kind)} * {b.text})", kind)
        return Cpp(f"mul(faults, {self.view}, {a.text}, {b.text})", kind)

    def real_times(self, a: Cpp, b: Cpp) -> Cpp:
        a, b = self.inexact(a), self.inexact(b)
        both = (a.kind, b.kind) == (DOUBLE, DOUBLE)
        return Cpp(f"product({a.text}, {b.text})" if both else f"({a.text} * {b.text})", REAL, made_of=of(a, b))

    def plus(self, op: str, a: Cpp, b: Cpp) -> Cpp:
        kind = plus([a.kind, b.kind])
        if (a.kind, b.kind) == (DOUBLE, DOUBLE):
            return Cpp(f"{'sum_of' if op == '+' else 'difference'}({a.text}, {b.text})", REAL, made_of=of(a, b))
        if not isinstance(kind, Exact):
            return Cpp(f"({self.to(a, REAL).text} {op} {self.to(b, REAL).text})", REAL, made_of=of(a, b))
        a, b = self.rescaled(a, kind.scale), self.rescaled(b, kind.scale)
        if not unlikely_wide(kind):
            return Cpp(f"({as_type(a, kind)} {op} {b.text})", kind)
        return Cpp(f"{'add' if op == '+' else 'subtract'}(faults, {self.view}, {a.text}, {b.text})", kind)

    def product(self, product: Product, scope: Scope) -> Cpp:
        """All factors; exact ones first, as they are cheap."""
        found = [self.factor(f, scope) for f in product]
        exact = [f for f in found if isinstance(f.kind, Exact)]
        result: Cpp | None = None
        for f in exact + [f for f in found if not isinstance(f.kind, Exact)]:
            result = f if result is None else self.times(result, f)
        return result or Cpp("1", Exact(0, 1))

    def summand(self, product: Product, scope: Scope, deleting: bool) -> tuple[Cpp, Cpp]:
        """A product of doubles as a row's value and how often it counts: an infinity taken out is one infinity fewer.

        Where an event takes a row out and the statement says so by a factor -1, that is ``deleting``.
        """
        found = [self.factor(f, scope) for f in product]
        often: Cpp | None = self.constant(-1) if deleting else None
        for f in (f for f in found if f.counts):
            often = f if often is None else self.times(often, f)
        value: Cpp | None = real(Fraction(-1)) if deleting else None
        for f in (f for f in found if not f.counts):
            value = self.inexact(f) if value is None else self.real_times(value, f)
        value = Cpp("Real(1)", REAL) if value is None else self.bounded(value)
        return value, self.to(often or Cpp("1", Exact(0, 1)), COUNT)

    def factor(self, factor: Factor, scope: Scope) -> Cpp:
        found = self.term(factor.term, scope, factor.plain)
        if found.kind == NULL:
            return Cpp("0", Exact(0, 1))
        if not found.optional:
            return found
        return Cpp(f"{found.text}.value", found.kind, made_of=found.made_of)  # the value of NULL is 0

    def bounded(self, a: Cpp) -> Cpp:
        """What doubles came to, watched: where they are finite it must be, too."""
        if a.kind != REAL or a.made_of is None:
            return a
        given = "".join(f", {double}" for double in a.made_of)
        return Cpp(f"bounded(faults, {self.view}, {a.text}{given})", REAL, a.optional)

    # -- conversions ---------------------------------------------------------------------------------------------------

    def to(self, a: Cpp, kind: Kind) -> Cpp:
        """``a`` as a value of another kind, watched where it may not fit."""
        if a.optional:
            return lifted([a], lambda known: self.to(known[0], kind))
        match a.kind, kind:
            case Exact(), Exact():
                return self.to_exact(a, kind)
            case Exact(scale, _), Inexact("double"):
                return Cpp(f"to_double({a.text}, {scale})", DOUBLE)
            case Exact(), Inexact("real") if a.constant is not None:
                return self.to(real(a.constant), REAL)
            case Exact(scale, _), Inexact():
                return Cpp(f"real_of({a.text}{f', {scale}' if scale else ''})", REAL)
            case Inexact("double"), Inexact("real"):
                return Cpp(f"Real({a.text})", REAL)
            case Inexact("real"), Inexact("double"):
                return Cpp(f"{a.text}.hi", DOUBLE)
            case Inexact(), Exact(0, _):
                return Cpp(f"whole({a.text})", kind)
        if a.kind != kind:
            raise Unfit(f"{a.kind} as {kind}")
        return a

    def to_exact(self, a: Cpp, kind: Exact) -> Cpp:
        assert isinstance(a.kind, Exact)
        places = a.kind.scale - kind.scale
        if places > 0:
            a = Cpp(f"scale_down(faults, {self.view}, {a.text}, {places})", Exact(kind.scale, WIDEST))
        elif places < 0:
            a = self.rescaled(a, kind.scale)
        if type_of(a.kind) == "i128" and type_of(kind) == "i64":
            return Cpp(f"narrow(faults, {self.view}, {a.text})", kind)
        return replace(a, text=as_type(a, kind), kind=kind, constant=None)

    def rescaled(self, a: Cpp, scale: int) -> Cpp:
        """The same number with at least as many places."""
        assert isinstance(a.kind, Exact)
        if a.kind.scale == scale:
            return a
        kind = Exact(scale, min(scaled_bits(a.kind, scale) + (a.kind.bits == COUNT_BITS), WIDEST))
        if unlikely_wide(kind):
            return Cpp(f"scale_up(faults, {self.view}, {a.text}, {scale - a.kind.scale})", kind)
        power = 10 ** (scale - a.kind.scale)
        return Cpp(f"({as_type(a, kind)} * {integer(power, Exact(0, power.bit_length()))})", kind)

    def inexact(self, a: Cpp) -> Cpp:
        """A factor of a product of doubles: a small whole number is one exactly."""
        if a.constant is not None:
            return real(a.constant)
        match a.kind:
            case Exact(0, bits) if bits <= 53:
                return Cpp(f"double({a.text})", DOUBLE)
            case Exact():
                return self.to(a, REAL)
        return a

    def held(self, a: Cpp, kind: Kind, optional: bool) -> Cpp:
        """``a`` as exactly the type that a field or variable of ``kind`` has."""
        if a.kind == NULL:
            return Cpp(f"Opt<{type_of(kind)}>{{}}", kind, True)
        if a.optional:
            return a if a.kind == kind else lifted([a], lambda known: self.held(known[0], kind, False))
        found = self.to(a, kind)
        return Cpp(f"{'Opt<' + type_of(kind) + '>' if optional else type_of(kind)}({found.text})", kind, optional)


def lifted(args: list[Cpp], f: Callable[[list[Cpp]], Cpp]) -> Cpp:
    """f of the values, NULL where one of them is."""
    if not any(a.optional for a in args):
        return f(args)
    names = "ABCDEFGH"  # capitals, which no variable has
    given = [(i, a) for i, a in enumerate(args) if a.optional]
    inside = list(args)
    for i, a in given:
        inside[i] = Cpp(names[i], a.kind, made_of=a.made_of)
    found = f(inside)
    params = ", ".join(f"{type_of(a.kind)} {names[i]}" for i, a in given)
    values = ", ".join(a.text for _, a in given)
    made_of = None if found.made_of is None else of(*args)
    return Cpp(f"lift([&]({params}) {{ return {found.text}; }}, {values})", found.kind, True, made_of=made_of)


def of(*args: Cpp) -> tuple[str, ...]:
    """The doubles that these are made of."""
    return tuple(dict.fromkeys(double for a in args for double in a.doubles))


def inexact_comparison(op: str, a: str, b: str) -> str:
    return {
        "=": f"equal({a}, {b})",
        "<>": f"!equal({a}, {b})",
        "<": f"less({a}, {b})",
        ">": f"less({b}, {a})",
        "<=": f"!less({b}, {a})",
        ">=": f"!less({a}, {b})",
    }[op]


def as_type(a: Cpp, kind: Kind) -> str:
    """``a`` in the width of the result, so that C++ computes in it."""
    return a.text if type_of(a.kind) == type_of(kind) else f"{type_of(kind)}({a.text})"


def integer(value: int, kind: Kind) -> str:
    if type_of(kind) == "i64":
        return f"{value}LL"
    high, low = value >> 64, value & (1 << 64) - 1
    return f"((i128({high}LL) << 64) + {low}ULL)"


def real(value: Fraction) -> Cpp:
    """A constant next to doubles: one itself where it can be."""
    hi = float(value)
    if Fraction(hi) == value:
        return Cpp(repr(hi), DOUBLE, constant=value)
    return Cpp(f"Real({hi!r}, {float(value - Fraction(hi))!r})", REAL, constant=value)
