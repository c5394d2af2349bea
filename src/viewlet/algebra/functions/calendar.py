"""Functions of days and moments: a DATE is its days since 1970-01-01, a TIMESTAMP its microseconds."""

from __future__ import annotations

import datetime as dt
import re
from calendar import monthrange

from viewlet.algebra.functions.base import Function

EPOCH = dt.date(1970, 1, 1)
MICROSECONDS_PER_DAY = 86_400_000_000


_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?", re.ASCII)


def time_of_day(text: str) -> int | None:
    """The microseconds from midnight to HH:MM or HH:MM:SS with up to six places; None for any other text."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    hours, minutes, seconds, places = match.groups(default="0")
    if int(hours) > 23 or int(minutes) > 59 or int(seconds) > 59:
        return None
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + int(places.ljust(6, "0"))


def add_months(microseconds: int, months: int) -> int:
    """TIMESTAMP + INTERVAL n MONTH: the same day of the month, or its last day."""
    days, rest = divmod(microseconds, MICROSECONDS_PER_DAY)
    day = EPOCH + dt.timedelta(days=days)
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        raise OverflowError(f"{day} and {months} months are not in the years 1 to 9999")
    moved = dt.date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
    return (moved - EPOCH).days * MICROSECONDS_PER_DAY + rest


CALENDAR = (Function("add_months", add_months, ("integer", "integer"), "integer", can_fail=True),)
