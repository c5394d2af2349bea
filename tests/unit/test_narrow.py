"""Columns that nobody reads leave a definition, and nothing else does."""

from __future__ import annotations

import pytest

from viewlet.algebra.text import parse
from viewlet.compiler.narrow import narrow

PAIRS = [
    ("Sum[a](R(a, b) * (x := Sum[](S(c))) * b)", "Sum[a](R(a, b) * b)"),
    ("Sum[a](R(a, b) * (x := {(b + 1)}) * (y := {(x + 1)}))", "Sum[a](R(a, b))"),
    ("Sum[a](R(a, b) * (x := Sum[](S(c))) * [x < b])", "Sum[a](R(a, b) * (x := Sum[](S(c))) * [x < b])"),
    ("Sum[a](R(a) * (S(a, b) * (x := b) + T(a, x)))", "Sum[a](R(a) * (S(a, b) + Sum[a](T(a, x))))"),
    ("Sum[](R(a) * (a := b) * S(b))", "Sum[](R(a) * S(b) * (a := b))"),
    ("R(a) * (x := Sum[](S(a, c) * (y := c)))", "R(a) * (x := Sum[](S(a, c)))"),
    ("Exists(Sum[a, x](R(a, b) * (x := b)))", "Exists(Sum[a, x](R(a, b) * (x := b)))"),
]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_what_nobody_reads_is_left_out(before: str, after: str) -> None:
    assert narrow(parse(before)) == parse(after)
