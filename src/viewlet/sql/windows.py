"""Window functions as columns: aggregates of a row's partition, or of the part of it that a frame names.

Without ORDER BY, ``sum(v) OVER (PARTITION BY k)`` is the sum of the rows with the same k: a join with the aggregate of
the partition. With ORDER BY it is the same over the rows that a RANGE frame admits: ``[t <= this]``, where ``this`` is
the t of the row itself. A partition is a shared variable, by which NULL meets NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Exists, Query, Value, join, outputs, rename, sum_
from viewlet.algebra.terms import ONE_TERM, ZERO_TERM, Term, Var, free, op, substitute_term
from viewlet.program.trigger import Extreme, Gather, Order, RowWindow
from viewlet.schema import BIGINT, DOUBLE
from viewlet.sql.aggregate import aggregate_of
from viewlet.sql.aliases import AliasedScope, seeing
from viewlet.sql.expr import Expr, rounded
from viewlet.sql.expression import expression, translates
from viewlet.sql.frames import Frame, Key, before, frame_of, has_row, up_to
from viewlet.sql.grouping import Grouping, aggregate_factors, bound
from viewlet.sql.row_windows import by_rows, is_by_rows
from viewlet.sql.scope import Names, Scope
from viewlet.sql.select_list import Block
from viewlet.sql.unsupported import only

_PARTS = frozenset({"this", "partition_by", "order", "over", "spec"})


@dataclass(frozen=True)
class Windows:
    """The window functions of one block; ``groupings`` collects the partitions and frames that are aggregated.

    ``at_top`` of a view a value is found when its row is read.
    """

    block: Block
    names: Names
    at_top: bool
    binds: list[Query] = field(default_factory=list)  # what the partitions and orders of the rows are
    keys: dict[Term, str] = field(default_factory=dict)
    this: dict[str, str] = field(default_factory=dict)  # a variable of the order ↦ what frames call that of the row
    groupings: dict[object, Grouping] = field(default_factory=dict)
    rows: list[RowWindow] = field(default_factory=list)  # those that go by the numbers of rows

    @property
    def product(self) -> Query:
        return join(*self.block.factors, *self.binds)

    def key(self, expr: Expr) -> str:
        """The variable that has the value of a partition or an order."""
        expr = rounded(expr)
        if expr.term not in self.keys:
            self.binds.extend(expr.binds)
            var, product = bound(self.names, self.product, expr.term, "key")
            self.binds.extend([Bind(var, Value(expr.term))] if product != self.product else [])
            self.keys[expr.term] = var
        return self.keys[expr.term]

    def argument(self, expr: Expr) -> Term:
        """A constant, or a variable that every row has."""
        term = rounded(expr).term
        return Var(self.key(expr)) if free(term) else term

    def numbered(self, window: RowWindow, name: str) -> str:
        var = self.names.fresh(name)
        self.rows.append(replace(window, var=var))
        return var

    def row_windows(self, keys: Sequence[str]) -> tuple[RowWindow, ...]:
        """In full: rows that agree in all terms of an ORDER BY follow one another by their ``keys``, NULLs last."""
        ties = tuple(Order(Var(key)) for key in keys)
        return tuple(replace(w, order=w.order + ties) for w in self.rows)

    def grouping(
        self, partition: Sequence[str], frame: Frame = None, values: tuple[str, ...] = (), sparse: bool = True
    ) -> Grouping:
        """What is aggregated: the rows of the partition in the frame; with ``values``, each of these once."""
        known = tuple(partition), frame, values, sparse
        if known not in self.groupings:
            rows = Exists(sum_({*partition, *values}, self.product)) if values else self.product
            whole = Grouping(self.names, tuple(dict.fromkeys(partition)), (rows,), True, at_top=self.at_top)
            framed = replace(whole.where(frame), at_top=False, sparse=sparse) if frame is not None else whole
            self.groupings[known] = framed
        return self.groupings[known]

    def factors(self) -> tuple[Query, ...]:
        """Below the top of a view: the rows, and each aggregate of each row's partition."""
        mine = {this: var for var, this in self.this.items()}
        sums = [q for g in self.groupings.values() for q in aggregate_factors(g, self.product)]
        return (*self.block.factors, *self.binds, *(rename(q, mine) for q in sums))

    def lookups(self) -> tuple[tuple[str, Query], ...]:
        """At the top: the same as sums that are read at a row's key, its order among them."""
        mine = {this: var for var, this in self.this.items()}
        found = [(g, q, var) for g in self.groupings.values() for q, var in g.lookups.items()]
        apart = [(var, self.names.apart([self.product, q], g.keys)[1]) for g, q, var in found]
        return tuple((var, rename(q, mine)) for var, q in apart)

    def found(self) -> frozenset[str]:
        """The variables of all that is found when a row is read."""
        groupings = self.groupings.values()
        ends = [end.var for g in groupings if g.at_top for end in g.extremes.values()]
        lists = [gather.var for g in groupings for gather in g.gathers.values()]
        return frozenset(
            [*(var for g in groupings for var in g.lookups.values()), *ends, *lists, *(w.var for w in self.rows)]
        )

    def extremes(self) -> tuple[Extreme, ...]:
        """The values under names that no row has."""
        ends = [e for g in self.groupings.values() if g.at_top for e in g.extremes.values()]
        names = {e.key: self.names.fresh("x") for e in ends}
        return tuple(replace(e, key=names[e.key], query=rename(e.query, {e.key: names[e.key]})) for e in ends)

    def gathers(self) -> tuple[Gather, ...]:
        return tuple(
            self._apart(gather, g) for g in self.groupings.values() if g.at_top for gather in g.gathers.values()
        )

    def _apart(self, gather: Gather, grouping: Grouping) -> Gather:
        names = {v: self.names.fresh("x") for v in sorted(outputs(gather.query) - frozenset(grouping.keys))}
        terms = {v: Var(name) for v, name in names.items()}
        order = tuple(replace(o, term=substitute_term(o.term, terms)) for o in gather.order)
        return replace(gather, term=substitute_term(gather.term, terms), order=order, query=rename(gather.query, names))

    @property
    def is_read(self) -> bool:
        """Whether all that a row shows can be found when it is read: of a frame only sums can."""
        framed = [g for g in self.groupings.values() if not g.at_top]
        return not any(g.extremes or g.picks or g.gathers for g in framed)

    def variables(self) -> frozenset[str]:
        """The keys that a row is read at."""
        return frozenset(self.keys.values())


@dataclass(frozen=True)
class WindowScope(AliasedScope):
    """What SELECT and QUALIFY see of a block with window functions."""

    windows: Windows | None = None

    def window(self, node: exp.Window) -> Expr:
        assert self.windows is not None
        base = seeing(Scope(self.session, self.fields, self.outer, self.common), self.aliases)
        return _Window(node, self.windows, base).value()


@translates(exp.Window)
def _window(node: exp.Expr, scope: Scope) -> Expr:
    assert isinstance(node, exp.Window)
    if isinstance(scope, WindowScope):
        return scope.window(node)
    hint = "window functions stand in SELECT and QUALIFY, not inside one another; else write a subquery: (SELECT …)"
    raise scope.session.source.error(node, "a window function cannot stand here", hint)


@dataclass(frozen=True)
class _Window:
    """One call: ``function OVER (PARTITION BY … ORDER BY … frame)``."""

    node: exp.Window
    windows: Windows
    scope: Scope

    def value(self) -> Expr:
        only(self.scope.session.source, self.node, _PARTS, {})
        if is_by_rows(self.node):
            return by_rows(self.node, self.windows, self.partition(), self.keys(), self.scope)
        rule = _RANKS.get(type(self.node.this))
        if rule is not None:
            return rule(self)
        function = self.node.this
        if isinstance(function, (exp.FirstValue, exp.LastValue)):
            function = _end(self, function)
        frame = frame_of(self.node, self.keys(), self.scope)
        grouping = self.windows.grouping(self.partition(), frame, sparse=not has_row(self.node))
        value = aggregate_of(function, self.scope, grouping)
        if value is None:
            raise self.unsupported(f"{function.key.upper()} … OVER", "aggregates, RANK and their like stand there")
        return value

    def partition(self) -> tuple[str, ...]:
        parts = self.node.args.get("partition_by") or ()
        return tuple(self.windows.key(expression(part, self.scope)) for part in parts)

    def keys(self) -> tuple[Key, ...]:
        """The terms of the ORDER BY; one that the partition has says nothing new."""
        order, keys, partition = self.node.args.get("order"), list[Key](), self.partition()
        for item in order.expressions if order is not None else ():
            expr = expression(item.this, self.scope)
            var = self.windows.key(expr)
            if var not in partition and all(var != key.var for key in keys):
                this = self.windows.this.setdefault(var, self.windows.names.fresh("this"))
                flags = bool(item.args.get("desc")), bool(item.args.get("nulls_first"))
                keys.append(Key(var, this, rounded(expr), *flags))
        return tuple(keys)

    def count(self, frame: Frame = None, values: tuple[str, ...] = ()) -> Term:
        return Var(self.windows.grouping(self.partition(), frame, values).lookup("count"))

    def unsupported(self, construct: str, hint: str) -> Exception:
        return self.scope.session.source.unsupported(self.node, construct, hint)


def _end(window: _Window, function: exp.Expr) -> exp.Expr:
    """FIRST_VALUE(x) OVER (ORDER BY y) as FIRST(x ORDER BY y) OVER (ORDER BY y)."""
    only(window.scope.session.source, function, frozenset({"this"}), {})
    order = window.node.args.get("order")
    if order is None or len(order.expressions) != 1:
        raise window.unsupported(
            f"{function.key.upper()} without one expression in ORDER BY", "order by one expression"
        )
    ordered = exp.Order(this=function.this.copy(), expressions=[order.expressions[0].copy()])
    made = (exp.First if isinstance(function, exp.FirstValue) else exp.Last)(this=ordered)
    made.meta.update(function.meta)
    return made


# -- ranks -------------------------------------------------------------------------------------------------------------


def _rank(window: _Window) -> Expr:
    """RANK() = 1 + how many rows of the partition come before."""
    keys = window.keys()
    rank = op("+", window.count(before(keys)), ONE_TERM) if keys else ONE_TERM
    return Expr(rank, BIGINT, rank)


def _dense_rank(window: _Window) -> Expr:
    """DENSE_RANK() = 1 + how many different values come before."""
    keys = window.keys()
    values = tuple(key.var for key in keys)
    rank = op("+", window.count(before(keys), values), ONE_TERM) if keys else ONE_TERM
    return Expr(rank, BIGINT, rank)


def _percent_rank(window: _Window) -> Expr:
    """PERCENT_RANK() = (rank − 1) / (n − 1), and 0 for a row alone."""
    keys, rows = window.keys(), window.count()
    earlier = window.count(before(keys)) if keys else ZERO_TERM
    others = op("-", rows, ONE_TERM)
    share = op("case", op("=", others, ZERO_TERM), ZERO_TERM, op("/", earlier, others))
    return Expr(share, DOUBLE, share, unrounded=True)


def _cume_dist(window: _Window) -> Expr:
    """CUME_DIST() = the rows up to this one and its peers / n."""
    keys, rows = window.keys(), window.count()
    share = op("/", window.count(up_to(keys)), rows) if keys else ONE_TERM
    return Expr(share, DOUBLE, share, unrounded=True)


_RANKS: dict[type[exp.Expr], Callable[[_Window], Expr]] = {
    exp.Rank: _rank,
    exp.DenseRank: _dense_rank,
    exp.PercentRank: _percent_rank,
    exp.CumeDist: _cume_dist,
}
