"""The best grid for a script: which dimensions, and how many cells along each.

Time is what the busiest cell takes. It gets of each copy the rate × Π 1/share over the dimensions that the copy is
hashed along: what is copied along a dimension, or stays at its first coordinate, is no less for it. Nor are rows that
have one value of a hot column (``hot_<column>``) where the copy is hashed by that: they are split by another column, or
each against all, where that asks less of the busiest cell. A view with groups that is summed across cells costs more:
its changes travel on and are added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import prod

from viewlet.algebra.query import atoms
from viewlet.cells.copies import copies, over_copies, uses
from viewlet.cells.dimensions import Monomial, Schema, monomials
from viewlet.cells.routing import All, Copy, Dimension, Grid, Hash, Route
from viewlet.cells.spread import Spread, busiest_part, hashed_share, spreads
from viewlet.program.trigger import Script

SENDING = Fraction(1, 4)  # of an event's cost: changes of one group in a batch are one
MOST_DIMENSIONS = 3
CONSIDERED = {1: 1000, 2: 12, 3: 6}  # of the best spreads, to be crossed
MOSTLY_EQUAL = 4  # rows to each different tuple, from which on a batch is worth summing up before it travels

Axes = tuple[tuple[Spread, int], ...]  # dimensions with their shares
Cost = tuple[Fraction, Fraction, int, int, int]


def plan(script: Script, cells: int, *, every_column: bool = False) -> Grid:
    """The cheapest legal grid with at most ``cells`` cells; one cell where no other grid asks less of its busiest.

    With ``every_column``, streams arrive with all their columns, whether a view reads them or not.
    """
    planner = Planner(script, cells)
    best = min(planner.axes(), key=planner.cost)
    why = "" if best else planner.why_one_cell()
    return replace(assemble(script, best, every_column=every_column), why=why)


def legal_grids(script: Script, cells: int) -> Iterator[Grid]:
    """The grids that :func:`plan` weighs, one cell among them."""
    return (assemble(script, axes) for axes in Planner(script, cells).axes())


def assemble(script: Script, axes: Axes, *, every_column: bool = False) -> Grid:
    """The grid of some dimensions: copies, and the script over them."""
    used = uses(script, list(routes_of(script, axes)))
    if every_column:
        static = {relation.name for relation in script.relations if relation.static}
        used = [use if use.relation in static else replace(use, read=(True,) * len(use.read)) for use in used]
    made = copies(script, used, [share for _, share in axes])
    local = local_views(script, axes)
    return Grid(
        tuple(Dimension(share, spread.what) for spread, share in axes),
        tuple(made.values()),
        over_copies(script, used, made, local),
        script,
        local,
        preaggregate=not axes and _repeats(script, made.values()),
    )


def routes_of(script: Script, axes: Axes) -> Iterable[tuple[Route, ...]]:
    """Of every atom of the results, along every dimension."""
    if axes:
        return zip(*(spread.routes for spread, _ in axes), strict=True)
    return [() for result in script.results for q in result.reads for _ in atoms(q)]


def local_views(script: Script, axes: Axes) -> frozenset[str]:
    """The views whose rows are whole in a cell; of an aggregate without groups every cell has one.

    Which rows are the first ones no cell knows alone.
    """
    names = frozenset(r.name for r in script.results if not axes or (r.rows is not None and not r.is_cut))
    return names.intersection(*(spread.whole for spread, _ in axes))


def _repeats(script: Script, made: Iterable[Copy]) -> bool:
    """Of every stream, the declared numbers of distinct values say that equal tuples are common."""
    schema = {r.name: r for r in script.relations}
    streams = [copy for copy in made if not copy.static]
    known = all(c in schema[copy.relation].distinct for copy in streams for c in copy.columns)
    return known and all(
        MOSTLY_EQUAL * prod(schema[s.relation].distinct[c] for c in s.columns) <= schema[s.relation].rows
        for s in streams
    )


# -- the search --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planner:
    script: Script
    cells: int

    @cached_property
    def schema(self) -> Schema:
        return {r.name: r for r in self.script.relations}

    @cached_property
    def monomials(self) -> tuple[Monomial, ...]:
        return monomials(self.script)

    @cached_property
    def candidates(self) -> list[Spread]:
        """Dimensions, the best ones first; none where some summand cannot be split at all."""
        if self.cells < 2 or not all(m.splits for m in self.monomials):
            return []
        all_spreads = list(spreads(self.monomials, self.schema, self.cells))
        return sorted(all_spreads, key=lambda spread: self.cost(((spread, self.cells),)))

    def axes(self) -> Iterator[Axes]:
        """One cell, then one dimension, then several, with shares that cannot be raised."""
        yield ()
        for n in range(1, MOST_DIMENSIONS + 1):
            for chosen in combinations(self.candidates[: CONSIDERED[n]], n):
                if not _is_repeated(chosen):
                    limits = [self._most_coordinates(spread) for spread in chosen]
                    yield from (tuple(zip(chosen, shares, strict=True)) for shares in _shares(limits, self.cells))

    def _most_coordinates(self, spread: Spread) -> int:
        """As many as the hashed column with most values has, up to all cells."""
        pairs = zip(spread.atoms, spread.routes, strict=True)
        return max(hashed_share(self.schema[a.name], route, self.cells) for a, route in pairs)

    def cost(self, axes: Axes) -> Cost:
        """The load of the busiest cell; then what travels, views to be summed, copies, dimensions."""
        local = local_views(self.script, axes)
        sending = {r.name for r in self.script.results if r.rows is not None} - local
        sent: dict[tuple[str, tuple[Route, ...]], bool] = {}
        readers = (m.result for m in self.monomials for _ in m.atoms)
        for reader, atom, routes in zip(readers, self._atoms, routes_of(self.script, axes), strict=True):
            key = atom, routes
            sent[key] = sent.get(key, False) or reader in sending
        load, travelling = Fraction(0), Fraction(0)
        for (name, routes), is_sent in sent.items():
            busiest, replication = self._share_of(name, routes, axes)
            load += busiest * (1 + SENDING if is_sent else 1)
            travelling += replication
        return load, travelling, len(self.script.results) - len(local), len(sent), len(axes)

    @cached_property
    def _atoms(self) -> tuple[str, ...]:
        return tuple(a.name for m in self.monomials for a in m.atoms)

    def _share_of(self, name: str, routes: tuple[Route, ...], axes: Axes) -> tuple[Fraction, Fraction]:
        """Of a relation's traffic, what the busiest cell gets and what all cells get."""
        relation = self.schema[name]
        if relation.static:
            return Fraction(0), Fraction(0)
        busiest, divided, copied = relation.rate, 1, 1
        for route, (_, share) in zip(routes, axes, strict=True):
            if isinstance(route, Hash) and route.column in relation.hot:
                busiest *= busiest_part(relation, route, share)
            else:
                divided *= hashed_share(relation, route, share)
            copied *= share if isinstance(route, All) else 1
        return busiest / divided, relation.rate * copied

    def busiest(self, name: str, routes: tuple[Route, ...], axes: Axes) -> Fraction:
        """What the busiest cell gets of a relation's traffic."""
        return self._share_of(name, routes, axes)[0]

    def why_one_cell(self) -> str:
        if self.cells < 2:
            return "one cell was asked for"
        if stuck := next((m for m in self.monomials if not m.splits), None):
            return f"a part of {stuck.result} has no stream that could be divided: {stuck.query.text}"
        if not self.candidates:
            return "no view reads a stream"
        spread = self.candidates[0]
        copied = sorted({a.name for a, r in zip(spread.atoms, spread.routes, strict=True) if isinstance(r, All)})
        share, whole = self.cost(((spread, self._most_coordinates(spread)),))[0], self.cost(())[0]
        return (
            f"the best dimension, {spread.what}, would copy {', '.join(copied) or 'nothing'} to every cell, "
            f"and give each {float(share / whole):.3g} times the work that one cell has with all"
        )


def _is_repeated(chosen: Sequence[Spread]) -> bool:
    """Some atom is hashed by one column along two dimensions: its rows would only reach cells on a diagonal."""
    return any(
        isinstance(a, Hash) and isinstance(b, Hash) and a.column == b.column
        for one, other in combinations(chosen, 2)
        for a, b in zip(one.routes, other.routes, strict=True)
    )


def _shares(limits: Sequence[int], cells: int) -> Iterator[tuple[int, ...]]:
    """Shares from 2 to their limits, none of which could be raised with the others as they are."""
    if len(limits) == 1:
        if (share := min(limits[0], cells)) > 1:
            yield (share,)
        return
    for first in range(2, min(limits[0], cells // 2 ** (len(limits) - 1)) + 1):
        for rest in _shares(limits[1:], cells // first):
            if first == limits[0] or (first + 1) * prod(rest) > cells:
                yield (first, *rest)
