"""Functions of dates and timestamps: their SQL, their types, and how a few functions of the calculus make up each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.functions.calendar import MICROSECONDS_PER_DAY
from viewlet.algebra.functions.moments import BARE_SPECIFIERS, PLAIN_SPECIFIERS
from viewlet.algebra.terms import Const, Op
from viewlet.schema import BIGINT, DATE, DOUBLE, INTERVAL, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Type
from viewlet.sql.expr import Expr, an, strict
from viewlet.sql.expression import computed, expression, translates
from viewlet.sql.functions import arguments, call, named, number, text_constant
from viewlet.sql.functions_number import whole
from viewlet.sql.interval import Span, span
from viewlet.sql.scope import Scope
from viewlet.sql.types import convert, retagged
from viewlet.sql.unsupported import only

_UNITS = {  # in microseconds
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": MICROSECONDS_PER_DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
_ABBREVIATED = {
    "us": "microsecond",
    "usec": "microsecond",
    "usecs": "microsecond",
    "ms": "millisecond",
    "msec": "millisecond",
    "msecs": "millisecond",
    "s": "second",
    "sec": "second",
    "secs": "second",
    "m": "minute",
    "min": "minute",
    "mins": "minute",
    "h": "hour",
    "hr": "hour",
    "hrs": "hour",
    "d": "day",
    "dayofmonth": "day",
    "w": "week",
    "weekofyear": "week",
    "mon": "month",
    "mons": "month",
    "y": "year",
    "yr": "year",
    "yrs": "year",
    "dec": "decade",
    "decs": "decade",
    "cent": "century",
    "centuries": "century",
    "mil": "millennium",
    "mils": "millennium",
    "millennia": "millennium",
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofyear": "doy",
}
_PARTS = "the parts are year, quarter, month, week, day, hour, minute, second, dow, isodow, doy, isoyear and epoch"
_SUNDAY, _MONDAY = -4, -3  # days since 1970-01-01


def part_of(node: exp.Expr, scope: Scope) -> str:
    """The part of a date that an argument names."""
    written = node.name if isinstance(node, (exp.Var, exp.Column, exp.Identifier, exp.WeekStart)) else None
    name = (written if written is not None else text_constant(node, scope, "a part of a date")).lower()
    singular = name.removesuffix("s") if name.removesuffix("s") in {**_UNITS, **_MONTHS, "week": 7} else name
    return _ABBREVIATED.get(name, singular)


def moment(node: exp.Expr, scope: Scope, what: str) -> Expr:
    """An argument that is a DATE or a TIMESTAMP; one with a time zone as that of UTC."""
    value = expression(node, scope)
    if value.type is None:
        return convert(value, TIMESTAMP)
    if value.type in (DATE, TIMESTAMP, TIMESTAMPTZ):
        return replace(value, type=TIMESTAMP) if value.type == TIMESTAMPTZ else value
    raise scope.session.source.error(node, f"{what} takes a DATE or a TIMESTAMP, not {an(value)}", "cast it: x::DATE")


# -- steps between days, months and microseconds -----------------------------------------------------------------------


def days_of(at: Expr) -> Expr:
    return at if at.type == DATE else strict("floor_div", DATE, at, whole(MICROSECONDS_PER_DAY))


def microseconds_of(at: Expr) -> Expr:
    return strict("midnight", TIMESTAMP, at) if at.type == DATE else at


def _months_of(at: Expr) -> Expr:
    return strict("months_of", BIGINT, days_of(at))


def _divided(value: Expr, by: int) -> Expr:
    return strict("floor_div", BIGINT, value, whole(by))


def _rest(value: Expr, by: int) -> Expr:
    return strict("floor_mod", BIGINT, value, whole(by))


def _plus(value: Expr, more: int) -> Expr:
    return strict("+", BIGINT, value, whole(more))


def _minus(value: Expr, other: Expr) -> Expr:
    return strict("-", BIGINT, value, other)


def _first_of(months: Expr) -> Expr:
    return strict("first_of_month", DATE, months)


def _every(months: Expr, count: int) -> Expr:
    """The first month of so many."""
    return strict("floor_to", BIGINT, months, whole(count), whole(0))


# -- parts -------------------------------------------------------------------------------------------------------------


def _week_year(at: Expr) -> Expr:
    """The year that the week belongs to: that of its Thursday."""
    return _divided(strict("months_of", BIGINT, _plus(strict("first_of_week_year", DATE, days_of(at)), 3)), 12)


def _week(at: Expr) -> Expr:
    return _plus(_divided(_minus(days_of(at), strict("first_of_week_year", DATE, days_of(at))), 7), 1)


def _year(at: Expr) -> Expr:
    return _divided(_months_of(at), 12)


def _epoch(at: Expr) -> Expr:
    """Seconds since 1970-01-01 as a DOUBLE."""
    return replace(strict("/", DOUBLE, microseconds_of(at), whole(1_000_000)), unrounded=True)


def _within_minute(unit: int) -> Callable[[Expr], Expr]:
    """Seconds, or smaller units, since the minute began."""
    return lambda at: _divided(_rest(microseconds_of(at), 60_000_000), unit)


_EXTRACTED: dict[str, Callable[[Expr], Expr]] = {
    "year": _year,
    "month": lambda at: _plus(_rest(_months_of(at), 12), 1),
    "day": lambda at: _plus(_minus(days_of(at), _first_of(_months_of(at))), 1),
    "hour": lambda at: _rest(_divided(microseconds_of(at), _UNITS["hour"]), 24),
    "minute": lambda at: _rest(_divided(microseconds_of(at), _UNITS["minute"]), 60),
    "second": _within_minute(1_000_000),
    "millisecond": _within_minute(1_000),
    "microsecond": _within_minute(1),
    "quarter": lambda at: _plus(_divided(_rest(_months_of(at), 12), 3), 1),
    "dow": lambda at: _rest(_plus(days_of(at), -_SUNDAY), 7),
    "isodow": lambda at: _plus(_rest(_plus(days_of(at), -_MONDAY), 7), 1),
    "doy": lambda at: _plus(_minus(days_of(at), _first_of(_every(_months_of(at), 12))), 1),
    "week": _week,
    "isoyear": _week_year,
    "yearweek": lambda at: strict("+", BIGINT, strict("*", BIGINT, _week_year(at), whole(100)), _week(at)),
    "decade": lambda at: _divided(_year(at), 10),
    "century": lambda at: _plus(_divided(_plus(_year(at), -1), 100), 1),
    "millennium": lambda at: _plus(_divided(_plus(_year(at), -1), 1000), 1),
    "epoch": _epoch,
}


def _extracted(node: exp.Expr, scope: Scope, part: str, at: Expr) -> Expr:
    if at.type == INTERVAL:
        return _of_interval(node, scope, part, at)
    if part not in _EXTRACTED:
        raise scope.session.source.unsupported(node, f"the part {part} of a date", _PARTS)
    return _EXTRACTED[part](at)


def _of_interval(node: exp.Expr, scope: Scope, part: str, length: Expr) -> Expr:
    """Of a difference of two timestamps, which has days and, below them, microseconds; a constant may have months."""
    if part == "epoch" and not isinstance(length.term, Const):
        return replace(strict("/", DOUBLE, length, whole(1_000_000)), unrounded=True)
    if not isinstance(length.term, Op) or length.term.name != "-":
        hint = "take it of a difference: extract(epoch FROM t2 - t1)"
        raise scope.session.source.unsupported(node, "a part of this INTERVAL", hint)
    if part == "day":
        return strict("quotient", BIGINT, length, whole(MICROSECONDS_PER_DAY))
    if part not in ("hour", "minute", "second", "millisecond", "microsecond"):
        hint = "the parts are day, hour, minute, second, millisecond, microsecond and epoch"
        raise scope.session.source.unsupported(node, f"the part {part} of an INTERVAL", hint)
    whole_unit = {"hour": MICROSECONDS_PER_DAY, "minute": _UNITS["hour"]}.get(part, _UNITS["minute"])
    rest = strict("remainder", BIGINT, length, whole(whole_unit))
    return strict("quotient", BIGINT, rest, whole(_UNITS[part]))


def _moment_or_interval(node: exp.Expr, scope: Scope, what: str) -> Expr:
    value = expression(node, scope)
    return value if value.type == INTERVAL else moment(node, scope, what)


@translates(exp.Extract)
def _extract(node: exp.Expr, scope: Scope) -> Expr:
    return _extracted(node, scope, part_of(node.this, scope), _moment_or_interval(node.expression, scope, "EXTRACT"))


@named("date_part", "datepart")
def _date_part(node: exp.Expr, scope: Scope) -> Expr:
    part, at = arguments(node, scope, 2)
    return _extracted(node, scope, part_of(part, scope), _moment_or_interval(at, scope, "DATE_PART"))


_CALLED: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.Quarter: "quarter",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.DayOfWeek: "dow",
    exp.DayOfWeekIso: "isodow",
    exp.DayOfYear: "doy",
}


@translates(*_CALLED)
def _part(node: exp.Expr, scope: Scope) -> Expr:
    only(scope.session.source, node, frozenset({"this"}), {})
    part = _CALLED[type(node)]
    return _extracted(node, scope, part, _moment_or_interval(node.this, scope, part.upper()))


@named("weekday", "century", "decade", "millennium", "isoyear", "yearweek", "millisecond", "microsecond")
def _named_part(node: exp.Expr, scope: Scope) -> Expr:
    (at,) = arguments(node, scope, 1)
    part = {"weekday": "dow"}.get(node.name.lower(), node.name.lower())
    return _extracted(node, scope, part, _moment_or_interval(at, scope, part.upper()))


@translates(exp.TimeToUnix)
def _epoch_of(node: exp.Expr, scope: Scope) -> Expr:
    return _extracted(node, scope, "epoch", _moment_or_interval(node.this, scope, "EPOCH"))


@named("epoch_us")
def _epoch_us(node: exp.Expr, scope: Scope) -> Expr:
    (at,) = arguments(node, scope, 1)
    return replace(microseconds_of(moment(at, scope, "EPOCH_US")), type=BIGINT)


_SCALES = {"3": 1_000, "6": 1}  # EPOCH_MS and MAKE_TIMESTAMP


@translates(exp.UnixToTime)
def _of_epoch(node: exp.Expr, scope: Scope) -> Expr:
    """EPOCH_MS of a number is a TIMESTAMP, that of a TIMESTAMP a number; TO_TIMESTAMP has a time zone."""
    scale = node.args["scale"].name if node.args.get("scale") is not None else ""
    if scale not in _SCALES:
        hint = "a TIMESTAMP has no time zone: write make_timestamp(CAST(x * 1000000 AS BIGINT))"
        raise scope.session.source.unsupported(node, "the function TO_TIMESTAMP", hint)
    given = expression(node.this, scope)
    if given.type in (DATE, TIMESTAMP, TIMESTAMPTZ) and scale == "3":
        raise scope.session.source.unsupported(node, "EPOCH_MS of a moment, which rounds", "write epoch_us(x) // 1000")
    given = number(node.this, scope, "EPOCH_MS" if scale == "3" else "MAKE_TIMESTAMP")
    if given.type is None or not given.type.is_integer:
        raise scope.session.source.error(node, f"this takes an integer, not {an(given)}", "cast it to BIGINT")
    scaled = strict("*", BIGINT, given, whole(_SCALES[scale]))
    return retagged(call(node, scope, "moment", TIMESTAMP, scaled))


# -- truncating --------------------------------------------------------------------------------------------------------


@translates(exp.TimestampTrunc, exp.DateTrunc)
def _date_trunc(node: exp.Expr, scope: Scope) -> Expr:
    """A TIMESTAMP, also of a DATE."""
    only(scope.session.source, node, frozenset({"this", "unit"}), {})
    at, part = moment(node.this, scope, "DATE_TRUNC"), part_of(node.args["unit"], scope)
    return _like(node.this, scope, retagged(_truncated(node, scope, part, at)))


def _like(argument: exp.Expr, scope: Scope, result: Expr) -> Expr:
    """With a time zone where the argument has one."""
    return replace(result, type=TIMESTAMPTZ) if expression(argument, scope).type == TIMESTAMPTZ else result


def _truncated(node: exp.Expr, scope: Scope, part: str, at: Expr) -> Expr:
    if part in _UNITS:
        if at.type == DATE or part == "microsecond":
            return microseconds_of(at)
        return strict("floor_to", TIMESTAMP, at, whole(_UNITS[part]), whole(0))
    if part in _MONTHS:
        return microseconds_of(_first_of(_every(_months_of(at), _MONTHS[part])))
    if part == "week":
        return microseconds_of(strict("floor_to", DATE, days_of(at), whole(7), whole(_MONDAY)))
    if part == "isoyear":
        return microseconds_of(strict("first_of_week_year", DATE, days_of(at)))
    raise scope.session.source.unsupported(node, f"DATE_TRUNC to {part}", _PARTS)


_ORIGIN = 946_857_600_000_000  # Monday 2000-01-03; for months, January of 2000
_ORIGIN_MONTH = 2000 * 12


@translates(exp.DateBin)
def _time_bucket(node: exp.Expr, scope: Scope) -> Expr:
    """TIME_BUCKET(width, moment [, offset or origin]): the start of the bucket."""
    source = scope.session.source
    only(source, node, frozenset({"this", "expression", "unit"}), {})
    at, width = moment(node.expression, scope, "TIME_BUCKET"), span(source, node.this)
    if width is None:
        raise source.unsupported(node, "TIME_BUCKET whose width is no constant INTERVAL", "write INTERVAL '5 minutes'")
    if (width.months > 0) == (width.microseconds > 0) or min(width.months, width.microseconds) < 0:
        raise source.error(node, "a width of months and shorter units, or of none", "write one positive INTERVAL")
    third = node.args.get("unit")
    shift, type_ = (0, at.type) if third is None else _third(node, scope, third, width, at)
    assert type_ is not None
    start = _bucket(microseconds_of(at), width, shift)
    return _like(node.expression, scope, retagged(start if type_ == TIMESTAMP else days_of(start)))


def _bucket(at: Expr, width: Span, shift: int) -> Expr:
    """``shift`` moves the origin."""
    if not width.months:
        return strict("floor_to", TIMESTAMP, at, whole(width.microseconds), whole(_ORIGIN + shift))
    months = _months_of(strict("-", TIMESTAMP, at, whole(shift)))
    start = microseconds_of(_first_of(strict("floor_to", BIGINT, months, whole(width.months), whole(_ORIGIN_MONTH))))
    return strict("+", TIMESTAMP, start, whole(shift))


def _third(node: exp.Expr, scope: Scope, third: exp.Expr, width: Span, at: Expr) -> tuple[int, Type | None]:
    """How far an offset, an INTERVAL, or an origin moves the buckets, and the type that they have then."""
    source = scope.session.source
    offset = span(source, third)
    if offset is not None:
        if offset.months:
            raise source.unsupported(node, "TIME_BUCKET with an offset of months", "give an origin")
        return offset.microseconds, at.type
    origin = moment(third, scope, "TIME_BUCKET")
    start = microseconds_of(origin).term
    if width.months or not isinstance(start, Const) or not isinstance(start.value, int):
        raise source.unsupported(node, "TIME_BUCKET of months with an origin, or one that is no constant", _PARTS)
    return start.value - _ORIGIN, TIMESTAMP if TIMESTAMP in (origin.type, at.type) else DATE


# -- differences -------------------------------------------------------------------------------------------------------


@translates(exp.DateDiff)
def _date_diff(node: exp.Expr, scope: Scope) -> Expr:
    """How many borders of a part lie between two moments; of weeks, how many whole ones lie between their days."""
    part = part_of(node.args["unit"], scope)
    end, start = (moment(n, scope, "DATE_DIFF") for n in (node.this, node.expression))
    if part == "week":
        days = _minus(days_of(end), days_of(start))
        return strict("quotient", BIGINT, days, whole(7))
    count = _counted(node, scope, part)
    return _minus(count(end), count(start))


def _counted(node: exp.Expr, scope: Scope, part: str) -> Callable[[Expr], Expr]:
    """The number of a part since some origin."""
    if part == "day":
        return days_of
    if part in _UNITS:
        return lambda at: _divided(microseconds_of(at), _UNITS[part])
    if part in _MONTHS:
        return lambda at: _divided(_months_of(at), _MONTHS[part])
    if part == "isoyear":
        return _week_year
    hint = "the parts are year, quarter, month, week, day, hour, minute, second, millisecond and microsecond"
    raise scope.session.source.unsupported(node, f"DATE_DIFF in the unit {part}", hint)


@named("date_sub", "datesub")
def _date_sub(node: exp.Expr, scope: Scope) -> Expr:
    """How many whole parts lie between two moments."""
    unit, start, end = arguments(node, scope, 3)
    part = part_of(unit, scope)
    microseconds = {**_UNITS, "week": 7 * MICROSECONDS_PER_DAY}.get(part)
    if microseconds is None:
        hint = "the parts are week, day, hour, minute, second, millisecond and microsecond"
        raise scope.session.source.unsupported(node, f"DATE_SUB in the unit {part}", hint)
    between = _minus(*(microseconds_of(moment(n, scope, "DATE_SUB")) for n in (end, start)))
    return strict("quotient", BIGINT, between, whole(microseconds))


@translates(exp.DateAdd)
def _date_add(node: exp.Expr, scope: Scope) -> Expr:
    """DATE_ADD(moment, INTERVAL) and DATE_ADD(date, days)."""
    only(scope.session.source, node, frozenset({"this", "expression"}), {})
    return computed(node, scope, "+", node.this, node.expression)


# -- making and showing ------------------------------------------------------------------------------------------------


@translates(exp.DateFromParts)
def _make_date(node: exp.Expr, scope: Scope) -> Expr:
    given = [node.args.get(part) for part in ("year", "month", "day")]
    numbers = [number(n, scope, "MAKE_DATE") for n in given if n is not None]
    if len(numbers) != 3 or any(n.type is None or not n.type.is_integer for n in numbers):
        raise scope.session.source.unsupported(node, "this form of MAKE_DATE", "give year, month and day as integers")
    return retagged(call(node, scope, "make_date", DATE, *numbers))


@translates(exp.LastDay)
def _last_day(node: exp.Expr, scope: Scope) -> Expr:
    only(scope.session.source, node, frozenset({"this"}), {})
    months = _months_of(moment(node.this, scope, "LAST_DAY"))
    return retagged(strict("-", DATE, _first_of(_plus(months, 1)), whole(1)))


@translates(exp.Dayname, exp.Monthname)
def _name(node: exp.Expr, scope: Scope) -> Expr:
    only(scope.session.source, node, frozenset({"this"}), {})
    return strict(node.key, VARCHAR, days_of(moment(node.this, scope, node.key.upper())))


@translates(exp.TimeToStr)
def _strftime(node: exp.Expr, scope: Scope) -> Expr:
    """STRFTIME with a constant format; DuckDB takes its two arguments in any order."""
    only(scope.session.source, node, frozenset({"this", "format"}), {})
    first, second = node.this, node.args["format"]
    if isinstance(first, exp.Literal) and first.is_string:
        first, second = second, first
    form = expression(second, scope)
    text = text_constant(second, scope, "a format of STRFTIME")
    _check_format(node, scope, text)
    return strict("strftime", VARCHAR, microseconds_of(moment(first, scope, "STRFTIME")), form)


def _check_format(node: exp.Expr, scope: Scope, form: str) -> None:
    signs = form.split("%")[1:]
    known = all(s[:1] in PLAIN_SPECIFIERS or (s[:1] == "-" and s[1:2] in BARE_SPECIFIERS) for s in signs)
    if not form or not known or not all(s.strip("-") for s in signs):
        hint = "the specifiers are %" + " %".join(sorted(PLAIN_SPECIFIERS)) + ", and %-d and the like"
        raise scope.session.source.unsupported(node, "this format of STRFTIME", hint)
