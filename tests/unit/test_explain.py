"""explain: the whole story of a view, and each of its parts."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from html.parser import HTMLParser

import pytest

import viewlet
from viewlet.algebra.text import parse
from viewlet.compiler.script import compile_query
from viewlet.explain import STAGES, Explanation, explain
from viewlet.program.text import program_from_text
from viewlet.program.trigger import Program
from viewlet.schema import BIGINT, Column, Relation
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES

COLUMNS = {"R": ("a", "b"), "S": ("b", "c")}
SCHEMA = tuple(Relation(name, tuple(Column(c, BIGINT, False) for c in cs)) for name, cs in COLUMNS.items())


@lru_cache
def compiled(*names: str, strategy: str = "optimized") -> Program:
    return viewlet.compile(FINANCE + "".join(PAPER_QUERIES[n].sql() for n in names), strategy=strategy)


def of_query(text: str, strategy: str = "optimized") -> Explanation:
    return explain(compile_query("q", parse(text), SCHEMA, strategy))


def test_the_whole_story_has_every_part() -> None:
    program = compiled("vwap")
    story = str(explain(program))
    assert PAPER_QUERIES["vwap"].text in story
    for name, about in STAGES.items():
        assert f"── {name}: {about} ──" in story
    for view in program.views:
        assert view.read.text in story
        assert f"why: {view.why}" in story
    assert story.startswith(f"vwap: {len(program.views)} views kept, an insert or delete costs O(log n)")


def test_what_scans_is_warned_of() -> None:
    explanation = of_query("Sum[](R(a, b) * S(c, d) * [(a * c) > 3])")
    assert "an insert or delete costs O(n)" in explanation.title
    assert str(explanation).count("warning: ") == len(explanation.warnings) > 0


def test_no_warning_where_nothing_is_scanned() -> None:
    explanation = explain(compiled("bsv"))
    assert explanation.warnings == ()
    assert "warning" not in str(explanation)
    assert "an insert or delete costs O(1)" in explanation.title


def test_the_delta_stage_is_the_paper_s_delta() -> None:
    """Δ(R ⋈ S) for +S(b, c) is R at b, times c (Example 4); the delete is left out, being −1 times it."""
    text = of_query("Sum[a](R(a, b) * S(b, c) * c)").stage("delta")
    assert "Δ q on +S(@b, @c) =\n  R(a, @b) * @c" in text
    assert "on -S" not in text


def test_the_delta_stage_shows_only_what_was_compiled() -> None:
    """VWAP of each broker: the event's broker is evaluated again, so no delta of the view was compiled."""
    program = viewlet.compile(
        """CREATE STREAM bids (broker BIGINT NOT NULL, price BIGINT NOT NULL, volume BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW vwap AS SELECT b.broker, sum(b.price * b.volume) AS v FROM bids b
        WHERE (SELECT sum(c.volume) FROM bids c WHERE c.broker = b.broker) * 0.25 >
              (SELECT sum(d.volume) FROM bids d WHERE d.broker = b.broker AND d.price > b.price) GROUP BY b.broker;"""
    )
    text = explain(program).stage("delta")
    late = [(s.target.name, t.event) for t in program.triggers for s in t.statements if s.late]
    assert late
    assert "the event's groups are evaluated again" in text
    assert not [f"Δ {name} on {event} =" for name, event in late if f"Δ {name} on {event} =" in text]
    assert "Δ vwap_bids on +bids(@broker, @price, @volume) =" in text


def test_a_program_from_text_has_no_record_of_deltas() -> None:
    text = compile_query("q", parse("Sum[a](R(a, b) * S(b, c) * c)"), SCHEMA).to_text()
    assert "keeps no record" in explain(program_from_text(text)).stage("delta")


def test_the_delta_stage_names_what_is_evaluated_again() -> None:
    text = of_query("Sum[](R(a, b) * (n := Sum[](S(c, d) * [c > a])) * [n < 3])").stage("delta")
    assert "q on +S, -S, ΔS: evaluated again" in text


def test_a_delta_that_is_not_linear_is_given_for_every_event() -> None:
    text = of_query("Sum[](R(a, b) * R(b, c))").stage("delta")
    assert all(f"Δ q on {event}" in text for event in ("+R(@a, @b)", "-R(@a, @b)", "ΔR"))


def test_the_decision_stage_counts_rules_and_says_who_reads() -> None:
    program = compile_query("q", parse("Sum[](R(a, b) * S(b, c) * a * c)"), SCHEMA)
    text = explain(program).stage("decision")
    unified = len(program.trace.fired("unify_binding"))
    assert f"{unified} × unify_binding" in text
    assert "Example 4" in text
    assert "read by: q on +R, -R, ΔR" in text


def test_trace_adds_every_step_before_and_after() -> None:
    program = compiled("bsv")
    plain, traced = explain(program), explain(program, trace=True)
    assert traced.trace == plain.trace == program.trace.steps
    assert "every step:" not in str(plain)
    for step in program.trace.steps:
        assert f"{step.rule}\n         {step.before}\n       ⇒ {step.after}" in traced.stage("decision")


def test_the_program_stage_prices_every_statement() -> None:
    program = compiled("vwap", "bsv")
    text = explain(program).stage("program")
    assert text.count("      -- O(") == sum(len(t.statements) for t in program.triggers)
    assert "on insert into bids values (@t, @id, @broker_id, @volume, @price) do {" in text
    assert "O(1) per tuple of the batch" in text


def test_one_view_is_explained_without_the_others() -> None:
    program = compiled("vwap", "bsv", "axf")
    explanation = explain(program, "bsv")
    assert "vwap" not in str(explanation)
    assert "asks" not in explanation.stage("program")
    assert {s.place.split(" on ")[0] for s in explanation.trace} <= {v.name for v in program.views if "bsv" in v.name}
    assert explanation.trace
    assert {n.name for n in explanation.graph.nodes if n.layer == "result"} == {"bsv"}
    with pytest.raises(viewlet.Error, match="there is no view nope; there are: vwap, bsv, axf"):
        explain(program, "nope")


def test_an_unknown_stage_names_the_stages() -> None:
    with pytest.raises(
        viewlet.Error, match="no stage 'asm': the stages are algebra, delta, decision, program, loops, cpp"
    ):
        explain(compiled("bsv")).stage("asm")


def test_the_cpp_stage_is_shown_when_asked_for() -> None:
    """It is the text that the native engine compiles, and of a single view only that view's part."""
    program = compiled("vwap", "bsv")
    assert explain(program).stage("cpp") == program.cpp()
    of_bsv = explain(program, "bsv").stage("cpp")
    assert "struct BsvValues" in of_bsv
    assert "vwap" not in of_bsv
    assert "struct BsvValues" not in str(explain(program))


def test_memory_names_every_map_and_view() -> None:
    program = compiled("vwap", "bsv", "axf")
    explanation = explain(program)
    assert "── memory: the maps of the native engine ──" in str(explanation)
    assert explanation.to_dict()["memory"] == explanation.memory
    maps = [line.split(": ") for line in explanation.memory.splitlines() if ": " in line and not line.startswith("  ")]
    listed = [name for _, views, *_ in maps for name in views.split(", ")]
    assert sorted(listed) == sorted(view.name for view in program.views)
    assert re.search(r": one entry of \d+ bytes$", explanation.memory, re.MULTILINE), "views without keys"


def test_memory_names_indexes_and_orders() -> None:
    memory = explain(compiled("vwap", "axf")).memory
    assert re.search(r"^  \d+ bytes a group and about \d+ for finding it$", memory, re.MULTILINE)
    assert re.search(r"^  in order of price: about \d+ bytes a group$", memory, re.MULTILINE)
    of_each = r"^  in order of price, for each \(broker_id\): about \d+ bytes a group and \d+ for each tree$"
    assert re.search(of_each, memory, re.MULTILINE)
    sliced = of_query("Sum[a](R(a, b) * S(b, c))").memory
    assert re.search(r"^  \d+ bytes a group and about \d+ for finding it, sliced by \(b\)$", sliced, re.MULTILINE)


def test_memory_names_a_view_that_is_in_order_without_the_others_of_its_map() -> None:
    program = viewlet.compile("""CREATE STREAM r (k BIGINT NOT NULL, x BIGINT NOT NULL);
    CREATE MATERIALIZED VIEW v AS SELECT min(x) AS x FROM r;
    CREATE MATERIALIZED VIEW w AS SELECT x, sum(k) AS s FROM r GROUP BY x;""")
    assert re.search(r"^  v_min alone in order of \S+: about \d+ bytes a group$", explain(program).memory, re.MULTILINE)


def test_what_no_fixed_width_holds_says_so_and_is_explained() -> None:
    """SQL refuses a product with more than 38 places; a program that was not made from SQL may have one."""
    script = """CREATE STREAM a (x DECIMAL(38,20) NOT NULL);
    CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS n FROM a;"""
    text = viewlet.compile(script).to_text().replace(") * x)", ") * x * x)").replace("@x;", "@x * @x;")
    explanation = explain(viewlet.Program.from_text(text))
    for text in (explanation.memory, explanation.stage("cpp")):
        assert text.startswith("no native code: ")
        assert text.endswith("generated Python keeps this fresh, exactly")


@pytest.mark.parametrize("strategy", ["reevaluate", "classical", "naive", "cost"])
def test_every_strategy_can_be_explained(strategy: str) -> None:
    story = str(explain(compiled("psp", strategy=strategy)))
    assert f"strategy {strategy}" in story
    if strategy == "naive":
        assert "on a miss: " in story, "a view cache says how it is filled"


def test_a_program_read_from_text_is_explained_but_for_its_record() -> None:
    program = program_from_text(compiled("bsv").to_text())
    explanation = explain(program)
    assert explanation.stage("program") == explain(compiled("bsv")).stage("program")
    assert explanation.trace == []
    assert "keeps no record" in explanation.stage("decision")


def test_the_database_explains_its_views() -> None:
    with viewlet.connect() as db:
        db.execute(FINANCE + PAPER_QUERIES["bsv"].sql())
        assert str(db.explain("bsv")) == str(explain(db.program, "bsv"))


def test_an_empty_script_has_nothing_to_explain() -> None:
    assert str(explain(viewlet.compile(""))).startswith("no views: 0 views kept")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)
        assert not any(name in ("src", "href") for name, _ in attrs), "nothing is loaded from elsewhere"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_well_formed_and_says_the_same() -> None:
    explanation = explain(compiled("axf", "vwap"))
    tags = Tags()
    tags.feed(explanation._repr_html_())
    tags.close()
    assert tags.open == []
    assert "script" not in tags.seen
    assert all(text in tags.text for text in explanation.stages.values())
    assert all(warning in tags.text for warning in explanation.warnings)


def test_html_shows_what_the_user_wrote_as_text() -> None:
    script = """CREATE STREAM r (a VARCHAR NOT NULL);
    CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r WHERE a = '<script>alert(1)</script>&amp;';"""
    page = explain(viewlet.compile(script))._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;" in page


def test_json_holds_every_part() -> None:
    explanation = explain(compiled("bsv"))
    data = json.loads(json.dumps(explanation.to_dict()))
    assert data["stages"] == dict(explanation.stages)
    assert data["cost_class"] == explanation.cost_class
    assert len(data["trace"]) == len(explanation.trace)
    assert data["graph"] == explanation.graph.to_dict()


@pytest.mark.parametrize("name", PAPER_QUERIES)
def test_the_loops_stage_shows_every_trigger_and_what_it_changes(name: str) -> None:
    program = viewlet.compile(PAPER_QUERIES[name].script())
    text = explain(program).stage("loops")
    assert [line for line in text.splitlines() if line.startswith("on ")] == [
        f"on {t.event} {{" for t in program.triggers
    ]
    for trigger in program.triggers:
        for statement in trigger.statements:
            assert f"emit {statement.target.name}[" in text
