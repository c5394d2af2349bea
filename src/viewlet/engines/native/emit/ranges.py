"""Ranges of ordered keys as C++: the two predicates that a tree is searched by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import reduce

from viewlet.algebra.query import Compare
from viewlet.algebra.terms import Op, Term, Var, free
from viewlet.engines.native.emit.context import Context
from viewlet.engines.native.emit.layout import Field, OrderLayout
from viewlet.engines.native.emit.values import Cpp, Scope, tree_key, type_of, width
from viewlet.loops.monotone import keeps_order
from viewlet.loops.steps import Cut, InRun, Order
from viewlet.program.kinds import COUNT_BITS, DOUBLE, REAL, Exact, Inexact, Kind

# How a key stands to a value, by the operator between them; the opposite; and which of them hold from some key on.
SIDES = {">": "ABOVE", ">=": "FROM", "<": "BELOW", "<=": "UP_TO"}
MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
INVERSE = {"+": "-", "-": "+", "*": "/", "/": "*"}
OPPOSITE = {"ABOVE": "UP_TO", "FROM": "BELOW", "BELOW": "FROM", "UP_TO": "ABOVE"}


@dataclass(frozen=True, slots=True)
class Condition:
    """On a key: C++ that says whether it holds. ``bound``: the side of a value that is all it says, and that in C++.

    ``change``: about where it changes, a double.
    """

    text: str
    bound: tuple[str, str] | None
    change: str | None = None


@dataclass(frozen=True)
class Ranges:
    """Writes the ranges of one function."""

    context: Context
    orders_of_runs: dict[str, OrderLayout] = field(default_factory=dict)  # by the C++ name of the runs

    def bounds(self, order: Order, laid_out: OrderLayout, by: Field, scope: Scope) -> Iterator[tuple[str, str]]:
        """The two bounds of each range, inside loops over the runs that it is about; ``by`` is the key's column."""
        key = self.context.fresh(order.key)
        inside = {**scope, order.key: Cpp(key, by.kind)}
        for cuts in order.ranges:
            up, down = list[Condition](), list[Condition]()
            with ExitStack() as loops:
                for cut in cuts:
                    self.note_odd_keys(cut, order.key, laid_out, scope)
                    if isinstance(cut, InRun):
                        begun, ended = self.run(cut, order.key, inside, loops)
                        (up if cut.up else down).append(begun)
                        (down if cut.up else up).append(ended)
                    else:
                        (up if cut.up else down).append(self.condition(cut, order.key, inside))
                yield _predicate(key, tree_key(by.kind), up, "FROM"), _predicate(key, tree_key(by.kind), down, "BELOW")

    def note_odd_keys(self, cut: Cut | InRun, key: str, order: OrderLayout, scope: Scope) -> None:
        """An order that is searched by what infinite keys or NaN would break takes none."""
        if isinstance(cut, Cut):
            order.finite_keys |= not keeps_order(cut.compare, key)
        elif not (keeps_order(cut.compare, key) and keeps_order(cut.compare, cut.inner)):
            order.finite_keys = self.orders_of_runs[scope[cut.runs].text].finite_keys = True

    def run(self, cut: InRun, key: str, scope: Scope, loops: ExitStack) -> tuple[Condition, Condition]:
        """Opens a loop over runs; the conditions that a key is in the run: [C(inside, k)] and not [C(outside, k)]."""
        runs, run = scope[cut.runs], self.context.fresh("run")
        loops.enter_context(self.context.out.inside(f"for (const auto& {run} : {runs.text})"))
        sides = []
        for side, holds in (("inside", True), ("outside", False)):
            inner = {**scope, cut.inner: Cpp(f"{run}.{side}", runs.kind)}
            text = self.context.terms.compared(cut.compare, cut.plain, inner)
            known = f"!{run}.has_{side} || {text}" if holds else f"!({run}.has_{side} && {text})"
            bound = self.beside(cut.compare, cut.plain, holds, key, inner, unless=f", !{run}.has_{side}")
            sides.append(Condition(f"({known})", bound))
        return sides[0], sides[1]

    def holds(self, cut: Cut, scope: Scope) -> str:
        text = self.context.terms.compared(cut.compare, cut.plain, scope)
        return f"({text})" if cut.holds else f"!({text})"

    def condition(self, cut: Cut, key: str, scope: Scope) -> Condition:
        left, scope = self.fixed(cut.compare.left, cut.plain, key, scope)
        right, scope = self.fixed(cut.compare.right, cut.plain, key, scope)
        cut = replace(cut, compare=Compare(cut.compare.op, left, right))
        bound = self.beside(cut.compare, cut.plain, cut.holds, key, scope)
        return Condition(self.holds(cut, scope), bound, self.change(cut.compare, key, scope))

    def change(self, compare: Compare, key: str, scope: Scope) -> str | None:
        """Where both sides are equal, if sums, products and quotients of doubles lead from one side to a key in it."""
        term, other = compare.left, self.double(compare.right, scope)
        if key not in free(term):
            term, other = compare.right, self.double(compare.left, scope)
        if key in free(compare.left) & free(compare.right) or scope[key].kind != DOUBLE:
            return None
        while other is not None and term != Var(key):
            match term:
                case Op(name, (inner, by)) if name in INVERSE and key not in free(by):
                    term, other = inner, _joined(other, INVERSE[name], self.double(by, scope))
                case Op("+" | "*" as name, (by, inner)) if key not in free(by):
                    term, other = inner, _joined(other, INVERSE[name], self.double(by, scope))
                case Op("-", (by, inner)) if key not in free(by):
                    term, other = inner, _joined(self.double(by, scope), "-", other)
                case _:
                    return None
        return other

    def double(self, term: Term, scope: Scope) -> str | None:
        """About what a term is."""
        if isinstance(term, Op):
            if term.name not in INVERSE or len(term.args) != 2:
                return None
            return _joined(self.double(term.args[0], scope), term.name, self.double(term.args[1], scope))
        value = self.context.terms.term(term, scope, True)
        if value.optional or not isinstance(value.kind, (Exact, Inexact)):
            return None
        return self.context.terms.to(value, REAL).text + ".hi"

    def fixed(self, term: Term, plain: bool, key: str, scope: Scope) -> tuple[Term, Scope]:
        """What keys are compared with is computed once."""
        if not isinstance(term, Op) or key in free(term) or not free(term):
            return term, scope
        terms, name = self.context.terms, self.context.fresh("limit_of_keys")
        value = terms.bounded(terms.term(term, scope, plain))
        self.context.out.add(f"const {value.type} {name} = {value.text};")
        return Var(f"${name}"), {**scope, f"${name}": Cpp(name, value.kind, value.optional)}

    def beside(
        self, compare: Compare, plain: bool, holds: bool, key: str, scope: Scope, unless: str = ""
    ) -> tuple[str, str] | None:
        """On which side the keys are, and of which value, where keys are just compared with a value like them."""
        op, left, right = compare.op, compare.left, compare.right
        if right == Var(key):
            op, left, right = MIRRORED.get(op, op), right, left
        if left != Var(key) or key in free(right) or op not in SIDES:
            return None
        of, value = (self.context.terms.term(t, scope, plain) for t in (left, right))
        if of.optional or value.optional:
            return None
        side = SIDES[op] if holds else OPPOSITE[SIDES[op]]
        if _same_type(of.kind, value.kind):
            return side, f"Beside<{type_of(of.kind)}, Side::{side}>{{{value.text}{unless}}}"
        if _wider(of.kind, value.kind) and not unless:
            return side, f"beside<Side::{side}>({value.text})"
        return None


def _predicate(name: str, type_: str, conditions: list[Condition], side: str) -> str:
    """Of what is compared alike, the narrower bound decides; ``side``: of the place where all of it begins or ends."""
    if not conditions:
        return "Everything{}"
    bounds = [c.bound for c in conditions if c.bound is not None]
    if len(bounds) == len(conditions) and len({side for side, _ in bounds}) == 1:
        return reduce(lambda a, b: f"both({a}, {b})", (text for _, text in bounds))
    holds = " && ".join(c.text for c in conditions)
    changes = [c.change for c in conditions if c.change is not None]
    if len(changes) < len(conditions):
        return f"[&]({type_} {name}) {{ return {holds}; }}"
    narrower = reduce(lambda a, b: f"{'greater' if side == 'FROM' else 'lesser'}({a}, {b})", changes)
    return f"solved<Side::{side}>(faults, {narrower}, [&]({type_} {name}, Faults& faults) {{ return {holds}; }})"


def _joined(left: str | None, op: str, right: str | None) -> str | None:
    return None if left is None or right is None else f"({left} {op} {right})"


def _same_type(key: Kind, value: Kind) -> bool:
    """Whether the runtime compares a key and a value as they are: two doubles, or two 64-bit integers of one scale."""
    if isinstance(key, Exact) and isinstance(value, Exact):
        return key.scale == value.scale and width(key) == width(value) == COUNT_BITS
    return key == value == DOUBLE


def _wider(key: Kind, value: Kind) -> bool:
    """Whether a value of one scale with the key may be beyond all keys."""
    if not isinstance(key, Exact) or not isinstance(value, Exact):
        return False
    return key.scale == value.scale and width(key) < width(value)
