"""OR of ANDs that share a conjunct: (a AND b) OR (a AND c) is a AND (b OR c), in three-valued logic, too.

So the join condition that all alternatives of TPC-H Q19 repeat is one equality, and a lookup.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp


def factored(node: exp.Or) -> tuple[list[exp.Expr], exp.Expr | None] | None:
    """The conjuncts that all alternatives have, and the OR of what else they say; None where they share nothing."""
    if _is_inside_or(node):
        return None  # the outermost has looked already
    alternatives = [list(_parts(part, exp.And)) for part in _parts(node, exp.Or)]
    shared = [c for c in dict.fromkeys(alternatives[0]) if all(c in other for other in alternatives[1:])]
    if not shared:
        return None
    rests = [[c for c in alternative if c not in shared] for alternative in alternatives]
    if not all(rests):
        return shared, None  # a OR (a AND b) is a
    return shared, reduce(_either, (reduce(_both, rest) for rest in rests))


def _is_inside_or(node: exp.Expr) -> bool:
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return isinstance(around, exp.Or)


def _parts(node: exp.Expr, kind: type[exp.Binary]) -> list[exp.Expr]:
    """The operands of a chain of ANDs or ORs, from left to right."""
    operands, rest = list[exp.Expr](), [node]
    while rest:
        part = rest.pop().unnest()
        if isinstance(part, kind):
            rest += [part.expression, part.this]
        else:
            operands.append(part)
    return operands


def _both(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.And(this=left.copy(), expression=right.copy())


def _either(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Or(this=left.copy(), expression=right.copy())
