"""Which rows a batch has is Spark's to say, in ``offsets/<b>`` of the checkpoint, before it runs. It may forget it.

Hadoop writes that file to a local disk without forcing it there. So a host that crashes can lose what Spark said of
batches that are done here, and told to others. Spark would then make other batches of the same numbers. So what it said
is forced to the disk before a batch counts, is in the manifest as well, and is put back from there.
"""

from __future__ import annotations

import re

from viewlet.durable.manifest import newest_manifest, read_manifest
from viewlet.durable.published import published_offsets
from viewlet.durable.store import Store, digest
from viewlet.errors import CorruptError


def noted_offsets(checkpoint: str, batch: int) -> str:
    return bytes(Store(checkpoint).read(_path(batch))).decode()


def keep_offsets(checkpoint: str, batch: int, noted: str) -> None:
    """On the disk, with what they point to: of files, a source notes apart which there were by each offset."""
    store = Store(checkpoint)
    if store.is_local:
        logs = [f"sources/{name}/{n}" for name in store.names("sources") for n in _log_offsets(noted)]
        store.sync([_path(batch), *logs, *(f"{log}.compact" for log in logs)])


def restore_offsets(checkpoint: str) -> None:
    """Put back what Spark has lost of its newest batches, back to the last one that it still knows."""
    ours, spark = Store.of(checkpoint), Store(checkpoint)
    try:
        manifest = newest_manifest(ours)
        while manifest is not None and manifest.noted and not _is_there(spark, manifest.batch, manifest.offsets):
            spark.delete([f"offsets/.{manifest.batch}.crc"])  # Hadoop's checksum, of something else
            spark.write(_path(manifest.batch), manifest.noted.encode())
            manifest = read_manifest(ours, manifest.batch - 1)
    except CorruptError:
        return  # the batch says so, should it come to need the manifest


def _is_there(spark: Store, batch: int, offsets: str) -> bool:
    try:
        return digest(spark.read(_path(batch))) == offsets
    except FileNotFoundError:
        return False


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
