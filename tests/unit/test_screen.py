"""The live screen: text at fixed sizes, what changed, bars, and plain lines where there is no terminal."""

from __future__ import annotations

import math
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from typer.testing import CliRunner

import viewlet
from viewlet.cli.fitted import fitted
from viewlet.cli.main import app
from viewlet.cli.pane import CAME, CHANGED, Pane
from viewlet.cli.screen import Screen
from viewlet.cli.shelves import arranged
from viewlet.cli.sparkline import MOST_POINTS, History, Point, sparkline
from viewlet.database.looking import MOST_SORTED, Look, Shape, Window, window
from viewlet.database.shown import column_texts
from viewlet.errors import OutOfRangeError
from viewlet.jobs import run as jobs
from viewlet.jobs.run import Progress, Stop
from viewlet.schema import BIGINT, DOUBLE, VARCHAR
from viewlet.session.changes import Row

SCRIPT = """
CREATE STREAM r (a BIGINT, name VARCHAR, x DOUBLE, y BIGINT);
CREATE MATERIALIZED VIEW by_name AS SELECT name, count(*) AS n, sum(x) AS total FROM r GROUP BY name;
CREATE MATERIALIZED VIEW one AS SELECT count(*) AS rows FROM r;
CREATE MATERIALIZED VIEW wide AS SELECT name, a, x, y, a+1 AS b, a+2 AS c, a+3 AS d, a+4 AS e, a+5 AS f FROM r;
CREATE MATERIALIZED VIEW top AS SELECT a, sum(y) AS s FROM r GROUP BY a ORDER BY s DESC LIMIT 5;
"""
SOURCE = Path(viewlet.__file__).parents[1]


@pytest.fixture
def db() -> Iterator[viewlet.Database]:
    with viewlet.connect(engine="python") as database:
        database.execute(SCRIPT)
        yield database


class Fake:
    """A job whose batches are given."""

    def __init__(self, views: Mapping[str, Window], batches: list[Progress], is_endless: bool = False) -> None:
        self.views, self._batches, self.is_endless, self.stop = views, batches, is_endless, Stop()
        self.look_share = 0.1

    def batches(self) -> Iterator[Progress]:
        yield from self._batches


def text(shown: RenderableType, width: int, height: int = 40) -> list[str]:
    console = Console(file=StringIO(), width=width, height=height, color_system=None, force_terminal=True)
    console.print(shown)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def colours(shown: RenderableType) -> str:
    console = Console(file=StringIO(), width=60, color_system="standard", force_terminal=True)
    console.print(shown)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def looked(db: viewlet.Database, *names: str) -> list[Pane]:
    panes = [Pane(Shape.of(db.program.result(name))) for name in names]
    for pane, name in zip(panes, names, strict=True):
        pane.take(window(db, name).look())
    return panes


def screen(run: Fake, monkeypatch: pytest.MonkeyPatch, each: float = 1.0) -> Screen:
    """After all its batches, ``each`` seconds apart."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    shown = Screen(run, Console(file=StringIO()), "job.sql")
    for progress in run.batches():
        now += each
        shown._note(progress)
    shown._look()
    return shown


# -- a view as a table -------------------------------------------------------------------------------------------------


def test_views_stand_side_by_side_with_names_of_columns_and_counts(db: viewlet.Database) -> None:
    db.insert("r", [(1, "b", 0.5, 1), (2, "a", 1234.25, 5), (3, None, None, 1), (10, "b", 0.25, 1)])
    assert text(arranged(looked(db, "by_name", "one", "top"), 70, 9), 70) == [
        "╭─ by_name ───────────╮ ╭─ one ───╮ ╭─ top ────╮",
        "│   name  n     total │ │   rows  │ │    a  s  │",
        "│   a     1  1,234.25 │ │      4  │ │    2  5  │",
        "│   b     2      0.75 │ ╰─ 1 row ─╯ │    1  1  │",
        "│   NULL  1      NULL │             │    3  1  │",
        "╰──────────── 3 rows ─╯             │   10  1  │",
        "                                    ╰─ 4 rows ─╯",
    ]


def test_what_changed_is_marked_and_coloured(db: viewlet.Database) -> None:
    db.insert("r", [(1, "a", 2.0, 1), (2, "b", 2.0, 1), (3, "c", 2.0, 1)])
    (pane,) = looked(db, "by_name")
    look = window(db, "by_name")
    assert not re.search("[+•]", "".join(text(pane.panel(40, 5), 40))), "nothing is new at the first look"
    db.insert("r", [(1, "a", 2.0, 1), (4, "d", 1.0, 1)])
    db.delete("r", (2, "b", 2.0, 1))
    db.insert("r", (2, "b", 1.0, 1))
    pane.take(look.look())
    lines = text(pane.panel(40, 5), 40)
    assert [line[2] for line in lines[2:6]] == [CHANGED, CHANGED, " ", CAME]
    coloured = colours(pane.panel(40, 5)).splitlines()
    more, less, came = "\x1b[1;32m", "\x1b[1;31m", "\x1b[1;36m"
    assert (coloured[2].count(more), coloured[2].count(less)) == (3, 0), "the mark, count and sum"
    assert (coloured[3].count(more), coloured[3].count(less)) == (0, 2), "the mark and the sum; the count is the same"
    assert coloured[5].count(came) == 4
    pane.take(look.look())
    assert not re.search("[+•]", "".join(text(pane.panel(40, 5), 40))), "nothing changed since"
    db.insert("r", (1, "a", 2.0, 1))
    pane.take(look.look())
    pane.settle(2)
    lines = text(pane.panel(40, 5), 40)
    assert ("─ 2 of 4 rows ─" in lines[-1], "•" in "".join(lines)) == (True, False)


def test_one_row_without_a_key_changes_and_is_not_new(db: viewlet.Database) -> None:
    (pane,) = looked(db, "one")
    db.insert("r", (1, "a", 1.0, 1))
    pane.take(window(db, "one").look())
    assert text(pane.panel(20, 1), 20)[2].split()[1:3] == [CHANGED, "1"]


def test_odd_values_stay_on_their_line(db: viewlet.Database) -> None:
    pane = Pane(Shape.of(db.program.result("by_name")))
    texts, sums = ["a\nb\x1b[2J\t", "東" * 50, "", None], [math.nan, math.inf, 1e300, 1e-9]
    pane.take(Look([(name, 1, total) for name, total in zip(texts, sums, strict=True)], 4))
    lines = text(pane.panel(60, 9), 60)
    shown = "\n".join(lines)
    for part in (r"a\nb\x1b[2J\t", "NULL", "nan", "inf", "1e+300", "1e-09", "東…"):
        assert part in shown
    assert {len(line) + line.count("東") for line in lines} == {60}


@pytest.mark.parametrize("width", [24, 40, 80, 140])
def test_columns_that_have_no_room_are_counted_and_numbers_are_never_cut(db: viewlet.Database, width: int) -> None:
    db.insert("r", [(10**17 + i, "a rather long name " * 9, 0.5, i) for i in range(50)])
    (pane,) = looked(db, "wide")
    lines = text(arranged([pane], width, 10), width)
    assert len(lines) == 10
    assert max(map(len, lines)) <= width
    numbers = re.findall(r"10{12,}\d*", lines[2])
    assert all(len(number) == 18 for number in numbers)
    left_out = re.search(r"(\d) more column", lines[-1])
    assert "7 of 50" in lines[-1]
    assert width == 24 or (int(left_out[1]) if left_out else 0) == 9 - len(lines[1].split()[1:-1])


def test_views_that_have_no_room_are_named(db: viewlet.Database) -> None:
    panes = looked(db, "by_name", "one", "wide", "top")
    lines = text(arranged(panes, 30, 9), 30)
    assert len(lines) <= 9
    assert lines[-1] == "2 more: wide, top"
    assert text(arranged(panes, 30, 1), 30) == ["4 more: by_name, one, wide, t…"]
    assert text(arranged(panes, 30, 0), 30) == []


def test_a_view_that_cannot_be_shown_says_why(db: viewlet.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(most: int) -> list[Row]:
        raise OutOfRangeError("one.rows: 2 no longer fits")

    failing = Window(Shape.of(db.program.result("one")), fail)
    shown = screen(Fake({"one": failing}, [Progress(1, 2, 3, 0.1, "native")]), monkeypatch)
    assert "no longer" in "\n".join(text(shown.frame(80, 20), 80))


def test_numbers_of_a_column_have_the_same_digits() -> None:
    assert column_texts([1.0, 2.5, None], DOUBLE, is_key=False) == ["1.0", "2.5", "NULL"]
    assert column_texts([0.123456789, 0.5], DOUBLE, is_key=False) == ["0.123457", "0.500000"]
    assert column_texts([123456.789, 0.001], DOUBLE, is_key=False) == ["123,456.79", "0.001"]
    assert column_texts([1e16, -math.inf], DOUBLE, is_key=False) == ["1e+16", "-inf"]
    assert column_texts([["a", None], []], VARCHAR, is_key=False) == ["[a, NULL]", "[]"]
    assert column_texts(["x" * 10**7], VARCHAR, is_key=True) == ["x" * 200 + "…"]
    assert column_texts([True], BIGINT, is_key=True) == ["true"]
    assert fitted("", 0) == ""


# -- looking -----------------------------------------------------------------------------------------------------------


def test_a_look_at_a_large_view_reads_a_few_rows_and_seldom_counts(db: viewlet.Database) -> None:
    asked, counts = [], []

    def first(most: int) -> list[Row]:
        asked.append(most)
        return [(f"{i % 7}{i}", i, 0.5) for i in range(most)]

    def count() -> int:
        counts.append(time.sleep(0.01))
        return 10**7

    large = Window(Shape.of(db.program.result("by_name")), first, count)
    looks = [large.look() for _ in range(5)]
    assert (asked, len(counts)) == ([MOST_SORTED + 1] * 5, 1)
    assert {(len(look.rows), look.total) for look in looks} == {(MOST_SORTED, 10**7)}
    pane = Pane(large.shape)
    pane.take(looks[0])
    assert "40 of 10,000,000 rows" in text(pane.panel(60, 40), 60)[-1]
    pane.take(Window(large.shape, first).look())
    assert "40 of over 500 rows" in text(pane.panel(60, 40), 60)[-1]


def test_rows_keep_their_places(db: viewlet.Database) -> None:
    db.insert("r", [(i, f"n{i}", 1.0, i) for i in (10, 9, 2)] + [(None, None, None, 7)])
    assert [row[0] for row in window(db, "by_name").look().rows] == ["n10", "n2", "n9", None]
    assert [row[0] for row in window(db, "top").look().rows] == [10, 9, None, 2], "those of ORDER BY"
    assert [row[1] for row in window(db, "wide").look().rows] == [10, 2, 9, None]


def test_looks_are_due_after_batches_and_take_their_share(
    db: viewlet.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first batch there is nothing new to see, unless a job may wait for ever."""
    run = Fake({}, [])
    shown = Screen(run, Console(file=StringIO()), "job.sql")
    pauses: list[float] = []
    looks: list[int] = []

    def look() -> float:
        looks.append(len(pauses))
        return 1.0

    def is_over(pause: float) -> bool:
        pauses.append(pause)
        if len(pauses) == 3:
            shown.last = Progress(1, 2, 3, 0.1, "native")
        return len(pauses) == 6

    monkeypatch.setattr(shown, "_look", look)
    shown._watch(is_over)
    assert (looks, pauses) == ([3], [0.25, 0.25, 0.25, 10.0, 0.25, 0.25])
    run.is_endless, shown.last = True, None
    pauses.clear()
    looks.clear()
    shown._watch(is_over)
    assert looks == [1, 3]


# -- rate and time -----------------------------------------------------------------------------------------------------


def test_bars_are_as_high_as_their_values() -> None:
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([1, 2, 3, 4, 5, 6, 7]) == "▂▃▄▅▆▇█"


def test_a_long_history_is_shown_whole_and_no_spike_is_lost() -> None:
    history = History()
    for number in range(10_000):
        history.add(Point(10, 1.0, 9.0 if number == 77 else 1.0))
    bars = history.bars(40)
    assert len(history.points) <= MOST_POINTS
    assert len(bars) <= 40
    assert sum(p.rows for p in bars) == 100_000
    assert [p.rate for p in bars] == [10] * len(bars)
    assert max(p.slowest for p in bars) == 9.0
    assert History([Point(1, 9.0, 9.0), Point(100, 1.0, 1.0), Point(100, 1.0, 1.0)]).recent(2.0).rate == 100


def test_the_whole_screen(db: viewlet.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.insert("r", [(1, "a", 2.0, 1), (2, "b", 2.0, 1)])
    views = {name: window(db, name) for name in ("by_name", "one")}
    rows, times = (100, 300, 700), (0.1, 0.2, 0.4)
    batches = [Progress(n + 1, 10, rows[n], times[n], "native") for n in range(3)]
    shown = screen(Fake(views, batches), monkeypatch)
    assert text(shown.frame(72, 20), 72) == [
        "viewlet job.sql  native                                          0:00:03",
        "━━━━━━━━━━━━╸                               batch 3/10  30%  ETA 0:00:07",
        "rate ▃▅█ 233 rows/s   batch ▃▅█ 400 ms   700 rows",
        "",
        "╭─ by_name ────────╮ ╭─ one ───╮",
        "│   name  n  total │ │   rows  │",
        "│   a     1      2 │ │      2  │",
        "│   b     1      2 │ ╰─ 1 row ─╯",
        "╰───────── 2 rows ─╯",
        "Ctrl-C stops after the batch at work",
    ]
    shown.run.stop.asked = True
    assert text(shown.frame(72, 20), 72)[-1] == "stops after this batch; Ctrl-C again does not wait for it"


def test_a_job_without_an_end_has_no_eta(db: viewlet.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(Fake({}, [Progress(3, 3, 30, 0.1, "native")], is_endless=True), monkeypatch)
    assert text(shown.frame(60, 9), 60)[1].endswith("batch 3  reads")
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    assert text(shown.frame(60, 9), 60)[1].endswith("batch 3  waits for rows")
    nothing = Screen(Fake({}, []), Console(file=StringIO()), "job.sql")
    assert "waiting for the first batch" in text(nothing.frame(60, 9), 60)[1]


@pytest.mark.parametrize("height", [3, 6, 12, 30])
@pytest.mark.parametrize("width", [12, 31, 50, 80, 200])
def test_no_screen_is_too_small(db: viewlet.Database, monkeypatch: pytest.MonkeyPatch, width: int, height: int) -> None:
    db.insert("r", [(i, f"name {i}", 2.0, 1) for i in range(30)])
    views = {name: window(db, name) for name in ("by_name", "one", "wide", "top")}
    shown = screen(Fake(views, [Progress(1, 9, 10**9, 12.5, "spark, native", 4, 10**9)]), monkeypatch)
    lines = text(shown.frame(width, height), width, height)
    assert len(lines) <= max(height, 5)
    assert max(map(len, lines)) <= width


# -- elsewhere ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def job(tmp_path: Path) -> str:
    (tmp_path / "r.csv").write_text("a,name,x,y\n1,b,2.5,3\n2,a,1,4\n")
    source = f"WITH (connector = 'csv', path = '{tmp_path}/r.csv')"
    script = SCRIPT.replace("y BIGINT);", f"y BIGINT) {source};")
    (tmp_path / "job.sql").write_text(script[: script.index("CREATE MATERIALIZED VIEW wide")])
    return str(tmp_path / "job.sql")


def test_piped_it_is_plain_lines(job: str) -> None:
    lines = CliRunner().invoke(app, ["run", job]).stdout.splitlines()
    assert re.fullmatch(r"batch 1/1  2 rows read  [\d,]+ rows/s  last batch \d+ ms  native", lines[0])
    assert lines[1:] == ["by_name: a 1 1.0 | b 1 2.5", "one: 2"]


@pytest.mark.parametrize(("terminal", "is_live"), [("xterm-256color", True), ("dumb", False)])
def test_in_a_terminal_it_takes_the_screen_and_gives_it_back(job: str, terminal: str, is_live: bool) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from viewlet.cli.main import app; app()", "run", job]
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": terminal, "COLUMNS": "60", "LINES": "20"}
    with subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        shown = b""
        while more := _read(ours):
            shown += more
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait()) == ("", 0)
    os.close(ours)
    screen, _, after = shown.decode().partition("\x1b[?1049l")
    assert ("\x1b[?1049h" in screen) == is_live
    if not is_live:
        assert "by_name: a 1 1.0 | b 1 2.5" in screen
        return
    plain = [re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", line).rstrip() for line in after.splitlines()]
    assert "│   a     1    1.0 │ │      2  │" in plain
    assert re.fullmatch(r"1 batch, 2 rows in .* slowest batch \d+ ms", plain[-1])


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody is at the other end any more
        return b""


def test_what_a_jvm_warns_of_is_kept_apart_unless_it_does_not_start(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "jvm.log"
    with jobs._errors_apart(log):
        subprocess.run("echo WARNING: incubator >&2", shell=True, check=True)
    assert (capfd.readouterr().err, log.read_text()) == ("", "WARNING: incubator\n")
    with pytest.raises(subprocess.CalledProcessError), jobs._errors_apart(log):
        subprocess.run("echo no memory >&2; exit 1", shell=True, check=True)
    os.write(2, b"as before")
    assert capfd.readouterr().err == "no memory\nas before"
