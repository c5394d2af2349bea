"""Which files of a query may go: those that no retained manifest names, nor may come to name.

A driver knows what each of its batches made needless, and removes it once no retained manifest names it. What nobody
knows of (of attempts that lost, of drivers that died) is found by a sweep, which lists all files.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from viewlet.durable.chain import Manifest, snapshot_stem
from viewlet.durable.manifest import RETAINED_BATCHES, Name, Written, manifest_names, path_of, rolled
from viewlet.durable.published import note_of, published_batches
from viewlet.durable.steps import dropped
from viewlet.durable.store import Store
from viewlet.errors import CorruptError

STATE_DIRECTORIES = ("logs", "snapshots", "bases", "changes")
SWEEP_EVERY = 500  # batches


class Cleaner:
    """What the batches of one driver made needless, in their order. Files are removed beside the batches."""

    def __init__(self, store: Store, retain: int) -> None:
        self._store, self._retain = store, retain
        self._needless: deque[tuple[int, list[str]]] = deque()  # (batch, files that manifests before it name)
        self._manifests: deque[tuple[Name, int]] = deque()  # and the batch of the whole one underneath
        self._swept: int | None = None
        self._pool = ThreadPoolExecutor(1, "cleaner")
        self._removing: Future[object] | None = None

    def note(self, before: Manifest | None, written: Written) -> None:
        after = written.manifest
        old = before.cells if before is not None else {}
        grown = [(old[name], chain) for name, chain in after.cells.items() if name in old and chain is not old[name]]
        if files := [path for pair in grown for path in dropped(*pair)]:
            self._needless.append((after.batch, files))
        self._manifests.append((Name(after.batch, after.run), written.base))

    def clean(self, committed: int) -> None:
        """To be called between batches. An error of the removal before is raised."""
        self.wait()
        paths = list(self._due(committed - self._retain + 1))
        sweeps = self._swept is None or committed - self._swept >= SWEEP_EVERY
        self._swept = committed if sweeps else self._swept
        self._removing = self._pool.submit(self._remove, paths, committed if sweeps else None)

    def wait(self) -> None:
        """Until all that was to be removed is."""
        if self._removing is not None:
            self._removing.result()

    def _due(self, oldest: int) -> Iterable[str]:
        """Manifests that a retained one stands on stay."""
        while self._needless and self._needless[0][0] <= oldest:
            yield from self._needless.popleft()[1]
        ground = max((base for name, base in self._manifests if name.batch <= oldest), default=oldest)
        while self._manifests and self._manifests[0][0].batch < ground:
            name, _ = self._manifests.popleft()
            yield path_of(*name)
            if name.batch >= 0:
                yield note_of(name.batch)

    def _remove(self, paths: list[str], swept: int | None) -> None:
        self._store.delete(paths)
        if swept is not None:
            sweep(self._store, swept, self._retain)


def sweep(store: Store, committed: int, retain: int = RETAINED_BATCHES) -> int:
    """Remove what no retained manifest names, and say how many files went.

    A file's name begins with the batch that made it; one of a batch that is still retained may belong to an attempt in
    the making, so only older ones go; and of those, none that is of a snapshot which the next batch may come to name,
    for it may take long to make. Should a retained manifest be unreadable, nothing goes.
    """
    oldest = committed - retain + 1
    names = sorted(manifest_names(store), key=lambda name: (name.run, name.batch))
    try:
        kept = list(rolled(store, [name for name in names if name.batch >= oldest]))
    except CorruptError:
        return 0
    if not kept:
        return 0
    named = frozenset[str]().union(*(one.added for one in kept))
    newest = max(one.manifest.batch for one in kept)
    awaited = tuple(stem for one in kept if one.manifest.batch == newest for stem in _awaited(one.manifest))
    old = [path for path in _state_files(store) if _batch_of(path) < oldest and path not in named]
    doomed = [path for path in old if not path.rpartition("/")[2].removeprefix(".").startswith(awaited)]
    grounds = [Name(one.base, one.manifest.run) for one in kept]
    doomed += [path_of(*name) for name in names if not any(g.run == name.run and g <= name for g in grounds)]
    doomed += [note_of(batch) for batch in published_batches(store) if 0 <= batch < oldest]
    store.delete(doomed)
    return len(doomed)


def _awaited(manifest: Manifest) -> list[str]:
    """How the names of snapshots begin that a cell may be making: of a version after the newest one that it has."""
    return [f"{snapshot_stem(name, log.version)}-" for name, chain in manifest.cells.items() for log in chain.recent]


def _state_files(store: Store) -> list[str]:
    """Hidden names are drafts; those of a writer that died go like the file that they were to become."""
    return [path for directory in STATE_DIRECTORIES for path in store.walk(directory)]


def _batch_of(path: str) -> int:
    match_ = re.match(r"\.?(-?\d+)-", path.rpartition("/")[2])
    assert match_ is not None, f"{path} does not say which batch it is of"
    return int(match_[1])
