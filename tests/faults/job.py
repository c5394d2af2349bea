"""A query that is started again and again: each time it takes what is there, and ends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.faults.feed import CELLS, give
from tests.oracle.oracle import Row
from tests.spark.harness import Streams, shown
from viewlet.durable.chain import Manifest
from viewlet.durable.manifest import newest_manifest
from viewlet.durable.store import Store


@dataclass(frozen=True)
class Job:
    streams: Streams
    checkpoint: Path
    cells: int = CELLS

    def run(self, spark: SparkSession) -> dict[str, list[Row]]:
        """The views at the end."""
        views = self.streams.maintain(spark, checkpoint=self.checkpoint, cells=self.cells)
        try:
            views.query.awaitTermination()
            return {view: shown(frame) for view, frame in views.at().items()}
        finally:
            views.stop()

    def run_with(self, spark: SparkSession, batches: int) -> dict[str, list[Row]]:
        """The stream has this many files from now on."""
        there = len(list((self.streams.folder / "bids").glob("*.parquet")))
        give(self.streams, range(there, batches))
        return self.run(spark)

    def is_refused(self, spark: SparkSession, *reasons: str) -> None:
        with pytest.raises(StreamingQueryException) as refusal:
            self.run(spark)
        for reason in reasons:
            assert reason in str(refusal.value)

    @property
    def newest(self) -> Manifest:
        manifest = newest_manifest(Store.of(str(self.checkpoint)))
        assert manifest is not None
        return manifest

    def state(self, path: str) -> Path:
        return self.checkpoint / "viewlet" / path

    def has(self, batch: int) -> tuple[bool, bool, bool]:
        """Offsets, a manifest, Spark's commit."""
        offsets, commit = self.checkpoint / "offsets" / str(batch), self.checkpoint / "commits" / str(batch)
        return offsets.exists(), bool(self.manifests(batch)), commit.exists()

    def manifests(self, batch: int) -> list[Path]:
        """One for each driver that has done the batch."""
        return sorted(self.state("batches").glob(f"{batch}-*.json"))

    def lose(self, what: str, batch: int) -> None:
        """Spark's ``offsets`` or ``commits`` of a batch, with their checksums."""
        for name in (f"{batch}", f".{batch}.crc"):
            (self.checkpoint / what / name).unlink(missing_ok=True)
