"""Input/expected pairs of the rewrite rules, read from the text files beside this one.

::

    unify_binding bound @x, @y    -- the rule; where it matters: bound …, on event, strategy …, counted, wide, star
    Sum[]((A := @x) * S(C, D) * A * D)
    => Sum[](S(C, D) * @x * D)

    unify_binding bound x
    Sum[](R(x, y) * (x := 1))
    => does not apply

A rule of Figure 2 sees the argument of one 𝓜; what it returns has the smaller 𝓜 in it, printed ``M(…)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from viewlet.algebra.query import Query
from viewlet.algebra.rewrite import Rule
from viewlet.algebra.text import parse
from viewlet.compiler.aggregates import SUMS_OF_GROUPS
from viewlet.compiler.context import Context
from viewlet.compiler.factorize import FACTORIZATIONS
from viewlet.compiler.materialize import FIGURE_2
from viewlet.compiler.simplify import SIMPLIFICATIONS
from viewlet.compiler.strategy import strategy_named
from viewlet.program.trigger import Event

Rules = tuple[Rule[Context], ...]

FILES: dict[str, Rules] = {
    "aggregates": SUMS_OF_GROUPS,
    "simplifications": SIMPLIFICATIONS,
    "figure_2": FIGURE_2,
    "factorizations": FACTORIZATIONS,
}
RULES: dict[str, Rule[Context]] = {r.name: r for rules in FILES.values() for r in rules}
DOES_NOT_APPLY = "does not apply"
HEADER = re.compile(
    r"(?P<rule>\w+)(?: on (?P<event>[^ ]+(?:\(.*?\))?))?(?: bound (?P<bound>[^ ]+(?:, [^ ]+)*))?"
    r"(?: strategy (?P<strategy>\w+))?(?P<counted> counted)?(?P<wide> wide)?(?P<star> star)?"
)


@dataclass(frozen=True)
class Pair:
    rule: Rule[Context]
    context: Context
    before: Query
    after: Query | None  # None: the rule must leave it alone

    def __str__(self) -> str:
        return f"{self.rule.name}: {self.before.text}"


def pairs(file: str) -> Iterator[Pair]:
    text = Path(__file__).with_name(f"{file}.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    for block in re.split(r"\n\s*\n", "\n".join(lines).strip()):
        header, body = block.split("\n", 1)
        before, after = body.split("=>")
        rule, context = _header(header)
        expected = None if after.strip() == DOES_NOT_APPLY else parse(after)
        yield Pair(rule, context, parse(before), expected)


def all_pairs() -> list[Pair]:
    return [pair for file in FILES for pair in pairs(file)]


def _header(line: str) -> tuple[Rule[Context], Context]:
    match = HEADER.fullmatch(line)
    assert match is not None, line
    event = _event(match["event"]) if match["event"] else None
    bound = frozenset(match["bound"].split(", ")) if match["bound"] else frozenset[str]()
    strategy = strategy_named(match["strategy"] or "optimized")
    params = frozenset(event.params) if event else frozenset[str]()
    flags = {name: match[name] is not None for name in ("counted", "wide", "star")}
    return RULES[match["rule"]], Context(bound | params, event, strategy=strategy, **flags)


def _event(text: str) -> Event:
    """``+R(@a, @b)``, ``-R(@a)`` or ``ΔR``"""
    kind, rest = text[0], text[1:]
    relation, _, params = rest.removesuffix(")").partition("(")
    assert kind == "+" or kind == "-" or kind == "Δ", text
    return Event(kind, relation, tuple(params.split(", ")) if params else ())
