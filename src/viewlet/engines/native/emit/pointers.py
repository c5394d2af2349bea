"""What C++ points to: entries of maps and trees of orders, and what is known of such a pointer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Pointer:
    """``text`` is C++ for a pointer; where ``is_object``, for the object itself that is pointed to.

    ``lookups``: how often something is looked up each time that the text stands somewhere.
    """

    text: str
    is_object: bool = False
    may_be_null: bool = False
    lookups: int = 0

    @property
    def member(self) -> str:
        """What a member's name follows."""
        return f"{self.text}." if self.is_object else f"{self.text}->"

    @property
    def object(self) -> str:
        """What it points to."""
        return self.text if self.is_object else f"*{self.text}"


class Spot(NamedTuple):
    """Where a map or an order has an entry; ``made``: the entry is made where it is not there."""

    map_name: str
    key: tuple[str, ...]
    made: bool = False


AtHand = Mapping[Spot, Pointer]


def only_entry(map_name: str) -> Pointer:
    """Of a map without a key."""
    return Pointer(f"{map_name}.only", is_object=True)
