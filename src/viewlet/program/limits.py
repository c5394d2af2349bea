"""Numbers that a user sees as they are: an update may not take them out of the type of their column.

These are the sums of exact numbers that a view holds as multiplicities, and the keys that a query computes. (What a
query computes from sums when it is read is refused there. A sum of doubles may come back from beyond them all.)
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction

from viewlet.algebra.functions.calendar import EPOCH, MICROSECONDS_PER_DAY
from viewlet.algebra.query import Bind, Compare, Query, Rel, Union, Value, View, atoms, children, factors, outputs
from viewlet.algebra.terms import (
    BEYOND_DOUBLES,
    NULL,
    Number,
    Op,
    Term,
    Var,
    exact,
    free,
    substitute_term,
)
from viewlet.program.trigger import MapDefinition, Program, Result, ResultColumn
from viewlet.schema import BITS, SIGNED, UNSIGNED, Type, TypeName

FIRST_DAY, LAST_DAY = (dt.date.min - EPOCH).days, (dt.date.max - EPOCH).days
RANGES: dict[TypeName, tuple[int, int]] = {
    "DATE": (FIRST_DAY, LAST_DAY),
    "TIMESTAMP": (FIRST_DAY * MICROSECONDS_PER_DAY, (LAST_DAY + 1) * MICROSECONDS_PER_DAY - 1),
    "DOUBLE": (1 - BEYOND_DOUBLES, BEYOND_DOUBLES - 1),
}


def unscaled_range(type_: Type) -> tuple[int, int]:
    """The least and greatest integer of last places that a type of exact numbers holds."""
    if type_.kind == "DECIMAL":
        most = 10**type_.precision - 1
        return -most, most
    if type_.kind in UNSIGNED:
        return 0, (1 << UNSIGNED[type_.kind]) - 1
    half = 1 << SIGNED[type_.kind] - 1
    return -half, half - 1


@dataclass(frozen=True, slots=True)
class Limit:
    """``low`` ≤ value ≤ ``high``; ``column`` is the view and column of the user that show the value as ``type``.

    Without a type it is the number of rows of a subquery of the view ``column``, which is used as a value.
    """

    low: Number
    high: Number
    column: str
    type: Type | None

    def units(self, scale: int) -> tuple[int, int]:
        """The same for the integer of 10⁻ˢ that holds the value."""
        return -(-self.low * 10**scale).__floor__(), (self.high * 10**scale).__floor__()

    def refusal(self, value: Number | str) -> str:
        if self.type is None:
            return f"{self.column}: a subquery that is used as a value has more than one row"
        shown = "a number" if self.type.held.kind == "DOUBLE" else value
        return f"{self.column}: {shown} no longer fits {self.type}"


# -- sums --------------------------------------------------------------------------------------------------------------


def limits(program: Program) -> dict[str, Limit]:
    """Kept view ↦ the limit of its multiplicities, the tightest where several columns show it."""
    tightest: dict[str, Limit] = {}
    for result in program.results:
        lookups = {var: q for var, q in result.lookups if isinstance(q, View) and not q.inputs}
        for column in result.columns:
            shown, limit = lookups.get(shown_variable(column)), _limit(result, column)
            if shown is not None and limit is not None and column.type.held.kind != "DOUBLE":
                tightest[shown.name] = min(tightest.get(shown.name, limit), limit, key=lambda known: known.high)
    for result in program.results:
        tightest |= {q.name: Limit(0, 1, result.name, None) for q in result.single if isinstance(q, View)}
    return tightest


def shown_variable(column: ResultColumn) -> str:
    """The variable that a column shows as it is, or shows unless it has nothing to show."""
    match column.term:
        case Var(name):
            return name
        case Op("case", (_, nothing, Var(name))) if nothing == NULL:
            return name
        case _:
            return ""


def _limit(result: Result, column: ResultColumn) -> Limit | None:
    if column.type.held.kind in ("DECIMAL", *BITS):
        low, high = (exact(Fraction(n, 10**column.type.scale)) for n in unscaled_range(column.type.held))
    elif column.type.held.kind in RANGES:
        low, high = RANGES[column.type.held.kind]
    else:
        return None
    return Limit(low, high, f"{result.name}.{column.name}", column.type)


def is_product(q: Query) -> bool:
    """Whether Q multiplies what several maps hold."""
    return sum(any(isinstance(a, View) for a in atoms(f)) for f in factors(q)) > 1 or any(map(is_product, children(q)))


def multiplied(program: Program, counts: frozenset[str]) -> frozenset[str]:
    """The maps that readers multiply with others, and not only with ``counts`` of rows.

    None of them may hold an infinity or NaN: ∞ · (0 + 1) is none of the sums that ∞ · 0 + ∞ · 1 may come to.
    """
    products = [q for result in program.results for _, q in result.lookups if is_product(q)]
    return frozenset(a.name for q in products if not _repeats(q, counts) for a in atoms(q) if isinstance(a, View))


def _repeats(q: Query, counts: frozenset[str]) -> bool:
    """Whether Q is one sum, as often as there are rows beside it: n · ∞ is ∞, and where n is 0 there is no row."""
    parts = factors(q)
    sums = [f for f in parts if not (isinstance(f, View) and f.name in counts)]
    return len(sums) <= 1 and all(isinstance(f, View) for f in parts)


# -- keys --------------------------------------------------------------------------------------------------------------

KeyLimits = dict[Term, Limit]  # a term over the columns of a view ↦ what it must fit


def key_limits(program: Program) -> dict[str, KeyLimits]:
    """Kept view ↦ what its keys are shown as, where a query computes it: a column of a table fits its own type."""
    by_view: dict[str, KeyLimits] = {}
    for result in program.results:
        ends = {e.var: (e.query, Var(e.key)) for e in result.extremes}
        for column in result.columns:
            source, term = ends.get(shown_variable(column), (result.rows, column.term))
            limit = _limit(result, column)
            if limit is None or not isinstance(source, View) or source.inputs or not free(term) <= outputs(source):
                continue
            view = program.view(source.name)
            term = substitute_term(term, dict(zip(source.outputs, map(Var, view.outputs), strict=True)))
            if _may_leave(view, term, column.type):
                by_view.setdefault(view.name, {})[term] = limit
    return by_view


def _may_leave(view: MapDefinition, term: Term, type_: Type) -> bool:
    """A double is always one: what is none could not be computed."""
    if isinstance(term, Var):
        return type_.held.kind != "DOUBLE" and computes(view.definition, term.name)
    return bool(free(term))


def computes(q: Query, var: str) -> bool:
    """Whether a query gives a variable a value that perhaps no table holds as it is."""
    match q:
        case Bind(name, _):
            return name == var
        case Rel() | View() | Value() | Compare():
            return False
        case Union(parts):
            return any(computes(part, var) for part in parts)
        case _:
            given = [child for child in children(q) if var in outputs(child)]
            return bool(given) and all(computes(child, var) for child in given)
