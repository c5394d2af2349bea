"""Which sets of keys a condition admits, where it is monotone in the key: from some key on, up to one, or both.

An ordered access path never solves a comparison for its key. It is enough to know on which side of a key the comparison
holds: a - b > 1000 holds for a from some a on, whatever b is, and a search asks it of one key after another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.query import Compare
from viewlet.algebra.terms import COMPARISONS, FALSE, NEGATED, TRUE, Const, Op, Term, Var, free
from viewlet.loops.steps import InRun, Range

Ranges = tuple[Range, ...]  # no key is in two of them
MOST_RANGES = 8  # a disjunction that falls into more is not worth as many searches
Side = Callable[[Compare], Ranges | None]  # the keys for which one comparison holds; None where they are no ranges


def direction(term: Term, var: str) -> int | None:
    """1 where the term never falls as ``var`` grows, -1 where it never rises, 0 without ``var``, None if unknown."""
    if var not in free(term):
        return 0
    match term:
        case Var():
            return 1
        case Op("+", (a, b)):
            return _agreed(direction(a, var), direction(b, var))
        case Op("-", (a, b)):
            return _agreed(direction(a, var), _opposite(direction(b, var)))
        case Op("*", (a, Const(c))) | Op("*", (Const(c), a)) | Op("/", (a, Const(c))):
            way = direction(a, var)
            if way is None or c is None or isinstance(c, str):
                return None
            return way if c > 0 else -way if c < 0 else 0
        case Op("double", (a,)):
            return direction(a, var)
        case Op(name, (a, *more)) if _keeps_rising(name, more):
            return direction(a, var)
    return None


def _keeps_rising(name: str, more: list[Term]) -> bool:
    """A function that never falls as its first argument grows, with constants besides."""
    return name in FUNCTIONS and FUNCTIONS[name].rises and all(isinstance(a, Const) for a in more)


def _agreed(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return None
    return a or b if a == b or 0 in (a, b) else None


def _opposite(a: int | None) -> int | None:
    return None if a is None else -a


def is_known(condition: Compare, var: str) -> bool:
    """[``var`` is not NULL], which every key of an order meets."""
    return condition == Compare("=", Op("is_null", (Var(var),)), FALSE)


def holds_upwards(compare: Compare, var: str) -> bool | None:
    """Whether <, <=, > or >= holds from some value of ``var`` on; False: up to one; None: neither is known.

    A comparison without ``var`` holds for all or none: from the first on, or from beyond the last.
    """
    way = _agreed(direction(compare.left, var), _opposite(direction(compare.right, var)))
    if way is None or compare.op in ("=", "<>"):
        return None
    return way == 0 or (way > 0) == (compare.op in (">", ">="))


def admits_unknown(condition: Compare, var: str) -> bool:
    """Whether a condition can be TRUE where ``var`` is NULL: then a comparison with it is not."""
    match condition:
        case Compare("=", Op(name, args), right) if right == TRUE and name in _LOGIC:
            return _unknown(Op(name, args), var)
        case _:
            return var not in free(condition.left) | free(condition.right)


def _unknown(term: Term, var: str) -> bool:
    match term:
        case Op("and", args):
            return all(_unknown(a, var) for a in args)
        case Op("or", args):
            return any(_unknown(a, var) for a in args)
        case Op("not", (a,)):
            inwards = _negated(a)
            return inwards is None or _unknown(inwards, var)
        case _:
            return var not in free(term)


def keeps_order(compare: Compare, var: str) -> bool:
    """Whether the comparison is monotone in ``var`` even where that is infinite or NaN, which is the greatest.

    So it is where only constants are added to ``var`` or multiply it: -NaN is the greatest, too, and ∞ - ∞ is NaN.
    """
    sides = compare.left, compare.right
    return any(_rises(a, var) and var not in free(b) for a, b in (sides, sides[::-1]))


def _rises(term: Term, var: str) -> bool:
    match term:
        case Var(name):
            return name == var
        case Op("+", (a, Const())) | Op("+", (Const(), a)) | Op("-", (a, Const())) | Op("double", (a,)):
            return _rises(a, var)
        case Op("*", (a, Const(c))) | Op("*", (Const(c), a)) | Op("/", (a, Const(c))):
            return isinstance(c, (int, Fraction)) and c > 0 and _rises(a, var)
        case Op(name, (a, *more)):
            return _keeps_rising(name, more) and _rises(a, var)
    return False


# -- conditions as ranges ----------------------------------------------------------------------------------------------


def ranges_of(condition: Compare, side: Side) -> Ranges | None:
    """The keys for which a condition is TRUE: ``side`` knows those of one inequality.

    = is <= and >=, <> is < or >; a boolean term is taken apart, NOT first moved inwards (which NULL allows).
    """
    match condition:
        case Compare("=", Op("is_null", (Var(),)), right) if right == FALSE:
            return side(condition)
        case Compare("=", Op(name, args), right) if right == TRUE and name in _LOGIC:
            return _of_term(name, args, side)
        case Compare("=", left, right):
            return both(side(Compare("<=", left, right)), side(Compare(">=", left, right)))
        case Compare("<>", left, right):
            return _disjoint(side(Compare("<", left, right)), side(Compare(">", left, right)))
        case _:
            return side(condition)


_LOGIC = frozenset({"and", "or", "not", *COMPARISONS})


def _of_term(name: str, args: tuple[Term, ...], side: Side) -> Ranges | None:
    match name, args:
        case "and", _:
            return reduce(both, (_of(a, side) for a in args))
        case "or", _:
            return reduce(_either, (_of(a, side) for a in args))
        case "not", (a,):
            inwards = _negated(a)
            return None if inwards is None else _of(inwards, side)
        case _, (a, b) if name in COMPARISONS:
            return ranges_of(Compare(name, a, b), side)
    return None


def _of(term: Term, side: Side) -> Ranges | None:
    return _of_term(term.name, term.args, side) if isinstance(term, Op) and term.name in _LOGIC else None


def _negated(term: Term) -> Term | None:
    """NOT term, for truth values of three kinds."""
    match term:
        case Op("not", (a,)):
            return a
        case Op(("and" | "or") as name, args):
            inside = [_negated(a) for a in args]
            known = tuple(a for a in inside if a is not None)
            return Op("or" if name == "and" else "and", known) if len(known) == len(inside) else None
        case Op(name, args) if name in COMPARISONS:
            return Op(NEGATED[name], args)
    return None


def both(a: Ranges | None, b: Ranges | None) -> Ranges | None:
    """A ∩ B."""
    if a is None or b is None:
        return None
    ranges = tuple(x + tuple(c for c in y if c not in x) for x in a for y in b)
    return ranges if len(ranges) <= MOST_RANGES else None


def _disjoint(a: Ranges | None, b: Ranges | None) -> Ranges | None:
    """A ∪ B where they are known to have nothing in common."""
    return None if a is None or b is None else a + b


def _either(a: Ranges | None, b: Ranges | None) -> Ranges | None:
    """A ∪ B = A + (B without A)."""
    if a is None or b is None:
        return None
    outside = _outside(a)
    return None if outside is None else _disjoint(a, both(b, outside))


def _outside(ranges: Ranges) -> Ranges | None:
    """What is in none of the ranges: for one range c₁ c₂ …, not c₁, or c₁ and not c₂, …"""
    outside: Ranges | None = ((),)
    for cuts in ranges:
        beside: Ranges = ()
        for i, cut in enumerate(cuts):
            if isinstance(cut, InRun):
                return None
            beside += ((*cuts[:i], replace(cut, up=not cut.up, holds=not cut.holds)),)
        outside = both(outside, beside)
    return outside
