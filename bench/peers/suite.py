"""Every peer on every query of its experiment, beside viewlet, in one run: ``viewlet bench peers``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.engine.contestants import SkippedError
from bench.engine.workload import Workload
from bench.paper.postgres import server
from bench.peers.contestants import JAVA, PEERS, QUERIES, SERVER, Peer
from bench.peers.environment import MissingError, python_of
from bench.peers.ours import ours
from bench.peers.race import EXPERIMENT, Start, race, without
from bench.peers.workload import peers_workload, write_files
from bench.results import Measurement
from bench.suite import Found, Say, Settings
from viewlet.errors import Error
from viewlet.spark.java import java_home

FULL_PATIENCE = 5  # times as long with --full


def measure(settings: Settings, say: Say) -> Iterator[Found]:
    """Installing is not counted, but bounded; what cannot be installed is missing from the race, and no failure."""
    with tempfile.TemporaryDirectory(prefix="viewlet-peers-") as folder, ExitStack() as until_the_end:
        names = [name for name in QUERIES if name in settings.queries]
        if not names:
            return
        grounds = Grounds(say, until_the_end)
        for name in names:
            w, files = peers_workload(name), Path(folder, name)
            write_files(w, files)
            say(f"{name}: viewlet")
            yield from ours(EXPERIMENT, w)
            for peer in PEERS:
                say(f"{name}: {peer.name}, {peer.freshness}")
                yield grounds.measured(peer, w, files, settings)


class Grounds:
    """What the peers stand on: environments, a Java, a PostgreSQL server; and why one is not there."""

    def __init__(self, say: Say, until_the_end: ExitStack) -> None:
        self._places: dict[str, str] = {}
        self._missing: dict[str, str] = {}
        for need, find in _needs(until_the_end).items():
            say(f"setting up {need}")
            try:
                self._places[need] = str(find())
            except (MissingError, SkippedError, Error) as missing:
                self._missing[need] = str(missing)

    def measured(self, peer: Peer, w: Workload, files: Path, settings: Settings) -> Measurement:
        lacking = [self._missing[need] for need in peer.needs if need in self._missing]
        if lacking:
            return without(peer, w, "missing", lacking[0])
        seconds = settings.seconds * peer.patience * (FULL_PATIENCE if settings.full else 1)
        java = {"JAVA_HOME": self._places[JAVA]} if JAVA in peer.needs else {}
        address = self._places[SERVER] if SERVER in peer.needs else ""
        return race(peer, w, Start(Path(self._places[peer.environment]), files, seconds, address, java))


def _needs(until_the_end: ExitStack) -> dict[str, Callable[[], object]]:
    environments = dict.fromkeys(peer.environment for peer in PEERS)
    return {
        JAVA: java_home,
        SERVER: lambda: until_the_end.enter_context(server()),
        **{name: partial(python_of, name) for name in environments},
    }
