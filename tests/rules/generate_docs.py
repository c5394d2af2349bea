"""Writes docs/rules.md from the rules and the first pair of each: ``python -m tests.rules.generate_docs``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.rules.pairs import FILES, Pair, pairs
from viewlet.algebra.rewrite import Rule
from viewlet.algebra.text import pretty
from viewlet.compiler.context import Context

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
WIDTH = 96

INTRODUCTION = """\
# The rewrite rules

`python -m tests.rules.generate_docs` writes this page from the rules and their test pairs, and a test says that it is
current.

A rule is a function of a query and of its context: which variables have a value there, and which event is being
compiled. It returns the new query or nothing. Every rule keeps the meaning and the outputs. It may turn a variable from
outside into an output. It needs no new inputs, except variables that have a value anyway.
[algebra.md](algebra.md) explains the notation. Each example is run as a test, as text and on random databases.
"""
SECTIONS = {
    "aggregates": """\
## Sums of groups

These rules run once over the definition of a view, until nothing changes, and simplification runs again after them.
""",
    "simplifications": """\
## Simplification

These rules run bottom-up to a fixpoint, after every delta and between the rules of Figure 2. The first rule that
changes a node wins.
""",
    "figure_2": """\
## Materialisation decisions (Figure 2)

A rule sees the argument of one `M(…)` and puts smaller ones in its place. The first rule that applies wins. An argument
to which no rule applies becomes a map.
""",
    "factorizations": """\
## Factorisation

These rules run once a materialisation decision is final, until nothing changes.
""",
}


def page() -> str:
    return "\n".join([INTRODUCTION, *(line for file in FILES for line in _section(file))])


def _section(file: str) -> Iterator[str]:
    yield SECTIONS[file]
    examples = {p.rule.name: p for p in reversed(list(pairs(file)))}
    for i, rule in enumerate(FILES[file], 1):
        yield f"### {i}. `{rule.name}`\n"
        yield f"{_formula(rule)}\n"
        yield _example(examples[rule.name])


def _formula(rule: Rule[Context]) -> str:
    """The rule's source as where the paper has it and the formula; what has no place follows from §3.1."""
    match = re.match(r"((?:§|Figure|Example)[^:]*): (.*)", rule.source)
    place, formula = match.groups() if match else ("follows from §3.1", rule.source)
    return f"{formula}\n\n*{place}*"


def _example(pair: Pair) -> str:
    assert pair.after is not None, f"the first pair of {pair.rule.name} does not apply"
    where = _where(pair.context)
    lines = [*([f"-- {where}"] if where else []), pretty(pair.before, WIDTH), f"⇒ {pretty(pair.after, WIDTH, 2)}"]
    return "\n".join(["```text", *lines, "```", ""])


def _where(context: Context) -> str:
    given = sorted(context.bound - frozenset(context.event.params if context.event else ()))
    notes = [f"on {context.event}"] if context.event else []
    return ", ".join(notes + ([f"where {', '.join(given)} have values"] if given else []))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
