"""Notebooks: ``%%viewlet``, live views, the example, and the widget's own code in a browser where there is one."""

from __future__ import annotations

import base64
import copy
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import viewlet
from viewlet.database import widget
from viewlet.errors import Error, SqlError
from viewlet.magic import database, run
from viewlet.statements import pieces

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "notebook.ipynb"
SCRIPT = """
CREATE STREAM r (a VARCHAR, x BIGINT);
CREATE MATERIALIZED VIEW v AS SELECT a, sum(x) AS s FROM r GROUP BY a;
"""


@pytest.fixture
def db() -> Iterator[viewlet.Database]:
    with viewlet.connect(engine="python") as made:
        made.execute(SCRIPT)
        yield made


# -- %%viewlet ---------------------------------------------------------------------------------------------------------


def test_a_script_runs_and_its_last_answer_is_returned() -> None:
    shown: list[list[tuple[Any, ...]]] = []
    with viewlet.connect(engine="python") as db:
        script = f"{SCRIPT}; INSERT INTO r VALUES ('x', 1), ('y', 2); SELECT s FROM v WHERE a = 'y'; -- and\nFROM r;"
        answer = run(db, script, lambda one: shown.append(one.rows()))
        assert answer is not None
        assert (shown, sorted(answer.rows())) == ([[(2,)]], [("x", 1), ("y", 2)])
        assert run(db, "INSERT INTO r VALUES ('x', 5)", shown.append) is None
        assert run(db, "-- nothing\n", shown.append) is None
        assert db.view("v").get(a="x") == ("x", 6)


def test_an_error_names_the_line_of_the_cell(db: viewlet.Database) -> None:
    with pytest.raises(SqlError) as wrong:
        run(db, "SELECT 1;\n\nINSERT INTO r VALUES ('x', 1);\nCREATE MATERIALIZED VIEW w AS SELECT nope FROM r;", print)
    assert wrong.value.line == 4
    assert "nope" in str(wrong.value)
    assert db.view("v").rows() == [], "statements that are run together fail together"
    assert [piece.is_question for piece in pieces("SELECT 'a;b'; ;; (SELECT 1); DROP VIEW v; DELETE FROM r")] == [
        True,
        True,
        False,
    ]
    assert [piece.text for piece in pieces("SELECT 'open")] == ["SELECT 'open"]


def test_the_database_is_that_of_a_variable(db: viewlet.Database, capsys: pytest.CaptureFixture[str]) -> None:
    with viewlet.connect(engine="python") as other:
        assert database({"mine": other, "db": db}, "mine") is other
        assert database({"mine": other, "db": db}, "") is db
        assert database({"mine": other, "also": other, "_": db, "db": 3}, "") is other
        with pytest.raises(Error, match="one of mine, his"):
            database({"mine": other, "his": db}, "")
        with pytest.raises(Error, match=r"sales is no database: write sales = viewlet.connect\(\)"):
            database({"sales": 3}, "sales")
        with pytest.raises(Error, match="db is no database"):
            database({"db": 3}, "")
    names: dict[str, Any] = {}
    assert database(names, "") is names["db"]
    assert capsys.readouterr().out == "db = viewlet.connect()\n"
    names["db"].close()


def test_the_extension_registers_both_magics(db: viewlet.Database) -> None:
    class Shell:
        user_ns: dict[str, Any] = {"db": db}  # noqa: RUF012

        def register_magic_function(self, magic: Any, kind: str) -> None:
            assert (magic.__name__, kind) == ("viewlet", "line_cell")
            self.magic = magic

    viewlet.load_ipython_extension(shell := Shell())
    shell.magic("db", "INSERT INTO r VALUES ('x', 4)")
    assert shell.magic("SELECT s + 1 FROM v").rows() == [(5,)]
    with pytest.raises(SqlError):
        shell.magic("", "CREATE VIEW")


# -- live views --------------------------------------------------------------------------------------------------------


def painted(live: widget.LiveView, wanted: Any, seconds: float = 10) -> Any:
    """What is painted, once its rows are those that are wanted."""
    end = time.monotonic() + seconds
    while live.painted["rows"] != wanted and time.monotonic() < end:
        time.sleep(0.01)
    assert live.painted["rows"] == wanted
    return live.painted


def test_a_live_view_repaints_with_what_changed(db: viewlet.Database) -> None:
    db.insert("r", [("x", 1), (None, 1234)])
    live = db.view("v").widget(most=2)
    assert live.painted == {
        "name": "v",
        "columns": ["a", "s"],
        "numeric": [False, True],
        "rows": [["x", "1"], [None, "1,234"]],
        "marks": [["", ""], ["", ""]],
        "caption": "2 rows",
        "problem": "",
    }
    db.insert("r", [("x", -2), ("<b>", 7)])
    state = painted(live, [["<b>", "7"], ["x", "-1"]])
    assert (state["marks"], state["caption"]) == ([["came", "came"], ["", "less"]], "2 of 3 rows")
    live.close()


def test_updates_by_the_thousand_are_painted_as_one(db: viewlet.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    live = db.view("v").widget()
    paints: list[object] = []
    live.observe(lambda change: paints.append(change), "painted")
    for _ in range(2000):
        db.insert("r", ("x", 1))
    took = len(paints)
    painted(live, [["x", "2,000"]])
    assert 0 < len(paints) < 2000 / 10, took
    live.close()


def test_a_closed_one_is_told_nothing_and_leaves_no_thread(db: viewlet.Database) -> None:
    live = db.view("v").widget()
    (thread,) = (t for t in threading.enumerate() if t.name == "viewlet-v")
    live.close()
    live.close()
    thread.join(10)
    assert not thread.is_alive()
    before = live.painted
    db.insert("r", ("x", 1))
    time.sleep(0.05)
    assert (live.painted, db._subscriptions.listening) == (before, {})


@pytest.mark.parametrize("what", ["dropped", "closed"])
def test_a_view_that_goes_says_so(db: viewlet.Database, what: str) -> None:
    live = db.view("v").widget()
    db.insert("r", ("x", 1))
    painted(live, [["x", "1"]])
    if what == "closed":
        db.close()
    else:
        db.execute("DROP VIEW v")
    end = time.monotonic() + 10
    while not live.painted["problem"] and time.monotonic() < end:
        time.sleep(0.01)
    assert ("closed" if what == "closed" else "no view v") in live.painted["problem"]
    live.close()


def test_without_the_extra_a_sentence_says_what_to_install(
    db: viewlet.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "viewlet.database.widget")
    with pytest.raises(Error, match=r"a live view needs anywidget: pip install 'viewlet\[notebook\]'"):
        db.view("v").widget()


# -- its code in a browser ---------------------------------------------------------------------------------------------

PAGE = """<!doctype html><meta charset="utf-8"><style>%(css)s</style><div id="el"></div><script type="module">
const { default: widget } = await import("data:text/javascript;base64,%(js)s");
const listeners = new Set();
const model = { state: %(first)s, get: () => model.state,
  on: (name, call) => listeners.add(call), off: (name, call) => listeners.delete(call) };
const end = widget.render({ model, el: document.getElementById("el") });
model.state = %(second)s;
listeners.forEach((call) => call());
const before = listeners.size;
end();
document.title = `${before} then ${listeners.size}`;
</script>"""


def test_the_widget_in_a_browser(db: viewlet.Database, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no browser")
    db.insert("r", [("x", 1), (None, 1234)])
    live = db.view("v").widget()
    first = live.painted
    db.insert("r", [("x", 1), ("<i>", 7)])
    second = painted(live, [["<i>", "7"], ["x", "2"], [None, "1,234"]])
    live.close()
    page = tmp_path / "page.html"
    js = base64.b64encode(widget.LiveView._esm.encode()).decode()
    states = {"first": json.dumps(first), "second": json.dumps(second)}
    page.write_text(PAGE % {"css": widget.LiveView._css, "js": js, **states})
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]
    ran = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    body = ran.stdout[ran.stdout.index("<body") :]
    assert "<title>1 then 0</title>" in ran.stdout, "it listens, and stops when it is closed"
    assert '<caption class="">v: 3 rows</caption>' in body
    assert '<th class="">a</th><th class="number">s</th>' in body
    assert '<td class="came">&lt;i&gt;</td><td class="number came">7</td>' in body, "text is no HTML"
    assert '<td class="">x</td><td class="number more">2</td>' in body
    assert '<td class="null">NULL</td><td class="number">1,234</td>' in body
    assert body.count("<tr>") == 4


# -- the example -------------------------------------------------------------------------------------------------------


def outputs(notebook: Any) -> list[list[Any]]:
    """Of each cell, as text and as HTML."""
    cells = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return [[(o.data.get("text/plain"), o.data.get("text/html")) for o in some] for some in cells]


def test_the_example_runs_and_shows_what_is_saved_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    saved = nbformat.read(EXAMPLE, as_version=4)
    again = NotebookClient(copy.deepcopy(saved), timeout=120, kernel_name="python3").execute()
    assert outputs(again) == outputs(saved)
    models = again.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
    (painted,) = (model["state"]["painted"] for model in models if "painted" in model["state"])
    assert painted["name"] == "book"
    assert any(any(marks) for marks in painted["marks"]), "it was painted again from its own thread"
