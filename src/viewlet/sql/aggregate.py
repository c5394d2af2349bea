"""GROUP BY and aggregates: sums over the block's product and their extremes, each under a variable of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Exists, Query, Value, join, outputs, rename, sum_
from viewlet.algebra.terms import NULL, ZERO_TERM, Term, Var, op
from viewlet.program.trigger import End, Extreme
from viewlet.schema import BIGINT, BOOLEAN, DOUBLE, Type
from viewlet.sql.aliases import meant
from viewlet.sql.expr import Expr, an, constant, divide, holds, loose, negation, rounded, variable
from viewlet.sql.expression import expression, translates
from viewlet.sql.scope import Field, Names, Scope
from viewlet.sql.types import sum_type
from viewlet.sql.unsupported import only, refuse


@dataclass(frozen=True)
class Grouping:
    """The product that is aggregated and what it is grouped by; ``lookups`` collects the sums asked for.

    ``at_top`` of a view MIN and MAX are not sums but ``extremes``, which a read of the view finds.
    """

    names: Names
    keys: tuple[str, ...]
    factors: tuple[Query, ...]
    grouped: bool
    at_top: bool = False
    lookups: dict[Query, str] = field(default_factory=dict)
    extremes: dict[tuple[End, Query], Extreme] = field(default_factory=dict)
    values: dict[tuple[Query, Term], tuple[str, Query]] = field(default_factory=dict)

    @property
    def rows(self) -> Query:
        """Sum_keys: how many rows each group has."""
        return sum_(self.keys, join(*self.factors))

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
        found = self.values.get((product, argument.bare))
        if found is None:
            var, with_value = bound(self.names, product, argument.bare)
            found = self.values[product, argument.bare] = var, sum_({*self.keys, var}, with_value)
        return found

    def over_distinct(self, argument: Expr) -> tuple[Grouping, Expr]:
        """The same groups over DISTINCT values: Exists(Sum_{keys, x}(product)), and x."""
        var, counted = self.by_value(argument)
        return replace(self, factors=(Exists(counted),)), variable(var, argument.type, False)

    def extreme(self, end: End, argument: Expr, name: str) -> str:
        """The variable for the least or greatest value of each group; below the top of a view it is one more sum."""
        key, counted = self.by_value(argument)
        if (end, counted) not in self.extremes:
            self.extremes[end, counted] = Extreme(self.names.fresh(name), end, key, counted)
            if not self.at_top:
                self.lookups[self._nested(end, argument)] = self.extremes[end, counted].var
        return self.extremes[end, counted].var

    def _nested(self, end: End, argument: Expr) -> Query:
        """Sum_keys(Exists(Sum_{keys, x}) ⋈ (beyond := Sum_keys(… ⋈ [y < x])) ⋈ [0 = beyond] ⋈ x), for MAX [y > x].

        The comparison rules out every NULL but those that are ``hidden``.
        """
        key, counted = self.by_value(argument)
        value, beyond = self.names.fresh("x"), self.names.fresh("beyond")
        further = Compare("<" if end == "least" else ">", argument.bare, Var(value))
        rest = sum_(self.keys, join(*self.factors, *argument.binds, *argument.hidden, further))
        counted, rest = self.names.apart([rename(counted, {key: value}), rest], self.keys)
        last = (Bind(beyond, rest), Compare("=", ZERO_TERM, Var(beyond)))
        return sum_(self.keys, join(Exists(counted), *last, Value(Var(value))))


def bound(names: Names, product: Query, term: Term, name: str = "x") -> tuple[str, Query]:
    """A variable that has the term's value: the term itself where it is a column of the product, else a Bind."""
    if isinstance(term, Var) and term.name in outputs(product):
        return term.name, product
    var = names.fresh(name)
    return var, join(product, Bind(var, Value(term)))


@dataclass(frozen=True)
class GroupedScope(Scope):
    """What SELECT and HAVING see: the keys, by column or by expression, and aggregates over ``base``."""

    base: Scope | None = None
    grouping: Grouping | None = None
    keys: Mapping[Term, Expr] = field(default_factory=dict)

    def visible(self, node: exp.Column) -> Expr | None:
        found = self.own(node)
        if found is None:
            return meant(node, self)
        if found.expr.term in self.keys:
            return self.keys[found.expr.term]
        raise self._not_grouped(node, found)

    def known(self, node: exp.Expr) -> Expr | None:
        assert self.base is not None
        columns = list(node.find_all(exp.Column))
        if isinstance(node, exp.Column) or not columns or node.find(exp.AggFunc, exp.Query):
            return None
        if not all(map(self.base.has, columns)):
            return None
        return self.keys.get(expression(node, self.base).term)

    def aggregate(self, node: exp.AggFunc) -> Expr:
        assert self.grouping is not None
        assert self.base is not None
        return _aggregate(node, self.base, self.grouping)

    def _not_grouped(self, node: exp.Column, found: Field) -> Exception:
        assert self.grouping is not None
        name = f"{found.table}.{found.name}"
        hint = f"add {name} to GROUP BY" if self.grouping.grouped else f"write GROUP BY {name}"
        return self.session.source.error(
            node, f"column {name} is neither grouped nor aggregated", f"{hint}, or aggregate it: SUM({name})"
        )


@translates(exp.Sum, exp.Count, exp.Avg, exp.Min, exp.Max)
def _aggregate_call(node: exp.Expr, scope: Scope) -> Expr:
    assert isinstance(node, exp.AggFunc)
    if isinstance(node, (exp.Min, exp.Max)):  # sqlglot keeps no position of these
        node.meta.setdefault("start", scope.session.source.start(node, node.key))
    return scope.aggregate(node)


_SEVERAL = "SUM, COUNT, AVG, MIN and MAX take one argument"


def _aggregate(node: exp.AggFunc, base: Scope, grouping: Grouping) -> Expr:
    several = f"{node.key.upper()} with several arguments", _SEVERAL
    only(base.session.source, node, frozenset({"this", "big_int"}), {"count": several, "expressions": several})
    if isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star)):
        return variable(grouping.lookup("count"), BIGINT, False)
    distinct, inner = isinstance(node.this, exp.Distinct), _argument(node, base)
    _refuse_outer(inner, base)
    argument = expression(inner, base)
    filled = grouping.grouped and not argument.nullable  # every group has a value
    if isinstance(node, (exp.Min, exp.Max)):  # of DISTINCT values they are the same
        return _extreme(node, argument, grouping, filled, base)
    if distinct:
        grouping, argument = grouping.over_distinct(argument)
    if isinstance(node, exp.Count):
        return variable(_count(argument, grouping), BIGINT, False)
    if argument.type is not None and not argument.type.is_numeric:
        raise _no_number(node, argument, base)
    aggregated = _sum if isinstance(node, exp.Sum) else _average
    return aggregated(argument, grouping, filled, base.session.dialect == "paper")


def _no_number(node: exp.AggFunc, argument: Expr, base: Scope) -> Exception:
    """DuckDB adds up BOOLEANs, but has no average of them."""
    source, name = base.session.source, node.key.upper()
    hint = f"write {name}(CASE WHEN c THEN 1 WHEN NOT c THEN 0 END)"
    if argument.type == BOOLEAN and isinstance(node, exp.Sum):
        return source.unsupported(node, "SUM of a BOOLEAN", hint)
    hint = hint if argument.type == BOOLEAN else "use a numeric column"
    return source.error(node, f"{name} takes a number, not {an(argument)}", hint)


def _argument(node: exp.AggFunc, base: Scope) -> exp.Expr:
    """x of SUM(x) and of SUM(DISTINCT x)."""
    inner = node.this
    if inner is None:
        hint = f"name a column: {node.key.upper()}(x)"
        raise base.session.source.error(node, f"{node.key.upper()} takes one argument", hint)
    if not isinstance(inner, exp.Distinct):
        assert isinstance(inner, exp.Expr)
        return inner
    if len(inner.expressions) != 1 or inner.args.get("on"):
        raise refuse(base.session.source, inner)
    found = inner.expressions[0]
    assert isinstance(found, exp.Expr)
    return found


def _refuse_outer(argument: exp.Expr, base: Scope) -> None:
    """SQL gives an aggregate over outer columns alone to the outer query: never what was meant."""
    columns = [] if argument.find(exp.Query) else list(argument.find_all(exp.Column))
    if columns and base.outer is not None and not any(base.own(c) for c in columns):
        expression(argument, base)  # an unknown column is the better error
        hint = "aggregate a column of this subquery's own FROM, or move the aggregate out"
        raise base.session.source.unsupported(argument, "an aggregate over columns of the outer query only", hint)


def _count(argument: Expr, grouping: Grouping) -> str:
    """COUNT(x): the rows where x is not NULL."""
    return (
        grouping.lookup("count", *argument.binds, *argument.guards) if argument.nullable else grouping.lookup("count")
    )


def _sum(argument: Expr, grouping: Grouping, filled: bool, paper: bool) -> Expr:
    """SUM(x): NULL where no x is left, which only the count of them can tell; in the paper's dialect 0."""
    name = grouping.lookup("sum", *argument.binds, *argument.guards, Value(argument.bare))
    type_ = sum_type(argument.type or BIGINT)
    total = variable(name, type_, False) if paper or filled else _unless_empty(Var(name), type_, argument, grouping)
    return replace(total, unrounded=type_ == DOUBLE)


def _unless_empty(value: Term, type_: Type, argument: Expr, grouping: Grouping) -> Expr:
    """The value of an aggregate that has one in the calculus also where it is NULL: where no x is left."""
    count = Var(_count(argument, grouping))
    guard = Compare("<>", count, ZERO_TERM)
    return Expr(op("case", op("=", count, ZERO_TERM), NULL, value), type_, value, (guard,), (guard,))


def _average(argument: Expr, grouping: Grouping, filled: bool, paper: bool) -> Expr:
    """AVG(x) = SUM(x) / COUNT(x); x / 0 is NULL."""
    total = grouping.lookup("sum", *argument.binds, *argument.guards, Value(argument.bare))
    count = Var(_count(argument, grouping))
    quotient = divide(variable(total, DOUBLE, False), variable(count.name, BIGINT, False), DOUBLE)
    if filled:
        return Expr(quotient.term, DOUBLE, quotient.bare, unrounded=True)
    if paper:
        return loose(op("case", op("=", count, ZERO_TERM), ZERO_TERM, quotient.term), DOUBLE, False, [quotient])
    return quotient


# -- MIN and MAX -------------------------------------------------------------------------------------------------------


def _extreme(node: exp.AggFunc, argument: Expr, grouping: Grouping, filled: bool, base: Scope) -> Expr:
    """MIN(x) and MAX(x): NULL where no x is left, in the paper's dialect as well, which has no such aggregate."""
    end: End = "least" if isinstance(node, exp.Min) else "greatest"
    argument, type_ = rounded(argument), argument.type
    if type_ is None:
        return constant(NULL, None)  # not the argument: it may name a column
    if isinstance(argument.term, Var) and argument.term.name in grouping.keys:
        return argument  # a group has one
    if type_ == BOOLEAN:
        value = _boolean_extreme(end, argument, grouping)
    elif grouping.at_top:
        return variable(grouping.extreme(end, argument, node.key), type_, not filled)
    else:
        _refuse_nested(node, argument, base)
        value = Var(grouping.extreme(end, argument, node.key))
    return Expr(value, type_, value) if filled else _unless_empty(value, type_, argument, grouping)


def _boolean_extreme(end: End, argument: Expr, grouping: Grouping) -> Term:
    """MIN(c) is TRUE unless some c is FALSE, MAX(c) if some c is TRUE: counts can tell."""
    counted = holds(negation(argument) if end == "least" else argument)
    return op("=" if end == "least" else "<>", Var(grouping.lookup("count", *counted)), ZERO_TERM)


def _refuse_nested(node: exp.AggFunc, argument: Expr, base: Scope) -> None:
    """The values of nested aggregates are numbers, and so are dates and times."""
    assert argument.type is not None
    if argument.type.is_numeric or argument.type.kind in ("DATE", "TIMESTAMP"):
        return
    construct = f"{node.key.upper()} of {an(argument)} anywhere but at the top of a view"
    hint = "give it a view of its own without DISTINCT, and compare when you read it"
    raise base.session.source.unsupported(node, construct, hint)
