"""A candidate for a dimension: every monomial of a script with its way to be split, types made equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import TypeVar

from viewlet.algebra.query import Rel
from viewlet.cells.dimensions import Monomial, Names, Schema, Split
from viewlet.cells.routing import Hash, Route, common_type
from viewlet.schema import Relation, Type

T = TypeVar("T")
Hashed = tuple[str, str, Type]  # a relation, a column, its type
Routed = tuple[str, Route]  # a relation, and a route of its rows
Loads = Callable[[Routed], Fraction]


@dataclass(frozen=True)
class Spread:
    """One split of each monomial; any choice is legal."""

    monomials: tuple[Monomial, ...]
    splits: tuple[Split, ...]

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """Of every atom of the script, with one type for all columns that meet."""
        types = {column: common_type(c[2] for c in group) for group in _connected(self._meeting()) for column in group}
        return tuple(
            Hash(r.column, types[name, r.column, r.type]) if isinstance(r, Hash) else r
            for m, s in zip(self.monomials, self.splits, strict=True)
            for name, r in _routed(m, s)
        )

    def _meeting(self) -> Iterator[frozenset[Hashed]]:
        """The columns that are hashed in one monomial, or in any of a view whose maps must agree on the coordinate."""
        views: dict[str, frozenset[Hashed]] = dict.fromkeys(self.whole, frozenset())
        for m, s in zip(self.monomials, self.splits, strict=True):
            hashed = frozenset((name, r.column, r.type) for name, r in _routed(m, s) if isinstance(r, Hash))
            if m.result in views:
                views[m.result] |= hashed
            else:
                yield hashed
        yield from views.values()

    @cached_property
    def atoms(self) -> tuple[Rel, ...]:
        return tuple(a for m in self.monomials for a in m.atoms)

    @cached_property
    def whole(self) -> frozenset[str]:
        """The views each of whose keys has one coordinate: a key variable of all their maps tells it, or it is 0."""
        by_view: dict[str, list[Split]] = {}
        for monomial, split in zip(self.monomials, self.splits, strict=True):
            by_view.setdefault(monomial.result, []).append(split)
        return frozenset(
            view
            for view, splits in by_view.items()
            if frozenset.intersection(*(s.keys for s in splits)) or all(s.is_first for s in splits)
        )

    @cached_property
    def what(self) -> str:
        """The columns whose hashes are the coordinates."""
        columns: list[dict[str, None]] = []
        for monomial, split in zip(self.monomials, self.splits, strict=True):
            routed = _routed(monomial, split)
            named = dict.fromkeys(f"{name}.{r.column}" for name, r in routed if isinstance(r, Hash))
            if not any(named.keys() <= known.keys() for known in columns):
                columns = [known for known in columns if not known.keys() <= named.keys()] + [named]
        return "; ".join(" = ".join(named) for named in columns)


def spreads(monomials: Sequence[Monomial], schema: Schema, share: int) -> Iterator[Spread]:
    """From every split of every monomial the spreads that follow suit: with little copied, or with views kept whole.

    Monomials of a view that can be split alike, as those of its rows and sums mostly can, are.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    for i, m in enumerate(monomials):
        alike.setdefault((m.result, tuple(a.name for a in m.atoms), m.splits), []).append(i)
    loads = cache(lambda routed: _load(routed, schema, share))
    for chosen in _different([monomials[places[0]] for places in alike.values()], loads):
        splits = {i: split for split, places in zip(chosen, alike.values(), strict=True) for i in places}
        yield Spread(tuple(monomials), tuple(splits[i] for i in range(len(monomials))))


def _different(monomials: Sequence[Monomial], loads: Loads) -> Iterator[tuple[Split, ...]]:
    seen = set[tuple[Split, ...]]()
    for i, monomial in enumerate(monomials):
        for split in monomial.splits:
            if split.is_first or any(other[i] == split for other in seen):
                continue
            for whole in (False, True):
                followed = _Suit(loads, whole).followed(monomials, i, split)
                if followed not in seen:
                    seen.add(followed)
                    yield followed


@dataclass
class _Suit:
    """Splits chosen one after the other, each to add the least to the load of a cell.

    ``whole``: above all, each leaves a key variable that all maps of its view have in common. ``routed`` and ``keys``
    are what has been routed so far, and the key variables that are left of each view.
    """

    loads: Loads
    whole: bool
    routed: set[Routed] = field(default_factory=set)
    keys: dict[str, Names] = field(default_factory=dict)

    def followed(self, monomials: Sequence[Monomial], start: int, split: Split) -> tuple[Split, ...]:
        """Greedily: the monomial at ``start`` so, then the others of its view, then the rest."""
        view = monomials[start].result
        chosen = {start: self._take(monomials[start], split)}
        for i in sorted(range(len(monomials)), key=lambda i: (monomials[i].result != view, i)):
            if i != start:
                chosen[i] = self._take(monomials[i], min(monomials[i].splits, key=partial(self._rank, monomials[i])))
        return tuple(chosen[i] for i in range(len(monomials)))

    def _rank(self, monomial: Monomial, split: Split) -> tuple[bool, Fraction, bool]:
        more = {r for r in _routed(monomial, split) if r not in self.routed}
        torn = not self._keys_left(monomial, split)
        return self.whole and torn, sum(map(self.loads, more), Fraction(0)), torn

    def _take(self, monomial: Monomial, split: Split) -> Split:
        self.routed.update(_routed(monomial, split))
        self.keys[monomial.result] = self._keys_left(monomial, split)
        return split

    def _keys_left(self, monomial: Monomial, split: Split) -> Names:
        return self.keys.get(monomial.result, split.keys) & split.keys


def _connected(groups: Iterable[frozenset[T]]) -> list[frozenset[T]]:
    """The groups, those that overlap as one."""
    connected: list[frozenset[T]] = []
    for group in groups:
        touching = [other for other in connected if other & group]
        connected = [other for other in connected if not other & group] + [group.union(*touching)]
    return connected


def _routed(monomial: Monomial, split: Split) -> Iterator[Routed]:
    return ((a.name, r) for a, r in zip(monomial.atoms, split.routes, strict=True))


def _load(routed: Routed, schema: Schema, share: int) -> Fraction:
    """How much of a relation's traffic the busiest coordinate gets."""
    name, route = routed
    relation = schema[name]
    return Fraction(0) if relation.static else relation.rate * busiest_part(relation, route, share)


def hashed_share(relation: Relation, route: Route, share: int) -> int:
    """Over how many coordinates the rows of a relation go: no more than the column has values."""
    if not isinstance(route, Hash):
        return 1
    column = relation.column(route.column)
    values = 2 if column is not None and column.type.kind == "BOOLEAN" else share
    return max(1, min(share, relation.distinct.get(route.column, values)))


def busiest_part(relation: Relation, route: Route, share: int) -> Fraction:
    """Of a relation's rows, those at the busiest coordinate: h + (1 − h) / n, if one value has h of them."""
    hot = relation.hot.get(route.column, Fraction(0)) if isinstance(route, Hash) else Fraction(0)
    return hot + (1 - hot) / hashed_share(relation, route, share)
