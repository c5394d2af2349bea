"""Functions of texts against DuckDB: every engine, after every event, over texts that are hard to cut."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import viewlet
from tests.engines.conformance import STRATEGIES, Case, agree
from tests.oracle.oracle import Row
from viewlet.algebra.functions.case_mapping import LOWER, UPPER
from viewlet.loops.cost_class import scan_warnings
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (s VARCHAR, t VARCHAR, u VARCHAR NOT NULL, n INTEGER NOT NULL, m BIGINT);
CREATE STREAM q (t VARCHAR NOT NULL, k INTEGER);
"""

TESTS = """
starts_with(s, t) / ends_with(s, t) / suffix(u, t) / prefix(s, u) / s ^@ t / contains(s, t) / contains(u, 'b')
s LIKE t / s NOT LIKE t / u LIKE t / s ILIKE t / s NOT ILIKE t / s LIKE t ESCAPE '!' / u LIKE 'a%' / s LIKE '%b'
s ~~ '%b%' / s LIKE 'a_%' / s LIKE 'ab' / s NOT LIKE 'ab' / u LIKE '%' / s LIKE '%%' / s LIKE '' / u LIKE '_'
s LIKE '__%b'
s LIKE 'a!%%' ESCAPE '!' / s LIKE '%!_%' ESCAPE '!' / u LIKE '!%' ESCAPE '!' / s LIKE 'x!' ESCAPE '!' / s LIKE 'a\\%'
s ILIKE 'É%' / s ILIKE 'AB' / s NOT ILIKE '%É' / s ILIKE 'a!%%' ESCAPE '!' / upper(u) = upper(s) / s LIKE '%a%b%'
"""
NUMBERS = """
length(s) / len(u) / char_length(s) / strlen(s) / ascii(s) / unicode(s) / ord(u) / position(t IN s) / strpos(s, t)
instr(u, t) / length(s || t) / length(upper(s))
"""
TEXTS = """
upper(s) / lower(s) / ucase(u) / lcase(t) / trim(s) / ltrim(s) / rtrim(u) / trim(s, t) / ltrim(s, t) / rtrim(u, t)
trim(BOTH 'a' FROM s) / trim(LEADING 'aé' FROM s) / trim(TRAILING 'é' FROM u) / substring(s, n) / substring(s, n, m)
substr(u, m, n) / substring(s FROM n FOR 2) / substring(u FOR 2) / substring(s, 2, 3) / left(s, n) / right(s, n)
left(u, m) / right(u, m) / left(s, 2) / replace(s, t, 'xy') / replace(s, 'a', t) / replace(u, '', t)
split_part(s, t, n) / split_part(u, 'a', m) / split_part(s, '', n) / lpad(s, n, 'xé') / rpad(u, n, 'éx') / repeat(s, n)
s || t / u || '-' || t / concat(s, t) / concat(s) / concat_ws(', ', s, t, u) / concat_ws(t, s, u) / concat_ws('-', s)
CASE WHEN s LIKE 'a%' THEN upper(s) ELSE lower(t) END / coalesce(t, upper(u)) / chr(CASE WHEN n > 0 THEN n ELSE 65 END)
CASE WHEN n > 0 THEN chr(n) WHEN s LIKE '%b' THEN lpad(s, 2, '') END / upper(left(trim(s), 1)) || lower(substring(s, 2))
"""


def listed(expressions: str) -> list[str]:
    return [e.strip() for line in expressions.splitlines() for e in line.split(" / ") if e.strip()]


VALUES = (
    ("ab", "a"),
    ("", ""),
    (None, "%"),
    ("a%b_", "a%"),
    ("  Éab\u3000", " "),
    ("é", "_"),
    ("aéé", "é"),
    ("ae\u0301b", "e\u0301"),
    ("👩‍👧ab", "👩"),
    ("aab", "aa"),
    ("a\\b'c\"", "\\"),
    ("ßǅİΣ", "%İ%"),
    ("AB", "a_!%"),
    ("ab", None),
    ("a!%", "a!!!%"),
    ("\t\x01ab\n", "\n"),
)


def events() -> list[Event]:
    rows: list[Row] = []
    for i, (s, t) in enumerate(VALUES):
        n, m = (2, 1, 0, -2, 3, -1, 233)[i % 7], (1, -1, None, 2, 0, -3)[i % 6]
        rows.append((s, t, t or "ab", n, m))
    added: list[Event] = [("+", "r", row) for row in rows]
    again: list[Event] = [("+", "r", rows[i]) for i in (0, 3, 3, 7)]
    gone: list[Event] = [("-", "r", rows[i]) for i in (3, 0, 2, 8, 1)]
    other: list[Event] = [("+", "q", (t or "Ab", i % 3)) for i, (_, t) in enumerate(VALUES[:8])]
    return [*added[:6], *other, *added[6:], *again, *gone, ("-", "q", other[0][2])]


def case(views: dict[str, str], stream: Sequence[Event]) -> Case:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in views.items())
    return Case(SCHEMA, script, views, stream)


def columns(expressions: str, most: int = 8) -> list[str]:
    each = listed(expressions)
    return [", ".join(f"{e} AS c{j}" for j, e in enumerate(each[i : i + most])) for i in range(0, len(each), most)]


def test_every_function_as_a_column() -> None:
    shown = [f"SELECT s, n, {part} FROM r" for part in columns(TESTS) + columns(NUMBERS) + columns(TEXTS)]
    checked = case({f"v{i}": select for i, select in enumerate(shown)}, events())
    watched = agree(checked, [("interpreter", "reevaluate"), ("python", "optimized"), ("native", "optimized")])
    for vacuity in watched.values():
        vacuity.check()


def test_every_function_as_a_key_and_as_a_condition() -> None:
    views = {f"k{i}": f"SELECT {e} AS k, COUNT(*) AS c FROM r GROUP BY {e}" for i, e in enumerate(listed(TEXTS)[::3])}
    views |= {
        f"w{i}": f"SELECT COUNT(*) AS c, SUM(length(s)) AS d FROM r WHERE {e}" for i, e in enumerate(listed(TESTS)[::2])
    }
    agree(
        case(views, events()),
        [("interpreter", "optimized"), ("python", "naive"), ("native", "classical"), ("native", "cost")],
    )


def test_functions_beside_joins_aggregates_and_subqueries() -> None:
    views = {
        "joined": "SELECT r.s || q.t AS x, COUNT(*) AS c FROM r JOIN q ON upper(r.u) = upper(q.t) GROUP BY r.s || q.t",
        "crossed": "SELECT COUNT(*) AS c, SUM(length(r.s || q.t)) AS l FROM r, q WHERE r.s LIKE '%' || q.t || '%'",
        "keyed": "SELECT q.k, SUM(r.n) AS n FROM r JOIN q ON r.u = lower(q.t) WHERE r.s LIKE '%b%' GROUP BY q.k",
        "shown": "SELECT upper(MAX(s)) AS x, length(MIN(u)) AS l, concat(MIN(t), MAX(s)) AS z FROM r",
        "groups": "SELECT left(s, 1) AS k, upper(MAX(u)) AS x FROM r GROUP BY left(s, 1) HAVING MAX(u) LIKE '%'",
        "nested": "SELECT u, (SELECT COUNT(*) FROM q WHERE q.t LIKE r.u || '%') AS c FROM r WHERE lower(u) = u",
        "inside": "SELECT COUNT(*) AS c FROM r WHERE substring(u, 1, 1) IN (SELECT lower(left(t, 1)) FROM q)",
        "distinct_": "SELECT COUNT(DISTINCT upper(u)) AS c, MAX(length(s)) AS l, MIN(trim(s)) AS t FROM r",
        "there": "SELECT s FROM r WHERE EXISTS (SELECT 1 FROM q WHERE starts_with(r.s, lower(q.t)))",
        "derived": "SELECT x, COUNT(*) AS c FROM (SELECT replace(s, 'a', '') AS x FROM r) y WHERE x <> '' GROUP BY x",
        "cases": "SELECT SUM(CASE WHEN s LIKE 'a%' THEN 1 WHEN s ILIKE '%É%' THEN length(s) END) AS n FROM r",
    }
    checked = case(views, events())
    watched = agree(
        checked, [("interpreter", "cost"), ("python", "optimized"), ("native", "optimized"), ("native", "naive")]
    )
    for vacuity in watched.values():
        vacuity.check()


def test_computed_texts_are_joined_by_a_lookup() -> None:
    """Both sides may be NULL, one of them, or none."""
    views = {
        "both": "SELECT r.s, q.t FROM r JOIN q ON lower(r.s) = lower(q.t)",
        "nulls": "SELECT COUNT(*) AS c, SUM(a.n + b.n) AS n FROM r a JOIN r b ON trim(a.s) = trim(b.t)",
        "one": "SELECT q.k, COUNT(*) AS c FROM r, q WHERE r.n > 0 AND r.u = lower(q.t) GROUP BY q.k",
        "some": "SELECT u FROM r WHERE EXISTS (SELECT 1 FROM q WHERE lower(q.t) = r.s)",
        "none": "SELECT u FROM r WHERE lower(t) NOT IN (SELECT lower(t) FROM q)",
        "long": "SELECT r.s, q.t FROM r JOIN q ON length(r.s) = q.k JOIN r p ON length(p.t) = strlen(r.s)",
        "starts": "SELECT COUNT(*) AS c FROM r JOIN q ON (r.s LIKE 'a%') = starts_with(q.t, 'a')",
        "counts": "SELECT s, (SELECT COUNT(*) FROM q WHERE left(t, 1) = left(r.s, 1)) AS c FROM r",
    }
    stream = events()
    agree(case(views, stream), [(e, s) for e in ("interpreter", "python") for s in STRATEGIES] + [("native", "cost")])
    for view in ("both", "nulls", "long", "starts"):
        program = case({view: views[view]}, stream).open("python", "optimized").program
        assert not scan_warnings(program)


def test_every_letter_in_both_cases() -> None:
    """The mapping is DuckDB's, character by character: 2,884 of them change."""
    codes = sorted({*UPPER, *LOWER, *UPPER.values(), *LOWER.values(), 0x131, 0x2FFFF})
    words = ["".join(map(chr, codes[i : i + 400])) for i in range(0, len(codes), 400)]
    stream: list[Event] = [("+", "q", (word, 0)) for word in words]
    select = "SELECT upper(t) AS u, lower(t) AS l, length(upper(t)) AS n FROM q"
    agree(case({"v": select}, stream), [("python", "optimized"), ("native", "optimized")])


# -- functions that fail -----------------------------------------------------------------------------------------------

FAILING = """
CREATE STREAM r (a INTEGER NOT NULL, b INTEGER, s VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW tested AS SELECT COUNT(*) AS c FROM r WHERE b > 0 AND chr(b) > 'a';
CREATE MATERIALIZED VIEW chosen AS SELECT SUM(CASE WHEN b > 0 THEN length(chr(b)) END) AS c FROM r;
CREATE MATERIALIZED VIEW first AS SELECT SUM(length(coalesce(s, chr(b)))) AS c FROM r;
CREATE MATERIALIZED VIEW logical AS SELECT b > 0 AND chr(b) = 'a' AS x, b <= 0 OR chr(b) = 'a' AS y FROM r;
CREATE MATERIALIZED VIEW keyed AS SELECT chr(b) AS k, COUNT(*) AS c FROM r WHERE b > 0 GROUP BY chr(b);
CREATE MATERIALIZED VIEW shown AS SELECT chr(b) AS k FROM r WHERE a > 0;
CREATE MATERIALIZED VIEW padded AS SELECT lpad(s, 3, CASE WHEN a = 2 THEN '' ELSE '-' END) AS k FROM r WHERE a > 0;
"""


@pytest.mark.parametrize(
    ("engine", "strategy"), [("interpreter", "cost"), ("python", "naive"), ("native", "optimized")]
)
def test_a_function_fails_only_where_it_counts_and_then_nothing_changes(engine: str, strategy: str) -> None:
    database = viewlet.connect(engine=engine, strategy=strategy, wait_native=True)
    database.execute(FAILING)
    database.insert("r", [(0, -1, "x"), (0, 0, "y"), (0, None, "z"), (1, 97, "abc"), (0, 97, "")])
    names = [result.name for result in database.program.results]
    before = {name: sorted(map(str, database.view(name).rows())) for name in names}
    assert before["tested"] == ["(0,)"]
    assert before["shown"] == ["('a',)"]
    assert before["keyed"] == ["('a', 2)"]
    for bad in [(1, -1, "x"), (1, 0x110000, "x"), (2, 97, "ab")]:
        with pytest.raises(viewlet.DataError) as refused:
            database.insert("r", [(0, 98, "q"), bad])
        assert refused.value.relation == "r"
        assert refused.value.row == 1
        assert {name: sorted(map(str, database.view(name).rows())) for name in names} == before
    database.delete("r", (1, 97, "abc"))
    assert database.view("shown").rows() == []
