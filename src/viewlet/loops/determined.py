"""Columns of a map that are values of its groups: the other columns determine them."""

from __future__ import annotations

from collections.abc import Mapping

from viewlet.algebra.query import Bind, Sum, View, factors, inputs, outputs, relations
from viewlet.program.trigger import MapDefinition

Determined = Mapping[str, Mapping[int, frozenset[int]]]  # map → place of a value → places of the columns of its group


def determined_columns(view: MapDefinition) -> Mapping[int, frozenset[int]]:
    """The s of V[k, s] = Sum_{k,s}(Q_k ⋈ (s := Q_s[k])), and its k."""
    body = view.definition.query if isinstance(view.definition, Sum) else view.definition
    shown = outputs(view.definition)
    values = [
        f for f in factors(body) if isinstance(f, Bind) and relations(f) and f.var in shown and inputs(f) <= shown
    ]
    return {view.outputs.index(f.var): frozenset(map(view.outputs.index, inputs(f))) for f in values}


def is_determined(read: View, key: str, known: frozenset[str], columns: Determined) -> bool:
    """An entry that agrees in the columns ``known`` has no other ``key``."""
    group = columns.get(read.name, {}).get(read.outputs.index(key))
    return group is not None and all(read.outputs[place] in known for place in group)
