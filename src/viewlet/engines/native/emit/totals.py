"""Totals and groups as C++: what a statement adds up before it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

from viewlet.engines.native.emit.changes import Changes
from viewlet.engines.native.emit.context import Body, Context, Temporary
from viewlet.engines.native.emit.keys import column
from viewlet.engines.native.emit.layout import Field
from viewlet.engines.native.emit.pointers import AtHand
from viewlet.engines.native.emit.values import Cpp, Scope, type_of
from viewlet.loops.infer import additions
from viewlet.loops.steps import Add, EachGroup, Group, Put, Total
from viewlet.program.kinds import REAL, WIDEST, Exact, Inexact, key_kind


@dataclass(frozen=True)
class Totals:
    """Writes the totals and groups of one function; ``body`` writes what is inside them."""

    context: Context
    changes: Changes
    body: Body
    untouched: dict[str, int] = field(default_factory=dict)  # a total that is 0 so far ↦ the loops around it

    def total(self, step: Total, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        out, terms = self.context.out, self.context.terms
        total = self.declare(step.var, scope)
        self.untouched[total.text] = out.loops
        self.body(step.body, scope, at_hand)
        if total.kind == REAL and len(list(additions(step.var, step.body))) > 1:
            out.add(f"finite(faults, {terms.view}, {total.text});")

    def declare(self, var: str, scope: dict[str, Cpp]) -> Cpp:
        """A variable that is 0."""
        name, kind = self.context.fresh(var), self.context.types[var]
        self.context.out.add(f"{type_of(kind)} {name}{{}};")
        scope[var] = Cpp(name, kind, summed=True)
        return scope[var]

    def add(self, step: Add, scope: Scope) -> None:
        out, terms, total = self.context.out, self.context.terms, scope[step.var]
        value = terms.to(terms.bounded(terms.product(step.product, scope)), total.kind)
        if self.untouched.pop(total.text, None) == out.loops:
            out.add(f"{total.text} = {value.text};")
        elif isinstance(total.kind, Inexact):
            out.add(f"{total.text} = {total.text} + {value.text};")
        elif isinstance(total.kind, Exact) and total.kind.bits < WIDEST:
            out.add(f"{total.text} += {value.text};")
        else:
            out.add(f"{total.text} = add(faults, {terms.view}, {total.text}, {value.text});")

    def group(self, step: Group, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        temporary = f"group_{next(self.context.shared.groups)}"
        scope[step.name] = Cpp(temporary, self.context.types[step.name])
        self.context.out.add(f"{temporary}.clear();")
        self.body(step.body, scope, at_hand)

    def put(self, step: Put, scope: Scope) -> None:
        shared, types, group = self.context.shared, self.context.types, scope[step.name]
        temporary = shared.temporary(group.text)
        if temporary is None:
            fields = tuple(Field(f"key_{i}", key_kind(types[k]), True) for i, k in enumerate(step.keys))
            temporary = Temporary(group.text, fields, group.kind)
            shared.temporaries.append(temporary)
        self.changes.collect(temporary, step.keys, step.product, scope, finite=False)

    def each_group(self, step: EachGroup, scope: Scope, at_hand: AtHand) -> None:
        temporary = self.context.shared.temporary(scope[step.name].text)
        if temporary is None:
            return  # nothing is ever put into it
        out, of, entry = self.context.out, temporary.name, self.context.fresh("entry")
        head = f"for (auto* {entry} = {of}.first(); {entry}; {entry} = {of}.next({entry}))"
        with out.loop(head), out.inside(f"if (!is_zero({entry}->values.sum))"):
            keys = {k: column(f"{entry}->key", f) for k, f in zip(step.keys, temporary.key, strict=True)}
            keys |= {step.value: Cpp(f"{entry}->values.sum", temporary.kind)} if step.value else {}
            self.body(step.body, {**scope, **keys}, at_hand)
