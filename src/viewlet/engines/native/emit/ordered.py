"""Ordered reads as C++: sums over ranges, runs of running sums, slices and extrema, on the trees of a map's orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from viewlet.algebra.query import Compare, View
from viewlet.algebra.terms import Op, Term, Var, free
from viewlet.engines.native.emit.layout import MapLayout, Member, OrderLayout
from viewlet.engines.native.emit.values import Cpp, Scope, type_of
from viewlet.loops.monotone import keeps_order
from viewlet.loops.names import renamed, renamed_order
from viewlet.loops.steps import Block, Cut, EachSlice, Extremum, InRun, Loop, Order, RangeSum, Runs, Step
from viewlet.program.kinds import BOOLEAN, Exact, Kind, key_kind

if TYPE_CHECKING:
    from viewlet.engines.native.emit.nest import AtHand, Nest


# How a key stands to a value, by the operator between them; the opposite; and which of them hold from some key on.
SIDES = {">": "ABOVE", ">=": "FROM", "<": "BELOW", "<=": "UP_TO"}
MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
OPPOSITE = {"ABOVE": "UP_TO", "FROM": "BELOW", "BELOW": "FROM", "UP_TO": "ABOVE"}


@dataclass(frozen=True, slots=True)
class Condition:
    """On a key: C++ that says whether it holds. ``bound``: the side of a value that is all it says, and that in C++."""

    text: str
    bound: tuple[str, str] | None


@dataclass(frozen=True)
class OrderedReads:
    """Writes the ordered reads of one function."""

    nest: Nest
    orders_of_runs: dict[str, OrderLayout] = field(default_factory=dict)  # by the C++ name of the runs

    def step(self, step: RangeSum | Runs | Extremum, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        match step:
            case RangeSum():
                self.range_sums([step], scope, at_hand)
            case Runs():
                self.runs(step, scope, at_hand)
            case Extremum():
                self.extremum(step, scope, at_hand)

    # -- sums over ranges ----------------------------------------------------------------------------------------------

    def alike(self, step: Step) -> object:
        """What range sums must have in common to be added up in one descent."""
        if not isinstance(step, RangeSum):
            return None
        order, _ = self.order(step.source, step.bound, step.order.key)
        inner = [cut.inner for cuts in step.order.ranges for cut in cuts if isinstance(cut, InRun)]
        names = {step.order.key: "§"} | {v: f"§{i}" for i, v in enumerate(dict.fromkeys(inner))}
        given = tuple(v if v in step.bound else None for v in step.source.outputs)
        return order.name, given, renamed_order(step.order, names)

    def range_sums(self, steps: list[RangeSum], scope: dict[str, Cpp], at_hand: AtHand) -> None:
        """Sums over the same ranges of one tree."""
        nest, first = self.nest, steps[0]
        order, found = self.order(first.source, first.bound, first.order.key)
        totals: dict[int, Cpp] = {}  # by lane
        for step in steps:
            lane = order.lane(self.member(step.source))
            if lane in totals:
                scope[step.var] = totals[lane]
                continue
            nest.total(step.var, scope)
            totals[lane] = scope[step.var]
            nest.untouched.pop(totals[lane].text, None)
        tree = self.tree(first.source, first.bound, order, found, scope, at_hand)
        wanted = ", ".join(map(str, totals))
        with self.given(tree):
            for up, down in self.ranges(first.source, first.order, order, found, scope):
                into = f"faults, {nest.terms.view}, {up}, {down}, {', '.join(t.text for t in totals.values())}"
                nest.out.add(f"{tree}->sum<{wanted}>({into});")

    def ranges(
        self, source: View, order: Order, laid_out: OrderLayout, found: MapLayout, scope: Mapping[str, Cpp]
    ) -> Iterator[tuple[str, str]]:
        """The two bounds of each range, inside loops over the runs that it is about."""
        nest = self.nest
        field = found.key[source.outputs.index(order.key)]
        key = nest.fresh(order.key)
        inside = {**scope, order.key: Cpp(key, field.kind)}
        for cuts in order.ranges:
            up, down, depth = list[Condition](), list[Condition](), nest.out.depth
            for cut in cuts:
                self.note_odd_keys(cut, order.key, laid_out, scope)
                if isinstance(cut, InRun):
                    begun, ended = self.run(cut, order.key, inside)
                    (up if cut.up else down).append(begun)
                    (down if cut.up else up).append(ended)
                else:
                    (up if cut.up else down).append(self.condition(cut, order.key, inside))
            yield self.predicate(key, tree_key(field.kind), up), self.predicate(key, tree_key(field.kind), down)
            while nest.out.depth > depth:
                nest.out.depth -= 1
                nest.out.add("}")

    def note_odd_keys(self, cut: Cut | InRun, key: str, order: OrderLayout, scope: Scope) -> None:
        """An order that is searched by what infinite keys or NaN would break takes none."""
        if isinstance(cut, Cut):
            order.finite_keys |= not keeps_order(cut.compare, key)
        elif not (keeps_order(cut.compare, key) and keeps_order(cut.compare, cut.inner)):
            order.finite_keys = self.orders_of_runs[scope[cut.runs].text].finite_keys = True

    def run(self, cut: InRun, key: str, scope: dict[str, Cpp]) -> tuple[Condition, Condition]:
        """Opens a loop over runs; the conditions that a key is in the run: [C(inside, k)] and not [C(outside, k)]."""
        nest, runs = self.nest, scope[cut.runs]
        run = nest.fresh("run")
        nest.out.add(f"for (const auto& {run} : {runs.text}) {{")
        nest.out.depth += 1
        sides = []
        for side, holds in (("inside", True), ("outside", False)):
            inner = {**scope, cut.inner: Cpp(f"{run}.{side}", runs.kind)}
            text = nest.compared(cut.compare, cut.plain, inner)
            known = f"!{run}.has_{side} || {text}" if holds else f"!({run}.has_{side} && {text})"
            bound = self.beside(cut.compare, cut.plain, holds, key, inner, unless=f", !{run}.has_{side}")
            sides.append(Condition(f"({known})", bound))
        return sides[0], sides[1]

    def holds(self, cut: Cut, scope: Scope) -> str:
        text = self.nest.compared(cut.compare, cut.plain, scope)
        return f"({text})" if cut.holds else f"!({text})"

    def condition(self, cut: Cut, key: str, scope: Scope) -> Condition:
        left, scope = self.fixed(cut.compare.left, cut.plain, key, scope)
        right, scope = self.fixed(cut.compare.right, cut.plain, key, scope)
        cut = replace(cut, compare=Compare(cut.compare.op, left, right))
        return Condition(self.holds(cut, scope), self.beside(cut.compare, cut.plain, cut.holds, key, scope))

    def fixed(self, term: Term, plain: bool, key: str, scope: Scope) -> tuple[Term, Scope]:
        """What keys are compared with is computed once."""
        if not isinstance(term, Op) or key in free(term) or not free(term):
            return term, scope
        value, name = self.nest.terms.term(term, scope, plain), self.nest.fresh("limit_of_keys")
        self.nest.out.add(f"const {value.type} {name} = {value.text};")
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
        of, value = (self.nest.terms.term(t, scope, plain) for t in (left, right))
        if of.optional or value.optional:
            return None
        side = SIDES[op] if holds else OPPOSITE[SIDES[op]]
        match type_of(of.kind), type_of(value.kind):
            case ("double", "double") | ("i64", "i64") if scale_of(of.kind) == scale_of(value.kind):
                return side, f"Beside<{type_of(of.kind)}, Side::{side}>{{{value.text}{unless}}}"
            case ("i64", "i128") if scale_of(of.kind) == scale_of(value.kind) and not unless:
                return side, f"beside<Side::{side}>({value.text})"
        return None

    def predicate(self, name: str, type_: str, conditions: list[Condition]) -> str:
        """Of what is compared alike, the narrower bound decides."""
        if not conditions:
            return "Everything{}"
        bounds = [c.bound for c in conditions if c.bound is not None]
        if len(bounds) == len(conditions) and len({side for side, _ in bounds}) == 1:
            return reduce(lambda a, b: f"both({a}, {b})", (text for _, text in bounds))
        return f"[&]({type_} {name}) {{ return {' && '.join(c.text for c in conditions)}; }}"

    # -- runs ----------------------------------------------------------------------------------------------------------

    def runs(self, step: Runs, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        nest = self.nest
        order, found = self.order(step.source, step.bound, step.key)
        member = self.member(step.source)
        field = found.key[step.source.outputs.index(step.key)]
        name, total, holds = nest.fresh(step.var), nest.fresh(step.total), nest.fresh("meets")
        kind = nest.types[step.total]
        test = self.holds(step.test, {**scope, step.total: Cpp(total, kind, summed=True)})
        self.orders_of_runs[name] = order
        nest.out.add(f"RunList<{tree_key(field.kind)}> {name};")
        nest.out.add(f"const auto {holds} = [&]({type_of(kind)} {total}) {{ return {test}; }};")
        tree = self.tree(step.source, step.bound, order, found, scope, at_hand)
        lane = order.lane(member, "AFTER" if step.after else "BEFORE")
        after = "true" if step.after else "false"
        call = f"{tree}->runs<{lane}, {after}>(faults, {nest.terms.view}, {holds}, {name});"
        nest.out.add(call if tree.startswith("(") else f"if ({tree}) {call}")
        if not tree.startswith("("):
            nest.out.add(f"else if ({holds}({{}})) {name}.push({{}});  // no keys: the sum over nothing")
        scope[step.var] = Cpp(name, key_kind(field.kind))

    # -- loops ---------------------------------------------------------------------------------------------------------

    def each_slice(self, steps: list[EachSlice], scope: Mapping[str, Cpp], at_hand: AtHand) -> None:
        """The slices of one index; what several steps do with them is done together."""
        nest, first = self.nest, steps[0]
        source, names = first.source, first.source.outputs
        at = self.slice_of(first)
        order, found = self.order(source, frozenset(names[i] for i in at), first.key)
        given = tuple(i for i in at if names[i] in first.bound)
        entry = nest.fresh(f"{found.name}_slice")
        with nest.representable(found, names, given, scope) as key:
            if given:
                probe = ", ".join(f".{found.key[i].name} = {key[i]}" for i in given)
                index = order.slice_index(tuple(at.index(i) for i in given))
                head = f"auto* {entry} : {order.name}.slices.slice<{index}>({{{probe}}})"
            else:
                head = f"auto* {entry} : {order.name}.slices.all()"
            with nest.out.inside(f"for ({head})"):
                columns = {names[i]: nest.column(f"{entry}->key", found.key[i]) for i in at if i not in given}
                nest.loops += 1
                tree = {(order.name, tuple(names[i] for i in at)): f"(&{entry}->values.tree)"}
                nest.block(self.together(steps), {**scope, **columns}, {**at_hand, **tree})
                nest.loops -= 1

    def slice_of(self, step: EachSlice) -> tuple[int, ...]:
        names = step.source.outputs
        return tuple(i for i, n in enumerate(names) if n != step.key and n not in step.summed)

    def slices_alike(self, step: EachSlice) -> object:
        names = step.source.outputs
        order, _ = self.order(step.source, frozenset(names[i] for i in self.slice_of(step)), step.key)
        return order.name, tuple(n if n in step.bound else None for n in names)

    def together(self, steps: list[EachSlice]) -> Block:
        first, body = steps[0], steps[0].body
        for step in steps[1:]:
            body += renamed(step.body, dict(zip(step.source.outputs, first.source.outputs, strict=True)))
        return body

    def loop(self, step: Loop, scope: Mapping[str, Cpp], at_hand: AtHand) -> None:
        """The entries in the ranges of a loop."""
        nest = self.nest
        assert isinstance(step.source, View)
        assert step.order is not None
        order, found = self.order(step.source, step.bound, step.order.key)
        order.lane(self.member(step.source))
        tree = self.tree(step.source, step.bound, order, found, scope, at_hand)
        entry, turn = nest.fresh(found.name), nest.fresh("turn")
        nest.loops += 1
        with self.given(tree):
            with nest.out.inside(f"const auto {turn} = [&](auto* {entry})"):
                nest.turn(step, found, entry, scope, at_hand)
            nest.out.lines[-1] += ";"
            for up, down in self.ranges(step.source, step.order, order, found, scope):
                nest.out.add(f"for (u32 id : {tree}->range({up}, {down})) {turn}(&{found.name}.named(id));")
        nest.loops -= 1

    def extremum(self, step: Extremum, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        """An order of its own for the view: others of the map may have entries where it has none."""
        nest = self.nest
        order, found = self.order(step.source, step.bound, step.key, alone=True)
        order.lane(self.member(step.source))
        field = found.key[step.source.outputs.index(step.key)]
        tree = self.tree(step.source, step.bound, order, found, scope, at_hand)
        name, type_ = nest.fresh(step.var), type_of(field.kind)
        nest.out.add(f"Opt<{type_}> {name};")
        there = f"!{tree}->is_empty()" if tree.startswith("(") else f"{tree} && !{tree}->is_empty()"
        entry = f"{found.name}.named({tree}->{'greatest' if step.greatest else 'least'}())"
        nest.out.add(f"if ({there}) {name} = {entry}.key.{field.name};")
        scope[step.var] = Cpp(name, field.kind, optional=True)

    # -- trees ---------------------------------------------------------------------------------------------------------

    def member(self, source: View) -> Member:
        return self.nest.layout[source.name][1]

    def order(
        self, source: View, bound: frozenset[str], key: str, alone: bool = False
    ) -> tuple[OrderLayout, MapLayout]:
        found, member = self.nest.layout[source.name]
        at = tuple(i for i, n in enumerate(source.outputs) if n in bound)
        return found.order(at, source.outputs.index(key), member if alone else None), found

    def tree(
        self,
        source: View,
        bound: frozenset[str],
        order: OrderLayout,
        found: MapLayout,
        scope: Mapping[str, Cpp],
        at_hand: AtHand,
    ) -> str:
        """A pointer to the tree of a slice: in brackets where it is one for sure, else a name that may be null."""
        nest, names = self.nest, source.outputs
        if not order.slice_at:
            return f"(&{order.name}.only())"
        at = at_hand.get((order.name, tuple(names[i] for i in order.slice_at)))
        if at is not None:
            return at
        name = nest.fresh("tree")
        nest.out.add(f"{order.type_name}::Tree* {name}{{}};")
        with nest.representable(found, names, order.slice_at, scope) as key:
            slice_ = ", ".join(key[i] for i in order.slice_at)
            nest.out.add(f"{name} = {order.name}.find({{{slice_}}});")
        return name

    @contextmanager
    def given(self, tree: str) -> Iterator[None]:
        if tree.startswith("("):
            yield
        else:
            with self.nest.out.inside(f"if ({tree})"):
                yield


def tree_key(kind: Kind) -> str:
    """How a tree holds a key: a truth value as 0 or 1."""
    return "i64" if kind == BOOLEAN else type_of(kind)


def scale_of(kind: Kind) -> int:
    return kind.scale if isinstance(kind, Exact) else 0
