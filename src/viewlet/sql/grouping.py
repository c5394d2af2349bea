"""What is aggregated and what it is grouped by: sums over a product, their extremes and picks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Exists, Query, Value, join, outputs, rename, sum_, union
from viewlet.algebra.terms import NULL, ZERO_TERM, Term, Var, number, op
from viewlet.program.trigger import End, Extreme, Gather
from viewlet.schema import BIGINT
from viewlet.sql.expr import Expr, rounded, variable
from viewlet.sql.scope import Names

Place = Callable[[Term], Term]  # of how many values there are: how many of them come before the one that is wanted


@dataclass(frozen=True)
class Grouping:
    """The product that is aggregated and what it is grouped by; ``lookups`` collects the sums asked for.

    ``at_top`` of a view MIN and MAX are not sums but ``extremes``, which a reader of the view finds, and lists are
    ``gathers``, by themselves without a name. Elsewhere a value
    that is no number is one of the ``picks``: a factor that gives its variable one value. A ``sparse`` group may be
    without rows. The groups ``always`` are there even then. ``sets`` are the products of the other grouping sets.
    """

    names: Names
    keys: tuple[str, ...]
    factors: tuple[Query, ...]
    grouped: bool
    at_top: bool = False
    sparse: bool = False
    sets: tuple[Query, ...] = ()
    always: tuple[Query, ...] = ()
    lookups: dict[Query, str] = field(default_factory=dict)
    extremes: dict[tuple[End, Query, Term | None], Extreme] = field(default_factory=dict)
    gathers: dict[Gather, Gather] = field(default_factory=dict)
    picks: dict[Query, str] = field(default_factory=dict)
    values: dict[tuple[Query, Term], tuple[str, Query]] = field(default_factory=dict)

    @property
    def rows(self) -> Query:
        """Sum_keys: a group is there while this is not 0."""
        return union(sum_(self.keys, join(*self.factors)), *self.always)

    @property
    def groups(self) -> Query:
        """Every group once; the groups of two grouping ``sets`` are never the same."""
        products = self.sets or (join(*self.factors),)
        return union(*(Exists(sum_(self.keys, product)) for product in products), *self.always)

    def fills(self, argument: Expr) -> bool:
        """Whether every group has a value of the argument."""
        return self.grouped and not self.sparse and not argument.nullable

    def where(self, *more: Query) -> Grouping:
        """The same groups over fewer rows, so that one may be without any."""
        return replace(self, factors=(*self.factors, *more), sparse=True)

    def lookup(self, name: str, *more: Query) -> str:
        """The variable for Sum_keys of the product times ``more``; equal sums share one."""
        q = sum_(self.keys, join(*self.factors, *more))
        if q not in self.lookups:
            self.lookups[q] = self.names.fresh(name)
        return self.lookups[q]

    def by_value(self, argument: Expr) -> tuple[str, Query]:
        """x and Sum_{keys, x}: how many rows of each group have which value; equal arguments share both."""
        argument = rounded(argument)
        product = join(*self.factors, *argument.binds, *argument.guards)
        shared = self.values.get((product, argument.bare))
        if shared is None:
            var, with_value = bound(self.names, product, argument.bare, apart_from=self.keys)
            shared = self.values[product, argument.bare] = var, sum_({*self.keys, var}, with_value)
        return shared

    def over_distinct(self, argument: Expr) -> tuple[Grouping, Expr]:
        """The same groups over DISTINCT values: Exists(Sum_{keys, x}(product)), and x."""
        var, counted = self.by_value(argument)
        return replace(self, factors=(Exists(counted),)), variable(var, argument.type, False)

    def over_distinct_rows(self, arguments: Sequence[Expr]) -> Grouping:
        """The same groups over DISTINCT row values (x, y), in which a NULL is as good as a value."""
        product, variables = join(*self.factors), list(self.keys)
        for argument in map(rounded, arguments):
            var, product = bound(self.names, join(product, *argument.binds), argument.term)
            variables.append(var)
        return replace(self, factors=(Exists(sum_(variables, product)),))

    def extreme(self, end: End, argument: Expr, name: str, place: Place | None = None) -> str:
        """The variable for the least or greatest value of each group; below the top of a view it is one more sum.

        With a ``place`` it is the first value, from that end on, up to which there are more rows.
        """
        key, counted = self.by_value(argument)
        at = None if place is None else place(Var(self.count(argument)))
        if (end, counted, at) not in self.extremes:
            self.extremes[end, counted, at] = Extreme(self.names.fresh(name), end, key, counted, at)
            if not self.at_top:
                chosen = self._chosen(end, argument, value := self.names.fresh("x"), place)
                nested = sum_(self.keys, join(*chosen, Value(Var(value))))
                self.lookups[nested] = self.extremes[end, counted, at].var
        return self.extremes[end, counted, at].var

    def count(self, argument: Expr) -> str:
        """COUNT(x): the rows where x is not NULL."""
        return self.lookup("count", *argument.binds, *argument.guards) if argument.nullable else self.lookup("count")

    def gather(self, gather: Gather, name: str) -> str:
        """The variable for a list; equal ones share it."""
        if gather not in self.gathers:
            self.gathers[gather] = replace(gather, var=self.names.fresh(name))
        return self.gathers[gather].var

    def pick(self, end: End, argument: Expr, name: str, place: Place | None = None) -> str:
        """The same for values of any type: the variable is a key, and NULL where the group has no value."""
        if self.at_top:
            return self.extreme(end, argument, name, place)
        var, count = self.names.fresh(name), Var(self.names.fresh("count"))
        values = sum_({*self.keys, var}, join(*self._chosen(end, argument, var, place)))
        if not self.fills(argument):
            rows = sum_(self.keys, join(*self.factors, *argument.binds, *argument.guards))
            (rows,) = self.names.apart([values, rows], (*self.keys, var))[1:]
            nothing = join(Bind(count.name, rows), Compare("=", count, ZERO_TERM), Bind(var, Value(NULL)))
            values = union(values, sum_({var}, nothing))
        self.picks[values] = var
        return var

    def _chosen(self, end: End, argument: Expr, value: str, place: Place | None) -> tuple[Query, ...]:
        return self._last(end, argument, value) if place is None else self._placed(end, argument, value, place)

    def _placed(self, end: End, argument: Expr, value: str, place: Place) -> tuple[Query, ...]:
        """Exists(Sum_{keys, x}) ⋈ (n := …) ⋈ (b := … [y < x]) ⋈ (u := … [y <= x]) ⋈ [b <= p(n)] ⋈ [u > p(n)]."""
        key, counted = self.by_value(argument)
        rows = join(*self.factors, *argument.binds, *argument.guards)
        sign = "<" if end == "least" else ">"
        before, upto = (Compare(op_, argument.bare, Var(value)) for op_ in (sign, f"{sign}="))
        sums = [sum_(self.keys, rows), *(sum_(self.keys, join(rows, bound_)) for bound_ in (before, upto))]
        counted, *apart = self.names.apart([rename(counted, {key: value}), *sums], (*self.keys, value))
        names = [self.names.fresh(name) for name in ("count", "before", "through")]
        wanted, counts = place(Var(names[0])), [Bind(name, q) for name, q in zip(names, apart, strict=True)]
        here = Compare("<=", Var(names[1]), wanted), Compare(">", Var(names[2]), wanted)
        return Exists(counted), *counts, *here

    def _last(self, end: End, argument: Expr, value: str) -> tuple[Query, ...]:
        """Exists(Sum_{keys, x}) ⋈ (beyond := Sum_keys(… ⋈ [y < x])) ⋈ [0 = beyond], for the greatest [y > x].

        The comparison rules out every NULL but those that are ``hidden``.
        """
        key, counted = self.by_value(argument)
        beyond = self.names.fresh("beyond")
        further = Compare("<" if end == "least" else ">", argument.bare, Var(value))
        rest = sum_(self.keys, join(*self.factors, *argument.binds, *argument.hidden, further))
        counted, rest = self.names.apart([rename(counted, {key: value}), rest], self.keys)
        return Exists(counted), Bind(beyond, rest), Compare("=", ZERO_TERM, Var(beyond))


def aggregate_factors(grouping: Grouping, *beside: Query) -> tuple[Query, ...]:
    """(s := Sum_g(inner ⋈ value)) …: each copy of inner has its own locals and shares g, also with those ``beside``."""
    wanted = [*grouping.lookups, *grouping.picks]
    keep = (*grouping.keys, *grouping.picks.values())
    queries = grouping.names.apart([*beside, *wanted], keep)[len(beside) :] if wanted else []
    sums = [Bind(var, q) for var, q in zip(grouping.lookups.values(), queries, strict=False)]
    return (*sums, *queries[len(sums) :])


def bound(
    names: Names, product: Query, term: Term, name: str = "x", apart_from: Collection[str] = ()
) -> tuple[str, Query]:
    """A variable that has the term's value: the term itself where it is a column of the product, else a Bind."""
    if isinstance(term, Var) and term.name in outputs(product) and term.name not in apart_from:
        return term.name, product
    var = names.fresh(name)
    return var, join(product, Bind(var, Value(term)))


@dataclass(frozen=True)
class Keys:
    """The value of each key, by the term that it is grouped by; of several grouping ``sets``, which keys each has.

    ``place`` is the variable that says to which of them a row belongs. ``written`` are the keys that have a subquery:
    each time that is translated, it has other terms.
    """

    values: Mapping[Term, Expr]
    sets: tuple[frozenset[Term], ...] = ()
    place: str = ""
    written: Mapping[exp.Expr, Term] = field(default_factory=dict)

    def grouping(self, asked: Sequence[Term]) -> Expr:
        """GROUPING(a, b): a bit for each key that the row's set lacks, the last one the lowest."""
        bits = [sum((key not in has) << i for i, key in enumerate(reversed(asked))) for has in self.sets]
        term: Term = number(bits[-1]) if bits else ZERO_TERM
        for place, value in reversed([*enumerate(bits[:-1])]):
            term = op("case", op("=", Var(self.place), number(place)), number(value), term)
        return Expr(term, BIGINT, term)
