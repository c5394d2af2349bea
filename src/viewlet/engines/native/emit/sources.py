"""The views that the rows of a SQL view are read off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from viewlet.algebra.query import Query, View, children, outputs
from viewlet.program.trigger import Result


@dataclass(frozen=True)
class Source:
    """A view that the rows of a result are read off; ``shared``: variables of the rows ↦ where it has them."""

    view: str
    shared: Mapping[str, int]


def sources(result: Result) -> Iterator[Source]:
    """Of a query that is more than a view nothing is known: what changes in it may be in every row."""
    keys = frozenset() if result.rows is None else outputs(result.rows)
    for query in result.reads:
        if isinstance(query, View):
            yield Source(query.name, {v: i for i, v in enumerate(query.outputs) if v in keys})
        else:
            yield from (Source(view, {}) for view in _views(query))


def _views(query: Query) -> Iterator[str]:
    if isinstance(query, View):
        yield query.name
    for child in children(query):
        yield from _views(child)
