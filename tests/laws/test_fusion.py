"""Fused and hoisted passes do what the statements do one by one.

The interpreter runs a trigger statement by statement; generated Python runs fused passes; machine code runs fused
passes with hoisted totals, and changes of one entry together. After every event all three have the same views, the
auxiliary ones too.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

import viewlet
from tests.engines.conformance import STRATEGIES, Case, apply_event
from tests.engines.random_sql import cases
from tests.oracle.oracle import difference
from viewlet.algebra.evaluate import Entries
from viewlet.algebra.query import Compare, View
from viewlet.algebra.terms import Const, Op, Var
from viewlet.algebra.text import parse
from viewlet.database.memory import Database
from viewlet.engines.exact.interpreter import Interpreter
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.loops.fuse import Turn, bound_names, merged, renamed
from viewlet.loops.hoist import free_names, hoist
from viewlet.loops.lower import Lowering
from viewlet.loops.pipeline import Plan, fused, turns_of
from viewlet.loops.steps import Add, Block, Emit, Factor, Let, Total
from viewlet.loops.steps import Test as Filter
from viewlet.program.trigger import Event, MapDefinition, Program, Statement, Trigger
from viewlet.schema import BIGINT, Column, Relation

SCHEMA = """
CREATE STREAM r (a BIGINT NOT NULL, b BIGINT NOT NULL, x BIGINT NOT NULL);
CREATE STREAM s (b BIGINT NOT NULL, c BIGINT, y DECIMAL(8,2) NOT NULL);
"""
SCRIPTS = {
    "sums of one join": """
        SELECT r.a, sum(r.x * s.y) AS n, sum(s.y) AS m, count(*) AS k FROM r, s WHERE r.b = s.b GROUP BY r.a;
        SELECT s.c, sum(r.x) AS n, sum(r.x * r.x) AS m FROM r, s WHERE r.b = s.b GROUP BY s.c""",
    "a union that binds a name twice": """
        SELECT l.a, count(*) AS n, sum(l.a + 10) AS m FROM r l, r m WHERE l.b = m.a AND m.b = l.a GROUP BY l.a;
        SELECT l.a, sum(l.a * 3 + m.x) AS n FROM r l, r m WHERE l.b = m.a AND m.b = l.a GROUP BY l.a""",
    "self-joins with sums of both sides": """
        SELECT l.a, sum(l.x * m.x) AS n, sum(l.x - m.x) AS d FROM r l, r m WHERE l.a = m.a GROUP BY l.a;
        SELECT sum(l.x * m.x) AS n, count(*) AS k FROM r l, r m WHERE l.b = m.b AND l.x < m.x""",
    "nested totals that several statements need": """
        SELECT sum(r.x) AS n FROM r WHERE r.x * 4 > (SELECT sum(m.x) FROM r m);
        SELECT r.a, count(*) AS n FROM r WHERE r.x * 4 > (SELECT sum(m.x) FROM r m) GROUP BY r.a""",
    "totals by inequality": """
        SELECT sum(r.x * s.y) AS n FROM r, s WHERE r.x > s.c AND r.b <= s.b;
        SELECT count(*) AS n, sum(s.y) AS m FROM r, s WHERE r.x > s.c""",
    "distinct beside sums": """
        SELECT count(DISTINCT r.b) AS n, sum(DISTINCT r.x) AS m, sum(r.x) AS k FROM r, s WHERE r.b = s.b;
        SELECT DISTINCT r.a, s.c FROM r, s WHERE r.b = s.b""",
    "there or not": """
        SELECT r.a, sum(r.x) AS n FROM r WHERE EXISTS (SELECT * FROM s WHERE s.b = r.b) GROUP BY r.a;
        SELECT r.a, sum(r.x) AS n FROM r WHERE r.b NOT IN (SELECT s.b FROM s WHERE s.c > 0) GROUP BY r.a""",
}


NAMES = list(SCRIPTS)


def case(name: str) -> Case:
    selects = {f"v{i}": select.strip() for i, select in enumerate(SCRIPTS[name].split(";"), 1)}
    views = "".join(f"CREATE MATERIALIZED VIEW {view} AS {select};\n" for view, select in selects.items())
    rng, live, events = Random(name), list[tuple[str, tuple[object, ...]]](), []
    for _ in range(90):
        if live and rng.random() < len(live) / 24:
            events.append(("-", *live.pop(rng.randrange(len(live)))))
            continue
        row: tuple[object, ...] = (rng.randrange(3), rng.randrange(3), rng.randrange(-2, 4))
        if rng.random() < 0.5:
            live.append(("r", row))
        else:
            live.append(("s", (row[0], rng.choice((None, 0, 1, 2)), rng.choice(("0.50", "-1.25", "2")))))
        events.append(("+", *live[-1]))
    return Case(SCHEMA, views, selects, events)


def kept(database: Database) -> dict[str, Entries]:
    """All views, but for the caches, which hold what was asked for."""
    return {v.name: database.engine.entries(v.name) for v in database.program.views if not v.is_cache}


def alike(given: Case, contestants: list[tuple[str, str]]) -> int:
    """How many different contents there were; every engine against the interpreter of the same strategy."""
    truths = {strategy: given.open("interpreter", strategy) for _, strategy in contestants}
    others = {contestant: given.open(*contestant) for contestant in contestants}
    seen = set[str]()
    for number, event in enumerate(given.events):
        for database in (*truths.values(), *others.values()):
            apply_event(database, event)
        for (engine, strategy), database in others.items():
            assert kept(database) == kept(truths[strategy]), (engine, strategy, number, event)
        seen.add(repr(sorted(kept(truths[contestants[0][1]]).items(), key=repr)))
    for view in given.selects:
        for (engine, strategy), database in others.items():
            rows = truths[strategy].view(view).rows()
            assert difference(database.view(view).rows(), rows) is None, (engine, strategy, view)
    return len(seen)


@pytest.mark.parametrize("name", NAMES)
def test_fused_passes_are_the_statements_one_by_one(name: str) -> None:
    assert alike(case(name), [("python", strategy) for strategy in STRATEGIES]) > 20


@pytest.mark.parametrize("name", NAMES)
def test_hoisted_totals_and_grouped_changes_too(name: str) -> None:
    """A strategy in turn for each script, and the one that fuses most."""
    number = list(SCRIPTS).index(name)
    strategies = {"optimized", STRATEGIES[number % len(STRATEGIES)]} if number < 4 else {"optimized"}
    assert alike(case(name), [("native", strategy) for strategy in sorted(strategies)]) > 20


@settings(
    max_examples=12,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
)
@given(cases())
def test_random_programs(given_case: Case) -> None:
    strategy = STRATEGIES[len(given_case.views) % len(STRATEGIES)]
    assume(viewlet.compile(given_case.schema + given_case.views, strategy=strategy).triggers)
    alike(given_case, [("python", strategy)])


# -- what is fused and hoisted -----------------------------------------------------------------------------------------


def turns(program: Program, relation: str) -> tuple[Turn, ...]:
    trigger = next(t for t in program.triggers if (t.event.kind, t.event.relation) == ("+", relation))
    return fused(Plan(turns_of(program, trigger, Lowering.of(program)))).turns


def test_statements_over_one_slice_are_one_pass() -> None:
    script = case("sums of one join")
    program = viewlet.compile(script.schema + script.views)
    done = turns(program, "r")
    assert sum(len(p.statements) for p in done) > len(done)
    statements = [s for t in program.triggers if t.event.relation == "r" and t.event.kind == "+" for s in t.statements]
    assert sorted(s.target.name for p in done for s in p.statements) == sorted(s.target.name for s in statements)


def test_a_total_of_several_statements_is_added_up_once() -> None:
    script = case("self-joins with sums of both sides")
    program = viewlet.compile(script.schema + script.views)
    trigger = next(t for t in program.triggers if (t.event.kind, t.event.relation) == ("+", "r"))
    before = turns(program, "r")
    first, after = hoist(before, frozenset(trigger.event.params))
    names = {step.var for step in first if isinstance(step, Total)}
    for one, other in zip(before, after, strict=True):
        assert one.statements == other.statements
        assert free_names(other.block) <= free_names(one.block) | names | set(bound_names(first))


def emit(key: str, view: str) -> Emit:
    return Emit((key,), (), view)


def test_blocks_that_begin_alike() -> None:
    a = (Let("x", Var("@p"), True), emit("x", "A"))
    b = (Let("y", Var("@p"), True), emit("y", "B"))
    assert merged(a, b) == (a[0], emit("x", "A"), emit("x", "B"))
    assert merged(a, (Let("y", Var("@q"), True), emit("y", "B"))) is None


def test_a_total_that_only_tests_lead_to_stays_behind_them() -> None:
    """Where no test holds, nobody needs it, and adding it up could overflow."""
    total = Total("n", (Add("n", (Factor(Var("@p"), False, True),)),))
    always = (total, Emit((), (Factor(Var("n"), False, True),), "A"))
    tested = (Filter(Compare("<", Var("@p"), Const(3, "number")), False, True, always),)

    def hoists(*blocks: Block) -> bool:
        return bool(hoist(tuple(Turn((), block, False, frozenset()) for block in blocks), frozenset({"@p"}))[0])

    assert not hoists(tested, tested)
    assert hoists(tested, always)


def test_a_statement_does_not_join_one_that_writes_what_it_reads() -> None:
    """``seen`` reads ``kept`` as the statement before it leaves it: not in one loop with it, half changed."""
    definitions = {"there[][a, b]": "R(a, b)", "kept[][b]": "Sum[b](R(a, b))", "seen[][b]": "Sum[b](R(a, b))"}
    reads = {as_view(read): parse(definition) for read, definition in definitions.items()}
    views = tuple(MapDefinition(read.name, (), read.outputs, definition, "") for read, definition in reads.items())
    statements = {
        "kept[][b]": "there[][@a, b]",
        "seen[][b]": "there[][@a, b] * Sum[](kept[][c] * [c <> b])",
        "there[][@a, @b]": "1",
    }
    on_r = Trigger(
        Event("+", "R", ("@a", "@b")),
        tuple(Statement(as_view(target), "+=", parse(change)) for target, change in statements.items()),
    )
    relation = Relation("R", tuple(Column(name, BIGINT, nullable=False) for name in "ab"))
    program = Program((relation,), views, (on_r,), (), "optimized")
    engines = Interpreter(program), PythonEngine(program)
    for row in ((1, 1), (1, 2), (2, 1), (1, 3)):
        for engine in engines:
            engine.apply("+", "R", row)
    one, other = ({v.name: engine.entries(v.name) for v in views} for engine in engines)
    assert one == other
    assert one["seen"] == {(1,): 1, (2,): 2}  # when the last row came, ``kept`` was {1: 2, 2: 1}


def as_view(text: str) -> View:
    view = parse(text)
    assert isinstance(view, View)
    return view


def test_names_are_changed_wherever_they_stand() -> None:
    test = Filter(Compare("<", Var("x"), Const(3, "number")), False, True, (emit("x", "A"),))
    total = Total("n", (Add("n", (Factor(Var("x"), False, True),)),))
    block = (Let("x", Op("+", (Var("@p"), Const(1, "number"))), True), total, test)
    changed = renamed(block, {"x": "y", "n": "m"})
    assert list(bound_names(changed)) == ["y", "m"]
    assert free_names(changed) == {"@p"}
    assert renamed(changed, {"y": "x", "m": "n"}) == block
