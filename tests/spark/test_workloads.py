"""The paper's streams as Spark jobs: what they write, that any prefix of it is a stream, and how it is read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from viewlet.arrow import arrow_type
from viewlet.errors import Error
from viewlet.schema import Relation
from viewlet.sql.translate import translate
from viewlet.workloads import event_files
from viewlet.workloads.event_files import EventFiles
from viewlet.workloads.queries import FINANCE, TPCH
from viewlet.workloads.streams import NATION

EVENTS, FILES = 3_000, 6


@pytest.fixture(scope="module")
def three_strands() -> Iterator[None]:
    """As of a stream that is three times too large for one task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_files, "EVENTS_OF_A_STRAND", 1_000)
        yield


@pytest.fixture(scope="module")
def book(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, three_strands: None) -> EventFiles:
    path = tmp_path_factory.mktemp("book") / "events"
    return event_files.order_book(spark, path, EVENTS, live=300, events_per_file=500)


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, three_strands: None) -> EventFiles:
    path = tmp_path_factory.mktemp("tpch") / "events"
    return event_files.tpch(spark, path, 2 * EVENTS, scale=0.002, live=200, events_per_file=1_000)


def tables(files: EventFiles, relation: str) -> list[pa.Table]:
    paths = sorted(Path(files.path, relation).iterdir())
    assert [path.name for path in paths] == [f"part-{n:05}.parquet" for n in range(files.files)]
    return [pq.read_table(path) for path in paths]


def live_rows(slices: list[pa.Table]) -> Counter[tuple[object, ...]]:
    """Each file's rows come before they go: no count is ever below zero after a file."""
    live: Counter[tuple[object, ...]] = Counter()
    for table in slices:
        *columns, ops = (column.to_pylist() for column in table.columns)
        for row, op in zip(zip(*columns, strict=True), ops, strict=True):
            live[row] += op
        assert min(live.values(), default=0) >= 0
    return +live


def declared(relation: Relation) -> pa.Schema:
    return pa.schema([*((c.name, arrow_type(c.type)) for c in relation.columns), ("op", pa.int32())])


def test_a_book_is_so_many_events_in_so_many_files(book: EventFiles) -> None:
    assert (book.relations, book.files) == (("bids", "asks"), FILES)
    sizes = [sum(found) for found in zip(*([len(t) for t in tables(book, r)] for r in book.relations), strict=True)]
    assert sum(sizes) == EVENTS
    assert all(abs(size - EVENTS // FILES) <= 3 for size in sizes), "every strand advances evenly"
    for relation in translate(FINANCE).relations:
        assert all(table.schema.equals(declared(relation)) for table in tables(book, relation.name))


def test_any_first_files_of_a_book_are_a_stream(book: EventFiles) -> None:
    live = [live_rows(tables(book, relation)) for relation in book.relations]
    assert 200 < sum(map(len, live)) < 400
    assert all(count == 1 for side in live for count in side.values())
    ids = [row[1] for side in live for row in side]
    assert len(ids) == len(set(ids)), "strands have ids of their own"


def test_the_same_seed_gives_the_same_files_however_many_tasks_run(
    spark: SparkSession, book: EventFiles, tmp_path: Path, three_strands: None
) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", 5)
    try:
        again = event_files.order_book(spark, tmp_path / "again", EVENTS, live=300, events_per_file=500)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", 2)
    assert all(tables(again, relation) == tables(book, relation) for relation in book.relations)
    other = event_files.order_book(spark, tmp_path / "other", EVENTS, seed=2, live=300, events_per_file=500)
    assert tables(other, "bids")[0] != tables(book, "bids")[0]


def test_a_warehouse_keeps_its_orders_and_their_lineitems(warehouse: EventFiles) -> None:
    rows = {relation: live_rows(tables(warehouse, relation)) for relation in warehouse.relations}
    assert 200 <= len(rows["orders"]) <= 300, "as many as were to be live, and 40 in a strand on their way"
    keys = {row[0] for row in rows["orders"]}
    of_a_live_order = sum(row[0] in keys for row in rows["lineitem"])
    assert of_a_live_order > 0.8 * len(rows["lineitem"]), "lineitems come and go with their orders, but for some"
    customers = [row[0] for row in rows["customer"]]
    assert sorted(customers) == list(range(1, len(customers) + 1)), "keys of all strands together have no gap"
    assert {row[1] for row in rows["orders"]} <= set(customers)


def test_a_relation_without_events_in_a_slice_has_an_empty_file(warehouse: EventFiles) -> None:
    for relation in translate(TPCH).relations:
        if not relation.static:
            assert all(table.schema.equals(declared(relation)) for table in tables(warehouse, relation.name))
    assert len(tables(warehouse, "customer")[-1]) == 0
    assert len(tables(warehouse, "orders")[-1]) > 0


def test_the_static_table_is_there(warehouse: EventFiles) -> None:
    (path,) = Path(warehouse.path, "nation").iterdir()
    assert [tuple(row.values()) for row in pq.read_table(path).to_pylist()] == list(NATION)


def test_files_are_read_back_in_order(spark: SparkSession, book: EventFiles, tmp_path: Path) -> None:
    found = []

    def keep(rows: DataFrame, _batch: int) -> None:
        found.append(Counter(tuple(row) for row in rows.collect()))

    stream = book.stream(spark, "asks", files_per_batch=2)
    writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
    writer.trigger(availableNow=True).start().awaitTermination()
    written = [Counter(tuple(row.values()) for row in table.to_pylist()) for table in tables(book, "asks")]
    assert found == [written[n] + written[n + 1] for n in range(0, FILES, 2)]


def test_what_cannot_be_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Error, match="at least one event"):
        event_files.order_book(spark, tmp_path, 0)
