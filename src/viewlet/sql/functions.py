"""Calls of functions: those that sqlglot has no node for, by name, and arguments that must be constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.terms import Const, Op
from viewlet.schema import BIGINT, Type
from viewlet.sql.expr import Expr, an, loose, strict
from viewlet.sql.expression import Rule, expression, translates
from viewlet.sql.python_functions import python_call
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
    if rule is not None:
        return rule(node, scope)
    by_python = python_call(node, scope)
    if by_python is None:
        raise refuse(scope.session.source, node)
    return by_python


def arguments(node: exp.Expr, scope: Scope, count: int) -> Sequence[exp.Expr]:
    """Of a function that is known by its name."""
    if len(node.expressions) != count:
        takes = f"{node.name.upper()} takes {count} argument{'s' * (count != 1)}"
        raise scope.session.source.error(node, f"{takes}, not {len(node.expressions)}", "see its arguments")
    return node.expressions


def call(node: exp.Expr, scope: Scope, name: str, type_: Type, *args: Expr) -> Expr:
    """A function of the calculus; constants for which it has no value are refused, though DuckDB may have one."""
    result = strict(name, type_, *args)
    if FUNCTIONS[name].can_be_null:
        result = loose(result.term, type_, True, args)
    if isinstance(result.term, Op) and result.term.name == name and all(isinstance(a, Const) for a in result.term.args):
        hint = "change the constant, or cast with TRY_CAST to get NULL"
        raise scope.session.source.unsupported(node, "a constant without an exact value", hint)
    return result


def number(node: exp.Expr, scope: Scope, what: str) -> Expr:
    """An argument that is a number."""
    value = expression(node, scope)
    if value.type is None:
        return convert(value, BIGINT)
    if not value.type.is_numeric:
        raise scope.session.source.error(node, f"{what} takes a number, not {an(value)}", "cast it: CAST(x AS DOUBLE)")
    return value


def whole_constant(node: exp.Expr, scope: Scope, what: str) -> int | None:
    """An argument that is a constant integer; None for NULL."""
    term = expression(node, scope).term
    if isinstance(term, Const) and (term.value is None or type(term.value) is int):
        return term.value
    raise scope.session.source.unsupported(node, f"{what} that is not a constant integer", "write the number")


def text_constant(node: exp.Expr, scope: Scope, what: str) -> str:
    """An argument that is a constant text."""
    term = expression(node, scope).term
    if isinstance(term, Const) and isinstance(term.value, str):
        return term.value
    raise scope.session.source.unsupported(node, f"{what} that is not a constant", "write it in quotes")
