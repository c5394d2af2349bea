"""Maps and view caches: entries, slices through indexes that follow updates, and misses."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from viewlet.algebra.evaluate import UNBOUND, Entries, Key, Reader, evaluate, over
from viewlet.algebra.text import parse
from viewlet.engines.exact.store import Cache, Map
from viewlet.program.trigger import MapDefinition

VALUES = st.sampled_from([None, 0, 1, "a"])
KEYS = st.tuples(VALUES, VALUES, VALUES)
UPDATES = st.lists(st.tuples(KEYS, st.sampled_from([-1, 1, Fraction(1, 2)])))


def test_a_sum_that_comes_to_0_leaves_no_entry() -> None:
    content = Map({("a",): Fraction(1, 2)})
    content.add(("a",), Fraction(1, 2))
    assert content.entries() == {("a",): 1}
    assert type(content["a",]) is int
    content.add(("a",), -1)
    assert len(content) == 0
    assert list(content.read(("a",))) == []


def test_adding_0_to_nothing_is_nothing() -> None:
    assert Map({("a",): 0}).entries() == {}


def test_null_is_found_as_itself_and_not_as_unbound() -> None:
    content = Map({(None, 1): 1, (0, 1): 2})
    assert list(content.read((None, UNBOUND))) == [((None, 1), 1)]
    assert list(content.read((None, 1))) == [((None, 1), 1)]
    assert len(list(content.read((UNBOUND, 1)))) == 2


@given(UPDATES, UPDATES, KEYS, st.tuples(*[st.booleans()] * 3))
def test_a_slice_is_the_scan_that_filters(before: list, after: list, key: tuple, bound: tuple) -> None:  # type: ignore[type-arg]
    """An index made between two runs of updates answers like one made at the end, and like the living definition."""
    pattern = tuple(k if b else UNBOUND for k, b in zip(key, bound, strict=True))
    content = Map()
    for k, m in before:
        content.add(k, m)
    list(content.read(pattern))
    for k, m in after:
        content.add(k, m)
    atom = parse("v[][x, y, z]")
    assert dict(content.read(pattern)) == dict(over({"v": content.entries()})(atom, pattern))  # type: ignore[arg-type]


def test_replaced_content_is_found_by_the_indexes() -> None:
    content = Map({(1, 1): 1})
    assert list(content.read((1, UNBOUND))) == [((1, 1), 1)]
    content.replace({(1, 2): 5})
    assert list(content.read((1, UNBOUND))) == [((1, 2), 5)]


def cache_of(view: MapDefinition, read: Reader) -> Cache:
    def fill(given: Key) -> Entries:
        assert view.fill is not None
        return evaluate(view.fill, read, view.outputs, dict(zip(view.inputs, given, strict=True)))

    return Cache(len(view.inputs), fill)


def test_a_cache_fills_on_a_miss_and_then_holds() -> None:
    """above[p][b] = Sum of volumes above price p, by broker b."""
    volumes: Entries = {(7, 10): 100, (7, 20): 50, (8, 30): 1}
    view = MapDefinition(
        "above",
        ("p",),
        ("b",),
        definition=parse("Sum[b](bids(b, price, v) * [price > p] * v)"),
        why="",
        fill=parse("Sum[b](volume[][b, price] * [price > p])"),
    )
    cache = cache_of(view, over({"volume": volumes}))
    assert cache.held() == []
    assert dict(cache.read((15, UNBOUND))) == {(15, 7): 50, (15, 8): 1}
    assert list(cache.read((15, 8))) == [((15, 8), 1)]
    assert cache.held() == [(15,)]

    volumes[7, 20] = 1000  # who holds an entry must maintain it: it is not computed again
    assert list(cache.read((15, 7))) == [((15, 7), 50)]
    cache[15,].add((7,), 950)
    assert cache.entries() == {(15, 7): 1000, (15, 8): 1}
    cache.drop([(15,)])
    assert list(cache.read((15, 7))) == [((15, 7), 1000)]


def test_an_empty_answer_is_held_too() -> None:
    view = MapDefinition("v", ("p",), (), parse("Sum[](r(x) * [x > p])"), "", fill=parse("Sum[](r[][x] * [x > p])"))
    rows: Entries = {}
    cache = cache_of(view, over({"r": rows}))
    assert list(cache.read((1,))) == []
    rows[5,] = 1
    assert list(cache.read((1,))) == [], "held as empty: maintained, not computed again"
    assert cache.held() == [(1,)]
