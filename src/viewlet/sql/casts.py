"""CAST, TRY_CAST and x::type, with DuckDB's rounding and errors."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.functions.calendar import MICROSECONDS_PER_DAY
from viewlet.algebra.terms import NULL, Const, Term, number, op, string
from viewlet.errors import shortened
from viewlet.schema import BIGINT, BITS, BOOLEAN, DATE, DOUBLE, HELD, INTEGER, REAL, SIGNED, TIMESTAMP, VARCHAR, Type
from viewlet.sql.ddl import data_type
from viewlet.sql.expr import Expr, compared, constant, loose, rounded, strict
from viewlet.sql.expression import expression, translates
from viewlet.sql.functions import call
from viewlet.sql.functions_number import whole
from viewlet.sql.other_types import enum_text, literal, to_single
from viewlet.sql.scope import Scope
from viewlet.sql.types import (
    as_decimal,
    common_type,
    convert,
    date_literal,
    is_exact_as,
    is_other_moment,
    limits_of,
    retagged,
    shown,
    timestamp_literal,
    to_double,
    uuid_literal,
    zoned_literal,
)

_WHOLE_DIGITS = {8: 2, 16: 4, 32: 9, 64: 18}  # of numbers that surely fit so many bits
_READ = {BOOLEAN: "read_boolean", DATE: "read_date", TIMESTAMP: "read_timestamp", DOUBLE: "read_double"}


@translates(exp.Cast, exp.TryCast, exp.Date)
def _cast(node: exp.Expr, scope: Scope) -> Expr:
    """Also DATE '…', DATE('…') and TIMESTAMP '…'."""
    source = scope.session.source
    if not isinstance(node, exp.Cast) and (node.args.get("zone") or node.expressions):
        raise source.unsupported(node, "DATE with several arguments", "write DATE('1995-03-15')")
    target = data_type(source, node, node.to) if isinstance(node, exp.Cast) else DATE
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.JSON:  # which DuckDB checks
        raise source.unsupported(node, "a cast to JSON", "leave it out: a VARCHAR may hold JSON")
    inner = expression(node.this, scope)
    inner = replace(inner, type=inner.type and shown(inner.type), is_literal=False)  # 1::BIGINT stays a BIGINT
    trying = isinstance(node, exp.TryCast)
    if inner.is_string_literal and target.kind in ("DATE", "TIMESTAMP") and not trying:
        return _moment(node, scope, target)
    if inner.type is None or inner.type == target:
        return convert(inner, target)
    wider = common_type(inner.type, target) == target and (inner.type.is_numeric or inner.type == DATE)
    if wider and is_exact_as(inner, target):
        return convert(inner, target)
    return retagged(_Cast(node, scope, "try_" if trying else "", inner, target).converted())


def as_text(node: exp.Expr, scope: Scope, inner: Expr) -> Expr:
    """A value of any type as SQL shows it; ``node`` is where a text is wanted."""
    if inner.type in (None, VARCHAR):
        return convert(inner, VARCHAR)
    return _Cast(node, scope, "", replace(inner, type=shown(inner.type)), VARCHAR).shown()


def _moment(node: exp.Expr, scope: Scope, target: Type) -> Expr:
    text = node.this.this
    read = date_literal if target == DATE else zoned_literal if target.zoned else timestamp_literal
    result = read(text)
    if result is None:
        shape = "1995-03-15" if target == DATE else "1995-03-15 12:30:00"
        source, hint = scope.session.source, f"write {target.kind} '{shape}'"
        if is_other_moment(text):
            raise source.unsupported(node, f"{target.kind} '{shortened(text)}'", hint)
        raise source.error(node, f"'{shortened(text)}' is not a {target.kind.lower()}", hint)
    return result


def _sort(type_: Type) -> str:
    return "exact" if type_.is_integer or type_.kind == "DECIMAL" else type_.kind


class _Cast:
    """One cast that may round or fail. ``attempt`` is "try_" where a failure is NULL."""

    def __init__(self, node: exp.Expr, scope: Scope, attempt: str, inner: Expr, target: Type) -> None:
        assert inner.type is not None
        self.node, self.scope, self.attempt = node, scope, attempt
        self.inner, self.given, self.target = inner, inner.type, target

    def converted(self) -> Expr:
        if self.target.uuid or self.given.uuid:
            return self.of_uuid()
        if self.target.kind in HELD or self.given.kind in HELD:
            return self.of_other_type()
        match _sort(self.given), _sort(self.target):
            case _, "VARCHAR":
                return self.shown()
            case "VARCHAR", _:
                return self.read()
            case "BOOLEAN", "exact" | "DOUBLE":
                return self.of_truth()
            case "exact" | "DOUBLE", "BOOLEAN":
                return compared("<>", rounded(self.inner), whole(0))
            case "DOUBLE", "exact":
                return self.of_double()
            case "exact", "exact":
                return self.of_number()
            case "exact", "DOUBLE":
                return to_double(self.inner)
            case "TIMESTAMP", "TIMESTAMP":  # in UTC both are one
                return replace(self.inner, type=self.target)
            case "TIMESTAMP", "DATE":
                return strict("floor_div", DATE, self.inner, whole(MICROSECONDS_PER_DAY))
        message = f"no {self.given} can be cast to {self.target}"
        raise self.scope.session.source.error(
            self.node, message, "use a function: year(d), epoch(t), make_date(y, m, d)"
        )

    def of_uuid(self) -> Expr:
        """Only texts are cast to one and from one; of those that are no constants it is not known what they hold."""
        if self.target == VARCHAR:
            return replace(self.inner, type=VARCHAR)
        if self.given != VARCHAR:
            message, hint = f"no {self.given} can be cast to {self.target}", "cast to VARCHAR, or from it"
            raise self.scope.session.source.error(self.node, message, hint)
        text = self.inner.term.value if isinstance(self.inner.term, Const) else None
        literal = uuid_literal(text) if isinstance(text, str) else None
        if literal is None:
            hint = "declare the column as a UUID: its values are read when they come"
            raise self.scope.session.source.unsupported(self.node, "a cast from VARCHAR to UUID", hint)
        return literal

    def of_other_type(self) -> Expr:
        """Of a REAL, TIME, INTERVAL, ENUM or BLOB, or to one: what is not simple is for DuckDB, when a row arrives."""
        text = self.inner.term.value if self.inner.is_string_literal and isinstance(self.inner.term, Const) else None
        known = literal(text, self.target) if isinstance(text, str) else None
        if known is not None:
            return known
        if self.given == REAL and self.target == DOUBLE:
            return replace(self.inner, type=DOUBLE)
        if self.given == DOUBLE and self.target == REAL and not self.attempt:
            return to_single(self.inner)
        if self.given.kind == "ENUM" and self.target == VARCHAR:
            return enum_text(self.inner)
        raise self.not_known()

    def not_known(self) -> Exception:
        what = f"a cast from {self.given} to {self.target}"
        return self.scope.session.source.unsupported(self.node, what, "cast the columns of one stream or table")

    def call(self, name: str, type_: Type, *args: Expr) -> Expr:
        return call(self.node, self.scope, f"{self.attempt}{name}", type_, *args)

    def bounded(self, value: Expr, digits: int) -> Expr:
        """Checked where a value of so many digits before the point may not fit."""
        whole_digits = self.target.precision - self.target.scale
        if self.target.is_integer:
            whole_digits = _WHOLE_DIGITS[BITS[self.target.kind]] if self.target.kind in SIGNED else -1
        if digits <= whole_digits:
            return replace(value, type=self.target)
        return self.call("within", self.target, value, *limits_of(self.target))

    def of_number(self) -> Expr:
        """Half away from zero."""
        given, digits = as_decimal(self.given), as_decimal(self.given).precision - as_decimal(self.given).scale
        if given.scale <= self.target.scale:
            return self.bounded(self.inner, digits)
        return self.bounded(strict(f"round_number_{self.target.scale}", self.target, self.inner), digits + 1)

    def of_double(self) -> Expr:
        """To an integer half to even, to a DECIMAL half away from zero."""
        value = rounded(self.inner)
        if self.target.kind == "DECIMAL":
            converted = self.call(f"double_to_number_{self.target.scale}", self.target, value)
            return self.bounded(converted, 99)
        converted = self.call("double_to_integer", BIGINT, value)
        return converted if self.target == BIGINT else self.bounded(converted, 99)

    def of_truth(self) -> Expr:
        if self.target.kind == "DECIMAL" and self.target.precision == self.target.scale:
            source, hint = self.scope.session.source, "cast to a DECIMAL with a digit before the point"
            raise source.unsupported(self.node, f"a cast from BOOLEAN to {self.target}", hint)
        return self.chosen(number(1), number(0))

    def chosen(self, true: Term, false: Term) -> Expr:
        condition = self.inner.term
        if not self.inner.nullable:
            return loose(op("case", condition, true, false), self.target, False, [self.inner])
        term = op("case", condition, true, op("not", condition), false, NULL)
        return loose(term, self.target, True, [self.inner])

    def shown(self) -> Expr:
        match self.given.kind:
            case "VARCHAR":
                return replace(self.inner, type=VARCHAR)
            case "BOOLEAN":
                return self.chosen(string("true"), string("false"))
            case "DATE":
                return strict("show_date", VARCHAR, self.inner)
            case "TIMESTAMP":
                text = strict("show_timestamp", VARCHAR, self.inner)
                return strict("concat", VARCHAR, text, constant(string("+00"), VARCHAR)) if self.given.zoned else text
            case "DOUBLE":
                return strict("show_double", VARCHAR, rounded(self.inner))
            case "ENUM":
                return enum_text(self.inner)
            case "REAL" | "TIME" | "INTERVAL" | "BLOB" | "LIST" | "STRUCT" | "MAP":
                raise self.not_known()
        return strict("show_number", VARCHAR, self.inner, constant(number(self.given.scale), INTEGER))

    def read(self) -> Expr:
        if self.target.zoned:
            hint = "where the texts are UTC, cast to TIMESTAMP, and that to TIMESTAMPTZ"
            raise self.scope.session.source.unsupported(self.node, f"a cast from VARCHAR to {self.target}", hint)
        if self.target in _READ:
            return self.call(_READ[self.target], self.target, self.inner)
        if self.target.kind == "DECIMAL":
            converted = self.call(f"read_number_{self.target.scale}", self.target, self.inner)
            return self.bounded(converted, 99)
        converted = self.call("read_integer", BIGINT, self.inner)
        return converted if self.target == BIGINT else self.bounded(converted, 99)
