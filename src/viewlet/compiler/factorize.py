"""Factorisation: Figure 2 (2) from right to left, run once a materialisation decision is final (§5.1)."""

from __future__ import annotations

from collections import Counter

from viewlet.algebra.query import (
    Query,
    Sum,
    Union,
    factors,
    inputs,
    join,
    outputs,
    scale,
    split_coefficient,
    sum_,
    union,
)
from viewlet.algebra.rewrite import Rule, Trace, rewrite, rule
from viewlet.compiler.context import Context
from viewlet.compiler.normal_forms import Known, NormalForms
from viewlet.compiler.simplify import without


@rule("Figure 2 (2) reversed: Q_L ⋈ Q₁ + Q_L ⋈ Q₂ ⇒ Q_L ⋈ (Q₁ + Q₂)", Union)
def factorization(q: Query, context: Context) -> Query | None:
    match q:
        case Union(parts):
            shared = _most_shared(parts, context)
            if shared is None:
                return None
            inside = [without(factors(b), shared) for b in parts if shared in factors(b)]
            return union(join(shared, union(*inside)), *(b for b in parts if shared not in factors(b)))
    return None


def _most_shared(parts: tuple[Query, ...], context: Context) -> Query | None:
    """The factor that most branches have, if two do; the costliest to read twice among several."""
    counts = Counter(f for b in parts for f in set(factors(b)))
    candidates = sorted((-n, -len(f.text), f.text, f) for f, n in counts.items() if n > 1)
    return next((f for _, _, _, f in candidates if _can_stand_outside(f, parts, context)), None)


def _can_stand_outside(f: Query, parts: tuple[Query, ...], context: Context) -> bool:
    """What is left of the branches gives f none of its inputs, and each the same outputs."""
    rests = [without(factors(b), f) for b in parts if f in factors(b)]
    alike = len({outputs(r) - context.bound for r in rests}) == 1
    return alike and not any((inputs(f) - context.bound) & outputs(r) for r in rests)


@rule("§5.1: Sum_A(Q_L ⋈ Q₁) + Sum_A(Q_L ⋈ Q₂) = Sum_A(Q_L ⋈ (Sum_B(Q₁) + Sum_B(Q₂)))", Union)
def merge_sums(q: Query, context: Context) -> Query | None:
    match q:
        case Union(parts):
            merged: list[Query] = []
            for b in parts:
                place = next(((i, m) for i, a in enumerate(merged) if (m := _merge(a, b)) is not None), None)
                if place is None:
                    merged.append(b)
                else:
                    merged[place[0]] = place[1]
            return union(*merged) if len(merged) < len(parts) else None
    return None


def _merge(a: Query, b: Query) -> Query | None:
    (c, first), (d, second) = split_coefficient(a), split_coefficient(b)
    if not isinstance(first, Sum) or not isinstance(second, Sum) or first.group != second.group:
        return None
    counts = [Counter(factors(s.query)) for s in (first, second)]  # a factor may stand twice: price * price
    common = counts[0] & counts[1]
    rests = [join(*(c - common).elements()) for c in counts]
    given = frozenset().union(*map(outputs, rests))
    if not any(map(outputs, common)) or any(inputs(f) & given for f in common):
        return None
    shared = join(*common.elements())
    used_outside = first.group | outputs(shared) | inputs(shared)
    x, y = (scale(k, sum_(outputs(r) & used_outside, r)) for k, r in zip((c, d), rests, strict=True))
    return sum_(first.group, join(shared, union(x, y))) if outputs(x) == outputs(y) else None


FACTORIZATIONS: tuple[Rule[Context], ...] = (factorization, merge_sums)


def factorize(q: Query, context: Context, trace: Trace | None = None, known: Known | None = None) -> Query:
    """``known``: what came of the parts of other statements."""
    return rewrite(q, FACTORIZATIONS, context, trace, NormalForms(context.bound, {} if known is None else known))
