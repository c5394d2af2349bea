"""A store that is not local shows files while they are written: nobody who looks for a name finds half of its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

import viewlet.durable.store
from viewlet.durable.chain import Chain, File, Log, Manifest
from viewlet.durable.manifest import newest_manifest, write_manifest
from viewlet.durable.places import absolute
from viewlet.durable.published import published
from viewlet.durable.store import Store
from viewlet.errors import CorruptError, Error
from viewlet.spark.driver.cluster import batches_done
from viewlet.spark.sinks import merge_on_read


class Piecewise(MemoryFileSystem):
    """As HDFS does: a file is there, and empty, once it is opened. Whoever looks is called after each half of a write.

    To rename onto a file does nothing, and says nothing.
    """

    protocol = "piecewise"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    look: Callable[[], None] = staticmethod(lambda: None)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if "r" in mode:
            return super()._open(path, mode, **options)
        file = _Slow(self, path)
        file.commit()
        Piecewise.look()
        return file

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        if not self.exists(path2):
            super().mv(path1, path2, **options)


class _Slow(MemoryFile):  # type: ignore[misc]
    def write(self, data: Any) -> int:
        whole = bytes(data)
        for half in (whole[: len(whole) // 2], whole[len(whole) // 2 :]):
            super().write(half)
            Piecewise.look()
        return len(whole)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    fsspec.register_implementation("piecewise", Piecewise, clobber=True)
    Piecewise.store.clear()
    monkeypatch.setattr(viewlet.durable.store, "PATIENCE", (0.0, 0.0))
    yield "piecewise://checkpoint"
    Piecewise.store.clear()


def manifest(batch: int, file: File, offsets: str = "") -> Manifest:
    log = Log(batch, "a", File(f"logs/{batch}-c0-a.events", 1, "d"), {"v": file}, 1)
    return Manifest(batch, offsets, {"c0": Chain().followed(log)})


def change(store: Store, batch: int) -> File:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"batch": [batch], "weight": [1], "k": [f"key {batch}"]}), sink)
    return store.write_new({f"changes/v/{batch}-c0-a.parquet": sink.getvalue()})[0]


def followed(store: Store, batch: int) -> list[Any]:
    files = published(store, batch)["changes"]["v"]
    return [row for file in files for row in pq.read_table(pa.BufferReader(store.read(file))).to_pylist()]


def test_what_is_published_is_whole_whenever_it_is_listed(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower looks after each step of a writer's, and reads what it lists for the first time, once."""
    store, told = Store.of(root), dict[int, list[Any]]()
    changes = [change(store, batch) for batch in range(3)]
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        monkeypatch.setattr(Piecewise, "look", staticmethod(lambda: None))
        for batch in batches_done(root):
            if batch not in told:
                told[batch] = followed(Store.of(root), batch)
        monkeypatch.setattr(Piecewise, "look", staticmethod(look))

    monkeypatch.setattr(Piecewise, "look", staticmethod(look))
    for batch in range(3):
        write_manifest(store, manifest(batch, changes[batch]))
    look()
    assert looks > 12, "the writer was watched"
    assert told == {batch: [{"batch": batch, "weight": 1, "k": f"key {batch}"}] for batch in range(3)}


def test_another_file_takes_the_place_of_one_that_is_there(root: str) -> None:
    store = Store.of(root)
    for offsets in ("first", "second"):
        write_manifest(store, manifest(7, change(store, 7), offsets))
    newest = newest_manifest(store)
    assert newest is not None
    assert newest.offsets == "second"
    assert store.names("batches") == ["7.json"], "no draft is left behind"


def test_a_file_that_cannot_be_renamed_is_an_error(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Piecewise, "mv", lambda self, path1, path2, **options: None)
    with pytest.raises(Error, match=r"published/\.7\.json\..* cannot be renamed to 7\.json"):
        Store(root).write("published/7.json", b"{}")


@pytest.mark.parametrize("there", [b"", b'{"batch":1,"chan'])
def test_a_reader_waits_for_the_rest_of_a_file(root: str, there: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a store renames by copying, say."""
    store = Store.of(root)
    write_manifest(store, manifest(1, change(store, 1)))
    whole, path = store.read("published/1.json").to_pybytes(), f"{Store.of(root)._root}/published/1.json"
    Piecewise.store[path] = MemoryFile(None, path, there)
    with pytest.raises(CorruptError, match=r"published/1\.json is not whole: start again"):
        followed(store, 1)
    waited: list[float] = []

    def written_meanwhile(seconds: float) -> None:
        waited.append(seconds)
        Piecewise.store[path] = MemoryFile(None, path, whole)

    monkeypatch.setattr("viewlet.durable.store.time.sleep", written_meanwhile)
    assert followed(store, 1) == [{"batch": 1, "weight": 1, "k": "key 1"}]
    assert waited == [0.0]


def test_a_sinks_manifest_is_waited_for_too(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store, made = Store(root), merge_on_read.ParquetManifest(3, 5, "{}", None, ("changes/3-x",))
    merge_on_read._write_manifest(store, made)
    path = f"{store._root}/manifests/3.json"
    whole = store.read("manifests/3.json").to_pybytes()
    Piecewise.store[path] = MemoryFile(None, path, whole[:40])
    with pytest.raises(CorruptError, match="fails its checksum"):
        merge_on_read.newest_manifest(store)
    rest = MemoryFile(None, path, whole)
    monkeypatch.setattr("viewlet.durable.store.time.sleep", lambda seconds: Piecewise.store.update({path: rest}))
    assert merge_on_read.newest_manifest(store) == made


def test_a_draft_of_a_writer_that_died_is_no_batch(root: str) -> None:
    store = Store.of(root)
    write_manifest(store, manifest(4, change(store, 4)))
    store.write_new({"published/.5.json.0123": b"{"})
    assert batches_done(root) == [4]


# -- places ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["dbfs:/x", "dbfs:/Volumes/a b", "abc:d", "s3x:/bucket/k", "run:1/checkpoint"])
def test_a_scheme_that_is_not_understood_is_no_local_folder(place: str) -> None:
    assert absolute(place) == place
    with pytest.raises(Error, match=f"no file system for {place}.*: write {place.partition(':')[0]}://…"):
        Store.of(place)


@pytest.mark.parametrize("place", ["/x", "x", "./run:1", "C:/x", "C:\\x", "1:x", "file:/x", "file:///x"])
def test_what_is_local_stays_local(place: str) -> None:
    assert Store.of(absolute(place)).is_local
