"""The rows of a SQL view, read off its maps: what is not linear at the top of a query happens here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from viewlet.algebra.evaluate import Env, Key, Reader, evaluate, scalar
from viewlet.algebra.query import outputs
from viewlet.algebra.terms import Scalar, Var, evaluate_term
from viewlet.program.trigger import Result, ResultColumn

Row = tuple[int, Key]  # how often, and the columns' values


def result_rows(result: Result, read: Reader, key: Mapping[str, Scalar] | None = None) -> Iterator[Row]:
    """The rows whose key variables have the values in ``key``: without it all rows, with a whole key one lookup."""
    if result.rows is None:
        keys = [(dict(key or {}), 1)]
    else:
        names = tuple(sorted(outputs(result.rows)))
        entries = evaluate(result.rows, read, names, key)
        keys = [(dict(zip(names, k, strict=True)), _weight(result, m)) for k, m in entries.items()]
    for env, weight in keys:
        env |= {name: scalar(q, frozenset(env))(env, read) for name, q in result.lookups}
        if result.having is None or evaluate_term(result.having, env) is True:
            yield weight, _columns(result, env)


def key_columns(result: Result) -> tuple[ResultColumn, ...]:
    """The columns that are key variables themselves, first ones where a variable is shown twice."""
    keys = frozenset() if result.rows is None else outputs(result.rows)
    found: dict[str, ResultColumn] = {}
    for column in result.columns:
        if isinstance(column.term, Var) and column.term.name in keys:
            found.setdefault(column.term.name, column)
    return tuple(found.values())


def _columns(result: Result, env: Env) -> Key:
    return tuple([evaluate_term(c.term, env) for c in result.columns])


def _weight(result: Result, m: object) -> int:
    """How many rows a key stands for; SQL knows no other numbers than 1, 2, …"""
    if not isinstance(m, int) or m < 1:
        raise ValueError(f"view {result.name} counts {m} rows under one key: its program is wrong")
    return 1 if result.distinct else m
