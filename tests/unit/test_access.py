"""Access paths: what explain says a statement reads, and what it costs, is what evaluating it does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import pytest

import viewlet
from viewlet.algebra.evaluate import UNBOUND, Key, Pattern, evaluate, over
from viewlet.algebra.query import Atom, Delta, View, relations
from viewlet.algebra.terms import Number
from viewlet.algebra.text import parse
from viewlet.compiler.script import compile_query
from viewlet.engines.exact.interpreter import Interpreter
from viewlet.loops.cost_class import program_cost_class, scan_warnings, statement_access
from viewlet.program.trigger import Event, MapDefinition, Program, Statement, Trigger
from viewlet.schema import BIGINT, Column, Relation
from viewlet.workloads.queries import PAPER_QUERIES
from viewlet.workloads.streams import order_book, tpch


def relation(name: str, *columns: str) -> Relation:
    return Relation(name, tuple(Column(c, BIGINT, False) for c in columns))


SCHEMA = (relation("R", "a", "b"), relation("S", "b", "c"))


def kept(name: str, *outputs: str) -> MapDefinition:
    return MapDefinition(name, (), outputs, parse("1"), "for this test")


VIEWS = (kept("v"), kept("r", "a", "b"), kept("s", "b", "c"), kept("one"))
PROGRAM = Program(SCHEMA, VIEWS, (), (), "by hand", ordered=False)
INSERT = Event("+", "R", ("@a", "@b"))
BULK = Event("Δ", "R", ())


def cost(expression: str, event: Event = INSERT) -> viewlet.loops.cost_class.StatementCost:
    return statement_access(Statement(View("v", (), ()), "+=", parse(expression)), event, PROGRAM)


@pytest.mark.parametrize(
    ("expression", "cost_class", "paths"),
    [
        ("@a * 2", "O(1)", []),
        ("one[][] * r[][@a, @b]", "O(1)", ["lookup", "lookup"]),
        ("Sum[](s[][@b, c] * c)", "O(matches)", ["slice"]),
        ("Sum[](s[][b, c] * [b < @b])", "O(n)", ["scan"]),
        ("Sum[](r[][a, b] * s[][b, c])", "O(n·matches)", ["scan", "slice"]),
        ("Sum[](r[][a, @b] * s[][a, c])", "O(matches)", ["slice", "slice"]),
        ("Sum[](r[][a, b] * (n := Sum[](s[][x, y] * [x > a])) * [n < 3])", "O(n²)", ["scan", "scan"]),
        ("Sum[](r[][a, b]) * Sum[](s[][x, y])", "O(n)", ["scan", "scan"]),
        ("(Sum[](r[][a, b]) + Sum[](s[][@b, y]))", "O(n)", ["scan", "slice"]),
        ("Sum[](Sum[b](r[][a, b] * a) * s[][b, c])", "O(n·matches)", ["scan", "slice"]),
        ("Sum[](r[][a, b] * s[][x, y] * r[][z, w])", "O(n³)", ["scan", "scan", "scan"]),
    ],
)
def test_the_bound_keys_decide(expression: str, cost_class: str, paths: list[str]) -> None:
    access = cost(expression)
    assert access.cost_class == cost_class
    assert sorted(path for _, path in access.paths) == sorted(paths)
    assert access.unit == "event"


def test_the_reason_names_the_view_and_the_comparison_that_does_not_help() -> None:
    assert cost("Sum[](s[][b, c] * [b < @b])").reason == "scans s: no key is bound, only compared in [b < @b]"
    assert cost("Sum[](s[][@b, c] * c)").reason == "slices s: only @b is bound"
    nested = cost("Sum[](r[][a, b] * (n := Sum[](s[][x, y] * [x > a])) * [n < 3])")
    assert nested.reason == "scans r: no key is bound; for each, scans s: no key is bound, only compared in [x > a]"


def test_a_nested_aggregate_that_needs_nothing_from_the_loop_runs_before_it() -> None:
    assert cost("Sum[](r[][a, b] * (n := Sum[](s[][x, y])) * [a < n])").cost_class == "O(n)"


def test_a_batch_is_counted_per_tuple() -> None:
    access = cost("Sum[](ΔR(a, b) * s[][b, c])", BULK)
    assert (access.cost_class, access.unit) == ("O(matches)", "tuple of the batch")
    assert dict(access.paths)["ΔR(a, b)"] == "batch"
    twice = cost("Sum[](ΔR(a, b) * ΔR(c, d) * [a < c])", BULK)
    assert (twice.cost_class, twice.unit) == ("O(batch)", "tuple of the batch")


def test_a_reevaluation_after_a_batch_runs_once() -> None:
    access = cost("Sum[](r[][a, b])", BULK)
    assert (access.cost_class, access.unit) == ("O(n)", "batch")


def test_a_view_cache_is_refreshed_for_every_input_and_may_miss() -> None:
    """Sum_{a < b} over an inequality: under ``naive`` the input a stays in the view (§5.1)."""
    program = compile_query("q", parse("Sum[](R(a, b) * S(c, d) * [b < c])"), SCHEMA, "naive")
    program = replace(program, ordered=False)
    (cache,) = (v for v in program.views if v.is_cache and relations(v.definition) == {"S"})
    inserts = {t.event.relation: t for t in program.triggers if t.event.kind == "+"}

    (refresh,) = (s for s in inserts["S"].statements if s.target.name == cache.name)
    access = statement_access(refresh, inserts["S"].event, program)
    assert (access.cost_class, access.has_scan) == ("O(n)", True)
    assert "every input that the view cache holds" in access.reason

    (reader,) = (s for s in inserts["R"].statements if s.target.name == "q")
    miss = statement_access(reader, inserts["R"].event, program)
    assert miss.cost_class == "O(n)"
    assert f"to fill {cache.name} when it misses" in miss.reason


def test_the_paper_s_cheap_queries_never_scan() -> None:
    for name in ("axf", "bsp", "bsv", "q3", "q11", "ssb4"):
        program = compiled(name)
        assert scan_warnings(program) == (), name
        assert program_cost_class(program) in ("O(1)", "O(matches)"), name
    assert program_cost_class(compiled("bsv"), kinds="+-") == "O(1)"


def test_a_scan_is_a_warning_with_its_events_and_reason() -> None:
    program = replace(compile_query("q", parse("Sum[](R(a, b) * S(c, d) * [b < c])"), SCHEMA), ordered=False)
    assert program_cost_class(program) == "O(n)"
    of_q = [w for w in scan_warnings(program) if w.startswith("q on ")]
    assert len(of_q) == 2, "once for each relation, not for each event"
    assert any("+R, -R, ΔR takes O(n): scans" in w for w in of_q)


def test_a_result_is_charged_only_for_what_it_needs() -> None:
    both = viewlet.compile(PAPER_QUERIES["vwap"].script() + PAPER_QUERIES["bsv"].sql())
    assert program_cost_class(both, "bsv", "+-") == "O(1)"
    assert program_cost_class(both, "vwap") == program_cost_class(both)
    with pytest.raises(viewlet.Error, match="there is no view nope; there are: vwap, bsv"):
        program_cost_class(both, "nope")


# -- against what evaluation does --------------------------------------------------------------------------------------


@lru_cache
def compiled(name: str, strategy: str = "optimized", ordered: bool = False) -> Program:
    """Without ordered access paths unless told: what the living definition does, and the paper."""
    return replace(viewlet.compile(PAPER_QUERIES[name].script(), strategy=strategy), ordered=ordered)


class Recorder:
    """Reads from an engine, noting each access path used and counting the entries visited."""

    def __init__(self, engine: Interpreter, update: dict[Key, Number]) -> None:
        self.engine = engine
        self.update = update
        self.paths = set[tuple[str, str]]()
        self.visited = 0

    def __call__(self, atom: Atom, pattern: Pattern) -> Iterable[tuple[Key, Number]]:
        bound = sum(value is not UNBOUND for value in pattern)
        some, none = ("own", "batch") if isinstance(atom, Delta) else ("slice", "scan")
        self.paths.add((atom.text, "lookup" if bound == len(pattern) else some if bound else none))
        source = over({f"Δ{atom.name}": self.update}) if isinstance(atom, Delta) else self.engine.read
        entries = list(source(atom, pattern))
        self.visited += len(entries)
        return entries


def recorded(statement: Statement, trigger: Trigger, engine: Interpreter, rows: list[Key]) -> Recorder:
    """Evaluate ``statement`` as if the first of ``rows``, or the batch of all, came now."""
    recorder = Recorder(engine, dict.fromkeys(rows, 1))
    env = dict(zip(trigger.event.params, rows[0], strict=bool(trigger.event.params)))
    evaluate(statement.expression, recorder, statement.target.outputs, env if trigger.event.params else {})
    return recorder


def filled(program: Program, events: Iterable[tuple[str, str, Key]]) -> tuple[Interpreter, dict[str, list[Key]]]:
    engine, rows = Interpreter(program), dict[str, list[Key]]()
    for op, name, row in events:
        if op == "+":
            engine.apply("+", name, row)
            rows.setdefault(name, []).append(row)
    return engine, rows


@pytest.mark.parametrize("strategy", ["optimized", "naive", "classical"])
@pytest.mark.parametrize("name", ["axf", "bsp", "psp", "vwap", "mst", "q11", "q17", "q18", "q22"])
def test_evaluation_uses_the_predicted_paths(name: str, strategy: str) -> None:
    program, query = compiled(name, strategy), PAPER_QUERIES[name]
    if query.relations[0] in ("bids", "asks"):
        events = [(op, r, tuple(map(int, row))) for op, r, row in order_book(3, 40, live=20, brokers=3)]
    else:
        stream = tpch(3, 60, live=20, relations=query.relations)
        events = [(op, r, tuple(_scalar(v) for v in row)) for op, r, row in stream]
    engine, rows = filled(program, events)
    predicted, used = set[tuple[str, str]](), set[tuple[str, str]]()
    for trigger in program.triggers:
        for statement in (s for s in trigger.statements if not s.target.inputs):
            paths = {
                (text, "scan" if path == "groups" else path)
                for text, path in statement_access(statement, trigger.event, program).paths
            }
            visited = recorded(statement, trigger, engine, rows[trigger.event.relation][-3:]).paths
            assert visited <= paths, f"{statement} on {trigger.event}"
            predicted |= paths
            used |= visited
    assert used, "nothing was read"
    if strategy != "naive":  # there, what fills a cache is predicted but read inside the engine
        assert len(used) > 0.6 * len(predicted)


def _scalar(value: object) -> int | str:
    return value if isinstance(value, (int, str)) else int(value) if hasattr(value, "__int__") else hash(value)


@pytest.mark.parametrize("name", ["bsv", "bsp", "psp", "vwap", "mst"])
def test_the_entries_visited_grow_as_the_class_says(name: str) -> None:
    """Twice the orders, each of its own broker, price and volume: O(nᵏ) statements visit about 2ᵏ times as many.

    How many orders a threshold lets pass does not double exactly; 2.5ᵏ still tells k from k + 1.
    """
    program = compiled(name)
    engines = {n: filled(program, orders(n)) for n in (16, 32)}
    inserts = [(s, t) for t in program.triggers if t.event.kind == "+" for s in t.statements]
    worst = max(statement_access(s, t.event, program).rank for s, t in inserts)
    tight = False
    for statement, trigger in inserts:
        rank = statement_access(statement, trigger.event, program).rank
        small, large = (
            recorded(statement, trigger, engine, rows[trigger.event.relation][:1]).visited
            for engine, rows in engines.values()
        )
        loops = rank[0] + rank[2]  # each order is of its own broker: as many groups as orders
        assert large <= 2.5**loops * max(small, 1), f"{statement} on {trigger.event}: {small}, then {large}"
        tight |= rank == worst and large >= 1.6**loops * small
    assert tight, "no statement is as slow as the class says"


def orders(n: int) -> list[tuple[str, str, Key]]:
    return [("+", side, (i, i, i, 100 + i, 1000 + 3 * i)) for i in range(n) for side in ("bids", "asks")]
