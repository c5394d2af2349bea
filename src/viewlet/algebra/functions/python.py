"""Functions that users write in Python, where their arguments come of several rows: terms that no machine code has."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from viewlet.algebra.functions.base import Function, ValueKind
from viewlet.algebra.functions.calendar import EPOCH
from viewlet.schema import BIGINT, BITS, BOOLEAN, DATE, DOUBLE, INTEGER, TIMESTAMP, VARCHAR, Type

PREFIX = "python_"
_MIDNIGHT = dt.datetime.combine(EPOCH, dt.time())
_MICROSECOND = dt.timedelta(microseconds=1)
_KINDS: dict[Type, ValueKind] = {
    BOOLEAN: "boolean",
    INTEGER: "integer",
    BIGINT: "integer",
    DATE: "integer",
    TIMESTAMP: "integer",
    DOUBLE: "double",
    VARCHAR: "text",
}
_TYPES = {str(type_): type_ for type_ in _KINDS}


@dataclass(frozen=True)
class Signature:
    """What a function of Python takes and gives, by its name in SQL."""

    name: str
    takes: tuple[Type, ...]
    gives: Type

    @staticmethod
    def of(name: str, parameters: Sequence[str], returns: str) -> Signature | None:
        """None where a type has no kind of its own, or the name is no plain one: such a function stays at the door."""
        types = [_TYPES.get(word.upper()) for word in (*parameters, returns)]
        known = [type_ for type_ in types if type_ is not None]
        if not parameters or len(known) < len(types) or not re.fullmatch(r"[a-z_]\w*", name.lower(), re.ASCII):
            return None
        return Signature(name.lower(), tuple(known[:-1]), known[-1])

    def function(self, function: Callable[..., Any]) -> Function:
        """As the calculus calls it, with exact scalars."""

        def meaning(*scalars: Any) -> Any:
            values = [_value(s, type_) for s, type_ in zip(scalars, self.takes, strict=True)]
            try:
                given = function(*values)
            except Exception as error:  # whatever a user's function raises, its row has no value
                raise ValueError(f"{self.name}{tuple(values)}: {type(error).__name__}: {error}") from error
            return _scalar(self, given)

        takes = tuple(_KINDS[type_] for type_ in self.takes)
        return Function(PREFIX + self.name, meaning, takes, _KINDS[self.gives], can_fail=True, is_native=False)


SIGNATURES: dict[str, Signature] = {}  # of the process, as DuckDB's own are


def _value(scalar: Any, type_: Type) -> Any:
    match type_.kind:
        case "DOUBLE":
            return float(scalar)
        case "DATE":
            return EPOCH + dt.timedelta(days=scalar)
        case "TIMESTAMP":
            return _MIDNIGHT + scalar * _MICROSECOND
        case _:
            return scalar


def _scalar(signature: Signature, value: Any) -> Any:
    """Exactly the type that was declared: DuckDB would cast other values at the door, NULL it refuses as well."""
    match signature.gives.kind, value:
        case ("BOOLEAN", bool()) | ("VARCHAR", str()):
            return value
        case ("INTEGER" | "BIGINT") as kind, int() if not isinstance(value, bool):
            if -(1 << BITS[kind] - 1) <= value < 1 << BITS[kind] - 1:
                return value
        case "DOUBLE", float() | int() if not isinstance(value, bool) and math.isfinite(value):
            exact = Fraction(float(value))
            return exact.numerator if exact.denominator == 1 else exact
        case "DATE", dt.date() if not isinstance(value, dt.datetime):
            return (value - EPOCH).days
        case "TIMESTAMP", dt.datetime() if value.tzinfo is None:
            return (value - _MIDNIGHT) // _MICROSECOND
    raise ValueError(f"{signature.name} gave {value!r}, which is no {signature.gives}")
