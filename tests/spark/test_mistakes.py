"""What people give by mistake, or have not installed, is answered in a sentence; what they stop is quiet."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.cluster import until
from viewlet.errors import Error
from viewlet.spark import maintain
from viewlet.spark.driver.cluster import on_cluster, refuse_other_python
from viewlet.spark.driver.runner import Runner, _short_if_stopped

SCRIPT = """
CREATE STREAM r (a BIGINT NOT NULL);
CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM r GROUP BY a;
"""
AVAILABLE = {"availableNow": True}

# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["job.sql", "a folder/job.sql", "job", Path("jobs/job.sql")])
def test_the_name_of_a_file_is_no_script(spark: SparkSession, script: Any) -> None:
    with pytest.raises(Error, match=r"the name of a file: give its text, Path\('.*'\)\.read_text\(\)"):
        maintain(spark, script, {"r": spark.range(1)})


def test_a_script_is_text(spark: SparkSession) -> None:
    with pytest.raises(Error, match="the script is of type bytes: give SQL as a str"):
        maintain(spark, SCRIPT.encode(), {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"r": "data/*.parquet"}, r"sources\['r'\] is 'data/\*\.parquet', a path: give a DataFrame .*readStream"),
        ({"r": Path("data")}, r"sources\['r'\] is 'data', a path"),
        ({"r": [(1,)]}, r"sources\['r'\] is of type list: give a DataFrame of Spark's"),
        ("data", r"sources is of type str: give a dict, sources=\{'name of a stream': a DataFrame, …\}"),
    ],
)
def test_a_source_is_a_data_frame(spark: SparkSession, given: Any, message: str) -> None:
    with pytest.raises(Error, match=message):
        maintain(spark, SCRIPT, given)


@pytest.mark.parametrize(
    "trigger", ["soon", "", 5, {"every": "5 seconds"}, {"processingTime": 5}, {"availableNow": False}]
)
def test_what_is_no_trigger_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path, trigger: Any) -> None:
    source = spark.readStream.format("rate").load().selectExpr("value as a")
    with pytest.raises(
        Error, match=r"^trigger=.* is none of Spark's: give how often .* as '5 seconds', or {'availableN"
    ):
        maintain(spark, SCRIPT, {"r": source}, tmp_path / "checkpoint", trigger=trigger)
    assert not (tmp_path / "checkpoint").exists()


# -- what is not installed ---------------------------------------------------------------------------------------------

WITHOUT_PYSPARK = """
import sys
sys.modules.update(dict.fromkeys(["pyspark", "py4j"]))
from viewlet.cli.main import app
app(["run", "--engine", "spark"])
"""


def test_the_command_says_that_pyspark_is_missing() -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT_PYSPARK], capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr == "error: a job on Spark needs PySpark: pip install 'viewlet[spark]'\n"


HIDE_VIEWLET = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "viewlet":
            raise ModuleNotFoundError("No module named 'viewlet'", name="viewlet")
sys.meta_path.insert(0, Hidden())
"""


def test_workers_with_another_python_are_refused_in_a_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As outside of an activated environment, where Spark's workers run what is called python3."""
    (tmp_path / "sitecustomize.py").write_text(HIDE_VIEWLET)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    with pytest.raises(Error) as refusal:
        maintain(spark, SCRIPT, {"r": spark.range(1).selectExpr("id as a")}, trigger=AVAILABLE)
    assert f"have no module viewlet: they run {python}. Make the session with" in str(refusal.value)
    assert f"PYSPARK_PYTHON={sys.executable} before it starts" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_workers_of_another_version_are_refused_too() -> None:
    refuse_other_python("[JOB_CANCELLED] something else")
    with pytest.raises(Error, match="workers are of another version of Python: they run "):
        refuse_other_python("pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in")


def test_what_an_errand_says_is_still_heard(spark: SparkSession) -> None:
    def errand() -> None:
        raise Error("the errand's own words")

    with pytest.raises(Error, match=r"^the errand's own words$"):
        on_cluster(spark, errand)


# -- stopping ----------------------------------------------------------------------------------------------------------

PROXY_ERROR = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling((.|\\r\\n|\\r|\\n)*)(java.lang.InterruptedException)"
)
SHORT = 2500  # letters: several times as many overflow Java's stack


class Watched(Runner):
    """Notes what Python tells Spark of a batch that fails."""

    told: list[str] = []  # noqa: RUF012

    def __call__(self, rows: DataFrame, batch: int) -> None:
        try:
            super().__call__(rows, batch)
        except Exception:
            self.told.append(traceback.format_exc())
            raise


@pytest.mark.parametrize(
    "said",
    [
        "java.io.InterruptedIOException: stop",
        "[SPARK_JOB_CANCELLED] Job 7 cancelled part of cancelled job group 1 SQLSTATE: XXKDA",
        "[SPARK_JOB_CANCELLED] Job 7 cancelled Query [id = 23, runId = 42] was stopped SQLSTATE: XXKDA",
    ],
)
def test_a_stop_is_known_by_each_of_its_texts(said: str) -> None:
    with pytest.raises(Error, match=PROXY_ERROR), _short_if_stopped():
        raise RuntimeError(said + "\n\tat java" * SHORT)


def test_a_job_that_somebody_cancels_is_a_failure() -> None:
    with pytest.raises(RuntimeError, match="because killed"), _short_if_stopped():
        raise RuntimeError("[SPARK_JOB_CANCELLED] Job 7 cancelled because killed via the Web UI")


@pytest.mark.parametrize("pinned", ["true", "false"])
def test_a_query_that_is_stopped_in_mid_batch_says_little(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pinned: str
) -> None:
    """Spark tells by a regular expression that this is no failure, and Java's stack must be deep enough for it."""
    monkeypatch.setenv("PYSPARK_PIN_THREAD", pinned)
    monkeypatch.setattr(import_module("viewlet.spark.driver.maintain"), "Runner", Watched)
    started = tmp_path / "started"

    def hang(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time

        for batch in batches:
            if batch.num_rows:
                Path(str(started)).touch()
                time.sleep(60)
            yield batch

    Watched.told.clear()
    slow = spark.readStream.format("rate").option("rowsPerSecond", 100).load().selectExpr("value as a")
    sources = {"r": slow.mapInArrow(hang, "a long")}
    views = maintain(spark, SCRIPT, sources, tmp_path / "checkpoint", cells=2, trigger="0 seconds")
    until("a batch", started.exists)
    views.stop()
    assert views.query.exception() is None
    (told,) = Watched.told
    assert len(told) < SHORT, told
    assert spark._jvm is not None
    matcher = spark._jvm.java.util.regex.Pattern.compile(PROXY_ERROR).matcher(told)
    assert matcher.find(), told
