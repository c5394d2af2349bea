"""What an update costs, by ``explain``: a class belongs to a query, not to the way it happens to be written.

Each of the paper's six queries with inequalities is given in many variants: renamed, flipped, rescaled, with terms
moved across a comparison, over other types and nullable columns, grouped and correlated in other ways. All of them
are logarithmic, but for a few whose classes are given one by one. The other six stay as they were, and what no order
of one key can answer is a scan that says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

import viewlet
from viewlet.compilation import Dialect
from viewlet.explain import Explanation
from viewlet.workloads.queries import PAPER_QUERIES

LOGARITHMIC = {"O(log n)", "O(g log n)"}
CONSTANT = {"O(1)", "O(matches)"}
SCANS = {"O(n)", "O(n log n)", "O(n²)"}
CLASSES = {"O(matches log n)", "O(g)"} | LOGARITHMIC | CONSTANT | SCANS
DIALECTS: tuple[Dialect, ...] = ("sql", "paper")
BY_ORDER = ("vwap", "mst", "psp", "axf", "bsp", "q22")
BY_KEY = ("bsv", "q3", "q11", "q17", "q18", "ssb4")
Variants = Mapping[str, str]


def book(price: str = "DOUBLE", volume: str = "DOUBLE", rest: str = "") -> str:
    """An order book whose prices and volumes have these types; ``rest`` is NOT NULL or nothing for all columns."""
    columns = ("t TIMESTAMP", "id BIGINT", "broker BIGINT", f"volume {volume}", f"price {price}", "day DATE")
    body = ", ".join(f"{column} {rest}".strip() for column in columns)
    return f"CREATE STREAM bids ({body});\nCREATE STREAM asks ({body});\n"


SOLID = book(rest="NOT NULL")
SCHEMAS: Variants = {
    "doubles": SOLID,
    "integers": book("BIGINT", "INTEGER", "NOT NULL"),
    "decimals": book("DECIMAL(12,2)", "DECIMAL(10,2)", "NOT NULL"),
    "nullable doubles": book(),
    "nullable decimals": book("DECIMAL(12,2)", "DECIMAL(10,2)"),
}


def explained(schema: str, select: str, dialect: Dialect = "sql") -> Explanation:
    database = viewlet.connect(engine="interpreter", dialect=dialect)
    database.execute(f"{schema}CREATE MATERIALIZED VIEW v AS {select};")
    return database.explain("v")


def assert_class(explanation: Explanation, classes: set[str]) -> None:
    """Fails with what ``explain`` says of the reason."""
    if explanation.cost_class not in classes:
        pytest.fail("\n".join([f"{explanation.cost_class}, {explanation.title}", *explanation.warnings]), pytrace=False)


# -- the paper's queries -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", BY_ORDER)
def test_inequalities_of_the_paper_are_logarithmic(name: str, dialect: Dialect) -> None:
    """Under the heuristics; what ``cost`` does with sizes to go by is in tests/paper/test_section_5_1_cost.py."""
    query = PAPER_QUERIES[name]
    explanation = explained(query.schema, query.select(dialect), dialect)
    assert_class(explanation, LOGARITHMIC)
    assert explanation.warnings == ()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", BY_KEY)
def test_equalities_of_the_paper_cost_no_more_than_their_matches(name: str, dialect: Dialect) -> None:
    query = PAPER_QUERIES[name]
    explanation = explained(query.schema, query.select(dialect), dialect)
    assert_class(explanation, CONSTANT)


@pytest.mark.parametrize("name", PAPER_QUERIES)
def test_every_statement_has_a_class_and_the_worst_is_the_view_s(name: str) -> None:
    query = PAPER_QUERIES[name]
    explanation = explained(query.schema, query.select())
    text = explanation.stage("program")
    classes = re.findall(r"-- (O\(.*?\)(?= per|:))", text)
    assert len(classes) == len(re.findall(r"(?:\+=|:=)(?=[ \n]).*?;$", text, re.DOTALL | re.MULTILINE))
    assert explanation.cost_class in classes
    assert set(classes) <= CLASSES


@pytest.mark.parametrize("name", BY_ORDER)
def test_an_insert_costs_what_a_delete_does(name: str) -> None:
    query = PAPER_QUERIES[name]
    costs: dict[str, list[str]] = {"insert into": [], "delete from": []}
    for kind, body in re.findall(
        r"on (insert into|delete from) .*?\{(.*?)^\}", *_program(query.schema, query.select())
    ):
        costs[kind] += sorted(re.findall(r"-- (O\(.*?\)):", body))
    assert costs["insert into"] == costs["delete from"] != []
    assert set(costs["insert into"]) <= CLASSES - SCANS


def _program(schema: str, select: str) -> tuple[str, int]:
    return explained(schema, select).stage("program"), re.DOTALL | re.MULTILINE


# -- VWAP: a threshold on a running sum --------------------------------------------------------------------------------

TOTAL = "(SELECT sum(b3.volume) FROM bids b3)"
ABOVE = "(SELECT sum(b2.volume) FROM bids b2 WHERE b2.price > b1.price)"
VWAP_THRESHOLDS: Variants = {
    "as printed": f"0.25 * {TOTAL} > {ABOVE}",
    "flipped": f"{ABOVE} < 0.25 * {TOTAL}",
    "not strict": f"0.25 * {TOTAL} >= {ABOVE}",
    "the other way": f"0.25 * {TOTAL} < {ABOVE}",
    "rescaled": f"{TOTAL} > 4 * {ABOVE}",
    "rescaled by a negative": f"-0.25 * {TOTAL} < -1 * {ABOVE}",
    "divided": f"{TOTAL} / 4 > {ABOVE}",
    "moved to the left": f"0.25 * {TOTAL} - {ABOVE} > 0",
    "moved to the right": f"0 > {ABOVE} - 0.25 * {TOTAL}",
    "with an offset": f"0.25 * {TOTAL} + 3 > {ABOVE} - 2",
    "negated": f"NOT (0.25 * {TOTAL} <= {ABOVE})",
    "a constant": f"{ABOVE} < 1000",
    "between": f"{ABOVE} BETWEEN 10 AND 0.25 * {TOTAL}",
    "of another table": f"{ABOVE} < (SELECT sum(a.volume) FROM asks a)",
    "of a difference of totals": f"{ABOVE} < {TOTAL} - (SELECT sum(a.volume) FROM asks a)",
    "nothing is zero": f"coalesce({ABOVE}, 0) < 0.25 * coalesce({TOTAL}, 0)",
    "a count": "5 > (SELECT count(*) FROM bids b2 WHERE b2.price > b1.price)",
    "a sum of products": f"{TOTAL} > (SELECT sum(b2.volume * b2.price) FROM bids b2 WHERE b2.price > b1.price)",
    "two of them": f"0.25 * {TOTAL} > {ABOVE} AND {ABOVE} > 0.1 * {TOTAL}",
    "two directions": f"0.75 * {TOTAL} > {ABOVE} "
    f"AND 0.75 * {TOTAL} > (SELECT sum(b2.volume) FROM bids b2 WHERE b2.price < b1.price)",
}
VWAP_RUNNING: Variants = {
    "flipped": "b1.price < b2.price",
    "not strict": "b2.price >= b1.price",
    "from the bottom": "b2.price < b1.price",
    "from the bottom, not strict": "b1.price >= b2.price",
    "moved": "b2.price - b1.price > 0",
    "moved and flipped": "0 > b1.price - b2.price",
    "shifted": "b2.price > b1.price + 2",
    "shifted on the left": "b2.price - 2 > b1.price",
    "rescaled": "2 * b2.price > 2 * b1.price",
    "scaled": "b2.price > 1.1 * b1.price",
    "negated keys": "-b2.price < -b1.price",
    "negated": "NOT (b2.price <= b1.price)",
    "filtered": "b2.price > b1.price AND b2.volume > 1",
    "filtered before": "b2.id <> 7 AND b2.price > b1.price",
    "by date": "b2.day > b1.day",
    "by date, shifted": "b2.day > b1.day + 2",
    "by date, as a difference": "b2.day - b1.day >= 1",
    "by time": "b2.t < b1.t",
    "by number": "b2.id > b1.id",
}


def vwap(threshold: str, shown: str = "sum(b1.price * b1.volume) AS vwap", group: str = "") -> str:
    return f"SELECT {shown} FROM bids b1 WHERE {threshold}{group}"


PER_BROKER = (
    "0.25 * (SELECT sum(b3.volume) FROM bids b3 WHERE b3.broker = b1.broker) > "
    "(SELECT sum(b2.volume) FROM bids b2 WHERE b2.price > b1.price AND b2.broker = b1.broker)"
)
VWAP: Variants = {
    **{f"threshold {name}": vwap(threshold) for name, threshold in VWAP_THRESHOLDS.items()},
    **{
        f"running {name}": vwap(f"0.25 * {TOTAL} > (SELECT sum(b2.volume) FROM bids b2 WHERE {condition})")
        for name, condition in VWAP_RUNNING.items()
    },
    "a count shown": vwap(f"0.25 * {TOTAL} > {ABOVE}", "count(*) AS n"),
    "many shown": vwap(f"0.25 * {TOTAL} > {ABOVE}", "sum(b1.price) AS p, count(*) AS n, avg(b1.volume) AS v"),
    "per broker": vwap(f"0.25 * {TOTAL} > {ABOVE}", "b1.broker, sum(b1.price) AS p", " GROUP BY b1.broker"),
    "each broker's own": vwap(PER_BROKER, "b1.broker, sum(b1.price) AS p", " GROUP BY b1.broker"),
    "a filter beside": vwap(f"b1.volume > 3 AND 0.25 * {TOTAL} > {ABOVE}"),
    "a filter after": vwap(f"0.25 * {TOTAL} > {ABOVE} AND b1.price < 100"),
    "in FROM": f"SELECT w.vwap FROM ({vwap(f'0.25 * {TOTAL} > {ABOVE}')}) w",
    "of a subquery in FROM": f"SELECT sum(b1.price) AS p FROM (SELECT price FROM bids) b1 WHERE {TOTAL} > 4 * {ABOVE}",
    "in WITH": f"WITH w AS ({vwap(f'0.25 * {TOTAL} > {ABOVE}')}) SELECT w.vwap + 1 AS one_more FROM w",
    "other aliases": "SELECT sum(z.price) AS p FROM bids z WHERE (SELECT sum(a.volume) FROM bids a) > "
    "3 * (SELECT sum(y.volume) FROM bids y WHERE z.price < y.price)",
    "the other table's order": "SELECT sum(b.price) AS p FROM bids b WHERE "
    "(SELECT sum(a.volume) FROM asks a WHERE a.price < b.price) < 100",
}

# -- MST: a product of tables, each restricted on its own --------------------------------------------------------------

TOP_ASKS = "0.25 * (SELECT sum(a1.volume) FROM asks a1) > (SELECT sum(a2.volume) FROM asks a2 WHERE a2.price > a.price)"
TOP_BIDS = "0.25 * (SELECT sum(b1.volume) FROM bids b1) > (SELECT sum(b2.volume) FROM bids b2 WHERE b2.price > b.price)"
LOW_ASKS = (
    "(SELECT sum(a2.volume) FROM asks a2 WHERE a.price >= a2.price) <= 0.25 * (SELECT sum(a1.volume) FROM asks a1)"
)


def mst(conditions: str, group: str = "b.broker", shown: str = "sum(a.price * a.volume - b.price * b.volume)") -> str:
    tail = f" GROUP BY {group}" if group else ""
    return f"SELECT {group}{', ' * bool(group)}{shown} AS spread FROM bids b, asks a WHERE {conditions}{tail}"


MST: Variants = {
    "as printed": mst(f"{TOP_ASKS} AND {TOP_BIDS}"),
    "shuffled": mst(f"{TOP_BIDS} AND {TOP_ASKS}"),
    "from both ends": mst(f"{LOW_ASKS} AND {TOP_BIDS}"),
    "in all": mst(f"{TOP_ASKS} AND {TOP_BIDS}", ""),
    "by the other's broker": mst(f"{TOP_ASKS} AND {TOP_BIDS}", "a.broker"),
    "counted": mst(f"{TOP_ASKS} AND {TOP_BIDS}", shown="count(*)"),
    "multiplied": mst(f"{TOP_ASKS} AND {TOP_BIDS}", shown="sum(a.volume * b.volume)"),
    "one side only": mst(TOP_BIDS),
    "one side by its size": mst(f"{TOP_BIDS} AND a.volume > 0.1 * (SELECT sum(a1.volume) FROM asks a1)"),
    "filtered": mst(f"{TOP_ASKS} AND {TOP_BIDS} AND a.volume > 2 AND b.volume < 100"),
    "by counts": mst(
        "3 > (SELECT count(*) FROM asks a2 WHERE a2.price < a.price) "
        "AND 3 > (SELECT count(*) FROM bids b2 WHERE b2.price > b.price)"
    ),
    "of one table twice": "SELECT sum(a.price - b.price) AS spread FROM bids b, bids a WHERE "
    f"{TOP_BIDS} AND {LOW_ASKS.replace('asks', 'bids')}",
    "joined": f"SELECT b.broker, count(*) AS n FROM bids b CROSS JOIN asks a WHERE {TOP_ASKS} AND {TOP_BIDS} "
    "GROUP BY b.broker",
}

# -- PSP: a comparison with a total ------------------------------------------------------------------------------------

BIDS_TOTAL, ASKS_TOTAL = "(SELECT sum(b1.volume) FROM bids b1)", "(SELECT sum(a1.volume) FROM asks a1)"
PSP_CONDITIONS: Variants = {
    "as printed": f"b.volume > 0.0001 * {BIDS_TOTAL} AND a.volume > 0.0001 * {ASKS_TOTAL}",
    "flipped": f"0.0001 * {ASKS_TOTAL} < a.volume AND 0.0001 * {BIDS_TOTAL} < b.volume",
    "not strict": f"b.volume >= 0.0001 * {BIDS_TOTAL} AND a.volume <= 0.5 * {ASKS_TOTAL}",
    "rescaled": f"10000 * b.volume > {BIDS_TOTAL} AND 10000 * a.volume > {ASKS_TOTAL}",
    "moved": f"b.volume - 0.0001 * {BIDS_TOTAL} > 0 AND 0 < a.volume - 0.0001 * {ASKS_TOTAL}",
    "negated": f"NOT (b.volume <= 0.0001 * {BIDS_TOTAL} OR a.volume <= 0.0001 * {ASKS_TOTAL})",
    "by the average": "b.volume > (SELECT avg(b1.volume) FROM bids b1) "
    "AND a.volume > (SELECT avg(a1.volume) FROM asks a1)",
    "crossed": f"b.volume > 0.0001 * {ASKS_TOTAL} AND a.volume > 0.0001 * {BIDS_TOTAL}",
    "between": f"b.volume BETWEEN 0.0001 * {BIDS_TOTAL} AND 0.5 * {BIDS_TOTAL} AND a.volume > 3",
    "by price": f"b.price > 0.0001 * {BIDS_TOTAL} AND a.price < {ASKS_TOTAL}",
    "one side": f"b.volume > 0.0001 * {BIDS_TOTAL}",
}
OWN_AND_ALL = f"b.volume > 0.1 * (SELECT sum(b2.volume) FROM bids b2 WHERE b2.broker = b.broker) + 0.01 * {BIDS_TOTAL}"
PSP: Variants = {
    **{
        name: f"SELECT sum(a.price - b.price) AS spread FROM bids b, asks a WHERE {conditions}"
        for name, conditions in PSP_CONDITIONS.items()
    },
    "per broker": "SELECT b.broker, sum(a.price - b.price) AS spread FROM bids b, asks a WHERE "
    f"{PSP_CONDITIONS['as printed']} GROUP BY b.broker",
    "one table": f"SELECT count(*) AS n FROM bids b WHERE b.volume > 0.01 * {BIDS_TOTAL}",
    "each broker's own total beside all": f"SELECT b.broker, sum(b.price) AS p FROM bids b WHERE {OWN_AND_ALL} "
    "GROUP BY b.broker",
    "one table per broker": f"SELECT b.broker, count(*) AS n FROM bids b WHERE b.volume > 0.01 * {BIDS_TOTAL} "
    "GROUP BY b.broker",
}

# -- AXF and BSP: joins by inequality ----------------------------------------------------------------------------------

AXF_CONDITIONS: Variants = {
    "as printed": "(a.price - b.price > 1000 OR b.price - a.price > 1000)",
    "shuffled": "(b.price - a.price > 1000 OR a.price - b.price > 1000)",
    "flipped": "(1000 < a.price - b.price OR 1000 < b.price - a.price)",
    "not strict": "(a.price - b.price >= 1000 OR b.price - a.price >= 10)",
    "moved": "(a.price > b.price + 1000 OR a.price < b.price - 1000)",
    "rescaled": "(2 * a.price - 2 * b.price > 2000 OR 0.5 * b.price > 500 + 0.5 * a.price)",
    "not between": "a.price NOT BETWEEN b.price - 1000 AND b.price + 1000",
    "between": "a.price - b.price BETWEEN -1000 AND 1000",
    "one range": "a.price - b.price > 1000",
    "both ends": "a.price > b.price AND a.price < b.price + 1000",
    "ranges that overlap": "(a.price > b.price - 5 OR a.price < b.price + 5)",
    "ranges within each other": "(a.price > b.price OR a.price > b.price + 10)",
    "not a range": "NOT (a.price <= b.price + 1000)",
    "different prices": "a.price <> b.price",
    "by date": "(a.day - b.day > 3 OR b.day > a.day + 3)",
    "by time": "a.t > b.t",
    "other columns": "a.price > b.volume + 10",
}


def axf(condition: str, group: str = "b.broker", shown: str = "sum(a.volume - b.volume)") -> str:
    tail = f" GROUP BY {group}" if group else ""
    return f"SELECT {group}{', ' * bool(group)}{shown} AS imbalance FROM bids b, asks a WHERE {condition}{tail}"


AXF: Variants = {
    **{name: axf(f"b.broker = a.broker AND {condition}") for name, condition in AXF_CONDITIONS.items()},
    "the equality last": axf(f"{AXF_CONDITIONS['as printed']} AND a.broker = b.broker"),
    "in all": axf(f"b.broker = a.broker AND {AXF_CONDITIONS['as printed']}", ""),
    "any broker": axf(AXF_CONDITIONS["as printed"]),
    "any broker, in all": axf(AXF_CONDITIONS["as printed"], ""),
    "any broker, one range": axf(AXF_CONDITIONS["one range"]),
    "by both brokers": axf(AXF_CONDITIONS["one range"], "b.broker, a.broker"),
    "counted": axf(f"b.broker = a.broker AND {AXF_CONDITIONS['as printed']}", shown="count(*)"),
    "multiplied": axf(f"b.broker = a.broker AND {AXF_CONDITIONS['one range']}", shown="sum(a.volume * b.price)"),
    "filtered": axf(f"b.broker = a.broker AND {AXF_CONDITIONS['one range']} AND b.volume > 3 AND a.volume < 9"),
    "by JOIN": "SELECT b.broker, count(*) AS n FROM bids b JOIN asks a ON a.broker = b.broker AND a.price > b.price "
    "GROUP BY b.broker",
}
BSP_CONDITIONS: Variants = {
    "as printed": "x.t > y.t",
    "flipped": "y.t < x.t",
    "not strict": "x.t >= y.t",
    "the other way": "x.t < y.t",
    "negated": "NOT (x.t <= y.t)",
    "by number": "x.id - y.id > 0",
    "shifted": "x.id > y.id + 5",
    "a window": "x.id - y.id BETWEEN 1 AND 10",
    "by date": "x.day > y.day",
    "within days": "x.day BETWEEN y.day + 1 AND y.day + 7",
    "by price": "3 * x.price > y.price",
}
BSP: Variants = {
    **{
        name: "SELECT x.broker, sum(x.volume * x.price - y.volume * y.price) AS spread FROM bids x, bids y "
        f"WHERE x.broker = y.broker AND {condition} GROUP BY x.broker"
        for name, condition in BSP_CONDITIONS.items()
    },
    "in all": "SELECT sum(x.volume - y.volume) AS spread FROM bids x, bids y WHERE y.broker = x.broker AND x.t > y.t",
    "any broker": "SELECT sum(x.volume * y.volume) AS spread FROM bids x, bids y WHERE x.t > y.t",
    "counted": "SELECT x.broker, count(*) AS n FROM bids x, bids y WHERE x.t > y.t AND y.broker = x.broker "
    "GROUP BY x.broker",
}
FINANCE: Variants = {
    **{f"vwap {name}": select for name, select in VWAP.items()},
    **{f"mst {name}": select for name, select in MST.items()},
    **{f"psp {name}": select for name, select in PSP.items()},
    **{f"axf {name}": select for name, select in AXF.items()},
    **{f"bsp {name}": select for name, select in BSP.items()},
}
BEYOND: Mapping[str, tuple[str, str]] = {  # variants that are not logarithmic, with what they cost
    "vwap each broker's own, in all": (vwap(PER_BROKER), "O(matches log n)"),
    "mst in FROM": (
        f"SELECT m.broker, m.spread FROM ({mst(f'{TOP_ASKS} AND {TOP_BIDS}')}) m",
        "O(n·matches log n)",
    ),
    "psp each broker's own total": (
        "SELECT sum(b.price) AS p FROM bids b WHERE "
        "b.volume > 0.1 * (SELECT sum(b1.volume) FROM bids b1 WHERE b1.broker = b.broker)",
        "O(matches)",
    ),
    "psp each broker's own total beside all, in all": (
        f"SELECT sum(b.price) AS p FROM bids b WHERE {OWN_AND_ALL}",
        "O(n)",
    ),
}
PRINTED = [
    vwap(VWAP_THRESHOLDS["as printed"]),
    *(variants["as printed"] for variants in (MST, PSP, AXF)),
    BSP["by number"],
]

# -- Q22: a total beside what is absent --------------------------------------------------------------------------------

SALES = """\
CREATE STREAM customer (k BIGINT NOT NULL, nation BIGINT NOT NULL, balance DECIMAL(12,2) NOT NULL);
CREATE STREAM orders (id BIGINT NOT NULL, k BIGINT NOT NULL);
"""
RICHES = "(SELECT sum(d.balance) FROM customer d WHERE d.balance > 0)"
ABSENT = "0 = (SELECT count(*) FROM orders o WHERE o.k = c.k)"
Q22_CONDITIONS: Variants = {
    "as printed": f"c.balance < {RICHES} AND {ABSENT}",
    "shuffled": f"{ABSENT} AND c.balance < {RICHES}",
    "flipped": f"{RICHES} > c.balance AND (SELECT count(*) FROM orders o WHERE c.k = o.k) = 0",
    "not strict": f"c.balance <= {RICHES} AND {ABSENT}",
    "the other way": f"c.balance > 0.01 * {RICHES} AND {ABSENT}",
    "moved": f"c.balance - {RICHES} < 0 AND {ABSENT}",
    "rescaled": f"3 * c.balance + 1 < 0.5 * {RICHES} AND {ABSENT}",
    "not exists": f"c.balance < {RICHES} AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.k = c.k)",
    "exists": f"c.balance < {RICHES} AND EXISTS (SELECT 1 FROM orders o WHERE o.k = c.k)",
    "by the average": f"c.balance > (SELECT avg(d.balance) FROM customer d WHERE d.balance > 0) AND {ABSENT}",
    "without orders": f"c.balance < {RICHES}",
}
Q22: Variants = {
    **{
        name: f"SELECT c.nation, sum(c.balance) AS balance FROM customer c WHERE {conditions} GROUP BY c.nation"
        for name, conditions in Q22_CONDITIONS.items()
    },
    "in all": f"SELECT count(*) AS n, sum(c.balance) AS balance FROM customer c WHERE {Q22_CONDITIONS['as printed']}",
}

# -- the variants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("select", FINANCE.values(), ids=FINANCE)
def test_a_variant_is_logarithmic_too(select: str, dialect: Dialect) -> None:
    explanation = explained(SOLID, select, dialect)
    assert_class(explanation, LOGARITHMIC)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("select", "cost"), BEYOND.values(), ids=BEYOND)
def test_a_variant_that_is_not_logarithmic_costs_what_is_said(select: str, cost: str, dialect: Dialect) -> None:
    """An event on one of many groups, whose rows are summed over all, or a view that shows what a subquery groups."""
    explanation = explained(SOLID, select, dialect)
    assert_class(explanation, {cost})
    assert bool(explanation.warnings) == cost.startswith("O(n")


@pytest.mark.parametrize("schema", [SALES, SALES.replace(" NOT NULL", "")], ids=["solid", "nullable"])
@pytest.mark.parametrize("select", Q22.values(), ids=Q22)
def test_a_variant_of_q22_is_logarithmic_too(select: str, schema: str) -> None:
    """Where nothing is grouped, the worst is an order's own customers, who are found by their key."""
    for dialect in DIALECTS:
        explanation = explained(schema, select, dialect)
        assert_class(explanation, LOGARITHMIC if "GROUP BY" in select else LOGARITHMIC | {"O(matches)"})


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("select", PRINTED, ids=["vwap", "mst", "psp", "axf", "bsp"])
def test_types_do_not_change_the_class(select: str, schema: str) -> None:
    explanation = explained(schema, select)
    assert_class(explanation, LOGARITHMIC)


@pytest.mark.parametrize("null", [" NOT NULL", ""], ids=["solid", "nullable"])
@pytest.mark.parametrize("type_", ["BIGINT", "INTEGER", "DOUBLE", "DECIMAL(10,2)", "DATE", "TIMESTAMP", "VARCHAR"])
def test_keys_of_every_ordered_type(type_: str, null: str) -> None:
    schema = f"CREATE STREAM r (k {type_}{null}, v BIGINT{null}); CREATE STREAM q (k {type_}{null}, v BIGINT{null});"
    joined = explained(schema, "SELECT sum(r.v * q.v) AS s FROM r, q WHERE r.k < q.k")
    nested = explained(schema, "SELECT sum(a.v) AS s FROM r a WHERE (SELECT sum(b.v) FROM r b WHERE b.k <= a.k) < 9")
    assert_class(joined, LOGARITHMIC)
    assert_class(nested, LOGARITHMIC)


def test_names_do_not_matter() -> None:
    schema = SOLID.replace("price", "sum").replace("volume", "n").replace("bids", "o").replace("broker", "x")
    select = VWAP["each broker's own"].replace(".price", '."sum"').replace("volume", "n").replace("bids", "o")
    explanation = explained(schema.replace("sum", '"sum"'), select.replace("broker", "x"))
    assert_class(explanation, LOGARITHMIC)


def test_views_over_views_and_beside_each_other_keep_their_class() -> None:
    database = viewlet.connect(engine="interpreter")
    database.execute(
        SOLID
        + "".join(f"CREATE MATERIALIZED VIEW v{i} AS {select};\n" for i, select in enumerate(PRINTED))
        + "CREATE MATERIALIZED VIEW big AS SELECT price, volume FROM bids WHERE volume > 3;\n"
        + "CREATE MATERIALIZED VIEW top AS "
        + VWAP["threshold as printed"].replace("bids", "big")
    )
    for view in ("v0", "v1", "v2", "v3", "v4", "top"):
        explanation = database.explain(view)
        assert_class(explanation, LOGARITHMIC)


# -- slices that are compared with totals ------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_quantities_of_a_part_are_gone_over_and_balances_of_a_customer_are_not(dialect: Dialect) -> None:
    """Q17 compares with the part's own sum, Q22 with that of all customers."""
    part, customer = (PAPER_QUERIES[name] for name in ("q17", "q22"))
    assert "order of" not in explained(part.schema, part.select(dialect), dialect).stage("program")
    program = explained(customer.schema, customer.select(dialect), dialect).stage("program")
    (on_orders,) = re.findall(r"on insert into orders .*?^}", program, re.DOTALL | re.MULTILINE)
    assert on_orders.count("adds up a range of") == 2  # the sum, and whether there is a row


# -- what stays a scan -------------------------------------------------------------------------------------------------

PAIRS = (
    "CREATE STREAM a (x BIGINT NOT NULL, y BIGINT NOT NULL); CREATE STREAM b (x BIGINT NOT NULL, y BIGINT NOT NULL);"
)
NO_ORDER: Variants = {
    "a distance": "SELECT count(*) AS n FROM a, b WHERE abs(a.x - b.x) > 3",
    "a square": "SELECT count(*) AS n FROM a, b WHERE a.x * a.x > b.x",
    "a product": "SELECT count(*) AS n FROM a, b WHERE a.x * b.x > 3",
    "a sum that runs by a square": "SELECT sum(a.y) AS s FROM a "
    "WHERE (SELECT sum(c.y) FROM a c WHERE c.x * c.x > a.x) > 3",
    "a sum beside the key that it runs by": "SELECT sum(a.y) AS s FROM a "
    "WHERE (SELECT sum(c.y) FROM a c WHERE c.x > a.x) > a.x",
    "a side that changes with the row": "SELECT sum(a.y) AS s FROM a "
    "WHERE (SELECT sum(c.y) FROM a c WHERE c.x > a.x) > a.y",
}


@pytest.mark.parametrize("select", NO_ORDER.values(), ids=NO_ORDER)
def test_what_no_order_answers_is_a_scan_that_says_so(select: str) -> None:
    explanation = explained(PAIRS, select)
    assert_class(explanation, SCANS)
    assert any("scan" in warning and explanation.cost_class in warning for warning in explanation.warnings)


def test_a_reason_is_given_in_the_query_s_own_names() -> None:
    """Whatever lowering calls the columns that it sums out; so events with the same reason are one warning."""
    explanation = explained(PAIRS, "SELECT b.y, count(*) AS n FROM a, b WHERE abs(a.x - b.x) > 3 GROUP BY b.y")
    assert explanation.warnings == (
        "v on +a, -a, Δa takes O(n): scans v_b: no key is bound, only compared in [abs((@x - b.x)) > 3]",
        "v on +b, -b, Δb takes O(n): scans v_a: no key is bound, only compared in [abs((a.x - @x)) > 3]",
    )


def test_of_two_ranges_at_once_one_is_gone_through() -> None:
    """An order answers for one key: its matches are compared with the other range one by one."""
    explanation = explained(PAIRS, "SELECT count(*) AS n FROM a, b WHERE a.x > b.x AND a.y < b.y")
    assert_class(explanation, {"O(matches)", "O(matches log n)"} | SCANS)


def test_what_a_comparison_needs_is_not_scanned_for() -> None:
    """TPC-DS 72 in small: the event leads to its rows, and these to the others, before anything is compared."""
    (check,) = viewlet.check("""
        CREATE STREAM d (id INTEGER NOT NULL, x INTEGER NOT NULL);
        CREATE STREAM s (d INTEGER NOT NULL, item INTEGER NOT NULL, q INTEGER NOT NULL);
        CREATE STREAM i (item INTEGER NOT NULL, w INTEGER NOT NULL, q INTEGER NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT i.w, count(*) AS n
        FROM d JOIN s ON s.d = d.id JOIN i ON i.item = s.item AND i.q < s.q GROUP BY i.w;
    """)
    assert check.cost_class == "O(matches log n)"
