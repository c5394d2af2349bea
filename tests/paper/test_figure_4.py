"""Figure 4: the insert trigger program of Q18 over the condensed schema C(CK), O(CK, OK), LI(OK, QTY)."""

from __future__ import annotations

import re
from random import Random

from tests.paper.notation import definitions, statements, stream, trigger_text
from viewlet.algebra.evaluate import evaluate, over
from viewlet.algebra.text import parse
from viewlet.compiler.script import compile_query
from viewlet.engines.exact.interpreter import Interpreter

SCHEMA = (stream("C", "ck"), stream("O", "ck", "ok"), stream("LI", "ok", "qty"))
Q = parse("Sum[CK](C(CK) * O(CK, OK) * LI(OK, QTY) * (n := Sum[OK](LI(OK, QTY2) * QTY2)) * [100 < n] * QTY)")
PROGRAM = compile_query("Q", Q, SCHEMA)

# A view here is named after the relations it reads, in the paper after the updates that led to it.
PAPER_NAMES = {"Q": "Q", "Q_LI_O": "Q_C", "Q_C_O": "Q_LI", "Q_O": "Q_LI_C", "Q_C": "Q_O1", "Q_LI": "Q_O2"}

# σ_{100<Q_O2[][ok]}(1), the aggregate named n; and Q_O2 as it will be after the insert
OLD = "Sum[]((n := Q_O2[][@ok]) * [100 < n])"
NEW = "Sum[]((n := (Q_O2[][@ok] + @qty)) * [100 < n])"
CHANGE = f"((Q_O2[][@ok] + @qty) * {NEW} + Q_O2[][@ok] * {OLD} * -1)"

FIGURE_4 = {
    "insert into C": {
        "01": "Q[][@ck] += Q_C[][@ck]",
        "02": "foreach OK do Q_LI[][@ck, OK] += Q_LI_C[][@ck, OK]",
        "03": "Q_O1[][@ck] += 1",
    },
    "insert into O": {
        "04": f"Q[][@ck] += Q_O1[][@ck] * Q_O2[][@ok] * {OLD}",
        "05": "Q_LI[][@ck, @ok] += Q_O1[][@ck]",
        "06": "Q_LI_C[][@ck, @ok] += 1",
        "07": f"Q_C[][@ck] += Q_O2[][@ok] * {OLD}",
    },
    "insert into LI": {
        "08": f"foreach CK do Q[][CK] += Q_LI[][CK, @ok] * {CHANGE}",
        "09": f"foreach CK do Q_C[][CK] += Q_LI_C[][CK, @ok] * {CHANGE}",
        "10": "Q_O2[][@ok] += @qty",
    },
}


def in_paper_names(text: str) -> str:
    """View names as in Figure 4, loop variables in capitals."""
    text = re.sub(r"\w+(?=\[)", lambda name: PAPER_NAMES.get(name.group(), name.group()), text)
    return re.sub(r"(?<![@\w])(ck|ok)\b", lambda name: name.group().upper(), text)


def normal(statement: str) -> tuple[str, str]:
    """The right-hand side as the constructors order it."""
    target, expression = statement.split(" += ")
    return target, parse(expression).text


def test_the_views():
    """Q_O1 := Sum_{CK;1}(C), Q_O2 := Sum_{OK;QTY}(LI), Q_LI := Sum_{CK;1}(σ_{OK=ok}(C ⋈ O))"""
    views = {in_paper_names(read): text.upper() for read, text in definitions(PROGRAM).items()}
    assert views["Q_O1[][CK]"] == "C(CK)"
    assert views["Q_O2[][OK]"] == "SUM[OK](LI(OK, QTY) * QTY)"
    assert views["Q_LI[][CK, OK]"] == "C(CK) * O(CK, OK)"
    assert views["Q_LI_C[][CK, OK]"] == "O(CK, OK)"
    assert (
        views["Q_C[][CK]"] == "SUM[CK](LI(OK, QTY) * O(CK, OK) * (N := SUM[OK](LI(OK, QTY2) * QTY2)) * [100 < N] * QTY)"
    )
    assert len(views) == 6


def test_statement_by_statement():
    """Each of 01–10 is there, and nothing else; the order within a trigger is only bound to read old versions."""
    for event, expected in FIGURE_4.items():
        compiled = [in_paper_names(s) for s in trigger_text(PROGRAM, event)]
        assert sorted(map(normal, compiled)) == sorted(map(normal, expected.values())), event


def test_nothing_but_increments():
    """No statement re-evaluates, none is buffered, and only 02, 08 and 09 loop."""
    compiled = [s for event in FIGURE_4 for s in statements(PROGRAM, event)]
    assert all(s.op == "+=" and not s.buffered for s in compiled)
    assert sum("foreach" in s for event in FIGURE_4 for s in trigger_text(PROGRAM, event)) == 3


def test_statement_10_comes_last():
    """08 and 09 read the old Q_O2"""
    assert in_paper_names(trigger_text(PROGRAM, "insert into LI")[-1]) == FIGURE_4["insert into LI"]["10"]


def test_the_program_keeps_the_view():
    """Against the query itself after every event, deletions included, around the threshold of 100"""
    random, engine = Random(18), Interpreter(PROGRAM)
    database: dict[str, dict[tuple[int, ...], int]] = {"C": {}, "O": {}, "LI": {}}
    seen = set()
    for _ in range(300):
        relation = random.choice(("C", "O", "LI", "LI"))
        table = database[relation]
        if table and random.random() < 0.4:
            kind, row = "-", random.choice(sorted(table))
        else:
            last = {"C": (), "O": (random.randrange(3),), "LI": (random.choice((30, 60, 101)),)}[relation]
            kind, row = "+", (random.randrange(3), *last)
        engine.apply("+" if kind == "+" else "-", relation, row)
        table[row] = table.get(row, 0) + (1 if kind == "+" else -1)
        if not table[row]:
            del table[row]
        expected = evaluate(Q, over(database), ("CK",))
        assert engine.entries("Q") == expected
        seen.add(len(expected))
    assert len(seen) > 2
