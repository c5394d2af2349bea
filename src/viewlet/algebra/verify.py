"""What may exist at each stage. Run between stages, so that a wrong rewrite is caught where it happened.

A query of any stage is *closed* (nothing free but what is bound where it is read), *evaluable* (every product has an
order that gives each factor its inputs, in nested queries too), *uniform* (the branches of a union bind the same
variables) and *free of capture* (what a Sum sums out is named apart from everything around it). Over that, a stage
has its own vocabulary, :data:`STAGES`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from viewlet.algebra.evaluate import join_order
from viewlet.algebra.query import (
    Bind,
    Delta,
    Join,
    Materialize,
    Query,
    Rel,
    Sum,
    Union,
    View,
    children,
    inputs,
    outputs,
)
from viewlet.errors import Error

Stage = Literal["definition", "delta", "decision", "statement"]
Names = frozenset[str]

STAGES: dict[Stage, tuple[type[Query], ...]] = {  # what a stage must not contain
    "definition": (Delta, Materialize, View),  # a view is defined over the database
    "delta": (Materialize, View),  # and its delta over the database and the update
    "decision": (View,),  # 𝓜 marks what is to become a view
    "statement": (Rel, Materialize),  # decided: views and the update, nothing else
}


class VerifyError(Error):
    """A query that must not exist at its stage: a bug in whoever made it, with the place where it was made."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """``bound`` has a value here, ``given`` did so at the top; ``around`` is every name in use outside."""

    given: Names
    bound: Names
    around: Names


def verify(q: Query, stage: Stage, *, bound: Names = frozenset(), bulk: bool = False, where: str = "") -> None:
    """Raise VerifyError unless Q may exist at ``stage``. ``bulk``: of a Δ trigger, so it reads the update."""
    problem = _vocabulary(q, stage, bulk) or _closed(q, bound) or _sound(q, _Scope(bound, bound, frozenset()))
    if problem:
        raise VerifyError(f"{stage}{' of ' if where else ''}{where}: {problem}\nin {q.text}")


def _vocabulary(q: Query, stage: Stage, bulk: bool) -> str | None:
    banned = STAGES[stage] + ((Delta,) if stage == "statement" and not bulk else ())
    if isinstance(q, banned):
        return f"{type(q).__name__} {q.text} may not exist at this stage"
    return _first(_vocabulary(child, stage, bulk) for child in children(q))


def _closed(q: Query, bound: Names) -> str | None:
    missing = inputs(q) - bound
    return f"not closed: nothing gives {_list(missing)} a value" if missing else None


def _sound(q: Query, scope: _Scope) -> str | None:
    """Evaluable, uniform and free of capture, for Q and everything in it."""
    match q:
        case Join(factors):
            return _sound_join(factors, scope)
        case Union(branches):
            binds = [outputs(b) - scope.bound for b in branches]
            if any(b != binds[0] for b in binds):
                shown = " but ".join(f"{b.text} binds {_list(names)}" for b, names in zip(branches, binds, strict=True))
                return f"not uniform: {shown}"
            return _first(_open(b, scope) or _sound(b, scope) for b in branches)
        case Sum(group, inner):
            local = outputs(inner) - group - scope.given
            captured = local & scope.around
            if captured:
                return f"captured: {_list(captured)}, summed out in {q.text}, is in use around it"
            return _open(inner, scope) or _sound(inner, _entered(scope, inner))
        case Bind(_, inner):
            return _open(q, scope) or _sound(inner, _entered(scope, q))
        case _:
            return _open(q, scope) or _first(_sound(child, scope) for child in children(q))


def _sound_join(factors: tuple[Query, ...], scope: _Scope) -> str | None:
    """Factor by factor in the very order in which they are evaluated."""
    try:
        order = join_order(factors, scope.bound)
    except ValueError as error:
        return f"not evaluable: {error}"
    bound, around = scope.bound, scope.around.union(*(inputs(f) | outputs(f) for f in factors))
    for f in order:
        problem = _sound(f, _Scope(scope.given, bound, around))
        if problem:
            return problem
        bound |= outputs(f)
    return None


def _entered(scope: _Scope, q: Query) -> _Scope:
    """Inside Q, the variables of Q are around."""
    return _Scope(scope.given, scope.bound, scope.around | inputs(q) | outputs(q))


def _open(q: Query, scope: _Scope) -> str | None:
    missing = inputs(q) - scope.bound
    return f"not evaluable: nothing gives {_list(missing)} a value in {q.text}" if missing else None


def _first(problems: Iterable[str | None]) -> str | None:
    return next((p for p in problems if p), None)


def _list(names: Names) -> str:
    return ", ".join(sorted(names)) or "nothing"
