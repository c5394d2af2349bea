"""Every pass over loop nests on its pairs, as text: what goes in, and what comes out.

A file of pairs for each pass. ``and`` stands between statements, ``then`` between what is done first and the
statements. ``unchanged`` and ``apart`` say that a pass leaves them as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from viewlet.algebra.query import ONE, View
from viewlet.loops.fuse import Turn, fuse
from viewlet.loops.hoist import hoist
from viewlet.loops.invariant import outside_loops
from viewlet.loops.names import columns_of, each_name_once
from viewlet.loops.pipeline import BLOCK_PASSES
from viewlet.loops.steps import Block, EachSlice, Emit, Get, Loop, RangeSum, Runs, Step, blocks
from viewlet.loops.text import parse_block, show_block
from viewlet.loops.verify import verify_block
from viewlet.program.trigger import Statement

GIVEN = frozenset({"@a", "@b"})
Pair = tuple[str, str, str]  # why, before, after


def pairs(name: str) -> Iterator[Pair]:
    text = Path(__file__).with_name(f"{name}.txt").read_text("utf-8")
    for part in re.split(r"\n\n(?=-- )", text.strip()):
        why, body = part.split("\n", 1)
        before, after = body.split("\n=>\n")
        yield why.removeprefix("-- "), before, after


def of(name: str) -> pytest.MarkDecorator:
    found = list(pairs(name))
    return pytest.mark.parametrize(("before", "after"), [p[1:] for p in found], ids=[p[0] for p in found])


def checked(text: str) -> Block:
    """The block, which prints as it is written and is well formed."""
    block = parse_block(text)
    assert show_block(block) == text
    return block


def turns(text: str) -> tuple[Turn, ...]:
    return tuple(turn(checked(part)) for part in text.split("\nand\n"))


def turn(block: Block) -> Turn:
    steps: list[Step] = [s for inner in blocks(block) for s in inner]
    targets = {s.view: s.key for s in steps if isinstance(s, Emit)}
    reads = {s.source.name for s in steps if isinstance(s, (Get, Loop, EachSlice, RangeSum, Runs))}
    statements = tuple(Statement(View(name, (), key), "+=", ONE) for name, key in targets.items())
    return Turn(statements, block, False, frozenset(reads))


def text_of(found: tuple[Turn, ...]) -> str:
    return "\nand\n".join(show_block(t.block) for t in found)


def well_formed(block: Block, given: frozenset[str] = GIVEN) -> None:
    emits = [s for inner in blocks(block) for s in inner if isinstance(s, Emit)]
    verify_block(block, given, {s.view: len(s.key) for s in emits})


@of("names")
def test_each_name_once(before: str, after: str) -> None:
    found = each_name_once(checked(before))
    assert show_block(found) == after
    well_formed(found)


@of("invariant")
def test_outside_loops(before: str, after: str) -> None:
    found = outside_loops(checked(before))
    assert show_block(found) == (before if after == "unchanged" else after)
    well_formed(found)


@of("fuse")
def test_fuse(before: str, after: str) -> None:
    found = fuse(turns(before))
    assert text_of(found) == (before if after == "apart" else after)
    for each in found:
        well_formed(each.block)


@of("hoist")
def test_hoist(before: str, after: str) -> None:
    first, rest = hoist(turns(before), GIVEN)
    text = f"{show_block(first)}\nthen\n{text_of(rest)}" if first else text_of(rest)
    assert text == (before if after == "unchanged" else after)
    well_formed(first)


def test_every_pass_has_a_file() -> None:
    assert (each_name_once, outside_loops) == BLOCK_PASSES
    assert {path.stem for path in Path(__file__).parent.glob("*.txt")} == {"names", "invariant", "fuse", "hoist"}


def test_columns_are_those_that_are_written() -> None:
    loop = checked("for V[i][x, @a] given (@a, i) as m {}")[0]
    assert isinstance(loop, Loop)
    assert columns_of(loop.source) == ("i", "x", "@a")
