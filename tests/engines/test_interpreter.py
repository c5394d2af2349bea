"""The interpreter runs programs made by hand: the paper's examples, statement order, buffers, bulk updates, caches."""

from __future__ import annotations

import random

import pytest

from viewlet.algebra.evaluate import Entries, Key, evaluate, over
from viewlet.algebra.query import View
from viewlet.algebra.text import parse
from viewlet.engines.exact.interpreter import Interpreter
from viewlet.program.trigger import Event, MapDefinition, Program, Statement, Trigger
from viewlet.schema import BIGINT, Column, Relation


def relation(name: str, columns: str, static: bool = False) -> Relation:
    return Relation(name, tuple(Column(c, BIGINT, nullable=False) for c in columns.split()), static)


def view(read: str, definition: str, fill: str | None = None) -> MapDefinition:
    target = parse(read)
    assert isinstance(target, View)
    return MapDefinition(
        target.name, target.inputs, target.outputs, parse(definition), "", parse(fill) if fill else None
    )


def statement(text: str, buffered: bool = False) -> Statement:
    op = "+=" if " += " in text else ":="
    target, expression = text.split(f" {op} ", 1)
    read = parse(target)
    assert isinstance(read, View)
    return Statement(read, op, parse(expression), buffered)  # type: ignore[arg-type]


def trigger(kind: str, r: Relation, *statements: str | Statement) -> Trigger:
    params = () if kind == "Δ" else tuple(f"@{c.name}" for c in r.columns)
    made = tuple(s if isinstance(s, Statement) else statement(s) for s in statements)
    return Trigger(Event(kind, r.name, params), made)  # type: ignore[arg-type]


def program(relations: tuple[Relation, ...], views: tuple[MapDefinition, ...], *triggers: Trigger) -> Program:
    return Program(relations, views, triggers, (), "by hand")


def agrees_with_definitions(engine: Interpreter, p: Program) -> None:
    """Every map is its definition over the base tables; of a cache, every input tuple that it holds."""
    read = over({r.name: engine.table(r.name) for r in p.relations})
    for v in p.views:
        held = {key[: len(v.inputs)] for key in engine.entries(v.name)} if v.inputs else {()}
        expected: Entries = {}
        for given in held:
            env = dict(zip(v.inputs, given, strict=True))
            entries = evaluate(v.definition, read, v.outputs, env)
            expected |= {given + key: m for key, m in entries.items()}
        assert engine.entries(v.name) == expected, v.name


# -- Example 1: the size of R × S --------------------------------------------------------------------------------------

R, S = relation("R", "a"), relation("S", "b")
EXAMPLE_1 = program(
    (R, S),
    (
        view("q[][]", "Sum[](R(a) * S(b))"),
        view("delta_r[][]", "Sum[](S(b))"),
        view("delta_s[][]", "Sum[](R(a))"),
        view("delta_rs[][]", "1"),
    ),
    trigger("+", R, "q[][] += delta_r[][]", "delta_s[][] += delta_rs[][]"),
    trigger("+", S, "q[][] += delta_s[][]", "delta_r[][] += delta_rs[][]"),
)


def test_example_1_the_whole_table_of_states() -> None:
    engine = Interpreter(EXAMPLE_1, {"R": {(1,): 1, (2,): 1}, "S": {(1,): 1, (2,): 1, (3,): 1}})
    states = []
    for insert_into in ("", "S", "R", "S", "S"):
        if insert_into:
            engine.apply("+", insert_into, (0,))
        sizes = [sum(engine.table(r).values()) for r in ("R", "S")]
        views = [engine.entries(v.name)[()] for v in EXAMPLE_1.views]
        states.append([insert_into, *sizes, *views])
    assert states == [
        ["", 2, 3, 6, 3, 2, 1],
        ["S", 2, 4, 8, 4, 2, 1],
        ["R", 3, 4, 12, 4, 3, 1],
        ["S", 3, 5, 15, 5, 3, 1],
        ["S", 3, 6, 18, 6, 3, 1],
    ]


def test_a_program_for_inserts_refuses_deletes() -> None:
    """A view that silently stayed behind would be a wrong answer."""
    engine = Interpreter(EXAMPLE_1)
    with pytest.raises(ValueError, match="none for -R"):
        engine.apply("-", "R", (1,))


# -- Example 2: sum(LI.PRICE * O.XCH) ----------------------------------------------------------------------------------

ORDERS, LINEITEM = relation("O", "ordk custk xch"), relation("LI", "ordk partk price")


def example_2_triggers(kind: str, sign: str) -> tuple[Trigger, Trigger]:
    return (
        trigger(kind, ORDERS, f"q[][] += q_o[][@ordk] * @xch{sign}", f"q_li[][@ordk] += @xch{sign}"),
        trigger(kind, LINEITEM, f"q[][] += q_li[][@ordk] * @price{sign}", f"q_o[][@ordk] += @price{sign}"),
    )


EXAMPLE_2 = program(
    (ORDERS, LINEITEM),
    (
        view("q[][]", "Sum[](O(ordk, custk, xch) * LI(ordk, partk, price) * price * xch)"),
        view("q_li[][ordk]", "Sum[ordk](O(ordk, custk, xch) * xch)"),
        view("q_o[][ordk]", "Sum[ordk](LI(ordk, partk, price) * price)"),
    ),
    *example_2_triggers("+", ""),
    *example_2_triggers("-", " * -1"),
    trigger(
        "Δ",
        ORDERS,
        "q[][] += Sum[](ΔO(ordk, custk, xch) * q_o[][ordk] * xch)",
        "q_li[][ordk] += Sum[ordk](ΔO(ordk, custk, xch) * xch)",
    ),
    trigger(
        "Δ",
        LINEITEM,
        "q[][] += Sum[](ΔLI(ordk, partk, price) * q_li[][ordk] * price)",
        "q_o[][ordk] += Sum[ordk](ΔLI(ordk, partk, price) * price)",
    ),
)


def test_example_2_by_hand() -> None:
    engine = Interpreter(EXAMPLE_2)
    engine.apply("+", "O", (1, 10, 2))
    engine.apply("+", "LI", (1, 5, 100))
    assert engine.entries("q") == {(): 200}
    engine.apply("+", "O", (1, 11, 3))
    assert engine.entries("q") == {(): 500}
    assert engine.entries("q_li") == {(1,): 5}
    engine.apply("-", "O", (1, 10, 2))
    assert engine.entries("q") == {(): 300}
    engine.apply("-", "LI", (1, 5, 100))
    assert engine.entries("q") == {}, "a multiplicity of 0 is no entry"
    assert engine.entries("q_o") == {}


def random_events(relations: tuple[Relation, ...], n: int, seed: int) -> list[tuple[str, str, Key]]:
    """Inserts, and deletes of rows that are there."""
    rng = random.Random(seed)
    there: list[tuple[str, Key]] = []
    events = []
    for _ in range(n):
        if there and rng.random() < 0.4:
            events.append(("-", *there.pop(rng.randrange(len(there)))))
        else:
            r = rng.choice(relations)
            there.append((r.name, tuple(rng.randrange(4) for _ in r.columns)))
            events.append(("+", *there[-1]))
    return events


def test_example_2_agrees_with_its_definitions_after_every_event() -> None:
    engine = Interpreter(EXAMPLE_2)
    seen = set()
    for kind, name, row in random_events(EXAMPLE_2.relations, 150, seed=1):
        engine.apply(kind, name, row)  # type: ignore[arg-type]
        agrees_with_definitions(engine, EXAMPLE_2)
        seen |= set(engine.entries("q").values())
    assert len(seen) > 20, "the answer moved"


def test_bulk_updates_with_inserts_deletes_and_multiplicities() -> None:
    engine = Interpreter(EXAMPLE_2)
    engine.apply_bulk("O", {(1, 1, 2): 3, (2, 1, 5): 1})
    engine.apply_bulk("LI", {(1, 1, 10): 2, (2, 2, 7): 1})
    assert engine.entries("q") == {(): 3 * 2 * 2 * 10 + 5 * 7}
    engine.apply_bulk("O", {(1, 1, 2): -3, (3, 3, 3): 1})
    agrees_with_definitions(engine, EXAMPLE_2)
    assert engine.table("O") == {(2, 1, 5): 1, (3, 3, 3): 1}


# -- which version a statement reads -----------------------------------------------------------------------------------

SWAPPED = view("left[][x]", "0 * R(x)"), view("right[][x]", "0 * R(x)")


def swap(buffered: bool) -> Interpreter:
    """left, right := right, left; then left += {a}."""
    swapping = (
        statement("left[][x] := right[][x]", buffered),
        statement("right[][x] := left[][x]", buffered),
        statement("left[][@a] += 1"),
    )
    return Interpreter(program((R,), SWAPPED, trigger("+", R, *swapping)))


def test_buffered_statements_see_the_state_before_the_trigger() -> None:
    engine = swap(buffered=True)
    for a in (1, 2, 3):
        engine.apply("+", "R", (a,))
    assert engine.entries("left") == {(1,): 1, (3,): 1}
    assert engine.entries("right") == {(2,): 1}


def test_statements_run_in_the_order_of_the_program() -> None:
    """The same program without the buffer: the second statement reads what the first wrote."""
    engine = swap(buffered=False)
    for a in (1, 2, 3):
        engine.apply("+", "R", (a,))
    assert engine.entries("left") == {(3,): 1}
    assert engine.entries("right") == {}


def test_a_self_join_needs_the_old_version() -> None:
    """count(R ⋈ R): Δ reads count per key before it is incremented (Example 6)."""
    pairs = program(
        (R,),
        (view("q[][]", "Sum[](R(a) * R(a))"), view("n[][a]", "R(a)")),
        trigger("+", R, "q[][] += (n[][@a] * 2 + 1)", "n[][@a] += 1"),
        trigger("-", R, "q[][] += (n[][@a] * -2 + 1)", "n[][@a] += -1"),
    )
    engine = Interpreter(pairs)
    for kind, name, row in random_events((R,), 60, seed=2):
        engine.apply(kind, name, row)  # type: ignore[arg-type]
        agrees_with_definitions(engine, pairs)
    assert engine.entries("q")[()] > 10


def test_a_trigger_may_not_read_the_base_table_it_changes() -> None:
    ambiguous = program((R,), (view("q[][]", "Sum[](R(a))"),), trigger("+", R, "q[][] := Sum[](R(a))"))
    with pytest.raises(ValueError, match=r"\+R\(@a\) reads the base table R"):
        Interpreter(ambiguous)


# -- static tables and starting points ---------------------------------------------------------------------------------

NATION = relation("N", "a region", static=True)
BY_REGION = program(
    (R, NATION),
    (view("q[][region]", "Sum[region](R(a) * N(a, region))"), view("n[][a]", "R(a)")),
    trigger("+", R, "q[][region] += N(@a, region)", "n[][@a] += 1"),
    trigger("-", R, "q[][region] += N(@a, region) * -1", "n[][@a] += -1"),
)


def test_loading_a_static_table_rebuilds_what_depends_on_it() -> None:
    engine = Interpreter(BY_REGION)
    engine.apply("+", "R", (1,))
    engine.load("N", {(1, 100): 1, (2, 100): 1})
    assert engine.entries("q") == {(100,): 1}
    engine.apply("+", "R", (2,))
    assert engine.entries("q") == {(100,): 2}
    engine.load("N", {(2, 100): -1, (2, 200): 1})
    assert engine.entries("q") == {(100,): 1, (200,): 1}
    agrees_with_definitions(engine, BY_REGION)


def test_a_relation_without_triggers_only_changes_its_table() -> None:
    engine = Interpreter(program((R, S), (view("n[][]", "Sum[](S(b))"),), trigger("+", S, "n[][] += 1")))
    engine.apply("+", "R", (1,))
    engine.apply_bulk("R", {(1,): 2})
    assert engine.count("R", (1,)) == 3
    assert engine.entries("n") == {}


def test_a_view_that_is_not_empty_over_an_empty_database() -> None:
    engine = Interpreter(program((R,), (view("q[][n]", "(n := Sum[](R(a)))"),)))
    assert engine.entries("q") == {(0,): 1}


# -- view caches (§5.1) ------------------------------------------------------------------------------------------------

BIDS = relation("bids", "price volume")
ASKED = relation("asked", "p")
DEPTH = "above[p][] += [@price > p] * @volume"
VWAP_LIKE = program(
    (BIDS, ASKED),
    (
        view(
            "above[p][]",
            "Sum[](bids(price, volume) * [price > p] * volume)",
            fill="Sum[](volume[][price] * [price > p])",
        ),
        view("volume[][price]", "Sum[price](bids(price, volume) * volume)"),
        view("answer[][p]", "Sum[p](asked(p) * bids(price, volume) * [price > p] * volume)"),
        view("askers[][p]", "asked(p)"),
    ),
    trigger("+", ASKED, "answer[][@p] += above[@p][]", "askers[][@p] += 1"),
    trigger("-", ASKED, "answer[][@p] += above[@p][] * -1", "askers[][@p] += -1"),
    trigger("+", BIDS, DEPTH, "volume[][@price] += @volume", "answer[][p] := askers[][p] * above[p][]"),
    trigger("-", BIDS, f"{DEPTH} * -1", "volume[][@price] += @volume * -1", "answer[][p] := askers[][p] * above[p][]"),
)


def test_a_cache_is_filled_by_reads_and_maintained_by_updates() -> None:
    engine = Interpreter(VWAP_LIKE)
    engine.apply("+", "bids", (10, 100))
    assert engine.entries("above") == {}, "nobody asked yet"
    engine.apply("+", "asked", (5,))
    assert engine.entries("above") == {(5,): 100}
    engine.apply("+", "bids", (20, 7))
    assert engine.entries("above") == {(5,): 107}
    engine.apply("+", "asked", (15,))
    assert engine.entries("answer") == {(5,): 107, (15,): 7}


def test_a_cache_agrees_with_its_definition_after_every_event() -> None:
    engine = Interpreter(VWAP_LIKE)
    for kind, name, row in random_events((BIDS, ASKED), 150, seed=3):
        engine.apply(kind, name, row)  # type: ignore[arg-type]
        agrees_with_definitions(engine, VWAP_LIKE)
    assert len(engine.entries("above")) > 1
    assert engine.entries("answer")


def test_what_a_cache_took_in_while_a_buffered_statement_waited_is_filled_again() -> None:
    """The read in the second statement fills above[0][] with the old volumes, after the increments were evaluated."""
    late = program(
        (BIDS,),
        (*VWAP_LIKE.views[:2], view("seen[][]", "0 * bids(price, volume)")),
        trigger(
            "+",
            BIDS,
            "seen[][] += (p := 0) * above[p][]",
            statement(DEPTH, buffered=True),
            "volume[][@price] += @volume",
        ),
    )
    engine = Interpreter(late)
    engine.apply("+", "bids", (10, 100))
    assert engine.entries("above") == {}
    engine.apply("+", "bids", (10, 100))
    assert engine.entries("seen") == {(): 100}
    engine.apply("+", "bids", (10, 100))
    assert engine.entries("seen") == {(): 300}


def test_a_cache_forgets_when_a_static_table_is_loaded() -> None:
    prices = relation("prices", "price volume", static=True)
    reader = program(
        (prices, ASKED),
        (
            view("above[p][]", "Sum[](prices(x, v) * [x > p] * v)", fill="Sum[](prices(x, v) * [x > p] * v)"),
            view("answer[][p]", "Sum[p](asked(p) * prices(x, v) * [x > p] * v)"),
        ),
        trigger("+", ASKED, "answer[][@p] += above[@p][]"),
    )
    engine = Interpreter(reader)
    engine.load("prices", {(10, 1): 1})
    engine.apply("+", "asked", (5,))
    assert engine.entries("above") == {(5,): 1}
    engine.load("prices", {(20, 2): 1})
    assert engine.entries("above") == {}
    assert engine.entries("answer") == {(5,): 3}
    engine.apply("+", "asked", (5,))
    assert engine.entries("answer") == {(5,): 6}


def test_a_cache_statement_aimed_at_a_parameter_touches_only_that_input() -> None:
    aimed = program(
        (R,),
        (
            view("same[p][]", "Sum[](R(a) * [a = p])", fill="Sum[](n[][a] * [a = p])"),
            view("n[][a]", "R(a)"),
            view("seen[][]", "0 * R(a)"),
        ),
        trigger("+", R, "same[@a][] += 1", "n[][@a] += 1", "seen[][] := (p := 1) * same[p][]"),
    )
    engine = Interpreter(aimed)
    for a in (1, 2, 1):
        engine.apply("+", "R", (a,))
    assert engine.entries("same") == {(1,): 2}
