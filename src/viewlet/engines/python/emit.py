"""Loop nests as Python source: one function for each trigger, meant to be read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from typing_extensions import assert_never

from viewlet.algebra.query import Delta, Rel, View
from viewlet.algebra.terms import Const, Op, Scalar, Term, Var
from viewlet.program.loops import (
    Add,
    Block,
    EachGroup,
    Emit,
    Factor,
    Get,
    Group,
    Let,
    Loop,
    Nonzero,
    Product,
    Put,
    Same,
    Step,
    Test,
    Total,
)
from viewlet.program.lower import columns_of

PYTHON = {"=": "==", "<>": "!="}
PLAIN = frozenset({"+", "-", "*", "and", "or", "<", "<=", ">", ">=", "=", "<>"})


@dataclass
class Source:
    """Lines of Python, and the names and constants that stand for what is not Python."""

    lines: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Scalar] = field(default_factory=dict)

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def name(self, variable: str) -> str:
        """A Python identifier of its own for a variable of the calculus."""
        if variable not in self.names:
            stem = re.sub(r"^(?=\d)|\W", "_", variable.lstrip("@$")).lower() or "v"
            taken = set(self.names.values())
            self.names[variable] = next(n for n in (f"{stem}_{i}" for i in range(len(taken) + 1)) if n not in taken)
        return self.names[variable]

    def key(self, variables: Iterable[str]) -> str:
        names = [self.name(v) for v in variables]
        return f"({', '.join(names)}{',' if len(names) == 1 else ''})"

    # -- terms ---------------------------------------------------------------------------------------------------------

    def term(self, term: Term, plain: bool) -> str:
        """A term; ``plain`` says that nothing in it can be NULL, so that Python's own operators do."""
        match term:
            case Const(value):
                return self.constant(value)
            case Var(name):
                return self.name(name)
            case Op("not", (arg,)) if plain:
                return f"(not {self.term(arg, plain)})"
            case Op(name, args) if plain and name in PLAIN:
                return "(" + f" {PYTHON.get(name, name)} ".join(self.term(a, plain) for a in args) + ")"
            case Op(name, args):
                inside = "".join(f"{self.term(a, plain)}, " for a in args)
                return f"APPLY({name!r}, ({inside.rstrip(' ')}))"

    def constant(self, value: Scalar) -> str:
        if not isinstance(value, Fraction):
            return repr(value)
        name = f"C_{value.numerator}_{value.denominator}".replace("-", "minus_")
        self.constants[name] = value
        return name

    def product(self, product: Product) -> str:
        return " * ".join(map(self.factor, product)) or "1"

    def factor(self, factor: Factor) -> str:
        text = self.term(factor.term, factor.plain)
        return f"NUMBER({text})" if factor.nullable else text

    # -- steps ---------------------------------------------------------------------------------------------------------

    def block(self, block: Block, depth: int, emit: str) -> None:
        """The steps at one indentation; ``emit`` is the text that takes a key and a product, with {key} and {m}."""
        for step in block:
            self.step(step, depth, emit)

    def step(self, step: Step, depth: int, emit: str) -> None:
        match step:
            case Let(var, term, plain):
                self.add(depth, f"{self.name(var)} = {self.term(term, plain)}")
            case Same() | Test():
                self.tests(step, depth, emit)
            case Get():
                self.get(step, depth, emit)
            case Loop():
                self.loop(step, depth, emit)
            case Total(var, body):
                self.add(depth, f"{self.name(var)} = 0")
                self.block(body, depth, emit)
            case Add(var, product):
                self.add(depth, f"{self.name(var)} += {self.product(product)}")
            case Nonzero(var, body):
                self.add(depth, f"if {self.name(var)} != 0:")
                self.block(body, depth + 1, emit)
            case Group(name, body):
                self.add(depth, f"{self.name(name)} = {{}}")
                self.block(body, depth, emit)
            case Put(name, keys, product):
                self.add(depth, collect(self.name(name)).format(key=self.key(keys), m=self.product(product)))
            case EachGroup(name, keys, body):
                self.add(depth, f"for {self.key(keys)}, GROUP_M in {self.name(name)}.items():")
                self.add(depth + 1, "if GROUP_M != 0:")
                self.block(body, depth + 2, emit)
            case Emit(key, product):
                self.add(depth, emit.format(key=self.key(key), m=self.product(product)))
            case _:
                assert_never(step)

    def tests(self, step: Test | Same, depth: int, emit: str) -> None:
        """Tests directly inside each other are one ``if``: Python allows a hundred levels, SQL more conjuncts."""
        conditions = [self.condition(step)]
        while len(step.body) == 1 and isinstance(step.body[0], (Test, Same)):
            step = step.body[0]
            conditions.append(self.condition(step))
        self.add(depth, f"if {' and '.join(conditions)}:")
        self.block(step.body, depth + 1, emit)

    def condition(self, step: Test | Same) -> str:
        if isinstance(step, Same):
            return f"{self.name(step.var)} == {self.term(step.term, step.plain)}"
        op, left, right = step.compare.op, step.compare.left, step.compare.right
        sides = [self.term(t, step.plain) for t in (left, right)]
        if step.nullable:
            return f"APPLY({op!r}, ({sides[0]}, {sides[1]}))"
        return f"{sides[0]} {PYTHON.get(op, op)} {sides[1]}"

    def get(self, step: Get, depth: int, emit: str) -> None:
        value, source = self.name(step.value), step.source
        if isinstance(source, View) and source.inputs:
            self.add(depth, f"{value} = {map_name(source)}[{self.key(source.inputs)}].get({self.key(source.outputs)})")
        else:
            self.add(depth, f"{value} = {map_name(source)}.get({self.key(columns_of(source))})")
        self.add(depth, f"if {value} is not None:")
        self.block(step.body, depth + 1, emit)

    def loop(self, step: Loop, depth: int, emit: str) -> None:
        source, names = step.source, columns_of(step.source)
        if isinstance(source, View) and source.inputs:
            names = source.outputs
        at = tuple(i for i, n in enumerate(names) if n in step.bound)
        value = self.name(step.value)
        entries = self.entries(source, names, at)
        self.add(depth, f"for KEY_{depth}, {value} in {entries}:")
        first: dict[str, int] = {}
        for i, n in enumerate(names):
            if n in step.bound:
                continue
            if n in first:  # R(x, x)
                self.add(depth + 1, f"if KEY_{depth}[{i}] != {self.name(n)}:")
                self.add(depth + 2, "continue")
            else:
                first[n] = i
                self.add(depth + 1, f"{self.name(n)} = KEY_{depth}[{i}]")
        self.block(step.body, depth + 1, emit)

    def entries(self, source: View | Delta | Rel, names: tuple[str, ...], at: tuple[int, ...]) -> str:
        """What a loop goes over: a whole map, or what an index has under the bound values."""
        bound = self.key(names[i] for i in at)
        if isinstance(source, View) and source.inputs:
            held = f"{map_name(source)}[{self.key(source.inputs)}]"
            return f"{held}.slice({at}, {bound})" if at else f"{held}.items()"
        if not at:
            return f"{map_name(source)}.items()"
        return f"{map_name(source)}.slice({at}, {bound})"


def map_name(source: View | Delta | Rel) -> str:
    """Capitals, which no variable gets: see :meth:`Source.name`."""
    match source:
        case View(name, _, _):
            return f"VIEW_{name}"
        case Delta(name, _):
            return f"DELTA_{name}"
        case Rel():
            raise ValueError(f"a statement reads views, not the base table {source.text}")


def collect(into: str) -> str:
    """Text that adds {m} to {key} of a dictionary."""
    return f"{into}[{{key}}] = {into}.get({{key}}, 0) + {{m}}"
