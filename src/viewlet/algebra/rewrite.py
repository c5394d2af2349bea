"""Named rewrite rules, the driver that applies them, and the record that explain, the tests and the console read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar, get_args

from viewlet.algebra.query import Query, children, map_children
from viewlet.algebra.terms import Node

C = TypeVar("C")


@dataclass(frozen=True, eq=False)
class Rule(Generic[C]):
    """``apply`` returns the new query, or None where the rule does not apply.

    The new query has the same outputs and needs no other inputs than before, but for bound variables.
    """

    name: str
    source: str  # the formula and where the paper has it
    apply: Callable[[Query, C], Query | None]
    kinds: tuple[type[Query], ...]  # the nodes that it is about; it applies to no other

    def __call__(self, q: Query, context: C) -> Query | None:
        return self.apply(q, context)


def rule(source: str, *kinds: type[Query]) -> Callable[[Callable[[Query, C], Query | None]], Rule[C]]:
    """Make a function a rule; its name is the rule's name. Without ``kinds`` it is about every node."""
    return lambda f: Rule(f.__name__, source, f, kinds or get_args(Query))


@lru_cache(maxsize=1 << 8)
def _about(kind: type[Query], rules: tuple[Rule[C], ...]) -> tuple[Rule[C], ...]:
    return tuple(r for r in rules if kind in r.kinds)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the record: at ``place`` (a view and an event) a rule made ``became`` of ``was``.

    Most steps are never shown, and parts of one query stand in hundreds of them: their texts are made when asked for.
    """

    place: str
    rule: str
    source: str
    was: Node
    became: Node

    @property
    def before(self) -> str:
        return self.was.text

    @property
    def after(self) -> str:
        return self.became.text

    def to_dict(self) -> dict[str, str]:
        shown = {"before": self.before, "after": self.after}
        return {"place": self.place, "rule": self.rule, "source": self.source, **shown}


@dataclass
class Trace:
    """The record of one compilation. ``place`` is where the compiler is now: a view, or a view and an event.

    ``deltas``: the simplified ΔQ at each place where a statement was made of it.
    ``normal_forms``: what was brought to rest already, where these of its variables are bound; it is not told twice.
    """

    steps: list[Step] = field(default_factory=list)
    place: str = ""
    deltas: dict[str, Query] = field(default_factory=dict)
    normal_forms: dict[tuple[Query, frozenset[str]], Query] = field(default_factory=dict, repr=False)

    def record(self, name: str, source: str, was: Node, became: Node) -> None:
        self.steps.append(Step(self.place, name, source, was, became))

    def fired(self, rule_name: str) -> list[Step]:
        return [s for s in self.steps if s.rule == rule_name]


class RewriteError(Exception):
    """Rules that do not come to rest: a bug in the rules, named."""


def rewrite(
    q: Query,
    rules: tuple[Rule[C], ...],
    context: C,
    trace: Trace | None = None,
    memo: dict[Query, Query] | None = None,
) -> Query:
    """Bottom-up to a fixpoint; the first rule of the tuple that changes a node wins. ``memo`` maps to normal forms."""
    memo = {} if memo is None else memo
    at_rest = memo.get(q)
    if at_rest is not None:
        return at_rest

    def normal(child: Query) -> Query:
        if not _about(type(child), rules) and not children(child):
            return child  # most are: relations, views, values
        known = memo.get(child)
        return rewrite(child, rules, context, trace, memo) if known is None else known

    start = q
    fired: list[str] = []
    seen: set[Query] = set()
    while True:
        q = map_children(q, normal)
        at_rest = memo.get(q)
        if at_rest is not None:
            q = at_rest
            break
        for r in _about(type(q), rules):
            after = r.apply(q, context)
            if after is not None and after != q:
                if trace is not None:
                    trace.record(r.name, r.source, q, after)
                fired.append(r.name)
                q = after
                break
        else:
            break
        if q in seen:
            raise RewriteError(f"rules do not come to rest: … {' → '.join(fired[-6:])}\nat {q.text}")
        seen.add(q)
    memo[start] = memo[q] = q
    return q
