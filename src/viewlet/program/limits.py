"""Sums that a user sees as they are: an update may not take them out of the type of their column."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from viewlet.algebra.query import View
from viewlet.algebra.terms import NULL, Number, Op, Var
from viewlet.program.trigger import Program, Result, ResultColumn
from viewlet.schema import Kind, Type

BITS: dict[Kind, int] = {"INTEGER": 32, "BIGINT": 64}


def unscaled_range(type_: Type) -> tuple[int, int]:
    """The least and greatest integer of last places that a type of exact numbers holds."""
    if type_.kind == "DECIMAL":
        most = 10**type_.precision - 1
        return -most, most
    half = 1 << BITS[type_.kind] - 1
    return -half, half - 1


@dataclass(frozen=True, slots=True)
class Limit:
    """``low`` ≤ value ≤ ``high``; ``column`` is the view and column of the user that show the value as ``type``."""

    low: Fraction
    high: Fraction
    column: str
    type: Type

    def units(self, scale: int) -> tuple[int, int]:
        """The same for the integer of 10⁻ˢ that holds the value."""
        return -(-self.low * 10**scale).__floor__(), (self.high * 10**scale).__floor__()

    def refusal(self, value: Number) -> str:
        return f"{self.column}: {value} no longer fits {self.type}"


def limits(program: Program) -> dict[str, Limit]:
    """Kept view ↦ its limit, the tightest where several columns show it."""
    found: dict[str, Limit] = {}
    for result in program.results:
        lookups = {var: q for var, q in result.lookups if isinstance(q, View) and not q.inputs}
        for column in result.columns:
            shown, limit = lookups.get(_shown(column)), _limit(result, column)
            if shown is not None and limit is not None:
                found[shown.name] = min(found.get(shown.name, limit), limit, key=lambda known: known.high)
    return found


def _shown(column: ResultColumn) -> str:
    """The variable that a column shows as it is, or shows unless it has nothing to show."""
    match column.term:
        case Var(name):
            return name
        case Op("case", (_, nothing, Var(name))) if nothing == NULL:
            return name
        case _:
            return ""


def _limit(result: Result, column: ResultColumn) -> Limit | None:
    if column.type.kind not in ("DECIMAL", *BITS):
        return None
    low, high = (Fraction(n, 10**column.type.scale) for n in unscaled_range(column.type))
    return Limit(low, high, f"{result.name}.{column.name}", column.type)
