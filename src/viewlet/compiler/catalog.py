"""The views of one compilation: each definition once, modulo names (§5.1, duplicate view elimination)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from viewlet.algebra.canonical import canonical
from viewlet.algebra.query import Query, View, inputs, outputs, relations, rename, variables
from viewlet.program.trigger import MapDefinition


@dataclass
class Catalog:
    """``pending`` are the views whose triggers are still to be compiled, in the order they were asked for."""

    reserved: frozenset[str] = frozenset()  # names of relations
    views: dict[str, MapDefinition] = field(default_factory=dict)
    by_shape: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)  # → name, label ↦ its variable
    shapes: dict[Query, tuple[str, dict[str, str]]] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    serves: dict[str, str] = field(default_factory=dict)  # view → the user's view it was first made for

    def root(self, name: str, definition: Query, why: str, serving: str = "") -> View:
        """The view of a query the user asked for, or of a part of it; another view's, if one is equal."""
        view = self._find(definition)
        if view is None:
            view = self._add(name, definition, why)
            self.serves[view.name] = serving or view.name
        return view

    def view_of(self, definition: Query, serving: str, why: str) -> View:
        """The view of an auxiliary query, named after the user's view it serves and the relations it reads."""
        view = self._find(definition)
        if view is None:
            stem = "_".join([self.serves[serving], *sorted(relations(definition))])
            view = self._add(stem, readable(definition), why, reading=definition)
            self.serves[view.name] = self.serves[serving]
        return view

    def shape(self, definition: Query) -> str:
        """What the definition looks like but for names."""
        return self._shape(definition)[0]

    def _shape(self, definition: Query) -> tuple[str, dict[str, str]]:
        if definition not in self.shapes:
            self.shapes[definition] = canonical(definition)
        return self.shapes[definition]

    def _find(self, definition: Query) -> View | None:
        shape, labels = self._shape(definition)
        if shape not in self.by_shape:
            return None
        name, theirs = self.by_shape[shape]
        ours = {label: v for v, label in labels.items()}
        back = {variable: ours[label] for label, variable in theirs.items()}
        view = self.views[name]
        return View(name, tuple(back[v] for v in view.inputs), tuple(back[v] for v in view.outputs))

    def _add(self, stem: str, definition: Query, why: str, reading: Query | None = None) -> View:
        stem = re.sub(r"^(?=\d)|\W", "_", stem)  # SQL may call a view anything
        name = next(n for n in _numbered(stem) if n not in self.views and n not in self.reserved)
        ins, outs = tuple(sorted(inputs(definition))), tuple(sorted(outputs(definition) - inputs(definition)))
        self.views[name] = MapDefinition(name, ins, outs, definition, why)
        shape, labels = self._shape(definition)
        self.by_shape[shape] = name, {label: v for v, label in labels.items()}
        self.pending.append(name)
        if reading is None:
            return self.views[name].read
        read = self._find(reading)
        assert read is not None, f"{reading.text} and {definition.text} differ in more than names"
        return read


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    for i in count(2):
        yield f"{stem}_{i}"


def readable(definition: Query) -> Query:
    """A definition whose variables are named after columns: parameters lose their @, aliases their prefix."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for v in sorted(variables(definition)):
        short = re.sub(r"^(?=\d)|\W", "_", v.removeprefix("@").split(".")[-1])
        names[v] = next(n for n in _numbered(short) if n not in taken)
        taken.add(names[v])
    return rename(definition, names)
