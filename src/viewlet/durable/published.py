"""What is told of a batch to those who follow the views: ``published/<b>.json`` names the files of its changes.

A note is written after the manifest of its batch and before Spark commits. Notes go with the changes that they name.
Batches count 0, 1, 2, …, so a reader that comes too late sees a gap, and knows. Notes of the batches before the
stream stay: they also say what it was begun with.
"""

from __future__ import annotations

import json
import re

from viewlet.durable.chain import Json, Manifest
from viewlet.durable.store import Store
from viewlet.errors import CorruptError


def publish(store: Store, manifest: Manifest) -> None:
    told = {"batch": manifest.batch, "changes": manifest.changes(), "offsets": manifest.offsets}
    whose = {"run": manifest.run} if manifest.run else {}
    store.write(note_of(manifest.batch), json.dumps({**told, **whose}, separators=(",", ":")).encode() + b"\n")


def published(store: Store, batch: int) -> Json:
    """What a batch that is listed as published told. A store may list a file before all of it is there."""

    def parsed(data: bytes) -> Json:
        try:
            body: Json = json.loads(data)
        except ValueError:
            where = store.path_of(note_of(batch))
            raise CorruptError(f"{where} is not whole: start again, and if it stays so, restore it") from None
        return body

    return store.awaited(note_of(batch), parsed)


def published_offsets(store: Store, batch: int) -> str | None:
    """Of which offsets a batch is that was published ("" where its note does not say); None if it was not."""
    try:
        return str(published(store, batch).get("offsets", ""))
    except FileNotFoundError:
        return None


def published_run(store: Store, batch: int) -> str | None:
    """Which run of a driver published a batch; None if none did, or its note cannot be read."""
    try:
        return str(published(store, batch).get("run", ""))
    except (FileNotFoundError, CorruptError):
        return None


def published_batches(store: Store) -> list[int]:
    """Those whose changes are retained, and those before the stream."""
    matches = (re.fullmatch(r"(-?\d+)\.json", name) for name in store.names("published"))
    return sorted(int(match[1]) for match in matches if match)


def note_of(batch: int) -> str:
    return f"published/{batch}.json"
