"""How values of SQL look in a table: one line each, the numbers of a column alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from viewlet.schema import Type

NULL = "NULL"
MOST_CHARACTERS = 200  # of a text that are looked at: no terminal shows more in a cell
EXPONENT = 1e15  # from where on a double is shown by its power of ten


def column_texts(values: Sequence[object], type_: Type, *, is_key: bool) -> list[str]:
    """The values of one column. Keys are names, so 12345 has no comma; sums have one.

    >>> from viewlet.schema import BIGINT, DOUBLE
    >>> column_texts([12345, None], BIGINT, is_key=True), column_texts([12345], BIGINT, is_key=False)
    (['12345', 'NULL'], ['12,345'])
    >>> column_texts([1234.5, 2.25, math.nan], DOUBLE, is_key=False)
    ['1,234.50', '2.25', 'nan']
    """
    digits = _digits([v for v in values if isinstance(v, float)]) if type_.held.kind == "DOUBLE" else 0
    return [_text(value, digits, "" if is_key else ",") for value in values]


def _digits(values: Sequence[float]) -> int:
    """After the point: as many as the values have, and no more than tell something beside the largest."""
    shown = [v for v in values if math.isfinite(v) and abs(v) < EXPONENT]
    largest = max(map(abs, shown), default=0.0)
    enough = 0 if largest >= 1e9 else 2 if largest >= 1000 else 4 if largest >= 1 else 6
    return next((n for n in range(enough) if all(round(v, n) == v for v in shown)), enough)


def _text(value: object, digits: int, comma: str) -> str:
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return f"{value:{comma}}" if isinstance(value, int) else f"{value:{comma}f}"
        case float():
            return _double(value, digits, comma)
        case str():
            return one_line(value)
        case list() | tuple():
            return one_line("[" + ", ".join(_text(v, 2, "") for v in value[:MOST_CHARACTERS]) + "]")
        case _:
            return one_line(str(value))


def _double(value: float, digits: int, comma: str) -> str:
    is_tiny = 0 < abs(value) < 0.5 * 10**-digits
    if not math.isfinite(value) or abs(value) >= EXPONENT or is_tiny:
        return f"{value:.4g}"
    return f"{value:{comma}.{digits}f}"


def one_line(text: str) -> str:
    r"""Line ends, escapes and other characters that move the cursor are written out.

    >>> one_line("a\nb\x1b[31m")
    'a\\nb\\x1b[31m'
    """
    shown = text[:MOST_CHARACTERS]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    return shown + "…" * (len(text) > MOST_CHARACTERS)
