"""By what a query may be split along one dimension, so that the sum over its coordinates is the query.

Let Qᵢ be Q over the rows that coordinate i has. Where x is a variable in sight, and h its hash, a part of a query is

* *whole* (W) if Qᵢ = Q for every i: all its relations are copied everywhere;
* *split* by x (S) if Qᵢ(t) is Q(t) where h(t.x) = i, and 0 elsewhere;
* *whole where it counts* (C) if Qᵢ(t) = Q(t) where h(t.x) = i, with anything elsewhere: W and S are;
* *summed* (T) if Q = Σᵢ Qᵢ and nothing more is known: S, once x is summed out.

A product of one S and otherwise C, S or W is S: where h(t.x) ≠ i the S is 0, elsewhere every factor is right. What is
not linear takes all but T: Exists keeps S, and a nested aggregate (``Bind``) of S or C is C. A definition must come
out as S or T. Since this holds whatever the relations contain, dimensions may be crossed: the coordinates of a second
one sum up to each coordinate of the first.

Variables that an equality ties together have one hash. *First* is the same argument with an x that always hashes to 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from viewlet.algebra.query import (
    ZERO,
    Bind,
    Compare,
    Exists,
    Join,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    atoms,
    factors,
    outputs,
)
from viewlet.algebra.terms import Var
from viewlet.cells.routing import All, First, Hash, Route, family
from viewlet.program.trigger import Script
from viewlet.schema import CLOCK, Relation

Names = frozenset[str]
Status = Literal["W", "S", "C", "T"]
Assigned = tuple[Status | None, tuple[Route, ...]]  # what a part is (None: nothing of use), and its atoms' routes
Schema = Mapping[str, Relation]


@dataclass(frozen=True, slots=True)
class Split:
    """How a monomial is divided: a route for each atom, and the key variables of the view that tell the coordinate."""

    routes: tuple[Route, ...]
    keys: Names

    @property
    def is_first(self) -> bool:
        return any(isinstance(r, First) for r in self.routes)


@dataclass(frozen=True, slots=True)
class Monomial:
    """A summand of one map of a result, its atoms in their order, and the ways to split it."""

    result: str
    query: Query
    atoms: tuple[Rel, ...]
    splits: tuple[Split, ...]


def monomials(script: Script) -> tuple[Monomial, ...]:
    """Every summand of every map of the results, in the order in which the script has them."""
    schema = {r.name: r for r in script.relations}
    return tuple(
        Monomial(result.name, summand, tuple(a for a in atoms(summand) if isinstance(a, Rel)), splits)
        for result in script.results
        for q in result.reads
        for summand, visible in _summands(q, outputs(q))
        for splits in (_splits(summand, visible, schema),)
    )


def _summands(q: Query, visible: Names) -> Iterator[tuple[Query, Names]]:
    """What Q is a sum of, and the outputs of Q that can be told from each."""
    match q:
        case Union(parts):
            for part in parts:
                yield from _summands(part, visible)
        case Sum(group, inner):
            yield from _summands(inner, visible & group)
        case _ if q != ZERO:
            yield q, visible & outputs(q)


def _splits(q: Query, visible: Names, schema: Schema) -> tuple[Split, ...]:
    """Every division that is right; that to the first coordinate is the last."""
    keys_by_routes: dict[tuple[Route, ...], Names] = {}
    for name in dict.fromkeys(v for a in atoms(q) if isinstance(a, Rel) for v in a.vars):
        status, routes = _assign(q, frozenset({name}), schema, linear=True)
        if status in ("S", "T") and _hash_alike(routes) and not _cuts_the_clock(q, routes):
            keys = _equal(frozenset({name}), q) & visible if status == "S" else frozenset()
            keys_by_routes[routes] = keys_by_routes.get(routes, frozenset()) | keys
    for relations in (schema, {name: replace(r, static=False) for name, r in schema.items()}):
        status, routes = _assign(q, None, relations, linear=True)
        if status == "S":  # static tables stay whole unless there is nothing else to count once
            keys_by_routes[routes] = frozenset()
            break
    return tuple(Split(routes, keys) for routes, keys in keys_by_routes.items())


def _hash_alike(routes: Sequence[Route]) -> bool:
    return len({family(r.type) for r in routes if isinstance(r, Hash)}) == 1


def _cuts_the_clock(q: Query, routes: Sequence[Route]) -> bool:
    """Each batch has a moment in place of the one before, so both must be in the same cells."""
    clocks = [a.name == CLOCK.name for a in atoms(q) if isinstance(a, Rel)]
    return any(clock and isinstance(route, Hash) for clock, route in zip(clocks, routes, strict=True))


# -- the argument, case by case ----------------------------------------------------------------------------------------


def _assign(q: Query, x: Names | None, schema: Schema, linear: bool) -> Assigned:
    """What Q is when split by x, all of whose names have one value; None is the x that hashes to 0.

    ``linear``: Q may end up as T, so x may be what it sums out.
    """
    match q:
        case Rel(name, _):
            return _assign_atom(q, x, schema[name])
        case Value() | Compare():
            return "W", ()
        case Bind(_, inner):
            status, routes = _assign(inner, x, schema, linear=False)
            return ("C" if status == "S" else status), routes
        case Exists(inner):
            return _assign(inner, x, schema, linear=False)
        case Sum(group, inner):
            return _assign_sum(group, inner, x, schema, linear)
        case Join(parts):
            x = x and _equal(x, q)
            return _together(_product, [_assign(p, x, schema, linear) for p in parts])
        case Union(parts):
            return _together(_sum, [_assign(p, x, schema, linear) for p in parts])
        case _:
            raise TypeError(f"{q.text} stands in no definition")


def _assign_atom(atom: Rel, x: Names | None, relation: Relation) -> Assigned:
    if relation.static:
        return "W", (All(),)
    if x is None:
        return "S", (First(),)
    for name, column in zip(atom.vars, relation.columns, strict=True):
        if name in x:
            return "S", (Hash(column.name, column.type),)
    return "W", (All(),)


def _assign_sum(group: Names, inner: Query, x: Names | None, schema: Schema, linear: bool) -> Assigned:
    """Inside, a name that is summed out means something of its own."""
    if x is None:
        return _assign(inner, None, schema, linear)
    local = outputs(inner) - group
    if not (linear and x <= local):
        return _assign(inner, x - local, schema, linear)
    status, routes = _assign(inner, x, schema, linear)
    return {"S": "T", "C": None}.get(
        status or "", status
    ), routes  # correlated with a name that ends here: with nothing


def _together(combine: Callable[[Sequence[Status]], Status | None], parts: Sequence[Assigned]) -> Assigned:
    routes = tuple(route for _, taken in parts for route in taken)
    known = [status for status, _ in parts if status is not None]
    return (combine(known) if len(known) == len(parts) else None), routes


def _product(parts: Sequence[Status]) -> Status | None:
    if "T" in parts:  # Σᵢ (Tᵢ ⋈ W) = (Σᵢ Tᵢ) ⋈ W, where nothing else depends on i
        return "T" if parts.count("W") == len(parts) - 1 else None
    return "S" if "S" in parts else "C" if "C" in parts else "W"


def _sum(parts: Sequence[Status]) -> Status | None:
    kinds = set(parts)
    if len(kinds) == 1:
        return parts[0]
    if "T" in kinds:
        return "T" if kinds == {"S", "T"} else None
    return "C"


def _equal(x: Names, q: Query) -> Names:
    """x and what the equalities among the factors of Q tie to it."""
    ties = [tie for f in factors(q) if (tie := _tie(f))]
    while more := frozenset(v for tie in ties if tie & x for v in tie) - x:
        x |= more
    return x


def _tie(f: Query) -> Names | None:
    match f:
        case Compare("=", Var(a), Var(b)) | Bind(a, Value(Var(b))):
            return frozenset({a, b})
    return None
