"""Every pass over loop nests on its pairs, as text: what goes in, and what comes out.

A file of pairs for each pass. ``and`` stands between statements, ``then`` between what is done first and the
statements. ``unchanged`` and ``apart`` say that a pass leaves them as they are. A statement is an increment unless the
line above it says what it is, in these words: ``replaces``, ``late``, ``buffered``, ``cache``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from viewlet.algebra.query import ONE, View
from viewlet.loops.counted import through_counts
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
SORTS = ("cache", "buffered", "replaces", "late")
Pair = tuple[str, str, str]  # why, before, after


def pairs(name: str) -> Iterator[Pair]:
    text = Path(__file__).with_name(f"{name}.txt").read_text("utf-8")
    for part in re.split(r"\n\n(?=-- )", text.strip()):
        why, body = part.split("\n", 1)
        before, after = body.split("\n=>\n")
        yield why.removeprefix("-- "), before, after


def of(name: str) -> pytest.MarkDecorator:
    cases = list(pairs(name))
    return pytest.mark.parametrize(("before", "after"), [p[1:] for p in cases], ids=[p[0] for p in cases])


def checked(text: str) -> Block:
    """The block, which prints as it is written and is well formed."""
    block = parse_block(text)
    assert show_block(block) == text
    return block


def turns(text: str) -> tuple[Turn, ...]:
    return tuple(map(turn, text.split("\nand\n")))


def turn(text: str) -> Turn:
    """One statement, with what the pipeline would say of it."""
    first, _, rest = text.partition("\n")
    sorts = frozenset(first.split()) if first.split()[0] in SORTS else frozenset[str]()
    block = checked(rest if sorts else text)
    steps: list[Step] = [s for inner in blocks(block) for s in inner]
    (target,) = {View(s.view, ("@a",) if "cache" in sorts else (), s.key) for s in steps if isinstance(s, Emit)}
    reads = {s.source.name for s in steps if isinstance(s, (Get, Loop, EachSlice, RangeSum, Runs))}
    op: Literal["+=", ":="] = ":=" if "replaces" in sorts else "+="
    statement = Statement(target, op, ONE, buffered="buffered" in sorts, late="late" in sorts)
    return Turn((statement,), block, bool(sorts) or target.name in reads, frozenset(reads))


def text_of(turns: tuple[Turn, ...]) -> str:
    return "\nand\n".join(f"{sorts_of(t.statements[0])}{show_block(t.block)}" for t in turns)


def sorts_of(statement: Statement) -> str:
    flags = (bool(statement.target.inputs), statement.buffered, statement.op == ":=", statement.late)
    sorts = [sort for sort, holds in zip(SORTS, flags, strict=True) if holds]
    return " ".join(sorts) + "\n" if sorts else ""


def well_formed(block: Block, given: frozenset[str] = GIVEN) -> None:
    emits = [s for inner in blocks(block) for s in inner if isinstance(s, Emit)]
    verify_block(block, given, {s.view: len(s.key) for s in emits})


@of("names")
def test_each_name_once(before: str, after: str) -> None:
    renamed = each_name_once(checked(before))
    assert show_block(renamed) == after
    well_formed(renamed)


@of("invariant")
def test_outside_loops(before: str, after: str) -> None:
    moved = outside_loops(checked(before))
    assert show_block(moved) == (before if after == "unchanged" else after)
    well_formed(moved)


@of("counted")
def test_through_counts(before: str, after: str) -> None:
    through = through_counts(turns(before), {"Nsum": "N"})
    assert text_of(through) == (before if after == "unchanged" else after)
    for each in through:
        well_formed(each.block)


@of("fuse")
def test_fuse(before: str, after: str) -> None:
    fused = fuse(turns(before))
    assert text_of(fused) == (before if after == "apart" else after)
    for each in fused:
        well_formed(each.block)


@of("hoist")
def test_hoist(before: str, after: str) -> None:
    first, rest = hoist(turns(before), GIVEN, place=lambda name: name.rstrip("0123456789"))
    text = f"{show_block(first)}\nthen\n{text_of(rest)}" if first else text_of(rest)
    assert text == (before if after == "unchanged" else after)
    well_formed(first)
    for each in rest:
        well_formed((*first, *each.block))


def test_every_pass_has_a_file() -> None:
    assert (each_name_once, outside_loops) == BLOCK_PASSES
    assert {path.stem for path in Path(__file__).parent.glob("*.txt")} == {
        "names",
        "invariant",
        "counted",
        "fuse",
        "hoist",
    }


def test_columns_are_those_that_are_written() -> None:
    loop = checked("for V[i][x, @a] given (@a, i) as m {}")[0]
    assert isinstance(loop, Loop)
    assert columns_of(loop.source) == ("i", "x", "@a")
