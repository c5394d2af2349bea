"""Window functions as columns: aggregates of a row's partition, or of the part of it that a frame names.

Without ORDER BY, ``sum(v) OVER (PARTITION BY k)`` is the sum of the rows with the same k: a join with the aggregate of
the partition. With ORDER BY it is the same over the rows that a RANGE frame admits: ``[t <= this]``, where ``this`` is
the t of the row itself. A partition is a shared variable, by which NULL meets NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Exists, Query, Value, factors, inputs, join, outputs, rename, sum_
from viewlet.algebra.terms import ONE_TERM, ZERO_TERM, Term, Var, free, op, substitute_term
from viewlet.program.trigger import Extreme, Gather, Order, RowWindow
from viewlet.schema import BIGINT, DOUBLE
from viewlet.sql.aggregate import aggregate_of
from viewlet.sql.aliases import AliasedScope, seeing
from viewlet.sql.distinct_rows import row_key
from viewlet.sql.exclusion import Exclusion
from viewlet.sql.expr import Expr, rounded, variable
from viewlet.sql.expression import expression, translates
from viewlet.sql.frames import Frame, Key, Place, Spec, before, excluded_of, frame_of, spec_of, up_to
from viewlet.sql.grouping import Grouping, aggregate_factors, bound
from viewlet.sql.places import PLACES
from viewlet.sql.row_windows import by_rows, is_by_rows, is_for_reader
from viewlet.sql.scope import Names, Scope
from viewlet.sql.select_list import Block
from viewlet.sql.unsupported import only

_PARTS = frozenset({"this", "partition_by", "order", "over", "spec"})
_KEY = "declare a PRIMARY KEY, or take SELECT DISTINCT rows; at the top of a view equal rows are counted, too"


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
    unread: list[exp.Window] = field(default_factory=list)  # those that no reader can find

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

    def this_of(self, var: str) -> str:
        """What frames call the row's own value of a variable."""
        return self.this.setdefault(var, self.names.fresh("this"))

    def once(self, partition: Sequence[str], values: Sequence[str]) -> Query:
        """The rows; with ``values``, each of these once."""
        return Exists(sum_({*partition, *values}, self.product)) if values else self.product

    def grouping(
        self,
        partition: Sequence[str],
        frame: Frame = None,
        values: tuple[str, ...] = (),
        sparse: bool = True,
        exclusion: Exclusion | None = None,
    ) -> Grouping:
        """What is aggregated: the rows of the partition in the frame; with ``values``, each of these once."""
        known = tuple(partition), frame, values, sparse, exclusion
        if known not in self.groupings:
            rows = self.once(partition, values)
            rows = rows if exclusion is None else exclusion.rows(join(*self.block.factors), self.binds)
            whole = Grouping(self.names, tuple(dict.fromkeys(partition)), (rows,), True, at_top=self.at_top)
            if frame is not None or exclusion is not None:
                whole = replace(whole.where(*([] if frame is None else [frame])), at_top=False, sparse=sparse)
            self.groupings[known] = whole
        return self.groupings[known]

    def counted(
        self,
        partition: Sequence[str],
        keys: Sequence[Key],
        values: Sequence[str],
        which: Callable[[Sequence[Key]], Query] = before,
    ) -> tuple[str, Query]:
        """(m := how many rows of the partition, or ``values``, come before a row of the frame)."""
        rows, own = self.once(partition, values), {key.var: self.names.fresh(key.var) for key in keys}
        copy = rename(self.names.apart([rows, rows], [*partition, *own])[1], own)
        earlier = which([replace(key, var=own[key.var], this=key.var) for key in keys])
        var = self.names.fresh("number")
        return var, Bind(var, sum_(partition, join(copy, earlier)))

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
        return not self.unread and not any(g.extremes or g.picks or g.gathers for g in framed)

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
        rule = _RANKS.get(type(self.node.this))
        if rule is not None:
            return rule(self)
        by_numbers = is_by_rows(self.node, self.spec)
        if self.windows.at_top and (by_numbers or is_for_reader(self.node, self.spec)):
            read = by_rows(self.node, self.spec, self.windows, self.partition(), self.keys(), self.scope)
            if read is not None:
                return read
        return self.placed() if by_numbers else self.aggregate()

    @property
    def spec(self) -> Spec:
        return spec_of(self.node, self.scope.session.source)

    def placed(self) -> Expr:
        """By numbers that are counted like other sums."""
        self.windows.unread.append(self.node)
        rule = PLACES.get(type(self.node.this))
        return self.aggregate() if rule is None else rule(self)

    def aggregate(self) -> Expr:
        function = self.node.this
        if isinstance(function, (exp.FirstValue, exp.LastValue)):
            function = _end(self, function)
        frame, exclusion = frame_of(self), self.exclusion()
        sparse = not self.spec.has_row or (exclusion is not None and exclusion.what != "ties")
        value = aggregate_of(
            function, self.scope, self.windows.grouping(self.partition(), frame, (), sparse, exclusion)
        )
        if value is None:
            raise self.unsupported(f"{function.key.upper()} … OVER", "aggregates, RANK and their like stand there")
        return value

    def exclusion(self) -> Exclusion | None:
        excluded, key = excluded_of(self.node), self.row_key()
        if excluded is None:
            return None
        is_copied = key is None and excluded != "group"
        if is_copied and not outputs(join(*self.windows.block.factors)).issuperset(self.windows.keys.values()):
            raise self.unsupported("EXCLUDE of rows that may be equal, by a computed PARTITION BY or ORDER BY", _KEY)
        row = self._used() if is_copied else key or ()
        self.windows.unread.append(self.node)
        return Exclusion(excluded, self.keys(), tuple(map(self.tie, row)), key is not None)

    def _used(self) -> list[str]:
        """The variables of a row of FROM that the function, the partitions and the orders use."""
        rows, function = outputs(join(*self.windows.block.factors)), self.node.this
        if function.find(exp.Query):
            return sorted(rows)
        exprs = [expression(column, self.scope) for column in function.find_all(exp.Column)]
        terms = [*(e.term for e in exprs), *map(Var, self.windows.keys.values())]
        used = frozenset(v for term in terms for v in free(term)) | inputs(join(*self.windows.binds))
        return sorted(used & rows)

    def row_key(self) -> tuple[str, ...] | None:
        """By which variables no two rows of a partition agree; None where rows may have copies."""
        partition = self.partition()
        known = {*partition, *(key.var for key in self.keys())}
        key = row_key(factors(self.windows.product), known, self.scope.session.catalog)
        return None if key is None else tuple(var for var in key if var not in partition)

    def tie(self, var: str) -> Key:
        """A variable of the row as the last word of an order."""
        found = [f.expr for f in self.scope.fields if f.expr.term == Var(var)]
        expr = found[0] if found else variable(var, None, var not in self.scope.session.names.origins)
        return Key(self.windows.key(replace(expr, term=Var(var))), self.windows.this_of(var), expr)

    def total(self) -> tuple[Key, ...]:
        """The order in which no two rows tie."""
        keys, key = self.keys(), self.row_key()
        if key is None:
            call = self.node.this.this if isinstance(self.node.this, exp.Filter) else self.node.this
            name = self.scope.session.source.called(call)
            word = name.text.upper() if name else call.key.upper()
            raise self.unsupported(f"{word} by the numbers of rows that may be equal, below the top of a view", _KEY)
        have = {k.var for k in keys}
        return (*keys, *(self.tie(var) for var in key if var not in have))

    def place(self, unit: str) -> Place:
        keys = self.keys() if unit == "GROUPS" else self.total()
        if not keys:
            what = f"{self.node.this.key.upper()} by the places of rows that PARTITION BY parts from all others"
            raise self.unsupported(what, "leave out the key in PARTITION BY")
        values = tuple(key.var for key in keys) if unit == "GROUPS" else ()
        other, count = self.windows.counted(self.partition(), keys, values)
        return Place(self.count(before(keys), values), other, count)

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
                this = self.windows.this_of(var)
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
