"""Nested aggregates that are equal but for names become one query, wherever nobody else sees the names."""

from __future__ import annotations

from viewlet.algebra.query import Query, Sum, branches, factors
from viewlet.algebra.text import parse
from viewlet.compiler.alike import with_one_of_each


def products(text: str) -> list[tuple[Query, ...]]:
    """The factors of each branch, under its Sum, where every nested aggregate is the first of its kind."""
    q = with_one_of_each(parse(text), {})
    return [factors(b.query if isinstance(b, Sum) else b) for b in branches(q)]


def nested(text: str) -> list[Query]:
    return [f for product in products(text) for f in product if f.text.startswith("(n")]


def test_what_branches_sum_out_is_named_alike() -> None:
    first, second = nested("(Sum[](R(a) * (n := Sum[a](S(a, x))) * n) + Sum[](T(b) * (n2 := Sum[b](S(b, y))) * n2))")
    assert first is second


def test_a_key_keeps_its_name() -> None:
    q = "(Sum[k](R(k, a) * (n := Sum[a](S(a, x))) * n) + Sum[k](T(b, k) * (n2 := Sum[k](S(k, y))) * n2))"
    first, second = nested(q)
    assert first.text == "(n := Sum[a](S(a, x)))"
    assert second.text == "(n := Sum[k](S(k, x)))"


def test_one_product_keeps_its_names_apart() -> None:
    first, second = nested("Sum[](R(a, b) * (n := Sum[a](S(a, x))) * (n2 := Sum[b](S(b, y))) * [n < n2])")
    assert (first.text, second.text) == ("(n := Sum[a](S(a, x)))", "(n2 := Sum[b](S(b, x)))")


def test_a_key_that_is_its_own_value_is_another_query() -> None:
    """(b := Sum[b](S(b, y))) is a test of b; the names of a plain count left one of its two names unbound."""
    plain, own = "Sum[](R(a) * (n := Sum[a](S(a, x))) * n)", "Sum[](T(b) * (b := Sum[b](S(b, y))))"
    for text in (f"({plain} + {own})", f"({own} + {plain})"):
        tests = [f for product in products(text) for f in product if ":=" in f.text]
        assert {f.text for f in tests} == {"(n := Sum[a](S(a, x)))", "(b := Sum[b](S(b, y)))"}


def test_another_order_of_columns_is_another_query() -> None:
    q = "(Sum[](R(a) * (n := Sum[a](S(a, x))) * n) + Sum[](T(b) * (n2 := Sum[b](S(y, b))) * n2))"
    first, second = nested(q)
    assert (first.text, second.text) == ("(n := Sum[a](S(a, x)))", "(n2 := Sum[b](S(y, b)))")
