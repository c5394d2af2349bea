"""§5.1, materialisation decisions: duplicate views, static tables, view caches, re-evaluation, statement order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.paper.notation import definitions, insertion, simple_delta, statements, stream, trigger_text
from viewlet.algebra.canonical import canonical
from viewlet.algebra.evaluate import evaluate, over
from viewlet.algebra.query import Query, View, relations
from viewlet.algebra.text import parse
from viewlet.compiler import wide
from viewlet.compiler.order import CircularError, order_statements, views_read
from viewlet.compiler.script import compile_query, compile_script
from viewlet.engines.exact.interpreter import Interpreter
from viewlet.program.trigger import Event, MapDefinition, Program, Statement, Trigger
from viewlet.schema import Relation
from viewlet.sql.translate import translate
from viewlet.workloads.queries import PAPER_QUERIES

ORDERS = """
CREATE STREAM o (ordk BIGINT NOT NULL, custk BIGINT NOT NULL, xch BIGINT NOT NULL);
CREATE STREAM li (ordk BIGINT NOT NULL, partk BIGINT NOT NULL, price BIGINT NOT NULL);
"""
SALES = "CREATE MATERIALIZED VIEW a AS SELECT sum(li.price * o.xch) AS s FROM o, li WHERE o.ordk = li.ordk;"
SALES_AGAIN = "CREATE MATERIALIZED VIEW b AS SELECT sum(y.price * x.xch) AS t FROM li y, o x WHERE y.ordk = x.ordk;"
BY_PART = """CREATE MATERIALIZED VIEW c AS
    SELECT l.partk, sum(l.price * o.xch) AS s FROM o, li l WHERE o.ordk = l.ordk GROUP BY l.partk;"""


def aggregate_of(name: str) -> tuple[Query, tuple[Relation, ...]]:
    """The one aggregate of a paper's query, and its schema."""
    script = translate(PAPER_QUERIES[name].script("paper"), "paper")
    ((_, aggregate),) = script.results[0].lookups
    return aggregate, script.relations


# -- duplicate view elimination ----------------------------------------------------------------------------------------


def test_deltas_commute_so_views_coincide():
    """Δ_R Δ_S Q = Δ_S Δ_R Q for any Q without nested aggregates over R or S"""
    r, s, t = stream("R", "a", "b"), stream("S", "b", "c"), stream("T", "c", "d")
    q = parse("Sum[](R(a, b) * S(b, c) * T(c, d) * a * d)")
    for first, second in ((r, s), (r, t), (s, t)):
        one, other = (simple_delta(q, insertion(x), insertion(y)) for x, y in ((first, second), (second, first)))
        assert canonical(one)[0] == canonical(other)[0]
    assert sorted(definitions(compile_query("Q", q, (r, s, t)))) == [
        "Q[][]",
        "Q_R[][b]",
        "Q_R_S[][c]",
        "Q_S[][b, c]",
        "Q_S_T[][b]",
        "Q_T[][c]",
    ]


def test_equal_views_of_a_script_are_one_modulo_renaming():
    program = compile_script(translate(ORDERS + SALES + SALES_AGAIN, "paper"))
    assert {program.result("a").lookups[0][1], program.result("b").lookups[0][1]} == {View("a_sum", (), ())}
    assert len(program.views) == 3


def test_views_of_a_script_share_auxiliary_views():
    """Both read Σ xch by order; c adds its own five views to the three of a, less the one they share"""
    alone = [compile_script(translate(ORDERS + view, "paper")) for view in (SALES, BY_PART)]
    together = compile_script(translate(ORDERS + SALES + BY_PART, "paper"))
    assert [len(p.views) for p in (*alone, together)] == [3, 6, 8]
    readers = {s.target.name for s in statements(together, "insert into li") if "a_sum_o[]" in s.expression.text}
    assert readers == {"a_sum", "c_sum"}


# -- static tables (§6.1, SSB4) ----------------------------------------------------------------------------------------


def test_static_nation_gets_no_triggers_and_no_views_of_its_own(monkeypatch):
    """ "DBToaster does not attempt to materialize any deltas needed to support updates to Nation" """
    for least in ("MOST_PARTS", "LEAST_OF_A_STAR"):
        monkeypatch.setattr(wide, least, 10_000)  # read row by row, the join has few views anyway
    aggregate, schema = aggregate_of("ssb4")
    static = compile_query("ssb4", aggregate, schema)
    stream_too = compile_query("ssb4", aggregate, [replace(r, static=False) for r in schema])
    assert "nation" not in {t.event.relation for t in static.triggers}
    assert "nation" in {t.event.relation for t in stream_too.triggers}
    assert len(static.views) < len(stream_too.views) / 2
    assert used_views(static) == {v.name for v in static.views}


def used_views(program: Program) -> set[str]:
    """The result and what some trigger reads to refresh another view."""
    views = {v.name: v for v in program.views}
    read = {
        n for t in program.triggers for s in t.statements for n in views_read(s.expression, views) - {s.target.name}
    }
    return read | {q.name for r in program.results for q in (r.rows,) if isinstance(q, View)}


# -- view caches -------------------------------------------------------------------------------------------------------


def test_vwap_has_a_view_cache_under_naive_and_cost_only():
    """ "the small domain of the correlation variable (price) makes this an ideal candidate for view caching" """
    aggregate, schema = aggregate_of("vwap")
    caches = {}
    for strategy in ("naive", "cost", "optimized"):
        program = compile_query("vwap", aggregate, schema, strategy, ordered=False)
        caches[strategy] = [(v.inputs, v.definition.text) for v in program.views if v.is_cache]
    assert caches["optimized"] == []
    assert caches["naive"] == caches["cost"]
    (((price,), definition),) = caches["naive"]
    assert definition == f"Sum[](bids(t, id, broker_id, volume, price_2) * [price_2 > {price}] * volume)"


def test_a_cache_is_maintained_not_invalidated():
    """ "the contents of this map are not invalidated when the underlying data changes, but instead maintained" """
    program = compile_query("Q", parse("Sum[](R(p) * S(q, v) * [p < q] * v)"), inequality_join(), "naive")
    (cache,) = (v for v in program.views if v.inputs == ("p",))
    assert trigger_text(program, "insert into R")[0] == f"Q[][] += {cache.name}[@p][]"
    assert f"foreach p do {cache.name}[p][] += [p < @q] * @v" in trigger_text(program, "insert into S")
    engine = Interpreter(program)
    for relation, row in (("R", (1,)), ("S", (2, 10)), ("R", (1,)), ("S", (5, 7)), ("R", (3,))):
        engine.apply("+", relation, row)
    assert engine.entries(cache.name) == {(1,): 17, (3,): 7}  # the entry of 1 was held when (5, 7) came
    assert engine.entries("Q") == {(): 2 * 10 + 3 * 7}


def inequality_join() -> tuple[Relation, ...]:
    return stream("R", "p"), stream("S", "q", "v")


# -- re-evaluate or increment ------------------------------------------------------------------------------------------


def test_increment_where_trigger_arguments_bind_the_nested_aggregate():
    """ "if the delta's trigger arguments bind one or more variables in B, then the delta … will … be faster" """
    q = parse("Sum[](R(A) * (n := Sum[A](S(A, B) * B)) * [n > 10])")
    program = compile_query("Q", q, (stream("R", "A"), stream("S", "A", "B")))
    assert [s.op for s in statements(program, "insert into S")] == ["+=", "+="]
    assert trigger_text(program, "insert into S")[0].startswith("Q[][] += Q_R[][@A] * (")


def test_reevaluate_where_they_bind_nothing():
    """ "computing the delta costs twice as much as the original query and so re-evaluation is more efficient" """
    schema = (stream("R", "A"), stream("S", "A", "B"))
    for nested in ("Sum[](S(C, B) * B)", "Sum[](S(C, B) * [C < A] * B)"):  # uncorrelated; by inequality
        program = compile_query("Q", parse(f"Sum[](R(A) * (n := {nested}) * [n > 10])"), schema)
        assert [s.op for s in statements(program, "insert into S")] == ["+=", ":="]
        assert [s.op for s in statements(program, "insert into R")] == ["+=", "+="]


# -- statement order (Example 6) ---------------------------------------------------------------------------------------


def plain_view(name: str) -> MapDefinition:
    return MapDefinition(name, (), (), parse("Sum[](R(a))"), "for this test")


def increment(target: str, expression: str) -> Statement:
    return Statement(View(target, (), ()), "+=", parse(expression))


def test_increments_read_old_versions_and_reevaluations_new_ones():
    """In whatever order they are asked for: readers before writers, := after the views it reads"""
    views = {name: plain_view(name) for name in "abc"}
    writes_b, reads_b = increment("b", "1"), increment("a", "b[][]")
    again = Statement(View("c", (), ()), ":=", parse("b[][] * a[][]"))
    for given in ([writes_b, reads_b, again], [again, writes_b, reads_b], [reads_b, again, writes_b]):
        assert order_statements(given, views) == (reads_b, writes_b, again)


def test_a_buffer_where_no_order_does():
    """a += b; b += a: each reads the old version of what the other writes"""
    views = {name: plain_view(name) for name in "ab"}
    swap = [increment("a", "b[][]"), increment("b", "a[][]")]
    ordered = order_statements(swap, views)
    assert [s.buffered for s in ordered].count(True) == 1
    event = Event("+", "R", ("@a",))
    program = Program((stream("R", "a"),), tuple(views.values()), (Trigger(event, ordered),), (), "by hand")
    engine = Interpreter(program, {"R": {(7,): 3}})  # both views start as 3
    engine.apply("+", "R", (1,))
    assert (engine.entries("a"), engine.entries("b")) == ({(): 6}, {(): 6})  # 9 if one had read the other's new version


def test_a_statement_that_reads_its_own_target_is_buffered():
    (statement,) = order_statements([increment("a", "a[][] * 2")], {"a": plain_view("a")})
    assert statement.buffered


@pytest.mark.parametrize("again", [["a[][] * 2"], ["b[][]", "a[][]"]])
def test_no_map_is_evaluated_from_itself(again: list[str]) -> None:
    """a := a, or a := b with b := a: it would stay what it was"""
    views = {name: plain_view(name) for name in "ab"}
    given = [Statement(View(name, (), ()), ":=", parse(q)) for name, q in zip("ab", again, strict=False)]
    with pytest.raises(CircularError):
        order_statements(given, views)


def test_every_trigger_of_the_workload_reads_the_right_versions():
    """For the twelve queries: no += reads what an earlier statement wrote, every := reads only what is final"""
    checked = 0
    for name in PAPER_QUERIES:
        aggregate, schema = aggregate_of(name)
        program = compile_query(name, aggregate, schema)
        views = {v.name: v for v in program.views}
        for trigger in program.triggers:
            for i, s in enumerate(trigger.statements):
                read = views_read(s.expression, views)
                earlier = {t.target.name for t in trigger.statements[:i]}
                later = {t.target.name for t in trigger.statements[i + 1 :]}
                assert s.buffered or not read & (earlier if s.op == "+=" else later), f"{name}, {trigger.event}: {s}"
                checked += bool(read)
    assert checked > 100


def test_the_decision_is_equivalent_to_the_query():
    """⟨Q', M⃗_Q⟩ is "an equivalent query Q' evaluated over these materialized views": here the := of PSP's cousin"""
    q = parse("Sum[](R(A) * (n := Sum[](S(C, B) * B)) * [n > A] * A)")
    program = compile_query("Q", q, (stream("R", "A"), stream("S", "A", "B")))
    statement = next(s for s in statements(program, "insert into S") if s.op == ":=")
    assert relations(statement.expression) == frozenset()
    base = over({"R": {(1,): 1, (5,): 2, (9,): 1}, "S": {(0, 4): 1, (1, 3): 1}})
    materialised = {v.name: evaluate(v.definition, base, v.outputs) for v in program.views}
    assert evaluate(statement.expression, over(materialised), ()) == evaluate(q, base, ()) == {(): 11}
