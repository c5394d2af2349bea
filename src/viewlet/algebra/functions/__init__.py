"""The scalar functions beside the operators of :mod:`viewlet.algebra.terms`.

A new function is an entry in one of the tables here, a C++ function of the same name and a rule in :mod:`viewlet.sql`.
"""

from __future__ import annotations

from viewlet.algebra.functions.base import Function
from viewlet.algebra.functions.calendar import CALENDAR
from viewlet.algebra.functions.casts import CASTS
from viewlet.algebra.functions.moments import MOMENTS
from viewlet.algebra.functions.numbers import NUMBERS
from viewlet.algebra.functions.text import TEXT

FUNCTIONS: dict[str, Function] = {f.name: f for f in (*CALENDAR, *NUMBERS, *MOMENTS, *CASTS, *TEXT)}
