"""now(): views that move with the clock equal DuckDB's after every event and every tick, on every engine."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from random import Random

import pytest

import viewlet
from tests.engines.conformance import ENGINES, STRATEGIES, compiled_once
from tests.oracle.oracle import DuckOracle, Row, Vacuity, difference
from viewlet.database.memory import Database, EngineName
from viewlet.jobs.kept import KeptRun
from viewlet.jobs.run import LocalRun, Options, wrong_views
from viewlet.loops.cost_class import statement_access
from viewlet.schema import CLOCK

NOON = dt.datetime(2026, 3, 29, 12)
SCHEMA = """
CREATE STREAM trades (k INTEGER, t TIMESTAMP, v BIGINT NOT NULL);
CREATE STREAM quotes (k INTEGER, day DATE, p DECIMAL(8, 2));
"""
SELECTS = {
    "recent": "SELECT k, sum(v) AS s, count(*) AS n FROM trades WHERE t > now() - INTERVAL '5 minutes' GROUP BY k",
    "total": "SELECT sum(v) AS s, max(v) AS most FROM trades WHERE t BETWEEN now() - INTERVAL 1 HOUR AND now()",
    "shown": "SELECT k, v, current_date AS today FROM trades WHERE t > current_timestamp",
    "of_today": "SELECT q.k, count(*) AS n FROM quotes q JOIN trades b ON q.k = b.k "
    "WHERE q.day = current_date GROUP BY q.k",
    "lately": "SELECT count(*) AS n FROM quotes q WHERE EXISTS "
    "(SELECT 1 FROM trades b WHERE b.k = q.k AND b.t > localtimestamp - INTERVAL '2 hours')",
    "old": "SELECT k, min(date_diff('minute', t, now()::TIMESTAMP)) AS age FROM trades GROUP BY k",
    "both": "SELECT count(*) AS n FROM trades a, trades b "
    "WHERE a.k = b.k AND a.t < b.t AND b.t > now() - INTERVAL 1 DAY",
}
VIEWS = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in SELECTS.items())
CLOCKS = ("now()::TIMESTAMP", "now()", "current_timestamp", "localtimestamp", "current_date")


def as_of(select: str, moment: dt.datetime) -> str:
    """The referee has a clock of its own, which nobody can set: it reads the moment as a constant."""
    for clock in CLOCKS:
        select = select.replace(
            clock, f"DATE '{moment.date()}'" if clock == "current_date" else f"TIMESTAMP '{moment}'"
        )
    return select


def a_row(rng: Random, moment: dt.datetime) -> tuple[str, Row]:
    k = rng.choice([None, 0, 1, 2])
    if rng.random() < 0.3:
        return "quotes", (k, moment.date() + dt.timedelta(days=rng.randint(-1, 1)), None)
    away = dt.timedelta(seconds=rng.choice([0, 1, 299, 300, 301, rng.randint(-7_200, 7_200)]))
    return "trades", (k, rng.choice([moment - away, moment - away, None]), rng.randint(-5, 5))


def follow(databases: list[Database], seed: int, events: int) -> dict[str, Vacuity]:
    rng, moment, there = Random(seed), NOON, list[tuple[str, Row]]()
    oracle = DuckOracle(viewlet.compile(SCHEMA).relations)
    watch = {view: Vacuity() for view in SELECTS}
    for number in range(events):
        choice = rng.random()
        if choice < 0.3:
            moment += dt.timedelta(seconds=rng.choice([43_200] + 5 * [0, 1, 10, 30, 60, -60]))
            for database in databases:
                database.tick(moment)
        else:
            op = "-" if there and choice < 0.4 else "+"
            relation, row = there.pop(rng.randrange(len(there))) if op == "-" else a_row(rng, moment)
            there += [(relation, row)] if op == "+" else []
            oracle.apply(op, relation, row)
            for database in databases:
                database.apply([(op, relation, row)])
        for view, select in SELECTS.items():
            expected = oracle.rows(as_of(select, moment))
            watch[view].watch(expected)
            for database in databases:
                wrong = difference(database.view(view).rows(), expected)
                assert wrong is None, f"{view} by {database.tier} after step {number}: {wrong}"
    return watch


def opened(engine: str, strategy: str = "optimized") -> Database:
    database = viewlet.connect(engine=engine, strategy=strategy, wait_native=True)  # type: ignore[arg-type]
    database.tick(NOON)
    with compiled_once():
        database.execute(SCHEMA + VIEWS)
    assert database.tier == engine
    return database


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_views_move_with_the_clock(strategy: str, soaking: bool) -> None:
    engines = ENGINES if soaking or strategy == "optimized" else ("python",)
    databases = [opened(engine, strategy) for engine in engines]
    for watch in follow(databases, seed=STRATEGIES.index(strategy), events=400 if soaking else 90).values():
        watch.check()


def test_a_random_clock(seeded: int) -> None:
    follow([opened("python")], seed=100 + seeded, events=60)


def test_what_ticks_cost_is_told() -> None:
    checks = {check.view: check for check in viewlet.check(SCHEMA + VIEWS)}
    assert (checks["recent"].cost_class, checks["recent"].tick_class) == ("O(1)", "O(matches)")  # rows that expire
    assert (checks["total"].cost_class, checks["total"].tick_class) == (
        "O(log n)",
        "O(matches log n)",
    )  # MAX
    assert checks["both"].tick_class == "O(log n)"
    plain = viewlet.check("CREATE STREAM r (a INTEGER); CREATE MATERIALIZED VIEW v AS SELECT a FROM r")
    assert plain[0].tick_class is None


def test_rows_between_two_moments_are_found_in_order() -> None:
    """Neither groups nor rows that stay are looked at when the clock moves."""
    program = viewlet.compile(SCHEMA + f"CREATE MATERIALIZED VIEW recent AS {SELECTS['recent']};")
    ticks = [t for t in program.triggers if t.event.relation == CLOCK.name]
    paths = [path for t in ticks for s in t.statements for _, path in statement_access(s, t.event, program).paths]
    assert "range" in paths
    assert set(paths) <= {"range", "lookup", "batch"}


def test_subscribers_hear_of_rows_that_expire() -> None:
    with opened("native") as database:
        database.insert("trades", [(1, NOON, 5), (2, NOON + dt.timedelta(minutes=1), 7)])
        told: list[tuple[int, Row]] = []
        database.view("recent").subscribe(told.append)
        database.tick(NOON + dt.timedelta(minutes=5))
        assert told == [(-1, (1, 5, 1))]
        assert not any(database.verify(view) for view in SELECTS)


def test_a_directory_knows_the_time(tmp_path: Path) -> None:
    later = NOON + dt.timedelta(minutes=3)
    with viewlet.connect(tmp_path / "db", engine="python") as database:
        database.execute(SCHEMA + VIEWS)
        database.insert("trades", [(1, NOON, 5), (2, later, 7)])
        for moment in (NOON, later, NOON + dt.timedelta(minutes=6)):
            database.tick(moment)
        shown = database.view("recent").rows()
        assert shown == [(2, 7, 1)]
    with viewlet.connect(tmp_path / "db", engine="python") as database:
        assert database.view("recent").rows() == shown
        assert len(database.engine.table("now()")) == 1
        database.checkpoint()
    with viewlet.connect(tmp_path / "db", engine="python") as database:
        assert database.view("recent").rows() == shown


def test_a_clock_that_nobody_set_shows_the_time_of_the_definition() -> None:
    database = viewlet.connect(engine="python")
    before = dt.datetime.now(dt.timezone.utc)
    database.execute(SCHEMA + "CREATE MATERIALIZED VIEW v AS SELECT max(now()) AS n FROM trades")
    database.insert("trades", (1, NOON, 1))
    ((shown,),) = database.view("v").rows()
    assert before <= shown <= dt.datetime.now(dt.timezone.utc)
    database.tick()
    assert database.view("v").rows()[0][0] > shown


def test_a_moment_may_have_a_time_zone() -> None:
    database = opened("python")
    database.insert("trades", (1, NOON, 1))
    database.tick(dt.datetime(2026, 3, 29, 14, 4, tzinfo=dt.timezone(dt.timedelta(hours=2))))
    assert database.view("recent").rows() == [(1, 1, 1)]
    database.tick(dt.datetime(2026, 3, 29, 14, 5, tzinfo=dt.timezone(dt.timedelta(hours=2))))
    assert database.view("recent").rows() == []


def test_the_clock_is_no_stream_of_users() -> None:
    database = opened("python")
    assert list(database.streams) == ["trades", "quotes"]
    with pytest.raises(viewlet.DataError, match=r"now\(\).*db.tick moves it"):
        database.insert("now()", (NOON,))
    with pytest.raises(viewlet.SqlError, match=r"there is no stream, table or view now\(\)"):
        database.execute('DROP STREAM "now()"')
    with pytest.raises(viewlet.SqlError, match=r"now\(\) is the clock"):
        database.execute('CREATE STREAM "now()" (a INTEGER)')
    with pytest.raises(viewlet.Error, match="tick takes a datetime, not '12:30'"):
        database.tick("12:30")  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tick_that_a_view_cannot_take_changes_nothing(engine: EngineName) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    database.tick(NOON)
    days = "k + date_diff('day', DATE '2026-01-01', current_date)"
    database.execute(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT k, ({days})::TINYINT AS n FROM trades")
    database.insert("trades", (1, NOON, 1))
    shown = database.view("v").rows()
    with pytest.raises(viewlet.Error):
        database.tick(NOON + dt.timedelta(days=200))
    assert database.view("v").rows() == shown
    database.tick(NOON + dt.timedelta(days=1))
    assert database.view("v").rows() == [(1, shown[0][1] + 1)]


@pytest.mark.parametrize("kept", [False, True])
def test_a_job_moves_the_clock_with_each_batch(kept: bool, tmp_path: Path) -> None:
    now = dt.datetime.now(dt.timezone.utc).replace(tzinfo=None)
    rows = [(1, now - dt.timedelta(hours=2)), (1, now - dt.timedelta(minutes=5)), (2, now + dt.timedelta(hours=2))]
    (tmp_path / "rows.csv").write_text("k,t\n" + "".join(f"{k},{t}\n" for k, t in rows))
    script = (
        f"CREATE STREAM trades (k INTEGER, t TIMESTAMP) WITH (connector = 'csv', path = '{tmp_path}/rows.csv');"
        "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM trades WHERE t > now() - INTERVAL 1 HOUR"
        " AND t < now();"
    )
    options = Options("optimized", "sql", None, None, None)
    run = KeptRun(script, options, tmp_path / "db", watch=False) if kept else LocalRun(script, options)
    assert [progress.rows for progress in run.batches()][-1] == 3
    assert run.rows("v") == [(1,)]
    with pytest.raises(viewlet.Error, match=r"a view reads now\(\), and DuckDB has a clock of its own"):
        wrong_views(run, script, "sql")
    run.close()
