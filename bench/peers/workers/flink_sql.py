"""Flink SQL in one JVM, driven through the gateway of PyFlink; one task, mini-batches off.

All relations come from one file in the order of the events: from a file each, Flink would read them at a pace of their
own, and rows would be gone again before anything was joined with them. A run whose changes go to a file is checked; the
one that is timed, over the same events, throws them away, since writing them would cost more than making them. What
it takes to start a job, a run over a few events, is taken off.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.version import __version__
from worker import FIRST, Clock, RefusedError, Run, Task, longest_beginning, work

TYPES = {
    "int64": "BIGINT",
    "int32": "INT",
    "string": "STRING",
    "double": "DOUBLE",
    "date32[day]": "DATE",
    "decimal128(12, 2)": "DECIMAL(12,2)",
}
SHORTEST = 0.25  # of what starting a job takes: less is noise
NOWHERE = "'connector' = 'blackhole'"
CHANGES = "'connector' = 'filesystem', 'path' = '{path}', 'format' = 'debezium-json'"
CREATE_OR_DELETE = {1: '{{"before":null,"after":{},"op":"c"}}\n', -1: '{{"before":{},"after":null,"op":"d"}}\n'}


class Job:
    """The query over a beginning of the stream, from nothing."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._sql = re.sub(r"DATE\(('[^']*')\)", r"DATE \1", task.sql)  # it has no such function, but dates
        self._rows = {
            name: [json.dumps({"relation": name, name: row}, default=str) for row in table.to_pylist()]
            for name, table in task.tables.items()
        }
        java = get_gateway().jvm.org.apache.flink.table.api
        self._flink = java.TableEnvironment.create(java.EnvironmentSettings.newInstance().inStreamingMode().build())
        self._flink.getConfig().set("parallelism.default", "1")
        self._count = 0
        self.changes = task.scratch

    def run(self, events: int) -> float:
        """Its changes to files."""
        self.changes = self._task.scratch / f"changes-{self._count}"
        return self.timed(events, CHANGES.format(path=self.changes.as_uri())).cpu

    def timed(self, events: int, sink: str = NOWHERE) -> Run:
        self._count += 1
        self._declare(self._written(events))
        result = self._answer_table(sink)
        clock = Clock()
        getattr(self._flink.executeSql(f"INSERT INTO {result} {self._sql}"), "await")()
        return Run(events, events, clock.cpu, clock.wall, ())

    def _written(self, events: int) -> Path:
        file = self._task.scratch / f"events-{self._count}.json"
        with file.open("w") as out:
            for op, name, place in self._task.events[:events]:
                out.write(CREATE_OR_DELETE[op].format(self._rows[name][place]))
        return file

    def _declare(self, file: Path) -> None:
        """One table of all events; each relation is a view of it."""
        columns = {name: self._task.columns(name, TYPES) for name in self._task.relations}
        rows = [f"{n} ROW<{', '.join(f'{c} {kind}' for c, kind in its.items())}>" for n, its in columns.items()]
        source = CHANGES.format(path=file.as_uri())
        self._flink.executeSql("DROP TABLE IF EXISTS events")
        self._flink.executeSql(f"CREATE TABLE events (relation STRING, {', '.join(rows)}) WITH ({source})")
        for name, its in columns.items():
            fields = ", ".join(f"e.{name}.{column} AS {column}" for column in its)
            self._flink.executeSql(f"DROP VIEW IF EXISTS {name}")
            self._flink.executeSql(f"CREATE VIEW {name} AS SELECT {fields} FROM events e WHERE relation = '{name}'")

    def _answer_table(self, sink: str) -> str:
        name = f"answer_{self._count}"
        columns = ", ".join(f"{c.getName()} {c.getDataType().nullable()}" for c in self._schema())
        self._flink.executeSql(f"CREATE TABLE {name} ({columns}) WITH ({sink})")
        return name

    def _schema(self) -> Iterable[Any]:
        try:
            return self._flink.sqlQuery(self._sql).getResolvedSchema().getColumns()  # type: ignore[no-any-return]
        except Exception as refused:
            raise RefusedError(_root(str(refused))) from refused

    def rows(self) -> list[list[Any]]:
        """What the changes in the files add up to."""
        count: Counter[str] = Counter()
        for file in filter(Path.is_file, self.changes.rglob("*")):
            for row, times in _changes(file):
                count[row] += times
        return [list(json.loads(row, parse_float=str).values()) for row in count.elements()]


def _changes(file: Path) -> Iterator[tuple[str, int]]:
    with file.open() as lines:
        for line in lines:
            before, _, rest = line.removeprefix('{"before":').partition(',"after":')
            after = rest.rpartition(',"op":')[0]
            yield (after, 1) if before == "null" else (before, -1)


def _root(message: str) -> str:
    """The last cause is what happened; the rest is where."""
    causes = [line for line in message.splitlines() if line.startswith("Caused by:")]
    return causes[-1] if causes else message


def maintained(task: Task) -> Run:
    job = Job(task)
    events = longest_beginning(len(task.events), task.seconds, job.run)
    rows, timed, start = job.rows(), job.timed(events), job.timed(FIRST)
    cpu, wall = timed.cpu - start.cpu, timed.wall - start.wall
    if cpu < SHORTEST * start.cpu or wall <= 0:
        raise RuntimeError(f"in its time it came to {events} events, which cost no more than starting a job")
    return Run(events - FIRST, events, cpu, wall, rows, f"Flink {__version__}")


if __name__ == "__main__":
    work(maintained)
