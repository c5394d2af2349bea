"""The C++ that is written for a program, read as text: nothing is compiled here."""

from __future__ import annotations

import re

import pytest

import viewlet
from viewlet.algebra.query import View
from viewlet.engines.native.emit import program as emit
from viewlet.engines.native.emit.program import native
from viewlet.engines.native.emit.terms import Terms
from viewlet.engines.native.emit.values import Cpp
from viewlet.engines.native.emit.watch import Watched
from viewlet.program.kinds import COUNT, WIDEST, Exact
from viewlet.program.trigger import Program
from viewlet.workloads.queries import PAPER_QUERIES

LOOKUP = re.compile(r"\.(?:at|find|make)\(|\.slice<")
SCRIPT = """\
CREATE STREAM orders (customer BIGINT NOT NULL, {column} VARCHAR NOT NULL, price DECIMAL(10,2) NOT NULL);
CREATE STREAM customers (customer BIGINT NOT NULL, {column} VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW sales AS SELECT o.customer, o.{column}, SUM(o.price) AS total, COUNT(*) AS items
FROM orders o, customers c WHERE o.customer = c.customer AND o.{column} = c.{column} GROUP BY o.customer, o.{column};
"""


def test_what_a_column_is_called_does_not_change_the_code() -> None:
    """The emitter once took a column called ``defaults`` for a call that reports faults, and looked its key up late."""
    odd, plain = (emit.cpp_source(viewlet.compile(SCRIPT.format(column=name))) for name in ("defaults", "defaulty"))
    assert odd.replace("defaults", "defaulty").replace("Defaults", "Defaulty") == plain
    assert "Place " in plain, "no entry is looked up early"


@pytest.mark.parametrize("name", PAPER_QUERIES)
@pytest.mark.parametrize("watched", [False, True], ids=["alone", "watched"])
def test_every_place_that_looks_something_up_is_counted(
    name: str, watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer of lines counts lookups as it writes them; the finished functions have as many."""
    program = viewlet.compile(PAPER_QUERIES[name].script("sql"))
    counted: list[int] = []
    head = emit._head

    def counting(lookups: int, needed: frozenset[str]) -> str:
        counted.append(lookups)
        return head(lookups, needed)

    monkeypatch.setattr(emit, "_head", counting)
    source = native(program, everything(program) if watched else Watched()).source
    assert counted == [len(LOOKUP.findall(without_comments(source)))]
    assert counted[0] > 0


def everything(program: Program) -> Watched:
    roots = [query.name for r in program.results for query in r.reads if isinstance(query, View)]
    return Watched(tuple(r.name for r in program.results), tuple(dict.fromkeys(roots)))


def without_comments(source: str) -> str:
    return re.sub(r"//.*", "", source)


@pytest.mark.parametrize(
    ("kind", "fails"),
    [(COUNT, False), (Exact(0, WIDEST), True), (Exact(2, 63), True)],
    ids=["as it is", "may not fit", "with places"],
)
def test_a_key_that_may_not_fit_can_fail(kind: Exact, fails: bool) -> None:
    terms = Terms(view="view_v")
    held = terms.held(Cpp("x", kind), COUNT, optional=True)
    assert held.can_fail is fails
    assert terms.coalesce([held, Cpp("y", COUNT)]).can_fail is fails
    assert terms.operator("=", [held, Cpp("y", COUNT)]).can_fail is fails
    assert terms.operator("is_null", [held]).can_fail is fails


STAR = """\
CREATE STREAM d (k BIGINT NOT NULL, a BIGINT NOT NULL);
CREATE STREAM e (k BIGINT NOT NULL, a BIGINT NOT NULL);
CREATE STREAM f (dk BIGINT NOT NULL, ek BIGINT NOT NULL, v BIGINT NOT NULL);
CREATE MATERIALIZED VIEW q AS SELECT d.a AS da, e.a AS ea, SUM(f.v) AS s, COUNT(*) AS n
FROM d, e, f WHERE f.dk = d.k AND f.ek = e.k GROUP BY d.a, e.a;
"""


def test_a_count_and_a_sum_go_over_a_slice_together() -> None:
    """One loop over the facts of a dimension's row, one over the other dimension, and one lookup of the group."""
    source = emit.cpp_source(viewlet.compile(STAR))
    function = without_comments(source.split("void change_d(")[1].split("void ")[0])
    assert function.count("q_f_.slice<") == function.count("q_e_.slice<") == function.count("q_here_(") == 1
    assert function.count("q_here_.make()") > 1
    assert "q_.at(" not in function
