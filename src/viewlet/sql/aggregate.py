"""GROUP BY and aggregates: every aggregate is one Sum over the block's product, under a variable of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Exists, Query, Value, join, outputs, sum_
from viewlet.algebra.terms import NULL, ZERO_TERM, Term, Var, op
from viewlet.schema import BIGINT, BOOLEAN, DOUBLE
from viewlet.sql.expr import Expr, an, divide, loose, rounded, variable
from viewlet.sql.expression import expression, translates
from viewlet.sql.scope import Field, Names, Scope
from viewlet.sql.types import sum_type
from viewlet.sql.unsupported import only, refuse


@dataclass(frozen=True)
class Grouping:
    """The product that is aggregated and what it is grouped by; ``lookups`` collects the sums asked for."""

    names: Names
    keys: tuple[str, ...]
    factors: tuple[Query, ...]
    grouped: bool
    lookups: dict[Query, str] = field(default_factory=dict)

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

    def over_distinct(self, argument: Expr) -> tuple[Grouping, Expr]:
        """The same groups over DISTINCT values: Exists(Sum_{keys, x}(product)), and x."""
        argument = rounded(argument)
        product = join(*self.factors, *argument.binds, *argument.guards)
        var, product = bound(self.names, product, argument.bare)
        once = Exists(sum_({*self.keys, var}, product))
        return replace(self, factors=(once,)), variable(var, argument.type, False)


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
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)

    def visible(self, node: exp.Column) -> Expr | None:
        found = self.own(node)
        if found is None:
            return self._alias(node)
        if found.expr.term in self.keys:
            return self.keys[found.expr.term]
        raise self._not_grouped(node, found)

    def known(self, node: exp.Expr) -> Expr | None:
        assert self.base is not None
        columns = list(node.find_all(exp.Column))
        if isinstance(node, exp.Column) or not columns or node.find(exp.AggFunc, exp.Query):
            return None
        if not all(map(self.base.own, columns)):
            return None
        return self.keys.get(expression(node, self.base).term)

    def aggregate(self, node: exp.AggFunc) -> Expr:
        assert self.grouping is not None
        assert self.base is not None
        return _aggregate(node, self.base, self.grouping)

    def _alias(self, node: exp.Column) -> Expr | None:
        meant = None if node.table else self.aliases.get(node.name.lower())
        return expression(meant, self) if meant is not None else None

    def _not_grouped(self, node: exp.Column, found: Field) -> Exception:
        assert self.grouping is not None
        name = f"{found.tables[0]}.{found.name}"
        hint = f"add {name} to GROUP BY" if self.grouping.grouped else f"write GROUP BY {name}"
        return self.session.source.error(
            node, f"column {name} is neither grouped nor aggregated", f"{hint}, or aggregate it: SUM({name})"
        )


@translates(exp.Sum, exp.Count, exp.Avg)
def _aggregate_call(node: exp.Expr, scope: Scope) -> Expr:
    assert isinstance(node, exp.AggFunc)
    return scope.aggregate(node)


def _aggregate(node: exp.AggFunc, base: Scope, grouping: Grouping) -> Expr:
    only(base.session.source, node, frozenset({"this", "big_int"}), {})
    if isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star)):
        return variable(grouping.lookup("count"), BIGINT, False)
    distinct, inner = isinstance(node.this, exp.Distinct), node.this
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1 or inner.args.get("on"):
            raise refuse(base.session.source, inner)
        inner = inner.expressions[0]
    _refuse_outer(inner, base)
    argument = expression(inner, base)
    filled = grouping.grouped and not argument.nullable  # every group has a value
    if distinct:
        grouping, argument = grouping.over_distinct(argument)
    if isinstance(node, exp.Count):
        return variable(_count(argument, grouping), BIGINT, False)
    if argument.type is not None and not argument.type.is_numeric:
        hint = "sum a number; to count rows where a condition holds: SUM(CASE WHEN … THEN 1 ELSE 0 END)"
        message = f"{node.key.upper()} takes a number, not {an(argument)}"
        raise base.session.source.error(node, message, hint if argument.type == BOOLEAN else "use a numeric column")
    aggregated = _sum if isinstance(node, exp.Sum) else _average
    return aggregated(argument, grouping, filled, base.session.dialect == "paper")


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
    unrounded = type_ == DOUBLE
    if paper or filled:
        return replace(variable(name, type_, False), unrounded=unrounded)
    count = Var(_count(argument, grouping))
    guard = Compare("<>", count, ZERO_TERM)
    term = op("case", op("=", count, ZERO_TERM), NULL, Var(name))
    return Expr(term, type_, Var(name), (guard,), (guard,), unrounded=unrounded)


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
