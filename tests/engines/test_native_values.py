"""The native engine on every kind of value, against DuckDB: NULLs, texts, dates, quotients, names like C++'s own."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.engines.conformance import Case, agree
from tests.engines.conformance import opened_natively as native
from viewlet import OverflowError_
from viewlet.engines.native.emit import program as emit
from viewlet.engines.native.emit.identifiers import identifier

INF = math.inf
NATIVE = (("native", "optimized"),)

VALUES_SCHEMA = """
CREATE STREAM r (k BIGINT, p DECIMAL(10,2), s VARCHAR, f BOOLEAN, d DATE, t TIMESTAMP, x DOUBLE);
CREATE STREAM q (k BIGINT, s VARCHAR, d DATE NOT NULL, n BIGINT NOT NULL);
CREATE STREAM pair (x BIGINT, y BIGINT);
"""
VALUES_SELECTS = {
    "by_key": "SELECT k, s, f, count(*) AS n, count(p) AS m, sum(p) AS p FROM r GROUP BY k, s, f",
    "joined": "SELECT r.s, q.k, sum(r.p * q.n) AS v, count(*) AS n FROM r, q WHERE r.k = q.k GROUP BY r.s, q.k",
    "by_text": "SELECT r.s, count(*) AS n FROM r, q WHERE r.s = q.s AND r.s > '' GROUP BY r.s",
    "tests": """SELECT count(*) AS n FROM r
        WHERE (p < k OR s IS NULL) AND NOT (f AND k = 1) OR k IN (2, NULL) OR s BETWEEN 'a' AND 'é'""",
    "quotients": "SELECT k, sum(p / k) AS a, sum(x / (k - 1)) AS b, avg(p) AS c FROM r GROUP BY k",
    "days": """SELECT r.d, r.d + 3 AS later, r.d - q.d AS days, count(*) AS n FROM r, q
        WHERE r.d >= q.d AND r.d < q.d + INTERVAL '1' MONTH GROUP BY r.d, r.d + 3, r.d - q.d""",
    "times": "SELECT t, count(*) AS n FROM r WHERE t > TIMESTAMP '2020-01-01 00:00:00.5' OR t IS NULL GROUP BY t",
    "itself": "SELECT count(*) AS n, sum(x) AS s FROM pair WHERE x = y",
    "rows": "SELECT s, f, p FROM r WHERE k > 0",
    "distinct_rows": "SELECT DISTINCT s, d FROM r",
    "without": "SELECT r.k, r.s FROM r WHERE NOT EXISTS (SELECT * FROM q WHERE q.k = r.k AND q.n > 1)",
    "having_few": "SELECT s, sum(p) AS p FROM r GROUP BY s HAVING count(*) > 1 AND sum(p) IS NOT NULL",
    "one_row": "SELECT count(*) AS n, sum(p) AS p, avg(k) AS k, count(DISTINCT s) AS s FROM r",
}
CHOICES = {
    "choices": """SELECT f, sum(CASE WHEN p > 1 THEN k WHEN s IS NULL THEN 7 ELSE -1 END) AS a,
        sum(COALESCE(p, k, 3)) AS b, sum(NULLIF(k, 2)) AS c, count(CASE WHEN f THEN s END) AS d FROM r GROUP BY f""",
}
CHAIN = {
    "chain": "SELECT a.x, count(*) AS n FROM pair a, pair b WHERE a.y = b.x AND b.y = a.x GROUP BY a.x",
}
TEXTS = (None, "", "a", "é", "b\0c", "b\0", "x" * 300, "日本語 \U0001f600", "a ")
DAYS = (dt.date(2020, 1, 31), dt.date(2020, 2, 29), dt.date(2020, 1, 30), dt.date(1969, 12, 31))
TIMES = (dt.datetime(2020, 1, 1, 0, 0, 0, 500_000), dt.datetime(1950, 6, 1), dt.datetime(2020, 1, 1, 0, 0, 0, 500_001))


def value_events(seed: int, events: int) -> list[tuple[str, str, tuple[object, ...]]]:
    """NULL in every place that takes it; few keys, so that they meet."""
    rng, live, stream = Random(seed), list[tuple[str, tuple[object, ...]]](), []

    def pick(*options: object) -> Any:
        return rng.choice(options)

    make: dict[str, Callable[[], tuple[object, ...]]] = {
        "r": lambda: (
            pick(None, 0, 1, 2, -1), pick(None, Decimal("1.50"), Decimal("-0.25"), Decimal("99999999.99")),
            pick(*TEXTS), pick(None, True, False), pick(None, *DAYS), pick(None, *TIMES), pick(None, 0.5, -2.0),
        ),
        "q": lambda: (pick(None, 0, 1, 2), pick(*TEXTS), pick(*DAYS), pick(0, 1, 2)),
        "pair": lambda: (pick(None, 1, 2, 3), pick(None, 1, 2, 3)),
    }  # fmt: skip
    for _ in range(events):
        if live and rng.random() < len(live) / 45:
            stream.append(("-", *live.pop(rng.randrange(len(live)))))
        else:
            name = pick(*make)
            live.append((name, make[name]()))
            stream.append(("+", *live[-1]))
    return stream


def agrees(selects: dict[str, str], events: int) -> None:
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in selects.items())
    for watch in agree(Case(VALUES_SCHEMA, views, selects, value_events(3, events)), NATIVE).values():
        watch.check()


def test_every_kind_of_value_in_every_place() -> None:
    agrees(VALUES_SELECTS, 130)


def test_choices_between_numbers_of_two_widths() -> None:
    agrees(CHOICES, 60)


def test_a_name_that_a_union_binds_twice() -> None:
    agrees(CHAIN, 220)


def test_texts_that_come_and_go_take_no_memory() -> None:
    db = native("""
        CREATE STREAM r (s VARCHAR, u VARCHAR NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n FROM r GROUP BY s;
        CREATE MATERIALIZED VIEW w AS SELECT DISTINCT u FROM r WHERE u <> 'none';
    """)

    def taken() -> int:
        return sum(bytes_ for _, _, bytes_ in db.engine.memory())  # type: ignore[attr-defined]

    db.insert("r", ("kept", "kept"))
    after_first = 0
    for turn in range(12):
        rows = [(f"text {turn} {i}", f"{i} other {turn} " * 4) for i in range(3000)]
        db.insert("r", rows)
        assert len(db.view("v").rows()) == 3001
        db.apply([("-", "r", row) for row in rows])
        if turn == 1:
            after_first = taken()
    assert taken() <= after_first
    assert (db.view("v").rows(), db.view("w").rows()) == ([("kept", 1)], [("kept",)])


def test_texts_that_only_the_query_names_are_kept() -> None:
    """No row holds 'other': it must not be forgotten with the rows, nor its place be given to the next text."""
    db = native("""
        CREATE STREAM r (s VARCHAR NOT NULL);
        CREATE TABLE u (k BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT s AS c, 1 AS n FROM r UNION ALL SELECT 'other' AS c, count(*) AS n FROM u;
    """)
    db.insert("u", [(1,), (2,)])
    db.insert("r", ("first",))
    db.delete("r", ("first",))
    db.insert("r", ("next",))
    assert sorted(db.view("v").rows()) == [("next", 1), ("other", 2)]


def test_texts_that_a_view_cache_was_asked_for_are_kept() -> None:
    """Else 'z' would take the place of 'a', and find in the cache how many texts come after 'a'."""
    db = native(
        """
        CREATE STREAM r (s VARCHAR NOT NULL);
        CREATE STREAM q (t VARCHAR NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM r, q WHERE r.s < q.t;
        """,
        strategy="naive",
    )
    assert any(view.is_cache for view in db.program.views)
    db.insert("q", ("m",))
    db.insert("r", ("a",))
    assert db.view("v").rows() == [(1,)]
    db.delete("r", ("a",))
    db.insert("r", ("z",))
    assert db.view("v").rows() == [(0,)]


# -- infinities --------------------------------------------------------------------------------------------------------


def test_an_infinity_counts_as_often_as_its_row() -> None:
    """It goes with the same number of copies with which it came, also where a sign tells inserts from deletes."""
    db = native("""
        CREATE STREAM r (k BIGINT NOT NULL, x DOUBLE NOT NULL);
        CREATE STREAM s (k BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT r.k, sum(r.x) AS z FROM r, s WHERE r.k = s.k GROUP BY r.k;
    """)
    db.insert("s", [(1,), (1,)])
    db.insert("r", [(1, 0.5), (1, INF), (1, -INF)])
    assert math.isnan(db.view("v").rows()[0][1])
    db.delete("r", (1, -INF))
    assert db.view("v").rows() == [(1, INF)]
    db.delete("s", [(1,), (1,)])
    assert db.view("v").rows() == []
    db.insert("s", [(1,), (1,)])
    assert db.view("v").rows() == [(1, INF)]
    db.delete("r", (1, INF))
    assert db.view("v").rows() == [(1, 1.0)]


def test_an_infinity_without_a_partner_is_no_row() -> None:
    db = native("""
        CREATE STREAM r (x DOUBLE NOT NULL);
        CREATE STREAM s (k BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT sum(r.x) AS z FROM r, s;
    """)
    db.insert("r", [(0.5,), (INF,)])
    assert db.view("v").rows() == [(None,)]
    db.insert("s", [(1,), (1,)])
    assert db.view("v").rows() == [(INF,)]
    db.delete("r", (INF,))
    assert db.view("v").rows() == [(1.0,)]


def test_an_integer_column_times_an_infinity() -> None:
    """The column is no number of copies: -3 · ∞ is -∞ once, and 0 · ∞ is NaN."""
    db = native("""
        CREATE STREAM r (n BIGINT NOT NULL, x DOUBLE NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT sum(n * x) AS z FROM r;
    """)
    seen = []
    for op, row in (
        ("+", (2, 0.5)), ("+", (-3, INF)), ("+", (2, INF)), ("-", (-3, INF)), ("+", (0, INF)), ("-", (2, INF)),
        ("-", (0, INF)),
    ):  # fmt: skip
        db.apply([(op, "r", row)])
        seen.append(str(db.view("v").rows()[0][0]))
    assert seen == ["1.0", "-inf", "nan", "inf", "nan", "nan", "1.0"]


def test_a_refused_batch_takes_its_infinities_back_and_leaves_the_others() -> None:
    db = native("""
        CREATE STREAM r (k BIGINT NOT NULL, b BIGINT NOT NULL, x DOUBLE NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT k, sum(b) AS b, sum(x) AS x FROM r GROUP BY k;
    """)
    rows = [(1, 5, 0.5), (3, 0, INF), (3, 1, 1.5)]
    db.insert("r", rows)
    for batch in ([(1, 1, INF), (1, 2**63 - 1, 1.0)], [(2, 2**63 - 1, -INF), (3, 1, -INF), (2, 1, math.nan)]):
        with pytest.raises(OverflowError_):
            db.insert("r", batch)
        assert sorted(db.view("v").rows()) == [(1, 5, 0.5), (3, 1, INF)]
        assert db.engine.table("r") == dict.fromkeys(rows, 1)
    db.delete("r", (3, 0, INF))
    db.insert("r", [(1, 1, 0.25), (2, 1, 2.0)])
    assert sorted(db.view("v").rows()) == [(1, 6, 0.75), (2, 1, 2.0), (3, 1, 1.5)]


def test_a_refused_batch_where_only_the_order_kept_a_sum_beside_an_infinity_inside() -> None:
    """The rows as the table holds them pass through an overflow: they are put back exactly, the infinity last."""
    db = native("""
        CREATE STREAM r (b BIGINT NOT NULL, x DOUBLE NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT sum(b) AS b, sum(x) AS x, count(*) AS n FROM r;
    """)
    high = 2**63 - 1
    for op, row in (("+", (0, 0.0)), ("+", (high, 0.5)), ("+", (-high, 1.0)), ("-", (0, 0.0)), ("+", (high, INF))):
        db.apply([(op, "r", row)])
    assert list(db.engine.table("r")) != [(high, 0.5), (-high, 1.0), (high, INF)]
    with pytest.raises(OverflowError_):
        db.insert("r", [(0, -INF), (1, 1.0)])
    assert db.view("v").rows() == [(high, INF, 3)]
    db.delete("r", (high, INF))
    assert db.view("v").rows() == [(0, 1.5, 2)]


# -- keys of two scales ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "scale"), [(10, 2), (38, 25)])
def test_integers_that_a_decimal_key_cannot_hold(precision: int, scale: int) -> None:
    """10¹⁷ in hundredths is no 64-bit number, and 10²⁵, by which 2 becomes a DECIMAL(38,25), no literal of C++.

    ``w`` looks the key up twice, for a sum and its count: it is not made before the tests that it can be made.
    """
    db = native(f"""
        CREATE STREAM r (k BIGINT NOT NULL);
        CREATE STREAM s (p DECIMAL({precision},{scale}) NOT NULL, y BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT r.k, count(*) AS n FROM r, s WHERE r.k = s.p GROUP BY r.k;
        CREATE MATERIALIZED VIEW w AS
          SELECT r.k, count(*) AS n FROM r WHERE 3 < (SELECT sum(s.y) FROM s WHERE s.p = r.k) GROUP BY r.k;
    """)
    db.insert("s", [(Decimal("1.5"), 4), (Decimal(2), 3)])
    for k in (2, 10**17, -(10**17), 2**63 - 1, -(2**63)):
        db.insert("r", (k,))
    assert (db.view("v").rows(), db.view("w").rows()) == ([(2, 1)], [])
    db.insert("s", [(Decimal(2), 1), (Decimal("-0.5"), 2)])
    assert (db.view("v").rows(), db.view("w").rows()) == ([(2, 2)], [(2, 1)])


# -- names -------------------------------------------------------------------------------------------------------------


def test_names_that_mean_something_to_cpp() -> None:
    columns = ("int", "class", "event", "sign", "faults", "hash", "entry", "known", "program", "out", "e", "c", "h")
    declared = ", ".join(f'"{name}" BIGINT' for name in columns)
    sums = ", ".join(f'sum("{a}" * "{b}") AS "{b}"' for a, b in pairwise(columns))
    db = native(f"""
        CREATE STREAM "struct" ({declared});
        CREATE MATERIALIZED VIEW "template" AS SELECT "int", {sums} FROM "struct" GROUP BY "int";
        CREATE MATERIALIZED VIEW texts AS SELECT count(*) AS "auto" FROM "struct" WHERE "class" <> "int";
        CREATE MATERIALIZED VIEW faults AS SELECT DISTINCT "void"."int" FROM "struct" "void";
    """)
    row = tuple(range(1, len(columns) + 1))
    db.insert("struct", row)
    assert db.view("template").rows() == [(1, *(i * (i + 1) for i in row[:-1]))]
    assert (db.view("texts").rows(), db.view("faults").rows()) == ([(1,)], [(1,)])


CPP_WORDS = """
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch
    char char8_t char16_t char32_t class compl concept const consteval constexpr constinit const_cast continue
    contract_assert co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
    or_eq private protected public reflexpr register reinterpret_cast requires return short signed sizeof static
    static_assert static_cast struct switch synchronized template this thread_local throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor xor_eq final override import module linux unix
"""
RUNTIME = Path(emit.__file__).parent / "runtime"
AT_ONCE = 40  # columns


def words() -> list[str]:
    """All that means something to C++ or to the runtime's headers."""
    text = CPP_WORDS + "".join(path.read_text() for path in RUNTIME.glob("*.hpp"))
    return sorted({word.lower() for word in re.findall(r"[A-Za-z_]\w*", text) if word.isascii()})


def test_no_name_matters_to_cpp() -> None:
    """Every word as a column and a variable, some also as a stream and a view; one program for all of them."""
    names, some = words(), ("concept", "other", "product", "doubt", "are")
    every = [names[i : i + AT_ONCE] for i in range(0, len(names), AT_ONCE)]
    script = ""
    for i, part in enumerate(every):
        columns = ", ".join(f'"{word}" INTEGER' for word in part)
        computed = ", ".join(f'"{word}" + 1 AS "{word}"' for word in part)
        script += f"CREATE STREAM s{i} ({columns}); CREATE MATERIALIZED VIEW v{i} AS SELECT {computed} FROM s{i};\n"
    script += "".join(
        f'CREATE STREAM "{word}" ("{word}" BIGINT, b BIGINT NOT NULL);\n'
        f'CREATE MATERIALIZED VIEW "note_{word}" AS SELECT x."{word}", sum(x.b) AS s, max(y.b) AS m '
        f'FROM "{word}" x, "{word}" y WHERE x."{word}" = y."{word}" AND x.b < y.b GROUP BY x."{word}";\n'
        for word in some
    )
    db = native(script)
    for i, part in enumerate(every):
        db.insert(f"s{i}", tuple(range(len(part))))
        assert db.view(f"v{i}").rows() == [tuple(range(1, len(part) + 1))]
    for word in some:
        db.insert(word, [(1, 2), (1, 3), (None, 4)])
        assert db.view(f"note_{word}").rows() == [(1, 2, 3)]


def test_what_comes_from_a_user_is_told_apart_by_its_end() -> None:
    ends = [word for word in words() if word.endswith("_") and not word.startswith("__")]
    assert set(ends) <= {"key_", "values_", "pyinit_"}, "template parameters and a macro, which no generated code names"
    assert all(identifier(word).endswith("_") for word in words())


@pytest.mark.parametrize("name", ["i64", "table_r", "insert_r"])
def test_views_named_like_parts_of_the_program(name: str) -> None:
    native(f"CREATE STREAM r (a BIGINT); CREATE MATERIALIZED VIEW {name} AS SELECT a, count(*) AS n FROM r GROUP BY a;")


def test_views_named_like_variables_of_the_program() -> None:
    declared = "".join(
        f"CREATE MATERIALIZED VIEW {name} AS SELECT r.a, q.a + {i} AS b FROM r, (SELECT count(*) AS a FROM r) q;\n"
        for i, name in enumerate(("e", "c", "h", "x", "event", "u32", "entry", "known", "held"))
    )
    db = native(f"CREATE STREAM r (a BIGINT); {declared}", strategy="reevaluate")
    db.insert("r", [(1,), (2,)])
    assert sorted(db.view("h").rows()) == [(1, 4), (2, 4)]
