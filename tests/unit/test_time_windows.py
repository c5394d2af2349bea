"""TUMBLE, HOP and SESSION: what is wrong with a window is told where it stands."""

from __future__ import annotations

import pytest

import viewlet

STREAM = "CREATE STREAM r (a INTEGER, t TIMESTAMP);\nCREATE MATERIALIZED VIEW v AS\n"


@pytest.mark.parametrize(
    ("select", "column", "message"),
    [
        ("SELECT a FROM SESSION(r, t)", 15, "SESSION has other arguments"),
        ("SELECT a FROM SESSION(r PARTITION BY a, t, INTERVAL '5' MINUTE)", 25, "this SESSION has other arguments"),
        ("SELECT * FROM SESSION(r, t, INTERVAL '5' MINUTE)", 15, "* where a group is not one session of SESSION"),
        ("SELECT window_end FROM SESSION(r, t, INTERVAL '5' MINUTE)", 8, "window_end where a group is not one session"),
        ("SELECT a FROM r GROUP BY a, SESSION(t)", 29, "SESSION has other arguments"),
        ("SELECT a FROM r GROUP BY a, SESSION(t, INTERVAL '5' MONTH)", 49, "a gap of months, or of no length"),
        (
            "SELECT a FROM r GROUP BY a, SESSION(a, INTERVAL '5' DAY)",
            37,
            "the time of a session is a TIMESTAMP, not an",
        ),
        ("SELECT a FROM r GROUP BY a, session_window(t, 'soon')", 47, "INTERVAL 'soon' is not understood"),
        ("SELECT a FROM r GROUP BY a, session_window(t, a)", 47, "a gap that is no constant INTERVAL"),
        ("SELECT session_window FROM r GROUP BY session_window(t, '1 day')", 8, "a session window as a value"),
        ("SELECT SESSION_END(t, INTERVAL '1' DAY) FROM r", 8, "SESSION_END without one in GROUP BY"),
        (
            "SELECT SESSION_START(t, INTERVAL '2' DAY) FROM r GROUP BY SESSION(t, INTERVAL '1' DAY)",
            8,
            "SESSION_START is of another session window than GROUP BY has",
        ),
        (
            "SELECT a FROM r GROUP BY a, t, SESSION(t, INTERVAL '1' DAY)",
            29,
            "by a computed column, or by its time alone",
        ),
        ("SELECT 1 AS o FROM r GROUP BY a % 2, SESSION(t, INTERVAL '1' DAY)", 31, "a session by a computed column"),
        ("SELECT a FROM r GROUP BY ROLLUP (a, SESSION(t, INTERVAL '1' DAY))", 37, "among grouping sets"),
        ("SELECT r.a FROM r, r q GROUP BY r.a, SESSION(q.t, INTERVAL '1' DAY)", 46, "rows that are joined or computed"),
        (
            "SELECT count(DISTINCT a) AS n FROM r GROUP BY SESSION(t, INTERVAL '1' DAY)",
            None,
            "a session window below the top of a view",
        ),
        ("SELECT a FROM TUMBLE(r, t)", 15, "TUMBLE has other arguments"),
        ("SELECT a FROM TUMBLE(r, 'x', INTERVAL '5' MINUTE)", 15, "TUMBLE has other arguments"),
        ("SELECT a FROM TUMBLE(r, t, 5)", 28, "the length of a window is an INTERVAL"),
        ("SELECT a FROM TUMBLE(r, t, INTERVAL '1' MONTH)", 37, "a window of months, or of no length"),
        ("SELECT a FROM TUMBLE(r, t, INTERVAL '0' DAY)", 37, "a window of months, or of no length"),
        ("SELECT a FROM HOP(r, t, INTERVAL '2' SECOND, INTERVAL '5' SECOND)", 15, "no multiple of its step"),
        ("SELECT a FROM HOP(r, t, INTERVAL '1' SECOND, INTERVAL '5' MINUTE)", 15, "more than 64 windows"),
        ("SELECT a FROM TUMBLE(r, u, INTERVAL '1' DAY)", None, "there is no column u"),
        ("SELECT a FROM TUMBLE(q, t, INTERVAL '1' DAY)", None, "there is no table or view q"),
    ],
)
def test_what_is_no_window(select: str, column: int | None, message: str) -> None:
    with pytest.raises(viewlet.SqlError) as caught:
        viewlet.compile(STREAM + select)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (3, column) or column is None


def test_a_window_has_the_columns_of_its_table_and_two_more() -> None:
    program = viewlet.compile(
        STREAM + "SELECT * FROM HOP(r, t, INTERVAL '1' SECOND, INTERVAL '2' SECOND) w WHERE w.a > 1"
    )
    assert [c.name for c in program.result("v").columns] == ["a", "t", "window_start", "window_end"]
