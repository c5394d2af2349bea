"""A view as a small table in a terminal: column names, the first rows, and which of them changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from rich.cells import cell_len
from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from viewlet.cli.fitted import fitted
from viewlet.database.looking import Look, Mark, Memory, Shape
from viewlet.database.shown import NULL, column_texts, one_line
from viewlet.session.changes import Row

MOST_ROWS = 40
WIDEST_TEXT = 32  # cells of a column of texts, unless it is alone
NARROWEST_TEXT = 8  # to which it is cut before columns are left out
GAP = 2  # cells between columns, and before the first one, where the mark of a change is
FRAME = 4  # cells of a border and its padding, left and right
CAME, CHANGED = "+", "•"
NEW, NOTHING = "bold cyan", "dim"
STYLES: Mapping[Mark, str] = {"": "", "came": NEW, "more": "bold green", "less": "bold red", "other": "bold yellow"}


class Pane:
    """``take`` is told what the view has now. Columns grow and do not shrink again, so nothing jumps."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.look = Look([], 0)
        self.problem = ""
        self._texts: list[list[str]] = []  # row by row
        self._styles: list[list[str]] = []
        self._widths = [min(cell_len(one_line(column.name)), WIDEST_TEXT) for column in shape.columns]
        self._memory = Memory(shape)

    @property
    def height(self) -> int:
        """Rows that there are to show; a view without rows says so in one."""
        return max(len(self._texts), 1)

    def take(self, look: Look) -> None:
        rows, marks = look.rows[:MOST_ROWS], self._memory.compared(look.rows)
        self._styles = [[STYLES[mark] for mark in row] for row in marks[:MOST_ROWS]]
        self._texts = list(map(list, zip(*self._columns(rows), strict=True))) if rows else []
        self.look, self.problem = look, ""

    def fail(self, problem: str) -> None:
        """Instead of rows: why there are none to be shown."""
        self._texts, self._styles, self.problem = [], [], one_line(problem)

    def settle(self, most: int) -> None:
        """It is over: at most so many rows, and none of them is new."""
        self._texts = self._texts[:most]
        self._styles = [[""] * len(texts) for texts in self._texts]

    def _columns(self, rows: list[Row]) -> list[list[str]]:
        columns = []
        for place, column in enumerate(self.shape.columns):
            texts = column_texts([row[place] for row in rows], column.type, is_key=place in self.shape.keys)
            widest = max(map(cell_len, texts), default=0)
            most = widest if column.type.is_numeric else WIDEST_TEXT
            self._widths[place] = max(self._widths[place], min(widest, most))
            columns.append(texts)
        return columns

    # -- how it looks --------------------------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """All columns, and the name."""
        columns = GAP + sum(self._widths) + GAP * (len(self._widths) - 1)
        around = max(cell_len(self._title()), cell_len(self._subtitle(0, MOST_ROWS)), cell_len(self.problem)) + GAP
        return max(columns, around) + FRAME

    def panel(self, width: int, rows: int) -> Panel:
        """At most so many rows, in ``rows`` + 3 lines."""
        widths = fitting(self._widths, [c.type.is_numeric for c in self.shape.columns], width - FRAME - GAP)
        left_out = len(self._widths) - len(widths)
        shown = min(rows, len(self._texts))
        head = self._line("  ", [one_line(c.name) for c in self.shape.columns], ["bold"] * len(widths), widths)
        lines = [self._row(number, widths) for number in range(shown)]
        if not lines:
            text = self.problem or "empty"
            lines = [Text("  " + fitted(text, width - FRAME - GAP), style="red" if self.problem else "dim")]
        return Panel(
            Group(head, *lines),
            width=width,
            title=Text(fitted(self._title(), width - FRAME - 2), style="bold"),
            title_align="left",
            subtitle=Text(fitted(self._subtitle(left_out, shown), width - FRAME - 2), style="dim"),
            subtitle_align="right",
            border_style="dim",
        )

    def _row(self, number: int, widths: Sequence[int]) -> Text:
        texts, styles = self._texts[number], self._styles[number]
        mark = CAME if NEW in styles else CHANGED if any(styles) else " "
        shown = [style or (NOTHING if text == NULL else "") for text, style in zip(texts, styles, strict=True)]
        return self._line(f"{mark} ", texts, shown, widths, next(filter(None, styles), ""))

    def _line(
        self, mark: str, texts: Sequence[str], styles: Sequence[str], widths: Sequence[int], marked: str = ""
    ) -> Text:
        line = Text(mark, style="", no_wrap=True, end="\n")
        line.stylize(marked, 0, 1)
        for place, width in enumerate(widths):
            text = fitted(texts[place], width)
            space = " " * (width - cell_len(text))
            line.append(" " * GAP if place else "")
            line.append(space + text if self.shape.columns[place].type.is_numeric else text + space, styles[place])
        return line

    def _title(self) -> str:
        return one_line(self.shape.name) + (f" · {self.shape.note}" if self.shape.note else "")

    def _subtitle(self, left_out: int, shown: int) -> str:
        return self.look.counted(shown) + f" · {left_out} more column{'' if left_out == 1 else 's'}" * (left_out > 0)


def fitting(natural: Sequence[int], numeric: Sequence[bool], room: int) -> list[int]:
    """Widths of the first columns that have room. Texts are cut, numbers are whole: a part of one is another number.

    >>> fitting([4, 6], [True, False], 20), fitting([4, 30], [True, False], 20), fitting([9, 9, 9], [True] * 3, 20)
    ([4, 6], [4, 14], [9, 9])
    """
    widths = list(natural)
    while _taken(widths) > room:
        long = [place for place in range(len(widths)) if not numeric[place] and widths[place] > NARROWEST_TEXT]
        if long:
            widths[max(long, key=lambda place: widths[place])] -= 1
        elif len(widths) > 1:
            widths = list(islice(natural, len(widths) - 1))
        else:
            return [max(room, 1)]
    return widths


def _taken(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
