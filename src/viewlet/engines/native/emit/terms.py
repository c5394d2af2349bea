"""Terms as C++ expressions: NULL only where a value may be NULL."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.functions.base import Function
from viewlet.algebra.query import Compare
from viewlet.algebra.terms import COMPARISONS, Const, Op, Scalar, Term, Var, constants
from viewlet.engines.native.emit.numbers import Numbers
from viewlet.engines.native.emit.values import (
    Cpp,
    Listed,
    Scope,
    integer,
    lifted,
    made,
    of,
    real,
    type_of,
    value_of,
    width,
)
from viewlet.loops.steps import Factor, Product
from viewlet.program.kinds import (
    BOOLEAN,
    COUNT,
    DOUBLE,
    NULL,
    REAL,
    TEXT,
    Exact,
    Inexact,
    Kind,
    Unfit,
    constant_kind,
    either,
    given_kind,
    plus,
    taken_kinds,
)


@dataclass
class Terms(Numbers):
    """``strings`` and ``lists`` are the constants met so far, by their C++ names; ``headers`` have the functions."""

    strings: dict[str, str] = field(default_factory=dict)
    lists: dict[Listed, str] = field(default_factory=dict)
    headers: set[str] = field(default_factory=set)

    # -- terms ---------------------------------------------------------------------------------------------------------

    def term(self, term: Term, scope: Scope, plain: bool) -> Cpp:
        """``plain`` says that nothing in it can be NULL, whatever the types of the variables allow."""
        match term:
            case Const(value):
                return self.constant(value)
            case Var(name):
                variable = scope[name]
                return value_of(variable) if plain and variable.optional else variable
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
            return made(f"is_null({args[0].text})", BOOLEAN, args[0])
        if name == "case":
            return self.case(args)
        if name == "coalesce":
            return self.coalesce(args)
        if any(a.kind == NULL for a in args):
            return Cpp("Opt<bool>{}", BOOLEAN if name in COMPARISONS or name == "not" else NULL, True)
        if name in FUNCTIONS:
            return lifted(args, lambda known: self.function(FUNCTIONS[name], known))
        return lifted(args, lambda known: self.strict(name, known))

    def strict(self, name: str, args: list[Cpp]) -> Cpp:
        match name, args:
            case "*", [a, b]:
                return self.times(a, b)
            case (("+" | "-"), [a, b]):
                return self.plus(name, a, b)
            case "/", [a, b]:
                left, right = self.to(a, REAL), self.to(b, REAL)
                return made(f"divide({left.text}, {right.text})", REAL, left, right, optional=True, made_of=of(a, b))
            case "not", [a]:
                return made(f"!{a.text}", BOOLEAN, a)
            case "abs", [a]:
                kind = plus([a.kind, a.kind]) if isinstance(a.kind, Exact) else a.kind
                wide = self.to(a, kind)
                return made(f"absolute({wide.text})", kind, wide, made_of=a.made_of)
            case "double", [a]:
                return self.to(self.bounded(a), DOUBLE)
            case _, [a, b] if name in COMPARISONS:
                compared = self.compare(name, a, b)
                return made(f"({compared.text})", BOOLEAN, compared)
        raise Unfit(f"no C++ for {name}")

    def function(self, function: Function, args: list[Cpp]) -> Cpp:
        """A call of the C++ function of the same name, with arguments of the kinds that it declares."""
        if not function.is_native:
            raise Unfit(f"{function.name} calls a function of Python")
        if function.header:
            self.headers.add(function.header)
        kinds = [a.kind for a in args]
        taken = [self.to(a, kind) for a, kind in zip(args, taken_kinds(function, kinds), strict=True)]
        kind, optional = given_kind(function, kinds), function.can_be_null
        given = ["faults", self.view] * function.can_fail + ["texts"] * function.is_of_texts
        for a, word in zip(taken, function.kinds(len(args)), strict=True):
            given += [a.text, *([str(a.kind.scale)] if word == "number" and isinstance(a.kind, Exact) else [])]
        given += [str(function.places)] * (function.gives == "number")
        template = f"<{type_of(kind)}>" if function.gives in ("number", "last") else ""
        text = f"{function.cpp or function.name}{template}({', '.join(given)})"
        return made(text, kind, *taken, optional=optional, can_fail=function.can_fail)

    def member(self, value: Cpp, listed: frozenset[Scalar]) -> Cpp:
        """x IN (…): the list is a constant of the program, in the units of x."""
        if value.kind == REAL:  # has more digits than any key
            return self.logic("or", [self.strict("=", [value, self.constant(c)]) for c in sorted(listed, key=str)])
        if value.kind == TEXT:
            words = tuple(sorted(c for c in listed if isinstance(c, str)))
            name = self.lists.setdefault(Listed.of(TEXT, words), f"list_{len(self.lists)}")
            return made(f"{name}.has({value.text})", BOOLEAN, value)
        numbers = tuple(sorted(n for c in listed if (n := self.units(c, value.kind)) is not None))
        if not numbers:
            return Cpp("false", BOOLEAN)
        name = self.lists.setdefault(Listed.of(value.kind, numbers), f"list_{len(self.lists)}")
        return made(f"member({value.text}, {name}, {len(numbers)})", BOOLEAN, value)

    def units(self, constant: Scalar, kind: Kind) -> int | float | None:
        """A constant as ``kind`` holds it; None where it is none of its values."""
        number = Fraction(constant)  # type: ignore[arg-type]
        if not isinstance(kind, Exact):
            return float(number) if Fraction(float(number)) == number else None
        units = number * 10**kind.scale
        most = 1 << width(kind)
        return int(units) if units.denominator == 1 and -most <= units < most else None

    def logic(self, name: str, args: list[Cpp]) -> Cpp:
        if any(a.optional for a in args) and any(a.can_fail for a in args[1:]):
            return self.lazy_logic(name, args)
        if any(a.optional for a in args):
            return made(f"{name}3({', '.join(a.text for a in args)})", BOOLEAN, *args, optional=True)
        return made("(" + f" {'&&' if name == 'and' else '||'} ".join(a.text for a in args) + ")", BOOLEAN, *args)

    def lazy_logic(self, name: str, args: list[Cpp]) -> Cpp:
        """What can fail is not computed where the arguments before it decide."""
        self.headers.add("lazy")
        rest = args[-1]
        for a in reversed(args[:-1]):
            text = f"{name}_lazily({a.text}, [&] {{ return {rest.text}; }})"
            rest = made(text, BOOLEAN, a, rest, optional=True)
        return rest

    def case(self, args: list[Cpp]) -> Cpp:
        values = [*args[1::2], args[-1]]
        kind, optional = either([v.kind for v in values]), any(v.optional for v in values)
        taken, tests = [self.held(v, kind, optional) for v in values], args[:-1:2]
        choices = "".join(f"holds({c.text}) ? {v.text} : " for c, v in zip(tests, taken, strict=False))
        made_of = of(*values) if kind == REAL else None
        return made(f"({choices}{taken[-1].text})", kind, *tests, *taken, optional=optional, made_of=made_of)

    def coalesce(self, args: list[Cpp]) -> Cpp:
        kind = either([a.kind for a in args])
        rest = self.held(args[-1], kind, args[-1].optional)
        for a in reversed(args[:-1]):
            first = self.held(a, kind, True)
            text = f"coalesce({first.text}, {rest.text})"
            if rest.can_fail:
                self.headers.add("lazy")
                text = f"coalesce_lazily({first.text}, [&] {{ return {rest.text}; }})"
            rest = made(text, kind, first, rest, optional=rest.optional)
        return replace(rest, made_of=of(*args)) if kind == REAL else rest

    def product(self, product: Product, scope: Scope) -> Cpp:
        """All factors; exact ones first, as they are cheap."""
        factors = [self.factor(f, scope) for f in product]
        exact = [f for f in factors if isinstance(f.kind, Exact)]
        result: Cpp | None = None
        for f in exact + [f for f in factors if not isinstance(f.kind, Exact)]:
            result = f if result is None else self.times(result, f)
        return result or Cpp("1", Exact(0, 1))

    def summand(self, product: Product, scope: Scope, deleting: bool) -> tuple[Cpp, Cpp]:
        """A product of doubles as a row's value and how often it counts: an infinity taken out is one infinity fewer.

        Where an event takes a row out and the statement says so by a factor -1, that is ``deleting``.
        """
        factors = [self.factor(f, scope) for f in product]
        often: Cpp | None = self.constant(-1) if deleting else None
        for f in (f for f in factors if f.counts):
            often = f if often is None else self.times(often, f)
        value: Cpp | None = real(Fraction(-1)) if deleting else None
        for f in (f for f in factors if not f.counts):
            value = self.inexact(f) if value is None else self.real_times(value, f)
        value = Cpp("Real(1)", REAL) if value is None else self.bounded(value)
        return value, self.to(often or Cpp("1", Exact(0, 1)), COUNT)

    def factor(self, factor: Factor, scope: Scope) -> Cpp:
        value = self.term(factor.term, scope, factor.plain)
        if value.kind == NULL:
            return Cpp("0", Exact(0, 1))
        if not value.optional:
            return value
        return replace(value_of(value), made_of=value.made_of)  # the value of NULL is 0

    # -- tests ---------------------------------------------------------------------------------------------------------

    def compared(self, compare: Compare, plain: bool, scope: Scope) -> str:
        """Whether a comparison is true."""
        left, right = (self.term(t, scope, plain) for t in (compare.left, compare.right))
        if left.optional or right.optional:
            return f"holds({self.operator(compare.op, [left, right]).text})"
        return self.compare(compare.op, left, right).text

    def identical(self, a: Cpp, b: Cpp) -> str:
        """Identity of keys: NULL is NULL."""
        if not (a.optional or b.optional):
            return self.compare("=", a, b).text
        equal = self.operator("=", [a, b]).text
        return f"(is_null({a.text}) || is_null({b.text}) ? is_null({a.text}) && is_null({b.text}) : holds({equal}))"
