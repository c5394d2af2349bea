"""The graph of who maintains whom, and the part of a program that one result needs."""

from __future__ import annotations

import json
import re

import pytest

import viewlet
from viewlet.algebra.query import View
from viewlet.algebra.text import parse
from viewlet.compiler.script import compile_query
from viewlet.engines.exact.interpreter import Interpreter
from viewlet.program.graph import graph, part_for
from viewlet.program.nodes import Edge
from viewlet.program.trigger import Event, MapDefinition, Program, Result, Statement, Trigger
from viewlet.program.verify import verify_program
from viewlet.schema import BIGINT, Column, Relation
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES, TPCH
from viewlet.workloads.streams import order_book

SCRIPT = """
CREATE STREAM r (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE STREAM s (b BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE TABLE t (c BIGINT NOT NULL, d BIGINT NOT NULL);
CREATE MATERIALIZED VIEW total AS SELECT sum(r.a) AS total FROM r;
CREATE MATERIALIZED VIEW joined AS
  SELECT t.d, sum(r.a) AS a FROM r, s, t WHERE r.b = s.b AND s.c = t.c GROUP BY t.d;
"""


@pytest.fixture(scope="module")
def program() -> Program:
    return viewlet.compile(SCRIPT)


def test_nodes_are_relations_views_and_results(program: Program) -> None:
    nodes = {n.id: n for n in graph(program).nodes}
    assert [nodes[f"relation:{name}"].kind for name in "rst"] == ["stream", "stream", "table"]
    assert nodes["result:total"].kind == "one row"
    assert nodes["result:joined"].kind == "rows"
    assert {n.name for n in nodes.values() if n.layer == "view"} == {v.name for v in program.views}
    assert {n.kind for n in nodes.values() if n.layer == "view"} == {"result", "auxiliary", "static"}
    assert len(nodes) == len(graph(program).nodes), "a view and a result may share a name, never an id"


def test_edges_say_which_event_refreshes_and_what_the_refresh_reads(program: Program) -> None:
    edges = graph(program).edges
    assert Edge("relation:r", "view:total_sum", "maintains", "+r", "+=") in edges
    assert Edge("view:total_sum", "result:total", "shows") in edges
    for trigger in program.triggers:
        event = f"{trigger.event.kind}{trigger.event.relation}"
        for s in trigger.statements:
            reads = {
                e.source for e in edges if (e.target, e.event, e.kind) == (f"view:{s.target.name}", event, "reads")
            }
            assert reads == {f"view:{name}" for name in re.findall(r"(\w+)\[[^]]*\]\[", s.expression.text)}
    static = [e for e in edges if e.kind == "loads"]
    assert static
    assert all(e.source == "relation:t" for e in static)


def test_a_view_cache_is_filled_from_other_views() -> None:
    columns = (Column("a", BIGINT, False), Column("b", BIGINT, False))
    schema = (Relation("R", columns), Relation("S", columns))
    graph_ = graph(compile_query("q", parse("Sum[](R(a, b) * S(c, d) * [b < c])"), schema, "naive"))
    caches = {n.id for n in graph_.nodes if n.kind == "cache"}
    assert caches
    assert {e.target for e in graph_.edges if e.kind == "fills"} == caches


def test_plain_data_for_a_console(program: Program) -> None:
    data = json.loads(json.dumps(graph(program).to_dict()))
    ids = {node["id"] for node in data["nodes"]}
    assert all(edge["source"] in ids and edge["target"] in ids for edge in data["edges"])
    assert set(data["nodes"][0]) == {"id", "layer", "name", "kind", "text"}


def test_dot_draws_every_node_and_each_pair_once(program: Program) -> None:
    dot = graph(program).to_dot()
    drawn = re.findall(r'^  "([^"]+)" -> "([^"]+)"', dot, re.MULTILINE)
    assert sorted(drawn) == sorted({(e.source, e.target) for e in graph(program).edges})
    assert all(f'"{n.id}" [label=' in dot for n in graph(program).nodes)


def test_text_is_a_tree_of_what_each_refresh_reads(program: Program) -> None:
    lines = graph(program).to_text().splitlines()
    assert lines[0] == "total (one row)"
    assert lines[1] == "  total_sum[][] (result) += on +r, -r, Δr"
    assert all(any(line.strip().startswith(v.read.text) for line in lines) for v in program.views)
    assert any(line.startswith("    joined") for line in lines)


def test_text_of_views_that_read_each_other_ends() -> None:
    columns = (Column("a", BIGINT, False),)
    views = tuple(MapDefinition(name, (), ("a",), parse("R(a)"), "for this test") for name in "vw")
    insert = Event("+", "R", ("@a",))
    statements = (
        Statement(View("v", (), ("a",)), ":=", parse("w[][a]")),
        Statement(View("w", (), ("a",)), "+=", parse("v[][a] * w[][@a]")),
    )
    result = Result("q", (), parse("v[][a]"))
    program = Program((Relation("R", columns),), views, (Trigger(insert, statements),), (result,), "by hand")
    assert graph(program).to_text().splitlines() == [
        "q (rows)",
        "  v[][a] (result) := on +R",
        "    w[][a] (auxiliary) += on +R",
        "      v[][a] (result) := on +R (reads as above)",
    ]


@pytest.mark.parametrize("strategy", ["optimized", "naive", "classical", "reevaluate"])
def test_a_part_is_a_whole_program(strategy: str) -> None:
    names = ("q3", "q11", "q17", "q18", "q22", "ssb4")
    whole = viewlet.compile(TPCH + "".join(PAPER_QUERIES[n].sql() for n in names), strategy=strategy)
    for name in names:
        part = part_for(whole, name)
        verify_program(part)
        assert [r.name for r in part.results] == [name]
        assert {r.name for r in part.relations} == set(PAPER_QUERIES[name].relations)
        assert len(part.views) < len(whole.views)


def test_a_part_holds_what_fills_its_view_caches() -> None:
    whole = viewlet.compile(FINANCE + "".join(PAPER_QUERIES[n].sql() for n in ("bsv", "psp", "mst")), strategy="naive")
    for name in ("psp", "mst"):
        part = part_for(whole, name)
        assert any(v.is_cache for v in part.views)
        verify_program(part)


def test_a_part_keeps_its_result_as_the_whole_does() -> None:
    whole = viewlet.compile(FINANCE + "".join(PAPER_QUERIES[n].sql() for n in ("bsv", "axf")))
    part = part_for(whole, "axf")
    engines = Interpreter(whole), Interpreter(part)
    for op, side, row in order_book(5, 80, live=20, brokers=3):
        for engine in engines:
            engine.apply(op, side, tuple(int(v) for v in row))  # type: ignore[call-overload]
    assert engines[0].entries("axf"), "a view that stays empty proves nothing"
    assert all(engines[0].entries(v.name) == engines[1].entries(v.name) for v in part.views)
