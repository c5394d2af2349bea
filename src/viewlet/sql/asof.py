"""ASOF JOIN: each row on the left with the last row on the right that is not after it.

L ASOF JOIN R ON s AND t >= u pairs a row of L with the row of R that has the same s and the greatest u up to t. Let
C(x) count the rows of R with this s and u <= x. No row of R lies between u and t exactly if C(u) is not less than C(t):

    L ⋈ R ⋈ [u <= t] ⋈ (c := C(t)) ⋈ (d := C(u)) ⋈ [d >= c]

An order of u finds this row by its number. Where rows of R agree in s and u, their columns decide which one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Query, Rel, Value, factors, join, rename, sum_, union
from viewlet.algebra.terms import FALSE, NULL, TRUE, ZERO_TERM, Var, free, op
from viewlet.sql.expr import Expr, compared, holds, merge, rounded, variable
from viewlet.sql.expression import COMPARISONS, expression, matched
from viewlet.sql.grouping import bound
from viewlet.sql.outer_join import Rows
from viewlet.sql.ranks import first_of_each
from viewlet.sql.scope import Scope
from viewlet.sql.unsupported import join_words

_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WRITE = "write ASOF JOIN … ON a.k = b.k AND a.t >= b.t: equalities and one inequality, each of both sides"
_SIDES = "write ASOF JOIN or ASOF LEFT JOIN"


@dataclass(frozen=True)
class Match:
    """``left θ right``: a condition of the join."""

    symbol: str
    left: Expr
    right: Expr


def matches_on(node: exp.Join, right: Rows, both: Scope) -> list[Match]:
    """The comparisons in ON, each with the left side first."""
    condition = node.args["on"].unnest()
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    return [_match(part.unnest(), right.variables, both) for part in parts]


def _match(node: exp.Expr, theirs: frozenset[str], both: Scope) -> Match:
    symbol = COMPARISONS.get(type(node), "")
    if symbol not in _TURNED:
        raise both.session.source.unsupported(node, "this condition of an ASOF JOIN", _WRITE)
    first, second = matched(node, both, expression(node.this, both), expression(node.expression, both))
    ours, other = free(first.bare), free(second.bare)
    if ours and other and other <= theirs and ours.isdisjoint(theirs):
        return Match(symbol, first, second)
    if ours and other and ours <= theirs and other.isdisjoint(theirs):
        return Match(_TURNED[symbol], second, first)
    raise both.session.source.unsupported(node, "this condition of an ASOF JOIN", _WRITE)


def asof_join(node: exp.Join, left: Rows, right: Rows, matches: Sequence[Match], around: Scope) -> Rows:
    """``right`` has columns that are variables (``Rows.named``)."""
    source = around.session.source
    words = [word for word in join_words(source, node) if word != "ASOF"]
    if words not in ([], ["LEFT"]):
        raise source.unsupported(node, f"ASOF {' '.join(words)} JOIN", _SIDES, "ASOF")
    inequalities = [m for m in matches if m.symbol != "="]
    if len(inequalities) != 1:
        raise source.error(node.this, f"this ASOF JOIN has {len(inequalities)} inequalities, not one", _WRITE)
    parts = _Parts(left, right, [m for m in matches if m.symbol == "="], inequalities[0], around)
    if not words:
        return Rows((*parts.before(), *parts.partner()), left.fields + right.fields)
    columns = right.variables
    either = union(sum_(columns, join(*parts.partner())), *(sum_(columns, join(*q)) for q in parts.padding()))
    return Rows((*parts.before(), either), left.fields + right.nullable().fields)


class _Parts:
    """Both sides, under variables for what is equal, and the right side for what is not later."""

    def __init__(self, left: Rows, right: Rows, equal: Sequence[Match], last: Match, around: Scope) -> None:
        self.names, self.right, self.last = around.session.names, right, last
        self.binds = merge([e.binds for m in (*equal, last) for e in (m.left, m.right)])
        self.left, self.product = join(*left.factors, *self.binds), right.product
        self.ours, self.theirs = list[Expr](), list[Expr]()
        for match in equal:
            mine, self.left = self._under_a_name(match.left, self.left)
            self.ours.append(mine)
            own, self.product = self._under_a_name(match.right, self.product)
            self.theirs.append(own)
        self.at, self.product = self._under_a_name(last.right, self.product)
        self.upto = self.names.fresh("upto")
        self.is_unique = _is_unique(right, self.keys, around)

    def _under_a_name(self, expr: Expr, product: Query) -> tuple[Expr, Query]:
        var, product = bound(self.names, product, rounded(expr).term, "key")
        return variable(var, expr.type, expr.nullable), product

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables of the right side that are compared."""
        return tuple(dict.fromkeys(e.term.text for e in (*self.theirs, self.at)))

    def before(self) -> tuple[Query, ...]:
        """L ⋈ (c := C(t))."""
        return (*factors(self.left), Bind(self.upto, self.count(self.ours, self.last.symbol, self.last.left)))

    def partner(self) -> tuple[Query, ...]:
        """R ⋈ [s = s] ⋈ [u <= t] ⋈ (d := C(u)) ⋈ [d >= c]."""
        number = self.names.fresh("number")
        tests = [holds(compared("=", *pair)) for pair in zip(self.ours, self.theirs, strict=True)]
        tests.append(holds(compared(self.last.symbol, self.last.left, self.at)))
        count = self.count(self.theirs, self.last.symbol[0] + "=", self.at)
        return (*self.rows(), *merge(tests), Bind(number, count), Compare(">=", Var(number), Var(self.upto)))

    def padding(self) -> Iterator[tuple[Query, ...]]:
        """A row of NULLs where no row is early enough, or where s is NULL, which C(t) does not know of."""
        nulls = [Bind(var, Value(NULL)) for var in sorted(self.right.variables)]
        pairs = zip(self.ours, self.theirs, strict=True)
        unknown = [op("is_null", mine.term) for mine, own in pairs if mine.nullable and own.nullable]
        known = [Compare("=", term, FALSE) for term in unknown]
        yield (*nulls, *known, Compare("=", Var(self.upto), ZERO_TERM))
        for i, term in enumerate(unknown):  # the first of them that is NULL
            yield (*nulls, *known[:i], Compare("=", term, TRUE))

    def rows(self) -> tuple[Query, ...]:
        """R, where rows that tie are one."""
        if self.is_unique:
            return (self.product,)
        rows = sum_(self.right.variables | set(self.keys), self.product)
        columns = [(f.expr.term.text, f.expr.nullable) for f in self.right.fields]
        return first_of_each(rows, frozenset(self.keys), columns, self.names)

    def count(self, equal: Sequence[Expr], symbol: str, at: Expr) -> Query:
        """C(t): how many rows of R have the s of a row, and a u that is no later than its t.

        A NULL in s meets NULLs here. No guard is needed: such a row has no partner.
        """
        keys = sum_(self.keys, self.product)
        copied = {key: self.names.fresh(key) for key in self.keys}
        copy = rename(self.names.apart([keys, keys], self.keys)[1], copied)
        pairs = zip(self.theirs, equal, strict=True)
        tests = [Compare("=", Var(copied[own.term.text]), mine.term) for own, mine in pairs]
        own = variable(copied[self.at.term.text], self.at.type, self.at.nullable)
        return sum_((), join(copy, *tests, *holds(compared(symbol, at, own))))


def _is_unique(right: Rows, keys: Sequence[str], around: Scope) -> bool:
    """A relation of which no two rows can agree in what the join compares."""
    product = right.product
    if not isinstance(product, Rel) or not all(key in product.vars for key in keys):
        return False
    relation = around.session.catalog.relations[product.name]
    columns = {c.name for c, var in zip(relation.columns, product.vars, strict=True) if var in keys}
    return any(key and columns.issuperset(key) for key in (relation.key, *relation.unique))
