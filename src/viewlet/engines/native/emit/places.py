"""Entries that several statements of a function use: each is looked up once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Place:
    """An entry of a map; ``name`` is that of the C++ object that looks it up once, where one does."""

    map_name: str
    key: str
    uses: int = 0
    name: str = ""

    @property
    def found(self) -> str:
        return f"{self.name}.find()" if self.name else f"{self.map_name}.find({self.key})"

    @property
    def made(self) -> str:
        return f"{self.name}.make()" if self.name else f"{self.map_name}.at({self.key})"


@dataclass
class Places:
    """The entries whose keys the event alone gives. Which of them is used twice is known when all is written."""

    known: dict[tuple[str, str], Place] = field(default_factory=dict)
    slices: list[str] = field(default_factory=list)

    def at(self, map_name: str, key: str) -> Place:
        place = self.known.setdefault((map_name, key), Place(map_name, key))
        place.uses += 1
        return place

    def in_slice(self, map_name: str, index: str, probe: str) -> None:
        """A slice whose key the event alone gives."""
        self.slices.append(f"{map_name}.foresee<{index}>({probe}, close);")

    def foreseen(self) -> list[str]:
        """C++ that fetches what the function will look up, when the event is known and its turn has not come."""
        return [f"{place.map_name}.foresee({place.key}, close);" for place in self.known.values()] + self.slices

    def declared(self, fresh: Callable[[str], str]) -> list[str]:
        """C++ for those that are used more than once; the name says of which map."""
        shared = [place for place in self.known.values() if place.uses > 1]
        for place in shared:
            place.name = fresh(f"{place.map_name}_here")
        return [declaration(place) for place in shared]


def declaration(place: Place) -> str:
    return f"Place {place.name}({place.map_name}, {place.key});"
