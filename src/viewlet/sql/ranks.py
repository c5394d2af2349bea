"""Rows by how many of their partition come before them: what row_number(), rank() and dense_rank() <= k choose.

A row's rank is how many rows of its partition come before it, which is a sum like others: first the rows with an
earlier value of the first term of the ORDER BY, a range, and among those with the same value the rows that the further
terms put before it. A partition and a value are shared variables, by which NULL meets NULL.

A first term that is computed and may be NULL, as a SUM of a nullable column, makes two halves: rows where it has a
value, kept by that value, and rows where it is NULL, which all have the same place in the order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from viewlet.algebra.query import Bind, Compare, Exists, Query, Value, join, outputs, rename, sum_, union
from viewlet.algebra.terms import FALSE, NULL, ONE_TERM, TRUE, ZERO_TERM, Term, Var, number, op
from viewlet.sql.expr import Expr
from viewlet.sql.grouping import bound
from viewlet.sql.scope import Names

EVERY = 1 << 63  # more than there are rows
Counted = tuple[str, Query, Term]  # a count of rows, its variable, and what it adds to a rank


@dataclass(frozen=True)
class Ordered:
    """A term of an ORDER BY."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Wanted:
    """The rows that at least ``skipped`` and fewer than ``most`` come before.

    ``numbered``: equal rows have numbers of their own, by their columns; ``dense``: equal values count once.
    ``shown``: the number is a column.
    """

    skipped: int
    most: int
    numbered: bool
    dense: bool
    shown: bool


@dataclass(frozen=True)
class Chosen:
    """``columns``: the variable of each column that is shown; ``rank`` is one more than how many come before."""

    factors: tuple[Query, ...]
    columns: tuple[str, ...]
    rank: Term


@dataclass(frozen=True)
class _Key:
    """A term that rows are ordered by, under a variable."""

    var: str
    nullable: bool
    descending: bool = False
    nulls_first: bool = False

    def precedes(self, other: str, this: str) -> Term:
        """Whether the value under ``other`` comes before that under ``this``; never NULL."""
        less = op(">" if self.descending else "<", Var(other), Var(this))
        if not self.nullable:
            return less
        first, second = (other, this) if self.nulls_first else (this, other)
        apart = op("and", op("is_null", Var(first)), op("not", op("is_null", Var(second))))
        both = op("or", op("is_null", Var(other)), op("is_null", Var(this)))
        return op("case", both, apart, less)


@dataclass(frozen=True)
class _Part:
    """Rows with the keys of their order; ``counted`` are what places are counted in."""

    rows: Query
    counted: Query
    keys: tuple[_Key, ...]


def chosen(
    product: Query,
    columns: Sequence[Expr],
    partition: Sequence[Expr],
    order: Sequence[Ordered],
    wanted: Wanted,
    names: Names,
) -> Chosen:
    """The wanted rows of ``product``, as factors."""
    groups, product = _bound(names, product, partition, {})
    splits = bool(order) and _is_split(order[0].expr, partition)
    lead = names.fresh("key") if splits else ""
    own = {order[0].expr.term: lead} if splits else {}
    shown, product = _bound(names, product, columns, own)
    values, product = _bound(names, product, [o.expr for o in order], own)
    keys = [_Key(v, o.expr.nullable, o.descending, o.nulls_first) for v, o in zip(values, order, strict=True)]
    if wanted.numbered:
        keys += [_Key(var, c.nullable) for var, c in zip(shown, columns, strict=True)]
    keys = [k for i, k in enumerate(keys) if k.var not in groups and k.var not in {o.var for o in keys[:i]}]

    def part(product: Query, keys: Sequence[_Key]) -> _Part:
        rows = sum_({*shown, *groups, *values}, product)
        return _Part(rows, Exists(sum_({*groups, *values}, product)) if wanted.dense else rows, tuple(keys))

    if not splits:
        whole = part(product, keys)
        factors, rank = _chosen(whole, before(whole.counted, frozenset(groups), keys, names), wanted, names)
        return Chosen(factors, tuple(shown), rank)
    first, expr = keys[0], order[0].expr
    known = join(product, *expr.guards, Bind(lead, Value(expr.bare)))
    unknown = join(product, Compare("=", op("is_null", expr.term), TRUE), Bind(lead, Value(NULL)))
    halves = part(known, [replace(first, nullable=False), *keys[1:]]), part(unknown, keys[1:])
    return _of_halves(halves, first.nulls_first, frozenset(groups), shown, wanted, names)


def first_of_each(
    rows: Query, groups: frozenset[str], columns: Sequence[tuple[str, bool]], names: Names
) -> tuple[Query, ...]:
    """The first row of each group, once, by its columns; with each of them stands whether it may be NULL."""
    keys = [_Key(var, nullable) for var, nullable in columns if var not in groups]
    return _first(rows, before(rows, groups, keys, names), Wanted(0, 1, True, False, False), names)


def _is_split(first: Expr, partition: Sequence[Expr]) -> bool:
    """A column that is NULL has its place in an order of the column; a computed value is kept where it has one."""
    return first.nullable and not isinstance(first.term, Var) and first.term not in {p.term for p in partition}


def _bound(names: Names, product: Query, exprs: Sequence[Expr], own: Mapping[Term, str]) -> tuple[list[str], Query]:
    """Each expression under a variable; those in ``own`` have one already."""
    variables = list[str]()
    for expr in exprs:
        if expr.term in own:
            variables.append(own[expr.term])
            continue
        var, product = bound(names, product, expr.term, "key")
        variables.append(var)
    return variables, product


def _of_halves(
    halves: tuple[_Part, _Part],
    nulls_first: bool,
    groups: frozenset[str],
    shown: Sequence[str],
    wanted: Wanted,
    names: Names,
) -> Chosen:
    """All rows of the half that comes first are before each row of the other."""
    rank, branches = Var(names.fresh("rank")), list[Query]()
    for part, other, comes_first in ((*halves, not nulls_first), (*halves[::-1], nulls_first)):
        counts = [] if comes_first else [_number(other.counted, groups, names)]
        counts += before(part.counted, groups, part.keys, names)
        factors, place = _chosen(part, counts, wanted, names)
        if wanted.shown:
            factors = (*factors, Bind(rank.name, Value(place)))
        branches.append(sum_({*shown, *([rank.name] if wanted.shown else ())}, join(*factors)))
    return Chosen((union(*branches),), tuple(shown), rank)


def _chosen(part: _Part, counts: Sequence[Counted], wanted: Wanted, names: Names) -> tuple[tuple[Query, ...], Term]:
    if wanted.numbered and wanted.shown:
        return _copies(part.rows, counts, wanted, names)
    return _first(part.rows, counts, wanted, names), op("+", _total(counts), ONE_TERM)


def _first(rows: Query, counts: Sequence[Counted], wanted: Wanted, names: Names) -> tuple[Query, ...]:
    """The rows that as many as ``wanted`` of their group come before."""
    binds, total = [Bind(var, q) for var, q, _ in counts], _total(counts)
    skipped, most, few = wanted.skipped, wanted.most, _few(counts, wanted)
    if not wanted.numbered:
        return (rows, *binds, *few, *([Compare(">=", total, number(skipped))] if skipped else []))
    if (skipped, most) == (0, 1):
        return (Exists(rows), *binds, *few)
    times = names.fresh("times")
    copy = names.apart([rows, rows], sorted(outputs(rows)))[1]
    end = op("+", total, Var(times))
    if skipped:
        few.append(Compare(">", end, number(skipped)))
    shown = op("-", _least(end, number(most)) if most < EVERY else end, _greatest(total, number(skipped)))
    return (Exists(rows), *binds, Bind(times, copy), *few, Value(shown))


def _copies(rows: Query, counts: Sequence[Counted], wanted: Wanted, names: Names) -> tuple[tuple[Query, ...], Term]:
    """Each copy of a row with a number of its own: those from the first behind the rows before it."""
    binds, total = [Bind(var, q) for var, q, _ in counts], _total(counts)
    skipped, most = wanted.skipped, wanted.most
    place, times = Var(names.fresh("number")), Var(names.fresh("times"))
    copy = names.apart([rows, rows], sorted(outputs(rows)))[1]
    numbers = union(*(Bind(place.name, Value(number(i))) for i in range(skipped + 1, max(most, skipped + 1) + 1)))
    here = Compare("<", total, place), Compare("<=", place, op("+", total, times)), Compare("<=", place, number(most))
    return (Exists(rows), *binds, *_few(counts, wanted)[:-1], Bind(times.name, copy), numbers, *here), place


def _few(counts: Sequence[Counted], wanted: Wanted) -> list[Query]:
    """Fewer than so many come before: in all, and of each count but the last, since one of them alone has an order."""
    if wanted.most >= EVERY:
        return []
    return [Compare("<", term, number(wanted.most)) for term in (*(t for _, _, t in counts[:-1]), _total(counts))]


def _total(counts: Sequence[Counted]) -> Term:
    total: Term = ZERO_TERM
    for _, _, term in counts:
        total = op("+", total, term)
    return total


def _least(left: Term, right: Term) -> Term:
    return op("case", op("<", left, right), left, right)


def _greatest(left: Term, right: Term) -> Term:
    return left if right == ZERO_TERM else op("case", op("<", left, right), right, left)


# -- how many come before ----------------------------------------------------------------------------------------------


def before(rows: Query, groups: frozenset[str], keys: Sequence[_Key], names: Names) -> list[Counted]:
    """Counts of rows that come before one, each with its variable and what it adds to the rank."""
    if not keys:
        return []
    first, *others = keys
    counts = [_counted(rows, groups, first, names)]
    if first.nullable:
        counts.append(_nulls(rows, groups, first, names))
    if others:
        counts.append(_ties(rows, groups | {first.var}, others, names))
    return counts


def _apart(rows: Query, shared: frozenset[str], names: Names) -> tuple[Query, dict[str, str]]:
    """A copy of the rows that has only ``shared`` in common with them."""
    renamed = {v: names.fresh(v) for v in sorted(outputs(rows) - shared)}
    copy = names.apart([rows, rows], sorted(outputs(rows)))[1]
    return rename(copy, renamed), renamed


def _number(rows: Query, groups: frozenset[str], names: Names) -> Counted:
    """All rows of the group."""
    var = names.fresh("before")
    return var, sum_(groups, _apart(rows, groups, names)[0]), Var(var)


def _counted(rows: Query, groups: frozenset[str], key: _Key, names: Names) -> Counted:
    copy, renamed = _apart(rows, groups, names)
    earlier = Compare(">" if key.descending else "<", Var(renamed[key.var]), Var(key.var))
    var = names.fresh("before")
    return var, sum_(groups, join(copy, earlier)), Var(var)


def _nulls(rows: Query, groups: frozenset[str], key: _Key, names: Names) -> Counted:
    """NULLs last: before a NULL come all others; NULLs first: before others come all NULLs."""
    copy, renamed = _apart(rows, groups, names)
    counted = Compare("=", op("is_null", Var(renamed[key.var])), TRUE if key.nulls_first else FALSE)
    var, is_null = names.fresh("nulls"), op("is_null", Var(key.var))
    term = op("case", is_null, ZERO_TERM, Var(var)) if key.nulls_first else op("case", is_null, Var(var), ZERO_TERM)
    return var, sum_(groups, join(copy, counted)), term


def _ties(rows: Query, shared: frozenset[str], keys: Sequence[_Key], names: Names) -> Counted:
    """Among rows that agree so far: the further terms, one after the other."""
    copy, renamed = _apart(rows, shared, names)
    test: Term = FALSE
    for key in reversed(keys):
        mine, other = key.var, renamed[key.var]
        test = op("case", key.precedes(other, mine), TRUE, key.precedes(mine, other), FALSE, test)
    var = names.fresh("ties")
    return var, sum_(shared, join(copy, Compare("=", test, TRUE))), Var(var)
