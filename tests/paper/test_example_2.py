"""Example 2: total sales weighted by exchange rates; the paper's triggers, but for the order of factors."""

from tests.paper.notation import definitions, stream, trigger_text
from viewlet.algebra.query import negate
from viewlet.algebra.text import parse
from viewlet.compiler.script import compile_query, compile_script
from viewlet.sql.translate import translate

SCHEMA = (stream("O", "ordk", "custk", "xch"), stream("LI", "ordk", "partk", "price"))
PROGRAM = compile_query("Q", parse("Sum[](O(ok, ck, xch) * LI(ok, pk, price) * price * xch)"), SCHEMA)

SQL = """
CREATE STREAM o (ordk BIGINT NOT NULL, custk BIGINT NOT NULL, xch BIGINT NOT NULL);
CREATE STREAM li (ordk BIGINT NOT NULL, partk BIGINT NOT NULL, price BIGINT NOT NULL);
CREATE MATERIALIZED VIEW q AS select sum(LI.PRICE * O.XCH) from o O, li LI where O.ORDK = LI.ORDK;
"""


def test_views():
    """A view is named after what it reads, in the paper after the update: Q_LI here is the paper's Q_O = Δ_O Q."""
    assert definitions(PROGRAM) == {
        "Q[][]": "Sum[](LI(ok, pk, price) * O(ok, ck, xch) * price * xch)",
        "Q_LI[][ordk]": "Sum[ordk](LI(ordk, pk, price) * price)",
        "Q_O[][ordk]": "Sum[ordk](O(ordk, ck, xch) * xch)",
    }


def test_insert_triggers():
    assert trigger_text(PROGRAM, "insert into O") == ["Q[][] += Q_LI[][@ordk] * @xch", "Q_O[][@ordk] += @xch"]
    assert trigger_text(PROGRAM, "insert into LI") == ["Q[][] += Q_O[][@ordk] * @price", "Q_LI[][@ordk] += @price"]


def test_delete_triggers():
    """The same with += replaced by −=, which is += of −1 times the change."""
    assert trigger_text(PROGRAM, "delete from O") == ["Q[][] += Q_LI[][@ordk] * -1 * @xch", "Q_O[][@ordk] += -1 * @xch"]
    for relation in ("O", "LI"):
        inserts = next(t for t in PROGRAM.triggers if t.event.kind == "+" and t.event.relation == relation)
        deletes = next(t for t in PROGRAM.triggers if t.event.kind == "-" and t.event.relation == relation)
        assert [(s.target, negate(s.expression)) for s in inserts.statements] == [
            (s.target, s.expression) for s in deletes.statements
        ]


def test_bulk_update_trigger():
    """§1: "viewlet transforms are not limited to this but support bulk updates"."""
    assert trigger_text(PROGRAM, "update O") == [
        "Q[][] += Sum[](ΔO(@ordk, @custk, @xch) * Q_LI[][@ordk] * @xch)",
        "foreach @ordk do Q_O[][@ordk] += Sum[@ordk](ΔO(@ordk, @custk, @xch) * @xch)",
    ]


def test_the_sql_of_the_example_gives_these_triggers():
    """In dialect 'paper' the view is the one sum; the names come from SQL."""
    program = compile_script(translate(SQL, "paper"))
    assert trigger_text(program, "insert into o") == [
        "q_sum[][] += q_sum_li[][@ordk] * @xch",
        "q_sum_o[][@ordk] += @xch",
    ]
