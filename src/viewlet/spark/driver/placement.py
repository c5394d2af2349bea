"""Where cells are, as their answers say, and which of them move: executors come and go, and are to hold even numbers.

A cell moves when its executor holds two more than another one, so each move evens out and none is ever taken back. The
cell makes itself ready over there while it goes on here (``process/standby.py``), a few of them at a time; then rows go
there. A cell that moved wrongly, or late, would answer no otherwise: the address in a ticket is only a hint.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from viewlet.durable.chain import Address
from viewlet.spark.process.client import Answer
from viewlet.spark.process.ticket import Standby
from viewlet.spark.task.feed import Turn

TAKEN_AT_ONCE = 2  # cells that make themselves ready on one executor
FORGOTTEN = 10  # batches after which an executor that none of them has seen is no place to move to
PATIENCE = 600.0  # seconds for a cell to be ready
REFUSED = 100  # batches in which a cell that could not be made ready on an executor is not tried there again


@dataclass(frozen=True)
class Move:
    to: str
    since: int  # batch
    until: float


@dataclass
class Placement:
    """``homes`` are the executors, by cell; ``seen`` says in which batch an executor last did something."""

    homes: dict[str, str] = field(default_factory=dict)
    engines: dict[str, str] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    moves: dict[str, Move] = field(default_factory=dict)
    ready: dict[str, Address] = field(default_factory=dict)  # by the last batch: where rows go from now on
    left: dict[str, Address] = field(default_factory=dict)  # where cells were that have not answered since they moved
    refused: dict[tuple[str, str], int] = field(default_factory=dict)

    def turned(self, turn: Turn) -> Turn:
        """The turn, with what moves in it."""
        self._begin(turn, sorted(self.seen))
        moves: dict[str, dict[str, int]] = {}
        for cell, move in self.moves.items():
            moves.setdefault(move.to, {})[cell] = move.since
        return replace(turn, moves=moves, left=dict(self.left))

    def note(self, turn: Turn, answered: Iterable[Answer], heard: Mapping[str, Sequence[Standby]]) -> None:
        """What a batch said: first where cells were in it, then where they may be in the next one."""
        answers = list(answered)
        lost = {self.homes.get(answer.cell, "") for answer in answers} - {answer.home for answer in answers}
        for answer in answers:
            self.homes[answer.cell], self.engines[answer.cell] = answer.home, answer.engine
            self.left.pop(answer.cell, None)
        self.seen |= dict.fromkeys((*heard, *(answer.home for answer in answers)), turn.batch)
        self.seen = {
            home: last
            for home, last in self.seen.items()
            if turn.batch - last <= FORGOTTEN and (home not in lost or last == turn.batch)
        }
        self.ready = {}
        for home, standbys in heard.items():
            for standby in standbys:
                self._hear(turn, home, standby)

    @property
    def progress(self) -> Mapping[str, Any]:
        cells = Counter(dict.fromkeys(self.seen, 0))
        cells.update(self.homes.values())
        return {"cells_by_executor": dict(sorted(cells.items())), "moved_cells": len(self.ready)}

    # -- moves ---------------------------------------------------------------------------------------------------------

    def _begin(self, turn: Turn, alive: Sequence[str]) -> None:
        """As many as executors may take. What could not be done since, because one of them is gone, is forgotten."""
        now = time.monotonic()
        for cell, move in list(self.moves.items()):
            if move.until < now:
                self.refused[cell, move.to] = turn.batch
            if move.until < now or move.to not in alive or self.homes[cell] in (move.to, *self._gone(alive)):
                del self.moves[cell]
        while (chosen := self._next(turn, alive)) is not None:
            cell, to = chosen
            self.moves[cell] = Move(to, turn.batch, now + PATIENCE)

    def _gone(self, alive: Sequence[str]) -> set[str]:
        return set(self.homes.values()) - set(alive)

    def _next(self, turn: Turn, alive: Sequence[str]) -> tuple[str, str] | None:
        """From the executor that will hold most cells to the one that will hold fewest and may take another."""
        held: dict[str, list[str]] = {home: [] for home in alive}
        for cell, home in sorted(self.homes.items()):
            held.get(self.moves[cell].to if cell in self.moves else home, []).append(cell)
        coming = Counter(move.to for move in self.moves.values())
        takers = [home for home in alive if coming[home] < TAKEN_AT_ONCE]
        if not takers:
            return None
        most, least = max(alive, key=lambda home: len(held[home])), min(takers, key=lambda home: len(held[home]))
        if len(held[most]) - len(held[least]) < 2:
            return None
        kinds = Counter(cell[0] for cell in held[most])
        kinds.subtract(cell[0] for cell in held[least])
        free = [cell for cell in held[most] if cell in turn.versions and self._may_go(cell, least, turn.batch)]
        return (max(free, key=lambda cell: kinds[cell[0]]), least) if free else None

    def _may_go(self, cell: str, to: str, batch: int) -> bool:
        refused = self.refused.get((cell, to))
        return cell not in self.moves and (refused is None or batch - refused > REFUSED)

    def _hear(self, turn: Turn, home: str, standby: Standby) -> None:
        """A cell on its way that has not become slower by it: generated Python is no place to move machine code to."""
        move = self.moves.get(standby.cell)
        if move is None or (move.to, move.since) != (home, standby.since):
            return
        del self.moves[standby.cell]
        if standby.address is None or standby.why or standby.engine != self.engines[standby.cell]:
            self.refused[standby.cell, home] = turn.batch
            return
        if standby.cell in turn.addresses:
            self.left[standby.cell] = turn.addresses[standby.cell]
        self.ready[standby.cell], self.homes[standby.cell] = standby.address, home
