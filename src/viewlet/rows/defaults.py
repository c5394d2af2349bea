"""DEFAULT: the value of a column that a dict, a frame or an Arrow table does not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from viewlet.duck import connection
from viewlet.rows import arrow
from viewlet.rows.boundary import is_one_row
from viewlet.schema import Relation


class Defaults:
    """Of all relations that have some."""

    def __init__(self, relations: Iterable[Relation]) -> None:
        self._relations = {r.name: r for r in relations if any(column.default for column in r.columns)}
        self._values = {name: _values(relation) for name, relation in self._relations.items()}

    def __contains__(self, name: object) -> bool:
        return name in self._relations

    def __bool__(self) -> bool:
        return bool(self._relations)

    def filled(self, name: str, data: Any) -> Any:
        """One row or many, with the values that they do not give."""
        if name not in self._relations or (is_one_row(data, self._relations[name]) and not isinstance(data, Mapping)):
            return data
        if isinstance(data, Mapping):
            return {**self._values[name], **data}
        if arrow.is_arrow(data):
            return self._table(name, arrow.as_table(data, name))
        if isinstance(data, str) or not isinstance(data, Iterable):
            return data
        return [{**self._values[name], **row} if isinstance(row, Mapping) else row for row in data]

    def filled_events(self, events: Any) -> Any:
        """Events (op, relation, row)."""
        triples = arrow.events(events) if arrow.is_arrow(events) else events
        if not self._relations or not isinstance(triples, Iterable):
            return events
        return [self._event(event) for event in triples]

    def _event(self, event: Any) -> Any:
        is_event = isinstance(event, (tuple, list)) and len(event) == 3 and event[1] in self
        return (*event[:2], self.filled(event[1], event[2])) if is_event and isinstance(event[2], Mapping) else event

    def _table(self, name: str, table: pa.Table) -> pa.Table:
        there = {column.lower() for column in table.column_names}
        for column in self._relations[name].given:
            if column.default and column.name not in there:
                values = arrow.written([self._values[name][column.name]], column.type)
                one = pa.array(values, arrow.arrow_type(column.type))
                table = table.append_column(column.name, one.take(pa.array([0] * table.num_rows, pa.int64())))
        return table


def _values(relation: Relation) -> dict[str, Any]:
    columns = [column for column in relation.columns if column.default]
    listed = ", ".join(f"CAST({column.default} AS {column.type})" for column in columns)
    (values,) = connection().sql(f"SELECT {listed}").fetchall()
    return dict(zip((column.name for column in columns), values, strict=True))
