"""Where the engines in Python keep their views: a GMR as a dictionary, and the view cache of §5.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from viewlet.algebra.evaluate import UNBOUND
from viewlet.algebra.terms import exact
from viewlet.engines.exact.tree import Held, Ordered

Content = dict[Held, Any]  # ↦ the multiplicity, a number or its units
Positions = tuple[int, ...]
Index = dict[Any, dict[Held, None]]  # the value at a position, or the values at some, ↦ the keys that have them


class Map:
    """t⃗ ↦ multiplicity with finite support; a slice costs its matches, through an index made when first asked for.

    Generated code changes values in ``content`` itself and comes here only where a key comes or goes.
    """

    def __init__(self, entries: Mapping[Held, Any] | None = None) -> None:
        self.content: Content = {}
        self._indexes: dict[Positions, Index] = {}
        self._places: list[tuple[Callable[[Held], Any], Index]] = []
        self._orders: dict[tuple[Positions, int], Ordered] = {}
        self.update(entries or {})

    def __len__(self) -> int:
        return len(self.content)

    def __getitem__(self, key: Held) -> Any:
        return self.content.get(key, 0)

    def entries(self) -> Content:
        return dict(self.content)

    def slice(self, positions: Positions, bound: Any) -> list[tuple[Held, Any]]:
        """The entries that have ``bound`` at ``positions``: the value at one, a tuple of those at several."""
        content = self.content
        return [(key, content[key]) for key in self.index(positions).get(bound, ())]

    def add(self, key: Held, m: Any) -> None:
        """R(t⃗) += m."""
        before = self.content.get(key)
        if before is None:
            self.create(key, exact(m))
        elif after := exact(before + m):
            self.content[key] = after
            self._touch(key)
        else:
            self.drop(key)

    def create(self, key: Held, m: Any) -> None:
        """R(t⃗) += m where R(t⃗) is 0."""
        if m:
            self.content[key] = m
            for at, index in self._places:
                index.setdefault(at(key), {})[key] = None
            self._touch(key)

    def drop(self, key: Held) -> None:
        """R(t⃗) := 0 where it is not."""
        del self.content[key]
        for at, index in self._places:
            bound = at(key)
            keys = index[bound]
            del keys[key]
            if not keys:
                del index[bound]
        self._touch(key)

    def update(self, entries: Mapping[Held, Any]) -> None:
        """R += S."""
        for key, m in entries.items():
            self.add(key, m)

    def replace(self, entries: Mapping[Held, Any]) -> None:
        """R := S. The dictionaries stay the same objects: generated code holds on to them."""
        for order in self._orders.values():
            order.touched |= dict.fromkeys(self.content)
        self.content.clear()
        for index in self._indexes.values():
            index.clear()
        self.update(entries)

    def read(self, pattern: Held) -> Iterator[tuple[Held, Any]]:
        """The entries that agree with the pattern, where NULL agrees with NULL."""
        positions = tuple([i for i, p in enumerate(pattern) if p is not UNBOUND])
        if not positions:
            yield from self.content.items()
        elif len(positions) == len(pattern):
            if (m := self.content.get(pattern)) is not None:
                yield pattern, m
        else:
            yield from self.slice(positions, itemgetter(*positions)(pattern))

    def ordered(self, slice_at: Positions, key_at: int) -> Ordered:
        """The entries in the order of one column, for each slice. Code that changes a value must then touch its key."""
        if (slice_at, key_at) not in self._orders:
            self._orders[slice_at, key_at] = Ordered(self.content, slice_at, key_at)
        return self._orders[slice_at, key_at]

    def _touch(self, key: Held) -> None:
        for order in self._orders.values():
            order.touched[key] = None

    def index(self, positions: Positions) -> Index:
        if positions not in self._indexes:
            at, index = itemgetter(*positions), Index()
            for key in self.content:
                index.setdefault(at(key), {})[key] = None
            self._indexes[positions] = index
            self._places.append((at, index))
        return self._indexes[positions]


class Guarded(Map):
    """A map that tells of each key that comes and is not ``fit`` to stay."""

    def __init__(self, fit: Callable[[Held], bool], tell: Callable[[Held], None]) -> None:
        self._fit, self._tell = fit, tell
        super().__init__()

    def create(self, key: Held, m: Any) -> None:
        super().create(key, m)
        if m and not self._fit(key):
            self._tell(key)


class Cache:
    """M_Q[x⃗_in][x⃗_out]: for each input tuple that was ever read, a map over the outputs, kept and maintained (§5.1).

    ``fill`` computes the map of an input tuple that is not held, from other views.
    """

    def __init__(self, inputs: int, fill: Callable[[Held], Content]) -> None:
        self._inputs, self._fill = inputs, fill
        self._maps: dict[Held, Map] = {}

    def held(self) -> list[Held]:
        return list(self._maps)

    def __getitem__(self, given: Held) -> Map:
        """The map of an input tuple; one that is not held is computed, then held."""
        if given not in self._maps:
            self._maps[given] = Map(self._fill(given))
        return self._maps[given]

    def drop(self, given: Iterable[Held]) -> None:
        """Forget input tuples: always right, they are filled again when read."""
        for key in given:
            del self._maps[key]

    def entries(self) -> Content:
        return {given + key: m for given, outputs in self._maps.items() for key, m in outputs.content.items()}

    def read(self, pattern: Held) -> Iterator[tuple[Held, Any]]:
        n = self._inputs
        given = pattern[:n]
        assert UNBOUND not in given, "a view cache is read with its inputs bound"
        for key, m in self[given].read(pattern[n:]):
            yield given + key, m
