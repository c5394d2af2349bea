"""Branches that a constant rules out: ROLLUP numbers its sets, and the parts of a UNION ALL often name themselves.

Each branch of the rows then stands beside aggregates over all branches, of which only its own can agree with it.
"""

from __future__ import annotations

from viewlet.algebra.query import (
    ONE,
    ZERO,
    Bind,
    Exists,
    Join,
    Query,
    Sum,
    Union,
    Value,
    join,
    outputs,
    sum_,
    union,
    variables,
)
from viewlet.algebra.remembered import remembered
from viewlet.algebra.rewrite import rule
from viewlet.algebra.terms import NULL, Const, Term
from viewlet.compiler.context import Context


@rule("(x := c) ⋈ Q[(x := c) ⋈ R + (x := d) ⋈ S] = (x := c) ⋈ Q[R]: x is the constant c, and no other, inside Q", Join)
def known_constant(q: Query, context: Context) -> Query | None:
    match q:
        case Join(parts):
            for known in parts:
                match known:
                    case Bind(x, Value(Const() as c)) if x not in context.bound:
                        others = [f for f in parts if f is not known]
                        after = [_where(f, x, c) for f in others]
                        if after != others:
                            return join(known, *after)
    return None


@remembered(1 << 14)
def _where(q: Query, x: str, c: Const) -> Query:
    """Q where x is c."""
    if x not in variables(q):
        return q
    match q:
        case Bind(var, Value(Const() as d)) if var == x:
            return ONE if c == d else ZERO if _differ(c, d) else q
        case Bind(var, inner) if var != x:
            return Bind(var, _where(inner, x, c))
        case Exists(inner):
            after = _where(inner, x, c)
            return ZERO if after == ZERO else Exists(after)
        case Sum(group, inner) if x in group or x not in outputs(inner):  # else it is another x, summed out
            after = _where(inner, x, c)
            return sum_(group & outputs(after), after)
        case Join(parts):
            return join(*(_where(f, x, c) for f in parts))
        case Union(parts):
            return _branches_where(parts, x, c)
    return q


def _branches_where(parts: tuple[Query, ...], x: str, c: Const) -> Query:
    """Those that are left all give x, or all leave it out."""
    pairs = [(b, after) for b in parts if (after := _where(b, x, c)) != ZERO]
    if len({outputs(after) - outputs(b) | (outputs(after) & {x}) for b, after in pairs}) > 1:
        return union(*(b for b, _ in pairs))
    return union(*(after for _, after in pairs))


def _differ(c: Term, d: Term) -> bool:
    """No value is both: they are of one kind, or one of them is NULL."""
    return c != d and isinstance(c, Const) and isinstance(d, Const) and (c.kind == d.kind or NULL in (c, d))
