"""viewlet itself, as users meet it: Arrow batches, and one call for each event; the best of several runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import viewlet
from bench.engine.answers import answer, check
from bench.engine.workload import Row, Workload
from bench.peers.contestants import BATCH, EVERY_EVENT, EVERY_THOUSAND
from bench.results import Measurement

REPETITIONS = 3
NOTE = 'connect(engine="native"), the whole stream from its first event on, best of {} runs'

Feed = Callable[[viewlet.Database, Any], None]


def ours(experiment: str, w: Workload) -> Iterator[Measurement]:
    yield _measured(experiment, w, "viewlet", EVERY_THOUSAND, list(w.stream.batches(BATCH)), _apply)
    yield _measured(experiment, w, "viewlet, one event a call", EVERY_EVENT, list(w.stream.events()), _change)


def _apply(db: viewlet.Database, batch: Any) -> None:
    db.apply(batch)


def _change(db: viewlet.Database, event: tuple[str, str, Row]) -> None:
    op, relation, row = event
    (db.insert if op == "+" else db.delete)(relation, row)


def _measured(
    experiment: str, w: Workload, contestant: str, freshness: str, parts: list[Any], feed: Feed
) -> Measurement:
    right = answer(w, w.stream)
    runs = [_run(w, parts, feed) for _ in range(REPETITIONS)]
    for rows, _, _ in runs:
        check(f"{w.name}, {contestant},", rows, right)
    seconds = [cpu for _, cpu, _ in runs]
    wall = min(wall for _, _, wall in runs)
    return Measurement(
        experiment,
        w.name,
        contestant,
        len(w.stream) / min(seconds),
        events=len(w.stream),
        seconds=min(seconds),
        noise=1 - min(seconds) / max(seconds),
        repetitions=REPETITIONS,
        freshness=freshness,
        rows_checked=len(right),
        note=f"{NOTE.format(REPETITIONS)}; {len(w.stream) / wall:,.0f} events/s on the wall",
    )


def _run(w: Workload, parts: list[Any], feed: Feed) -> tuple[list[Row], float, float]:
    """The answer, the CPU seconds and those of the wall."""
    with w.opened("native", wait_native=True) as db:
        wall, cpu = time.perf_counter(), time.process_time()
        for part in parts:
            feed(db, part)
        spent = time.process_time() - cpu, time.perf_counter() - wall
        return db.view(w.name).rows(), *spent
