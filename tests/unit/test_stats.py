"""What a database says of itself in numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

import viewlet
from viewlet.database import stats
from viewlet.database.memory import EngineName

SCRIPT = """
CREATE STREAM sales (item VARCHAR, n BIGINT, x DOUBLE);
CREATE TABLE table_sales (item VARCHAR);
CREATE MATERIALIZED VIEW totals AS SELECT item, sum(n) AS n, sum(x) AS x FROM sales GROUP BY item;
CREATE MATERIALIZED VIEW table_totals AS
  SELECT count(*) AS c FROM sales, table_sales WHERE sales.item = table_sales.item;
CREATE MATERIALIZED VIEW many AS SELECT item, n FROM sales WHERE n > 1;
CREATE MATERIALIZED VIEW often AS SELECT item FROM sales GROUP BY item HAVING count(*) > 2;
"""
ROWS = [("tea", 1, 0.5), ("tea", 1, 0.5), ("tea", 2, 1.5), ("milk", 3, 0.5)]


@pytest.mark.parametrize("engine", ["native", "python", "interpreter"])
def test_every_engine_counts_the_same_rows(engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 14.0])
    monkeypatch.setattr(stats.time, "monotonic", lambda: next(clock))
    with viewlet.connect(engine=engine, wait_native=True) as db:
        db.execute(SCRIPT)
        db.insert("sales", ROWS)
        db.insert("table_sales", [("tea",), ("rice",)])
        first = db.stats()
        db.delete("sales", ROWS[:2])
        second = db.stats()
        assert len(db.stream("sales")) == 2
    assert first.tier == engine
    assert {name: held.rows for name, held in first.relations.items()} == {"sales": 4, "table_sales": 2}
    rows = {"totals": 2, "table_totals": 1, "many": 2, "often": 1}
    assert {name: held.rows for name, held in first.views.items()} == rows
    assert {held.per_second for held in (*first.relations.values(), *first.views.values())} == {None}
    assert first.relations["sales"].entries == 3
    assert (second.relations["sales"].rows, second.relations["sales"].per_second) == (2, -0.5)
    assert (second.views["often"].rows, second.views["often"].per_second) == (0, -0.25)
    assert first.views["totals"].entries >= 2
    assert all(map_.entries > 0 for map_ in first.maps.values())
    assert (first.bytes is not None) == (engine == "native")
    if first.bytes is not None:
        sizes = [held.bytes or 0 for held in (*first.relations.values(), *first.maps.values())]
        assert 0 < sum(sizes) <= first.bytes
        assert first.views["totals"].bytes
    lines = str(second).splitlines()
    assert lines[0].split() == ["name", "rows", "rows/s", "entries", "bytes"]
    assert lines[1].split()[:5] == ["relation", "sales", "2", "-0", "2"]
    assert second._repr_html_().count("<tr>") == len(lines)


def test_the_files_of_a_directory(tmp_path: Path) -> None:
    with viewlet.connect(tmp_path, engine="python") as db:
        db.execute(SCRIPT)
        db.insert("sales", ROWS)
        before = db.stats()
        db.checkpoint()
        after = db.stats()
        assert before.snapshot == 0
        assert before.log > 0
        assert (after.log, after.snapshot) == (0, (tmp_path / "rows-1").stat().st_size)
        assert f"snapshot {after.snapshot:,}" in str(after)
