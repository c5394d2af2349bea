"""Spark's own checkpoint as it was after an earlier batch: offsets, commits, what sources noted, and their state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from viewlet.durable.store import Store

STATE_FILE = re.compile(r"\.?(\d+)(?:_[\w-]+)*\.(?:delta|snapshot|zip|changelog)(?:\.crc)?")
DEFAULT_INTERVAL = 10  # of Spark's: every so many entries of a log are noted once more, all in one file
COMPACT = ".compact"
Entry = dict[str, Any]


def numbered(names: Iterable[str], ending: str = "") -> list[int]:
    """
    >>> numbered(["7", ".7.crc", "x"]), numbered(["3.json"], ".json")
    ([7], [3])
    """
    return [int(name.removesuffix(ending)) for name in names if re.fullmatch(rf"\d+{re.escape(ending)}", name)]


def rewind_spark(spark: Store, to: int) -> None:
    """Commits go last: until then the query is further than its manifests, and would not start."""
    _rewind_sources(spark, to)
    spark.delete(path for path in spark.walk("state") if _is_later(path, to))
    for log in ("offsets", "commits"):
        later = sorted((batch for batch in numbered(spark.names(log)) if batch > to), reverse=True)
        spark.delete(f"{log}/{name}" for batch in later for name in (f".{batch}.crc", str(batch)))


def _is_later(path: str, to: int) -> bool:
    """Of a batch, Spark notes the state that it began with, and numbers states from 1."""
    match = STATE_FILE.fullmatch(path.rpartition("/")[2])
    return match is not None and int(match[1]) > to + 1


# -- sources of files --------------------------------------------------------------------------------------------------


def _rewind_sources(spark: Store, to: int) -> None:
    """A source of files remembers which it has given, as entries of a log; ``logOffset`` is the last one of a batch.

    One of a later batch would not be given again, or be missed where it was taken away.
    """
    newest = max(numbered(spark.names("offsets")), default=None)
    if newest is None or newest <= to:
        return
    stood = _log_offsets(spark, to) if to >= 0 else {}
    for source in _log_offsets(spark, newest):
        _rewind_log(spark, f"sources/{source}", stood.get(source, -1))


def _log_offsets(spark: Store, batch: int) -> dict[int, int]:
    """Source ↦ its offset, of those that read files."""
    _, _, *offsets = bytes(spark.read(f"offsets/{batch}")).decode().split("\n")
    found = ((place, re.fullmatch(r'\{"logOffset":(-?\d+)\}', offset)) for place, offset in enumerate(offsets))
    return {place: int(match[1]) for place, match in found if match}


def _rewind_log(spark: Store, log: str, to: int) -> None:
    """Files that note several entries at once may be all that is left of those before."""
    names = spark.names(log)
    singles, compacts = numbered(names), numbered(names, COMPACT)
    below = max((batch for batch in compacts if batch <= to), default=-1)
    if not set(range(below + 1, to + 1)) <= {*singles, *compacts}:
        _write_again(spark, log, to, compacts)
    later = [name for name in names if (match := re.match(r"\.?(\d+)\.?", name)) and int(match[1]) > to]
    spark.delete(f"{log}/{name}" for name in later)


def _write_again(spark: Store, log: str, to: int, compacts: list[int]) -> None:
    """The entries up to ``to``, from the first file that has them all, in the files where Spark looks for them."""
    version, *lines = _lines(spark, f"{log}/{min(batch for batch in compacts if batch > to)}{COMPACT}")
    interval = _interval(compacts)
    below = to if interval is None else (to + 1) // interval * interval - 1
    if below >= 0:
        _write(spark, f"{log}/{below}{COMPACT}", version, (line for line in lines if _entry_of(line) <= below))
    for batch in range(below + 1, to + 1):
        _write(spark, f"{log}/{batch}", version, (line for line in lines if _entry_of(line) == batch))


def _interval(compacts: list[int]) -> int | None:
    """How often entries are noted once more; None where one such file leaves that open.

    Spark takes the last of them for the end of an interval, whatever it was told. So one may be anywhere.

    >>> _interval([2, 5]), _interval([19]), _interval([5])
    (3, 10, None)
    """
    if len(compacts) > 1:
        *_, before, last = sorted(compacts)
        return last - before
    return DEFAULT_INTERVAL if (compacts[0] + 1) % DEFAULT_INTERVAL == 0 else None


def _entry_of(line: str) -> int:
    entry: Entry = json.loads(line)
    return int(entry["batchId"])


def _lines(spark: Store, path: str) -> Iterator[str]:
    yield from bytes(spark.read(path)).decode().split("\n")


def _write(spark: Store, path: str, version: str, lines: Iterable[str]) -> None:
    """Hadoop keeps a checksum beside a file, which is not of this one."""
    directory, _, name = path.rpartition("/")
    spark.delete([f"{directory}/.{name}.crc"])
    spark.write(path, "\n".join([version, *lines]).encode())
