"""What a rule may know besides the query it looks at: one frozen value, passed down."""

from __future__ import annotations

from dataclasses import dataclass, replace

from viewlet.compiler.strategy import OPTIMIZED, Strategy
from viewlet.program.trigger import Event


@dataclass(frozen=True)
class Context:
    """``bound``: variables that have a value where the query is evaluated (trigger parameters, cache inputs).

    ``event``: the update being compiled, None while a definition is only cleaned up.
    ``static``: relations that never change. ``ordered``: the engines have ordered access paths. ``counted``: relations
    are SQL's tables, which hold a row a number of times; a relation of the calculus may hold it −1 times or ½ times.
    ``wide``: a view is served that would need hundreds of maps, one for each part of its joins. ``star``: one that
    joins three streams or more, see :mod:`viewlet.compiler.wide`. ``by_value``: a map may be kept by the values of
    groups; not while such a map itself is evaluated again, since it would be its own source.
    """

    bound: frozenset[str] = frozenset()
    event: Event | None = None
    static: frozenset[str] = frozenset()
    strategy: Strategy = OPTIMIZED
    ordered: bool = True
    counted: bool = False
    wide: bool = False
    star: bool = False
    by_value: bool = True

    def binding(self, names: frozenset[str]) -> Context:
        return self if names <= self.bound else replace(self, bound=self.bound | names)
