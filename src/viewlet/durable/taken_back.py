"""Batches that were taken back: ``taken-back/<n>.json`` says so of the n-th time, to those who follow the views.

The note is written before anything is removed, and once more when all is. So nobody goes on in between, and a follower
that has heard of such a batch learns that it does not count, also when another batch has its number by then.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace

from viewlet.durable.store import Store
from viewlet.errors import Error


@dataclass(frozen=True)
class TakenBack:
    """The batches after ``to``, up to ``newest``."""

    to: int
    newest: int
    done: bool = False

    @property
    def label(self) -> str:
        return f"batches {self.to + 1} to {self.newest}" if self.newest > self.to + 1 else f"batch {self.newest}"


def times_taken_back(store: Store) -> list[TakenBack]:
    numbers = sorted(int(match[1]) for match in (re.fullmatch(r"(\d+)\.json", n) for n in store.names(PLACE)) if match)
    return [TakenBack(**json.loads(bytes(store.read(_note(number))))) for number in numbers]


def begin_to_take_back(store: Store, taken: TakenBack) -> None:
    store.write(_note(len(times_taken_back(store))), json.dumps(asdict(taken)).encode())


def all_taken_back(store: Store) -> None:
    """Of the last time."""
    times = times_taken_back(store)
    store.write(_note(len(times) - 1), json.dumps(asdict(replace(times[-1], done=True))).encode())


def refuse_half_taken_back(store: Store) -> None:
    times = times_taken_back(store)
    if times and not times[-1].done:
        raise Error(
            f"{times[-1].label} of {store.uri} are being taken back, and not all is removed yet: say viewlet back once "
            f"more, which finishes it"
        )


PLACE = "taken-back"


def _note(number: int) -> str:
    return f"{PLACE}/{number}.json"
