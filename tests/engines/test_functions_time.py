"""Functions of dates and timestamps equal DuckDB's: leap days, midnights, the years 1 and 9999, before 1970."""

from __future__ import annotations

import datetime as dt

from tests.engines.functions_case import check

SCHEMA = "CREATE STREAM t (i INTEGER, b BIGINT, s VARCHAR, d DATE, e DATE, t TIMESTAMP, u TIMESTAMP);\n"
_DAY, _MOMENT = dt.date, dt.datetime
ROWS = [
    (1, 5, "a", _DAY(2024, 2, 29), _DAY(2024, 3, 31), _MOMENT(2024, 2, 29, 13, 14, 15, 678901), _MOMENT(2024, 3, 1)),
    (2, -5, "b", _DAY(1970, 1, 1), _DAY(1969, 12, 31), _MOMENT(1970, 1, 1), _MOMENT(1969, 12, 31, 23, 59, 59, 999999)),
    (3, 0, "c", None, None, None, None),
    (12, 1, "a", _DAY(2023, 1, 1), _DAY(2020, 12, 31), _MOMENT(2021, 1, 3, 12, 0), _MOMENT(2021, 1, 4)),
    (
        11,
        86400,
        None,
        _DAY(1900, 3, 1),
        _DAY(2000, 2, 29),
        _MOMENT(1960, 7, 4, 0, 30, 59, 5),
        _MOMENT(1960, 7, 3, 22, 31),
    ),
    (7, None, "b", _DAY(1999, 12, 31), None, _MOMENT(1999, 12, 31, 23, 59, 59, 500000), None),
    (
        6,
        253402300799,
        "x",
        _DAY(9999, 11, 15),
        _DAY(1000, 1, 1),
        _MOMENT(9999, 12, 1, 23, 59, 59),
        _MOMENT(1000, 1, 1, 0, 0, 1),
    ),
    (
        None,
        -62135596800,
        "y",
        _DAY(1000, 1, 2),
        _DAY(1001, 1, 7),
        _MOMENT(1000, 1, 10),
        _MOMENT(1582, 10, 15, 6, 7, 8, 900),
    ),
]
_FIELDS = (
    *("year", "month", "day", "hour", "minute", "second", "millisecond", "microsecond", "quarter", "dow", "isodow"),
    *("doy", "week", "isoyear", "yearweek", "decade", "century", "millennium", "epoch"),
)
_UNITS = (
    *("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade"),
    *("century", "millennium", "isoyear"),
)
_DIFFERENCES = (
    *("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade"),
    *("century", "millennium", "isoyear"),
)
_FORMAT = "%Y|%m|%d|%H|%I|%M|%S|%j|%y|%f|%g|%a|%A|%b|%B|%p|%u|%w|%U|%W|%V|%G|%c|%x|%X|%-m|%-d|%-H|%-I|%-j|%-y é"
EXPRESSIONS = [
    *(f"extract({part} FROM {column})" for part in _FIELDS for column in ("t", "d")),
    *(f"date_trunc('{unit}', {column})" for unit in _UNITS for column in ("t", "d")),
    *(f"date_diff('{unit}', {a}, {b})" for unit in _DIFFERENCES for a, b in (("t", "u"), ("d", "e"))),
    *("date_part('year', t)", "year(d)", "month(t)", "day(t)", "hour(t)", "minute(d)", "second(t)", "dayofweek(d)"),
    *("weekday(t)", "isodow(d)", "dayofyear(t)", "week(t)", "weekofyear(d)", "quarter(t)", "century(d)", "epoch(t)"),
    *("epoch_us(t)", "epoch_us(d)", "epoch_ms(b)", "make_timestamp(b)", "t::DATE", "date(t)", "CAST(d AS TIMESTAMP)"),
    *(
        "last_day(d)",
        "last_day(t)",
        "dayname(d)",
        "monthname(t)",
        "make_date(2000 + i, i, 28)",
        f"strftime(t, '{_FORMAT}')",
    ),
    *(
        "strftime(d, '%Y-%m')",
        "strftime('%H', u)",
        "date_sub('day', t, u)",
        "date_sub('hour', t, u)",
        "datesub('week', d, e)",
    ),
    *("time_bucket(INTERVAL '1 hour', t)", "time_bucket(INTERVAL '7 days', d)", "time_bucket(INTERVAL '36 hours', d)"),
    *(
        "time_bucket(INTERVAL '5 hours', t)",
        "time_bucket(INTERVAL '1 month', t)",
        "time_bucket(INTERVAL '5 months', d)",
    ),
    *("time_bucket(INTERVAL '1 week', t)", "time_bucket(INTERVAL '15 minutes', t, INTERVAL '2 minutes')"),
    *(
        "time_bucket(INTERVAL '3 days', d, DATE '2020-01-01')",
        "time_bucket(INTERVAL '1 day', d, TIMESTAMP '2020-01-01 06:00:00')",
    ),
    *("time_bucket(INTERVAL '1 month', d, INTERVAL '10 days')", "time_bucket(INTERVAL '1 day', d, INTERVAL '6 hours')"),
    *(
        "t - INTERVAL '1 day 2 hours'",
        "d + INTERVAL '1 month 1 day'",
        "t - INTERVAL '1 month 2 days 02:03:04.5'",
        "d - INTERVAL '-1 day 3 hours'",
        "t - INTERVAL '02:03:04'",
    ),
    *(
        "d - (INTERVAL '1' DAY + INTERVAL '2' HOUR)",
        "d - INTERVAL '1' DAY * 3",
        "t - 2 * INTERVAL '1' MONTH",
        "d - INTERVAL (3) DAY",
    ),
    *(
        "d - to_months(3)",
        "t - to_hours(5)",
        "date_add(e, INTERVAL 1 MONTH)",
        "date_add(e, 3)",
        "d + (- INTERVAL '1 day')",
    ),
    *(
        "extract(epoch FROM t - u)",
        "epoch(u - d)",
        "extract(day FROM t - u)",
        "extract(hour FROM u - t)",
        "extract(second FROM d - t)",
    ),
    *(
        "t - u > INTERVAL '1 day'",
        "u - t BETWEEN INTERVAL '-1 month' AND INTERVAL '30 days 1 second'",
        "t - d = INTERVAL '0 days'",
    ),
]
MORE = {
    "daily": "SELECT t::DATE AS day, count(*) AS n, sum(i) AS s FROM t GROUP BY t::DATE",
    "hourly": "SELECT date_trunc('hour', t) AS h, min(i) AS low, count(*) AS n FROM t GROUP BY date_trunc('hour', t)",
    "yearly": "SELECT extract(year FROM d) AS y, sum(extract(epoch FROM t - u)) AS s FROM t "
    "GROUP BY extract(year FROM d)",
    "joined": "SELECT a.i, b.i AS j, date_diff('day', a.d, b.e) AS k FROM t a "
    "JOIN t b ON year(a.d) = year(b.d) AND a.d > b.e",
    "ranges": "SELECT a.i, (SELECT count(*) FROM t b WHERE date_trunc('month', b.t) <= a.u) AS n, "
    "(SELECT sum(b.i) FROM t b WHERE b.t::DATE > a.d) AS m FROM t a",
}


def test_functions_of_time_equal_duckdb() -> None:
    check(SCHEMA, EXPRESSIONS, ROWS, MORE)
