"""A figure beside the bar that it should reach."""

from __future__ import annotations


def at_least(figure: float, bar: float) -> str:
    return f"   (bar: at least {bar:g}, {'met' if figure >= bar else 'MISSED'})"


def below(figure: float, bar: float) -> str:
    return f"   (bar: below {bar:g}, {'met' if figure < bar else 'MISSED'})"
