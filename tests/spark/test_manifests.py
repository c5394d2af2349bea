"""Manifests in steps: a reader gets what its own run wrote, beside other writers. Files go when nobody needs them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark.test_store import flip
from viewlet import CorruptError
from viewlet.durable import cleaning, manifest
from viewlet.durable.chain import Address, Chain, File, Log, Manifest, Snapshot
from viewlet.durable.cleaning import Cleaner, sweep
from viewlet.durable.manifest import (
    Name,
    Written,
    manifest_names,
    newest_manifest,
    read_manifest,
    rolled,
    write_manifest,
)
from viewlet.durable.published import published, published_batches
from viewlet.durable.steps import step_between
from viewlet.durable.store import Store, digest

CELLS = 5
RETAIN = 6


class Query:
    """A driver whose cells write files: some cells are idle for long, snapshots come late, cells move."""

    def __init__(self, store: Store, run: str = "aa", seed: int = 1, before: Manifest | None = None) -> None:
        self.store, self.run, self.random = store, run, random.Random(seed)
        self.last, self.written = before, None if before is None else Written(before, "of another run", 0, 0)
        self.history: list[Manifest] = []

    def file(self, path: str) -> File:
        """No power fails here, so nothing waits for the disk."""
        place = Path(self.store.uri, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.encode())
        return File(path, len(path), digest(path.encode()))

    def after(self, batch: int) -> Manifest:
        cells = dict(self.last.cells) if self.last else {}
        where = dict(self.last.addresses) if self.last else {}
        held = dict(self.last.progress["state_by_cell"]) if self.last else {}
        for name in (f"c{n}" for n in range(CELLS) if self.last is None or self.random.random() < 0.5):
            attempt = f"{self.run}{self.random.randrange(10**6)}"
            stem, chain = f"{batch}-{name}-{attempt}", cells.get(name, Chain())
            log = Log(
                batch, attempt, self.file(f"logs/{stem}.events"), {"v": self.file(f"changes/v/{stem}.parquet")}, 1
            )
            made = self.random.choice(chain.recent).version if chain.recent and self.random.random() < 0.3 else None
            base = f"{made.batch}-{name}-{made.log}-{batch}" if made else ""
            bases = {"v": self.file(f"bases/v/{base}.parquet")} if made else {}
            snapshot = Snapshot(made, self.file(f"snapshots/{base}.state"), bases) if made else None
            merged = None if snapshot else self.merged(name, chain, batch)
            cells[name] = chain.followed(log, snapshot, merged)
            where[name] = Address("host", self.random.randrange(3))
            held[name] = self.random.randrange(5)
        progress = {"batch": batch, "state_by_cell": held}
        return Manifest(batch, f"o{batch}", cells, where, progress, self.run, f"noted {batch}")

    def merged(self, name: str, chain: Chain, batch: int) -> Log | None:
        """The newest logs as one; some more may have come while it was made."""
        logs = chain.recent[: -self.random.randrange(1, 3)]
        at = next((i for i, log in enumerate(logs) if not log.is_merged), 0)
        if len(logs[at:]) < 3:
            return None
        last, first = logs[-1], logs[max(0, at - self.random.randrange(2))].start
        stem = f"{last.batch}-{name}-{last.id}-{batch}m"
        changes = {"v": self.file(f"bases/v/{stem}.parquet")}
        return Log(last.batch, last.id, self.file(f"snapshots/{stem}.events"), changes, 3, 0.0, first)

    def go_on(self, batches: range) -> None:
        for batch in batches:
            after = self.after(batch)
            self.written = write_manifest(self.store, after, self.written)
            self.last = after
            self.history.append(after)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path))


def forms(store: Store) -> dict[int, int]:
    """Batch ↦ the format of its manifest."""
    return {
        name.batch: json.loads(store.read(manifest.path_of(*name)).to_pybytes().split(b"\n")[1])["format"]
        for name in manifest_names(store)
    }


@pytest.mark.parametrize("seed", range(4))
def test_what_is_read_is_what_was_written(store: Store, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MOST_STEPS", 7)
    query = Query(store, seed=seed)
    query.go_on(range(40))
    for known in query.history:
        assert read_manifest(store, known.batch) == known
    assert any(log.is_merged for known in query.history for chain in known.cells.values() for log in chain.logs)
    assert newest_manifest(store) == query.history[-1]
    assert newest_manifest(store, at_most=17) == query.history[17]
    assert [one.manifest for one in rolled(store, sorted(manifest_names(store)))] == query.history
    assert {batch: published(store, batch)["changes"].get("v", []) for batch in published_batches(store)} == {
        known.batch: known.changes().get("v", []) for known in query.history
    }
    assert set(forms(store).values()) == {manifest.WHOLE, manifest.STEP}
    far = Store(f"fsspec+file://{store.uri}")
    assert read_manifest(far, 39) == query.history[39], "where the files of one manifest are read at once"


def test_a_batch_writes_what_it_changed(store: Store) -> None:
    """However many cells there are, and however much is behind them."""

    def written(batch: int, after: Manifest, on: Written) -> tuple[Written, int]:
        now = write_manifest(store, replace(after, batch=batch), on)
        return now, len(store.read(manifest.path_of(batch, after.run)))

    def chain(cell: int, logs: int) -> Chain:
        files = [File(f"logs/{batch}-c{cell}", 10, "d" * 32) for batch in range(logs)]
        return Chain((), tuple(Log(batch, "a" * 16, file, {}, 1) for batch, file in enumerate(files)))

    sizes = []
    for cells in (10, 300):
        now = write_manifest(store, Manifest(20, "", {f"c{n}": chain(n, 20) for n in range(cells)}, run="r"))
        log = Log(21, "b" * 16, File("logs/21-c3", 10, "d" * 32), {}, 1)
        grown = now.manifest.cells["c3"].followed(log)
        now, size = written(21, replace(now.manifest, cells={**now.manifest.cells, "c3": grown}), now)
        sizes.append(size)
    assert sizes[0] == sizes[1] < 500


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("harm", [halve, flip, Path.unlink])
def test_a_manifest_that_is_harmed_is_never_passed_over(store: Store, harm: Callable[[Path], None]) -> None:
    """Up to the next whole one, what stands on it cannot be read; what does not, can."""
    query = Query(store)
    query.go_on(range(60))
    kinds = forms(store)
    harmed = next(batch for batch in range(20, 60) if kinds[batch] == kinds[batch + 1] == manifest.STEP)
    next_whole = min(batch for batch in kinds if batch > harmed and kinds[batch] == manifest.WHOLE)
    harm(Path(store.uri, manifest.path_of(harmed, "aa")))
    for batch in range(60):
        if batch == harmed and harm is Path.unlink:
            assert read_manifest(store, batch) is None
        elif harmed <= batch < next_whole:
            with pytest.raises(CorruptError, match=rf"batches/{harmed}-aa\.json"):
                read_manifest(store, batch)
        else:
            assert read_manifest(store, batch) == query.history[batch]


def test_another_manifest_of_the_batch_is_not_what_a_step_stands_on(store: Store) -> None:
    query = Query(store)
    query.go_on(range(30))
    step = next(batch for batch, form in forms(store).items() if batch > 10 and form == manifest.STEP)
    write_manifest(store, replace(query.history[step - 1], noted="other"))
    with pytest.raises(CorruptError, match=rf"batches/\d+-aa\.json is not what batch {step} stands on"):
        read_manifest(store, step)


def test_a_driver_that_was_believed_dead_does_no_harm(store: Store) -> None:
    """It wakes up in the middle of batch 10, when another one is at batch 15, and says that batch 10 is done."""
    first = Query(store)
    first.go_on(range(10))
    late = first.after(10)
    second = Query(store, "bb", 2, first.history[-1])
    second.go_on(range(10, 16))
    write_manifest(store, late, first.written)
    second.go_on(range(16, 20))
    assert read_manifest(store, 10) == late, "it told others last"
    assert read_manifest(store, 10, "bb") == second.history[0]
    for known in (*first.history, *second.history[1:]):
        assert read_manifest(store, known.batch) == known
    flip(Path(store.uri, manifest.path_of(10, "aa")))
    assert read_manifest(store, 10) == second.history[0], "one that is broken is as good as none"


def test_a_step_is_written_only_where_it_says_all(store: Store) -> None:
    query = Query(store)
    query.go_on(range(3))
    before, after = query.history[1:]
    assert step_between(before, after, 0, "") is not None
    moved = {name: address for name, address in before.addresses.items() if name != "c0"}
    log = Log(2, "x", File("logs/x", 1, "d"), {}, 1)
    odd = Chain((), before.cells["c0"].logs[1:]).followed(log)
    for other in (
        replace(after, batch=4),
        replace(after, run="bb"),
        replace(after, cells={}),
        replace(after, addresses=moved),
        replace(after, progress={**after.progress, "state_by_cell": {}}),
        replace(after, cells={**after.cells, "c0": odd}),
        replace(after, cells={**after.cells, "c0": Chain()}),
    ):
        assert step_between(before, other, 0, "") is None
        written = write_manifest(store, replace(other, batch=50), Written(before, "", 0, 10**9))
        assert read_manifest(store, 50, other.run) == written.manifest


def test_a_checkpoint_of_the_version_before_is_gone_on_from(store: Store) -> None:
    """Its manifests are whole, its notes name no run, and it has notes of all batches."""
    old = replace(Query(store).after(7), run="")
    body = json.dumps({"format": 1, **old.to_json()}).encode()
    store.write("batches/7.json", digest(body).encode() + b"\n" + body + b"\n")
    store.write("published/7.json", json.dumps({"batch": 7, "changes": old.changes(), "offsets": "o7"}).encode())
    for batch in (-2, *range(7)):
        store.write(f"published/{batch}.json", b"{}")
    assert read_manifest(store, 7) == newest_manifest(store) == old
    query = Query(store, "bb", 3, old)
    query.go_on(range(8, 12))
    assert newest_manifest(store) == query.history[-1]
    sweep(store, 11, RETAIN)
    assert published_batches(store) == [-2, *range(6, 12)]
    assert manifest_names(store) == [Name(10, "bb"), Name(11, "bb"), Name(7, ""), Name(8, "bb"), Name(9, "bb")]


def test_cleaning_by_what_is_known_leaves_what_a_sweep_leaves(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaning, "SWEEP_EVERY", 10**6)
    monkeypatch.setattr(manifest, "MOST_STEPS", 5)
    query, cleaner = Query(store), Cleaner(store, RETAIN)
    for batch in range(80):
        before = query.last
        query.go_on(range(batch, batch + 1))
        assert query.written is not None
        cleaner.note(before, query.written)
        if batch % 3 == 0:
            cleaner.clean(batch)
            cleaner.wait()
            oldest = max(0, batch - RETAIN + 1)
            for known in query.history[oldest:]:
                assert read_manifest(store, known.batch) == known
                assert all(map(store.has, (file for chain in known.cells.values() for file in chain.files())))
            there = store.walk("")
            assert sweep(store, batch, RETAIN) <= RETAIN + 5, "notes, which go with their manifests"
            assert {path for path in there if not path.startswith("published/")} == {
                path for path in store.walk("") if not path.startswith("published/")
            }
    assert len(manifest_names(store)) <= RETAIN + 3 + 5
    assert len(store.walk("logs")) < 40 * CELLS


def test_the_first_cleaning_of_a_driver_sweeps(store: Store) -> None:
    """What a driver that died had not got round to, and what its attempts left."""
    first = Query(store)
    first.go_on(range(10))
    for lost in ("logs/3-c0-lost.events", "snapshots/.2-c1-lost.state.0"):
        store.write(lost, b"")
    second = Query(store, "bb", 2, first.history[-1])
    cleaner = Cleaner(store, RETAIN)
    for batch in range(10, 30):
        before = second.last
        second.go_on(range(batch, batch + 1))
        assert second.written is not None
        cleaner.note(before, second.written)
    cleaner.clean(29)
    cleaner.wait()
    assert not [path for path in store.walk("") if "lost" in path]
    assert not [name for name in manifest_names(store) if name.run == "aa"]
    assert read_manifest(store, 29) == second.history[-1]
