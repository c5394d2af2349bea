"""Random lives of a database: each step through the API, all that there is compared with DuckDB after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.lives import Life
from viewlet.database.memory import EngineName

PYTHON: list[EngineName] = ["python", "python", "interpreter"]
LIVES: list[tuple[int, list[EngineName]]] = [(40, PYTHON), (40, PYTHON), (40, PYTHON), (12, ["native", "python"])]


@pytest.mark.parametrize("number", range(len(LIVES)))
def test_a_random_life(number: int, seeded: int, tmp_path: Path, soaking: bool) -> None:
    steps, engines = LIVES[number]
    life = Life(seeded * len(LIVES) + number, tmp_path / "db", engines)
    for _ in range(steps * 3 if soaking else steps):
        life.step()
        life.check()
    life.db.close()
    assert life.filled > steps, "views without rows prove nothing"
