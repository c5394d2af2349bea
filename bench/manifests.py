"""What a batch costs the driver beside its cells: ``python -m bench.manifests``.

Tickets, manifests, notes and cleaning are the real ones, on a local disk; the cells are made up, and answer at once.
Every cell makes a snapshot every fifty batches, each in another batch. Times are of CPU, removing files included.
"""

from __future__ import annotations

import argparse
import pickle
import secrets
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.bars import below
from viewlet.durable.chain import Address, Chain, File, Log, Manifest, Snapshot
from viewlet.durable.published import published, published_batches
from viewlet.durable.store import Store
from viewlet.spark.driver.runner import Runner, manifest_after, turn_of
from viewlet.spark.pipeline import Works
from viewlet.spark.process.client import Answer, Artefact, new_run
from viewlet.spark.task.feed import cell_name

VIEWS = ("by_price", "by_broker")
SNAPSHOT_EVERY = 50
FIXED, BUSY = 10e-3, 50e-6  # seconds a batch may take, and for each busy cell
LOOKS = 40  # at the size of the checkpoint
FLAT = 1.05
PLACES = ((8, 8), (64, 64), (512, 512), (512, 8), (1000, 1000))  # cells, and how many of them have rows in a batch


def works_of(store: Store, cells: int) -> Works:
    artefact = Artefact("program", File("program", 0, ""), VIEWS, (), {})
    return Works(
        run=new_run(store),
        cells=cells,
        tasks=cells,
        in_one_task=False,
        preaggregate=False,
        arrivals=(),
        cell=artefact,
        local=VIEWS,
        merge_cells=0,
        merge=None,
        splits=(),
        partials={},
        merged=(),
        global_=(),
        clocks=(),
    )


@dataclass
class Query:
    """A driver's half of a query. ``files`` says whether cells write any."""

    store: Store
    cells: int
    busy: int
    retain: int
    files: bool = False

    def batches(self, count: int) -> Iterator[float]:
        """The seconds that each batch took the driver."""
        works = works_of(self.store, self.cells)
        runner = Runner(works, self.store.uri, self.retain, planned=False, spark=self.store.uri)
        last: Manifest | None = None
        for batch in range(count):
            busy = range(self.cells) if last is None else range(batch * self.busy, (batch + 1) * self.busy)
            answered = [self._answer(batch, number % self.cells, last) for number in busy]
            begun = time.process_time()
            turn = turn_of(works, last, batch)
            pickle.dumps(turn)
            last = manifest_after(last, turn, answered, f"offsets {batch}", 0.1)
            runner._count(self.store, last)
            yield time.process_time() - begun
        if runner.cleaner is not None:
            runner.cleaner.clean(count - 1)
            runner.cleaner.wait()

    def _answer(self, batch: int, number: int, last: Manifest | None) -> Answer:
        name, attempt = cell_name(number), secrets.token_hex(8)
        chain = last.cells.get(name, Chain()) if last else Chain()
        stem = f"{batch}-{name}-{attempt}"
        changes = {view: self._file(f"changes/{view}/{stem}.parquet") for view in VIEWS}
        log = Log(batch, attempt, self._file(f"logs/{stem}.events"), changes, 10, 0.001)
        due = len(chain.recent) >= SNAPSHOT_EVERY or (batch + number) % SNAPSHOT_EVERY == 0
        made = self._snapshot(name, chain) if due and chain.recent else None
        where = Address("10.0.0.1", 40_000 + number)
        return Answer(name, batch, log, made, 10, 0.001, 0.002, False, 1000 * batch, where, "native", 1)

    def _snapshot(self, name: str, chain: Chain) -> Snapshot:
        stem = f"{chain.version.batch}-{name}-{chain.version.log}-{secrets.token_hex(4)}"
        bases = {view: self._file(f"bases/{view}/{stem}.parquet") for view in VIEWS}
        return Snapshot(chain.version, self._file(f"snapshots/{stem}.state"), bases)

    def _file(self, path: str) -> File:
        if self.files:
            place = Path(self.store.uri, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(b"x" * 100)
        return File(path, 100, secrets.token_hex(16))


def size(root: Path, *directories: str) -> int:
    return sum(file.stat().st_size for d in directories for file in (root / d).rglob("*") if file.is_file())


def costs(count: int) -> None:
    print(f"| cells | busy | a batch | the slowest | manifest and note |\n|{'---|' * 5}")
    for cells, busy in PLACES:
        with tempfile.TemporaryDirectory() as root:
            retain = 2 * count  # so that all bytes are there to be counted
            seconds = list(Query(Store(root), cells, busy, retain).batches(count))[1:]
            written = size(Path(root), "batches", "published") / count
        mean, allowed = sum(seconds) / len(seconds), FIXED + BUSY * busy
        print(
            f"| {cells} | {busy} | {mean * 1e3:.1f} ms | {max(seconds) * 1e3:.0f} ms | {written / 1e3:.1f} kB |"
            f"{below(mean * 1e3, round(allowed * 1e3, 1))}",
            flush=True,
        )


def growth(count: int) -> None:
    """The size goes up and down, as files are removed in steps: flat is what grows no more after the first half."""
    print("\n8 cells, files and all, `retain` 100\n")
    print(f"| batches | files | bytes | notes | read all notes |\n|{'---|' * 5}")
    sizes = []
    with tempfile.TemporaryDirectory() as root:
        store = Store(root)
        for batch, _ in enumerate(Query(store, 8, 8, 100, files=True).batches(count), start=1):
            if batch % (count // LOOKS) == 0:
                time.sleep(0.2)  # files are removed beside the batches
                files = [file.stat().st_size for file in Path(root).rglob("*") if file.is_file()]
                sizes.append(sum(files))
                if len(sizes) % (LOOKS // 4) == 0:
                    print(f"| {batch} | {len(files)} | {sizes[-1] / 1e6:.2f} MB | {_notes(store)} |", flush=True)
    most = [max(half) for half in (sizes[: LOOKS // 2], sizes[LOOKS // 2 :])]
    print(
        f"\nmost bytes in the second half : in the first half = {most[1] / most[0]:.2f}{below(most[1] / most[0], FLAT)}"
    )


def _notes(store: Store) -> str:
    begun, notes = time.process_time(), published_batches(store)
    for note in notes:
        published(store, note)
    return f"{len(notes)} | {(time.process_time() - begun) * 1e3:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=200, help="of each row of the first table")
    parser.add_argument("--long", type=int, default=1000, help="of the second table")
    given = parser.parse_args()
    costs(given.batches)
    growth(given.long)


if __name__ == "__main__":
    main()
