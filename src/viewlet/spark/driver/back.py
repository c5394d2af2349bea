"""Back to an earlier batch: the newest one was a mistake, or what is written down of it is damaged.

The batches after it go as if they had never been: their manifests, what was told of them, their files, and what Spark
noted of them. Their rows come again when the query is started again, as the sources have them by then. What was told to
others cannot be taken back, so a follower that has heard of such a batch is refused from then on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from viewlet.durable.chain import Chain, File, Manifest
from viewlet.durable.cleaning import STATE_DIRECTORIES
from viewlet.durable.manifest import Name, manifest_names, newest_manifest, path_of, read, read_manifest
from viewlet.durable.places import absolute
from viewlet.durable.published import note_of, published_batches
from viewlet.durable.store import Store
from viewlet.durable.taken_back import TakenBack, all_taken_back, begin_to_take_back, times_taken_back
from viewlet.errors import CorruptError, Error
from viewlet.spark.driver.rewind import numbered, rewind_spark
from viewlet.spark.job import known_job, spark_place

FIRST = 0  # of Spark's batches; those before it are the tables and the history


@dataclass(frozen=True)
class WentBack:
    """What was taken back, and which of the followers that were named are ahead now: their checkpoints."""

    taken: TakenBack
    ahead: tuple[str, ...]
    behind: tuple[str, ...]

    def __str__(self) -> str:
        first = self.taken.to + 1
        where = f"after batch {self.taken.to}" if self.taken.to >= FIRST else "before the first batch"
        lines = [
            f"{self.taken.label} taken back: the query goes on {where}, with the rows that its sources have then",
            f"a follower that has read batch {first} is refused from now on. What it feeds (a table, a topic, files) "
            f"holds changes that do not count any more: empty it, give the follower a new checkpoint, and begin again",
        ]
        lines += [f"{name}: has read batch {first}, and must begin again" for name in self.ahead]
        lines += [f"{name}: has not read batch {first}, and goes on" for name in self.behind]
        return "\n".join(lines)


def back(
    checkpoint: str | os.PathLike[str], batches: int = 1, followers: Sequence[str | os.PathLike[str]] = ()
) -> WentBack:
    """Take the newest batches of a checkpoint back, so that the query goes on as if they had never been.

    End the query first. The batch before them must be retained and whole, or nothing is done. ``followers`` are
    checkpoints of streams of changes: the answer, which prints as text, says which of them are ahead. Where an earlier
    call was cut short, this one finishes that, whatever it is asked for.
    """
    if batches < 1:
        raise Error(f"batches is {batches}: it counts those to take back, 1 or more")
    place = absolute(os.fspath(checkpoint))
    known_job(place)
    store, spark = Store.of(place), Store(spark_place(place))
    times = times_taken_back(store)
    if times and not times[-1].done:
        taken = times[-1]
    else:
        newest = _newest(store, spark)
        taken = TakenBack(newest - batches, newest)
        _check(store, spark, taken)
        begin_to_take_back(store, taken)
    _remove(store, taken.to)
    rewind_spark(spark, taken.to)
    all_taken_back(store)
    return _told(taken, [absolute(os.fspath(follower)) for follower in followers])


def _newest(store: Store, spark: Store) -> int:
    """A batch that is done counts, and so does one that Spark has committed, though nothing else is left of it."""
    done = [name.batch for name in manifest_names(store)]
    newest = max([*done, *numbered(spark.names("commits"))], default=FIRST - 1)
    if newest < FIRST:
        raise Error(f"{store.uri} has no batch that could be taken back")
    return newest


# -- whether it can be -------------------------------------------------------------------------------------------------


def _check(store: Store, spark: Store, taken: TakenBack) -> None:
    manifest = newest_manifest(store, FIRST - 1) if taken.to == FIRST - 1 else read_manifest(store, taken.to)
    if manifest is None or taken.to < FIRST - 1:
        oldest = max(min((name.batch for name in manifest_names(store)), default=taken.newest), FIRST - 1)
        raise Error(f"there is no batch {taken.to} to go back to: the oldest that is retained is {oldest}")
    _refuse_other_job(store, spark, manifest, taken)
    noted = all(taken.to in numbered(spark.names(log)) for log in ("offsets", "commits"))
    if taken.to >= FIRST and not noted:
        raise Error(f"Spark has not kept what it noted of batch {taken.to}: that batch cannot be gone back to")
    for name, chain in manifest.cells.items():
        if reasons := _broken(store, chain):
            raise CorruptError(
                f"batch {taken.to} is not whole either: cell {name}: {'; '.join(reasons)}. Nothing was changed: go "
                f"back further, or start with a new checkpoint and let the sources replay"
            )


def _refuse_other_job(store: Store, spark: Store, manifest: Manifest, taken: TakenBack) -> None:
    """A change of the job is the first batch of its driver's run."""
    firsts: dict[str, Name] = {}
    for name in sorted(manifest_names(store)):
        firsts.setdefault(name.run, name)
    for name in firsts.values():
        if name.batch > max(taken.to, FIRST - 1) and _changed_job(store, spark, name, manifest.job):
            raise Error(
                f"batch {name.batch} changed the script or its cells, and cannot be taken back: the script of before "
                f"is not kept. Start with that script, and its views are built again of the stored rows"
            )


def _changed_job(store: Store, spark: Store, name: Name, job: str) -> bool:
    """Where the manifest is damaged, Spark still says whether any source gave a row: none does in such a batch."""
    try:
        content = read(store, name).content
        return isinstance(content, Manifest) and content.job != job
    except CorruptError:
        before, after = (_offsets(spark, batch) for batch in (name.batch - 1, name.batch))
        return before == after or len(before) != len(after)


def _offsets(spark: Store, batch: int) -> list[str]:
    """Nothing before the first batch."""
    with suppress(FileNotFoundError):
        return bytes(spark.read(f"offsets/{batch}")).decode().split("\n")[2:]
    return []


def _broken(store: Store, chain: Chain) -> list[str]:
    """Why a cell cannot be made again, or its views not be read; nothing where they can."""
    reasons = list[str]()
    views = {name for log in chain.recent for name in log.changes} | set(chain.base.bases if chain.base else ())
    shown = [file for view in views for part in [chain.view(view)] for file in (*part.changes, part.base) if file]
    reasons += _wrong(store, shown)
    starts = [*reversed(chain.snapshots), *([None] if len(chain.snapshots) < 2 else [])]
    ways = [_wrong(store, [*([s.file] if s else []), *(log.file for log in chain.after(s))]) for s in starts]
    return reasons + ([] if any(not way for way in ways) else [reason for way in ways for reason in way])


def _wrong(store: Store, files: Sequence[File]) -> list[str]:
    reasons = list[str]()
    for file in files:
        try:
            with store.opened(file):
                pass
        except (CorruptError, FileNotFoundError) as error:
            reasons.append(str(error))
    return reasons


# -- what goes ---------------------------------------------------------------------------------------------------------


def _remove(store: Store, to: int) -> None:
    """Manifests first, the newest before the others: what is left is a checkpoint, at any moment."""
    later = sorted((name for name in manifest_names(store) if name.batch > to), reverse=True)
    store.delete(path_of(*name) for name in later)
    store.delete(note_of(batch) for batch in published_batches(store) if batch > to)
    store.delete(f"dead/{batch}.json" for batch in numbered(store.names("dead"), ".json") if batch > to)
    store.delete(path for directory in STATE_DIRECTORIES for path in _of_later(store, directory, to))


def _of_later(store: Store, directory: str, to: int) -> Iterator[str]:
    for path in store.walk(directory):
        batch = path.rpartition("/")[2].lstrip(".")
        if int(batch[: batch.index("-", 1)]) > to:
            yield path


# -- who is ahead ------------------------------------------------------------------------------------------------------


def _told(taken: TakenBack, followers: Sequence[str]) -> WentBack:
    ahead = [name for name in followers if _has_read(Store(name)) > taken.to]
    return WentBack(taken, tuple(ahead), tuple(name for name in followers if name not in ahead))


def _has_read(follower: Store) -> int:
    """The last batch that may be in what a follower feeds: its newest offset stands before the next one."""
    planned = max(numbered(follower.names("offsets")), default=None)
    if planned is None:
        return FIRST - 1
    *_, last = bytes(follower.read(f"offsets/{planned}")).decode().split("\n")
    with suppress(ValueError):
        offset = json.loads(last)
        if isinstance(offset, Mapping) and "batch" in offset:
            return int(offset["batch"]) - 1
    raise Error(f"{follower.uri} is no checkpoint of a stream of changes: {last[:100]}")
