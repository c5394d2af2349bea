"""Terms as Python expressions over scaled integers: scales are aligned when the code is written, not when it runs.

An exact number of scale s is held as its integer of units 10⁻ˢ, an inexact kind as the exact number itself. Where a
scale cannot hold a value, its units are a fraction: whatever the kinds say, nothing is lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.functions.base import Function
from viewlet.algebra.terms import (
    COMPARISONS,
    LAZY,
    Const,
    Op,
    Scalar,
    Term,
    Var,
    apply,
    apply_lazily,
    bounded,
    can_fail,
    constants,
    exact,
    number,
)
from viewlet.loops.steps import Factor, Product
from viewlet.program.kinds import (
    NULL,
    REAL,
    Exact,
    Kind,
    constant_kind,
    either,
    given_kind,
    kind_scale,
    plus,
    taken_kinds,
    times,
)

PYTHON = {"=": "==", "<>": "!="}
PLAIN = frozenset({"+", "-", "*", "and", "or", *COMPARISONS})
TRUTH = frozenset({"and", "or", "not", "is_null"})


def times_units(value: Scalar, units: int) -> Scalar:
    """To a greater scale; NULL stays NULL."""
    return None if value is None else value * units


def over_units(value: Scalar, units: int) -> Scalar:
    """To a smaller scale."""
    return None if value is None else exact(Fraction(value) / units)


def known(value: Scalar) -> Scalar:
    """NULL adds nothing to a sum."""
    return 0 if value is None else value


def is_in(value: Scalar, constants: frozenset[Scalar]) -> bool | None:
    """x IN (…) without NULL in the list."""
    return None if value is None else value in constants


def lazily(name: str, parts: tuple[Callable[[], Scalar], ...]) -> Scalar:
    """An operator of which only the parts that decide are computed: others may fail."""
    return apply_lazily(name, parts, lambda part: part())


FUNCTION = "FUNCTION_"  # before the name of a function of the calculus
SCOPE = {
    "APPLY": apply,
    "LAZILY": lazily,
    "BOUNDED": bounded,
    "IN": is_in,
    "TIMES": times_units,
    "OVER": over_units,
    "NUMBER": known,
    **{f"{FUNCTION}{name}": function.meaning for name, function in FUNCTIONS.items()},
}


@dataclass(frozen=True, slots=True)
class Text:
    """A Python expression and the kind of its value.

    ``computed``: by Python's own operators, which know no bounds. ``is_name``: the text is an identifier. ``units``:
    the integer whose numeral the text is.
    """

    text: str
    kind: Kind
    computed: bool = False
    is_name: bool = False
    units: int | None = None

    @property
    def is_atom(self) -> bool:
        return self.is_name or self.units is not None

    def to(self, kind: Kind, plain: bool) -> str:
        """The same value as ``kind`` holds it; ``plain`` where it cannot be NULL."""
        places = kind_scale(kind) - kind_scale(self.kind)
        if places == 0 or NULL in (kind, self.kind):
            return self.text
        if places > 0 and self.units is not None:
            return f"{self.units * 10**places}"
        if places > 0:
            return f"{self.text} * {10**places}" if plain else f"TIMES({self.text}, {10**places})"
        return f"OVER({self.text}, {10**-places})"

    def compared(self, kind: Kind, plain: bool) -> str:
        """The same as a side of a comparison, which would hide that doubles came to a number beyond all of them."""
        text = self.to(kind, plain)
        return f"BOUNDED({text})" if self.computed and self.kind == REAL else text


@dataclass
class Terms:
    """Names of variables, their kinds, and constants that Python has no literal for."""

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Scalar | frozenset[Scalar]] = field(default_factory=dict)
    uses: Counter[str] = field(default_factory=Counter)
    stems: Counter[str] = field(default_factory=Counter)
    counted: set[str] = field(default_factory=set)  # variables that say how often a row is there

    def name(self, variable: str) -> str:
        """A Python identifier of its own for a variable of the calculus."""
        if variable not in self.names:
            stem = re.sub(r"^(?=\d)|\W", "_", variable.lstrip("@$"), flags=re.ASCII).lower() or "v"
            self.names[variable] = f"{stem}_{self.stems[stem]}"  # the last number tells any two apart
            self.stems[stem] += 1
        return self.names[variable]

    def value(self, variable: str) -> Text:
        self.uses[variable] += 1
        return Text(self.name(variable), self.kinds[variable], is_name=True)

    def key(self, variables: Iterable[str], kinds: Iterable[Kind]) -> str:
        """A tuple as a store with columns of these kinds has it."""
        return tuple_text([self.value(v).to(kind, plain=False) for v, kind in zip(variables, kinds, strict=True)])

    # -- terms ---------------------------------------------------------------------------------------------------------

    def term(self, term: Term, plain: bool) -> Text:
        """``plain`` says that nothing in the term can be NULL, so that Python's own operators do."""
        match term:
            case Const(value):
                return self.constant(value)
            case Var(name):
                return self.value(name)
            case Op("in", (value, *_)):
                return self.member(self.term(value, plain), constants(term), plain)
            case Op(name, args):
                lazily = name in LAZY and any(map(can_fail, args[1:]))
                return self.operator(name, [self.term(a, plain) for a in args], plain, lazily)

    def operator(self, name: str, args: list[Text], plain: bool, lazily: bool = False) -> Text:
        kinds = [a.kind for a in args]
        if name in TRUTH:
            return Text(_call(name, [a.text for a in args], plain, lazily), constant_kind(True))
        if name in COMPARISONS:
            common = comparable(kinds)
            return Text(_call(name, [a.compared(common, plain) for a in args], plain), constant_kind(True))
        if name == "case":
            kind = either([*kinds[1::2], kinds[-1]])
            values = [a.text if i % 2 == 0 and i < len(args) - 1 else a.to(kind, plain) for i, a in enumerate(args)]
            return Text(_call(name, values, plain, lazily), kind)
        if name == "coalesce":
            kind = either(kinds)
            return Text(_call(name, [a.to(kind, plain) for a in args], plain, lazily), kind)
        if NULL in kinds:
            return Text("None", NULL)
        if name in FUNCTIONS:
            return _function(FUNCTIONS[name], args, plain)
        if name in ("+", "-"):
            kind = plus(kinds)
            return Text(_call(name, [a.to(kind, plain) for a in args], plain), kind, plain)
        if name == "*":
            kind = times(kinds)
            return Text(_call(name, [_factor(a, kind, plain) for a in args], plain), kind, plain)
        if name == "abs":
            return Text(_call(name, [args[0].text], plain), kinds[0])
        return Text(_call(name, [a.to(REAL, plain) for a in args], plain), REAL)  # "/", "double": exact numbers here

    def member(self, value: Text, constants: frozenset[Scalar], plain: bool) -> Text:
        """x IN (…), with the list in the units of x."""
        units = 10 ** kind_scale(value.kind)
        listed = frozenset(c if isinstance(c, (str, bool)) or c is None else exact(c * units) for c in constants)
        name = f"LIST_{len(self.constants)}"
        self.constants[name] = listed
        return Text(f"({value.text} in {name})" if plain else f"IN({value.text}, {name})", constant_kind(True))

    def constant(self, value: Scalar) -> Text:
        kind = constant_kind(value)
        if isinstance(kind, Exact):
            units = exact(value * 10**kind.scale)
            return Text(repr(units), kind, units=units if isinstance(units, int) else None)
        if not isinstance(value, Fraction):
            return Text(repr(value), kind, is_name=not isinstance(value, str))
        name = f"C_{value.numerator}_{value.denominator}".replace("-", "minus_")
        self.constants[name] = value
        return Text(name, kind, is_name=True)

    def product(self, product: Product) -> Text:
        """Where doubles are multiplied, what they come to for one row must not be beyond all doubles."""
        own = [f for f in product if not self.counts(f.term)]
        factors = [self.factor(f) for f in product if f not in own] + [self.factor(f) for f in own]
        kind = times([f.kind for f in factors])
        if not factors:
            return Text("1", kind, units=1)
        if len(factors) == 1 and factors[0].is_atom and _factor(factors[0], kind, True) == factors[0].text:
            return replace(factors[0], kind=kind)
        texts = [_factor(f, kind, True) for f in factors]
        if kind == REAL and len(own) > 1:
            texts[-len(own) :] = [f"BOUNDED({' * '.join(texts[-len(own) :])})"]
        return Text(" * ".join(texts), kind)

    def counts(self, term: Term) -> bool:
        """How often a row counts, if need be with a sign."""
        return term.name in self.counted if isinstance(term, Var) else term in (number(1), number(-1))

    def factor(self, factor: Factor) -> Text:
        value = self.term(factor.term, factor.plain)
        if not factor.nullable:
            return value
        return Text(f"({value.text} or 0)" if isinstance(factor.term, Var) else f"NUMBER({value.text})", value.kind)


def _factor(factor: Text, product: Kind, plain: bool) -> str:
    """Scales of exact factors add up; a product that is inexact is one of the numbers themselves."""
    return factor.text if isinstance(product, Exact) else factor.to(product, plain)


def comparable(kinds: list[Kind]) -> Kind:
    """The greatest scale: units compare as numbers do."""
    return max(kinds, key=kind_scale)


def _function(function: Function, args: list[Text], plain: bool) -> Text:
    """A call. Where a scale is the function's own affair, it takes and gives the numbers themselves."""
    kinds = [a.kind for a in args]
    taken = [
        REAL if w == "number" else k
        for w, k in zip(function.kinds(len(args)), taken_kinds(function, kinds), strict=True)
    ]
    text = _call(function.name, [a.to(kind, plain) for a, kind in zip(args, taken, strict=True)], plain)
    given = given_kind(function, kinds)
    if function.gives == "number":
        text = Text(text, REAL).to(given, plain and not function.can_be_null)
    elif function.gives == "last":
        text = Text(text, taken[-1]).to(given, plain and not function.can_be_null)
    return Text(text, given)


def _call(name: str, args: list[str], plain: bool, lazily: bool = False) -> str:
    if plain and name == "not":
        return f"(not {args[0]})"
    if plain and name in PLAIN:
        return "(" + f" {PYTHON.get(name, name)} ".join(args) + ")"
    if plain and FUNCTION + name in SCOPE and not FUNCTIONS[name].can_be_null:
        return f"{FUNCTION}{name}({', '.join(args)})"
    if lazily:
        return f"LAZILY({name!r}, {tuple_text([f'lambda: {a}' for a in args])})"
    return f"APPLY({name!r}, {tuple_text(args)})"


def tuple_text(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
