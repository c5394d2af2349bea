"""How far each source was read: rows of a stream that changes in the same update as the rows which were read."""

from __future__ import annotations

import zlib
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import pyarrow as pa

from viewlet.database.memory import Database
from viewlet.errors import Error
from viewlet.jobs.file import OP
from viewlet.rows import dml
from viewlet.sql.source import BETWEEN_SCRIPTS

POSITIONS = "viewlet_sources"
CREATE = (
    f"CREATE STREAM {POSITIONS} (relation VARCHAR NOT NULL, source VARCHAR NOT NULL, bytes BIGINT NOT NULL, "
    "read_rows BIGINT NOT NULL, seal BIGINT NOT NULL);"
)
SCRIPT = ("", "script")
OTHER_SCRIPT = (
    "{where} was made by another script, so nobody knows which rows its views still lack: give the script that "
    "made it, or use a new directory"
)
NOT_A_JOB = "{where} holds a database that viewlet run did not make: use a new directory"


@dataclass(frozen=True)
class Position:
    """``seal`` is a checksum: of a file, bytes before the place up to which it was read; of a script, its text."""

    relation: str
    source: str
    bytes: int = 0
    read_rows: int = 0
    seal: int = 0

    @property
    def key(self) -> tuple[str, str]:
        return self.relation, self.source


Positions = dict[tuple[str, str], Position]


def begun(db: Database, script: str, where: Path | None) -> Positions:
    """The positions in a database that keeps the script's streams and views; a new one gets the script first."""
    seal = zlib.crc32(script.strip().encode())
    relations = {relation.name: relation for relation in db.program.relations}
    if not relations and not db.program.results:
        db.execute(
            BETWEEN_SCRIPTS.join((script, CREATE, f"INSERT INTO {POSITIONS} VALUES ('', 'script', 0, 0, {seal});"))
        )
        relations = {relation.name: relation for relation in db.program.relations}
    if POSITIONS not in relations:
        raise Error(NOT_A_JOB.format(where=where))
    rows = dml.as_arrow(relations[POSITIONS], db.engine.table(POSITIONS)).to_pylist()
    positions = {position.key: position for position in (Position(**row) for row in rows)}
    if positions[SCRIPT].seal != seal:
        raise Error(OTHER_SCRIPT.format(where=where))
    return positions


def with_positions(events: pa.Table, before: Position | None, after: Position) -> pa.Table:
    """The events of one update, and at their end those that put one position in the place of another."""
    moves = [(-1, before)] * (before is not None) + [(1, after)]
    rows = [dict(zip((f.name for f in fields(p)), astuple(p), strict=True)) for _, p in moves if p is not None]
    own = pa.table(
        {
            OP: pa.array([op for op, _ in moves], events.schema.field(OP).type),
            "relation": pa.array([POSITIONS] * len(moves)),
            POSITIONS: pa.array(rows),
        }
    )
    named = events.set_column(events.column_names.index("relation"), "relation", events["relation"].cast(pa.string()))
    return pa.concat_tables([named, own], promote_options="default").combine_chunks()
