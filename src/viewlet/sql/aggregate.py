"""Aggregates: how each is written, and what it is over the sums and extremes of a :class:`Grouping`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewlet.algebra.query import Compare, Value
from viewlet.algebra.terms import NULL, ONE_TERM, ZERO_TERM, Op, Term, Var, op
from viewlet.errors import SqlError
from viewlet.program.trigger import End
from viewlet.schema import BIGINT, BOOLEAN, DOUBLE, INTEGER, Type
from viewlet.sql.aliases import meant
from viewlet.sql.expr import Expr, an, constant, divide, holds, loose, merge, negation, rounded, variable
from viewlet.sql.expression import RULES, boolean, expression, translates
from viewlet.sql.grouping import Grouping, Keys, Place
from viewlet.sql.other_types import as_doubles
from viewlet.sql.scope import Field, Scope
from viewlet.sql.types import sum_type
from viewlet.sql.unsupported import only, refuse


@dataclass(frozen=True)
class GroupedScope(Scope):
    """What SELECT and HAVING see: the keys, by column or by expression, and aggregates over ``base``."""

    base: Scope | None = None
    grouping: Grouping | None = None
    keys: Keys = field(default_factory=lambda: Keys({}))
    items: Mapping[str, exp.Expr] = field(default_factory=dict)
    of_rows = False

    def visible(self, node: exp.Column) -> Expr | None:
        own = self.own(node)
        if own is None:
            return meant(node, self)
        key = self._key(own.expr)
        if key is None:
            raise self._not_grouped(node, own)
        return key

    def known(self, node: exp.Expr) -> Expr | None:
        assert self.base is not None
        if self.keys.written and node in self.keys.written:
            return self.keys.values[self.keys.written[node]]
        columns = list(node.find_all(exp.Column))
        is_plain = isinstance(node, exp.Column) and (self.base.has(node) or self.base.struct(node) is None)
        if is_plain or not columns or node.find(exp.AggFunc, exp.Query):
            return None
        if not all(self.base.has(column) or self.base.struct(column) for column in columns):
            return None
        value = expression(node, self.base)
        return None if self.keys.sets and is_shortened(node, value) else self._key(value)

    def _key(self, wanted: Expr) -> Expr | None:
        """The key with this value: k and CAST(k AS DOUBLE) are one, of two types."""
        key = self.keys.values.get(wanted.term)
        return key and replace(key, type=wanted.type)

    def aggregate(self, node: exp.AggFunc, condition: exp.Expr | None = None) -> Expr:
        assert self.grouping is not None
        assert self.base is not None
        grouping = self.grouping
        if condition is not None:
            grouping = grouping.where(*holds(boolean(condition, self.base)))
        return AGGREGATES[type(node)](_call(node, self.base, grouping))

    def grouping_bits(self, node: exp.Expr) -> Expr:
        """GROUPING(a, b); without arguments, of all keys."""
        assert self.base is not None
        asked = [expression(self._meant(part), self.base).term for part in node.expressions]
        if stray := [part for part, key in zip(node.expressions, asked, strict=True) if key not in self.keys.values]:
            message = f"{stray[0].sql()} is not grouped by"
            raise self.session.source.error(stray[0], message, "GROUPING takes what stands in GROUP BY")
        return self.keys.grouping(asked or list(self.keys.values))

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """An alias is the SELECT item that it names, where there is no such column."""
        assert self.base is not None
        is_alias = isinstance(node, exp.Column) and not node.table and self.base.own(node) is None
        return self.items.get(node.name.lower(), node) if is_alias else node

    def _not_grouped(self, node: exp.Column, own: Field) -> Exception:
        assert self.grouping is not None
        name = f"{own.table}.{own.name}"
        hint = f"add {name} to GROUP BY" if self.grouping.grouped else f"write GROUP BY {name}"
        return self.session.source.error(
            node, f"column {name} is neither grouped nor aggregated", f"{hint}, or aggregate it: SUM({name})"
        )


def is_shortened(node: exp.Expr, value: Expr) -> bool:
    """COALESCE(x, y) of an x that no row has as NULL: it is x there, but not in a grouping set that lacks x."""
    is_whole = isinstance(value.term, Op) and value.term.name == "coalesce"
    return isinstance(node.unnest(), exp.Coalesce) and not is_whole


# -- how a call is written ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """An aggregate as it is written; its FILTER is among the factors of ``grouping``."""

    node: exp.AggFunc
    name: str
    scope: Scope
    grouping: Grouping
    arguments: tuple[exp.Expr, ...]
    distinct: bool
    order: tuple[exp.Ordered, ...]

    def argument(self, place: int = 0) -> Expr:
        """One argument, translated where the rows are."""
        if place >= len(self.arguments):
            raise self.error(f"{self.name} takes {place + 1} arguments", f"write {self.name}(x, y)")
        _refuse_outer(self.arguments[place], self.scope)
        return expression(self.arguments[place], self.scope)

    def number(self, place: int = 0) -> Expr:
        argument = as_doubles([self.argument(place)])[0]
        if argument.type is not None and not argument.type.is_numeric:
            hint = f"write {self.name}(CASE WHEN c THEN 1 WHEN NOT c THEN 0 END)"
            hint = hint if argument.type == BOOLEAN else "use a numeric column"
            raise self.error(f"{self.name} takes a number, not {an(argument)}", hint)
        return argument

    def condition(self) -> Expr:
        argument = self.argument()
        if argument.type not in (BOOLEAN, None):
            raise self.error(f"{self.name} takes a condition, not {an(argument)}", "write a comparison: x <> 0")
        return argument

    def error(self, message: str, hint: str) -> SqlError:
        return self.scope.session.source.error(self.node, message, hint)

    def unsupported(self, construct: str, hint: str) -> SqlError:
        return self.scope.session.source.unsupported(self.node, construct, hint)

    @property
    def is_paper(self) -> bool:
        return self.scope.session.dialect == "paper"


WITHIN = "within group"  # marks a call whose ORDER BY stood there
_WITHIN = (exp.PercentileCont, exp.PercentileDisc, exp.Mode)
Aggregate = Callable[[Call], Expr]
AGGREGATES: dict[type[exp.Expr], Aggregate] = {}
_PARTS = frozenset({"this", "expression", "separator", "big_int", "quantile"})


def aggregates(*kinds: type[exp.AggFunc]) -> Callable[[Aggregate], Aggregate]:
    """Make a function the rule for these aggregates."""

    def register(rule: Aggregate) -> Aggregate:
        AGGREGATES.update(dict.fromkeys(kinds, rule))
        RULES.update(dict.fromkeys(kinds, _aggregate))
        return rule

    return register


def _aggregate(node: exp.Expr, scope: Scope) -> Expr:
    assert isinstance(node, exp.AggFunc)
    if isinstance(node, (exp.Min, exp.Max)):  # sqlglot keeps no position of these
        node.meta.setdefault("start", scope.session.source.start(node, node.key))
    return scope.aggregate(node)


@translates(exp.Filter)
def _filtered(node: exp.Expr, scope: Scope) -> Expr:
    """AGG(…) FILTER (WHERE condition)."""
    inner = _unwrapped(node.this)
    if type(inner) not in AGGREGATES:
        raise refuse(scope.session.source, inner)
    assert isinstance(inner, exp.AggFunc)
    return scope.aggregate(inner, node.expression.this)


def aggregate_of(node: exp.Expr, base: Scope, grouping: Grouping) -> Expr | None:
    """An aggregate with its FILTER over rows that no GROUP BY names; None where it is no aggregate."""
    if isinstance(node, exp.Filter):
        grouping = grouping.where(*holds(boolean(node.expression.this, base)))
        node = node.this
    inner = _unwrapped(node)
    if not isinstance(inner, exp.AggFunc) or type(inner) not in AGGREGATES:
        return None
    if isinstance(inner, (exp.Min, exp.Max)):  # sqlglot keeps no position of these
        inner.meta.setdefault("start", base.session.source.start(inner, inner.key))
    return AGGREGATES[type(inner)](_call(inner, base, grouping))


@translates(exp.Grouping, exp.GroupingId)
def _grouping(node: exp.Expr, scope: Scope) -> Expr:
    return scope.grouping_bits(node)


@translates(exp.IgnoreNulls)
def _ignoring_nulls(node: exp.Expr, scope: Scope) -> Expr:
    """ANY_VALUE(x), which sqlglot reads as this."""
    if not isinstance(node.this, exp.AnyValue):
        raise refuse(scope.session.source, node)
    return _aggregate(node.this, scope)


@translates(exp.WithinGroup)
def _within_group(node: exp.Expr, scope: Scope) -> Expr:
    plain = _unwrapped(node)
    if not isinstance(plain, exp.AggFunc):
        raise refuse(scope.session.source, node)
    return _aggregate(plain, scope)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    """ANY_VALUE(x) as it is; PERCENTILE_CONT(f) WITHIN GROUP (ORDER BY x) as PERCENTILE_CONT(x ORDER BY x, f)."""
    inner: exp.Expr = node.this
    if isinstance(node, exp.IgnoreNulls) and isinstance(inner, exp.AnyValue):
        return inner
    if not isinstance(node, exp.WithinGroup) or type(inner) not in _WITHIN or len(node.expression.expressions) != 1:
        return node
    (item,), plain = node.expression.expressions, inner.copy()
    if not isinstance(plain, exp.Mode):
        plain.set("expression", plain.this)
    plain.set("this", exp.Order(this=item.this.copy(), expressions=[item.copy()]))
    plain.meta[WITHIN] = True
    return plain


def _call(node: exp.AggFunc, base: Scope, grouping: Grouping) -> Call:
    source = base.session.source
    written = source.called(node)
    name = written.text.upper() if written is not None else node.key.upper()
    several = f"{name} with several arguments", f"write {name}(x)"
    only(source, node, _PARTS, {"count": several, "expressions": several})
    arguments, order = list[exp.Expr](), list[exp.Ordered]()
    for part in (node.this, node.args.get("expression")):
        if isinstance(part, exp.Order):
            order += part.expressions
            part = part.this
        if part is not None:
            arguments.append(part)
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        only(source, arguments[0], frozenset({"expressions"}), {})
        arguments[:1] = arguments[0].expressions
    return Call(node, name, base, grouping, tuple(arguments), distinct, tuple(order))


def one_argument(call: Call) -> None:
    """Refuse none and several; an ORDER BY changes nothing where the order of the rows is of no account."""
    for item in call.order:
        expression(item.this, call.scope)
    if not call.arguments:
        raise call.error(f"{call.name} takes one argument", f"name a column: {call.name}(x)")
    if len(call.arguments) > 1:
        raise call.error(f"{call.name} takes one argument, not {len(call.arguments)}", f"write {call.name}(x)")


def _refuse_outer(argument: exp.Expr, base: Scope) -> None:
    """SQL gives an aggregate over outer columns alone to the outer query: never what was meant."""
    columns = [] if argument.find(exp.Query) else list(argument.find_all(exp.Column))
    if columns and base.outer is not None and not any(base.own(c) for c in columns):
        expression(argument, base)  # an unknown column is the better error
        hint = "aggregate a column of this subquery's own FROM, or move the aggregate out"
        raise base.session.source.unsupported(argument, "an aggregate over columns of the outer query only", hint)


# -- COUNT, SUM and AVG ------------------------------------------------------------------------------------------------


@aggregates(exp.Count)
def _count_call(call: Call) -> Expr:
    """COUNT(*), COUNT(x), COUNT(DISTINCT x); of several x those rows where none is NULL, as in Spark and MySQL."""
    if not call.arguments or isinstance(call.arguments[0], exp.Star):
        return variable(call.grouping.lookup("count"), BIGINT, False)
    if isinstance(call.arguments[0], exp.Tuple):
        return _count_rows(call, call.arguments[0])
    if call.distinct and len(call.arguments) > 1:
        parts = [call.argument(i) for i in range(len(call.arguments))]
        full = call.grouping.where(*merge([p.binds for p in parts] + [p.guards for p in parts]))
        return variable(full.over_distinct_rows(parts).lookup("count"), BIGINT, False)
    one_argument(call)
    argument, grouping = call.argument(), call.grouping
    if call.distinct:
        grouping, argument = grouping.over_distinct(argument)
    return variable(grouping.count(argument), BIGINT, False)


@aggregates(exp.ApproxDistinct)
def _approximate(call: Call) -> Expr:
    """APPROX_COUNT_DISTINCT(x) is COUNT(DISTINCT x): the exact number is the best approximation."""
    return _count_call(replace(call, distinct=True))


def _count_rows(call: Call, row: exp.Tuple) -> Expr:
    """COUNT(DISTINCT (a, b)): a row value is never NULL, whatever its parts are."""
    one_argument(call)
    grouping = call.grouping
    if call.distinct:
        grouping = grouping.over_distinct_rows([expression(part, call.scope) for part in row.expressions])
    return variable(grouping.lookup("count"), BIGINT, False)


@aggregates(exp.Sum)
def _sum(call: Call) -> Expr:
    """SUM(x): NULL where no x is left, which only the count of them can tell; in the paper's dialect 0."""
    one_argument(call)
    argument = call.argument()
    return total(call, as_number(argument) if argument.type == BOOLEAN else call.number())


@aggregates(exp.CountIf)
def _count_if(call: Call) -> Expr:
    """COUNT_IF(c) is SUM(c): in DuckDB it is NULL where no c is left."""
    one_argument(call)
    return total(call, as_number(call.condition()))


def total(call: Call, argument: Expr) -> Expr:
    grouping, filled = call.grouping, call.grouping.fills(argument)
    if call.distinct:
        grouping, argument = grouping.over_distinct(argument)
    name = summed(argument, grouping)
    type_ = sum_type(argument.type or BIGINT)
    plain = call.is_paper or filled
    sum_of_values = variable(name, type_, False) if plain else _unless_empty(Var(name), type_, argument, grouping)
    return replace(sum_of_values, unrounded=type_ == DOUBLE)


def summed(argument: Expr, grouping: Grouping) -> str:
    return grouping.lookup("sum", *argument.binds, *argument.guards, Value(argument.bare))


def as_number(condition: Expr) -> Expr:
    """TRUE as 1, FALSE as 0."""
    term = op("case", condition.term, ONE_TERM, op("not", condition.term), ZERO_TERM, NULL)
    bare = op("case", condition.bare, ONE_TERM, ZERO_TERM)
    return Expr(term, INTEGER, bare, condition.guards, condition.hidden, condition.binds)


def _unless_empty(value: Term, type_: Type, argument: Expr, grouping: Grouping) -> Expr:
    """The value of an aggregate that has one in the calculus also where it is NULL: where no x is left."""
    rows = Var(grouping.count(argument))
    guard = Compare("<>", rows, ZERO_TERM)
    return Expr(op("case", op("=", rows, ZERO_TERM), NULL, value), type_, value, (guard,), (guard,))


@aggregates(exp.Avg)
def _average(call: Call) -> Expr:
    """AVG(x) = SUM(x) / COUNT(x); x / 0 is NULL."""
    one_argument(call)
    argument, grouping = call.number(), call.grouping
    filled = grouping.fills(argument)
    if call.distinct:
        grouping, argument = grouping.over_distinct(argument)
    rows = Var(grouping.count(argument))
    sums = variable(summed(argument, grouping), DOUBLE, False)
    quotient = divide(sums, variable(rows.name, BIGINT, False), DOUBLE)
    if filled:
        return Expr(quotient.term, DOUBLE, quotient.bare, unrounded=True)
    if call.is_paper:
        return loose(op("case", op("=", rows, ZERO_TERM), ZERO_TERM, quotient.term), DOUBLE, False, [quotient])
    return quotient


# -- MIN and MAX -------------------------------------------------------------------------------------------------------


@aggregates(exp.Min, exp.Max)
def _extreme(call: Call) -> Expr:
    """MIN(x) and MAX(x), of DISTINCT values as well."""
    one_argument(call)
    return extreme("least" if isinstance(call.node, exp.Min) else "greatest", call.argument(), call.grouping)


@aggregates(exp.LogicalAnd, exp.LogicalOr)
def _quantified(call: Call) -> Expr:
    """BOOL_AND(c) is MIN(c), BOOL_OR(c) is MAX(c)."""
    one_argument(call)
    return extreme("least" if isinstance(call.node, exp.LogicalAnd) else "greatest", call.condition(), call.grouping)


def extreme(end: End, argument: Expr, grouping: Grouping, place: Place | None = None) -> Expr:
    """NULL where no x is left, in the paper's dialect as well, which has no such aggregate."""
    name, filled = "min" if end == "least" else "max", grouping.fills(argument)
    name = name if place is None else "quantile"
    argument, type_ = rounded(argument), argument.type
    if type_ is None:
        return constant(NULL, None)  # not the argument: it may name a column
    if isinstance(argument.term, Var) and argument.term.name in grouping.keys and not grouping.sparse:
        return argument  # a group has one
    if type_ == BOOLEAN:
        value = _boolean_extreme(end, argument, grouping)
    elif grouping.at_top or type_.held.kind == "VARCHAR":
        return variable(grouping.pick(end, argument, name, place), type_, not filled)
    else:
        value = Var(grouping.extreme(end, argument, name, place))
    return Expr(value, type_, value) if filled else _unless_empty(value, type_, argument, grouping)


def _boolean_extreme(end: End, argument: Expr, grouping: Grouping) -> Term:
    """MIN(c) is TRUE unless some c is FALSE, MAX(c) if some c is TRUE: counts can tell."""
    counted = holds(negation(argument) if end == "least" else argument)
    return op("=" if end == "least" else "<>", Var(grouping.lookup("count", *counted)), ZERO_TERM)
