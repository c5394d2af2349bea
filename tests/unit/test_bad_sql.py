"""Every kind of bad or unsupported SQL: the class, what it says, where it points (the ‸ in the text), and a hint."""

from __future__ import annotations

from typing import Any

import pytest

import viewlet
from viewlet.errors import SqlError, UnsupportedError
from viewlet.sql import translate

SCHEMA = """CREATE STREAM bids (t DOUBLE, id BIGINT NOT NULL, price DECIMAL(10,2), s VARCHAR, d DATE, f BOOLEAN);
CREATE STREAM asks (t DOUBLE, id BIGINT NOT NULL, price DECIMAL(10,2));
"""

UNSUPPORTED_QUERIES = [
    ("SELECT ‸skewness(price) FROM bids", "the aggregate SKEWNESS"),
    ("SELECT sum(‸*) FROM bids", "* in an expression"),
    (
        "SELECT DISTINCT ‸lag(price) OVER (ORDER BY id) FROM bids",
        "LAG by the numbers of rows that may be equal, below the top of a view",
    ),
    ("SELECT id FROM ‸other.bids", "this in FROM"),
    ("(SELECT id FROM bids ORDER BY id ‸LIMIT 3) ORDER BY t", "LIMIT inside an ordered query"),
    ("SELECT id FROM bids ORDER BY id ‸LIMIT 5%", "a LIMIT in percent"),
    ("SELECT id FROM bids ORDER BY id ‸LIMIT 2.5", "LIMIT with anything but a whole number"),
    ("SELECT id FROM bids ORDER BY id ‸LIMIT -1", "LIMIT with anything but a whole number"),
    ("SELECT id FROM bids ORDER BY id ‸FETCH FIRST 3 ROWS WITH TIES", "WITH TIES"),
    (
        "SELECT x.l FROM (SELECT id, ‸last(s ORDER BY upper(s)) AS l FROM bids GROUP BY id) x",
        "LAST by a computed value that may be NULL, below the top of a view",
    ),
    (
        "SELECT count(*) FROM bids GROUP BY CUBE (id, ‸id + 0)",
        "one value as two keys of grouping sets",
    ),
    ("SELECT id, s FROM bids GROUP BY GROUPING SETS ((id, 2), (‸bids.id))", "one value as two keys of grouping sets"),
    ("SELECT id, s FROM bids GROUP BY ROLLUP (id, s, ‸1)", "one value as two keys of grouping sets"),
    ("SELECT DISTINCT id FROM bids ORDER BY ‸t", "ORDER BY what the rows do not show"),
    ("SELECT id FROM bids UNION ALL SELECT id FROM asks ORDER BY ‸t", "ORDER BY what the rows do not show"),
    ("SELECT id, s FROM bids ORDER BY ‸s COLLATE nocase", "COLLATE"),
    ("SELECT ‸DISTINCT ON (1) id, price FROM bids", "DISTINCT ON with anything but expressions over FROM"),
    (
        "SELECT id FROM bids GROUP ‸BY CUBE (id, price, t, id + 1, id + 2, id + 3, id + 4)",
        "GROUP BY with 128 grouping sets",
    ),
    ("SELECT 1 + 1 AS c, id FROM bids GROUP BY ROLLUP (id, ‸1 + 1)", "a constant among grouping sets"),
    ("SELECT ‸first(id ORDER BY price, t) FROM bids", "FIRST with several expressions in ORDER BY"),
    ("WITH ‸RECURSIVE q AS (SELECT 1 AS a) SELECT a FROM q", "WITH RECURSIVE"),
    ("SELECT ‸nosuch(s) FROM bids", "the function NOSUCH"),
    ("SELECT ‸frobnicate(s) FROM bids", "the function FROBNICATE"),
    ("SELECT ‸coalesce(sum(price), 0.005) FROM bids", "rounding a DECIMAL(4,3) to the common type DECIMAL(38,2)"),
    (
        "SELECT ‸coalesce(sum(id) * 0.5, 0.25) FROM bids",
        "rounding a DECIMAL(3,2) to the common type DECIMAL(38,1)",
    ),
    (
        "SELECT id, CASE WHEN ‸id > 1 THEN sum(price) ELSE sum(price * 0.5) END FROM bids GROUP BY id",
        "rounding a DECIMAL(38,3) to the common type DECIMAL(38,2)",
    ),
    (
        "SELECT ‸sum(price) FROM bids UNION ALL SELECT price * 0.5 FROM asks",
        "rounding a DECIMAL(12,3) to the common type DECIMAL(38,2)",
    ),
    (
        "SELECT id FROM bids WHERE ‸price * 0.5 IN (SELECT sum(price) FROM asks)",
        "rounding a DECIMAL(12,3) to the common type DECIMAL(38,2)",
    ),
    (
        "SELECT t, (‸SELECT a.price FROM asks a WHERE a.t > bids.t) AS p, count(*) AS n FROM bids GROUP BY t",
        "a scalar subquery that may have several rows for a row around it",
    ),
    (
        "SELECT id FROM bids WHERE (SELECT sum(‸bids.price) FROM asks) > 1",
        "an aggregate over columns of the outer query only",
    ),
    ("SELECT interval ‸'1' month FROM bids", "an INTERVAL of months as a value"),
    ("SELECT d + INTERVAL ‸'1.5' DAY FROM bids", "a fraction of one DAY in an INTERVAL"),
    ("SELECT ‸d - INTERVAL 1.5 HOUR FROM bids", "a fraction of one HOUR in an INTERVAL"),
    ("SELECT ‸d + INTERVAL '-1.5 weeks' FROM bids", "a fraction of one WEEK in an INTERVAL"),
    ("SELECT d + INTERVAL ‸'0.5' YEAR FROM bids", "a fraction of one YEAR in an INTERVAL"),
    ("SELECT d + INTERVAL ‸'0.0000001' SECOND FROM bids", "a fraction of one MICROSECOND in an INTERVAL"),
    ("SELECT id FROM bids WHERE ‸id BETWEEN SYMMETRIC 2 AND 1", "SYMMETRIC"),
    (
        "SELECT ‸99999999999999999999 FROM bids",
        "the number 99999999999999999999, which fits no BIGINT, DECIMAL or DOUBLE,",
    ),
    ("SELECT ‸1e400 FROM bids", "the number 1e400, which fits no BIGINT, DECIMAL or DOUBLE,"),
    ("SELECT DATE ‸'9999-12-01' + INTERVAL '1' MONTH FROM bids", "a date that is not between the years 1 and 9999"),
    ("SELECT id AS a, ‸t AS a FROM bids", "the name a for two columns"),
    ("SELECT ‸bids AS b FROM bids", "a whole row (bids) as a value"),
    ("SELECT d + INTERVAL ‸'1' FORTNIGHT FROM bids", "INTERVAL with the unit FORTNIGHT"),
    ("SELECT d FROM bids WHERE d > d + INTERVAL ‸'1 d ago'", "INTERVAL '1 d ago'"),
    ("SELECT d + INTERVAL ‸'1 day 02:03' FROM bids", "INTERVAL '1 day 02:03'"),
    ("SELECT d + INTERVAL ‸'1e3' DAY FROM bids", "INTERVAL '1e3'"),
    ("SELECT d + INTERVAL '1' ‸h FROM bids", "h, a name, for the unit of an INTERVAL"),
    ("SELECT d + INTERVAL ('1') ‸\"day\" FROM bids", "day, a name, for the unit of an INTERVAL"),
    ("SELECT id FROM bids WHERE ‸price", "a DECIMAL(10,2) for a condition"),
    ("SELECT id FROM bids WHERE ‸id = '1'", "comparing a BIGINT with a VARCHAR"),
    ("SELECT ‸s FROM bids UNION ALL SELECT id FROM asks", "one column of VARCHAR and BIGINT"),
    ("SELECT id FROM bids WHERE ‸id IN ()", "an empty IN list"),
    ("SELECT DATE ‸'2024/01/31' FROM bids", "DATE '2024/01/31'"),
    ("SELECT id, ‸skewness(abs(id)) FROM bids GROUP BY id", "the aggregate SKEWNESS"),
    (
        "SELECT DISTINCT ‸string_agg(s, ',') FROM bids",
        "STRING_AGG in a subquery, or beside one, or in a DISTINCT SELECT",
    ),
    ("SELECT length(‸list(id)) FROM bids", "LIST inside an expression"),
    ("SELECT list(id) AS l, ‸l IS NULL FROM bids", "the list l inside an expression"),
    ("SELECT id FROM bids WHERE abs(‸nosuch(d)) > 1", "the function NOSUCH"),
    ("SELECT DATE ‸'9999-12-31' + 1 FROM bids", "a date that is not between the years 1 and 9999"),
]
UNSUPPORTED_STATEMENTS = [
    ("CREATE ‸SINK k FROM v", "CREATE SINK"),
    ("CREATE ‸INDEX i ON bids (id)", "CREATE INDEX"),
    ("CREATE MATERIALIZED ‸TABLE x (a INTEGER)", "CREATE MATERIALIZED TABLE"),
    ("CREATE TABLE y (a INTEGER); DROP TABLE y ‸CASCADE", "CASCADE"),
    ("ALTER TABLE bids ‸ADD COLUMN x INTEGER", "ALTER … ADD"),
    ("DELETE FROM ‸bids RETURNING *", "RETURNING"),
    ("INSERT INTO ‸other.bids VALUES (1)", "a name with a schema"),
    ("CREATE MATERIALIZED VIEW w AS SELECT id FROM bids ‸EMIT FINAL", "EMIT FINAL"),
    ("CREATE MATERIALIZED VIEW w ‸WITH (x = 1) AS SELECT id FROM bids", "WITH options of a view"),
    ("CREATE TABLE ‸x AS SELECT 1", "CREATE TABLE … AS"),
    ("CREATE STREAM ‸s.x (a INTEGER)", "a name with a schema"),
    ("‸EXPLAIN SELECT id FROM bids", "EXPLAIN"),
    ("‸SELECT id FROM bids", "a SELECT outside a view"),
    ("CREATE TABLE x (‸a INTEGER GENERATED ALWAYS AS (1))", "a generated column"),
    ("CREATE TABLE x (a INTEGER, FOREIGN KEY (‸a) REFERENCES bids (id))", "FOREIGN KEY"),
    ("CREATE TABLE x (‸a INTEGER DEFAULT random())", "DEFAULT RANDOM()"),
    ("CREATE TABLE x (‸a HUGEINT)", "type HUGEINT"),
    ("CREATE TABLE x (‸a UBIGINT)", "type UBIGINT"),
    ("CREATE TABLE x (‸a INTEGER[3])", "type INTEGER[3]"),
    ("CREATE TABLE x (‸a TIMETZ)", "type TIMETZ"),
]
WRONG_QUERIES = [
    ("SELECT id FROM ‸bidz", "there is no table or view bidz", "did you mean bids?"),
    ("SELECT ‸prise FROM bids", "there is no column prise", "did you mean price?"),
    ("SELECT ‸b.price FROM bids a", "there is no table b in this query", "the tables here are: a"),
    ("SELECT ‸z.* FROM bids", "there is no table z in this query", "the tables here are: bids"),
    ("SELECT ‸price FROM bids, asks", "column price is ambiguous", "write bids.price or asks.price"),
    ("SELECT 1 AS x FROM bids, ‸bids", "table name bids is used twice", "give each its own name"),
    ("SELECT id FROM bids WHERE ‸sum(price) > 3", "SUM cannot stand here", "HAVING"),
    ("SELECT sum(‸sum(price)) FROM bids", "SUM cannot stand here", "not inside one another"),
    ("SELECT id, ‸price, sum(t) FROM bids GROUP BY id", "neither grouped nor aggregated", "add bids.price to GROUP BY"),
    ("SELECT ‸id, sum(t) FROM bids", "neither grouped nor aggregated", "write GROUP BY bids.id"),
    ("SELECT id, sum(t) FROM bids GROUP BY id HAVING ‸d > '2020-01-01'", "neither grouped nor aggregated", "GROUP BY"),
    ("SELECT id, count(*) FROM bids GROUP BY ALL ORDER BY ‸price", "neither grouped nor aggregated", "GROUP BY"),
    ("SELECT id, sum(t) FROM bids GROUP BY ‸3", "there is no SELECT item 3", "from 1 to 2"),
    ("SELECT id FROM bids WHERE ‸'a' < 3", "cannot compare a VARCHAR with an INTEGER", "without quotes"),
    ("SELECT id FROM bids WHERE ‸id < 3 = f", "comparisons cannot be chained", "AND"),
    ("SELECT id FROM bids WHERE ‸f = id < 3", "comparisons cannot be chained", "parentheses"),
    ("SELECT ‸a.id, count(*) FROM bids b JOIN asks a USING (id) GROUP BY id", "neither grouped", "add a.id to"),
    ("SELECT id FROM bids WHERE ‸f < d", "cannot compare a BOOLEAN with a DATE", "dates with dates"),
    ("SELECT id FROM bids WHERE ‸d < 'yesterday'", "cannot compare a DATE with a VARCHAR", "write DATE '"),
    ("SELECT id FROM bids WHERE d < DATE ‸'1995-02-30'", "'1995-02-30' is not a date", "write DATE '"),
    ("SELECT id FROM bids WHERE d < TIMESTAMP ‸'noon'", "'noon' is not a timestamp", "write TIMESTAMP '"),
    ("SELECT d + INTERVAL ‸'1/2' DAY FROM bids", "INTERVAL '1/2' is not understood", "one number and one unit"),
    ("SELECT d + INTERVAL ‸'1/2 day' FROM bids", "INTERVAL '1/2 day' is not understood", "one number and one unit"),
    ("SELECT ‸id + INTERVAL '1' DAY FROM bids", "cannot add an INTERVAL to a BIGINT", "DATE"),
    ("SELECT ‸s + 1 FROM bids", "cannot compute a VARCHAR + an INTEGER", "take numbers"),
    ("SELECT ‸abs(s) FROM bids", "ABS takes a number, not a VARCHAR", "numeric"),
    ("SELECT ‸sum(s) FROM bids", "SUM takes a number, not a VARCHAR", "numeric"),
    ("SELECT id FROM bids WHERE ‸d", "a condition was expected here, not a DATE", "a comparison"),
    ("SELECT ‸d FROM bids UNION ALL SELECT id FROM asks", "DATE and BIGINT have no common type", "same type"),
    ("SELECT d + INTERVAL ‸'1 day and more' FROM bids", "INTERVAL '1 day and more' is not", "one number and one unit"),
    ("SELECT id + 1 AS a, ‸b AS c, 2 AS b FROM bids", "there is no column b", "the columns here are"),
    (
        "SELECT id FROM ‸and",
        "syntax error near 'and': a name was expected here, and and is a keyword",
        'quote it: "and"',
    ),
    ("SELECT ‸avg(f) FROM bids", "AVG takes a number, not a BOOLEAN", "CASE WHEN"),
    ("SELECT CASE WHEN ‸f THEN 1 ELSE 'x' END FROM bids", "INTEGER and VARCHAR have no common type", "same type"),
    ("SELECT id FROM bids UNION ALL SELECT ‸id, t FROM asks", "UNION ALL of 1 and 2 columns", "as many columns"),
    ("SELECT b.t FROM bids b JOIN asks a USING (‸s)", "there is no column s on the right side", "write ON"),
    ("SELECT (SELECT ‸sum(t), sum(id) FROM asks) FROM bids", "has one column, not 2", "select one"),
    ("SELECT id FROM bids WHERE ‸id IN (SELECT id, t FROM asks)", "a subquery with one column, not 2", "EXISTS"),
    ("SELECT m.p FROM (SELECT ‸id FROM bids) m(p, q)", "2 names for 1 column", "as many"),
    ("SELECT id + ‸FROM bids", "syntax error near 'FROM': something is missing", "before this place"),
    ("SELECT sum(‸) FROM bids", "syntax error near ')': something is missing", "before this place"),
    ("SELECT ‸*", "SELECT * without FROM", "none"),
    ("SELECT id FROM bids WHERE s = ‸'it", "never closed", "it''s"),
    ("SELECT id FROM bids WHERE (price > ‸3", "syntax error", "parentheses"),
    ("SELECT id FORM ‸bids WHERE price > 3", "syntax error", "spelling"),
]
WRONG_STATEMENTS = [
    ("CREATE TABLE ‸bids (a INTEGER)", "bids is defined twice", "another name"),
    ("CREATE MATERIALIZED VIEW ‸asks AS SELECT 1 AS a", "asks is defined twice", "another name"),
    ("CREATE MATERIALIZED VIEW ‸v (a, b) AS SELECT id FROM bids", "view v: 2 names for 1 column", "every column"),
    ("CREATE MATERIALIZED VIEW ‸v (a, a) AS SELECT id, t FROM bids", "view v: two columns are named a", "every column"),
    ("CREATE MATERIALIZED VIEW ‸v", "view v has no query", "AS SELECT"),
    ("CREATE TABLE x (a INTEGER, ‸a BIGINT)", "column a is defined twice", "rename"),
    ("CREATE TABLE x (‸a DECIMAL(50,2))", "DECIMAL(50,2) does not exist", "p <= 38"),
    ("CREATE STREAM x (‸a)", "column a has no type", "the types are"),
    ("CREATE TABLE ‸'my table' (a INTEGER)", "a name was expected here", "letters"),
    ("CREATE TABLE x (a INTEGER, PRIMARY KEY (‸b))", "there is no column b", "columns are: a"),
    ("CREATE TABLE x (a INTEGER PRIMARY KEY, PRIMARY KEY (‸a))", "there are two primary keys", "UNIQUE"),
    ("CREATE TABLE x (a INTEGER, PRIMARY KEY (‸a, a))", "column a is twice in one key", "once"),
    ("DROP TABLE ‸bid", "there is no stream, table or view bid", "did you mean bids?"),
    ("DROP VIEW ‸bids", "bids is a stream", "STREAM"),
    ("CREATE VIEW w AS SELECT 1 AS a; DROP MATERIALIZED VIEW ‸w", "w is a plain view", "MATERIALIZED"),
    ("CREATE VIEW w AS SELECT id FROM bids; DROP STREAM ‸bids", "bids cannot be dropped: w reads it", "drop w first"),
    ("CREATE VIEW w AS SELECT id FROM bids; CREATE OR REPLACE STREAM ‸bids (a INTEGER)", "be replaced: w", "drop w"),
    ("CREATE VIEW w AS SELECT id FROM bids; ALTER STREAM ‸bids RENAME TO b", "be renamed: w reads it", "drop w"),
    ("CREATE VIEW w AS SELECT 1 AS a; CREATE OR REPLACE TABLE ‸w (a INTEGER)", "w is a view", "VIEW"),
    ("ALTER TABLE ‸bids RENAME TO asks", "the name asks is taken", "another name"),
    ("ALTER TABLE ‸bids RENAME pric TO p", "there is no column pric in bids", "did you mean price?"),
    ("ALTER TABLE ‸bids RENAME price TO id", "there is a column id already", "another name"),
    ("ALTER TABLE bids RENAME price ‸p", "syntax error near 'p'", "RENAME TO"),
    ("CREATE VIEW w AS SELECT 1 AS a; INSERT INTO ‸w VALUES (1)", "w is a view", "tables"),
    ("DELETE FROM ‸bid", "there is no stream, table or view bid", "did you mean bids?"),
    ("DROP TABLE bids‸, asks", "syntax error", "one name at a time"),
    ("CREATE ‸TABLE", "a name was expected here", "letters"),
    ("CREATE STREAM ‸and (a INTEGER)", "a name was expected here, and and is a keyword", 'quote it: "and"'),
    ("CREATE STREAM function ‸(a INTEGER)", "syntax error near '(': something is missing", "a keyword in quotes"),
    ("CREATE STREAM x (map ‸INTEGER)", "syntax error near 'INTEGER': expecting (", "a keyword in quotes"),
    ("CREATE STREAM ‸x", "stream x has no columns", "list them"),
    ("CREATE STREAM ‸x ()", "stream x has no columns", "list them"),
    ("CREATE STREAM x (a INTEGER) WITH (rate = ‸'fast')", "rate must be a positive number", "rate = 100"),
    ("CREATE STREAM x (a INTEGER) WITH (rate = ‸-1)", "rate must be a positive number", "rate = 100"),
    ("CREATE STREAM x (a INTEGER) WITH (rows = ‸2.5)", "rows must be a whole number", "rows = 100"),
    ("CREATE STREAM x (a INTEGER) WITH (distinct_b = ‸2)", "there is no column b", "the columns are: a"),
    ("CREATE STREAM x (a INTEGER) WITH (hot_b = ‸0.2)", "there is no column b", "the columns are: a"),
    ("CREATE STREAM x (a INTEGER) WITH (hot_a = ‸1)", "hot_a must be below 1", "write hot_a = 0.1"),
    ("CREATE STREAM x (a INTEGER) WITH (rate = 1, ‸rate = 2)", "rate is given twice", "keep one"),
    ("CREATE STREAM x (a INTEGER) WITH (‸path)", "not name = value", "WITH (name = value"),
    ("CREATE STREAM x (a INTEGER) ‸WITH path = 'x'", "not complete", "WITH (name = value"),
]


def refused(statement: str) -> SqlError:
    """The error that a script with this statement last raises; it must point at the mark."""
    before, _, after = (SCHEMA + statement).partition("‸")
    with pytest.raises(SqlError) as caught:
        translate(f"{before}{after};")
    error = caught.value
    assert (error.line, error.column) == (before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
    assert error.hint
    assert error.source == f"{before}{after};"
    text, caret = str(error).splitlines()[1:3]
    assert text.strip()
    assert error.column is not None
    if len(after.partition("\n")[0]) + error.column < 240:
        assert caret.index("^") == error.column + 1  # two blanks, then columns from 1
    else:
        assert text[caret.index("^") :].startswith(after[:20])
    return error


def in_view(query: str) -> str:
    return f"CREATE MATERIALIZED VIEW v AS\n{query}"


@pytest.mark.parametrize(
    ("statement", "construct"), [(in_view(q), c) for q, c in UNSUPPORTED_QUERIES] + UNSUPPORTED_STATEMENTS
)
def test_unsupported(statement: str, construct: str) -> None:
    error = refused(statement)
    assert isinstance(error, UnsupportedError)
    assert error.construct == construct
    assert f"{construct} is not supported" in str(error)


@pytest.mark.parametrize(
    ("statement", "message", "hint"), [(in_view(q), m, h) for q, m, h in WRONG_QUERIES] + WRONG_STATEMENTS
)
def test_wrong(statement: str, message: str, hint: str) -> None:
    error = refused(statement)
    assert not isinstance(error, UnsupportedError)
    assert message in error.message
    assert hint in error.hint


NINES = "9" * 5000
MANY = f"{'9' * 40}…"
BEYOND = {
    f"‸{NINES}": f"the number {MANY}, which fits no BIGINT, DECIMAL or DOUBLE, is not supported",
    f"‸0.{NINES}": f"the number 0.{MANY[2:]}, which fits no BIGINT, DECIMAL or DOUBLE, is not supported",
    f"‸1e{NINES}": f"the number 1e{MANY[2:]}, which fits no BIGINT, DECIMAL or DOUBLE, is not supported",
    "‸1e": "1e is not a number",
    f"d + INTERVAL ‸'{NINES}' DAY": "an INTERVAL this long is not supported",
    f"‸d + INTERVAL '{NINES} days'": "an INTERVAL this long is not supported",
    "‸d + INTERVAL 1e300 DAY": "an INTERVAL this long is not supported",
    "‸d + INTERVAL '3652059' DAY": "a shift beyond the years 1 to 9999 is not supported",
    "‸d - INTERVAL '9999' YEAR": "a shift beyond the years 1 to 9999 is not supported",
    "‸d + 3652059": "a shift beyond the years 1 to 9999 is not supported",
}


@pytest.mark.parametrize(("expression", "message"), BEYOND.items(), ids=[m[:30] for m in BEYOND.values()])
def test_what_no_row_could_compute_is_an_error_of_the_script(expression: str, message: str) -> None:
    statement = in_view(f"SELECT {expression} AS x FROM bids")
    error = refused(statement)
    assert error.message == message
    assert max(map(len, str(error).splitlines())) < 300
    script = SCHEMA + statement.replace("‸", "")
    with pytest.raises(SqlError) as caught:
        viewlet.connect(engine="python").execute(script)
    assert str(caught.value) == str(error).replace(";", "")
    assert [f.message for f in viewlet.check(script)[0].findings] == [message]


def test_the_longest_shifts_are_taken() -> None:
    """From the first day to the last."""
    db = viewlet.connect(engine="python")
    shifts = "d + 3652058 AS a, d + INTERVAL '3652058' DAY AS b, d + INTERVAL '119986' MONTH AS c"
    db.execute(f"CREATE STREAM r (d DATE); CREATE MATERIALIZED VIEW v AS SELECT {shifts} FROM r;")
    db.insert("r", [("0001-01-01",)])
    assert [str(x) for x in db.view("v").rows()[0]] == ["9999-12-31", "9999-12-31 00:00:00", "9999-11-01 00:00:00"]


@pytest.mark.parametrize("value", [NINES, "1e99999999", "0", "1e"])
def test_an_option_is_a_number_that_can_be_had(value: str) -> None:
    error = refused(f"CREATE STREAM x (a INTEGER) WITH (rate = ‸{value})")
    assert error.message == "option rate must be a positive number"


@pytest.mark.parametrize(
    "query", ["SELECT id FROM bids WHERE s = '\udc80'", 'SELECT id AS "\udc80" FROM bids', "-- \udc80\nSELECT 1 AS a"]
)
def test_half_a_character_is_an_error_of_the_script(query: str) -> None:
    script = SCHEMA + in_view(query)
    for entry in (viewlet.compile, viewlet.check, viewlet.connect().execute):
        with pytest.raises(SqlError, match=r"line \d, column \d+: '\\udc80' is half of a character") as caught:
            entry(script)
        assert "\ufffd" in str(caught.value).encode().decode()
    assert (caught.value.line, caught.value.column) == (
        script[: script.index("\udc80")].count("\n") + 1,
        script.index("\udc80") - script.rindex("\n", 0, script.index("\udc80")),
    )


def test_the_error_shows_the_line_under_a_caret() -> None:
    with pytest.raises(SqlError) as caught:
        translate("CREATE STREAM r (a INTEGER);\nCREATE MATERIALIZED VIEW v AS\n  SELECT sum(r.b) FROM r;")
    assert str(caught.value) == "\n".join(
        (
            "line 3, column 14: there is no column r.b",
            "    SELECT sum(r.b) FROM r;",
            "               ^",
            "hint: the columns here are: a",
        )
    )


DEEP = {
    "parentheses": "(" * 5000 + "id" + ")" * 5000,
    "a long sum": " + ".join(["id"] * 5000),
    "nested calls": "abs(" * 5000 + "id" + ")" * 5000,
}


@pytest.mark.parametrize("expression", DEEP.values(), ids=DEEP.keys())
def test_nested_too_deeply(expression: str) -> None:
    error = refused("‸" + in_view(f"SELECT {expression} AS x FROM bids"))
    assert error.message == "an expression nested too deeply"


def test_a_long_chain_that_only_the_compiler_finds_too_deep() -> None:
    chain = " OR ".join(f"id = {i}" for i in range(300))
    with pytest.raises(SqlError, match="an expression nested too deeply"):
        viewlet.compile(SCHEMA + in_view(f"SELECT id FROM bids WHERE {chain}"))


@pytest.mark.parametrize("script", [None, b"CREATE STREAM r (a INTEGER)", 3])
def test_a_script_is_text(script: Any) -> None:
    for entry in (viewlet.compile, viewlet.check, viewlet.connect().execute):
        with pytest.raises(viewlet.Error, match="a script is a str, not"):
            entry(script)


def test_a_byte_order_mark_is_no_part_of_the_script() -> None:
    assert [r.name for r in translate("\ufeffCREATE STREAM r (a INTEGER)").relations] == ["r"]
    with pytest.raises(SqlError) as caught:
        translate("\ufeffCREATE SINK r")
    assert caught.value.column == len("CREATE ") + 1
