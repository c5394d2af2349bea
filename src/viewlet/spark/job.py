"""What the state under a checkpoint belongs to: a script, how it is cut into cells, and how Spark knows its sources.

``job.txt`` says it. Where the job of a checkpoint has changed, its manifests say it as well: a change counts when its
manifest is there, and the file follows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from viewlet.durable.manifest import newest_manifest
from viewlet.durable.store import Store
from viewlet.errors import CorruptError, Error
from viewlet.program.trigger import Result
from viewlet.schema import CLOCK, Column, Dialect
from viewlet.spark.pipeline import Pipeline, cells_once, pipeline_of
from viewlet.spark.process.ticket import Artefact
from viewlet.sql.translate import nothing

JOB = "job.txt"
NOTHING = ""  # in place of a stream's name
EARLIER = re.compile(r"cells=(\d+) strategy=(\w+) dialect=(\w+)")  # as earlier versions wrote the options


@dataclass(frozen=True)
class Kept:
    """A stream as cells store it: what its columns are, by name, and the cells that have each of its rows once."""

    name: str  # in the cells
    relation: str
    columns: Mapping[str, str]
    cells: tuple[int, ...]

    @staticmethod
    def from_json(data: dict[str, Any]) -> Kept:
        return Kept(data["name"], data["relation"], data["columns"], tuple(data["cells"]))


@dataclass(frozen=True)
class Job:
    """``order`` names relations and views as they were ordered first: how a later script orders them does not matter.

    ``sources`` are the streams in the order in which Spark has them. ``code`` has the digests of the generated C++,
    ``given`` what the static tables were. ``kept`` says which rows cells have: another version of viewlet might cut the
    script otherwise. ``since`` says from which batch on a view has the columns that it has; ``spark`` where Spark's own
    checkpoint is, below the user's.
    """

    identity: str
    script: str
    cells: int
    strategy: str
    dialect: Dialect
    order: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    given: str = ""
    kept: tuple[Kept, ...] = ()
    since: Mapping[str, int] = field(default_factory=dict)
    spark: str = ""
    every_column: bool = False

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> Job:
        if not text.startswith("{"):
            return _earlier(text)
        data: dict[str, Any] = json.loads(text)
        lists = {name: tuple(data[name]) for name in ("order", "sources", "code")}
        return Job(**{**data, **lists, "kept": tuple(map(Kept.from_json, data["kept"]))})

    @property
    def results(self) -> dict[str, Result]:
        return {r.name: r for r in nothing(self.dialect).followed(self.script).script.results}

    def is_as(self, other: Job) -> bool:
        """Whether the state of one is the other's. Checkpoints of earlier versions do not say all of it."""
        pairs = ((self.sources, other.sources), (self.code, other.code))
        return self.identity == other.identity and all(a == b or not a or not b for a, b in pairs)


def job_of(pipeline: Pipeline, artefacts: Sequence[Artefact | None], streams: Collection[str]) -> Job:
    """``streams`` are those that have a streaming source. Where none has, Spark has one that gives nothing."""
    script = pipeline.grid.original
    read = dict.fromkeys(copy.relation for copy in pipeline.grid.copies)
    return Job(
        pipeline.identity,
        pipeline.source,
        pipeline.asked,
        pipeline.strategy,
        script.dialect,
        tuple(thing.name for things in (script.relations, script.results) for thing in things),
        tuple(name for name in read if name in streams) or (NOTHING,),
        tuple(shared.digest for made in artefacts if made for shared in made.objects.values()),
        kept=_kept(pipeline),
        every_column=pipeline.every_column,
    )


def described(column: Column) -> str:
    """Two columns whose descriptions are equal hold equal values for equal rows."""
    return f"{column.type} AS {column.derived}" if column.derived else str(column.type)


def _kept(pipeline: Pipeline) -> tuple[Kept, ...]:
    relations, grid = pipeline.relations, pipeline.grid
    copies = [copy for copy in grid.copies if not copy.static and copy.relation != CLOCK.name]
    columns = {c.name: {col.name: described(col) for col in relations[c.relation].columns} for c in copies}
    return tuple(
        Kept(c.name, c.relation, {n: columns[c.name][n] for n in c.columns}, cells_once(grid, c)) for c in copies
    )


def _earlier(text: str) -> Job:
    """As earlier versions wrote it. They cut a script as this one does."""
    identity, options, script = text.split("\n", 2)
    found = EARLIER.match(options)
    assert found is not None, "earlier versions wrote options so"
    made = pipeline_of(script, int(found[1]), found[2], cast(Dialect, found[3]))
    job = replace(job_of(made, (), ()), sources=())
    return job if identity == made.identity_with_text else replace(job, identity=identity)


# -- of a checkpoint ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """``text`` is how its manifests say the job: not at all before its first change."""

    job: Job
    text: str


def standing_job(checkpoint: str) -> Standing | None:
    """The job that the newest state is of; None where there is none. A change that was cut short is finished."""
    store = Store.of(checkpoint)
    known = _known(store)
    if known is None:
        return None
    newest = None
    with suppress(CorruptError):
        newest = newest_manifest(store)
    if newest is not None and newest.job and newest.job != known:
        store.write(JOB, newest.job.encode())
        known = newest.job
    return Standing(Job.from_text(known), newest.job if newest is not None else "")


def begin_job(checkpoint: str, job: Job) -> None:
    Store.of(checkpoint).write(JOB, job.to_text().encode())


def _known(store: Store) -> str | None:
    try:
        return bytes(store.read(JOB)).decode()
    except FileNotFoundError:
        return None


def known_job(checkpoint: str) -> Job:
    known = _known(Store.of(checkpoint))
    if known is None:
        raise Error(f"{checkpoint} holds no state of a maintained script")
    return Job.from_text(known)


def spark_place(checkpoint: str) -> str:
    """Where Spark's own checkpoint is: at the user's, until a change gave it other sources."""
    known = _known(Store.of(checkpoint))
    below = Job.from_text(known).spark if known is not None and known.startswith("{") else ""
    return f"{checkpoint.rstrip('/')}/{below}" if below else checkpoint
