"""Loop nests as text, and back: ``parse_block(show_block(block)) == block``.

::

    let x = term                                          x has this value from here on
    same x = term { … }                                   where x is this value already, NULL being NULL
    if [a < b] { … }                                      where the comparison holds
    get view[][x, y] as m { … }                           a lookup; m is the multiplicity
    for view[][x, y] given (x) as m { … }                 a slice: x has a value, y gets one
    for … as m ordered by y within (range or …) one { …}  of the slice only these ranges; "one": one key at most
    slices of view[][x, y] given () by y over (z) { … }   each x that has an order of y; z is summed out
    s = sum of view[][x, y] given (x) ordered by y within (…)
    r = runs of view[][x, y] given (x) by y before as t where up [t > 3]
    k = least of view[][x, y] given (x) by y              or greatest
    total t { … add t += product … }                      t is their sum from here on
    nonzero t { … }                                       where a total is not 0
    group g { … put g[x] += product … }                   g is their sum by x
    each g[x] { … }                                       every x with a sum that is not 0
    emit view[x] += product                               the change of a view

A range is ``all``, or bounds joined by ``and``. A bound is one of these:

* ``up [y > a]``: it holds for y from some key on; ``down``: up to some key. ``not up [y > a]`` is the other side.
* ``up [k < y] in r as k``: y lies in a run of r.

A product is ``a * b``, and ``()`` is 1. A ``?`` behind ``if``, a factor or a comparison says that it may be NULL. A
``!`` behind one of these, ``let`` or ``same`` says that something inside may be NULL.
"""

from __future__ import annotations

from collections.abc import Iterator

from typing_extensions import assert_never

from viewlet.algebra.query import Atom, Compare, Delta, Rel, View
from viewlet.algebra.text import Reader
from viewlet.loops.steps import (
    Add,
    Block,
    Cut,
    EachGroup,
    EachSlice,
    Emit,
    Extremum,
    Factor,
    Get,
    Group,
    InRun,
    Let,
    Loop,
    Nonzero,
    Order,
    Product,
    Put,
    Range,
    RangeSum,
    Runs,
    Same,
    Step,
    Test,
    Total,
)

INDENT = "  "

# -- printing ----------------------------------------------------------------------------------------------------------


def show_block(block: Block, depth: int = 0) -> str:
    """One step a line, what stands inside it below."""
    return "\n".join(line for step in block for line in _lines(step, depth))


def _lines(step: Step, depth: int) -> Iterator[str]:
    head = f"{INDENT * depth}{_head(step)}"
    if isinstance(step, (Let, RangeSum, Runs, Extremum, Add, Put, Emit)):
        yield head
    elif step.body:
        yield f"{head} {{"
        for inner in step.body:
            yield from _lines(inner, depth + 1)
        yield f"{INDENT * depth}}}"
    else:
        yield f"{head} {{}}"


def _head(step: Step) -> str:
    match step:
        case Let(var, term, plain):
            return f"let{_flags(False, plain)} {var} = {term.text}"
        case Same(var, term, plain, _):
            return f"same{_flags(False, plain)} {var} = {term.text}"
        case Test(compare, nullable, plain, _):
            return f"if{_flags(nullable, plain)} {compare.text}"
        case Get() | Loop() | EachSlice() | RangeSum() | Runs() | Extremum():
            return _read(step)
        case Total(var, _):
            return f"total {var}"
        case Add(var, product):
            return f"add {var} += {_product(product)}"
        case Nonzero(var, _):
            return f"nonzero {var}"
        case Group(name, _):
            return f"group {name}"
        case Put(name, keys, product):
            return f"put {name}{_names(keys, '[]')} += {_product(product)}"
        case EachGroup(name, keys, _, value):
            return f"each {name}{_names(keys, '[]')}" + (f" as {value}" if value else "")
        case Emit(key, product, view):
            return f"emit {view}{_names(key, '[]')} += {_product(product)}"
        case _:
            assert_never(step)


def _read(step: Get | Loop | EachSlice | RangeSum | Runs | Extremum) -> str:
    if isinstance(step, Get):
        return f"get {step.source.text} as {step.value}"
    source = f"{step.source.text} given {_names(sorted(step.bound))}"
    match step:
        case Loop(_, _, value, _, order):
            return f"for {source} as {value}{_ordered(order)}"
        case EachSlice(_, _, key, summed, _):
            return f"slices of {source} by {key} over {_names(sorted(summed))}"
        case RangeSum(var, _, _, order):
            return f"{var} = sum of {source}{_ordered(order)}"
        case Runs(var, _, _, key, after, total, test):
            side = "after" if after else "before"
            return f"{var} = runs of {source} by {key} {side} as {total} where {_bound(test)}"
        case Extremum(var, _, _, key, greatest, place):
            at = "" if place is None else f" at {place.text}"
            return f"{var} = {'greatest' if greatest else 'least'} of {source} by {key}{at}"


def _flags(nullable: bool, plain: bool) -> str:
    return "?" * nullable + "!" * (not plain)


def _names(names: tuple[str, ...] | list[str], around: str = "()") -> str:
    return f"{around[0]}{', '.join(names)}{around[1]}"


def _product(product: Product) -> str:
    return " * ".join(f"{f.term.text}{_flags(f.nullable, f.plain)}" for f in product) or "()"


def _ordered(order: Order | None) -> str:
    if order is None:
        return ""
    ranges = " or ".join(" and ".join(map(_bound, bounds)) or "all" for bounds in order.ranges)
    return f" ordered by {order.key} within ({ranges}){' one' * order.single}"


def _bound(bound: Cut | InRun) -> str:
    text = f"{'up' if bound.up else 'down'} {bound.compare.text}{_flags(bound.nullable, bound.plain)}"
    if isinstance(bound, InRun):
        return f"{text} in {bound.runs} as {bound.inner}"
    return text if bound.holds else f"not {text}"


# -- parsing -----------------------------------------------------------------------------------------------------------


def parse_block(text: str) -> Block:
    """The block that prints as ``text``."""
    reader = _BlockReader(text)
    block = reader.block()
    reader.end()
    return block


class _BlockReader(Reader):
    """A method for each kind of step, named after the word that it begins with."""

    def block(self) -> Block:
        steps: list[Step] = []
        while self.kind() == "name":
            steps.append(self.step())
        return tuple(steps)

    def body(self) -> Block:
        self.expect("{")
        block = self.block()
        self.expect("}")
        return block

    def step(self) -> Step:
        if self.peek(1) == "=":
            return self.defined(self.name())
        start = self.at
        word = self.name()
        match word:
            case "let" | "same":
                return self.valued(word)
            case "if":
                nullable, plain = self.flags()
                return Test(self.comparison(), nullable, plain, self.body())
            case "get":
                source = self.atom()
                self.expect("as")
                return Get(source, self.name(), self.body())
            case "for":
                return self.loop()
            case "slices":
                return self.slices()
            case "total":
                return Total(self.name(), self.body())
            case "nonzero":
                return Nonzero(self.name(), self.body())
            case "group":
                return Group(self.name(), self.body())
            case "each":
                return self.each_group()
            case "add":
                var = self.name()
                self.expect("+=")
                return Add(var, self.product())
            case "put" | "emit":
                return self.keyed(word)
        self.fail(f"no such step: {word}", start)

    def each_group(self) -> EachGroup:
        name, keys = self.name(), self.listed(self.name, "[", "]")
        value = self.name() if self.take("as") else ""
        return EachGroup(name, keys, self.body(), value)

    def valued(self, word: str) -> Let | Same:
        _, plain = self.flags()
        var = self.name()
        self.expect("=")
        term = self.term()
        return Let(var, term, plain) if word == "let" else Same(var, term, plain, self.body())

    def keyed(self, word: str) -> Put | Emit:
        name = self.name()
        keys = self.listed(self.name, "[", "]")
        self.expect("+=")
        product = self.product()
        return Put(name, keys, product) if word == "put" else Emit(keys, product, name)

    def loop(self) -> Loop:
        source = self.atom()
        bound = self.given()
        self.expect("as")
        value = self.name()
        order = self.order() if self.peek() == "ordered" else None
        return Loop(source, bound, value, self.body(), order)

    def slices(self) -> EachSlice:
        self.expect("of")
        source, bound = self.view(), self.given()
        self.expect("by")
        key = self.name()
        self.expect("over")
        return EachSlice(source, bound, key, frozenset(self.listed(self.name, "(", ")")), self.body())

    def defined(self, var: str) -> RangeSum | Runs | Extremum:
        self.expect("=")
        start = self.at
        what = self.name()
        self.expect("of")
        source, bound = self.view(), self.given()
        if what == "sum":
            return RangeSum(var, source, bound, self.order())
        self.expect("by")
        key = self.name()
        if what in ("least", "greatest"):
            return Extremum(var, source, bound, key, what == "greatest", self.term() if self.take("at") else None)
        if what != "runs":
            self.fail(f"expected sum, runs, least or greatest, found {what!r}", start)
        side = self.name()
        self.expect("as")
        total = self.name()
        self.expect("where")
        test = self.bound()
        assert isinstance(test, Cut)
        return Runs(var, source, bound, key, side == "after", total, test)

    # -- parts of steps ------------------------------------------------------------------------------------------------

    def given(self) -> frozenset[str]:
        self.expect("given")
        return frozenset(self.listed(self.name, "(", ")"))

    def order(self) -> Order:
        self.expect("ordered", "by")
        key = self.name()
        self.expect("within", "(")
        ranges = [self.range()]
        while self.take("or"):
            ranges.append(self.range())
        self.expect(")")
        return Order(key, tuple(ranges), self.take("one"))

    def range(self) -> Range:
        if self.take("all"):
            return ()
        bounds = [self.bound()]
        while self.take("and"):
            bounds.append(self.bound())
        return tuple(bounds)

    def bound(self) -> Cut | InRun:
        holds = not self.take("not")
        up = self.take("up")
        if not up:
            self.expect("down")
        compare = self.comparison()
        nullable, plain = self.flags()
        if not self.take("in"):
            return Cut(compare, up, nullable, plain, holds)
        runs = self.name()
        self.expect("as")
        return InRun(runs, compare, self.name(), up, nullable, plain)

    def comparison(self) -> Compare:
        comparison = self.compare()
        assert isinstance(comparison, Compare)
        return comparison

    def product(self) -> Product:
        if self.take("(", ")"):
            return ()
        factors = [self.one_factor()]
        while self.take("*"):
            factors.append(self.one_factor())
        return tuple(factors)

    def one_factor(self) -> Factor:
        term = self.term()
        nullable, plain = self.flags()
        return Factor(term, nullable, plain)

    def flags(self) -> tuple[bool, bool]:
        """Nullable, and plain."""
        nullable = self.take("?")
        return nullable, not self.take("!")

    def atom(self) -> Atom:
        start = self.at
        atom = self.factor()
        if not isinstance(atom, (Rel, Delta, View)):
            self.fail("expected a relation, an update or a map", start)
        return atom

    def view(self) -> View:
        start = self.at
        atom = self.atom()
        if not isinstance(atom, View):
            self.fail("expected a map", start)
        return atom
