"""Calls of functions: those that sqlglot has no node for, by name, and arguments that must be constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.terms import Const, Op
from viewlet.schema import BIGINT, Type
from viewlet.sql.expr import Expr, an, loose, strict
from viewlet.sql.expression import Rule, expression, translates
from viewlet.sql.scope import Scope
from viewlet.sql.types import convert
from viewlet.sql.unsupported import refuse

NAMED: dict[str, Rule] = {}


def named(*names: str) -> Callable[[Rule], Rule]:
    """Make a function the rule for calls by these names, in lower case."""

    def register(rule: Rule) -> Rule:
        NAMED.update(dict.fromkeys(names, rule))
        return rule

    return register


@translates(exp.Anonymous)
def _by_name(node: exp.Expr, scope: Scope) -> Expr:
    rule = NAMED.get(node.name.lower())
    if rule is None:
        raise refuse(scope.session.source, node)
    return rule(node, scope)


def arguments(node: exp.Expr, scope: Scope, count: int) -> Sequence[exp.Expr]:
    """Of a function that is known by its name."""
    if len(node.expressions) != count:
        takes = f"{node.name.upper()} takes {count} argument{'s' * (count != 1)}"
        raise scope.session.source.error(node, f"{takes}, not {len(node.expressions)}", "see its arguments")
    return node.expressions


def call(node: exp.Expr, scope: Scope, name: str, type_: Type, *args: Expr) -> Expr:
    """A function of the calculus; constants for which it has no value are refused, though DuckDB may have one."""
    found = strict(name, type_, *args)
    if FUNCTIONS[name].can_be_null:
        found = loose(found.term, type_, True, args)
    if isinstance(found.term, Op) and found.term.name == name and all(isinstance(a, Const) for a in found.term.args):
        hint = "change the constant, or cast with TRY_CAST to get NULL"
        raise scope.session.source.unsupported(node, "a constant without an exact value", hint)
    return found


def number(node: exp.Expr, scope: Scope, what: str) -> Expr:
    """An argument that is a number."""
    found = expression(node, scope)
    if found.type is None:
        return convert(found, BIGINT)
    if not found.type.is_numeric:
        raise scope.session.source.error(node, f"{what} takes a number, not {an(found)}", "cast it: CAST(x AS DOUBLE)")
    return found


def whole_constant(node: exp.Expr, scope: Scope, what: str) -> int | None:
    """An argument that is a constant integer; None for NULL."""
    found = expression(node, scope).term
    if isinstance(found, Const) and (found.value is None or type(found.value) is int):
        return found.value
    raise scope.session.source.unsupported(node, f"{what} that is not a constant integer", "write the number")


def text_constant(node: exp.Expr, scope: Scope, what: str) -> str:
    """An argument that is a constant text."""
    found = expression(node, scope).term
    if isinstance(found, Const) and isinstance(found.value, str):
        return found.value
    raise scope.session.source.unsupported(node, f"{what} that is not a constant", "write it in quotes")
