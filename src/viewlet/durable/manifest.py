"""The manifests of a query: which files count after each batch, and which may go.

``batches/<b>.json`` is read to go on from batch b; ``published/<b>.json``, a line that names the files with
the changes of b, is for those who follow the views.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, MutableMapping

from viewlet.durable.chain import Json, Manifest, snapshot_stem
from viewlet.durable.store import Store, digest
from viewlet.errors import CorruptError

FORMAT = 1
RETAINED_BATCHES = 100  # as Spark's own minBatchesToRetain
STATE_DIRECTORIES = ("logs", "snapshots", "bases", "changes")


def write_manifest(store: Store, manifest: Manifest) -> None:
    """From here on the batch is done; it is told to others after that, since what they read must not be done again."""
    body = json.dumps({"format": FORMAT, **manifest.to_json()}, separators=(",", ":")).encode()
    store.write(_path(manifest.batch), b"%s\n%s\n" % (digest(body).encode(), body))
    publish(store, manifest)


def publish(store: Store, manifest: Manifest) -> None:
    told = {"batch": manifest.batch, "changes": manifest.changes(), "offsets": manifest.offsets}
    store.write(_published(manifest.batch), json.dumps(told, separators=(",", ":")).encode() + b"\n")


def published(store: Store, batch: int) -> Json:
    """What a batch that is listed as published told. A store may list a file before all of it is there."""

    def parsed(data: bytes) -> Json:
        try:
            body: Json = json.loads(data)
        except ValueError:
            where = store.path_of(_published(batch))
            raise CorruptError(f"{where} is not whole: start again, and if it stays so, restore it") from None
        return body

    return store.awaited(_published(batch), parsed)


def published_offsets(store: Store, batch: int) -> str | None:
    """Of which offsets a batch is that was published ("" where its note does not say); None if it was not."""
    try:
        return str(published(store, batch).get("offsets", ""))
    except FileNotFoundError:
        return None


def published_batches(store: Store) -> list[int]:
    """All that there ever were: to publish is the last thing that a batch does."""
    return _numbers(store.names("published"))


def read_manifest(store: Store, batch: int) -> Manifest | None:
    """None where there is none; CorruptError where there is one that cannot be trusted."""
    try:
        data = store.read(_path(batch)).to_pybytes()
    except FileNotFoundError:
        return None
    where = store.path_of(_path(batch))
    checksum, _, body = data.removesuffix(b"\n").partition(b"\n")
    if checksum.decode("latin-1") != digest(body):
        raise CorruptError(f"{where} fails its checksum: restore it, or start from an empty checkpoint")
    manifest: Json = json.loads(body)
    if manifest["format"] != FORMAT:
        raise CorruptError(f"{where} has format {manifest['format']}, this viewlet reads {FORMAT}")
    return Manifest.from_json(manifest)


def newest_manifest(store: Store, at_most: int | None = None) -> Manifest | None:
    """The manifest of the last batch, or of the last one up to a batch."""
    batches = [b for b in manifest_batches(store) if at_most is None or b <= at_most]
    return read_manifest(store, max(batches)) if batches else None


def manifest_batches(store: Store) -> list[int]:
    return _numbers(store.names("batches"))


def _numbers(names: Iterable[str]) -> list[int]:
    """Of files that are named by their batch; drafts are not."""
    matches = (re.fullmatch(r"(-?\d+)\.json", name) for name in names)
    return [int(match[1]) for match in matches if match]


def clean(
    store: Store,
    committed: int,
    retain: int = RETAINED_BATCHES,
    known: MutableMapping[int, frozenset[str]] | None = None,
) -> int:
    """Remove what no retained manifest names, and say how many files went. ``known`` is what some of them name.

    To be called between batches. A file's name begins with the batch that made it; one of a batch that is still
    retained may belong to an attempt in the making, so only older ones go; and of those, none that is of a snapshot
    which the next batch may come to name, for it may take long to make. Should a retained manifest be unreadable,
    nothing goes. Published lines stay: a reader that comes too late must see that its changes are gone.
    """
    oldest = committed - retain + 1
    kept = [b for b in manifest_batches(store) if b >= oldest]
    if not kept:
        return 0
    try:
        by_batch = {batch: (known or {}).get(batch) or _named(store, batch) for batch in kept}
        awaited = _awaited(store, max(kept))
    except CorruptError:
        return 0
    if known is not None:
        known.clear()
        known.update(by_batch)
    named = frozenset[str]().union(*by_batch.values())
    old = [path for path in _state_files(store) if _batch_of(path) < oldest and path not in named]
    doomed = [path for path in old if not path.rpartition("/")[2].removeprefix(".").startswith(awaited)]
    manifests = [b for b in manifest_batches(store) if b < oldest]
    store.delete([*doomed, *map(_path, manifests)])
    return len(doomed) + len(manifests)


def _awaited(store: Store, batch: int) -> tuple[str, ...]:
    """How the names of snapshots begin that a cell may be making: of a version after the newest one that it has."""
    manifest = read_manifest(store, batch)
    cells = manifest.cells if manifest else {}
    return tuple(f"{snapshot_stem(name, log.version)}-" for name, chain in cells.items() for log in chain.recent)


def _named(store: Store, batch: int) -> frozenset[str]:
    manifest = read_manifest(store, batch)
    return manifest.files() if manifest else frozenset()


def _state_files(store: Store) -> list[str]:
    """Hidden names are drafts; those of a writer that died go like the file that they were to become."""
    return [path for directory in STATE_DIRECTORIES for path in store.walk(directory)]


def _batch_of(path: str) -> int:
    match_ = re.match(r"\.?(-?\d+)-", path.rpartition("/")[2])
    assert match_ is not None, f"{path} does not say which batch it is of"
    return int(match_[1])


def _path(batch: int) -> str:
    return f"batches/{batch}.json"


def _published(batch: int) -> str:
    return f"published/{batch}.json"
