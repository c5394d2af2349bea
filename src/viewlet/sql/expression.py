"""Scalar expressions → terms. One rule per kind of SQL node; subqueries add theirs in :mod:`viewlet.sql.subquery`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.functions.calendar import MICROSECONDS_PER_DAY
from viewlet.algebra.query import outputs
from viewlet.algebra.terms import FALSE, NULL, TRUE, ZERO_TERM, Const, Term, Var, can_fail, free, number, op
from viewlet.errors import SqlError, UnsupportedError, shortened
from viewlet.schema import BIGINT, BITS, BOOLEAN, DATE, DOUBLE, INTERVAL, REAL, TIMESTAMP, Type
from viewlet.sql.common_conjuncts import factored
from viewlet.sql.derived import derived
from viewlet.sql.equality import equal
from viewlet.sql.expr import (
    Expr,
    an,
    compared,
    conjunction,
    constant,
    disjunction,
    divide,
    loose,
    negation,
    null_test,
    strict,
)
from viewlet.sql.interval import Span, span
from viewlet.sql.other_types import as_doubles, may_be_single, to_single
from viewlet.sql.scope import Scope
from viewlet.sql.types import (
    LONGEST_SHIFT,
    alike,
    arithmetic_type,
    casts_implicitly,
    common_type,
    comparable,
    convert,
    is_exact_as,
    is_in_calendar,
    negated,
    number_literal,
    retagged,
    shift,
    string_literal,
    summands,
    with_literals,
)
from viewlet.sql.unsupported import only, refuse

_CLOSED = (exp.AggFunc, exp.Query, exp.SubqueryPredicate, exp.Lambda)  # whose parts stand in another scope
_INNER = (*_CLOSED, exp.Cast, exp.Array, exp.Struct, exp.Subquery)  # sqlglot adds casts of its own
_COMPARED = (exp.Any, exp.All, exp.Tuple)  # whose rules take the comparison that they stand in
NO_SUCH_DAY = "a date that is not between the years 1 and 9999"
Rule = Callable[[exp.Expr, Scope], Expr]
RULES: dict[type[exp.Expr], Rule] = {}

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def translates(*kinds: type[exp.Expr]) -> Callable[[Rule], Rule]:
    """Make a function the rule for these nodes."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, rule))
        return rule

    return register


def expression(node: exp.Expr, scope: Scope) -> Expr:
    known = scope.known(node)
    if known is not None:
        return known
    source = scope.session.source
    before = len(source.noted or ())
    try:
        if type(node) in RULES:
            return RULES[type(node)](node, scope)
        raise refuse(source, node)
    except SqlError as error:
        try:
            by_duckdb = derived(node, scope, anyway=isinstance(error, UnsupportedError))
        except SqlError as refused:
            has_rule = type(node) in RULES and not isinstance(node, (exp.Anonymous, exp.Column))
            by_duckdb, error = None, error if has_rule else refused
        if by_duckdb is not None:
            return by_duckdb
        if source.noted is None or len(source.noted) == before:  # else it may come of what was refused inside
            source.refuse(error)
            _look_inside(node, scope)
        return constant(NULL, None)  # which fits everywhere


def _look_inside(node: exp.Expr, scope: Scope) -> None:
    """Note what is wrong with the arguments of a function or operator that is refused itself."""
    is_known = type(node) in RULES and not isinstance(node, exp.Anonymous)
    if is_known or not isinstance(node, (exp.Func, exp.Binary, exp.Unary)) or isinstance(node, _CLOSED):
        return
    for part in node.iter_expressions():
        if isinstance(part, (exp.Column, exp.Func, exp.Binary, exp.Unary)) and not isinstance(part, _INNER):
            expression(part, scope)


def output(node: exp.Expr, scope: Scope) -> Expr:
    """An item of SELECT."""
    result = expression(node, scope)
    if result.type is not None and not is_in_calendar(result.term, result.type):
        hint = "the first day is 0001-01-01, the last 9999-12-31"
        scope.session.source.refuse(scope.session.source.unsupported(node, NO_SUCH_DAY, hint))
    return result


def boolean(node: exp.Expr, scope: Scope) -> Expr:
    result = expression(node, scope)
    if result.type in (BOOLEAN, None):
        return result
    source = scope.session.source
    hint = "write a comparison: x <> 0" if result.type is not None and result.type.is_numeric else "write a comparison"
    if casts_implicitly(result, constant(TRUE, BOOLEAN)):
        source.refuse(source.unsupported(node, f"{an(result)} for a condition", hint))
    else:
        source.refuse(source.error(node, f"a condition was expected here, not {an(result)}", hint))
    return constant(NULL, None)


@translates(exp.Column)
def _column(node: exp.Expr, scope: Scope) -> Expr:
    assert isinstance(node, exp.Column)
    if node.args.get("db") or node.args.get("catalog"):
        raise scope.session.source.unsupported(node, "a column name with a schema", "write table.column")
    return scope.column(node)


@translates(exp.Paren)
def _parenthesis(node: exp.Expr, scope: Scope) -> Expr:
    return expression(node.this, scope)


# -- literals ----------------------------------------------------------------------------------------------------------


@translates(exp.Literal)
def _literal(node: exp.Expr, scope: Scope) -> Expr:
    if node.is_string:
        return string_literal(node.this)
    source = scope.session.source
    try:
        result = number_literal(node.this)
    except ValueError:
        raise source.error(node, f"{shortened(node.this)} is not a number", "write 10, 1.5 or 1e3") from None
    if result is None:
        construct = f"the number {shortened(node.this)}, which fits no BIGINT, DECIMAL or DOUBLE,"
        raise source.unsupported(node, construct, "use a smaller number")
    return result


@translates(exp.Null, exp.Boolean)
def _constant(node: exp.Expr, scope: Scope) -> Expr:
    if isinstance(node, exp.Null):
        return constant(NULL, None)
    return constant(TRUE if node.this else FALSE, BOOLEAN)


# -- arithmetic --------------------------------------------------------------------------------------------------------

_LONGEST_IN_MONTHS = 9999 * 12 - 1
_SYMBOLS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}


@translates(exp.Add, exp.Sub, exp.Mul, exp.Div)
def _arithmetic(node: exp.Expr, scope: Scope) -> Expr:
    return computed(node, scope, _SYMBOLS[type(node)], node.this, node.expression)


def computed(node: exp.Expr, scope: Scope, symbol: str, first: exp.Expr, second: exp.Expr) -> Expr:
    """What an operator makes of numbers, of moments and of constant INTERVALs."""
    spans = span(scope.session.source, first), span(scope.session.source, second)
    if spans[0] is not None and spans[1] is not None:
        return _interval(node, scope)
    if spans[1] is not None and symbol in "+-":
        return _shifted(node, first, spans[1], scope, 1 if symbol == "+" else -1)
    if spans[0] is not None and symbol == "+":
        return _shifted(node, second, spans[0], scope, 1)
    left, right = expression(first, scope), expression(second, scope)
    result = _numbers(node, scope, symbol, left, right) or _dates(node, scope, symbol, left, right)
    if result is None:
        raise _mismatch(node, scope, symbol, left, right)
    return result


def _numbers(node: exp.Expr, scope: Scope, symbol: str, left: Expr, right: Expr) -> Expr | None:
    if REAL in (left.type, right.type):
        return _reals(node, scope, symbol, left, right)
    left, right = with_literals([left, right])
    types = [e.type or other.type or BIGINT for e, other in ((left, right), (right, left))]
    if not all(t.is_numeric for t in types):
        return None
    if symbol != "/" and types[0].kind == "DECIMAL" and None in (left.type, right.type):
        return constant(NULL, None)  # next to a DECIMAL, DuckDB gives a bare NULL no type
    result = arithmetic_type(symbol, *types)
    if result is None:
        hint = "cast one factor: CAST(x AS DOUBLE)"
        raise scope.session.source.error(node, "this product has more than 38 decimal places", hint)
    if symbol == "/":
        return divide(left, right, result)
    if symbol in "+-" and result == DOUBLE:  # a factor stays exact: its rounding is lost in that of the product
        left, right = summands(left, right)
    return strict(symbol, result, left, right)


def _reals(node: exp.Expr, scope: Scope, symbol: str, left: Expr, right: Expr) -> Expr | None:
    """Each outcome is rounded to a REAL, unless the other side is a DOUBLE."""
    if DOUBLE in (left.type, right.type):
        left, right = as_doubles([left, right])
        return _numbers(node, scope, symbol, left, right)
    others = [e.type for e in (left, right) if e.type not in (None, REAL)]
    if not all(t is not None and t.is_numeric for t in others):
        return None
    if not (may_be_single(left) and may_be_single(right)):
        construct, hint = f"{an(left)} {symbol} {an(right)}", "cast one of them: CAST(x AS DOUBLE)"
        raise scope.session.source.unsupported(node, construct, hint)
    left, right = to_single(left), to_single(right)
    both = divide(left, right, DOUBLE) if symbol == "/" else strict(symbol, DOUBLE, left, right)
    return strict("single", REAL, both)


def _dates(node: exp.Expr, scope: Scope, symbol: str, left: Expr, right: Expr) -> Expr | None:
    """date - date = days; date ± days = date; other moments differ by an INTERVAL, and so do INTERVALs."""
    whole = BITS
    match symbol, left.type and left.type.kind, right.type and right.type.kind:
        case "-", "DATE", "DATE":
            return strict("-", BIGINT, left, right)
        case "-", "DATE" | "TIMESTAMP", "DATE" | "TIMESTAMP":
            return strict(
                "-", INTERVAL, *(strict("midnight", TIMESTAMP, e) if e.type == DATE else e for e in (left, right))
            )
        case "+" | "-", "INTERVAL", "INTERVAL":
            return strict(symbol, INTERVAL, left, right)
        case "+" | "-", "TIMESTAMP", "INTERVAL":
            return strict(symbol, left.type or TIMESTAMP, left, right)
        case "+" | "-", "DATE", kind if kind in whole:
            days = right
        case "+", kind, "DATE" if kind in whole:
            days = left
        case _:
            return None
    if isinstance(days.term, Const) and isinstance(days.term.value, int):
        _check_shift(node, scope, days.term.value)
    return retagged(strict(symbol, DATE, left, right))


def _microseconds(at: Expr) -> Expr:
    return strict("midnight", TIMESTAMP, at) if at.type == DATE else at


def _check_shift(node: exp.Expr, scope: Scope, days: int) -> None:
    """From no date does one come to another by more days than there are."""
    if abs(days) > LONGEST_SHIFT:
        raise scope.session.source.unsupported(node, "a shift beyond the years 1 to 9999", "shift by fewer days")


@translates(exp.Interval)
def _interval(node: exp.Expr, scope: Scope) -> Expr:
    """A constant that INTERVALs are compared with. There a month has 30 days; elsewhere it has no length."""
    interval = span(scope.session.source, node)
    if interval is None:
        raise scope.session.source.unsupported(node, "this INTERVAL", "write INTERVAL '1 day 2 hours'")
    around = node.parent
    while isinstance(around, (exp.Paren, exp.Neg)):
        around = around.parent
    if interval.months and not isinstance(around, (*COMPARISONS, exp.Between, exp.In)):
        hint = "write days, or add it to a DATE or TIMESTAMP"
        raise scope.session.source.unsupported(node, "an INTERVAL of months as a value", hint)
    return constant(number(interval.length), INTERVAL)


def _shifted(node: exp.Expr, moment: exp.Expr, by: Span, scope: Scope, sign: int) -> Expr:
    start = expression(moment, scope)
    if start.type == INTERVAL:
        raise _mismatch(node, scope, "+", start, start)
    if start.type is None or start.type.kind not in ("DATE", "TIMESTAMP"):
        hint = "an INTERVAL is added to a DATE or a TIMESTAMP; write DATE '1995-03-15' + INTERVAL '3' MONTH"
        raise scope.session.source.error(node, f"cannot add an INTERVAL to {an(start)}", hint)
    months, microseconds = by.months, by.microseconds
    _check_shift(node, scope, months * LONGEST_SHIFT // _LONGEST_IN_MONTHS + microseconds // MICROSECONDS_PER_DAY)
    shifted = shift(start, sign * months, sign * microseconds)
    if can_fail(shifted.term) and not free(shifted.term):  # else the constant were folded
        raise scope.session.source.unsupported(node, NO_SUCH_DAY, "use a shorter INTERVAL")
    return shifted


def _mismatch(node: exp.Expr, scope: Scope, symbol: str, left: Expr, right: Expr) -> Exception:
    source = scope.session.source
    kinds = {e.type.kind for e in (left, right) if e.type}
    if INTERVAL.kind in kinds:
        return source.unsupported(node, "arithmetic with an INTERVAL", "add a constant INTERVAL to a DATE or TIMESTAMP")
    hint = "+ - * / take numbers; a DATE takes ± days or ± INTERVAL"
    return source.error(node, f"cannot compute {an(left)} {symbol} {an(right)}", hint)


@translates(exp.Neg)
def _negative(node: exp.Expr, scope: Scope) -> Expr:
    if span(scope.session.source, node.this) is not None:
        return _interval(node, scope)
    return negated(_number(node, scope, "-"))


@translates(exp.Abs)
def _absolute(node: exp.Expr, scope: Scope) -> Expr:
    inner = _number(node, scope, "ABS")
    assert inner.type is not None
    return strict("abs", inner.type, inner)


def _number(node: exp.Expr, scope: Scope, what: str) -> Expr:
    inner = expression(node.this, scope)
    if inner.type is None:
        return convert(inner, BIGINT)
    if not inner.type.is_numeric and inner.type != REAL:
        raise scope.session.source.error(node, f"{what} takes a number, not {an(inner)}", "use a numeric column")
    return inner


# -- conditions --------------------------------------------------------------------------------------------------------


def matched(node: exp.Expr, scope: Scope, left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both sides of a comparison, made comparable."""
    pair = comparable(left, right, by_order=isinstance(node, (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)))
    if pair is None:
        source, both, hint = scope.session.source, f"{an(left)} with {an(right)}", _compare_hint(left, right)
        if casts_implicitly(left, right):
            raise source.unsupported(node, f"comparing {both}", hint)
        raise source.error(node, f"cannot compare {both}", hint)
    return pair


def _compare_hint(left: Expr, right: Expr) -> str:
    literal, other = (left, right) if left.is_string_literal else (right, left)
    if literal.is_string_literal and other.type and other.type.kind in ("DATE", "TIMESTAMP"):
        return f"write {other.type.kind} '1995-03-15'"
    if literal.is_string_literal and other.type and other.type.is_numeric:
        return "write the number without quotes"
    return "compare numbers with numbers, strings with strings, dates with dates"


@translates(*COMPARISONS)
def _comparison(node: exp.Expr, scope: Scope) -> Expr:
    if any(type(side) in COMPARISONS for side in (node.this, node.expression)):  # in parentheses it is a Paren
        hint = "combine them: a < b AND b < c; or put one in parentheses"
        raise scope.session.source.error(node, "comparisons cannot be chained", hint)
    special = next((type(side) for side in (node.expression, node.this) if isinstance(side, _COMPARED)), None)
    if special is not None:
        return RULES[special](node, scope)
    sides = expression(node.this, scope), expression(node.expression, scope)
    pair = matched(node, scope, *sides)
    if isinstance(node, exp.EQ):
        return equal(scope.session.names, *pair)
    return compared(COMPARISONS[type(node)], *pair)


@translates(exp.And)
def _and(node: exp.Expr, scope: Scope) -> Expr:
    return conjunction([boolean(node.this, scope), boolean(node.expression, scope)])


@translates(exp.Or)
def _or(node: exp.Expr, scope: Scope) -> Expr:
    assert isinstance(node, exp.Or)
    if (split := factored(node)) is not None:
        shared, rest = split
        return conjunction([boolean(part, scope) for part in (*shared, *([rest] if rest is not None else []))])
    return disjunction([boolean(node.this, scope), boolean(node.expression, scope)])


@translates(exp.Not)
def _not(node: exp.Expr, scope: Scope) -> Expr:
    return negation(boolean(node.this, scope))


_BETWEEN_HINTS = {"symmetric": ("SYMMETRIC", "write the lesser bound first")}


@translates(exp.Between)
def _between(node: exp.Expr, scope: Scope) -> Expr:
    """x BETWEEN a AND b is x >= a AND x <= b."""
    only(scope.session.source, node, frozenset({"this", "low", "high"}), _BETWEEN_HINTS)
    value, low, high = alike([expression(node.args[part], scope) for part in ("this", "low", "high")])
    sides = (">=", matched(node, scope, value, low)), ("<=", matched(node, scope, value, high))
    return conjunction([compared(symbol, *pair) for symbol, pair in sides])


@translates(exp.Is)
def _is(node: exp.Expr, scope: Scope) -> Expr:
    match node.expression:
        case exp.Null():
            return null_test(expression(node.this, scope))
        case exp.Boolean(this=True):
            inner = boolean(node.this, scope)
            return loose(op("coalesce", inner.term, FALSE), BOOLEAN, False, [inner])
        case exp.Boolean():
            inner = boolean(node.this, scope)
            return loose(op("not", op("coalesce", inner.term, TRUE)), BOOLEAN, False, [inner])
    raise scope.session.source.unsupported(node, "this form of IS", "use IS NULL, IS TRUE or IS FALSE")


# -- choices -----------------------------------------------------------------------------------------------------------


@translates(exp.Case)
def _case(node: exp.Expr, scope: Scope) -> Expr:
    """CASE WHEN c THEN v … and CASE x WHEN y THEN v …; no ELSE is ELSE NULL."""
    subject = expression(node.this, scope) if node.this is not None else None
    conditions, values = [], []
    for branch in node.args["ifs"]:
        if subject is None:
            conditions.append(boolean(branch.this, scope))
        else:
            conditions.append(compared("=", *matched(node, scope, subject, expression(branch.this, scope))))
        values.append(expression(branch.args["true"], scope))
    default = node.args.get("default")
    values.append(expression(default, scope) if default is not None else constant(NULL, None))
    values, type_ = unified(node, scope, values)
    terms: list[Term] = [t for c, v in zip(conditions, values[:-1], strict=True) for t in (c.term, v.term)]
    nullable = any(v.nullable for v in values)
    return loose(op("case", *terms, values[-1].term), type_, nullable, [*conditions, *values])


@translates(exp.Coalesce)
def _coalesce(node: exp.Expr, scope: Scope) -> Expr:
    parts, type_ = unified(node, scope, [expression(n, scope) for n in (node.this, *node.expressions)])
    if not parts[0].nullable:
        return replace(parts[0], type=type_)
    if len(parts) == 2 and parts[1].term == ZERO_TERM and _is_zero_where_null(parts[0]):
        binds = tuple(b for b in parts[0].binds if outputs(b) & free(parts[0].bare))
        return replace(parts[0], term=parts[0].bare, type=type_, guards=(), hidden=(), binds=binds)
    return loose(op("coalesce", *(p.term for p in parts)), type_, all(p.nullable for p in parts), parts)


def _is_zero_where_null(expr: Expr) -> bool:
    """COALESCE(SUM(x), 0): an aggregate over nothing, which is 0 in the calculus."""
    return isinstance(expr.bare, Var) and bool(expr.hidden) and expr.hidden == expr.guards


@translates(exp.Nullif)
def _nullif(node: exp.Expr, scope: Scope) -> Expr:
    """NULLIF(a, b) is CASE WHEN a = b THEN NULL ELSE a END."""
    value, other = expression(node.this, scope), expression(node.expression, scope)
    same = compared("=", *matched(node, scope, value, other))
    return loose(op("case", same.term, NULL, value.term), value.type, True, [value, same])


def unified(node: exp.Expr, scope: Scope, parts: list[Expr]) -> tuple[list[Expr], Type | None]:
    """The parts, all of their common type."""
    type_: Type | None = None
    parts = with_literals(parts)
    for i, part in enumerate(parts):
        wider = common_type(type_, part.type)
        if wider is None and type_ is not None:
            source, hint = scope.session.source, "give every branch the same type"
            if all(casts_implicitly(replace(p, type=p.type or part.type), part) for p in parts[:i]):
                raise source.unsupported(node, f"one column of {type_} and {part.type}", hint)
            raise source.error(node, f"{type_} and {part.type} have no common type", hint)
        type_ = wider
    refuse_rounding(node, scope, parts, type_)
    return [convert(p, type_) for p in parts], type_


def refuse_rounding(node: exp.Expr, scope: Scope, parts: Sequence[Expr], type_: Type | None) -> None:
    """Where DECIMALs need more than 38 digits together, DuckDB rounds them; a term cannot."""
    lossy = next((p for p in parts if not is_exact_as(p, type_)), None)
    if lossy is not None and type_ == REAL:
        construct, hint = f"{an(lossy)} as a REAL", "cast one of them: CAST(x AS DOUBLE)"
        raise scope.session.source.unsupported(node, construct, hint)
    if lossy is not None and type_ is not None:
        construct = f"rounding a {lossy.type} to the common type {type_}"
        hint = f"round it yourself: write at most {type_.scale} decimal places"
        raise scope.session.source.unsupported(node, construct, hint)
