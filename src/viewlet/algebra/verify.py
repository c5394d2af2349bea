"""What may exist at each stage. Run between stages, so that a wrong rewrite is caught where it happened.

A query of any stage is *closed* (nothing free but what is given where it is read; what only some branches of a union
bind is free in it), *evaluable* (every product has an order that gives each factor its inputs) and *free of capture*
(what a Sum sums out is named apart from everything around it). Each part of a query is held to this with nothing but
its own inputs, so no engine can meet it in an order that goes wrong. Over that, a stage has its own vocabulary,
:data:`STAGES`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from viewlet.algebra.query import (
    Bind,
    Delta,
    Join,
    Materialize,
    Query,
    Rel,
    Sum,
    View,
    children,
    inputs,
    outputs,
    variables,
)
from viewlet.algebra.remembered import remembered
from viewlet.errors import Error

Stage = Literal["definition", "delta", "decision", "statement"]
Names = frozenset[str]

STAGES: dict[Stage, tuple[type[Query], ...]] = {  # what a stage must not contain
    "definition": (Delta, Materialize, View),  # a view is defined over the database
    "delta": (Materialize, View),  # and its delta over the database and the update
    "decision": (View,),  # 𝓜 marks what is to become a view
    "statement": (Rel, Materialize),  # decided: views and the update, nothing else
}

MOST_SHOWN = 2_000  # characters of a query: some would fill a hundred screens


class VerifyError(Error):
    """A query that must not exist at its stage: a bug in the code that made it, with its place."""


def verify(q: Query, stage: Stage, *, bound: Names = frozenset(), bulk: bool = False, where: str = "") -> None:
    """Raise VerifyError unless Q may exist at ``stage``. ``bulk``: of a Δ trigger, so it reads the update."""
    problem = _vocabulary(q, stage, bulk) or _closed(q, bound) or _sound(q, bound & variables(q), frozenset())
    if problem:
        raise VerifyError(f"{stage}{' of ' if where else ''}{where}: {_short(problem)}\nin {_short(q.text)}")


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} …"


@remembered(1 << 16)
def _vocabulary(q: Query, stage: Stage, bulk: bool) -> str | None:
    banned = STAGES[stage] + ((Delta,) if stage == "statement" and not bulk else ())
    if isinstance(q, banned):
        return f"{type(q).__name__} {q.text} may not exist at this stage"
    return _first(_vocabulary(child, stage, bulk) for child in children(q))


def _closed(q: Query, bound: Names) -> str | None:
    missing = inputs(q) - bound
    return f"not closed: nothing gives {_list(missing)} a value" if missing else None


@remembered(1 << 16)
def _sound(q: Query, given: Names, around: Names) -> str | None:
    """Evaluable and free of capture, for Q and everything in it; ``around`` are the names in use outside.

    Both have no names but Q's own, so that a query that stands in many places is looked at once.
    """
    problem = None
    match q:
        case Join(factors):
            problem = _evaluable(factors, inputs(q) | given)
        case Sum(group, inner):
            problem = _free_of_capture(q, outputs(inner) - group - given, around)
        case Bind():
            given |= inputs(q)  # a nested aggregate waits for all of them, its groups among them
    inside = around | outputs(q)
    parts = ((part, variables(part)) for part in children(q) if children(part))
    return problem or _first(_sound(part, given & names, inside & names) for part, names in parts)


def _evaluable(factors: tuple[Query, ...], bound: Names) -> str | None:
    waiting = factors
    while ready := [f for f in waiting if inputs(f) <= bound]:
        bound = bound.union(*map(outputs, ready))
        waiting = tuple(f for f in waiting if f not in ready)
    if not waiting:
        return None
    missing = _list(frozenset().union(*map(inputs, waiting)) - bound)
    return f"not evaluable: no order gives {missing} a value in {' * '.join(f.text for f in factors)}"


def _free_of_capture(q: Query, local: Names, around: Names) -> str | None:
    captured = local & around
    return f"captured: {_list(captured)}, summed out in {q.text}, is in use around it" if captured else None


def _first(problems: Iterable[str | None]) -> str | None:
    return next((p for p in problems if p), None)


def _list(names: Names) -> str:
    return ", ".join(sorted(names))
