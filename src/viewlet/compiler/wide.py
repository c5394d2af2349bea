"""Views whose joins have too many parts for a map of each (§4: the transform keeps every part that a delta leaves)."""

from __future__ import annotations

from math import prod

from viewlet.algebra.query import Bind, Exists, Join, Query, Rel, children, relations
from viewlet.program.trigger import Result

MOST_PARTS = 80  # of all joins of one view; SSB4, the widest of the paper, has 64


def is_wide(result: Result, static: frozenset[str]) -> bool:
    """The joins of the view have more parts than maps may be kept for it."""
    return sum(parts(q, static) for q in result.reads) > MOST_PARTS


def parts(q: Query, static: frozenset[str]) -> int:
    """2ⁿ for a product of n relations that change, added up over all products, nested ones too."""
    match q:
        case Rel(name, _):
            return 1 if name in static else 2
        case Join(factors):
            nested = [f for f in factors if isinstance(f, (Bind, Exists))]
            linear = (parts(f, static) for f in factors if f not in nested)
            return prod(linear) + sum(parts(f, static) for f in nested if relations(f))
        case _:
            return sum(parts(child, static) for child in children(q)) or 1
