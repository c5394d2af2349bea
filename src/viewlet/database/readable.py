"""Rows that can be read: as tuples, as Arrow, as frames, in a notebook."""

from __future__ import annotations

import html
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from viewlet.database.shown import NULL, one_line
from viewlet.rows import arrow

Row = tuple[Any, ...]
SHOWN_ROWS = 20
FROM_ARROW: Mapping[str, Callable[[Any], Any]] = {
    "UUID": UUID,
    "HUGEINT": int,
    "UHUGEINT": int,
    "INTERVAL": lambda v: timedelta(v.months * 30 + v.days, 0, v.nanoseconds // 1000) if hasattr(v, "months") else v,
}
"""Of SQL types that Arrow has as another: texts, decimals without digits after the point, months and days."""


class Readable:
    """Rows in the forms that :class:`View` has them in, all made of Arrow."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in their order."""

    @abstractmethod
    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""

    @abstractmethod
    def _types(self) -> list[str]:
        """The SQL types of the columns."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    def rows(self) -> list[Row]:
        """All rows as tuples. A row that is there n times is listed n times."""
        return self._listed(self.arrow())

    def df(self) -> Any:
        """All rows as a pandas frame."""
        return arrow.frame(self.arrow())

    def pl(self) -> Any:
        """All rows as a polars frame."""
        import polars

        return polars.from_arrow(self.arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def _repr_html_(self) -> str:
        return html_table(self.columns, *self._first())

    def __str__(self) -> str:
        return text_table(self.columns, *self._first())

    def _first(self) -> tuple[list[Row], int]:
        table = self.arrow()
        return self._listed(table.slice(0, SHOWN_ROWS)), table.num_rows

    def _listed(self, table: pa.Table) -> list[Row]:
        columns = [column.to_pylist() for column in table.columns]
        for place, type_ in enumerate(self._types()):
            if (made := FROM_ARROW.get(type_)) is not None:
                columns[place] = [None if value is None else made(value) for value in columns[place]]
        return list(zip(*columns, strict=True))


def html_table(columns: Iterable[str], rows: Iterable[Row], count: int) -> str:
    """The first rows of ``count``."""
    head, body = html_row("th", columns), "".join(html_row("td", row) for row in rows)
    more = f"<caption>{SHOWN_ROWS} of {count} rows</caption>" if count > SHOWN_ROWS else ""
    return f"<table>{more}<thead>{head}</thead><tbody>{body}</tbody></table>"


def text_table(columns: Sequence[str], rows: Iterable[Row], count: int) -> str:
    """The same as text: a line for each row, numbers to the right.

    >>> print(text_table(["who", "n"], [("ann", 12), (None, 3)], 2))
    who    n
    ann   12
    NULL   3
    """
    shown = [_aligned(name, cells) for name, *cells in zip(columns, *rows, strict=True)]
    more = [f"({SHOWN_ROWS} of {count:,} rows)"] if count > SHOWN_ROWS else []
    return "\n".join([*("  ".join(line).rstrip() for line in zip(*shown, strict=True)), *more])


def _aligned(name: str, cells: list[Any]) -> list[str]:
    texts = [one_line(name), *map(_text, cells)]
    width, numbers = (
        max(map(len, texts)),
        all(cell is None or isinstance(cell, int | float | Decimal) for cell in cells),
    )
    return [text.rjust(width) if numbers else text.ljust(width) for text in texts]


def _text(cell: object) -> str:
    return NULL if cell is None else one_line(str(cell))


def html_row(tag: str, cells: Iterable[Any]) -> str:
    shown = ("NULL" if cell is None else html.escape(str(cell)) for cell in cells)
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in shown) + "</tr>"
