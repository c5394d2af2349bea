"""Sinks that follow the views of a query, in the driver's process: they die with it, and go on with the next one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psycopg
from pyspark.sql.streaming.query import StreamingQuery

from tests.oracle.oracle import Row
from tests.spark.drive import Drive
from tests.spark.harness import shown
from viewlet.spark.sinks import Sink, parquet, postgres, read_view

COMPACT_EVERY = 7  # micro-batches: a campaign sees many compactions


@dataclass(frozen=True)
class Follower:
    """``view`` kept by a sink. ``url`` is None for files, else that of a database with a table named as the view."""

    view: str
    folder: Path
    url: str | None = None
    key: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.view} in {'PostgreSQL' if self.url else 'Parquet'}"

    @property
    def sink(self) -> Sink:
        if self.url is None:
            return parquet(str(self.folder / "rows"), COMPACT_EVERY)
        return postgres(self.url, self.view, self.key)


_running: dict[str, StreamingQuery] = {}  # of the driver that this process is


def keep_following(drive: Drive, query: str, followers: list[Follower]) -> list[str]:
    """Start those that do not run. Says why the ones ended that ran before."""
    ended = [str(running.exception()) for running in _running.values() if not running.isActive]
    for follower in followers:
        running = _running.get(follower.name)
        if running is None or not running.isActive:
            stream = drive.running[query].changes(follower.view).writeStream.foreachBatch(follower.sink)
            place = str(follower.folder / "checkpoint")
            _running[follower.name] = stream.option("checkpointLocation", place).start()
    return ended


def stop_following(drive: Drive) -> None:
    while _running:
        _running.popitem()[1].stop()


def kept(drive: Drive, follower: Follower) -> list[Row]:
    """What the sink holds now."""
    if follower.url is None:
        return shown(read_view(drive.spark, str(follower.folder / "rows")))
    with psycopg.connect(follower.url) as connection:
        return list(map(tuple, connection.execute(f"SELECT * FROM {follower.view}".encode()).fetchall()))
