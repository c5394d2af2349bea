"""Functions of days and moments, whatever the year: a day is its number since 1970-01-01, a moment its microseconds.

Months are counted from January of the year 0. Most parts of a date are arithmetic over these few functions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from viewlet.algebra.functions.base import Function, ValueKind
from viewlet.algebra.functions.calendar import EPOCH, MICROSECONDS_PER_DAY

HEADER = "functions_time"
_FIRST_DAY, _LAST_DAY = (dt.date.min - EPOCH).days, (dt.date.max - EPOCH).days
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def floor_div(value: int, divisor: int) -> int:
    """⌊value / divisor⌋, the divisor positive."""
    return value // divisor


def floor_mod(value: int, divisor: int) -> int:
    return value % divisor


def floor_to(value: int, unit: int, origin: int) -> int:
    """The last of origin + k · unit that is not after ``value``."""
    return value - (value - origin) % unit


def months_of(day: int) -> int:
    """The month that a day is in. (H. Hinnant, "chrono-compatible low-level date algorithms".)"""
    era, day_of_era = divmod(day + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    return (era * 400 + year) * 12 + (5 * day_of_year + 2) // 153 + 2  # from March on


def first_of_month(months: int) -> int:
    """The first day of a month."""
    year, march = divmod(months - 2, 12)
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * march + 2) // 5
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def first_of_week_year(day: int) -> int:
    """The Monday of the first ISO week in the year of ``day``'s week."""
    thursday = floor_to(day, 7, -3) + 3
    january = first_of_month(months_of(thursday) // 12 * 12)
    return floor_to(january + 3, 7, -3)


def midnight(day: int) -> int:
    return day * MICROSECONDS_PER_DAY


def moment(microseconds: int) -> int:
    """A number as a TIMESTAMP."""
    if not _FIRST_DAY <= microseconds // MICROSECONDS_PER_DAY <= _LAST_DAY:
        raise ValueError("a timestamp is not in the years 1 to 9999")
    return microseconds


def make_date(year: int, month: int, day: int) -> int:
    if not (1 <= year <= 9999 and 1 <= month <= 12):
        raise ValueError(f"{year}-{month}-{day} is no date of the years 1 to 9999")
    first = first_of_month(year * 12 + month - 1)
    if not 1 <= day <= first_of_month(year * 12 + month) - first:
        raise ValueError(f"{year}-{month}-{day} is no date")
    return first + day - 1


# -- as texts ----------------------------------------------------------------------------------------------------------


def dayname(day: int) -> str:
    return _WEEKDAYS[(day + 4) % 7]


def monthname(day: int) -> str:
    return _MONTHS[months_of(day) % 12]


def _civil(day: int) -> tuple[int, int, int]:
    months = months_of(day)
    return months // 12, months % 12 + 1, day - first_of_month(months) + 1


def show_date(day: int) -> str:
    year, month, of_month = _civil(day)
    return f"{year:04}-{month:02}-{of_month:02}"


def show_time(microseconds: int) -> str:
    """HH:MM:SS of a moment."""
    seconds = microseconds % MICROSECONDS_PER_DAY // 1_000_000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def show_timestamp(microseconds: int) -> str:
    rest = microseconds % 1_000_000
    places = f".{rest:06}".rstrip("0") if rest else ""
    return f"{show_date(microseconds // MICROSECONDS_PER_DAY)} {show_time(microseconds)}{places}"


# The specifiers of strftime. "-" leaves out the zeros in front of a number.
PLAIN_SPECIFIERS = frozenset("YmdHIMSjyfgaAbBhpuwUWVGcxXT")
BARE_SPECIFIERS = frozenset("mdHIMSjy")


def _number(width: int, value: int, bare: bool) -> str:
    return str(value) if bare else str(value).zfill(width)


def _specified(sign: str, bare: bool, at: int) -> str:
    """One specifier of strftime at a moment."""
    day, of_day = divmod(at, MICROSECONDS_PER_DAY)
    year, month, of_month = _civil(day)
    of_year, hour = day - first_of_month(year * 12), of_day // 3_600_000_000
    weekday = (day + 4) % 7  # from Sunday
    monday = first_of_week_year(day)
    match sign:
        case "Y":
            return f"{year:04}"
        case "G":
            return f"{months_of(monday + 3) // 12:04}"
        case "a" | "A":
            return dayname(day)[: 3 if sign == "a" else None]
        case "b" | "h" | "B":
            return monthname(day)[: None if sign == "B" else 3]
        case "p":
            return "PM" if hour >= 12 else "AM"
        case "x":
            return show_date(day)
        case "X" | "T":
            return show_time(at)
        case "c":
            return f"{show_date(day)} {show_time(at)}"
    width, value = {
        "m": (2, month),
        "d": (2, of_month),
        "y": (2, year % 100),
        "H": (2, hour),
        "I": (2, (hour + 11) % 12 + 1),
        "M": (2, of_day // 60_000_000 % 60),
        "S": (2, of_day // 1_000_000 % 60),
        "j": (3, of_year + 1),
        "f": (6, of_day % 1_000_000),
        "g": (3, of_day // 1000 % 1000),
        "u": (1, (weekday + 6) % 7 + 1),
        "w": (1, weekday),
        "U": (2, (of_year + 7 - weekday) // 7),
        "W": (2, (of_year + 7 - (weekday + 6) % 7) // 7),
        "V": (2, (day - monday) // 7 + 1),
    }[sign]
    return _number(width, value, bare)


def strftime(at: int, form: str) -> str:
    """A moment in a form that has only known specifiers."""
    parts, i = [], 0
    while i < len(form):
        if form[i] != "%":
            parts.append(form[i])
            i += 1
            continue
        bare = form[i + 1] == "-"
        parts.append(_specified(form[i + 1 + bare], bare, at))
        i += 2 + bare
    return "".join(parts)


# -- the table ---------------------------------------------------------------------------------------------------------


_INTEGERS: tuple[ValueKind, ...] = ("integer", "integer", "integer")


def _integers(name: str, meaning: Callable[..., int], arguments: int, rises: bool = False) -> Function:
    return Function(name, meaning, _INTEGERS[:arguments], "integer", HEADER, rises=rises)


MOMENTS = (
    _integers("floor_div", floor_div, 2, rises=True),
    _integers("floor_mod", floor_mod, 2),
    _integers("floor_to", floor_to, 3, rises=True),
    _integers("months_of", months_of, 1, rises=True),
    _integers("first_of_month", first_of_month, 1, rises=True),
    _integers("first_of_week_year", first_of_week_year, 1, rises=True),
    _integers("midnight", midnight, 1, rises=True),
    Function("moment", moment, ("integer",), "integer", HEADER, can_fail=True),
    Function("make_date", make_date, _INTEGERS, "integer", HEADER, can_fail=True),
    Function("dayname", dayname, ("integer",), "text", HEADER),
    Function("monthname", monthname, ("integer",), "text", HEADER),
    Function("show_date", show_date, ("integer",), "text", HEADER),
    Function("show_timestamp", show_timestamp, ("integer",), "text", HEADER),
    Function("strftime", strftime, ("integer", "text"), "text", HEADER),
)
