"""Re-evaluations that contain each other: what one of them comes to, another need not compute again.

    T := E,  S := F ⋈ E   ⇒   T := E,  S := F ⋈ T

A re-evaluation reads new versions, so T is refreshed before S. Equality is modulo names, as for views (§5.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from viewlet.algebra.canonical import canonical
from viewlet.algebra.query import Bind, Query, Sum, View, inputs, map_children
from viewlet.algebra.rewrite import Trace
from viewlet.program.trigger import Event, Statement

Known = Mapping[str, tuple[View, Mapping[str, str]]]  # a shape ↦ the view refreshed so, and its variables by label


@dataclass(frozen=True)
class Reuse:
    trace: Trace

    def statements(self, statements: Sequence[Statement], event: Event) -> list[Statement]:
        """The statements of a trigger, with every sum that another one replaces its target by read from there."""
        known: dict[str, tuple[View, Mapping[str, str]]] = {}
        for s in statements:
            if s.op == ":=" and not s.target.inputs and isinstance(s.expression, Sum):
                shape, labels = canonical(s.expression)
                known.setdefault(shape, (s.target, {label: v for v, label in labels.items()}))
        return [self._with_reads(s, known, event) if known and s.op == ":=" else s for s in statements]

    def _with_reads(self, s: Statement, known: Known, event: Event) -> Statement:
        expression = map_children(s.expression, lambda q: _read(q, known, s.target.name))
        if expression is s.expression or expression == s.expression:
            return s
        self.trace.place = f"{s.target.name} on {event}"
        self.trace.record("reuse", "§5.1, of re-evaluations", s.expression, expression)
        return replace(s, expression=expression)


def _read(q: Query, known: Known, target: str) -> Query:
    """Q with reads in the place of sums; what is inside a nested aggregate is about one tuple, not about all."""
    if isinstance(q, Bind):
        return q
    if isinstance(q, Sum) and not inputs(q):
        shape, labels = canonical(q)
        if shape in known and known[shape][0].name != target:
            view, theirs = known[shape]
            ours = {label: v for v, label in labels.items()}
            back = {theirs[label]: variable for label, variable in ours.items()}
            return View(view.name, (), tuple(back[v] for v in view.outputs))
    return map_children(q, lambda inner: _read(inner, known, target))
