"""Rows of elements: a relation that UNNEST made (:attr:`viewlet.schema.Relation.of`) follows from the rows of another.

Each row of that one is there once for each element of a list, which DuckDB computes of it, with the element and its
place behind it. An event of the one is the events of the other, in one update.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from viewlet.program.encoding import Row
from viewlet.program.nested import NestedReader
from viewlet.rows.door import Door
from viewlet.rows.keys import Event
from viewlet.schema import Column, Relation, list_of

Numbered = tuple[Event, int]  # an event, and the number of the one that it comes of


class Elements:
    """The rows of one such relation."""

    def __init__(self, relation: Relation, parent: Relation) -> None:
        self.relation = relation
        self._list = list_of(relation.columns[len(parent.columns)].type)
        plain = tuple(replace(column, derived="") for column in parent.columns)
        listed = Column("elements()", self._list, True, relation.unnests)
        self._lists = Door(replace(parent, columns=(*plain, listed)))
        self._door = Door(relation) if relation.derived else None

    def rows(self, parents: Sequence[Row]) -> list[list[Row]]:
        """Of each row of the parent, its rows."""
        made: list[list[Row]] = []
        for *row, text in self._lists.stored(parents):
            cells = [] if text is None else NestedReader(str(text)).items(self._list)
            made.append([(*row, cell, place) for place, cell in enumerate(cells, 1)])
        if self._door is None:
            return made
        wide = iter(list(self._door.stored([row for rows in made for row in rows])))
        return [[next(wide) for _ in rows] for rows in made]


def elements_of(relations: Iterable[Relation]) -> dict[str, list[Elements]]:
    """By parent; a parent comes before its children."""
    known = {relation.name: relation for relation in relations}
    children: dict[str, list[Elements]] = {}
    for relation in known.values():
        if relation.of:
            children.setdefault(relation.of, []).append(Elements(relation, known[relation.of]))
    return children


def with_elements(children: Mapping[str, list[Elements]], events: Sequence[Event]) -> list[Numbered]:
    """The events, each with those of its elements behind it."""
    numbered = [(event, number) for number, event in enumerate(events)]
    if not any(name in children for name, _, _ in events):
        return numbered
    behind = _behind(children, numbered)
    return [one for event, number in numbered for one in ((event, number), *behind.get(number, ()))]


def _behind(children: Mapping[str, list[Elements]], numbered: Sequence[Numbered]) -> dict[int, list[Numbered]]:
    behind: dict[int, list[Numbered]] = {}
    for name in dict.fromkeys(event[0] for event, _ in numbered if event[0] in children):
        mine = [(event, number) for event, number in numbered if event[0] == name]
        for child in children[name]:
            made = child.rows([row for (_, row, _), _ in mine])
            new = [
                ((child.relation.name, row, times), number)
                for rows, ((_, _, times), number) in zip(made, mine, strict=True)
                for row in rows
            ]
            for event, number in new:
                behind.setdefault(number, []).append((event, number))
            for number, more in _behind(children, new).items():
                behind[number] += more
    return behind


def with_element_tables(
    tables: Mapping[str, Mapping[Row, int]], relations: Iterable[Relation]
) -> dict[str, Counter[Row]]:
    """Stored rows, and those that follow from them."""
    stored = {name: Counter(rows) for name, rows in tables.items()}
    known = {relation.name: relation for relation in relations}
    for relation in known.values():
        if relation.of:
            parents = stored.get(relation.of, Counter())
            made: Counter[Row] = Counter()
            of_each = Elements(relation, known[relation.of]).rows(list(parents))
            for rows, times in zip(of_each, parents.values(), strict=True):
                for row in rows:
                    made[row] += times
            stored[relation.name] = made
    return stored
