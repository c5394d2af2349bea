"""What all workers share: their task, the events, what it costs, and how they tell.

A worker runs in its peer's environment, so nothing of viewlet is imported here. It reads its task as JSON from its
input and answers with one line of JSON; whatever else it or its libraries print goes to the standard error.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Row = tuple[Any, ...]

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
FIRST = 250  # events of the shortest beginning that is tried


class RefusedError(Exception):
    """The peer will not maintain the query; the message is its own."""


@dataclass(frozen=True)
class Net:
    """What some events come to: rows that go, by place, and rows that come, each behind its place."""

    events: int
    gone: dict[str, list[int]]
    come: dict[str, list[Row]]


@dataclass(frozen=True)
class Task:
    """``warm`` events lead to the steady state; ``batch`` is how many may pass before the answer is fresh again."""

    folder: Path  # of the event files
    scratch: Path  # where the worker may write
    relations: list[str]
    sql: str
    query: str
    warm: int
    seconds: float
    batch: int
    address: str  # of a server, where there is one

    @staticmethod
    def given() -> Task:
        told = json.load(sys.stdin)
        return Task(**{**told, "folder": Path(told["folder"]), "scratch": Path(told["scratch"])})

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """By relation, every row that ever comes; its position is its place."""
        return {name: pq.read_table(self.folder / f"{name}.parquet") for name in self.relations}

    @cached_property
    def events(self) -> list[tuple[int, str, int]]:
        """+1 or -1, the relation, the place."""
        columns = pq.read_table(self.folder / "stream.parquet").to_pydict()
        names = (self.relations[code] for code in columns["code"])
        return list(zip(columns["op"], names, columns["place"], strict=True))

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        return {name: list(zip(*table.to_pydict().values(), strict=True)) for name, table in self.tables.items()}

    def columns(self, relation: str, types: dict[str, str]) -> dict[str, str]:
        """Names and types as the peer calls them; ``types`` has the peer's word for Arrow's."""
        return {field.name: types[str(field.type)] for field in self.tables[relation].schema}

    def net(self, start: int, stop: int) -> Net:
        part = self.events[start:stop]
        count: Counter[tuple[str, int]] = Counter()
        for op, name, place in part:
            count[name, place] += op
        gone: dict[str, list[int]] = {}
        come: dict[str, list[Row]] = {}
        for (name, place), times in count.items():
            if times < 0:
                gone.setdefault(name, []).append(place)
            elif times > 0:
                come.setdefault(name, []).append((place, *self.rows[name][place]))
        return Net(len(part), gone, come)

    def nets(self) -> Iterator[Net]:
        """From the steady state on, batch by batch."""
        for start in range(self.warm, len(self.events), self.batch):
            yield self.net(start, start + self.batch)


@dataclass(frozen=True)
class Run:
    """``events`` were timed; the answer is that of the stream's first ``taken``."""

    events: int
    taken: int
    cpu: float
    wall: float
    rows: Iterable[Iterable[Any]]
    note: str = ""


class Clock:
    """Seconds since it was made: of the wall, and of CPU of this process, its descendants, and some others."""

    def __init__(self, *others: int) -> None:
        self._others = others
        self._cpu, self._wall = self._spent(), time.perf_counter()

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._wall

    @property
    def cpu(self) -> float:
        return self._spent() - self._cpu

    def _spent(self) -> float:
        own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return own + sum(_cpu_seconds(pid) for pid in (*_descendants(), *self._others))


def _cpu_seconds(pid: int) -> float:
    """Its own, and that of its children that ended."""
    fields = _stat(PROC / str(pid))
    return sum(map(int, fields[11:15])) / TICKS if fields else 0.0


def _stat(process: Path) -> list[str]:
    """The fields behind the name; none where the process is gone."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _descendants() -> list[int]:
    parents = {int(each.name): int(fields[1]) for each in PROC.glob("[0-9]*") if (fields := _stat(each))}
    descendants, generation = [], {os.getpid()}
    while generation := {pid for pid, parent in parents.items() if parent in generation}:
        descendants += generation
    return descendants


def longest_beginning(total: int, seconds: float, run: Callable[[int], float]) -> int:
    """Ever longer beginnings of a stream, as long as there is CPU time for the next; ``run`` says what one took.

    The first is to get warm. What a run takes beyond its start may grow with the square of the events.
    """
    events, grown = min(FIRST, total), 0.0
    steps: tuple[int, ...] = (4,)
    run(events)
    clock = Clock()
    took = run(events)
    while events < total:
        left = seconds - clock.cpu
        times = next((times for times in steps if took + times**2 * grown < left), None)
        if times is None:
            break
        events, before, steps = min(times * events, total), took, (16, 4, 2)
        took = run(events)
        grown = max(took - before, 0.0)
    return events


def work(do: Callable[[Task], Run]) -> None:
    """The whole of a worker: ``do`` the task, tell what came of it."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is not an answer
    try:
        run = do(Task.given())
        told = {**vars(run), "rows": [list(row) for row in run.rows]}
    except RefusedError as refused:
        told = {"refused": str(refused)}
    except Exception as failed:
        traceback.print_exc()
        told = {"failed": f"{type(failed).__name__}: {failed}"}
    print(json.dumps(told, default=str), file=answers, flush=True)
    os._exit(0)  # JVMs and engines have threads that would keep it alive
