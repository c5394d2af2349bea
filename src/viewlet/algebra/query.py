"""The calculus (§3.1): every query denotes a generalised multiset relation (GMR), tuples ↦ numbers.

=======================  ==========================================================  =========================
paper                    node                                                        text
=======================  ==========================================================  =========================
R, with ρ                ``Rel("R", ("a", "b"))``: other variables are the renaming  ``R(a, b)``
ΔR, D_R (bulk update)    ``Delta("R", ("a", "b"))``                                  ``ΔR(a, b)``
{⟨⟩ ↦ f}                 ``Value(f)``                                                ``3``, ``a``, ``{(a + b)}``
{⟨A: a⟩ ↦ 1}             ``Bind("A", Value(a))``                                     ``(A := a)``
nested aggregate term    ``Bind("n", Q_N)``, then use ``n``                          ``(n := Sum[](…))``
σ_{l θ r}                ``Compare("<", l, r)``: 1 where it holds, else 0            ``[l < r]``
multiplicity ≠ 0         ``Exists(Q)``: DISTINCT, the domain of a delta              ``Exists(Q)``
Q₁ ⋈ Q₂                  ``join(Q1, Q2)``                                            ``Q1 * Q2``
Q₁ + Q₂                  ``union(Q1, Q2)``                                           ``(Q1 + Q2)``
Sum_{A;f} Q              ``sum_({"A"}, join(Q, Value(f)))``                          ``Sum[A](Q * f)``
𝓜(Q) (§5.1, transient)   ``Materialize(Q, bound)``                                   ``M(Q)``
M_Q[x_in][x_out]         ``View("q", ("x",), ("y",))``                               ``q[x][y]``
=======================  ==========================================================  =========================

NULL may stand in a column. ``Compare`` with a NULL side is 0 and ``Value`` of NULL is 0, and code that builds a query
keeps the *guard invariant*: in a product, next to a ``Value`` whose term may be NULL or an ``=`` between variables that
may be NULL, stands the comparison that rules the NULL out. So the rewrite rules may split and unify freely.

⋈ and + commute: the lower-case constructors flatten, fold constants and sort, so that equal queries are equal objects.
Variables that a ``Sum`` sums out are local to it; code that builds a query gives them names used nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from viewlet.algebra.remembered import remembered
from viewlet.algebra.terms import (
    COMPARISONS,
    Const,
    Node,
    Number,
    Term,
    Var,
    exact,
    free,
    number,
    substitute_term,
)

PLAIN = re.compile(r"(?:[^\W\d]|[@$])[\w.$#~′@]*")  # a name that the text of a query can show as it is


def label(name: str) -> str:
    """A name that SQL chose, quoted where it is not a plain one."""
    return name if PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, eq=False, repr=False)
class Rel(Node):
    name: str
    vars: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        return f"{label(self.name)}({', '.join(self.vars)})"


@dataclass(frozen=True, eq=False, repr=False)
class Delta(Node):
    """The update to relation ``name`` as a relation-valued parameter."""

    name: str
    vars: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        return f"Δ{label(self.name)}({', '.join(self.vars)})"


@dataclass(frozen=True, eq=False, repr=False)
class Value(Node):
    term: Term

    @cached_property
    def text(self) -> str:
        return self.term.text if isinstance(self.term, (Const, Var)) else "{" + self.term.text + "}"


@dataclass(frozen=True, eq=False, repr=False)
class Compare(Node):
    """``op`` is one of = <> < <= > >=; a NULL on either side makes it 0."""

    op: str
    left: Term
    right: Term

    def __post_init__(self) -> None:
        if self.op not in COMPARISONS:
            raise ValueError(f"no such comparison: {self.op}")

    @cached_property
    def text(self) -> str:
        return f"[{self.left.text} {self.op} {self.right.text}]"


@dataclass(frozen=True, eq=False, repr=False)
class Bind(Node):
    """⟨var: value of query⟩ ↦ 1. Everything free in ``query`` comes from outside (correlation is a shared name).

    Where ``var`` has a value already, a test that it is this one; a query that uses ``var`` itself makes it always so.
    """

    var: str
    query: Query

    @cached_property
    def text(self) -> str:
        return f"({self.var} := {self.query.text})"


@dataclass(frozen=True, eq=False, repr=False)
class Exists(Node):
    query: Query

    @cached_property
    def text(self) -> str:
        return f"Exists({self.query.text})"


@dataclass(frozen=True, eq=False, repr=False)
class Join(Node):
    """Build with :func:`join`."""

    factors: tuple[Query, ...]

    @cached_property
    def text(self) -> str:
        return " * ".join(f.text for f in self.factors)


@dataclass(frozen=True, eq=False, repr=False)
class Union(Node):
    """Build with :func:`union`."""

    branches: tuple[Query, ...]

    @cached_property
    def text(self) -> str:
        return "(" + " + ".join(b.text for b in self.branches) + ")"


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Node):
    """Build with :func:`sum_`."""

    group: frozenset[str]
    query: Query

    def __post_init__(self) -> None:
        if not self.group <= outputs(self.query):
            stray = ", ".join(sorted(self.group - outputs(self.query)))
            raise ValueError(f"cannot group by {stray}: not an output of {self.query.text}")

    @cached_property
    def text(self) -> str:
        return f"Sum[{', '.join(sorted(self.group))}]({self.query.text})"


@dataclass(frozen=True, eq=False, repr=False)
class Materialize(Node):
    """𝓜(Q): still to be decided. ``bound`` are the variables that have a value where Q is read."""

    query: Query
    bound: frozenset[str] = frozenset()

    @cached_property
    def text(self) -> str:
        return f"M({self.query.text})"


@dataclass(frozen=True, eq=False, repr=False)
class View(Node):
    """A read of a materialised view; a view with ``inputs`` is a view cache (§5.1)."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        return f"{self.name}[{', '.join(self.inputs)}][{', '.join(self.outputs)}]"


Query = Rel | Delta | Value | Compare | Bind | Exists | Join | Union | Sum | Materialize | View
Atom = Rel | Delta | View

ONE, ZERO = Value(number(1)), Value(number(0))

_RANK: dict[type, int] = {
    kind: rank
    for rank, kind in enumerate((Delta, Rel, View, Materialize, Exists, Sum, Join, Union, Bind, Compare, Value))
}


@remembered(1 << 17)
def canonical_order(q: Query) -> tuple[int, str]:
    return _RANK[type(q)], q.text


# -- constructors: the ring laws, applied once, at construction --------------------------------------------------------


def join(*queries: Query) -> Query:
    """Q₁ ⋈ Q₂ ⋈ …, flat, sorted, with one constant; a repeated 0/1 factor counts once."""
    return _join(queries)


@remembered(1 << 16)
def _join(queries: tuple[Query, ...]) -> Query:
    kept: dict[Query, None] = {}
    repeated: list[Query] = []
    constant: Number = 1
    for q in queries:
        for f in factors(q):
            value = _constant(f)
            if value is not None:
                constant = exact(constant * value)
            elif f not in kept:
                kept[f] = None
            elif not isinstance(f, (Compare, Exists, Bind)):
                repeated.append(f)
    if constant == 0:
        return ZERO
    result = [*kept, *repeated]
    if constant != 1:
        result.append(Value(number(constant)))
    return ordered_join(tuple(sorted(result, key=canonical_order)))


def _constant(f: Query) -> Number | None:
    """c where the factor is {⟨⟩ ↦ c}."""
    if not isinstance(f, Value) or not isinstance(f.term, Const) or f.term.kind != "number":
        return None
    return f.term.value if isinstance(f.term.value, (int, Fraction)) else None


def ordered_join(parts: tuple[Query, ...]) -> Query:
    """The join of factors that stand in canonical order already: some of those of one ``Join``."""
    return parts[0] if len(parts) == 1 else Join(parts) if parts else ONE


def union(*queries: Query) -> Query:
    """Q₁ + Q₂ + …, flat, sorted, like terms collected: Q + −1·Q is 0."""
    coefficients: dict[Query, Number] = {}
    for q in queries:
        for branch in branches(q):
            coefficient, core = split_coefficient(branch)
            coefficients[core] = exact(coefficients.get(core, 0) + coefficient)
    result = [scale(c, core) for core, c in coefficients.items() if c != 0]
    if any(isinstance(b, Union) for b in result):  # 2·(A + B) − 1·(A + B) became a union again
        return union(*result)
    result.sort(key=canonical_order)
    return result[0] if len(result) == 1 else Union(tuple(result)) if result else ZERO


def sum_(group: Iterable[str], q: Query) -> Query:
    """Sum_A(Q); nothing when A is all of Q's outputs, one Sum when Q is one already."""
    group = frozenset(group)
    if q == ZERO:
        return ZERO
    if isinstance(q, Sum) and group <= q.group:
        return sum_(group, q.query)
    return q if group == outputs(q) else Sum(group, q)


def negate(q: Query) -> Query:
    return scale(-1, q)


@remembered(1 << 16)
def scale(c: Number, q: Query) -> Query:
    return q if c == 1 else join(Value(number(c)), q)


@remembered(1 << 16)
def split_coefficient(q: Query) -> tuple[Number, Query]:
    """c · Q as (c, Q)."""
    for i, f in enumerate(factors(q)):
        value = _constant(f)
        if value is not None:
            return value, ordered_join(factors(q)[:i] + factors(q)[i + 1 :])
    return 1, q


def factors(q: Query) -> tuple[Query, ...]:
    return q.factors if isinstance(q, Join) else () if q is ONE else (q,)


def branches(q: Query) -> tuple[Query, ...]:
    return q.branches if isinstance(q, Union) else () if q == ZERO else (q,)


# -- binding patterns Q[x_in][x_out] (§3.3) ----------------------------------------------------------------------------


@remembered(1 << 17)
def outputs(q: Query) -> frozenset[str]:
    """x_out: the variables that Q gives values to."""
    match q:
        case Rel(_, names) | Delta(_, names) | View(_, _, names):
            return frozenset(names)
        case Value() | Compare():
            return frozenset()
        case Bind(var, inner):
            return frozenset({var}) - inputs(inner) - outputs(inner)
        case Join(parts):
            return frozenset().union(*map(outputs, parts))
        case Union(parts):
            return frozenset.intersection(*map(outputs, parts))
        case Sum(group, _):
            return group
        case Exists(inner) | Materialize(inner):
            return outputs(inner)


@remembered(1 << 17)
def inputs(q: Query) -> frozenset[str]:
    """x_in: the variables that must be given before Q can be evaluated."""
    match q:
        case Rel() | Delta():
            return frozenset()
        case View(_, names, _):
            return frozenset(names)
        case Value(term):
            return free(term)
        case Compare(_, left, right):
            return free(left) | free(right)
        case Bind(_, inner):
            return inputs(inner) | outputs(inner)
        case Join(parts):
            return frozenset().union(*map(inputs, parts)) - outputs(q)
        case Union(parts):  # what only some branches give must come from outside for the others
            return frozenset().union(*map(inputs, parts), *map(outputs, parts)) - outputs(q)
        case Sum(_, inner) | Exists(inner) | Materialize(inner):
            return inputs(inner)


@remembered(1 << 17)
def relations(q: Query) -> frozenset[str]:
    """The names of the database relations in Q, nested ones included; not those of ``Delta``."""
    match q:
        case Rel(name, _):
            return frozenset({name})
        case _:
            return frozenset().union(*map(relations, children(q)))


@remembered(1 << 17)
def atoms(q: Query) -> tuple[Atom, ...]:
    """Every atom in Q, nested ones included, as often as it stands there."""
    return (q,) if isinstance(q, (Rel, Delta, View)) else tuple(a for child in children(q) for a in atoms(child))


@remembered(1 << 17)
def different_atoms(q: Query) -> frozenset[Atom]:
    """Every atom in Q, nested ones included."""
    if isinstance(q, (Rel, Delta, View)):
        return frozenset({q})
    return frozenset[Atom]().union(*map(different_atoms, children(q)))


def reads_update(q: Query) -> bool:
    """Some part of Q is the relation-valued parameter of a bulk update."""
    return any(isinstance(a, Delta) for a in different_atoms(q))


@remembered(1 << 16)
def degree(q: Query) -> int:
    """deg(Q): how many relations are joined in the largest union-free part (§4)."""
    match q:
        case Rel():
            return 1
        case Join(parts):
            return sum(map(degree, parts))
        case _:
            return max(map(degree, children(q)), default=0)


# -- traversal ---------------------------------------------------------------------------------------------------------


@remembered(1 << 17)
def children(q: Query) -> tuple[Query, ...]:
    match q:
        case Join(parts) | Union(parts):
            return parts
        case Sum(_, inner) | Exists(inner) | Materialize(inner) | Bind(_, inner):
            return (inner,)
        case _:
            return ()


def map_children(q: Query, f: Callable[[Query], Query]) -> Query:
    """Q with ``f`` applied to its children, rebuilt by the constructors.

    A variable that came from outside and that a child now gives itself stays visible through a Sum. Exists(0) is 0: it
    gives no columns, so a product with it must be 0 as well.
    """
    match q:
        case Join(parts):
            changed = tuple(map(f, parts))
            return q if changed == parts else join(*changed)
        case Union(parts):
            changed = tuple(map(f, parts))
            return q if changed == parts else union(*changed)
        case Sum(group, inner):
            after = f(inner)
            return q if after is inner else sum_((group | inputs(inner)) & outputs(after), after)
        case Bind(var, inner):
            return Bind(var, f(inner))
        case Exists(inner):
            after = f(inner)
            return ZERO if after == ZERO else Exists(after)
        case Materialize(inner, bound):
            return Materialize(f(inner), bound)
        case _:
            return q


@remembered(1 << 17)
def variables(q: Query) -> frozenset[str]:
    """Every variable that occurs in Q, local ones included."""
    own = inputs(q) | outputs(q) if not children(q) else outputs(q)
    return own.union(*map(variables, children(q)))


def substitute(q: Query, by: Mapping[str, Term]) -> Query:
    """Replace variables by terms everywhere; only a variable may take the place of a column of an atom."""
    if by.keys().isdisjoint(variables(q)):
        return q

    def column(name: str) -> str:
        term = by.get(name)
        if term is None:
            return name
        if not isinstance(term, Var):
            raise ValueError(f"cannot put {term.text} in the place of column {name} of {q.text}")
        return term.name

    match q:
        case Rel(name, names):
            return Rel(name, tuple(map(column, names)))
        case Delta(name, names):
            return Delta(name, tuple(map(column, names)))
        case View(name, ins, outs):
            return View(name, tuple(map(column, ins)), tuple(map(column, outs)))
        case Value(term):
            return Value(substitute_term(term, by))
        case Compare(op, left, right):
            return Compare(op, substitute_term(left, by), substitute_term(right, by))
        case Bind(var, inner):
            after = Bind(column(var), substitute(inner, by))
            return ONE if after.query == Value(Var(after.var)) else after
        case Sum(group, inner):
            replaced = substitute(inner, by)
            return sum_(frozenset(map(column, group)) & outputs(replaced), replaced)
        case _:
            return map_children(q, lambda child: substitute(child, by))


def rename(q: Query, names: Mapping[str, str]) -> Query:
    """ρ: replace variables by variables everywhere."""
    return substitute(q, {old: Var(names[old]) for old in names.keys() & variables(q)})
