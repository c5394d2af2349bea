"""LIKE and ILIKE. A constant pattern becomes the cheapest test that says the same: without wildcards, a lookup."""

from __future__ import annotations

from sqlglot import exp

from viewlet.algebra.terms import Const
from viewlet.schema import BOOLEAN, VARCHAR
from viewlet.sql.expr import Expr, compared, negation, strict
from viewlet.sql.expression import translates
from viewlet.sql.functions_text import argument
from viewlet.sql.scope import Scope
from viewlet.sql.types import string_literal
from viewlet.sql.unsupported import refuse

PERCENT, UNDERSCORE = object(), object()
Pattern = list[object]  # characters, and what stands for any


@translates(exp.Like, exp.ILike)
def _like(node: exp.Expr, scope: Scope) -> Expr:
    text, pattern = _sides(node, scope)
    return _negated(node, _matches(text, pattern))


@translates(exp.Escape)
def _escape(node: exp.Expr, scope: Scope) -> Expr:
    inner = node.this
    if not isinstance(inner, (exp.Like, exp.ILike)):
        raise refuse(scope.session.source, node)
    text, pattern = _sides(inner, scope)
    escape = argument(node.expression, scope, "text")
    if isinstance(inner, exp.ILike) and not _is_caseless(escape):
        hint = "escape by a sign that is no letter"
        raise scope.session.source.unsupported(node, "ILIKE with a letter to escape by", hint, "ESCAPE")
    return _negated(inner, _matches_escaped(text, pattern, escape))


def _sides(node: exp.Expr, scope: Scope) -> tuple[Expr, Expr]:
    if isinstance(node.expression, (exp.Any, exp.All)):
        raise refuse(scope.session.source, node.expression)
    sides = argument(node.this, scope, "text"), argument(node.expression, scope, "text")
    return sides if isinstance(node, exp.Like) else (_lower(sides[0]), _lower(sides[1]))


def _lower(text: Expr) -> Expr:
    return strict("lower", VARCHAR, text)


def _negated(node: exp.Expr, test: Expr) -> Expr:
    return negation(test) if node.args.get("negate") else test


def _is_caseless(escape: Expr) -> bool:
    match escape.term:
        case Const(str() as sign):
            return not any(c.isalpha() for c in sign)
    return False


# -- patterns ----------------------------------------------------------------------------------------------------------


def _matches(text: Expr, pattern: Expr) -> Expr:
    match pattern.term:
        case Const(str() as known):
            signs: dict[str, object] = {"%": PERCENT, "_": UNDERSCORE}
            cheap = _cheap(text, [signs.get(c, c) for c in known])
            if cheap is not None:
                return cheap
    return strict("like", BOOLEAN, text, pattern)


def _matches_escaped(text: Expr, pattern: Expr, escape: Expr) -> Expr:
    match pattern.term, escape.term:
        case Const(str() as known), Const(str() as sign) if len(sign) == 1 and sign.isascii() and sign not in "%_":
            read = _read(known, sign)
            cheap = None if read is None else _cheap(text, read)
            if cheap is not None:
                return cheap
    return strict("like_escape", BOOLEAN, text, pattern, escape)


def _read(pattern: str, escape: str) -> Pattern | None:
    """A pattern without its escapes; None where it ends with one."""
    parts, signs = list[object](), iter(pattern)
    for sign in signs:
        if sign == escape:
            literal = next(signs, None)
            if literal is None:
                return None
            parts.append(literal)
        else:
            parts.append({"%": PERCENT, "_": UNDERSCORE}.get(sign, sign))
    return parts


def _cheap(text: Expr, pattern: Pattern) -> Expr | None:
    """A test without a pattern, where there is one."""
    start = next((i for i, sign in enumerate(pattern) if sign is not PERCENT), len(pattern))
    end = next((i for i in range(len(pattern), start, -1) if pattern[i - 1] is not PERCENT), start)
    middle = pattern[start:end]
    if PERCENT in middle or UNDERSCORE in middle:
        return None
    literal = string_literal("".join(map(str, middle)))
    match start > 0, end < len(pattern):
        case False, False:
            return compared("=", text, literal)
        case True, False:
            return strict("ends_with" if middle else "starts_with", BOOLEAN, text, literal)
        case False, True:
            return strict("starts_with", BOOLEAN, text, literal)
    return strict("contains", BOOLEAN, text, literal)
