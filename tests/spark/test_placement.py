"""Cells move until executors hold even numbers, a few at a time, and never without need."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from viewlet.durable.chain import Address, Log, Version
from viewlet.spark.driver.placement import FORGOTTEN, REFUSED, TAKEN_AT_ONCE, Placement
from viewlet.spark.pipeline import Works
from viewlet.spark.process.ticket import Answer, Standby
from viewlet.spark.task.feed import Turn

NO_WORKS = cast(Works, None)
NO_LOG = cast(Log, None)


def answer(cell: str, home: str, engine: str = "native") -> Answer:
    return Answer(cell, 0, NO_LOG, None, 1, 0.0, 0.0, False, 1, where(home, cell), engine, 1, home=home)


def where(home: str, cell: str) -> Address:
    return Address(home, int(cell[1:]))


@dataclass
class World:
    """Executors and their cells, as they are; ``slow`` batches pass until a cell is ready."""

    cells: Sequence[str]
    executors: list[str]
    random: random.Random
    slow: int = 1
    engines: Mapping[str, str] = field(default_factory=dict)
    busy: float = 1.0  # share of the cells that have rows
    placement: Placement = field(default_factory=Placement)
    homes: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, Address] = field(default_factory=dict)
    batch: int = 0
    moved: int = 0

    def run(self, batches: int) -> None:
        for _ in range(batches):
            self._batch()

    def _batch(self) -> None:
        versions = {cell: Version(self.batch - 1, "x") for cell in self.homes}
        turn = self.placement.turned(Turn(NO_WORKS, self.batch, None, versions, self.addresses))
        for to, coming in turn.moves.items():
            assert len(coming) <= TAKEN_AT_ONCE
            assert all(self.homes[cell] != to for cell in coming)
        asked = [cell for cell in self.cells if self.batch == 0 or self.random.random() < self.busy]
        for cell in asked:
            if self.homes.get(cell) not in self.executors:
                self.homes[cell] = self.random.choice(self.executors)
        answers = [answer(cell, self.homes[cell], self.engines.get(self.homes[cell], "native")) for cell in asked]
        heard = {home: self._ready(home, turn.moves.get(home, {})) for home in self.executors}
        self.placement.note(turn, answers, heard)
        self.addresses |= {**{a.cell: a.address for a in answers}, **self.placement.ready}
        for cell, address in self.placement.ready.items():
            assert self.homes[cell] != address.host
            self.homes[cell] = address.host
            self.moved += 1
        self.batch += 1

    def _ready(self, home: str, coming: Mapping[str, int]) -> list[Standby]:
        engine = self.engines.get(home, "native")
        ready = {cell: since for cell, since in coming.items() if self.batch - since >= self.slow}
        return [Standby(cell, since, where(home, cell), engine) for cell, since in ready.items()]

    def counts(self, cells: Iterable[str] | None = None) -> list[int]:
        held = Counter(dict.fromkeys(self.executors, 0))
        held.update(self.homes[cell] for cell in cells or self.cells if self.homes[cell] in self.executors)
        return sorted(held.values())


def cells(many: int, merging: int = 0) -> list[str]:
    return [*(f"c{n}" for n in range(many)), *(f"m{n}" for n in range(merging))]


def even(counts: Sequence[int]) -> bool:
    return max(counts) - min(counts) < 2


@pytest.mark.parametrize("seed", range(8))
def test_cells_are_even_after_executors_came_and_went(seed: int) -> None:
    rng = random.Random(seed)
    world = World(cells(rng.randrange(5, 40), rng.randrange(0, 9)), ["a", "b", "c"], rng, rng.randrange(4))
    for number in range(6):
        most = len(world.cells)
        if rng.random() < 0.6 and len(world.executors) > 1:
            world.executors.remove(rng.choice(world.executors))
        world.executors += [f"new{number}-{n}" for n in range(rng.randrange(3))]
        world.run(FORGOTTEN + (world.slow + 2) * most)
        assert even(world.counts()), (world.executors, world.homes)
        moved = world.moved
        world.run(2 * FORGOTTEN)
        assert world.moved == moved, "nothing moves where all is even"


def test_eight_on_the_survivor_and_none_on_its_new_neighbour_become_four_and_four() -> None:
    world = World(cells(8), ["a"], random.Random(1))
    world.run(3)
    world.executors.append("b")
    world.run(1)
    assert world.placement.progress["cells_by_executor"] == {"a": 8, "b": 0}
    world.run(6)
    assert world.placement.progress == {"cells_by_executor": {"a": 4, "b": 4}, "moved_cells": 0}
    assert world.moved == 4, "no cell moves twice"


def test_cells_and_merge_cells_are_shared_alike() -> None:
    world = World(cells(4, 4), ["a"], random.Random(1))
    world.run(2)
    world.executors.append("b")
    world.run(12)
    assert (world.counts(cells(4)), world.counts()) == ([2, 2], [4, 4])


def test_a_dead_executor_is_no_place_to_move_to() -> None:
    """The last of its cells to have rows says that it is gone; so does that none of its tasks is heard of."""
    world = World(cells(6), ["a", "b"], random.Random(3))
    world.run(8)
    assert world.counts() == [3, 3]
    world.executors.remove("b")
    world.run(1)
    assert world.placement.progress["cells_by_executor"] == {"a": 6}
    world.executors.append("c")
    world.run(8)
    assert world.placement.progress["cells_by_executor"] == {"a": 3, "c": 3}


def test_an_executor_that_held_nothing_and_died_is_forgotten() -> None:
    world = World(cells(6), ["a"], random.Random(3), slow=10**6)
    world.run(1)
    world.executors.append("b")
    world.run(2)
    assert len(world.placement.moves) == TAKEN_AT_ONCE
    world.executors.remove("b")
    world.run(FORGOTTEN + 2)
    assert (world.placement.moves, world.counts()) == ({}, [6])


def test_idle_cells_move_too_and_those_of_a_dead_executor_wait_for_rows() -> None:
    world = World(cells(12), ["a", "b"], random.Random(5), busy=0.1)
    world.run(30)
    world.executors = ["a", "c"]
    world.run(150)
    assert even(world.counts())


def test_machine_code_does_not_move_to_where_generated_python_would_run() -> None:
    world = World(cells(6), ["a"], random.Random(1), engines={"b": "python"})
    world.run(1)
    world.executors.append("b")
    world.run(REFUSED // 2)
    assert (world.counts(), world.moved) == ([0, 6], 0)
    assert len(world.placement.refused) == 6, "each was tried, and will be again"


def test_what_is_told_of_a_move_that_nobody_waits_for_is_passed_over() -> None:
    """A task that Spark had given up says it late."""
    world = World(cells(4), ["a"], random.Random(1), slow=10**6)
    world.run(1)
    world.executors.append("b")
    world.run(2)
    turn = Turn(NO_WORKS, world.batch, None, {}, world.addresses)
    late: Any = {"b": [Standby("c0", -5, where("b", "c0"), "native"), Standby("c3", 1, where("b", "c3"), "native")]}
    world.placement.note(turn, [], late)
    assert world.placement.ready == {}
