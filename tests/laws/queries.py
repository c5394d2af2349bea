"""Random queries of the calculus that mean something, and random databases to evaluate them over.

``queries()`` draws closed, evaluable queries over R(a, b), S(b, c), T(c), where a and b are numbers and c is a string.
A variable's type is its first letter: ``c…`` holds strings, everything else numbers. A query is grown factor by factor:
each new factor uses variables that the factors before it bind, so an order of evaluation always exists, and every new
variable gets a number used nowhere else, so what a Sum sums out is named apart. No term is ever NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count

from hypothesis import strategies as st

from viewlet.algebra.gmr import GMR
from viewlet.algebra.query import Bind, Compare, Exists, Query, Rel, Value, join, outputs, scale, sum_, union
from viewlet.algebra.terms import COMPARISONS, Const, Number, Term, Var, number, op, string

SCHEMA = {"R": ("a", "b"), "S": ("b", "c"), "T": ("c",)}
NUMBERS: tuple[Number, ...] = (0, 1, 2, Fraction(1, 2))
STRINGS = ("x", "y", "it's")
MULTIPLICITIES: tuple[Number, ...] = (1, 2, -1, -2, Fraction(1, 2), Fraction(-1, 3))
MAX_DEPTH = 2

Names = frozenset[str]


def databases() -> st.SearchStrategy[dict[str, GMR]]:
    """A GMR for each relation of SCHEMA: few values, so that tuples meet; deletions and fractions among them."""
    return st.fixed_dictionaries({name: _relation(columns) for name, columns in SCHEMA.items()})


def _relation(columns: tuple[str, ...]) -> st.SearchStrategy[GMR]:
    tuples = st.tuples(*(st.sampled_from(STRINGS if is_string(c) else NUMBERS) for c in columns))
    entries = st.dictionaries(tuples, st.sampled_from(MULTIPLICITIES), min_size=1, max_size=6)
    return entries.map(lambda rows: GMR(columns, rows))


def is_column(variable: str) -> bool:
    """Not computed: two computed values that test each other have no order of evaluation."""
    return not variable.startswith(("x", "n", "cx"))


def is_string(variable: str) -> bool:
    return variable.startswith("c")


@st.composite
def queries(draw: st.DrawFn, max_depth: int = MAX_DEPTH) -> Query:
    """A closed, evaluable query with any outputs."""
    grower = Grower(draw)
    return grower.summed(grower.product(frozenset(), max_depth), keep=frozenset())


@st.composite
def aggregates(draw: st.DrawFn, max_depth: int = MAX_DEPTH) -> Query:
    """A closed, evaluable query without outputs: a number."""
    return sum_((), Grower(draw).product(frozenset(), max_depth))


@dataclass
class Grower:
    draw: st.DrawFn
    numbers: count[int] = field(default_factory=count)

    def fresh(self, letter: str) -> str:
        return f"{letter}{next(self.numbers)}"

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    # -- products ------------------------------------------------------------------------------------------------------

    def product(self, scope: Names, depth: int) -> Query:
        """Factors that may use the variables of ``scope`` and those of the factors before them."""
        q = self.atom(scope)
        for _ in range(self.draw(st.integers(0, 3))):
            make = self.draw(st.sampled_from(self.flat + (self.nested if depth else ())))
            q = join(q, make(self, scope | outputs(q), depth))
        return join(q, self.tested(outputs(q), scope)) if any(map(is_column, outputs(q))) and self.chance(5) else q

    def summed(self, q: Query, keep: Names) -> Query:
        """Sum out some of Q's outputs, none of ``keep``."""
        kept = [v for v in sorted(outputs(q)) if v in keep or self.draw(st.booleans())]
        return sum_(kept, q)

    def atom(self, scope: Names, depth: int = 0) -> Query:
        name = self.draw(st.sampled_from(sorted(SCHEMA)))
        return Rel(name, tuple(self.column(letter, scope) for letter in SCHEMA[name]))

    def column(self, letter: str, scope: Names) -> str:
        """A variable in scope of the right type (a join, a correlation, or R(a, a)) or a new one."""
        known = [v for v in sorted(scope) if is_string(v) == is_string(letter)]
        return self.draw(st.sampled_from(known)) if known and self.draw(st.booleans()) else self.fresh(letter)

    def condition(self, scope: Names, depth: int) -> Query:
        kinds = {is_string(v) for v in scope} or {False}
        term = self.text if self.draw(st.sampled_from(sorted(kinds))) else self.arithmetic
        return Compare(self.draw(st.sampled_from(sorted(COMPARISONS))), term(scope), term(scope))

    def value(self, scope: Names, depth: int) -> Query:
        return Value(self.arithmetic(scope))

    def computed(self, scope: Names, depth: int) -> Query:
        """(x := term)"""
        letter, term = ("cx", self.text(scope)) if self.chance(3) else ("x", self.arithmetic(scope))
        return Bind(self.fresh(letter), Value(term))

    def tested(self, own: Names, scope: Names) -> Query:
        """(x := term) where an atom of this very product binds x already: an equality of columns and constants."""
        var = self.draw(st.sampled_from(sorted(v for v in own if is_column(v))))
        known = frozenset(v for v in scope | own if is_column(v)) - {var}
        return Bind(var, Value(self.text(known) if is_string(var) else self.arithmetic(known)))

    # -- nested queries ------------------------------------------------------------------------------------------------

    def aggregate(self, scope: Names, depth: int) -> Query:
        """(n := Sum[…](…)), correlated where the product inside happens to use the scope."""
        inner = self.product(scope if self.draw(st.booleans()) else frozenset(), depth - 1)
        return Bind(self.fresh("n"), sum_(outputs(inner) & scope, inner))

    def exists(self, scope: Names, depth: int) -> Query:
        return Exists(self.subquery(scope, depth))

    def subquery(self, scope: Names, depth: int) -> Query:
        """Sum[…](…) as a factor, with columns of its own; what it shares with the scope it may not sum out."""
        return self.summed(self.product(scope, depth - 1), keep=scope)

    def sum_of_queries(self, scope: Names, depth: int) -> Query:
        """(Q + c·Q′): Q′ is grown until it binds what Q binds, and no more."""
        first = self.subquery(scope, depth)
        second = join(*(self.provider(v, outputs(first)) for v in sorted(outputs(first))))
        second = join(second, self.condition(outputs(second), depth), self.value(outputs(second), depth))
        return union(first, scale(self.draw(st.sampled_from(MULTIPLICITIES)), second))

    def provider(self, variable: str, wanted: Names) -> Query:
        """Something that binds ``variable`` and nothing that is not wanted."""
        if self.chance(3):
            return Bind(variable, Value(self.constant(string if is_string(variable) else number)))
        atom = Rel("T", (variable,)) if is_string(variable) else Rel("R", (variable, self.column("b", wanted)))
        return sum_(outputs(atom) & wanted, atom)

    flat = (atom, atom, condition, value, computed)
    nested = (aggregate, aggregate, exists, subquery, sum_of_queries)

    # -- terms ---------------------------------------------------------------------------------------------------------

    def arithmetic(self, scope: Names, depth: int = 2) -> Term:
        known = [v for v in sorted(scope) if not is_string(v)]
        if depth and self.chance(3):
            return op(self.draw(st.sampled_from("+-*")), *(self.arithmetic(scope, depth - 1) for _ in range(2)))
        return Var(self.draw(st.sampled_from(known))) if known and not self.chance(3) else self.constant(number)

    def text(self, scope: Names) -> Term:
        known = [v for v in sorted(scope) if is_string(v)]
        return Var(self.draw(st.sampled_from(known))) if known and not self.chance(3) else self.constant(string)

    def constant(self, make: Callable[..., Const]) -> Const:
        return make(self.draw(st.sampled_from(STRINGS if make is string else (*NUMBERS, *MULTIPLICITIES))))
