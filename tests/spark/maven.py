"""Java programs that tests run for real, from Maven: a test that needs one is skipped where it cannot be had."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
PROJECT = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>viewlet</groupId><artifactId>tests</artifactId>"
    "<version>1</version><dependencies>{}</dependencies></project>"
)


@cache
def jars(*coordinates: str) -> tuple[Path, ...]:
    """Of ``group:artifact:version`` and all that they need; with ``!`` at its end, of that artifact alone."""
    if shutil.which("mvn") is None:
        pytest.skip("there is no Maven here")
    with tempfile.TemporaryDirectory() as folder:
        parts = (DEPENDENCY.format(*c.rstrip("!").split(":"), ALONE if c.endswith("!") else "") for c in coordinates)
        Path(folder, "pom.xml").write_text(PROJECT.format("".join(parts)))
        out = Path(folder, "classpath")
        command = ["mvn", "-q", "-B", "dependency:build-classpath", f"-Dmdep.outputFile={out}"]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if ran.returncode != 0:
            pytest.skip(f"Maven does not give {', '.join(coordinates)}: {ran.stdout[:300]}")
        return tuple(map(Path, out.read_text().strip().split(os.pathsep)))
