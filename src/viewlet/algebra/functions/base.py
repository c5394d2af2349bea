"""One scalar function: its meaning, and what every engine must know to call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

ValueKind = Literal["text", "boolean", "integer", "double", "number", "same", "last"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the calculus, NULL where an argument is.

    ``meaning`` takes and gives exact scalars. ``takes`` has the kind of each argument; where ``many``, the last one
    stands for any number of arguments, at least one. An ``integer`` has 63 bits. ``same`` is the common kind of all
    arguments that are so declared, in whose units the function computes (it must commute with powers of ten). A
    ``number`` is exact, of any scale: C++ gets its units and then its scale. One that is given has at most ``places``
    places, and ``last`` is the kind of the last argument: C++ gets the type of these as a template argument, and the
    ``places`` after all else.

    ``can_fail``: the function raises ``ValueError`` or ``OverflowError`` for some values. ``can_be_null``: it gives
    NULL for some values that are not. ``header`` is the header of the native runtime that has the C++ function of the
    same name; "": every program includes it. That function takes ``faults`` and the view where it can fail, ``texts``
    where it takes or gives a text, and then the arguments. ``cpp`` is its name if that is another one.

    ``is_native``: there is such a C++ function.

    ``rises``: the function never falls as its first argument grows and the others stay.
    """

    name: str
    meaning: Callable[..., Any]
    takes: tuple[ValueKind, ...]
    gives: ValueKind
    header: str = ""
    many: bool = False
    can_fail: bool = False
    can_be_null: bool = False
    places: int = 0
    rises: bool = False
    cpp: str = ""
    is_native: bool = True

    def fits(self, arguments: int) -> bool:
        """Whether the function takes so many arguments."""
        return arguments >= len(self.takes) if self.many else arguments == len(self.takes)

    def kinds(self, arguments: int) -> tuple[ValueKind, ...]:
        """The kind of each of so many arguments."""
        return self.takes + self.takes[-1:] * (arguments - len(self.takes))

    @property
    def is_of_texts(self) -> bool:
        return "text" in (*self.takes, self.gives)
