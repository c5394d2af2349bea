"""What a report consists of, before it is a page: sections of prose, tables, lists and charts.

The HTML and the Markdown are two ways to write down the same blocks, so neither can say what the other does not.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A number or a word in a table; ``aside`` is what is said about it in small letters."""

    text: str
    aside: str = ""
    is_word: bool = False  # words stand on the left of their column, numbers on the right
    is_faint: bool = False  # refused, missing, not measured


@dataclass(frozen=True, slots=True)
class Prose:
    text: str  # `code` in backticks


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list; with a title it is folded away until somebody wants it."""

    items: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_folded: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    value: float | None
    text: str  # the value as it is shown, or the word for why there is none
    kind: str  # of the contestant: its colour


@dataclass(frozen=True, slots=True)
class BarPanel:
    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """Panels of horizontal bars on one scale, logarithmic where values are far apart; they begin at ``baseline``."""

    title: str
    unit: str
    panels: tuple[BarPanel, ...]
    baseline: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    label: str
    kind: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class LinePanel:
    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Small multiples: one panel for each query and quantity."""

    title: str
    panels: tuple[LinePanel, ...]


Block = Prose | Bullets | Table | Bars | Lines


@dataclass(frozen=True, slots=True)
class Section:
    anchor: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A number at the head of the page."""

    number: str
    meaning: str
    aside: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    subtitle: str
    alarms: tuple[str, ...]  # wrong answers: said before anything else
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
