"""PySpark in other versions than the one that is installed: each in a directory of its own, put there by pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / ".pytest_cache" / "pyspark"


class MissingError(Exception):
    """There is no such version, or nowhere to get it from."""


def pyspark_of(version: str) -> Path:
    """The directory with this version, for the front of ``PYTHONPATH``."""
    there = CACHE / version
    if not there.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f"{version}-", dir=CACHE))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(draft), f"pyspark=={version}"]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            shutil.rmtree(draft)
            raise MissingError(f"pip does not give PySpark {version}: {ran.stderr[-300:]}")
        draft.rename(there)
    return there


def environment_of(version: str) -> dict[str, str]:
    """Variables with which Python, and the Spark that it starts, are of this version; all else is as installed."""
    there, root = pyspark_of(version), Path(__file__).parents[2]
    path = os.pathsep.join(map(str, (there, root / "src", root)))
    return {"PYTHONPATH": path, "SPARK_HOME": str(there / "pyspark"), "PYSPARK_PYTHON": sys.executable}


def environment_or_skip(version: str) -> dict[str, str]:
    try:
        return environment_of(version)
    except MissingError as missing:
        pytest.skip(str(missing))
