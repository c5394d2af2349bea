"""Chains, manifests and files: what was written is what is read, or nobody reads it."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from viewlet.durable.chain import START, Address, Chain, File, Log, Manifest, Snapshot, Version, ViewFiles
from viewlet.durable.cleaning import sweep
from viewlet.durable.hadoop import hadoop_files
from viewlet.durable.manifest import newest_manifest, read_manifest, write_manifest
from viewlet.durable.store import Store, digest
from viewlet.errors import CorruptError, Error
from viewlet.spark.driver.offsets import forget_first_try, keep_offsets, noted_offsets, restore_offsets
from viewlet.spark.process.events import Rows, log_parts, log_segments, segments
from viewlet.spark.process.merging import to_merge
from viewlet.spark.process.partition import part_of, split
from viewlet.spark.process.snapshot import is_due, is_outgrown


def log(
    batch: int,
    attempt: str = "a",
    *views: str,
    file: File | None = None,
    seconds: float = 0.1,
    first: int | None = None,
) -> Log:
    changes = {view: File(f"changes/{view}/{batch}-c0-{attempt}.parquet", 2, "d") for view in views}
    file = file or File(f"logs/{batch}-c0-{attempt}.events", 1, "d")
    return Log(batch, attempt, file, changes, 3, seconds, first)


def snapshot(batch: int, attempt: str = "a", *views: str) -> Snapshot:
    bases = {view: File(f"bases/{view}/{batch}-c0-{attempt}.parquet", 2, "d") for view in views}
    return Snapshot(Version(batch, attempt), File(f"snapshots/{batch}-c0-{attempt}.state", 9, "d"), bases)


# -- chains ------------------------------------------------------------------------------------------------------------


def test_a_chain_follows_its_batches() -> None:
    chain = Chain()
    assert chain.version == START
    for batch in range(4):
        chain = chain.followed(log(batch, f"a{batch}", "v"))
    assert chain.version == Version(3, "a3")
    assert [file.path for file in chain.view("v").changes] == [f"changes/v/{b}-c0-a{b}.parquet" for b in range(4)]
    assert chain.view("w") == ViewFiles(None, ())


def test_a_chain_keeps_two_snapshots_and_the_logs_after_the_older_one() -> None:
    chain = (
        Chain().followed(log(0, "a", "v")).followed(log(1, "a", "v")).followed(log(2, "a", "v"), snapshot(1, "a", "v"))
    )
    assert [known.batch for known in chain.logs] == [0, 1, 2], "one snapshot that is broken must not be the end"
    assert chain.view("v") == ViewFiles(snapshot(1, "a", "v").bases["v"], (log(2, "a", "v").changes["v"],))
    chain = chain.followed(log(3, "a", "v"), snapshot(2, "a", "v"))
    assert [s.version.batch for s in chain.snapshots] == [1, 2]
    assert [known.batch for known in chain.logs] == [2, 3]
    chain = chain.followed(log(5, "a", "v"), snapshot(3, "a", "v"))
    assert [s.version.batch for s in chain.snapshots] == [2, 3]
    assert [known.batch for known in chain.logs] == [3, 5]
    assert chain.base == snapshot(3, "a", "v")
    assert [known.batch for known in chain.after(chain.base)] == [5]


def test_a_snapshot_is_due_when_replaying_takes_long_or_logs_are_many() -> None:
    def after(*seconds: float, base: int | None = None) -> Chain:
        logs = tuple(log(b, seconds=s, file=File("l", 10, "d")) for b, s in enumerate(seconds, start=1))
        last = () if base is None else (replace(snapshot(0), file=File("s", base, "d")),)
        return Chain(last, logs)

    assert not is_due(after(0.6, 0.3))
    assert is_due(after(0.6, 0.5))
    assert is_due(after(0.6, 0.5, base=80))
    assert not is_due(after(0.6, 0.5, base=20_000_000)), "that takes some time to read, too"
    assert not is_due(after(*[0.0] * 49, base=10**9))
    many = after(*[0.0] * 50, base=10**9)
    assert is_due(many)
    assert not is_outgrown(many), "they are merged"
    assert is_outgrown(after(*[0.0] * 50, base=2000))
    assert not is_due(after(6.0, 4.9, base=10**9))
    assert is_due(slow := after(6.0, 5.1, base=10**9))
    assert is_outgrown(slow), "reading takes ten seconds"


def merged_log(first: int, last: int, size: int = 10, attempt: str = "a") -> Log:
    return log(last, attempt, first=first, file=File(f"snapshots/{last}-c0-a.events", size, "d"))


def test_a_merged_log_takes_the_place_of_those_that_it_was_made_of() -> None:
    chain = Chain((snapshot(1, "a"),), tuple(log(batch, "a") for batch in range(1, 6)))
    after = chain.followed(log(6, "a"), None, merged_log(2, 4))
    assert [(known.start, known.batch) for known in after.logs] == [(1, 1), (2, 4), (5, 5), (6, 6)]
    assert Chain.from_json(after.to_json()) == after
    again = after.followed(log(7, "a"), None, merged_log(2, 6))
    assert [(known.start, known.batch) for known in again.logs] == [(1, 1), (2, 6), (7, 7)]
    assert [known.batch for known in again.recent] == [6, 7]
    whole = again.followed(log(8, "a"), snapshot(7, "a"))
    assert [(known.start, known.batch) for known in whole.logs] == [(2, 6), (7, 7), (8, 8)], "behind the older snapshot"


@pytest.mark.parametrize(
    ("first", "last", "attempt"),
    [(2, 4, "loser"), (0, 3, "a"), (1, 3, "a"), (2, 9, "a")],
    ids=["another's", "unknown", "older than the snapshot", "newer than the chain"],
)
def test_a_merged_log_of_other_logs_is_left_out(first: int, last: int, attempt: str) -> None:
    chain = Chain((snapshot(1, "a"),), tuple(log(batch, "a") for batch in range(1, 6)))
    stranger = merged_log(first, last, attempt=attempt)
    assert chain.followed(log(6, "a"), None, stranger) == chain.followed(log(6, "a"))


def test_merging_takes_in_logs_that_are_not_much_larger() -> None:
    recent = tuple(log(batch, "a", file=File("l", 10, "d")) for batch in range(20, 25))
    for size, first in ((100, 10), (101, 20)):
        chain = Chain((), (merged_log(0, 9, 10_000), merged_log(10, 19, size), *recent))
        assert to_merge(chain)[0].start == first


def test_a_snapshot_of_an_attempt_that_lost_is_left_out() -> None:
    chain = Chain().followed(log(0, "a")).followed(log(1, "winner"))
    assert chain.followed(log(2, "a"), snapshot(1, "loser")).snapshots == ()
    chain = chain.followed(log(2, "a"), snapshot(1, "winner"))
    assert chain.snapshots == (snapshot(1, "winner"),)
    for late in (snapshot(0, "a"), snapshot(1, "winner")):
        assert chain.followed(log(3, "a"), late).snapshots == chain.snapshots, "no newer than what is there"


def test_chains_and_manifests_come_back_from_json() -> None:
    chain = Chain((snapshot(3, "x", "v"), snapshot(4, "y")), (log(4, "y", "v", "w"), log(7, "z")))
    assert Chain.from_json(json.loads(json.dumps(chain.to_json()))) == chain
    manifest = Manifest(7, "offsets", {"c0": chain, "c1": Chain()}, {"c0": Address("h", 1)}, {"rows": 5})
    assert Manifest.from_json(json.loads(json.dumps(manifest.to_json()))) == manifest


def test_a_manifest_names_the_changes_of_its_own_batch() -> None:
    old, new = Chain().followed(log(1, "a", "v")), Chain().followed(log(1, "a", "v")).followed(log(2, "b", "v", "w"))
    changes = Manifest(2, "", {"c0": new, "c1": old}).changes()
    assert changes == {"v": ["changes/v/2-c0-b.parquet"], "w": ["changes/w/2-c0-b.parquet"]}


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["local", "fsspec", "hadoop"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """On a local disk as such, behind the interface of remote ones, and as Hadoop's own file system in Spark's Java."""
    if request.param == "hadoop":
        monkeypatch.setattr("viewlet.durable.store.file_system", hadoop_files)
        return Store(f"file://{tmp_path}/check point/viewlet")
    opened = Store(f"{'fsspec+file://' if request.param == 'fsspec' else ''}{tmp_path}/check point/viewlet")
    assert opened.is_local == (request.param == "local")
    return opened


def on_disk(store: Store, path: str) -> Path:
    return Path(store.path_of(path).removeprefix("fsspec+file://").removeprefix("file://").replace("%20", " "))


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "{}/"])
def test_a_local_directory_has_many_names(form: str, tmp_path: Path) -> None:
    Store.of(form.format(tmp_path)).write("a/b", b"bytes")
    assert (tmp_path / "viewlet/a/b").read_bytes() == b"bytes"
    assert Store.of(form.format(tmp_path)).path_of("a/b") == f"file://{tmp_path}/viewlet/a/b"


def test_what_pyarrow_does_not_know_fsspec_may() -> None:
    store = Store("memory://somewhere")
    assert store.path_of("a/b") == "memory://somewhere/a/b"
    assert bytes(Store(store.uri).checked(store.write("a/b", b"bytes"))) == b"bytes"


def test_what_no_library_knows_is_refused() -> None:
    with pytest.raises(Error, match="no file system for nowhere://x"):
        Store("nowhere://x/y")


def test_files_are_written_read_and_listed(store: Store) -> None:
    file = store.write("a/b/one", b"first")
    assert (file.path, file.bytes) == ("a/b/one", 5)
    assert bytes(store.checked(file)) == b"first"
    newer = store.write("a/b/one", b"second")
    assert bytes(store.checked(newer)) == b"second"
    two, three = store.write_new({"a/two": pa.py_buffer(b"2"), "c/three": b""})
    assert (bytes(store.checked(two)), bytes(store.checked(three))) == (b"2", b"")
    assert store.names("a") == ["b", "two"]
    assert store.walk("a") == ["a/b/one", "a/two"], "no draft is left behind"
    assert store.names("nothing") == store.walk("nothing") == []
    store.delete(["a/two", "a/never was"])
    assert store.walk("a") == ["a/b/one"]
    store.delete_directory("a")
    store.delete_directory("never was")
    assert store.names("") == ["c"]


def test_a_draft_becomes_a_file(store: Store, tmp_path: Path) -> None:
    draft = store.draft("s/state", tmp_path)
    draft.write_bytes(b"state")
    file = store.adopt(draft, "s/state")
    assert not draft.exists()
    assert store.has(file)
    assert not store.has(replace(file, bytes=4))
    with store.opened(file) as opened:
        assert opened.read() == b"state"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [truncate, flip, Path.unlink])
def test_a_file_that_is_not_what_was_written_is_refused(store: Store, harm: Callable[[Path], None]) -> None:
    file = store.write("a/file", b"some bytes")
    harm(on_disk(store, "a/file"))
    with pytest.raises(CorruptError, match="a/file"):
        store.checked(file)
    with pytest.raises(CorruptError, match="a/file"), store.opened(file):
        pass


# -- manifests ---------------------------------------------------------------------------------------------------------


def test_manifests_are_found_again(store: Store) -> None:
    assert newest_manifest(store) is None
    for batch in (-2, 8, 9, 10):
        write_manifest(store, Manifest(batch, f"o{batch}", {"c0": Chain().followed(log(batch, "a", "v"))}))
    write_manifest(store, Manifest(10, "other", {}))
    assert read_manifest(store, 7) is None
    newest = newest_manifest(store)
    assert newest is not None
    assert (newest.batch, newest.offsets) == (10, "other"), "another attempt of the batch took its place"
    first = newest_manifest(store, at_most=7)
    assert first is not None
    assert first.batch == -2, "what comes before the first batch"
    nine = newest_manifest(store, at_most=9)
    assert nine == Manifest(9, "o9", {"c0": Chain().followed(log(9, "a", "v"))})
    published = json.loads(bytes(store.read("published/9.json")))
    assert published == {"batch": 9, "changes": {"v": ["changes/v/9-c0-a.parquet"]}, "offsets": "o9"}


def test_a_manifest_that_was_harmed_is_refused_wherever_it_was(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    write_manifest(store, Manifest(3, "o", {"c0": Chain().followed(log(3))}))
    path = on_disk(store, "batches/3.json")
    whole = path.read_bytes()
    for place in range(0, len(whole) - 1, 5):
        harmed = bytearray(whole)
        harmed[place] ^= 1
        path.write_bytes(harmed)
        with pytest.raises(CorruptError):
            read_manifest(store, 3)
        path.write_bytes(whole[:place])
        with pytest.raises(CorruptError):
            read_manifest(store, 3)


def test_a_manifest_of_another_format_is_refused(store: Store) -> None:
    body = json.dumps({"format": 99}).encode()
    store.write("batches/0.json", digest(body).encode() + b"\n" + body + b"\n")
    with pytest.raises(CorruptError, match="format 99"):
        read_manifest(store, 0)


def test_what_spark_noted_of_a_batch_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its offsets, and which files they stand for; in the one form or the other, if it is there at all."""
    noted = 'v1\n{"batchTimestampMs":1}\n{"logOffset":9}\n-\n{"logOffset":3}'
    made = ["offsets/7", "sources/0/9.compact", "sources/0/8", "sources/2/3"]
    for path in made:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(noted)
    synced, sync = set(), os.fsync

    def watched(file: int) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{file}").removeprefix(f"{tmp_path}/"))
        sync(file)

    monkeypatch.setattr(os, "fsync", watched)
    assert noted_offsets(str(tmp_path), 7) == noted
    keep_offsets(str(tmp_path), 7, noted)
    assert synced == {"offsets", "offsets/7", "sources/0", "sources/0/9.compact", "sources/2", "sources/2/3"}


def test_lost_offsets_are_put_back_as_far_as_they_are_known(tmp_path: Path) -> None:
    """Nothing else is touched: neither what Spark still has, nor what it has given up."""
    ours, spark = Store.of(str(tmp_path)), Store(str(tmp_path))
    for batch in range(1, 6):
        noted = f"offsets of {batch}"
        write_manifest(ours, Manifest(batch, digest(noted.encode()), {}, noted=noted if batch > 1 else ""))
    spark.write("offsets/3", b"offsets of 3")
    spark.write("offsets/4", b"")
    spark.write("offsets/5", b"others")
    spark.write("offsets/.5.crc", b"of others")
    restore_offsets(str(tmp_path))
    assert spark.names("offsets") == ["3", "4", "5"]
    assert {n: noted_offsets(str(tmp_path), n) for n in (3, 4, 5)} == {n: f"offsets of {n}" for n in (3, 4, 5)}
    spark.delete(["offsets/3", "offsets/4", "offsets/5"])
    restore_offsets(str(tmp_path))
    assert spark.names("offsets") == ["2", "3", "4", "5"], "of the first nobody knows"


@pytest.mark.parametrize(
    ("there", "done", "running", "left"),
    [
        ({"offsets/.0.1.tmp": "v1", "offsets/0": ""}, [-2, -1], "", []),
        ({"offsets/0": 'v1\n{"batchTi', "state/0/0/1.delta": "", "metadata": ""}, [-2], "", []),
        ({"offsets/.0.1.tmp": "v1", "metadata": '{"id":"q"}'}, [-2], "other", ["metadata"]),
        ({"offsets/.0.1.tmp": "v1", "metadata": '{"id":"q"}'}, [-2], "q", ["metadata", "offsets/.0.1.tmp"]),
        ({"offsets/0": 'v1\n{"batchTimestampMs":1}\n-', "offsets/.1.1.tmp": ""}, [-2], "", None),
        ({"offsets/.1.1.tmp": "", "commits/0": "v1"}, [-2], "", None),
        ({"offsets/0": "", "sources/0/0": "v1"}, [-2, 0], "", None),
        ({"offsets/0": "", "sources/0/0": "v1"}, [-2], "", ["sources/0/0"]),
        ({"offsets/0": ""}, [], "", None),
    ],
)
def test_what_is_left_of_a_first_try_goes_and_nothing_else(
    store: Store, there: dict[str, str], done: list[int], running: str, left: list[str] | None
) -> None:
    """The last one is no checkpoint of ours."""
    checkpoint = store.uri.removesuffix("/viewlet")
    spark = Store(checkpoint)
    for batch in done:
        write_manifest(store, Manifest(batch, "", {}))
    if done:
        store.write("job.txt", b"of an earlier version")
    ours = store.walk("")
    for path, text in there.items():
        spark.write(path, text.encode())
    forget_first_try(checkpoint, running.split())
    theirs = [path for path in spark.walk("") if not path.startswith("viewlet/")]
    assert theirs == sorted(there if left is None else left)
    assert not (left == [] and set(spark.names("")) - {"viewlet"}), "Spark wants no directory of batches either"
    assert store.walk("") == ours


# -- cleaning ----------------------------------------------------------------------------------------------------------


RETAIN = 4


class Query:
    """Batches as a driver would have them: attempts that lose, snapshots that come late, drafts of the dead."""

    def __init__(self, store: Store) -> None:
        self.store, self.random = store, random.Random(5)
        self.chains = {"c0": Chain(), "c1": Chain()}
        self.late: dict[str, Snapshot] = {}
        self.slow = 0  # snapshots that took longer than batches are retained

    def put(self, path: str) -> File:
        return self.store.write(path, path.encode())

    def log(self, batch: int, cell: str, attempt: str) -> Log:
        stem = f"{batch}-{cell}-{attempt}"
        changes = {"v": self.put(f"changes/v/{stem}.parquet")}
        return Log(batch, attempt, self.put(f"logs/{stem}.events"), changes, 1)

    def snapshot(self, version: Version, cell: str) -> Snapshot:
        stem = f"{version.batch}-{cell}-{version.log}-0"
        return Snapshot(version, self.put(f"snapshots/{stem}.state"), {"v": self.put(f"bases/v/{stem}.parquet")})

    def run(self, batch: int) -> None:
        for cell, chain in self.chains.items():
            if cell == "c1" and batch % 3:
                continue
            self.log(batch, cell, "loser")
            made = self.late.pop(cell, None) if self.random.random() < 0.15 else None
            if made is not None:
                assert all(map(self.store.has, [made.file, *made.bases.values()])), "cleaned while it was made"
                self.slow += made.version.batch <= batch - RETAIN
            self.chains[cell] = chain.followed(self.log(batch, cell, "winner"), made)
            if cell not in self.late and self.random.random() < 0.4:
                self.late[cell] = self.snapshot(self.chains[cell].version, cell)
                self.put(f"snapshots/.{batch}-{cell}-loser-1.state.0")
                self.put(f"snapshots/.{batch}-{cell}-winner-1.state.0")
        write_manifest(self.store, Manifest(batch, "", dict(self.chains)))


def test_cleaning_keeps_what_a_manifest_names_or_may_come_to_name_and_nothing_old(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    query, removed = Query(store), 0
    for batch in range(-2, 28):
        query.run(batch)
        removed += sweep(store, batch, RETAIN)
        kept = [m for b in range(-2, batch + 1) if (m := read_manifest(store, b)) is not None]
        assert [m.batch for m in kept] == list(range(max(-2, batch - RETAIN + 1), batch + 1))
        named = {file.path for m in kept for chain in m.cells.values() for file in chain.files()}
        there = {p for directory in ("logs", "snapshots", "bases", "changes") for p in store.walk(directory)}
        assert named <= there
        recent = {(log.batch, cell) for cell, chain in query.chains.items() for log in chain.recent}
        for path in there - named:
            stem = re.fullmatch(r"\.?(-?\d+)-(c\d)-(\w+)(-\d)?\..*", path.rpartition("/")[2])
            assert stem is not None
            may_come = stem[3] == "winner" and stem[4] is not None and (int(stem[1]), stem[2]) in recent
            assert may_come or int(stem[1]) > batch - RETAIN, path
    assert removed > 100
    assert query.slow
    assert query.chains["c0"].snapshots, "snapshots were taken, or this shows little"


def test_nothing_is_cleaned_by_a_manifest_that_cannot_be_read(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    query = Query(store)
    for batch in range(10):
        query.run(batch)
    before = store.walk("")
    flip(tmp_path / "batches/9.json")
    assert sweep(store, 9, 3) == 0
    assert store.walk("") == before
    assert sweep(store, 30, 3) == 0, "without any retained manifest there is no telling what is needed"


# -- events ------------------------------------------------------------------------------------------------------------


def batch_of(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"a": pa.array(values, pa.int32()), "b": pa.array([f"text {v}" for v in values])})


def test_events_come_back_in_their_order() -> None:
    given = [
        Rows("r", 1, batch_of(1, 2)),
        Rows("r", 1, batch_of(3)),
        Rows("s", 2, batch_of()),
        Rows("r", -1, batch_of(1)),
    ]
    data = pa.py_buffer(b"".join(log_parts(4, segments(given))))
    read = [(s.relation, s.times, list(s.batches())) for s in log_segments(data, 4, "log")]
    assert read == [
        ("r", 1, [batch_of(1, 2), batch_of(3)]),
        ("s", 2, [batch_of()]),
        ("r", -1, [batch_of(1)]),
    ]
    assert list(log_segments(pa.py_buffer(b"".join(log_parts(0, []))), 0, "log")) == []


def test_a_log_of_something_else_is_refused() -> None:
    data = pa.py_buffer(b"".join(log_parts(4, segments([Rows("r", 1, batch_of(1))]))))
    with pytest.raises(CorruptError, match="of batch 4, not of 5"):
        list(log_segments(data, 5, "log"))
    with pytest.raises(CorruptError, match="no log of this format"):
        list(log_segments(pa.py_buffer(b"x" * 100), 5, "log"))


# -- merge partitions --------------------------------------------------------------------------------------------------

KEYS = pa.record_batch(
    {
        "weight": pa.array([1] * 8, pa.int64()),
        "i": pa.array([0, 1, -1, None, 2**62, -(2**63), 7, 8], pa.int64()),
        "d": pa.array([Decimal(n) / 100 for n in range(7)] + [None], pa.decimal128(38, 2)),
        "f": pa.array([0.0, -0.0, float("nan"), float("inf"), 1.5, -1.5, None, 1e300]),
        "s": pa.array(["", "a", "b", "a", None, "ä", "zz", "b"]),
        "t": pa.array([True, False, None, True, False, None, True, False]),
    }
)


def test_parts_are_the_same_in_every_process_and_version() -> None:
    """A merge cell's state was summed under these numbers: another hash needs another format of the store."""
    parts = {name: part_of(KEYS, (place,), 10).tolist() for place, name in enumerate(KEYS.schema.names)}
    assert parts == {
        "weight": [0, 0, 0, 0, 0, 0, 0, 0],
        "i": [5, 0, 0, 1, 4, 7, 5, 4],
        "d": [5, 1, 8, 1, 8, 9, 2, 1],
        "f": [5, 5, 0, 6, 4, 9, 1, 8],
        "s": [5, 3, 2, 3, 1, 8, 9, 2],
        "t": [0, 5, 1, 0, 5, 1, 0, 5],
    }


def test_rows_of_equal_keys_meet_wherever_they_lie_in_a_batch() -> None:
    everything = tuple(range(1, 6))
    whole = part_of(KEYS, everything, 1000)
    assert len(set(whole.tolist())) == 8
    for start in range(8):
        assert part_of(KEYS.slice(start, 3), everything, 1000).tolist() == whole[start : start + 3].tolist()
    floats = pa.record_batch(
        {"f": pa.array([0.0, -0.0, float("nan"), -float("nan"), np.frombuffer(b"\1" * 6 + b"\xf8\x7f")[0]])}
    )
    zero, minus, *nans = part_of(floats, (0,), 1000).tolist()
    assert zero == minus
    assert len(set(nans)) == 1


def test_a_batch_is_split_without_loss() -> None:
    parts = split(KEYS, (4, 1), 3)
    assert sum(part.num_rows for part in parts.values()) == 8
    assert len(parts) == 3
    for number, part in parts.items():
        assert set(part_of(part, (4, 1), 3).tolist()) == {number}
    assert split(KEYS, (), 3) == {0: KEYS}
    assert split(KEYS.slice(0, 0), (1,), 3) == split(KEYS.slice(0, 0), (), 3) == {}
