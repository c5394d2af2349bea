"""Keys made of values, and the entries that they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from viewlet.engines.native.emit.context import Context
from viewlet.engines.native.emit.identifiers import named
from viewlet.engines.native.emit.keys import Key, probe_key, too_fine, whole_key
from viewlet.engines.native.emit.layout import Field, MapLayout, Positions
from viewlet.engines.native.emit.places import Place, Places
from viewlet.engines.native.emit.values import Cpp, Scope, value_of


@dataclass(frozen=True)
class Lookups:
    """Writes the lookups of one function."""

    context: Context
    places: Places = field(default_factory=Places)

    @contextmanager
    def representable(
        self, map_: MapLayout, names: tuple[str, ...], positions: Positions, scope: Scope
    ) -> Iterator[dict[int, Cpp]]:
        """The values at ``positions`` as fields of the key, inside tests that the key can hold them at all."""
        key = {i: self.key_field(scope[names[i]], map_.key[i]) for i in positions}
        tests = [test for i in positions for test in _fits(scope[names[i]], map_.key[i])]
        if tests:
            with self.context.out.inside(f"if ({' && '.join(tests)})"):
                yield key
        else:
            yield key

    def key_field(self, value: Cpp, to: Field) -> Cpp:
        if value.optional and not to.nullable:
            value = value_of(value)
        if value.kind == to.kind and value.optional == to.nullable:
            return value
        return self.context.terms.held(value, to.kind, to.nullable)

    def key_of(self, map_: MapLayout, names: tuple[str, ...], scope: Scope) -> dict[int, Cpp]:
        fields = zip(names, map_.key, strict=True)
        return {i: self.key_field(scope[n], f) for i, (n, f) in enumerate(fields)}

    def place(self, map_: MapLayout, names: tuple[str, ...], key: Key) -> Place:
        """Where an entry is. If the event alone gives the key, and to make it cannot fail, others may use the place."""
        text = whole_key(map_, key)
        if self.context.params.issuperset(names) and not can_fail(key):
            return self.places.at(map_.name, text)
        return Place(map_.name, text)

    def foresee_slice(self, map_: MapLayout, names: tuple[str, ...], positions: Positions, key: Key) -> None:
        if positions and self.context.params.issuperset(names[i] for i in positions) and not can_fail(key):
            self.places.in_slice(map_.name, map_.index(positions), probe_key(map_, key))

    def fill(self, map_: MapLayout, key: Key) -> None:
        """A view cache computes what it is asked for and does not hold."""
        if map_.inputs:
            given = ", ".join(key[i].text for i in range(map_.inputs))
            self.context.out.add(f"{named('fill', map_.name)}({{{given}}});")


def can_fail(key: Key) -> bool:
    """Whether a key must not be made before the tests around it."""
    return any(value.can_fail for value in key.values())


def _fits(value: Cpp, to: Field) -> list[str]:
    """Tests that a field can hold a value."""
    fits = too_fine(value_of(value) if value.optional else value, to.kind)
    if not value.optional:
        return fits
    if to.nullable:
        return [f"(is_null({value.text}) || ({' && '.join(fits)}))"] if fits else []
    return [f"!is_null({value.text})", *fits]
