"""Arithmetic and conversions as C++: exact numbers as integers of last places, watched where they may not fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from viewlet.engines.native.emit.values import (
    Cpp,
    as_type,
    integer,
    lifted,
    made,
    of,
    real,
    type_of,
    unlikely_wide,
    width,
)
from viewlet.program.kinds import (
    BOOLEAN,
    COUNT_BITS,
    DOUBLE,
    NULL,
    REAL,
    TEXT,
    WIDEST,
    Exact,
    Inexact,
    Kind,
    Unfit,
    plus,
    scaled_bits,
    times,
)


@dataclass
class Numbers:
    """``view`` is the C++ name of the view that an overflow is reported for."""

    view: str = "0"

    def watched(self, name: str, *args: Cpp, kind: Kind, more: str = "") -> Cpp:
        """A call that reports a fault where the outcome does not fit."""
        text = f"{name}(faults, {self.view}, {', '.join(a.text for a in args)}{more})"
        return made(text, kind, *args, can_fail=True)

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def times(self, a: Cpp, b: Cpp) -> Cpp:
        kind = times([a.kind, b.kind])
        if not isinstance(kind, Exact):
            return self.real_times(a, b)
        if not unlikely_wide(kind):
            return made(f"({as_type(a, kind)} * {b.text})", kind, a, b)
        return self.watched("mul", a, b, kind=kind)

    def real_times(self, a: Cpp, b: Cpp) -> Cpp:
        a, b = self.inexact(a), self.inexact(b)
        both = (a.kind, b.kind) == (DOUBLE, DOUBLE)
        text = f"product({a.text}, {b.text})" if both else f"({a.text} * {b.text})"
        return made(text, REAL, a, b, made_of=of(a, b))

    def plus(self, op: str, a: Cpp, b: Cpp) -> Cpp:
        kind = plus([a.kind, b.kind])
        if (a.kind, b.kind) == (DOUBLE, DOUBLE):
            text = f"{'sum_of' if op == '+' else 'difference'}({a.text}, {b.text})"
            return made(text, REAL, a, b, made_of=of(a, b))
        if not isinstance(kind, Exact):
            left, right = self.to(a, REAL), self.to(b, REAL)
            return made(f"({left.text} {op} {right.text})", REAL, left, right, made_of=of(a, b))
        a, b = self.rescaled(a, kind.scale), self.rescaled(b, kind.scale)
        if not unlikely_wide(kind):
            return made(f"({as_type(a, kind)} {op} {b.text})", kind, a, b)
        return self.watched("add" if op == "+" else "subtract", a, b, kind=kind)

    def compare(self, op: str, a: Cpp, b: Cpp) -> Cpp:
        """SQL's comparison of two values that are there."""
        if isinstance(a.kind, Exact) and isinstance(b.kind, Exact):
            scale = max(a.kind.scale, b.kind.scale)
            a, b = self.rescaled(a, scale), self.rescaled(b, scale)
        elif isinstance(a.kind, Inexact) or isinstance(b.kind, Inexact):
            a, b = self.bounded(a), self.bounded(b)
            if (a.kind, b.kind) != (DOUBLE, DOUBLE):
                a, b = self.to(a, REAL), self.to(b, REAL)
            return made(_inexact_comparison(op, a.text, b.text), BOOLEAN, a, b)
        elif TEXT in (a.kind, b.kind) and op not in ("=", "<>"):
            return made(f"texts.compare({a.text}, {b.text}) {op} 0", BOOLEAN, a, b)
        return made(f"{a.text} { ({'=': '==', '<>': '!='}.get(op, op)) } {b.text}", BOOLEAN, a, b)

    def bounded(self, a: Cpp) -> Cpp:
        """What doubles came to, watched: where they are finite it must be, too."""
        if a.kind != REAL or a.made_of is None:
            return a
        given = "".join(f", {double}" for double in a.made_of)
        return replace(self.watched("bounded", a, kind=REAL, more=given), optional=a.optional)

    # -- conversions ---------------------------------------------------------------------------------------------------

    def to(self, a: Cpp, kind: Kind) -> Cpp:
        """``a`` as a value of another kind, watched where it may not fit."""
        if a.optional:
            return lifted([a], lambda known: self.to(known[0], kind))
        match a.kind, kind:
            case Exact(), Exact():
                return self.to_exact(a, kind)
            case Exact(scale, _), Inexact("double"):
                return made(f"to_double({a.text}, {scale})", DOUBLE, a)
            case Exact(), Inexact("real") if a.constant is not None:
                return self.to(real(a.constant), REAL)
            case Exact(scale, _), Inexact():
                return made(f"real_of({a.text}{f', {scale}' if scale else ''})", REAL, a)
            case Inexact("double"), Inexact("real"):
                return made(f"Real({a.text})", REAL, a)
            case Inexact("real"), Inexact("double"):
                return made(f"{a.text}.hi", DOUBLE, a)
            case Inexact(), Exact(0, _):
                return made(f"whole({a.text})", kind, a)
        if a.kind != kind:
            raise Unfit(f"{a.kind} as {kind}")
        return a

    def to_exact(self, a: Cpp, kind: Exact) -> Cpp:
        assert isinstance(a.kind, Exact)
        places = a.kind.scale - kind.scale
        if places > 0:
            a = self.watched("scale_down", a, kind=Exact(kind.scale, WIDEST), more=f", {places}")
        elif places < 0:
            a = self.rescaled(a, kind.scale)
        if isinstance(a.kind, Exact) and width(a.kind) > width(kind):
            return self.watched("narrow", a, kind=kind)
        return replace(a, text=as_type(a, kind), kind=kind, constant=None)

    def rescaled(self, a: Cpp, scale: int) -> Cpp:
        """The same number with at least as many places."""
        assert isinstance(a.kind, Exact)
        if a.kind.scale == scale:
            return a
        kind = Exact(scale, min(scaled_bits(a.kind, scale) + (a.kind.bits == COUNT_BITS), WIDEST))
        if unlikely_wide(kind):
            return self.watched("scale_up", a, kind=kind, more=f", {scale - a.kind.scale}")
        power = 10 ** (scale - a.kind.scale)
        return made(f"({as_type(a, kind)} * {integer(power, Exact(0, power.bit_length()))})", kind, a)

    def inexact(self, a: Cpp) -> Cpp:
        """A factor of a product of doubles: a small whole number is one exactly."""
        if a.constant is not None:
            return real(a.constant)
        match a.kind:
            case Exact(0, bits) if bits <= 53:
                return made(f"double({a.text})", DOUBLE, a)
            case Exact():
                return self.to(a, REAL)
        return a

    def held(self, a: Cpp, kind: Kind, optional: bool) -> Cpp:
        """``a`` as exactly the type that a field or variable of ``kind`` has.

        A NULL as the key of a column that is never NULL stands behind a test that fails, and still has to compile.
        """
        type_ = f"Opt<{type_of(kind)}>" if optional else type_of(kind)
        if a.kind == NULL:
            return Cpp(f"{type_}{{}}", kind, optional)
        if a.optional:
            return a if a.kind == kind else lifted([a], lambda known: self.held(known[0], kind, False))
        converted = self.to(a, kind)
        return made(f"{type_}({converted.text})", kind, converted, optional=optional)


def _inexact_comparison(op: str, a: str, b: str) -> str:
    return {
        "=": f"equal({a}, {b})",
        "<>": f"!equal({a}, {b})",
        "<": f"less({a}, {b})",
        ">": f"less({b}, {a})",
        "<=": f"!less({b}, {a})",
        ">=": f"!less({a}, {b})",
    }[op]
