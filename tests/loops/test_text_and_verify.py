"""Loop nests print, parse back and are well formed: those of the paper's queries and of random ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import viewlet
from tests.engines.conformance import Case
from tests.engines.random_sql import cases
from viewlet.algebra.text import ParseError
from viewlet.algebra.verify import VerifyError
from viewlet.compiler.strategy import STRATEGIES
from viewlet.loops.lower import Lowering
from viewlet.loops.pipeline import fill_block, plan
from viewlet.loops.text import parse_block, show_block
from viewlet.loops.verify import verify_block
from viewlet.program.trigger import Program
from viewlet.workloads.queries import PAPER_QUERIES


def nests_come_back(program: Program) -> int:
    """How many nests there were; making a plan verifies it."""
    lowering = Lowering.of(program)
    nests = [block for trigger in program.triggers for block in plan(program, trigger, lowering).blocks]
    nests += [fill_block(view, lowering) for view in program.views if view.is_cache]
    for block in nests:
        assert parse_block(show_block(block)) == block
    return len(nests)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nests_of_the_paper_come_back(strategy: str) -> None:
    assert sum(nests_come_back(viewlet.compile(q.script(), strategy=strategy)) for q in PAPER_QUERIES.values()) > 100


@given(case=cases())
@settings(max_examples=20, deadline=None)
def test_nests_of_random_scripts_come_back(case: Case) -> None:
    program = viewlet.compile(case.schema + case.views)
    assert nests_come_back(program) >= len(program.triggers)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("emit T[x] += 1", "x has no value yet"),
        ("let x = y", "y has no value yet"),
        ("let x = 1\nlet x = 2", "x has a value already"),
        ("for V[][x] given () as m {}\nfor W[][x] given () as n {}", "x is bound twice"),
        ("for V[][x, @a] given () as m {}", "@a has a value, and is not given"),
        ("for V[][x] given (y) as m {}", "y has no value yet"),
        ("get V[][x] as m {}", "x has no value yet"),
        ("add t += 1", "t is no total around it"),
        ("total t {}\nadd t += 1", "t is no total around it"),
        ("nonzero t {}", "t is no total that is complete"),
        ("total t {\n  nonzero t {}\n}", "t is no total that is complete"),
        ("each g[x] {}", "g is no group that is complete"),
        ("put g[@a] += 1", "g is no group around it"),
        ("emit T[@a, @a] += 1", "T is no map with 2 columns"),
        ("emit U[@a] += 1", "U is no map with 1 columns"),
        ("s = sum of V[][x] given () ordered by y within (all)", "y is not open"),
        ("s = sum of V[][x] given () ordered by x within (up [x > z])", "z has no value yet"),
        ("s = sum of V[][x] given () ordered by x within (up [k < x] in r as k)", "r are no runs that are known"),
        ("r = runs of V[][x] given () by y before as t where up [t > 1]", "y is none of its open columns"),
        ("k = least of V[][x] given () by y", "y is none of its open columns"),
        ("slices of V[][x] given () by y over () {}", "its key is none of its open columns"),
    ],
)
def test_what_is_not_well_formed_is_refused(text: str, problem: str) -> None:
    with pytest.raises(VerifyError, match=f"here: {problem}, in: "):
        verify_block(parse_block(text), {"@a"}, {"T": 1}, "here")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("jump x", "no such step: jump"),
        ("get 3 as m {}", "expected a relation, an update or a map"),
        ("s = sum of R(x) given () ordered by x within (all)", "expected a map"),
        ("s = most of V[][x] given () by x", "expected sum, runs, least or greatest"),
        ("for V[][x] given () as m {", "expected '}'"),
        ("s = sum of V[][x] given () ordered by x within (x > 1)", "expected 'down'"),
    ],
)
def test_text_that_is_no_nest_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        parse_block(text)


def test_flags_come_back() -> None:
    text = "\n".join(
        [
            "let! x = (@a + 1)",
            "same! x = @b {",
            "  if?! [x > @b] {",
            "    emit T[x] += x? * @b! * (x * 2)?! * 3",
            "  }",
            "}",
            "for V[][y] given () as m ordered by y within (not up [y > @a]? and down [y < @b]! or all) one {}",
        ]
    )
    assert show_block(parse_block(text)) == text
