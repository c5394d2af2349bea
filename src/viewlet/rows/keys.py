"""PRIMARY KEY and UNIQUE: the rows of a relation by their keys, so that no two have the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from viewlet.errors import DataError, in_short
from viewlet.program.encoding import Row, Stored
from viewlet.rows.boundary import value_of
from viewlet.schema import Relation

Event = tuple[str, Row, int]  # a relation, a row of it, and how often it comes (or goes)
Given = Callable[[int], object]  # a row of an update by its number, as the user wrote it
Find = Callable[[str, int, Row], Row | None]  # a relation, the number of a key, a row's cells that are in it ↦ the row
Draft: TypeAlias = dict["Key", dict[Row, Row | None]]  # what an update makes of the rows by their keys


class Key:
    """Columns of a relation, and the row that has each value of them; ``table`` is asked once, when it is needed."""

    def __init__(self, relation: Relation, columns: tuple[str, ...], table: Callable[[str], Iterable[Row]]) -> None:
        names = [c.name for c in relation.columns]
        self.relation, self.columns = relation.name, columns
        self._at = [names.index(column) for column in columns]
        self._types = [relation.columns[i].type for i in self._at]
        self._table: Callable[[str], Iterable[Row]] | None = table
        self._rows: dict[Row, Row] = {}

    def value(self, row: Row) -> Row | None:
        """None where a NULL is in it: it is equal to no other."""
        key = tuple([row[i] for i in self._at])
        return None if None in key else key

    @property
    def rows(self) -> dict[Row, Row]:
        if self._table is not None:
            known = ((self.value(row), row) for row in map(one_nan, self._table(self.relation)))
            self._rows = {value: row for value, row in known if value is not None}
            self._table = None
        return self._rows

    def holder(self, value: Row) -> Row | None:
        """The row that is there with this value."""
        return self.rows.get(value)

    def follow(self, other: Key) -> None:
        """Go on from the same key of a session before, over the same rows."""
        if other._table is None:
            self._rows, self._table = other._rows, None

    def commit(self, draft: Mapping[Row, Row | None]) -> None:
        for value, row in draft.items():
            if row is None:
                self.rows.pop(value, None)
            else:
                self.rows[value] = row

    def shown(self, value: Row) -> str:
        names, values = (
            ", ".join(self.columns),
            ", ".join(repr(value_of(cell, t)) for cell, t in zip(value, self._types, strict=True)),
        )
        return f"{names} = {values}" if len(value) == 1 else f"({names}) = ({values})"


class FoundKey(Key):
    """A key by which an engine finds its rows: nothing is kept here."""

    def __init__(self, relation: Relation, columns: tuple[str, ...], number: int, find: Find) -> None:
        super().__init__(relation, columns, lambda name: ())
        self._width, self._find = len(relation.columns), partial(find, relation.name, number)

    def holder(self, value: Row) -> Row | None:
        cells: list[Stored] = [None] * self._width
        for place, cell in zip(self._at, value, strict=True):
            cells[place] = cell
        found = self._find(tuple(cells))
        return None if found is None else one_nan(found)

    def follow(self, other: Key) -> None:
        pass

    def commit(self, draft: Mapping[Row, Row | None]) -> None:
        pass


class Keys:
    """The keys of all relations. An update is checked first, and counts once it is in."""

    def __init__(self, relations: Iterable[Relation], table: Callable[[str], Iterable[Row]]) -> None:
        self._keys = {r.name: [Key(r, columns, table) for columns in r.keys] for r in relations if r.keys}
        self._draft: Draft = {}

    def find(self, relations: Iterable[Relation], find: Find) -> None:
        """An engine finds the rows of these relations by their keys."""
        for relation in relations:
            keys = enumerate(relation.keys)
            self._keys[relation.name] = [FoundKey(relation, columns, number, find) for number, columns in keys]

    def follow(self, other: Keys) -> None:
        """Go on from the keys of a session before, over the same rows."""
        before = {(key.relation, key.columns): key for keys in other._keys.values() for key in keys}
        for key in (key for keys in self._keys.values() for key in keys):
            if (key.relation, key.columns) in before:
                key.follow(before[key.relation, key.columns])

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __contains__(self, relation: str) -> bool:
        return relation in self._keys

    def holders(self, relation: str, row: Row) -> list[Row]:
        """The rows that have one of their keys in common with ``row``; that of the primary key comes first."""
        rows = [key.holder(value) for key in self._keys[relation] if (value := key.value(row)) is not None]
        return list(dict.fromkeys(row for row in rows if row is not None))

    def primary(self, relation: str, value: Row) -> Row | None:
        """The row with this primary key."""
        return self._keys[relation][0].holder(value)

    def check(self, changes: Iterable[Event], given: Given, numbers: Sequence[int] | None = None) -> None:
        """Refuse a row whose key is there already. The order counts: what left before may come again.

        ``numbers`` are those of the rows that the user gave, where each is not one change.
        """
        self._draft = {}
        draft: Draft = {}
        for place, change in enumerate(changes):
            row = _Named(given, place, place if numbers is None else numbers[place])
            for key in self._keys.get(change[0], ()):
                _take(key, draft.setdefault(key, {}), change, row)
        self._draft = draft

    def commit(self) -> None:
        """The update that was checked last is in."""
        for key, draft in self._draft.items():
            key.commit(draft)
        self._draft = {}

    def forget(self) -> None:
        """The update that was checked last is not in."""
        self._draft = {}

    def upserts(self, relation: str, rows: Iterable[Row]) -> tuple[list[Event], list[int]]:
        """Rows that come, and those that go for them; of several with one key the last one stays.

        And of each the number of the row that it came for.
        """
        key = self._keys[relation][0]
        last: dict[Row, tuple[Row, int]] = {}
        for number, row in enumerate(rows):
            value = key.value(row)
            assert value is not None, "a primary key has no NULL"
            last[value] = row, number
        there = {value: key.holder(value) for value in last}
        comes = [(row, number, there[value]) for value, (row, number) in last.items() if there[value] != row]
        goes = [((relation, held, -1), number) for _, number, held in comes if held is not None]
        both = [*goes, *(((relation, row, 1), number) for row, number, _ in comes)]
        return [event for event, _ in both], [number for _, number in both]


@dataclass(frozen=True, slots=True)
class _Named:
    """A change for a message: its place among the changes, and its number among the rows that the user gave."""

    given: Given
    place: int
    number: int

    @property
    def value(self) -> object:
        return self.given(self.place)


def _take(key: Key, draft: dict[Row, Row | None], change: Event, named: _Named) -> None:
    name, row, times = change
    value = key.value(row)
    if value is None or not times:
        return
    there = draft[value] if value in draft else key.holder(value)
    if times > 0 and (there is not None or times > 1):
        why = "is there already" if there is not None else f"would be there {times} times"
        column = key.columns[0] if len(key.columns) == 1 else None
        message = f"a row with {key.shown(value)} {why}: {in_short(named.value)}"
        raise DataError(message, relation=name, row=named.number, column=column, value=named.value)
    if times < 0 and (there != row or times < -1):
        raise DataError(f"{in_short(named.value)} is not there", relation=name, row=named.number, value=named.value)
    draft[value] = row if times > 0 else None


def one_nan(row: Row) -> Row:
    """NaN is equal to itself as a key, which Python's is only as the same object."""
    return tuple([_one_nan(cell) for cell in row]) if any(cell != cell for cell in row) else row


def _one_nan(cell: Stored) -> Stored:
    return math.nan if cell != cell else cell
