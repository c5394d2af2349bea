"""What random queries are made of: kinds of values, functions of them, and worlds of tables with streams over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Literal

from viewlet.workloads.streams import Event, Row

Kind = Literal[
    "INT", "DEC", "FLOAT", "DATE", "TIME", "TEXT", "BOOL", "REAL", "SINGLE", "CLOCK", "SPAN", "WORD", "BYTES"
]
TYPES: dict[Kind, tuple[str, ...]] = {
    "INT": ("INTEGER", "BIGINT", "SMALLINT"),
    "DEC": ("DECIMAL(6,2)", "DECIMAL(9,1)"),
    "FLOAT": ("DOUBLE",),
    "DATE": ("DATE",),
    "TIME": ("TIMESTAMP",),
    "TEXT": ("VARCHAR",),
    "BOOL": ("BOOLEAN",),
    "SINGLE": ("REAL",),
    "CLOCK": ("TIME",),
    "SPAN": ("INTERVAL",),
    "WORD": ("ENUM('b', 'a', '12')",),
    "BYTES": ("BLOB",),
}
VALUES: dict[Kind, tuple[object, ...]] = {
    "INT": (1, 2, 0, -1, 3),
    "DEC": (Decimal("1.0"), Decimal("0.0"), Decimal("-1.5"), Decimal("2.5")),
    "FLOAT": (1.0, 0.5, 0.0, -0.75),
    "DATE": (date(2020, 1, 31), date(2020, 2, 1), date(2019, 12, 30)),
    "TIME": (datetime(2020, 1, 31), datetime(2020, 1, 31, 12, 30, 15), datetime(1969, 12, 31, 23)),
    "TEXT": ("a", "b", "", "Ab", "é1", "12"),
    "BOOL": (True, False),
    "SINGLE": (0.1, 1.0, 0.0, -0.75),
    "CLOCK": (time(0), time(12, 30), time(23, 59, 59, 999_999)),
    "SPAN": (timedelta(1), timedelta(hours=30), timedelta(0), timedelta(minutes=-90)),
    "WORD": ("b", "a", "12"),
    "BYTES": (b"", b"\x00", b"a", b"\xff"),
}
LITERALS: dict[Kind, tuple[str, ...]] = {
    "INT": ("1", "0", "2", "-1", "3"),
    "DEC": ("1.0", "0.5", "-1.50", "2.25"),
    "FLOAT": ("1e0", "5e-1", "-75e-2"),
    "DATE": ("DATE '2020-02-01'", "DATE '2019-12-30'"),
    "TIME": ("TIMESTAMP '2020-01-31 12:30:15'", "TIMESTAMP '1970-01-01 00:00:00'"),
    "TEXT": ("'a'", "''", "'b1'", "'12'"),
    "BOOL": ("TRUE", "FALSE"),
    "SINGLE": ("0.1::REAL", "1::REAL", "-75e-2::REAL"),
    "CLOCK": ("TIME '12:30:00'", "TIME '00:00:00'"),
    "SPAN": ("INTERVAL '30 hours'", "INTERVAL '0 days'"),
    "WORD": ("'a'::ENUM('b', 'a', '12')", "'12'::ENUM('b', 'a', '12')"),
    "BYTES": ("'a'::BLOB", "'\\x00'::BLOB"),
}
EXACT: tuple[Kind, ...] = tuple(TYPES)
NUMBERS: tuple[Kind, ...] = ("INT", "DEC", "FLOAT")
COMPARISONS = ("=", "<", "<>", ">=", ">", "<=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
# fmt: off
# A capital letter that stands alone is a value of the kinds in LETTERS, and # is a small literal.
FUNCTIONS: dict[Kind, tuple[str, ...]] = {
    "INT": (
        "(I + I)", "(I - I)", "(I * #)", "(- I)", "abs(I)", "(I % #)", "(I // #)", "length(S)", "strlen(S)", "sign(N)",
        "position(S IN S)", "extract(year FROM D)", "date_diff('day', D, D)", "day(T)", "(D - D)", "if(B, I, I)",
        "greatest(I, I)", "least(I, #)", "CAST(N AS INTEGER)", "CAST(B AS INTEGER)", "TRY_CAST(S AS INTEGER)",
        "date_part('month', D)", "hour(T)", "(CASE I WHEN # THEN I ELSE # END)", "(I & #)", "ascii(S)",
    ),
    "DEC": ("(P + P)", "(P * #)", "abs(P)", "round(P, 1)", "CAST(I AS DECIMAL(8,2))", "(- P)", "(P - I)"),
    "FLOAT": ("(F + F)", "(F * #)", "floor(F)", "CAST(I AS DOUBLE)", "(F - I)", "greatest(F, I)", "ceil(F)", "(I / 2)"),
    "DATE": ("(D + #)", "CAST(T AS DATE)", "last_day(D)", "least(D, D)", "(D - #)", "if(B, D, D)"),
    "TIME": (
        "date_trunc('day', T)", "(T + INTERVAL 1 DAY)", "CAST(D AS TIMESTAMP)", "(D + INTERVAL 1 MONTH)", "(T + L)",
        "time_bucket(INTERVAL 7 HOUR, T)", "date_trunc('month', D)", "greatest(T, T)", "(T - INTERVAL 90 MINUTE)",
    ),
    "TEXT": (
        "(S || S)", "upper(S)", "lower(S)", "substr(S, #)", "left(S, 1)", "trim(S)", "replace(S, 'a', S)",
        "CAST(N AS VARCHAR)", "CAST(D AS VARCHAR)", "concat(S, I)", "strftime(D, '%Y-%m')", "lpad(S, 3, '-')",
        "split_part(S, '1', 1)", "dayname(D)", "CAST(B AS VARCHAR)", "concat_ws('-', S, S)", "right(S, #)",
        "CAST(F AS VARCHAR)", "CAST(T AS VARCHAR)", "repeat(S, 2)", "CAST(W AS VARCHAR)", "(W || S)", "coalesce(W, S)",
    ),
    "BOOL": (
        "(W = S)", "(W < S)", "(X < I)", "(X = F)",
        "starts_with(S, S)", "contains(S, S)", "(S LIKE '%1%')", "(S ILIKE 'A%')", "(N > F)", "TRY_CAST(S AS BOOLEAN)",
    ),
    "SINGLE": ("(X + X)", "(X * 0.1)", "(X / 3)", "(- X)", "abs(X)", "CAST(F AS REAL)", "(X - I)", "greatest(X, 0.3)"),
    "CLOCK": ("greatest(C, C)", "if(B, C, C)"),
    "SPAN": ("(T - T)", "(L + L)", "least(L, L)", "(T - D)"),
    "WORD": ("if(B, W, W)", "coalesce(W, W)"),
    "BYTES": ("least(Z, Z)", "coalesce(Z, Z)"),
    "REAL": ("sqrt(abs(N))", "(N / N)", "ln(abs(F) + 1)", "exp(F)", "(F / N)", "power(I, 2)"),
}
DOOR: dict[Kind, tuple[str, ...]] = {
    "INT": ("levenshtein(S, 'a')",),
    "TEXT": ("regexp_extract(S, '[a-b]')", "md5(S)", "regexp_replace(S, '[0-9]', 'x')", "reverse(S)"),
    "BOOL": ("regexp_matches(S, '^[ab]')", "(S SIMILAR TO '[0-9]+')"),
}
LETTERS: dict[str, tuple[Kind, ...]] = {
    "I": ("INT",), "N": ("INT", "DEC"), "P": ("DEC",), "F": ("FLOAT",), "D": ("DATE",), "T": ("TIME",), "S": ("TEXT",),
    "B": ("BOOL",), "X": ("SINGLE",), "C": ("CLOCK",), "L": ("SPAN",), "W": ("WORD",), "Z": ("BYTES",),
}
# fmt: on


@dataclass(frozen=True)
class World:
    """Tables with their kinds, as SQL, and a stream over them."""

    schema: str
    tables: dict[str, dict[str, Kind]]
    events: list[Event]


NAMES: dict[str, Kind] = {
    "k": "INT", "i": "INT", "p": "DEC", "y": "FLOAT", "d": "DATE", "m": "TIME", "s": "TEXT", "u": "TEXT", "f": "BOOL",
    "x": "SINGLE", "c": "CLOCK", "l": "SPAN", "w": "WORD", "b": "BYTES",
}  # fmt: skip


def world(rng: Random, length: int) -> World:
    tables: dict[str, dict[str, Kind]] = {}
    schema, pool = "", []
    for table in ("r", "q", "t"):
        names = ["k", *sorted(rng.sample(list(NAMES)[1:], 4))]
        tables[table] = {name: NAMES[name] for name in names}
        bounds = {name: rng.random() < 0.25 for name in names}
        columns = (f"{n} {rng.choice(TYPES[NAMES[n]])}{' NOT NULL' if bounds[n] else ''}" for n in names)
        schema += f"CREATE STREAM {table} ({', '.join(columns)});\n"
        pool += [(table, tuple(cell(rng, NAMES[n], bounds[n]) for n in names)) for _ in range(4)]
    return World(schema, tables, stream(rng, pool, length))


def cell(rng: Random, kind: Kind, bound: bool) -> object:
    return None if not bound and rng.random() < 0.25 else rng.choice(VALUES[kind])


def stream(rng: Random, pool: Sequence[tuple[str, Row]], length: int) -> list[Event]:
    """Few different rows come and go, so that they repeat, meet in joins and leave tables empty."""
    live: list[tuple[str, Row]] = []
    events: list[Event] = []
    for _ in range(length):
        if rng.random() < len(live) / 16:
            events.append(("-", *live.pop(rng.randrange(len(live)))))
        else:
            live.append(rng.choice(pool))
            events.append(("+", *live[-1]))
    return events
