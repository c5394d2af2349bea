"""The ordered aggregate tree of the Python tier, against lists that are sorted and scanned."""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewlet.algebra.terms import Number
from viewlet.engines.exact import tree as module
from viewlet.engines.exact.tree import EMPTY, Node, Ordered, Run, Tree

NUMBERS = st.one_of(st.integers(-8, 8), st.fractions(-8, 8, max_denominator=3))
TEXTS = st.text("ab", max_size=3)
POSITIVE = st.one_of(st.integers(1, 5), st.fractions(1, 5, max_denominator=3))
SIGNED = st.one_of(st.integers(-5, 5), st.fractions(-5, 5, max_denominator=3))
ENTRIES = st.integers(0, 3)
CHANGES = st.one_of(  # of numbers or of texts: a tree never holds both; None erases
    *[
        st.lists(st.tuples(keys, ENTRIES, st.none() | values), max_size=200)
        for keys in (NUMBERS, TEXTS)
        for values in (POSITIVE, SIGNED)
    ]
)

Naive = dict[tuple[Any, Any], Any]  # (key, entry) ↦ value
Compare = Callable[[Any, Any], bool]

BEFORE: list[Compare] = [lambda other, key: other < key, lambda other, key: other <= key]
AFTER: list[Compare] = [lambda other, key: other > key, lambda other, key: other >= key]
MONOTONE: list[Compare] = [*BEFORE, *AFTER]


@pytest.fixture(scope="module", autouse=True, params=[4, module.FULL])
def fan_out(request: pytest.FixtureRequest) -> Iterator[None]:
    """Also with small nodes, where a few entries make a tree of several levels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FULL", request.param)
        patch.setattr(module, "SPARSE", max(request.param // 4, 2))
        yield


def changed(tree: Tree, naive: Naive, changes: list[tuple[Any, Any, Any]]) -> None:
    for key, entry, value in changes:
        if value is None:
            tree.erase(key, entry)
            naive.pop((key, entry), None)
        else:
            tree.set(key, entry, value)
            naive[key, entry] = value


def built(changes: list[tuple[Any, Any, Any]]) -> tuple[Tree, Naive]:
    tree, naive = Tree(), Naive()
    changed(tree, naive, changes)
    return tree, naive


def verify(tree: Tree, naive: Naive) -> None:
    """The invariants of every node, and the same entries."""
    sums: dict[Any, Any] = {}
    for (key, _), value in naive.items():
        sums[key] = sums.get(key, 0) + value
    depths: set[int] = set()

    def visit(node: Node, depth: int) -> list[Any]:
        assert len(node.keys) == len(node.sums) <= module.FULL
        assert len(node.keys) >= (module.SPARSE if depth else 0)
        if node.children is None:
            depths.add(depth)
            keys = node.keys
            assert node.sums == [sums[key] for key in keys]
        else:
            assert len(node.children) == len(node.keys) >= 2
            below = [visit(child, depth + 1) for child in node.children]
            assert node.keys == [keys[0] for keys in below]
            assert node.sums == [sum(sums[key] for key in keys) for keys in below]
            keys = [key for some in below for key in some]
        running = list(accumulate([sums[key] for key in keys], initial=0))
        assert node.within in (None, (min(running), max(running)))
        return keys

    assert visit(tree._root, 0) == sorted(sums)
    assert len(depths) == 1
    assert tree._negative == sum(total < 0 for total in sums.values())
    assert len(tree) == len(naive)
    assert bool(tree) == bool(naive)


def within(naive: Naive, up: Callable[[Any], bool] | None, down: Callable[[Any], bool] | None) -> Naive:
    chosen = [k for k in naive if (up is None or up(k[0])) and (down is None or down(k[0]))]
    return {k: naive[k] for k in chosen}


def in_a_run(run: Run, included: Compare, key: Any) -> bool:
    has_inside, inside, has_outside, outside = run
    return (not has_inside or included(inside, key)) and (not has_outside or not included(outside, key))


def probes(naive: Naive) -> list[Any]:
    """Keys, and what lies between, below and above them."""
    keys = sorted({key for key, _ in naive}) or [0]
    if isinstance(keys[0], str):
        return ["", *keys, *[key + "!" for key in keys]]
    return [keys[0] - 1, *keys, *[key + Fraction(1, 7) for key in keys]]


@given(CHANGES)
def test_it_holds_what_was_set_and_not_erased(changes: list[tuple[Any, Any, Any]]) -> None:
    tree, naive = built(changes)
    verify(tree, naive)
    assert {(entry, value) for entry, value in tree.range(None, None)} == {(e, v) for (_, e), v in naive.items()}
    first, last = tree.first(), tree.last()
    if naive:
        keys = [key for key, _ in naive]
        assert first is not None
        assert last is not None
        assert first in naive
        assert last in naive
        assert (first[0], last[0]) == (min(keys), max(keys))
    else:
        assert first is last is None


@given(CHANGES, st.data())
def test_sums_and_loops_over_a_range(changes: list[tuple[Any, Any, Any]], data: st.DataObject) -> None:
    """Either bound or none, strict or not, also where the upper lies below the lower."""
    tree, naive = built(changes)
    some = st.sampled_from(probes(naive))
    low, above = data.draw(some), data.draw(st.sampled_from(AFTER))
    high, below = data.draw(some), data.draw(st.sampled_from(BEFORE))
    up = data.draw(st.sampled_from([None, lambda key: above(key, low)]))
    down = data.draw(st.sampled_from([None, lambda key: below(key, high)]))
    expected = within(naive, up, down)
    total = tree.sum(up, down)
    assert total == sum(expected.values())
    assert not isinstance(total, Fraction) or total.denominator > 1
    entries = tree.range(up, down)
    assert sorted(entries) == sorted((entry, value) for (_, entry), value in expected.items())


@given(CHANGES)
def test_a_loop_is_in_order(changes: list[tuple[Any, Any, Any]]) -> None:
    tree = Tree()
    for key, entry, value in changes:
        if value is not None:
            tree.set(key, (key, entry), value)
    keys = [key for (key, _), _ in tree.range(None, None)]
    assert keys == sorted(keys)


@given(CHANGES, st.integers(0, 3), st.sampled_from(MONOTONE), st.data())
def test_runs_are_where_the_running_sum_holds(
    changes: list[tuple[Any, Any, Any]], which: int, compare: Compare, data: st.DataObject
) -> None:
    """k lies in a run iff P(Σ of W[k₂] over {k₂ : C(k₂, k)}); for no k do two runs claim it."""
    tree, naive = built(changes)
    included, after = MONOTONE[which], which >= 2
    sums = [sum(v for (other, _), v in naive.items() if included(other, key)) for key in probes(naive)]
    threshold = data.draw(st.sampled_from([*sums, 0, 1, -1]))
    runs = tree.runs(after, lambda total: compare(total, threshold))
    for key, total in zip(probes(naive), sums, strict=True):
        assert [in_a_run(run, included, key) for run in runs].count(True) == compare(total, threshold)
    verify(tree, naive)  # what the search has cached is right, and is forgotten by the next change:
    changed(tree, naive, [(key, entry, -value) for (key, entry), value in list(naive.items())[:2]])
    verify(tree, naive)


def test_runs_are_maximal_and_given_by_their_keys() -> None:
    tree, _ = built([(10, 0, 3), (20, 0, -2), (30, 0, 4), (40, 0, 0), (50, 0, -5)])  # 3 1 5 5 0; from the right -5 -1
    assert tree.runs(False, lambda total: total > 2) == [(True, 10, True, 20), (True, 30, True, 50)]
    assert tree.runs(False, lambda total: total < 2) == [
        (False, None, True, 10),
        (True, 20, True, 30),
        (True, 50, False, None),
    ]
    assert tree.runs(True, lambda total: total < 0) == [(True, 50, True, 10)]
    assert tree.runs(True, lambda total: total > -9) == [(False, None, False, None)]
    assert tree.runs(True, lambda total: total > 9) == []


def test_entries_with_equal_keys_are_one_step_of_a_run() -> None:
    """5 and -5 at the same key: no k lies between them."""
    tree, _ = built([(1, "a", 1), (2, "b", 5), (2, "c", -5), (Fraction(2), "d", 1)])
    assert tree.runs(False, lambda total: total > 1) == [(True, 2, False, None)]
    assert [entry for entry, _ in tree.range(lambda key: key > 1, None)] == ["b", "c", "d"]
    tree.erase(2, "b")
    assert tree.sum(None, None) == -3
    assert tree.runs(False, lambda total: total < 0) == [(True, 2, False, None)]


def test_the_empty_tree() -> None:
    assert not EMPTY
    assert EMPTY.sum(lambda key: key > 1, None) == 0
    assert EMPTY.range(None, None) == []
    assert EMPTY.runs(True, lambda total: total <= 0) == [(False, None, False, None)]
    assert EMPTY.runs(False, lambda total: total > 0) == []
    assert EMPTY.first() is EMPTY.last() is None


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
@pytest.mark.parametrize("least", [1, -20])
def test_growth_to_thousands_and_back_to_nothing(order: str, least: int) -> None:
    chance = random.Random(f"{order} {least}")
    keys = sorted(chance.choices(range(6000), k=4000))
    rows = [(key, entry, chance.randint(least, 20)) for entry, key in enumerate(keys)]
    if order != "ascending":
        rows.sort(key=lambda row: -row[0] if order == "descending" else chance.random())
    tree, naive = Tree(), Naive()
    ask_while(tree, naive, rows, chance)
    ask_while(tree, naive, [(key, entry, None) for key, entry, _ in rows], chance)
    assert not tree
    assert tree._root.children is None


def ask_while(tree: Tree, naive: Naive, rows: list[tuple[Any, Any, Any]], chance: random.Random) -> None:
    for start in range(0, len(rows), 250):
        changed(tree, naive, rows[start : start + 250])
        verify(tree, naive)
        low, high = chance.choices(range(-10, 6010), k=2)  # in either order: the range may be empty
        chosen = within(naive, lambda key: key >= low, lambda key: key < high)  # noqa: B023
        assert tree.sum(lambda key: key >= low, lambda key: key < high) == sum(chosen.values())  # noqa: B023
        expected = sorted((key, entry, value) for (key, entry), value in chosen.items())
        entries = tree.range(lambda key: key >= low, lambda key: key < high)  # noqa: B023
        assert sorted(entries) == sorted((entry, value) for _, entry, value in expected)
        for after in (False, True):
            threshold = tree.sum(None, None) * chance.randint(0, 4) // 4
            assert flips_of(tree.runs(after, lambda total: total > threshold)) == naive_flips(naive, after, threshold)  # noqa: B023


def flips_of(runs: list[Run]) -> list[Any]:
    return [key for a, inside, b, outside in runs for there, key in ((a, inside), (b, outside)) if there]


def naive_flips(naive: Naive, after: bool, threshold: Any) -> list[Any]:
    sums: dict[Any, Any] = {}
    for (key, _), value in sorted(naive.items(), reverse=after):
        sums[key] = sums.get(key, 0) + value
    holds = [total > threshold for total in accumulate(sums.values(), initial=0)]
    return [key for key, was, now in zip(sums, holds, holds[1:], strict=False) if was != now]


def test_a_search_looks_at_few_keys() -> None:
    """The predicates count as the work: about log₂ n calls for each bound, and for a threshold where no sum falls."""
    tree, _ = built([(key, key, 1) for key in range(20_000)])
    asked = 0

    def at_least(least: int) -> Callable[[Number], bool]:
        def holds(value: Number) -> bool:
            nonlocal asked
            asked += 1
            return value >= least

        return holds

    assert tree.sum(at_least(7_777), None) == 12_223
    assert asked < 60
    asked = 0
    assert tree.runs(True, at_least(5_000)) == [(True, 15_000, False, None)]
    assert asked < 60
    asked = 0
    tree.set(-1, "falling", -1)
    assert tree.runs(True, at_least(5_000)) == [(True, 15_000, False, None)]
    assert asked < 30 * module.FULL


SLICE_POSITIONS = st.sampled_from([(), (0,), (2,), (0, 2), (2, 0), (0, 2, 3)])
CELLS = st.sampled_from([None, 1, "a"])
FLAGS = st.sampled_from([None, 1])
HELD = st.tuples(CELLS, st.sampled_from([None, 0, 1]), FLAGS, FLAGS)  # few, so that many are erased again
WRITES = st.lists(st.tuples(HELD, st.sampled_from([None, None, 1, -2, Fraction(1, 2)])), max_size=40)


def at(positions: tuple[int, ...], held: tuple[Any, ...]) -> Any:
    """As ``itemgetter``: the value at one position, a tuple of those at several."""
    values = tuple(held[i] for i in positions)
    return values[0] if len(values) == 1 else values


@given(WRITES, st.lists(WRITES, max_size=4), SLICE_POSITIONS, st.data())
def test_the_trees_follow_the_content(
    before: list[tuple[Any, Any]], writes: list[list[tuple[Any, Any]]], slice_at: tuple[int, ...], data: st.DataObject
) -> None:
    content = {held: value for held, value in before if value is not None}
    ordered = Ordered(content, slice_at, 1)
    given_at = data.draw(
        st.lists(st.integers(0, len(slice_at) - 1), unique=True).map(tuple) if slice_at else st.just(())
    )
    for batch in [[], *writes]:
        for held, value in batch:
            if value is None:
                content.pop(held, None)
            else:
                content[held] = value
            ordered.touched[held] = None
        present = {held: value for held, value in content.items() if held[1] is not None}
        slices = {tuple(other[i] for i in slice_at) for other in present}
        for held in [*content, *[held for held, _ in batch]]:
            bound = at(slice_at, held)
            mine = {other: value for other, value in present.items() if at(slice_at, other) == bound}
            tree = ordered.tree(bound)
            verify(tree, {(other[1], other): value for other, value in mine.items()})
            assert dict(tree.range(None, None)) == mine
            whole = tuple(held[i] for i in slice_at)
            given_values = at(given_at, whole)
            given_slices = ordered.slices(given_at, given_values)
            assert len(given_slices) == len(set(given_slices))
            assert set(given_slices) == {s for s in slices if at(given_at, s) == given_values}
        assert sorted(map(repr, ordered.slices((), ()))) == sorted(map(repr, slices))
        assert not ordered.touched
        assert all(all(index.values()) for _, index in ordered._indexes.values())  # no list of no slices is kept


def test_an_entry_that_came_and_went_unseen() -> None:
    content: dict[tuple[Any, ...], Any] = {}
    ordered = Ordered(content, (0,), 1)
    ordered.touched["a", 1] = None
    assert ordered.tree("a") is EMPTY
    assert ordered.slices((), ()) == []
    content["a", 1] = 5
    content["a", None] = 7
    ordered.touched.update({("a", 1): None, ("a", None): None})
    assert ordered.tree("a").sum(None, None) == 5
    assert ordered.slices((0,), "a") == [("a",)]
    content.clear()
    ordered.touched["a", 1] = None
    assert ordered.slices((0,), "a") == []
    assert ordered.tree("a") is EMPTY
    assert not any(index for _, index in ordered._indexes.values())
