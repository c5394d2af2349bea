"""What changed since somebody last asked, also where all views were built again meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.engines.native.bridge import ArrowRows, NativeState
from viewlet.engines.native.emit.watch import Watched
from viewlet.engines.native.module import Asked, Changed, Feeds, Show
from viewlet.errors import Error, OutOfRangeError


class Answers:
    """A fresh engine has told nothing: its first answer is all that is there.

    The program itself tells changes at the cost of what changed. When its views are built again (rows of a static table
    came, an update failed and was undone) it knows of nothing before: what it had told until then is set aside, and the
    next answer is the difference to that, at the cost of all rows.
    """

    def __init__(self, state: NativeState, watched: Watched) -> None:
        self._state = state
        self._numbers = {("result", name): i for i, name in enumerate(watched.results)}
        self._numbers |= {("view", name): i + len(watched.results) for i, name in enumerate(watched.views)}
        self._told: dict[int, pa.StructArray | OutOfRangeError | None] = dict.fromkeys(self._numbers.values())

    def knows(self, kind: str, name: str) -> bool:
        return (kind, name) in self._numbers

    def changes(self, kind: str, name: str) -> ArrowRows:
        if (kind, name) not in self._numbers:
            raise Error(f"{name}: the program was not compiled to tell what changes there; compare all rows instead")
        number = self._numbers[kind, name]
        if number not in self._told:
            return self._state.changes(number)
        told = self._told[number]
        if isinstance(told, OutOfRangeError):
            raise told
        self._state.changes(number)
        changed = difference(told, pa.array(self._state.standing(number)))
        del self._told[number]
        return ArrowRows(*changed.__arrow_c_array__())

    def asking(self, shown: Mapping[str, tuple[Show, ...]]) -> Asked:
        """What :meth:`told` is asked of some results; ``shown`` says how the cells of their columns are shown."""
        return tuple((self._numbers["result", name], name, cells) for name, cells in shown.items())

    def told(self, asked: Asked) -> list[Changed] | None:
        """Of results that changed: the same as (weight, row), what went first. None where something was set aside."""
        return None if self._told else self._state.told(asked)

    def feeds(self, pending: Collection[object], asked: Asked, takers: Mapping[str, tuple[Any, ...]]) -> Feeds:
        """How machine code itself hands the changes of some results to those who iterate over them."""
        views = tuple((number, shown, takers[name]) for number, name, shown in asked)
        return self._state.feeds(self._told, pending, views)

    def standing(self, kind: str, name: str) -> ArrowRows:
        """What all changes told so far come to; some must have been asked for."""
        return self._state.standing(self._numbers[kind, name])

    def set_aside(self) -> None:
        """Before the program's state goes."""
        for number in self._numbers.values():
            if number not in self._told:
                try:
                    self._told[number] = pa.array(self._state.standing(number))
                except OutOfRangeError as error:  # of a row that nobody could be told of
                    self._told[number] = error

    def all_told(self) -> None:
        """Nothing changed so far."""
        self._told.clear()

    def forget(self) -> None:
        """What is there now counts as told."""
        self._state.forget()
        self._told.clear()


def difference(before: pa.StructArray | None, after: pa.StructArray) -> pa.StructArray:
    """Both are rows with a weight first: those that are not as often in both, with how often they came or went."""
    fields, names = list(after.type), [str(i) for i in range(after.type.num_fields)]
    columns = [after.flatten()]
    if before is not None:
        weights, *cells = before.flatten()
        columns.append([pc.negate(weights), *cells])
    all_rows = pa.concat_tables([pa.Table.from_arrays(c, names) for c in columns])
    summed = all_rows.group_by(names[1:]).aggregate([(names[0], "sum")])
    changed = summed.filter(pc.not_equal(summed[f"{names[0]}_sum"], 0)).combine_chunks()
    chunked = [changed[f"{names[0]}_sum"], *(changed[name] for name in names[1:])]
    arrays = [c.chunk(0) if c.num_chunks else pa.array([], f.type) for c, f in zip(chunked, fields, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields)
