"""GROUP BY and aggregates: sums over the block's product and their extremes, each under a variable of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Exists, Query, Value, join, outputs, rename, sum_, union
from viewlet.algebra.terms import NULL, ONE_TERM, ZERO_TERM, Term, Var, number, op
from viewlet.errors import SqlError
from viewlet.program.trigger import End, Extreme
from viewlet.schema import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, Type
from viewlet.sql.aliases import meant
from viewlet.sql.expr import Expr, an, constant, divide, holds, loose, merge, negation, rounded, variable
from viewlet.sql.expression import RULES, boolean, expression, translates
from viewlet.sql.scope import Field, Names, Scope
from viewlet.sql.types import sum_type
from viewlet.sql.unsupported import only, refuse


@dataclass(frozen=True)
class Grouping:
    """The product that is aggregated and what it is grouped by; ``lookups`` collects the sums asked for.

    ``at_top`` of a view MIN and MAX are not sums but ``extremes``, which a reader of the view finds. Elsewhere a value
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
    extremes: dict[tuple[End, Query], Extreme] = field(default_factory=dict)
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
        found = self.values.get((product, argument.bare))
        if found is None:
            var, with_value = bound(self.names, product, argument.bare, apart_from=self.keys)
            found = self.values[product, argument.bare] = var, sum_({*self.keys, var}, with_value)
        return found

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

    def extreme(self, end: End, argument: Expr, name: str) -> str:
        """The variable for the least or greatest value of each group; below the top of a view it is one more sum."""
        key, counted = self.by_value(argument)
        if (end, counted) not in self.extremes:
            self.extremes[end, counted] = Extreme(self.names.fresh(name), end, key, counted)
            if not self.at_top:
                last = self._last(end, argument, value := self.names.fresh("x"))
                nested = sum_(self.keys, join(*last, Value(Var(value))))
                self.lookups[nested] = self.extremes[end, counted].var
        return self.extremes[end, counted].var

    def pick(self, end: End, argument: Expr, name: str) -> str:
        """The same for values of any type: the variable is a key, and NULL where the group has no value."""
        if self.at_top:
            return self.extreme(end, argument, name)
        var, count = self.names.fresh(name), Var(self.names.fresh("count"))
        found = sum_({*self.keys, var}, join(*self._last(end, argument, var)))
        if not self.fills(argument):
            rows = sum_(self.keys, join(*self.factors, *argument.binds, *argument.guards))
            (rows,) = self.names.apart([found, rows], (*self.keys, var))[1:]
            nothing = join(Bind(count.name, rows), Compare("=", count, ZERO_TERM), Bind(var, Value(NULL)))
            found = union(found, sum_({var}, nothing))
        self.picks[found] = var
        return var

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

    ``place`` is the variable that says to which of them a row belongs.
    """

    values: Mapping[Term, Expr]
    sets: tuple[frozenset[Term], ...] = ()
    place: str = ""

    def grouping(self, asked: Sequence[Term]) -> Expr:
        """GROUPING(a, b): a bit for each key that the row's set lacks, the last one the lowest."""
        bits = [sum((key not in has) << i for i, key in enumerate(reversed(asked))) for has in self.sets]
        term: Term = number(bits[-1]) if bits else ZERO_TERM
        for place, value in reversed([*enumerate(bits[:-1])]):
            term = op("case", op("=", Var(self.place), number(place)), number(value), term)
        return Expr(term, BIGINT, term)


@dataclass(frozen=True)
class GroupedScope(Scope):
    """What SELECT and HAVING see: the keys, by column or by expression, and aggregates over ``base``."""

    base: Scope | None = None
    grouping: Grouping | None = None
    keys: Keys = field(default_factory=lambda: Keys({}))
    items: Mapping[str, exp.Expr] = field(default_factory=dict)
    of_rows = False

    def visible(self, node: exp.Column) -> Expr | None:
        found = self.own(node)
        if found is None:
            return meant(node, self)
        if found.expr.term in self.keys.values:
            return self.keys.values[found.expr.term]
        raise self._not_grouped(node, found)

    def known(self, node: exp.Expr) -> Expr | None:
        assert self.base is not None
        columns = list(node.find_all(exp.Column))
        if isinstance(node, exp.Column) or not columns or node.find(exp.AggFunc, exp.Query):
            return None
        if not all(map(self.base.has, columns)):
            return None
        return self.keys.values.get(expression(node, self.base).term)

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

    def _not_grouped(self, node: exp.Column, found: Field) -> Exception:
        assert self.grouping is not None
        name = f"{found.table}.{found.name}"
        hint = f"add {name} to GROUP BY" if self.grouping.grouped else f"write GROUP BY {name}"
        return self.session.source.error(
            node, f"column {name} is neither grouped nor aggregated", f"{hint}, or aggregate it: SUM({name})"
        )


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
        argument = self.argument(place)
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


Aggregate = Callable[[Call], Expr]
AGGREGATES: dict[type[exp.Expr], Aggregate] = {}
_PARTS = frozenset({"this", "expression", "separator", "big_int"})


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


@translates(exp.Grouping, exp.GroupingId)
def _grouping(node: exp.Expr, scope: Scope) -> Expr:
    return scope.grouping_bits(node)


@translates(exp.IgnoreNulls)
def _ignoring_nulls(node: exp.Expr, scope: Scope) -> Expr:
    """ANY_VALUE(x), which sqlglot reads as this."""
    if not isinstance(node.this, exp.AnyValue):
        raise refuse(scope.session.source, node)
    return _aggregate(node.this, scope)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue) else node


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
    return variable(count(argument, grouping), BIGINT, False)


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


def count(argument: Expr, grouping: Grouping) -> str:
    """COUNT(x): the rows where x is not NULL."""
    return (
        grouping.lookup("count", *argument.binds, *argument.guards) if argument.nullable else grouping.lookup("count")
    )


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
    found = variable(name, type_, False) if plain else _unless_empty(Var(name), type_, argument, grouping)
    return replace(found, unrounded=type_ == DOUBLE)


def summed(argument: Expr, grouping: Grouping) -> str:
    return grouping.lookup("sum", *argument.binds, *argument.guards, Value(argument.bare))


def as_number(condition: Expr) -> Expr:
    """TRUE as 1, FALSE as 0."""
    term = op("case", condition.term, ONE_TERM, op("not", condition.term), ZERO_TERM, NULL)
    bare = op("case", condition.bare, ONE_TERM, ZERO_TERM)
    return Expr(term, INTEGER, bare, condition.guards, condition.hidden, condition.binds)


def _unless_empty(value: Term, type_: Type, argument: Expr, grouping: Grouping) -> Expr:
    """The value of an aggregate that has one in the calculus also where it is NULL: where no x is left."""
    rows = Var(count(argument, grouping))
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
    rows = Var(count(argument, grouping))
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


def extreme(end: End, argument: Expr, grouping: Grouping) -> Expr:
    """NULL where no x is left, in the paper's dialect as well, which has no such aggregate."""
    name, filled = "min" if end == "least" else "max", grouping.fills(argument)
    argument, type_ = rounded(argument), argument.type
    if type_ is None:
        return constant(NULL, None)  # not the argument: it may name a column
    if isinstance(argument.term, Var) and argument.term.name in grouping.keys and not grouping.sparse:
        return argument  # a group has one
    if type_ == BOOLEAN:
        value = _boolean_extreme(end, argument, grouping)
    elif grouping.at_top or type_ == VARCHAR:
        return variable(grouping.pick(end, argument, name), type_, not filled)
    else:
        value = Var(grouping.extreme(end, argument, name))
    return Expr(value, type_, value) if filled else _unless_empty(value, type_, argument, grouping)


def _boolean_extreme(end: End, argument: Expr, grouping: Grouping) -> Term:
    """MIN(c) is TRUE unless some c is FALSE, MAX(c) if some c is TRUE: counts can tell."""
    counted = holds(negation(argument) if end == "least" else argument)
    return op("=" if end == "least" else "<>", Var(grouping.lookup("count", *counted)), ZERO_TERM)
