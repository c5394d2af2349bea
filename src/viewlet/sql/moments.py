"""VARIANCE, STDDEV, COVAR, CORR and REGR_*: functions of sums, finished where the sums are read.

As in DuckDB every argument counts as a DOUBLE. A moment is a difference of two numbers that may be nearly equal, and
the native engine has 106 bits of each. So a difference below 10⁻²⁷ of either is the 0 that it would be without
rounding, on every engine alike. Doubles that differ at all differ by more than 10⁻¹⁶.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from viewlet.algebra.terms import NULL, ONE_TERM, ZERO_TERM, Term, Var, number, op
from viewlet.schema import DOUBLE, Type
from viewlet.sql.aggregate import Call, aggregates, one_argument, summed
from viewlet.sql.expr import Expr, merge, not_null, strict
from viewlet.sql.grouping import Grouping
from viewlet.sql.types import to_double

_BEYOND_ROUNDING = number(10**27)


@dataclass(frozen=True)
class _Pairs:
    """The rows where both x and y are not NULL, and their sums."""

    x: Expr
    y: Expr
    grouping: Grouping

    @property
    def rows(self) -> Term:
        return Var(self.grouping.lookup("count"))

    def mean(self, *factors: Expr) -> Term:
        """The mean of a product; x / 0 is NULL."""
        product = factors[0] if len(factors) == 1 else strict("*", DOUBLE, *factors)
        return op("/", Var(summed(product, self.grouping)), self.rows)

    def covariance(self) -> Term:
        """E(xy) − E(x)·E(y)."""
        both = op("*", self.mean(self.x), self.mean(self.y))
        rest = op("-", self.mean(self.x, self.y), both)
        return self._unless_rounding(rest, op("abs", rest), op("abs", both))

    def variance(self, of: Expr) -> Term:
        """E(x²) − E(x)²."""
        square = op("*", self.mean(of), self.mean(of))
        rest = op("-", self.mean(of, of), square)
        return self._unless_rounding(rest, rest, square)

    def _unless_rounding(self, rest: Term, size: Term, beside: Term) -> Term:
        small = op("<=", op("*", size, _BEYOND_ROUNDING), beside)
        return op("case", op("or", small, op("=", self.rows, ONE_TERM)), ZERO_TERM, rest)

    def sampled(self, population: Term) -> Term:
        """Over n − 1 in place of n: NULL for a single row."""
        return op("/", op("*", population, self.rows), op("-", self.rows, ONE_TERM))


def _root(term: Term) -> Term:
    return op("sqrt_double", op("double", term))


def _finished(term: Term) -> Expr:
    return Expr(term, DOUBLE, term, (not_null(term),), unrounded=True)


@aggregates(exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop)
def _spread(call: Call) -> Expr:
    one_argument(call)
    argument, grouping = to_double(call.number()), call.grouping
    if call.distinct:
        grouping, argument = grouping.over_distinct(argument)
    pairs = _paired(argument, argument, grouping)
    spread = pairs.variance(pairs.x)
    if not isinstance(call.node, (exp.VariancePop, exp.StddevPop)):
        spread = pairs.sampled(spread)
    is_root = isinstance(call.node, (exp.Stddev, exp.StddevSamp, exp.StddevPop))
    return _finished(_root(spread) if is_root else spread)


@aggregates(exp.CovarPop, exp.CovarSamp, exp.Corr)
def _together(call: Call) -> Expr:
    """CORR of what does not vary is NULL, as in the standard; DuckDB says NaN."""
    pairs = _paired(to_double(call.number(0)), to_double(call.number(1)), call.grouping)
    measure = pairs.covariance()
    match call.node:
        case exp.CovarSamp():
            measure = pairs.sampled(measure)
        case exp.Corr():
            measure = op("/", measure, op("*", _root(pairs.variance(pairs.x)), _root(pairs.variance(pairs.y))))
    return _finished(measure)


@aggregates(
    exp.RegrSlope,
    exp.RegrIntercept,
    exp.RegrR2,
    exp.RegrSxx,
    exp.RegrSyy,
    exp.RegrSxy,
    exp.RegrAvgx,
    exp.RegrAvgy,
    exp.RegrCount,
)
def _line(call: Call) -> Expr:
    """Of the straight line y = a + b·x that is nearest to the rows; y is the first argument."""
    pairs = _paired(to_double(call.number(1)), to_double(call.number(0)), call.grouping)
    if isinstance(call.node, exp.RegrCount):
        return Expr(pairs.rows, Type("UINTEGER"), pairs.rows)
    return _finished(_of_line(call.node, pairs))


def _of_line(node: exp.AggFunc, pairs: _Pairs) -> Term:
    """b is NULL where x does not vary; DuckDB says NaN of it."""
    x, y = pairs.variance(pairs.x), pairs.variance(pairs.y)
    slope = op("/", pairs.covariance(), x)
    match node:
        case exp.RegrSlope():
            return slope
        case exp.RegrIntercept():
            return op("-", pairs.mean(pairs.y), op("*", slope, pairs.mean(pairs.x)))
        case exp.RegrR2():
            share = op("/", op("*", slope, pairs.covariance()), y)
            return op("case", op("=", x, ZERO_TERM), NULL, op("=", y, ZERO_TERM), ONE_TERM, share)
        case exp.RegrAvgx() | exp.RegrAvgy():
            return pairs.mean(pairs.x if isinstance(node, exp.RegrAvgx) else pairs.y)
    part = {exp.RegrSxx: x, exp.RegrSyy: y}.get(type(node), pairs.covariance())
    return op("*", part, pairs.rows)


def _paired(x: Expr, y: Expr, grouping: Grouping) -> _Pairs:
    more = merge([x.binds, y.binds, x.guards, y.guards])
    if more:
        grouping = grouping.where(*more)
    x, y = (Expr(e.bare, DOUBLE, e.bare) for e in (x, y))  # which is not NULL there
    return _Pairs(x, y, grouping)
