"""``viewlet run`` that keeps what it did: results, a directory to go on from, files that grow, and Ctrl-C."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import viewlet
from viewlet.cli.main import app
from viewlet.errors import DataError
from viewlet.jobs import growing, kept
from viewlet.jobs.growing import next_piece, rows_end
from viewlet.jobs.kept import KeptRun
from viewlet.jobs.position import POSITIONS, Position
from viewlet.jobs.run import Options
from viewlet.jobs.source import Files
from viewlet.schema import BIGINT, VARCHAR, Column, Relation

SOURCE = Path(viewlet.__file__).parents[1]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["run", *arguments])


@pytest.fixture
def job(tmp_path: Path) -> str:
    """Rows of r come and go; the table names its groups."""
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "1.csv").write_text("a,x\n1,2\n1,3\n")
    pq.write_table(pa.table({"a": [1, 2, 3], "n": ["one", "two", None]}), tmp_path / "t.parquet")
    (tmp_path / "job.sql").write_text(
        f"""
        CREATE STREAM r (a BIGINT, x BIGINT) WITH (connector = 'csv', path = '{tmp_path}/r');
        CREATE TABLE t (a BIGINT, n VARCHAR) WITH (connector = 'parquet', path = '{tmp_path}/t.parquet');
        CREATE MATERIALIZED VIEW v AS
          SELECT n, sum(x) AS s, CAST(sum(x) AS DECIMAL(20,2)) AS d FROM r, t WHERE r.a = t.a GROUP BY n;
        CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r  -- and no semicolon
        """
    )
    return str(tmp_path / "job.sql")


def rows(result: Result) -> dict[str, list[list[object]]]:
    """By view, the rows that --json printed."""
    printed: dict[str, list[list[object]]] = {}
    for line in map(json.loads, result.stdout.splitlines()):
        printed.setdefault(line["view"], []).append(list(line["row"].values()))
    return {view: sorted(some, key=str) for view, some in printed.items()}


# -- results -----------------------------------------------------------------------------------------------------------


def test_results_are_kept_in_each_format(job: str, tmp_path: Path) -> None:
    for format in ("parquet", "csv", "jsonl"):
        result = run(job, "--out", str(tmp_path / "out"), "--format", format)
        assert result.exit_code == 0, result.output
    out = tmp_path / "out"
    assert sorted(os.listdir(out)) == [f"{view}.{f}" for view in "nv" for f in ("csv", "jsonl", "parquet")]
    table = pq.read_table(out / "v.parquet")
    assert (table.column_names, str(table.schema.field("d").type)) == (["n", "s", "d"], "decimal128(20, 2)")
    assert (out / "v.csv").read_text() == "n,s,d\none,5,5.00\n"
    assert (out / "v.jsonl").read_text() == '{"n": "one", "s": 5, "d": 5.00}\n'
    assert (out / "n.jsonl").read_text() == '{"n": 2}\n'


def test_json_is_alone_on_stdout_also_with_verify(job: str) -> None:
    result = run(job, "--json", "--verify")
    assert rows(result) == {"v": [["one", 5, 5.0]], "n": [[2]]}
    assert "batch 1/1" in result.stderr
    assert result.stderr.endswith(
        "verified: every view equals its query, evaluated by DuckDB over the rows that are left\n"
    )


def test_exit_codes_say_whose_mistake_it_was(job: str, tmp_path: Path) -> None:
    assert run(job, "--engine", "spark", "--watch").exit_code == 2
    assert run(job, "--format", "xml").exit_code == 2
    (tmp_path / "file").write_text("")
    blocked = run(job, "--out", str(tmp_path / "file"))
    assert (blocked.exit_code, "file/v.parquet cannot be written" in blocked.stderr) == (3, True)
    (tmp_path / "r" / "2.csv").write_text("a,x\n1,y\n")
    bad = run(job)
    assert (bad.exit_code, "r.x, row 0: " in bad.stderr) == (3, True)
    assert "130 stopped by Ctrl-C" in run("--help").stdout


# -- a directory to go on from -----------------------------------------------------------------------------------------


def test_a_run_goes_on_where_the_one_before_stopped(job: str, tmp_path: Path) -> None:
    kept_in = ("--db", str(tmp_path / "db"), "--json", "--verify")
    assert rows(run(job, *kept_in)) == {"v": [["one", 5, 5.0]], "n": [[2]]}
    again = run(job, *kept_in)
    assert rows(again) == {"v": [["one", 5, 5.0]], "n": [[2]]}, "no row counts twice"
    assert "batch" not in again.stderr
    with (tmp_path / "r" / "1.csv").open("a") as file:
        file.write("2,7\n3,1\n")
    (tmp_path / "r" / "2.csv").write_text("a,op,x\n1,-1,2\n2,1,1\n")
    more = run(job, *kept_in)
    assert "batch 2/2  4 rows read" in more.stderr, more.stderr
    assert rows(more) == {"v": [["one", 3, 3.0], ["two", 8, 8.0], [None, 1, 1.0]], "n": [[4]]}
    with viewlet.connect(tmp_path / "db") as db:
        assert sorted(db.view("v").rows(), key=str) == sorted([("one", 3, 3), ("two", 8, 8), (None, 1, 1)], key=str), (
            "it is a database as any other"
        )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a,x\n1,2\n", "has 8 bytes, of which 12 were read before"),
        ("a,x\n1,2\n1,4\n9,9\n", "was written again after it was read"),
    ],
)
def test_what_cannot_be_known_is_refused(job: str, tmp_path: Path, text: str, why: str) -> None:
    kept_in = ("--db", str(tmp_path / "db"), "--json")
    before = run(job, *kept_in)
    (tmp_path / "r" / "1.csv").write_text(text)
    refused = run(job, *kept_in)
    assert (refused.exit_code, refused.stdout, why in refused.stderr) == (3, "", True), refused.stderr
    (tmp_path / "r" / "1.csv").write_text("a,x\n1,2\n1,3\n")
    assert rows(run(job, *kept_in)) == rows(before)


def test_another_script_and_another_database_are_refused(job: str, tmp_path: Path) -> None:
    assert run(job, "--db", str(tmp_path / "db")).exit_code == 0
    Path(job).write_text(Path(job).read_text().replace("count(*)", "count(x)"))
    other = run(job, "--db", str(tmp_path / "db"))
    assert (other.exit_code, "was made by another script" in other.stderr) == (2, True)
    with viewlet.connect(tmp_path / "own") as db:
        db.execute("CREATE STREAM s (a BIGINT)")
    own = run(job, "--db", str(tmp_path / "own"))
    assert (own.exit_code, "viewlet run did not make" in own.stderr) == (2, True)


BOOK = "WITH (connector = 'orderbook', events = 2500, events_per_batch = 1000, live = 9)"
GENERATED = f"""
CREATE STREAM bids (id BIGINT, price DOUBLE) {BOOK};
CREATE STREAM asks (id BIGINT, price DOUBLE) {BOOK};
CREATE MATERIALIZED VIEW v AS SELECT sum(b.id) AS b, sum(a.id) AS a FROM bids b, asks a WHERE a.price > b.price;
"""
OPTIONS = Options("optimized", "sql", None, None, None)


def test_generated_events_go_on_after_any_batch(tmp_path: Path) -> None:
    whole = KeptRun(GENERATED, OPTIONS, None, False)
    assert [p.rows for p in whole.batches()] == [1000, 2000, 2500]
    for stopped_after in (1, 1, 5):
        part = KeptRun(GENERATED, OPTIONS, tmp_path / "db", False)
        for number, _ in enumerate(part.batches(), 1):
            if number == stopped_after:
                part.stop.asked = True
        ours = part.rows("v")
        part.close()
    assert ours == whole.rows("v") != [(None, None)]
    whole.close()


def test_a_death_between_rows_and_position_is_impossible(job: str, tmp_path: Path) -> None:
    """They are one update: a death before it is acknowledged loses both."""
    script = Path(job).read_text()
    first = KeptRun(script, OPTIONS, tmp_path / "db", False)
    updates = list(first._statics())
    assert first._apply(updates[0]) == 3
    first._db.close()  # as if the process died here
    second = KeptRun(script, OPTIONS, tmp_path / "db", False)
    assert list(second._statics()) == []
    assert [p.rows for p in second.batches()] == [2]
    assert second._positions[("r", str(tmp_path / "r" / "1.csv"))].read_rows == 2
    assert second.rows("n") == [(2,)]
    second.close()


# -- files that grow ---------------------------------------------------------------------------------------------------

R = Relation("r", (Column("a", BIGINT), Column("t", VARCHAR)))


def test_a_file_that_grows_byte_by_byte_gives_each_row_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the pieces: line ends in quotes, quotes in quotes and in the middle, CRLF, empty lines, NULLs."""
    chance = random.Random(4)
    texts = ['"x\ny"', '"a""b\n"', 'c"d', '","', "", '"\n"', 'e"', '""""']
    lines = [f"{n},{chance.choice(texts)}{chance.choice([chr(10), chr(13) + chr(10)])}" for n in range(60)]
    content = ("a,t\n" + "".join(lines)).replace("\n7,", "\n\n7,").encode()
    file = str(tmp_path / "r.csv")
    Path(file).write_bytes(content)
    source = Files("csv", file)
    whole = list(_pieces(source, file, Position("r", file), grows=False))
    assert sum(map(len, whole)) == 60
    for piece in (7, 64, 1 << 20):
        monkeypatch.setattr(growing, "PIECE", piece)
        position, taken = Position("r", file), []
        for end in [*sorted(chance.sample(range(len(content)), 25)), len(content)]:
            Path(file).write_bytes(content[:end])
            while step := next_piece(R, source, file, position, True):
                table, position = step
                taken += table.to_pylist()
        assert taken == [row for table in whole for row in table.to_pylist()]
        assert (position.bytes, position.read_rows) == (len(content), 60)


def _pieces(source: Files, file: str, position: Position, grows: bool) -> Iterator[pa.Table]:
    while step := next_piece(R, source, file, position, grows):
        table, position = step
        yield table


def test_a_row_without_its_end_waits_or_is_the_last(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("a,t\n1,x\n2,y")
    source, start = Files("csv", str(path)), Position("r", str(path))
    assert sum(map(len, _pieces(source, str(path), start, True))) == 1
    step = next_piece(R, source, str(path), start, False)
    assert step is not None
    assert len(step[0]) == 2
    path.write_text("a,t\n1,x\n2,y\n3,z\n")
    assert [t.to_pylist() for t in _pieces(source, str(path), step[1], True)] == [[{"a": 3, "t": "z"}]]
    path.write_text("a,t\n1,x\n2,yes\n")
    with pytest.raises(DataError, match="ended within a row when it was read"):
        next_piece(R, source, str(path), step[1], True)
    assert rows_end(b"") == 0


def test_parquet_is_taken_whole_and_once(tmp_path: Path) -> None:
    file = str(tmp_path / "r.parquet")
    pq.write_table(pa.table({"a": [1], "t": ["x"]}), file)
    whole, source, start = Path(file).read_bytes(), Files("parquet", file), Position("r", file)
    Path(file).write_bytes(whole[:-3])
    assert next_piece(R, source, file, start, True) is None, "it is still written"
    Path(file).write_bytes(whole)
    step = next_piece(R, source, file, start, True)
    assert step is not None
    assert next_piece(R, source, file, step[1], True) is None
    pq.write_table(pa.table({"a": [1, 2], "t": ["x", "y"]}), file)
    with pytest.raises(DataError, match="was written again after it was read"):
        next_piece(R, source, file, step[1], True)


def test_an_error_in_a_file_that_grew_names_the_row_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("a,t\n1,x\n2,y\n")
    step = next_piece(R, Files("csv", str(path)), str(path), Position("r", str(path)), True)
    assert step is not None
    path.write_text("a,t\n1,x\n2,y\nz,z\n")
    with pytest.raises(DataError, match=r"r\.a, row 2: .*r\.csv cannot be read"):
        next_piece(R, Files("csv", str(path)), str(path), step[1], True)


# -- --watch and Ctrl-C ------------------------------------------------------------------------------------------------


def test_watch_reads_on_until_ctrl_c_and_keeps_the_results(job: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from viewlet.cli.main import app; app()", "run", job, "--watch"]
    command += ["--db", str(tmp_path / "db"), "--out", str(tmp_path / "out"), "--format", "csv", "--verify"]
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert "3 rows read" in process.stdout.readline()
    assert "5 rows read" in process.stdout.readline()
    with (tmp_path / "r" / "1.csv").open("a") as file:
        file.write("2,7\n3,")
    assert "6 rows read" in process.stdout.readline()
    with (tmp_path / "r" / "1.csv").open("a") as file:
        file.write("1\n")
    assert "7 rows read" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (
        130,
        "stopped after batch 4, 7 rows read; the same command goes on from there\n",
    )
    assert "verified" in stdout
    assert Counter((tmp_path / "out" / "v.csv").read_text().split()) == Counter(
        ["n,s,d", "one,5,5.00", "two,7,7.00", ",1,1.00"]
    )


def test_a_file_that_vanishes_is_passed_over_or_told_in_a_sentence(
    job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at a directory and the read: nothing of it was read, or rows of it are missing."""
    watching = KeptRun(Path(job).read_text(), OPTIONS, None, True)
    batches = watching.batches()
    assert [next(batches).rows, next(batches).rows] == [3, 5]
    (late := tmp_path / "r" / "2.csv").write_text("a,x\n1,1\n")

    def vanish(*given: object) -> None:
        late.unlink(missing_ok=True)
        (tmp_path / "r" / "3.csv").write_text("a,x\n1,5\n")

    monkeypatch.setattr(time, "sleep", vanish)
    monkeypatch.setattr(kept.local, "data_files", lambda source: [str(late), *sorted(map(str, late.parent.glob("*")))])
    assert next(batches).rows == 6
    assert watching.rows("n") == [(3,)]
    with (third := tmp_path / "r" / "3.csv").open("a") as file:
        file.write("1,6\n")
    monkeypatch.setattr(kept, "next_piece", lambda *given: third.unlink(missing_ok=True) or next_piece(*given))
    with pytest.raises(DataError, match=r"r: .*3\.csv vanished while it was read"):
        next(batches)
    watching.close()


def test_a_file_that_cannot_be_opened_is_told_in_a_sentence(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pa, "input_stream", refuse)
    refused = run(job)
    assert (refused.exit_code, refused.stderr.count("\n")) == (3, 1)
    assert refused.stderr.endswith("1.csv cannot be read: Permission denied\n")


def test_killed_in_the_middle_it_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    """kill -9 after any batch: the next run reads the rest, and DuckDB says that no row counts twice or never."""
    (tmp_path / "job.sql").write_text(GENERATED.replace("events = 2500", "events = 60000"))
    command = [sys.executable, "-c", "from viewlet.cli.main import app; app()", "run", str(tmp_path / "job.sql")]
    command += ["--db", str(tmp_path / "db")]
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"}
    done = 0
    for batches in (3, 9):
        with subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(batches):
                line = process.stdout.readline()
            process.kill()
        assert process.returncode == -signal.SIGKILL
        done += int(line.split()[1].split("/")[0])
    ended = run(str(tmp_path / "job.sql"), "--db", str(tmp_path / "db"), "--json")
    left = int(ended.stderr.split(" rows read")[-2].split()[-1].replace(",", ""))
    assert 0 < left <= 60_000 - 1000 * done
    right = run(str(tmp_path / "job.sql"), "--json", "--verify")
    assert (ended.exit_code, right.exit_code) == (0, 0), ended.output + right.output
    assert rows(ended) == rows(right) != {"v": [[None, None]]}


def test_watch_waits_for_the_first_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"CREATE STREAM r (a BIGINT) WITH (connector = 'csv', path = '{tmp_path}/r/*.csv');"
    watching = KeptRun(script + "CREATE MATERIALIZED VIEW v AS SELECT a FROM r;", OPTIONS, None, True)
    (tmp_path / "r").mkdir()

    def sleep(seconds: float) -> None:
        (tmp_path / "r" / "late.csv").write_text("a\n1\n")

    monkeypatch.setattr(time, "sleep", sleep)
    assert next(watching.batches()).rows == 1
    assert watching.rows("v") == [(1,)]
    assert POSITIONS not in watching.live_rows()
    watching.close()
