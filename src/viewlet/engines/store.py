"""Where the interpreter keeps its views: a GMR as a dictionary, and the view cache of §5.1."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping

from viewlet.algebra.evaluate import UNBOUND, Entries, Key, Pattern, Reader, evaluate
from viewlet.algebra.query import Query
from viewlet.algebra.terms import Number, exact
from viewlet.program.trigger import ViewDefinition

Positions = tuple[int, ...]
Index = dict[Key, dict[Key, None]]  # bound values ↦ the keys that have them, in the order they came


class Map:
    """t⃗ ↦ multiplicity with finite support; a slice costs its matches, through an index made when first asked for."""

    def __init__(self, entries: Mapping[Key, Number] | None = None) -> None:
        self._entries: Entries = {}
        self._indexes: dict[Positions, Index] = {}
        self.update(entries or {})

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, key: Key) -> Number:
        return self._entries.get(key, 0)

    def entries(self) -> Entries:
        return dict(self._entries)

    def get(self, key: Key) -> Number | None:
        return self._entries.get(key)

    def items(self) -> ItemsView[Key, Number]:
        return self._entries.items()

    def slice(self, positions: Positions, bound: Key) -> list[tuple[Key, Number]]:
        """The entries that have the values ``bound`` at ``positions``."""
        entries = self._entries
        return [(key, entries[key]) for key in self._index(positions).get(bound, ())]

    def add(self, key: Key, m: Number) -> None:
        """R(t⃗) += m."""
        before = self._entries.get(key)
        after = exact((before or 0) + m)
        if after != 0:
            self._entries[key] = after
            if before is None:
                for positions, index in self._indexes.items():
                    index.setdefault(_at(key, positions), {})[key] = None
        elif before is not None:
            del self._entries[key]
            self._unindex(key)

    def update(self, entries: Mapping[Key, Number]) -> None:
        """R += S."""
        for key, m in entries.items():
            self.add(key, m)

    def replace(self, entries: Mapping[Key, Number]) -> None:
        """R := S. The dictionaries stay the same objects: generated code holds on to them."""
        self._entries.clear()
        for index in self._indexes.values():
            index.clear()
        self.update(entries)

    def read(self, pattern: Pattern) -> Iterator[tuple[Key, Number]]:
        """The entries that agree with the pattern, where NULL agrees with NULL."""
        positions = tuple([i for i, p in enumerate(pattern) if p is not UNBOUND])
        if not positions:
            yield from self._entries.items()
        elif len(positions) == len(pattern):
            if (m := self._entries.get(pattern)) is not None:  # type: ignore[arg-type]
                yield pattern, m  # type: ignore[misc]
        else:
            yield from self.slice(positions, _at(pattern, positions))

    def _index(self, positions: Positions) -> Index:
        if positions not in self._indexes:
            index = self._indexes[positions] = {}
            for key in self._entries:
                index.setdefault(_at(key, positions), {})[key] = None
        return self._indexes[positions]

    def _unindex(self, key: Key) -> None:
        for positions, index in self._indexes.items():
            bound = _at(key, positions)
            del index[bound][key]
            if not index[bound]:
                del index[bound]


def _at(key: Pattern, positions: Positions) -> Key:
    return tuple([key[i] for i in positions])  # type: ignore[misc]


class Cache:
    """M_Q[x⃗_in][x⃗_out]: for each input tuple that was ever read, a map over the outputs, kept and maintained (§5.1)."""

    def __init__(self, view: ViewDefinition, read: Reader) -> None:
        assert view.fill is not None, f"{view.name} says no way to compute a missing entry"
        self._inputs, self._outputs = view.inputs, view.outputs
        self._fill: Query = view.fill
        self._read = read
        self._maps: dict[Key, Map] = {}

    def held(self) -> list[Key]:
        return list(self._maps)

    def __getitem__(self, given: Key) -> Map:
        """The map of an input tuple; one that is not held is computed from other views, then held."""
        if given not in self._maps:
            env = dict(zip(self._inputs, given, strict=True))
            self._maps[given] = Map(evaluate(self._fill, self._read, self._outputs, env))
        return self._maps[given]

    def drop(self, given: Iterable[Key]) -> None:
        """Forget input tuples: always right, they are filled again when read."""
        for key in given:
            del self._maps[key]

    def entries(self) -> Entries:
        return {given + key: m for given, outputs in self._maps.items() for key, m in outputs.entries().items()}

    def read(self, pattern: Pattern) -> Iterator[tuple[Key, Number]]:
        n = len(self._inputs)
        given = _at(pattern, tuple(range(n)))
        assert UNBOUND not in given, "a view cache is read with its inputs bound"
        for key, m in self[given].read(pattern[n:]):
            yield given + key, m
