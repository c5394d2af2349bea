"""Stores that are not a local disk, for real: Hadoop's file systems in Spark's Java, HDFS, and S3 as moto has it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.feed import bids_streams, give
from tests.oracle.oracle import difference
from tests.spark.cluster import until
from tests.spark.harness import shown
from tests.spark.hdfs import started_hdfs
from viewlet.durable.store import Store
from viewlet.errors import Error
from viewlet.spark import maintain
from viewlet.spark.driver.reach import _found, _met
from viewlet.spark.sinks import parquet, read_view

BATCHES = 3


# -- the same place to all ---------------------------------------------------------------------------------------------


def test_a_place_that_spark_cannot_write_is_refused_at_the_start(spark: SparkSession) -> None:
    source = {"r": spark.readStream.format("rate").load().selectExpr("value AS a")}
    script = "CREATE STREAM r (a BIGINT NOT NULL); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM r;"
    with pytest.raises(Error, match=r"^Spark itself cannot write to memory://nowhere: .*scheme \"memory\""):
        maintain(spark, script, source, "memory://nowhere")


def test_an_executor_that_reads_elsewhere_than_java_writes_is_named(tmp_path: Path) -> None:
    (tmp_path / "viewlet" / "reach" / "java").mkdir(parents=True)
    (tmp_path / "viewlet" / "reach" / "java" / "part-00000").write_text("another\n")
    refusal = _met(str(tmp_path), "reach", "token", 3)
    assert isinstance(refusal, Error)
    assert "writes" in str(refusal)
    assert "elsewhere" in str(refusal)
    assert isinstance(_met(str(tmp_path), "reach", "another", 3), str)


def test_an_executor_that_cannot_write_says_why(tmp_path: Path) -> None:
    (tmp_path / "viewlet").write_text("a file")
    refusal = _met(str(tmp_path), "reach", None, 0)
    assert isinstance(refusal, Error)
    assert f"cannot use the checkpoint {tmp_path}" in str(refusal)


def test_a_driver_that_does_not_see_what_executors_wrote_says_so(tmp_path: Path) -> None:
    """As with a local directory on several machines."""
    written = _met(str(tmp_path), "reach", None, 0)
    assert isinstance(written, str)
    _found(Store.of(str(tmp_path)), str(tmp_path), "reach", [written])
    with pytest.raises(Error, match=f"^the driver does not find in {tmp_path} what an executor on another-host wrote"):
        _found(Store.of(str(tmp_path)), str(tmp_path), "reach", [written, "another-host 1"])


# -- Java --------------------------------------------------------------------------------------------------------------

ASK = "from viewlet.durable.java import hadoop; print(hadoop().gateway.jvm.java.lang.ProcessHandle.current().pid())"


def test_one_java_serves_all_and_ends_with_the_last(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", f"{ASK}; input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen(command, env=environment, text=True, **pipes) as first,  # type: ignore[call-overload]
        subprocess.Popen(command, env=environment, text=True, **pipes) as second,  # type: ignore[call-overload]
    ):
        java = int(first.stdout.readline())
        assert int(second.stdout.readline()) == java
        first.kill()
        time.sleep(0.2)
        os.kill(java, 0)
        second.kill()
    until("Java to end", lambda: not _runs(java))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


# -- HDFS --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hdfs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.config.getoption("--soak") < 2:
        pytest.skip("two JVMs and what Maven brings: pytest --soak 2")
    with started_hdfs(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


def test_views_and_a_sink_on_hdfs_equal_the_referee_after_each_micro_batch(
    hdfs: str, spark: SparkSession, tmp_path: Path
) -> None:
    streams = bids_streams(tmp_path / "in", BATCHES)
    checkpoint, sink = (f"{hdfs}/{uuid.uuid4().hex}/{what}" for what in ("checkpoint", "sink"))
    for batch, answer in enumerate(streams.answers()):
        give(streams, range(batch, batch + 1))
        views = streams.maintain(spark, checkpoint=checkpoint, cells=2)
        views.query.awaitTermination()
        follower = views.changes("by_price").writeStream.foreachBatch(parquet(sink)).trigger(availableNow=True)
        follower.option("checkpointLocation", f"{sink}-checkpoint").start().awaitTermination()
        rows = {view: shown(frame) for view, frame in views.at().items()}
        views.stop()
        for view, expected in answer.items():
            assert difference(rows[view], expected) is None, view
        assert difference(shown(read_view(spark, sink)), answer["by_price"]) is None


def test_a_file_on_hdfs_is_replaced_in_one_step(hdfs: str) -> None:
    store = Store(f"{hdfs}/{uuid.uuid4().hex}")
    for content in (b"first", b"second"):
        file = store.write("a/b", content)
        assert bytes(store.checked(file)) == content
    assert store.walk("") == ["a/b"], "no draft is left behind"
    with pytest.raises(FileNotFoundError):
        store.read("a/c")


# -- S3 ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def bucket(soaking: bool, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if not soaking:
        pytest.skip("a server of its own: pytest --soak 2")
    moto = pytest.importorskip("moto.server", reason="pip install 'moto[server]'")
    fs = pytest.importorskip("pyarrow.fs")
    server = moto.ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    settings = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "ENDPOINT_URL": f"http://{host}:{port}"}
    for name, value in {**settings, "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    server_itself = {"endpoint_override": f"{host}:{port}", "scheme": "http"}
    fs.S3FileSystem(allow_bucket_creation=True, **server_itself).create_dir("bucket")
    yield "bucket"
    server.stop()


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_files_on_s3_are_written_read_listed_and_removed(bucket: str, scheme: str) -> None:
    store = Store(f"{scheme}://{bucket}/x")
    first = store.write("a/b", b"first")
    second = store.write("a/b", b"second")
    new = store.write_new({"a/c": b"new"})
    assert bytes(store.checked(second)) == b"second"
    assert not store.has(first)
    assert store.names("a") == ["b", "c"]
    store.delete(["a/b", "a/none"])
    assert store.walk("") == [new[0].path]
    assert store.path_of("a/c") == f"{scheme}://{bucket}/x/a/c"
