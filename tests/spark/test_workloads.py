"""The paper's streams as Spark jobs: what they write, that any prefix of it is a stream, and how it is read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.oracle.oracle import DuckOracle
from viewlet.errors import Error
from viewlet.rows.arrow import arrow_type
from viewlet.schema import Relation
from viewlet.sql.translate import translate
from viewlet.workloads import event_files, tpch_events, tpchgen
from viewlet.workloads.event_files import EventFiles
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES, TPCH
from viewlet.workloads.streams import NATION

EVENTS, FILES = 3_000, 6
SCALE, ORDERS = 0.01, 500


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
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> EventFiles:
    path = tmp_path_factory.mktemp("tpch") / "events"
    return event_files.tpch(spark, path, 20_500, scale=SCALE, live=ORDERS, events_per_file=4_000)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the generator makes when it is asked for everything at once."""
    here = tmp_path_factory.mktemp("generated")
    tpchgen._generate(str(here), SCALE, 1, 1)
    return here


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
    sizes = [sum(lengths) for lengths in zip(*([len(t) for t in tables(book, r)] for r in book.relations), strict=True)]
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


def test_a_warehouse_has_as_many_events_as_asked_for(warehouse: EventFiles) -> None:
    assert warehouse.relations == ("customer", "orders", "lineitem", "part", "supplier", "partsupp")
    slices = zip(*([len(t) for t in tables(warehouse, r)] for r in warehouse.relations), strict=True)
    assert [sum(sizes) for sizes in slices] == [4_000] * 5 + [500]
    assert sorted(path.name for path in Path(warehouse.path).iterdir()) == sorted((*warehouse.relations, "nation"))


def test_a_warehouse_keeps_its_orders_and_their_lineitems(warehouse: EventFiles) -> None:
    orders = tables(warehouse, "orders")
    for files in range(3, len(orders) + 1):
        assert 0.85 * ORDERS < len(live_rows(orders[:files])) < 1.15 * ORDERS + 40, "40 are on their way"
    keys = {row[0] for row in live_rows(orders)}
    lineitems = live_rows(tables(warehouse, "lineitem"))
    of_a_live_order = sum(row[0] in keys for row in lineitems)
    assert of_a_live_order > 0.9 * len(lineitems), "lineitems come and go with their orders, but for some"
    assert len(lineitems) > 3 * len(keys)


def test_the_rows_of_a_warehouse_are_the_generators(warehouse: EventFiles, generated: Path) -> None:
    for relation in translate(TPCH).relations:
        if relation.name in ("customer", "part", "supplier", "partsupp", "orders"):
            (file,) = (generated / relation.name).iterdir()
            prefix = tpchgen._PREFIXES[relation.name]
            rows = pq.read_table(file, columns=[f"{prefix}_{c.name}" for c in relation.columns])
            made = {tuple(row.values()) for row in rows.to_pylist()}
            came = {tuple(row.values())[:-1] for t in tables(warehouse, relation.name) for row in t.to_pylist()}
            assert came <= made if relation.name == "orders" else came == made


def test_lineitems_are_moved_by_the_generators_own_formulas(
    spark: SparkSession, warehouse: EventFiles, generated: Path
) -> None:
    part, quantity, made = F.col("l_partkey"), F.col("l_quantity"), spark.read.parquet(str(generated / "lineitem"))
    suppliers = [tpch_events.supplier_of(part, F.lit(turn), 100) for turn in range(4)]
    assert made.where(tpch_events.price_of(part, quantity) != F.col("l_extendedprice")).count() == 0
    assert made.where(~F.col("l_suppkey").isin(*suppliers)).count() == 0
    sold = Counter(row[1:3] for row in live_rows(tables(warehouse, "lineitem")))
    assert sold.keys() <= {row[:2] for row in live_rows(tables(warehouse, "partsupp"))}
    of_a_part = Counter(part for part, _ in sold.elements())
    assert sum(of_a_part[part] for part in range(1, 501)) > 0.4 * of_a_part.total(), "a quarter of the parts, evenly"


def test_the_papers_queries_have_answers_on_a_warehouse(warehouse: EventFiles) -> None:
    oracle = DuckOracle(translate(TPCH).relations)
    for name, table in _left(warehouse).items():
        oracle.connection.register("arrived", table)
        oracle.connection.execute(f"INSERT INTO {name} SELECT * FROM arrived")
    oracle.load("nation", NATION)
    answers = {q.name: oracle.rows(q.referee()) for q in PAPER_QUERIES.values() if q.schema == TPCH}
    assert len(answers) == 6
    assert all(rows and rows[0][-1] for rows in answers.values()), answers


def _left(files: EventFiles) -> dict[str, pa.Table]:
    """What :meth:`EventFiles.bulk` leaves of each relation, as the files themselves do."""
    stream = files.bulk()
    counters = {name: Counter[int]() for name in stream.relations}
    for op, code, place in zip(stream.ops.tolist(), stream.codes.tolist(), stream.places.tolist(), strict=True):
        counter = counters[stream.relations[code]]
        counter[place] += op
        assert counter[place] in (0, 1), "a delete names the row that came"
    left = {name: stream.tables[name].take(sorted(counter.elements())) for name, counter in counters.items()}
    for name, table in left.items():
        assert Counter(tuple(row.values()) for row in table.to_pylist()) == live_rows(tables(files, name))
    return left


def test_events_in_memory_are_in_the_order_of_the_files(book: EventFiles) -> None:
    stream = book.bulk()
    assert len(stream) == EVENTS
    for name in book.relations:
        written = [tuple(row.values()) for table in tables(book, name) for row in table.to_pylist()]
        read = [(*row, 1 if op == "+" else -1) for op, relation, row in stream.events() if relation == name]
        assert read == written
    shares = [(part.codes == 0).mean() for part in (stream.between(n, n + 100) for n in range(0, EVENTS, 100))]
    assert 0.3 < min(shares) <= max(shares) < 0.7, "bids and asks advance evenly"


def test_without_a_number_of_events_each_order_comes_once(spark: SparkSession, tmp_path: Path) -> None:
    whole = event_files.tpch(spark, tmp_path / "whole", scale=0.001, live=100)
    assert whole.files == 1
    ops = Counter(op for table in tables(whole, "orders") for op in table["op"].to_pylist())
    assert ops[1] == 1_500
    assert 1_300 < ops[-1] < 1_450


def test_a_long_stream_of_few_orders_brings_them_again_whatever_the_parallelism(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = event_files.tpch(spark, tmp_path / "few", 20_000, scale=0.001, live=100, events_per_file=10_000)
    monkeypatch.setattr(tpchgen, "_PARTS_OF_A_SCALE", 3_000)
    spark.conf.set("spark.sql.shuffle.partitions", 5)
    try:
        again = event_files.tpch(spark, tmp_path / "again", 20_000, scale=0.001, live=100, events_per_file=10_000)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", 2)
    assert all(tables(again, relation) == tables(few, relation) for relation in few.relations)
    came = [row["orderkey"] for table in tables(few, "orders") for row in table.to_pylist() if row["op"] > 0]
    assert len(came) == len(set(came)) > 1_500


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
    batches = []

    def keep(rows: DataFrame, _batch: int) -> None:
        batches.append(Counter(tuple(row) for row in rows.collect()))

    stream = book.stream(spark, "asks", files_per_batch=2)
    writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
    writer.trigger(availableNow=True).start().awaitTermination()
    written = [Counter(tuple(row.values()) for row in table.to_pylist()) for table in tables(book, "asks")]
    assert batches == [written[n] + written[n + 1] for n in range(0, FILES, 2)]


def test_what_cannot_be_is_refused(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Error, match="at least one event"):
        event_files.order_book(spark, tmp_path, 0)
    with pytest.raises(Error, match="are 11600 events by themselves; take more events or a smaller scale"):
        event_files.tpch(spark, tmp_path, 11_600, scale=0.01)
    with pytest.raises(Error, match="suppliers"):
        event_files.tpch(spark, tmp_path, scale=0.0001)
    monkeypatch.setattr(tpchgen, "_PROGRAM", "no-such-generator")
    with pytest.raises(Error, match=r"pip install 'viewlet\[workloads\]'"):
        tpchgen._generator()
