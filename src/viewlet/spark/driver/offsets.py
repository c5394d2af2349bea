"""Which rows a batch has is Spark's to say, in ``offsets/<b>`` of the checkpoint, before it runs. It may forget it.

Hadoop writes that file to a local disk without forcing it there. So a host that crashes can lose what Spark said of
batches that are done here, and told to others. Spark would then make other batches of the same numbers. So what it said
is forced to the disk before a batch counts, is in the manifest as well, and is put back from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from viewlet.durable.manifest import manifest_names, newest_manifest, read_manifest
from viewlet.durable.published import published_batches, published_offsets
from viewlet.durable.store import Store, digest
from viewlet.errors import CorruptError, Error
from viewlet.spark.job import JOB, spark_place

NO_OFFSET = "-"  # as Spark says that a source has given nothing yet
NOTHING_YET = 'v1\n{"batchWatermarkMs":0,"conf":{}}'
OF_BATCHES = ("offsets", "commits", "state")  # directories that Spark wants to be empty before its first batch


def noted_offsets(checkpoint: str, batch: int) -> str:
    return bytes(Store(checkpoint).read(_path(batch))).decode()


def noted_moment(noted: str) -> int:
    """When Spark made the batch, in microseconds. It is noted with the offsets, so a batch that runs again has it."""
    _, about, *_ = noted.split("\n")
    return 1000 * int(json.loads(about)["batchTimestampMs"])


def noted_of_change(noted: str, before: Sequence[str], after: Sequence[str], moment: int) -> str:
    """Of a batch without rows: each source stands where it stood. ``before`` and ``after`` are the sources' names.

    >>> print(noted_of_change('v1\\n{"batchTimestampMs":1}\\n{"logOffset":7}', ["a"], ["b", "a"], 2))
    v1
    {"batchTimestampMs": 2}
    -
    {"logOffset":7}
    """
    version, about, *offsets = (noted or NOTHING_YET).split("\n")
    if noted and len(offsets) != len(before):
        what = f"Spark has {len(offsets)} sources, and {len(before)} are known: {', '.join(before)}"
        raise CorruptError(f"{what}. Start once with the script and the sources as they were, and change them then")
    stood = dict(zip(before, offsets, strict=False))
    told = json.dumps({**json.loads(about), "batchTimestampMs": moment})
    return "\n".join([version, told, *(stood.get(name, NO_OFFSET) for name in after)])


def with_sources(checkpoint: str, place: str, batch: int, before: Sequence[str], after: Sequence[str]) -> None:
    """Spark's own checkpoint again, at another place and for other sources. It takes them by their number."""
    old, new = Store(checkpoint), Store(place)
    if old.names("state"):
        raise Error(
            f"a source of {checkpoint} has a state of Spark's own (a watermark, dropDuplicates), which belongs to the "
            f"sources that there are: go on with the same streams, or give a new checkpoint and let the sources replay"
        )
    moved = {f"sources/{before.index(name)}": f"sources/{at}" for at, name in enumerate(after) if name in before}
    copied = [(path, to + path.removeprefix(of)) for of, to in moved.items() for path in old.walk(of)]
    copied += [(path, path) for path in ("metadata", f"commits/{batch}") if _has(old, path)]
    for path, to in copied:
        new.write(to, bytes(old.read(path)))
    if batch >= 0:
        noted = noted_offsets(checkpoint, batch)
        new.write(_path(batch), noted_of_change(noted, before, after, noted_moment(noted) // 1000).encode())


def _has(store: Store, path: str) -> bool:
    directory, _, name = path.rpartition("/")
    return name in store.names(directory)


def keep_offsets(checkpoint: str, batch: int, noted: str) -> None:
    """On the disk, with what they point to: of files, a source notes apart which there were by each offset."""
    store = Store(checkpoint)
    if store.is_local:
        logs = [f"sources/{name}/{n}" for name in store.names("sources") for n in _log_offsets(noted)]
        store.sync([_path(batch), *logs, *(f"{log}.compact" for log in logs)])


def restore_offsets(checkpoint: str) -> None:
    """Put back what Spark has lost of its newest batches, back to the last one that it still knows.

    Before a batch that changed the job Spark may have other sources.
    """
    ours, spark = Store.of(checkpoint), Store(spark_place(checkpoint))
    try:
        newest = manifest = newest_manifest(ours)
        while manifest is not None and manifest.noted and not _is_there(spark, manifest.batch, manifest.offsets):
            spark.delete([f"offsets/.{manifest.batch}.crc"])  # Hadoop's checksum, of something else
            spark.write(_path(manifest.batch), manifest.noted.encode())
            below = read_manifest(ours, manifest.batch - 1)
            manifest = below if below is not None and newest is not None and below.job == newest.job else None
    except CorruptError:
        return  # the batch says so, should it come to need the manifest


def _is_there(spark: Store, batch: int, offsets: str) -> bool:
    try:
        return digest(spark.read(_path(batch))) == offsets
    except FileNotFoundError:
        return False


def forget_first_try(checkpoint: str, running: Collection[str]) -> None:
    """Remove what is left of a first batch that Spark was to begin, and whose offsets it never got to write.

    A query that is stopped at that moment leaves a file under a hidden name, or its checksum. Spark then refuses the
    checkpoint: it has no batch, yet it is not empty. No batch counts, so nothing is lost. Not looked at are batches
    before the stream, and what sources noted for themselves, which Spark takes as it is. ``running`` are the queries
    that may be about to write.
    """
    ours, spark = Store.of(checkpoint), Store(spark_place(checkpoint))
    done = [*published_batches(ours), *(name.batch for name in manifest_names(ours))]
    if JOB not in ours.names("") or max(done, default=-1) >= 0 or _has_begun(spark):
        return
    query = _query(spark)
    if query not in running:
        for directory in OF_BATCHES:
            spark.delete_directory(directory)
        if not query:
            spark.delete(["metadata", ".metadata.crc"])


def _has_begun(spark: Store) -> bool:
    batches = [name for name in spark.names("offsets") if name.isdigit()]
    return any(map(str.isdigit, spark.names("commits"))) or any(_is_whole(spark, batch) for batch in batches)


def _is_whole(spark: Store, batch: str) -> bool:
    """As far as its first lines say: a crash of the host may leave the name of a file, and nothing in it."""
    version, _, rest = bytes(spark.read(f"offsets/{batch}")).decode(errors="replace").partition("\n")
    try:
        return version.startswith("v") and "batchTimestampMs" in json.loads(rest.split("\n")[0])
    except json.JSONDecodeError:
        return False


def _query(spark: Store) -> str:
    """How Spark calls its query; nothing where it does not say, or not in whole."""
    try:
        return str(json.loads(bytes(spark.read("metadata")))["id"])
    except (FileNotFoundError, ValueError, KeyError):
        return ""


def refuse_another_batch(store: Store, batch: int, offsets: str, known: str | None) -> None:
    """What followers have heard of a batch cannot be taken back, so a batch of other rows must not take its place.

    ``known`` are the offsets that its manifest has, where that can be read.
    """
    told = published_offsets(store, batch)
    if told is not None and (told or known or offsets) != offsets:
        raise CorruptError(
            f"batch {batch} was done and told to those who follow the views, and now Spark gives it other rows: "
            f"{_path(batch)} beside {store.uri} is not the one that it was (a host that crashed may have lost it). "
            f"Nothing was applied. Restore that file as it was, or start with a new checkpoint and new sinks and let "
            f"the sources replay"
        )


def _log_offsets(noted: str) -> list[str]:
    return re.findall(r'"logOffset":(\d+)', noted)


def _path(batch: int) -> str:
    return f"offsets/{batch}"
