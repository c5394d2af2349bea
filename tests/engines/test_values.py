"""Orders over the values of groups, and groups of groups: as DuckDB has them after every event, at the price of one."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import viewlet
from tests.engines.conformance import Case, agree, chosen_contestants
from viewlet.workloads.streams import Event
from viewlet.workloads.written import SuiteName, suite

SCHEMA = "CREATE STREAM sales (shop INTEGER {0}, item INTEGER {0}, amount DECIMAL(8,2) {0});\n"
SUMS = "WITH t AS (SELECT shop, sum(amount) AS s FROM sales GROUP BY shop)"
COUNTS = "WITH t AS (SELECT shop, count(*) AS c FROM sales GROUP BY shop)"
MEANS = "WITH t AS (SELECT shop, avg(amount) AS a FROM sales GROUP BY shop)"
NETS = "WITH t AS (SELECT shop, sum(amount) - count(*) AS s FROM sales GROUP BY shop)"
PAIRS = "WITH t AS (SELECT shop, item, sum(amount) AS s FROM sales GROUP BY shop, item)"
HISTOGRAM = f"{COUNTS}, h AS (SELECT c, count(*) AS n FROM t GROUP BY c)"
WINDOWS = (
    "WITH t AS (SELECT w, shop, count(*) AS c FROM sales, LATERAL (VALUES (item), (item - 1), (item - 2)) v (w)"
    " GROUP BY w, shop)"
)
VIEWS = {
    "greatest": f"{SUMS} SELECT shop, s FROM t WHERE s = (SELECT max(s) FROM t)",
    "top": f"{SUMS} SELECT shop, s FROM t QUALIFY rank() OVER (ORDER BY s DESC NULLS LAST) <= 2",
    "beaten": f"{SUMS} SELECT shop FROM t WHERE (SELECT count(*) FROM t u WHERE u.s > t.s) < 2",
    "above": f"{COUNTS} SELECT shop, c FROM t WHERE c > (SELECT avg(c) FROM t)",
    "share": f"{SUMS} SELECT count(*) AS n, sum(s) AS s FROM t WHERE s > 0.3 * (SELECT sum(amount) FROM sales)",
    "most": f"{COUNTS} SELECT shop FROM t WHERE c >= ALL (SELECT c FROM t)",
    "least": f"{COUNTS} SELECT shop FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.c < t.c)",
    "histogram": f"{HISTOGRAM} SELECT c, n FROM h",
    "deeper": f"{HISTOGRAM} SELECT n, count(*) AS m, sum(c) AS c FROM h GROUP BY n",
    "tallest": f"{HISTOGRAM} SELECT max(n) AS n, min(c) AS c FROM h",
    "mode": f"{HISTOGRAM} SELECT c FROM h WHERE n = (SELECT max(n) FROM h)",
    "best": f"{PAIRS} SELECT shop, item, s FROM t WHERE s = (SELECT max(s) FROM t u WHERE u.shop = t.shop)",
    "hot": f"{WINDOWS} SELECT w, shop, c FROM t WHERE c = (SELECT max(c) FROM t u WHERE u.w = t.w)",
    "leading": "SELECT s.shop, s.amount FROM sales s"
    " JOIN (SELECT item // 2 AS w, max(amount) AS m FROM sales GROUP BY w) t"
    " ON s.amount = t.m AND s.item BETWEEN 2 * t.w AND 2 * t.w + 1",
    "spread": f"{WINDOWS} SELECT w, max(c) - min(c) AS d, count(*) AS n FROM t GROUP BY w",
    "items": "SELECT n, count(*) AS m FROM"
    " (SELECT shop, count(DISTINCT item) AS n FROM sales GROUP BY shop) GROUP BY n",
    "busy": f"{COUNTS} SELECT sum(amount) AS s FROM sales WHERE item < (SELECT count(*) FROM t WHERE c > 1)",
    "steady": f"{MEANS} SELECT shop, a FROM t WHERE a = (SELECT max(a) FROM t)",
    "net": f"{NETS} SELECT count(*) AS n FROM t WHERE s > (SELECT avg(s) FROM t)",
    "means": f"{MEANS} SELECT shop, a, rank() OVER (ORDER BY a DESC) AS r FROM t QUALIFY r BETWEEN 2 AND 3",
    "dense": f"{SUMS} SELECT shop, s FROM t QUALIFY dense_rank() OVER (ORDER BY s NULLS FIRST) <= 2",
    "numbered": f"{SUMS} SELECT shop, s FROM t QUALIFY row_number() OVER (ORDER BY s DESC, shop NULLS FIRST) <= 2",
    "shown": "SELECT * FROM (SELECT shop, sum(amount) AS s, row_number() OVER (ORDER BY sum(amount) NULLS FIRST, shop)"
    " AS n FROM sales GROUP BY shop HAVING count(*) > 1) q WHERE n <= 2",
    "placed": "SELECT shop, s FROM (SELECT row_number() OVER (ORDER BY sum(amount), shop) AS n, shop, sum(amount) AS s"
    " FROM sales GROUP BY 2) q WHERE n <= 2",
    "each": "SELECT shop, item, s FROM (SELECT shop, item, sum(amount) AS s, row_number() OVER (PARTITION BY item"
    " ORDER BY sum(amount) DESC, shop) AS n FROM sales GROUP BY shop, item) q WHERE n = 1",
    "first": f"{SUMS} SELECT sum(s) AS s FROM (SELECT s FROM t ORDER BY s DESC NULLS LAST LIMIT 2) q",
}


def stream(seed: int, length: int, missing: bool) -> Iterator[Event]:
    """Few shops, with ties and negative sums; rows leave until nothing is left, and come again."""
    rng, rows = Random(seed), list[tuple[object, ...]]()
    maybe = [None] if missing else []
    for i in range(length):
        if rows and (rng.random() < 0.3 or length - len(rows) <= i < length * 2 // 3):
            yield "-", "sales", rows.pop(rng.randrange(len(rows)))
            continue
        amount = rng.choice([-2, 0, 1, 1, 3.5, *maybe])
        row = (rng.choice([1, 1, 2, 3, 4, *maybe]), rng.choice([0, 1, 1, 2, *maybe]), amount)
        rows.append(row)
        yield "+", "sales", row


@pytest.mark.parametrize("missing", [False, True], ids=["not null", "nullable"])
def test_values_of_groups_side_by_side(missing: bool, seeded: int, soaking: bool) -> None:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in VIEWS.items())
    schema = SCHEMA.format("" if missing else "NOT NULL")
    case = Case(schema, script, VIEWS, list(stream(11 + seeded, 40, missing)))
    contestants = [
        c for c in chosen_contestants(seeded + missing, soaking) if soaking or not missing or c[0] != "native"
    ]
    for watch in agree(case, contestants).values():
        watch.check()


CLASSES = {
    **dict.fromkeys(("greatest", "top", "beaten", "above", "most", "least", "mode", "best"), "O(matches)"),
    **dict.fromkeys(("hot", "leading", "steady", "each"), "O(matches)"),
    "spread": "O(log n)",
    **dict.fromkeys(("first", "means", "numbered", "shown", "placed"), "O(matches log n)"),
    "dense": "O(g·matches)",
    **dict.fromkeys(("share", "tallest", "busy", "net"), "O(log n)"),
    **dict.fromkeys(("histogram", "deeper", "items"), "O(1)"),
}


@pytest.mark.parametrize("name", CLASSES)
def test_an_event_moves_one_value(name: str) -> None:
    (check,) = viewlet.check(f"{SCHEMA.format('NOT NULL')}CREATE MATERIALIZED VIEW v AS {VIEWS[name]};")
    assert check.cost_class == CLASSES[name]
    assert check.findings == ()


def test_sums_that_may_be_null_are_values_too() -> None:
    (check,) = viewlet.check(f"{SCHEMA.format('')}CREATE MATERIALIZED VIEW v AS {VIEWS['greatest']};")
    assert check.cost_class == "O(matches)"


WRITTEN = {
    ("tpch", "q2"): "O(matches log n)",
    **dict.fromkeys((("tpch", "q15"), ("tpch", "q16"), ("tpch", "q19"), ("tpch", "q20")), "O(matches)"),
    **dict.fromkeys((("nexmark", "q5"), ("nexmark", "q7")), "O(matches)"),
    ("tpcds", "q15"): "O(matches log n)",
    **{("nexmark", q): "O(matches log n)" for q in ("q4", "q6", "q9", "q18", "q19")},
}


@pytest.mark.parametrize(("name", "question"), WRITTEN)
def test_no_event_of_a_benchmark_goes_over_all_rows(name: SuiteName, question: str) -> None:
    written = suite(name)
    script = f"{written.schema}\nCREATE MATERIALIZED VIEW v AS {written.questions[question]};"
    (check,) = viewlet.check(script)
    assert check.cost_class == WRITTEN[name, question]
