"""Where NULL can be: nullability is static, and a NOT NULL column costs nothing."""

from __future__ import annotations

from collections.abc import Mapping

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.query import Bind, Compare, Delta, Join, Query, Rel, Union, Value, View, children
from viewlet.algebra.terms import FALSE, Const, Op, Term, Var
from viewlet.program.trigger import Program

Columns = Mapping[str, tuple[bool, ...]]  # relation or view → may each column (inputs first) hold NULL?


def nullable_columns(program: Program) -> Columns:
    """For every relation and view of a program, which of its columns may hold NULL."""
    columns = {r.name: tuple(c.nullable for c in r.columns) for r in program.relations}
    nullable = dict(columns)
    for view in program.views:
        solid = solid_variables(view.definition, columns)
        nullable[view.name] = tuple(v not in solid for v in view.inputs + view.outputs)
    return nullable


def solid_variables(q: Query, columns: Columns) -> frozenset[str]:
    """The variables that are never NULL in a tuple of Q."""
    match q:
        case Rel(name, names) | Delta(name, names):
            return frozenset(v for v, nullable in zip(names, columns[name], strict=True) if not nullable)
        case View(name, ins, outs):
            return frozenset(v for v, nullable in zip(ins + outs, columns[name], strict=True) if not nullable)
        case Compare():
            return solid_after(q)
        case Union(parts):
            return frozenset.intersection(*(solid_variables(p, columns) for p in parts))
        case Bind(var, inner) if not isinstance(inner, Value):
            return frozenset({var})
        case Join(parts):
            solid = frozenset[str]().union(*(solid_variables(p, columns) for p in parts))
            computed = [p for p in parts if isinstance(p, Bind) and isinstance(p.query, Value)]
            for _ in computed:  # one may be computed from another
                solid |= {
                    p.var for p in computed if isinstance(p.query, Value) and not may_be_null(p.query.term, solid)
                }
            return solid
        case _:
            return frozenset[str]().union(*(solid_variables(c, columns) for c in children(q)))


def solid_after(test: Compare) -> frozenset[str]:
    """The variables that a comparison which holds has shown not to be NULL."""
    match test:
        case Compare("=", Op("is_null", (Var(x),)), right) if right == FALSE:
            return frozenset({x})
        case Compare(_, left, right):
            return frozenset(t.name for t in (left, right) if isinstance(t, Var))


def is_plain(term: Term, solid: frozenset[str]) -> bool:
    """Neither the term nor any part of it can be NULL where the variables of ``solid`` are not."""
    return not may_be_null(term, solid) and (not isinstance(term, Op) or all(is_plain(a, solid) for a in term.args))


def may_be_null(term: Term, solid: frozenset[str]) -> bool:
    """Whether a term may be NULL where the variables of ``solid`` are not."""
    match term:
        case Const(value):
            return value is None
        case Var(name):
            return name not in solid
        case Op("is_null", _):
            return False
        case Op("coalesce", args):
            return all(may_be_null(a, solid) for a in args)
        case Op("case", args):
            return any(may_be_null(a, solid) for a in (*args[1::2], args[-1]))
        case Op("/", (left, Const(value))) if value != 0:
            return may_be_null(left, solid)
        case Op("/", _):
            return True
        case Op(name, _) if name in FUNCTIONS and FUNCTIONS[name].can_be_null:
            return True
        case Op(_, args):
            return any(may_be_null(a, solid) for a in args)
