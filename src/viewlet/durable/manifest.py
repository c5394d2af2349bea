"""The manifests of a query: which files count after each batch.

``batches/<b>-<run>.json`` is read to go on from batch b. A manifest is *whole*, or it is a *step* on the manifest of
the batch before (``steps.py``). A driver's first manifest is whole. So is the next one once the steps since weigh as
much as a whole one: a batch writes at most twice what it changed. A manifest is never written again, and belongs to
one run of a driver. So whatever else happens, a step stands on the manifest that it was written on:

* A driver dies before its manifest is there: the batch was not done. Its cells' files are named by nobody.
* It dies between a manifest and its note (``published.py``): the next driver finds the manifest, and publishes it.
* It dies after that, before Spark commits: the next driver finds both, and has nothing to do.
* A driver that was believed dead writes its manifest of a batch that another driver has done since: under a name of its
  own. Both are of the same rows, so either may be read; steps stand on that of their own driver.
* A manifest is damaged: those that stand on it cannot be read either, up to the next whole one. A driver at work goes
  on from memory. A driver that starts refuses, unless the batch is not committed: then it does the batch again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import NamedTuple

from viewlet.durable.chain import Json, Manifest
from viewlet.durable.published import publish, published_run
from viewlet.durable.steps import Step, step_between
from viewlet.durable.store import Store, digest
from viewlet.errors import CorruptError

WHOLE, STEP = 1, 2  # formats
RETAINED_BATCHES = 100  # as Spark's own minBatchesToRetain
MOST_STEPS = 100  # files to read for one manifest, any of which may be damaged
READERS = 16  # of one manifest's files, where each takes a trip over the network


@dataclass(frozen=True)
class Written:
    """A manifest as it lies in the store: a step may stand on it."""

    manifest: Manifest
    digest: str
    base: int  # the batch of the whole manifest underneath
    whole_bytes: int
    step_bytes: int = 0  # of all steps since

    def step_to(self, manifest: Manifest) -> Step | None:
        if self.step_bytes >= self.whole_bytes or manifest.batch - self.base >= MOST_STEPS:
            return None
        return step_between(self.manifest, manifest, self.base, self.digest)


def write_manifest(store: Store, manifest: Manifest, on: Written | None = None) -> Written:
    """From here on the batch is done; it is told to others after that, since what they read must not be done again."""
    step = on.step_to(manifest) if on is not None else None
    body = _whole_body(manifest) if step is None else _body(STEP, step.to_json())
    checksum = digest(body)
    store.write(path_of(manifest.batch, manifest.run), b"%s\n%s\n" % (checksum.encode(), body))
    publish(store, manifest)
    if step is None or on is None:
        return Written(manifest, checksum, manifest.batch, len(body))
    return Written(manifest, checksum, on.base, on.whole_bytes, on.step_bytes + len(body))


def _body(form: int, content: Json) -> bytes:
    return json.dumps({"format": form, **content}, separators=(",", ":"), default=methodcaller("to_json")).encode()


def _whole_body(manifest: Manifest) -> bytes:
    """One chain after the other: all at once, they keep Python's garbage collector busy four times as long."""
    return _body(WHOLE, {**replace(manifest, cells={}).to_json(), "cells": dict(manifest.cells)})


def path_of(batch: int, run: str) -> str:
    """Manifests of earlier versions are of no run."""
    return f"batches/{batch}-{run}.json" if run else f"batches/{batch}.json"


# -- which there are ---------------------------------------------------------------------------------------------------


class Name(NamedTuple):
    """Of a manifest's file."""

    batch: int
    run: str


def manifest_names(store: Store) -> list[Name]:
    """Drafts are none."""
    matches = (re.fullmatch(r"(-?\d+)(?:-(\w+))?\.json", name) for name in store.names("batches"))
    return [Name(int(match[1]), match[2] or "") for match in matches if match]


def read_manifest(store: Store, batch: int, run: str | None = None) -> Manifest | None:
    """None where there is none; CorruptError where there is none that can be trusted.

    Of several for one batch, that of ``run``, else the published one, else any: all are of the same rows.
    """
    names = [name for name in manifest_names(store) if name.batch == batch]
    if len(names) > 1:
        first = run if run is not None else published_run(store, batch)
        names.sort(key=lambda name: name.run != first)
    broken: CorruptError | None = None
    for name in names:
        try:
            return _manifest(store, name)
        except CorruptError as error:
            broken = broken or error
    if broken is not None:
        raise broken
    return None


def newest_manifest(store: Store, at_most: int | None = None) -> Manifest | None:
    """The manifest of the last batch, or of the last one up to a batch."""
    batches = [name.batch for name in manifest_names(store) if at_most is None or name.batch <= at_most]
    return read_manifest(store, max(batches)) if batches else None


# -- reading -----------------------------------------------------------------------------------------------------------


class Read(NamedTuple):
    """What is in the file of a manifest, and the digest of that."""

    content: Manifest | Step
    digest: str


def _manifest(store: Store, name: Name) -> Manifest:
    return whole(store, read(store, name))


def read(store: Store, name: Name) -> Read:
    where = store.path_of(path_of(*name))
    try:
        data = store.read(path_of(*name)).to_pybytes()
    except FileNotFoundError:
        raise CorruptError(f"{where} is not there: restore it, or start from an empty checkpoint") from None
    checksum, _, body = data.removesuffix(b"\n").partition(b"\n")
    if checksum.decode("latin-1") != digest(body):
        raise CorruptError(f"{where} fails its checksum: restore it, or start from an empty checkpoint")
    content: Json = json.loads(body)
    if content["format"] not in (WHOLE, STEP):
        raise CorruptError(f"{where} has format {content['format']}, this viewlet reads up to {STEP}")
    parsed = Manifest.from_json(content) if content["format"] == WHOLE else Step.from_json(content)
    return Read(parsed, digest(body))


def whole(store: Store, newest: Read) -> Manifest:
    """A manifest with all that it stands on."""
    if isinstance(newest.content, Manifest):
        return newest.content
    step = newest.content
    base, *steps = _read_all(store, [Name(batch, step.run) for batch in range(step.base, step.batch)])
    manifest, checksum = base.content, base.digest
    for above in (*steps, newest):
        if isinstance(manifest, Step) or isinstance(above.content, Manifest) or above.content.before != checksum:
            where = store.path_of(path_of(above.content.batch - 1, step.run))
            raise CorruptError(
                f"{where} is not what batch {step.batch} stands on: restore it, or start from an empty checkpoint"
            )
        manifest, checksum = above.content.applied(manifest), above.digest
    assert isinstance(manifest, Manifest), "steps make manifests"
    return manifest


def _read_all(store: Store, names: list[Name]) -> list[Read]:
    if store.is_local:
        return [read(store, name) for name in names]
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(lambda name: read(store, name), names))


class Rolled(NamedTuple):
    """``added`` are the files that it names beyond those of the one before it; ``base`` is as of :class:`Written`."""

    manifest: Manifest
    base: int
    added: frozenset[str]


def rolled(store: Store, names: Iterable[Name]) -> Iterator[Rolled]:
    """Manifests one after the other, each read once where it stands on the one before. CorruptError at a broken one."""
    manifest: Manifest | None = None
    checksum = ""
    for name in names:
        newest = read(store, name)
        step = newest.content if isinstance(newest.content, Step) else None
        if manifest is not None and step is not None and step.before == checksum:
            manifest, added = step.applied(manifest), frozenset(file.path for file in step.files())
        else:
            manifest = whole(store, newest)
            added = manifest.files()
        checksum = newest.digest
        yield Rolled(manifest, manifest.batch if step is None else step.base, added)
