"""One peer on one query: start its worker, bound it, judge its answer."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from bench.engine.answers import WrongAnswerError, answer, check
from bench.engine.workload import Row, Workload
from bench.peers.contestants import Peer
from bench.peers.environment import MissingError
from bench.peers.process import bounded
from bench.results import Measurement
from viewlet.workloads.bulk import BulkStream

EXPERIMENT = "peers"
WORKERS = Path(__file__).with_name("workers")
START_SECONDS = 60.0  # for a JVM and its first job on a loaded machine
OVERRUN = 4  # times its seconds, until it is killed
LONGEST_MESSAGE = 240


class RefusedError(Exception):
    """A peer that does not maintain the query, or not rightly; the message says why."""


@dataclass(frozen=True)
class Start:
    """What a worker is started with."""

    python: Path
    folder: Path  # of the event files
    seconds: float
    address: str = ""
    environment: Mapping[str, str] | None = None
    start_seconds: float = START_SECONDS
    workers: Path = WORKERS


@dataclass(frozen=True)
class Told:
    """``events`` were timed; the answer is that of the stream's first ``taken``."""

    events: int
    taken: int
    cpu: float
    wall: float
    rows: list[list[Any]]
    note: str = ""


def race(peer: Peer, w: Workload, start: Start) -> Measurement:
    """What it did, or why not: nothing that a peer does ends the bench."""
    try:
        told = ask(peer, w, start)
        rows_checked = judge(peer, w, told)
    except RefusedError as refused:
        return without(peer, w, "refused", str(refused))
    except MissingError as missing:
        return without(peer, w, "missing", str(missing))
    total = len(_stream(peer, w))
    return Measurement(
        EXPERIMENT,
        w.name,
        peer.name,
        told.events / told.cpu,
        events=told.events,
        seconds=told.cpu,
        bounded=told.taken < total,
        reached=told.taken / total,
        freshness=peer.freshness,
        rows_checked=rows_checked,
        note="; ".join(
            filter(None, [told.note, peer.told(w.name), f"{told.events / told.wall:,.0f} events/s on the wall"])
        ),
    )


def without(peer: Peer, w: Workload, outcome: Any, why: str) -> Measurement:
    shown = " ".join(why.split())
    shown = shown if len(shown) <= LONGEST_MESSAGE else shown[: LONGEST_MESSAGE - 1] + "…"
    return Measurement(
        EXPERIMENT, w.name, peer.name, outcome=outcome, reached=0.0, freshness=peer.freshness, note=shown
    )


def ask(peer: Peer, w: Workload, start: Start) -> Told:
    """What its worker says; it is killed, with all that it started, if it says nothing for too long."""
    limit = start.start_seconds + OVERRUN * start.seconds
    with tempfile.TemporaryDirectory(prefix="viewlet-peer-") as scratch:
        task = {
            "folder": str(start.folder),
            "scratch": scratch,
            "relations": list(w.stream.relations),
            "sql": peer.sql(w.name),
            "query": w.name,
            "warm": w.warm,
            "seconds": start.seconds,
            "batch": peer.batch,
            "address": start.address,
        }
        command: list[str | Path] = [start.python, start.workers / f"{peer.worker}.py", *peer.arguments]
        ended = bounded(command, limit, json.dumps(task), start.environment)
    if ended.code is None:
        raise MissingError(f"no answer within {limit:g} s: killed")
    return _understood(ended.out, ended.err)


def _understood(out: str, err: str) -> Told:
    try:
        told = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        raise MissingError(f"it died without an answer: {_last_line(err)}") from None
    match told:
        case {"refused": str(why)}:
            raise RefusedError(why)
        case {"failed": str(why)}:
            raise MissingError(f"it failed: {why}")
        case {"events": 0}:
            raise MissingError("not one event in its time")
    return Told(**told)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "nothing was said"


def judge(peer: Peer, w: Workload, told: Told) -> int:
    """How many rows were compared with the referee's; a peer's wrong answer is a finding about the peer."""
    right = answer(w, _stream(peer, w).between(0, told.taken))
    try:
        check(peer.name, *alike(told.rows, right))
    except WrongAnswerError as wrong:
        raise RefusedError(f"wrong answer: {wrong}") from wrong
    return len(right)


def _stream(peer: Peer, w: Workload) -> BulkStream:
    if not peer.inserts_only:
        return w.stream
    s, chosen = w.stream, np.flatnonzero(w.stream.ops > 0)
    return BulkStream(s.tables, s.ops[chosen], s.codes[chosen], s.places[chosen])


def alike(told: Sequence[Sequence[Any]], right: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Both with the same types: JSON has no dates and decimals, and some peers have no decimals either.

    >>> from decimal import Decimal
    >>> alike([[1, "2.50", "1995-03-15"]], [(1, Decimal("2.50"), dt.date(1995, 3, 15))])[0]
    [(1, Decimal('2.50'), datetime.date(1995, 3, 15))]
    >>> alike([[1, 2.5]], [(1, Decimal("2.50"))])
    ([(1, 2.5)], [(1, 2.5)])
    """
    doubles = {
        column for rows in (told, right) for row in rows for column, cell in enumerate(row) if isinstance(cell, float)
    }
    kinds = [float if column in doubles else type(cell) for column, cell in enumerate(right[0])] if right else []
    try:
        return _typed(told, kinds), _typed(right, kinds)
    except (ValueError, TypeError, InvalidOperation) as odd:
        raise WrongAnswerError(f"a value of another type: {odd}") from odd


def _typed(rows: Sequence[Sequence[Any]], kinds: Sequence[type]) -> list[Row]:
    if any(len(row) != len(kinds) for row in rows):
        raise WrongAnswerError(f"rows have {len(rows[0])} columns, not {len(kinds)}")
    return [tuple(_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True)) for row in rows]


def _cell(cell: Any, kind: type) -> object:
    if cell is None or isinstance(cell, kind):
        return cell
    return dt.date.fromisoformat(cell) if kind is dt.date else kind(cell)
