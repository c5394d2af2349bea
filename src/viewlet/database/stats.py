"""What a database holds, in numbers: rows and bytes of its streams, tables and views, and of the maps behind these."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from viewlet.database.handles import stored_count
from viewlet.database.readable import html_row
from viewlet.engines.base import Engine
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.program.graph import part_for
from viewlet.program.trigger import Program, Result
from viewlet.threads.engine import Machine

HEAD = ("", "name", "rows", "rows/s", "entries", "bytes")


@dataclass(frozen=True)
class Held:
    """What a stream, a table or a view holds.

    ``rows`` are those that a user reads. ``per_second`` is by how many rows a second it grew (or shrank, if negative)
    since :meth:`Database.stats` was called before; None at the first call. ``entries`` are the different stored rows of
    a stream or table, and the entries of all maps that a view needs; ``bytes`` is what these take. Maps that views
    share count for each of them. ``bytes`` is None on engines that do not know.
    """

    rows: int
    per_second: float | None
    entries: int
    bytes: int | None


@dataclass(frozen=True)
class HeldMap:
    """What a map holds; ``bytes`` include its indexes."""

    entries: int
    bytes: int | None


@dataclass(frozen=True)
class Stats:
    """What a database holds, as :meth:`Database.stats` says. It prints as a table, and shows itself in a notebook.

    ``relations`` are the streams and tables by name, ``views`` the materialized views, ``maps`` what the engine keeps
    for all of these. ``bytes`` is what the maps and the texts in them take, None on engines that do not know. ``log``
    and ``snapshot`` are the bytes of these files of a directory.
    """

    tier: str
    relations: Mapping[str, Held]
    views: Mapping[str, Held]
    maps: Mapping[str, HeldMap]
    bytes: int | None
    log: int = 0
    snapshot: int = 0

    def __str__(self) -> str:
        lines = [HEAD, *self._lines()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
        return "\n".join(_aligned(line, widths) for line in lines)

    def _repr_html_(self) -> str:
        body = "".join(html_row("td", line) for line in self._lines())
        return f"<table><thead>{html_row('th', HEAD)}</thead><tbody>{body}</tbody></table>"

    def _lines(self) -> Iterable[tuple[str, ...]]:
        for kind, held in (("relation", self.relations), ("view", self.views)):
            for name, of in held.items():
                rate = "" if of.per_second is None else f"{of.per_second:,.0f}"
                yield kind, name, f"{of.rows:,}", rate, f"{of.entries:,}", _bytes(of.bytes)
        for name, map_ in self.maps.items():
            yield "map", name, "", "", f"{map_.entries:,}", _bytes(map_.bytes)
        files = f"; log {self.log:,}, snapshot {self.snapshot:,}" if self.log or self.snapshot else ""
        yield "all", f"on {self.tier}{files}", "", "", "", _bytes(self.bytes)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    """Words to the left, numbers to the right."""
    words = [cell.ljust(width) for cell, width in zip(line[:2], widths, strict=False)]
    numbers = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
    return "  ".join([*words, *numbers]).rstrip()


def _bytes(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


class Counting:
    """Makes one of these after the other, and knows the one before."""

    def __init__(self) -> None:
        self._at, self._before = 0.0, dict[str, int]()

    def stats(self, program: Program, engine: Engine, rows: Mapping[str, int]) -> Stats:
        """``rows`` are those of each view."""
        maps = _maps(program, engine)
        relations = [relation for relation in program.relations if not relation.is_hidden]
        stored = {relation.name: stored_count(engine, relation) for relation in relations}
        rates = self._rates({**stored, **rows})
        return Stats(
            _tier(engine),
            {n: Held(stored[n], rates.get(n), *_sum([maps.stored[n]])) for n in stored},
            {n: Held(rows[n], rates.get(n), *_sum(maps.behind(program.result(n)))) for n in rows},
            maps.kept,
            maps.bytes,
        )

    def _rates(self, rows: Mapping[str, int]) -> dict[str, float]:
        now, then = time.monotonic(), self._at
        before, self._before, self._at = self._before, dict(rows), now
        return {n: (rows[n] - before[n]) / (now - then) for n in rows if n in before and now > then}


def _sum(maps: Iterable[HeldMap]) -> tuple[int, int | None]:
    entries, sizes = 0, list[int | None]()
    for map_ in maps:
        entries += map_.entries
        sizes.append(map_.bytes)
    return entries, None if None in sizes else sum(size for size in sizes if size is not None)


@dataclass(frozen=True)
class _Maps:
    program: Program
    stored: Mapping[str, HeldMap]  # by relation
    kept: Mapping[str, HeldMap]
    of: Mapping[str, str]  # the map of each view of the program
    bytes: int | None

    def behind(self, result: Result) -> list[HeldMap]:
        """Each map that a view is kept fresh by, once."""
        names = dict.fromkeys(self.of[view.name] for view in part_for(self.program, result.name).views)
        return [self.kept[name] for name in names]


def _maps(program: Program, engine: Engine) -> _Maps:
    relations, views = [relation.name for relation in program.relations], [view.name for view in program.views]
    if isinstance(engine, Machine):
        memory = [HeldMap(entries, size) for _, entries, size in engine.memory()]
        stored, rest = dict(zip(relations, memory, strict=False)), memory[len(relations) :]
        kept = {map_.shown: held for map_, held in zip(engine.layout.maps, rest, strict=False)}
        of = {view: engine.layout[view][0].shown for view in views}
        return _Maps(program, stored, kept, of, sum(held.bytes or 0 for held in memory))
    stored = {name: HeldMap(len(engine.table(name)), None) for name in relations}
    kept = {view: HeldMap(len(engine.entries(view)), None) for view in views}
    return _Maps(program, stored, kept, dict(zip(views, views, strict=True)), None)


def _tier(engine: Engine) -> str:
    if isinstance(engine, Machine):
        return "native"
    return "python" if isinstance(engine, PythonEngine) else "interpreter"
