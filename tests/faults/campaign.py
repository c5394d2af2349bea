"""``python -m tests.faults.campaign --kills 200 --seed 1``: faults of all kinds, at random moments, one after another.

A query runs on a cluster of real processes, and sinks follow it. While batches come, a process is killed at any moment
of a batch, or a disk is full, a file damaged, a second driver started. After each fault everything that was given must
be committed, and each view and each sink must hold the rows that DuckDB has. The table says how often that was so.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median

from bench.paper.postgres import server
from tests.faults.choices import first_choice
from tests.faults.disks import small_disk
from tests.faults.endured import Endured
from tests.faults.feed import bids_streams
from tests.faults.followers import Follower
from tests.faults.strikes import STRIKES
from tests.spark.cluster import started_cluster
from tests.spark.hdfs import started_hdfs
from viewlet.durable.store import Store

RETAIN = 30  # batches: old files go while the campaign goes on
BATCHES_OF_A_FAULT = 4  # at most, on the average: the stream is made beforehand
DISK = 200  # MB


@dataclass
class Tally:
    """What came of each kind of fault."""

    kind: str
    times: int = 0
    alone: int = 0  # went on without being started again
    seconds: list[float] = field(default_factory=list)

    def line(self) -> str:
        slowest, usual = max(self.seconds), median(self.seconds)
        return f"| {self.kind} | {self.times} | {self.alone} | {usual:.1f} s | {slowest:.1f} s |"


HEAD = "| fault | times | went on by itself | right again after (median) | slowest |\n|---|---|---|---|---|"


def main() -> None:
    asked = _arguments()
    rng, tallies = Random(asked.seed), {kind: Tally(kind) for kind in STRIKES}
    with _endured(asked.kills, asked.seed, asked.store) as endured:
        kinds = _drawn(rng, asked.kills, _possible(endured))
        end = time.monotonic() + asked.seconds
        for number, kind in enumerate(kinds):
            if time.monotonic() > end:
                break
            _suffer(endured, tallies[kind], rng)
            print(f"{number + 1} {kind}: right again after {tallies[kind].seconds[-1]:.1f} s", file=sys.stderr)
        changes = endured.changes
        endured.finish()
    print(HEAD, *(tally.line() for tally in tallies.values() if tally.times), sep="\n")
    done = sum(tally.times for tally in tallies.values())
    batches = f"{endured.given} batches of rows and {changes} that changed the job"
    print(f"\n{done} faults in {batches}, {asked.store}, seed {asked.seed}: 0 lost, 0 doubled")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.campaign", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many faults (200)")
    parser.add_argument("--seed", type=int, default=1, help="which faults, and when (1)")
    parser.add_argument("--store", choices=("local", "hdfs"), default="local", help="where the checkpoint is (local)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further fault after this time")
    return parser.parse_args()


def _possible(endured: Endured) -> set[str]:
    is_local = Store(endured.checkpoint).is_local
    kinds = {kind for kind, strike in STRIKES.items() if is_local or not strike.of_files}
    return kinds if endured.has_small_disk else kinds - {"disk full"}


def _drawn(rng: Random, kills: int, kinds: set[str]) -> Iterator[str]:
    """Each kind once in a random order, before the rest is left to chance: a short campaign has all of them."""
    names = [kind for kind in STRIKES if kind in kinds]
    weights = [STRIKES[kind].weight for kind in names]
    first = rng.sample(names, len(names))
    return islice((*first, *rng.choices(names, weights, k=kills)), kills)


def _suffer(endured: Endured, tally: Tally, rng: Random) -> None:
    """One fault, and until everything is right. A view or a sink that stays wrong ends the campaign."""
    starts, begun = endured.starts, time.monotonic()
    STRIKES[tally.kind].strike(endured, rng)
    endured.settle()
    endured.compare()
    tally.times += 1
    tally.alone += endured.starts == starts
    tally.seconds.append(time.monotonic() - begun)


@contextmanager
def _endured(kills: int, seed: int, store: str) -> Iterator[Endured]:
    """A query that runs, with its sinks. All of it is gone in the end."""
    folder = Path(tempfile.mkdtemp(prefix="viewlet-campaign-"))
    with ExitStack() as ends:
        ends.callback(shutil.rmtree, folder, ignore_errors=True)
        cluster = ends.enter_context(started_cluster(folder / "cluster"))
        url = ends.enter_context(server(""))
        small = ends.enter_context(small_disk(folder / "disk", DISK))
        streams = bids_streams(folder / "in", BATCHES_OF_A_FAULT * kills + 10, seed)
        followers = [
            Follower("by_price", folder / "by_price"),
            Follower("by_broker", folder / "by_broker", url, ("broker_id",)),
            Follower("overall", folder / "overall", url),
        ]
        root = ends.enter_context(started_hdfs(folder / "hdfs")) if store == "hdfs" else str(folder / "disk")
        endured = Endured(cluster, folder, streams, followers, f"{root}/checkpoint", small, first_choice(), RETAIN)
        ends.callback(endured.close)
        endured.begin()
        yield endured


if __name__ == "__main__":
    main()
