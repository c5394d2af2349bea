"""``python -m tests.spark.versions [VERSION…]``: the tests of real jobs on other versions of PySpark.

Without versions, on the oldest that ``pyproject.toml`` allows and the newest that pip finds below its bound. Each is
installed beside the one in ``.venv``, which stays as it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from tests.spark.pysparks import environment_of

ROOT = Path(__file__).parents[2]
# Rows in, cells, restarts, other scripts, both ways to read views, sinks, letters, keys, types, Connect.
TESTS = (
    "maintain",
    "conformance",
    "change",
    "back",
    "source",
    "sinks",
    "jdbc",
    "letters",
    "expiry",
    "upserts",
    "envelopes",
    "types",
    "clock",
    "session",
    "connect",
)


# Older versions of PySpark leave sockets to the garbage collector, which Python warns of.
AS_THEY_ARE = ("-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")


def allowed() -> Requirement:
    line = re.search(r'"(pyspark\[[^"]*)"', (ROOT / "pyproject.toml").read_text())
    assert line is not None, "pyproject.toml asks for PySpark"
    return Requirement(line[1])


def oldest_and_newest() -> list[str]:
    """The oldest is that of the bound itself."""
    wanted = allowed().specifier
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "index", "versions", "pyspark"], capture_output=True, text=True, check=True
    )
    listed = re.search(r"Available versions: (.*)", ran.stdout)
    assert listed is not None, "pip lists what there is"
    there = sorted(wanted.filter(map(Version, listed[1].split(", "))))
    return [str(there[0]), str(there[-1])]


def passes(version: str) -> bool:
    files = [f"tests/spark/test_{name}.py" for name in TESTS]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *AS_THEY_ARE, *files]
    started = time.monotonic()
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment_of(version)}, capture_output=True, text=True
    )
    print(ran.stdout[-6000:] if ran.returncode else ran.stdout.splitlines()[-1])
    print(
        f"PySpark {version}: {'fails' if ran.returncode else 'passes'}, {time.monotonic() - started:.0f} s", flush=True
    )
    return ran.returncode == 0


if __name__ == "__main__":
    outcomes = [passes(version) for version in sys.argv[1:] or oldest_and_newest()]
    sys.exit(not all(outcomes))
