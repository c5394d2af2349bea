"""From the user's DataFrames to rows that know their cell: what a cell reads of a relation, its op, and where it goes.

All relations share one narrow schema, so that one shuffle carries them: ``cell`` (where there are several), ``copy``
(which of the grid's copies of a relation the row is for, where there are several), ``op`` (how often it comes,
negative: goes), and *slots*. The k-th column of a type goes into that type's k-th slot, whatever relation it is from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from viewlet.cells.routing import Copy, Grid, Routing
from viewlet.engines.native.engine import MOST_COPIES
from viewlet.errors import Error
from viewlet.rows.door import Door
from viewlet.schema import Column as Declared
from viewlet.schema import Relation, Type
from viewlet.spark.driver.judge import letter, why_not
from viewlet.spark.driver.types import arrow_schema, cell_value, named, spark_type, takes
from viewlet.spark.task.feed import DEAD

OP = "op"


@dataclass(frozen=True)
class Slots:
    """Which column of the routed rows holds which column of a copy."""

    types: tuple[Type, ...]
    places: Mapping[str, tuple[int, ...]]  # by copy, in the order of its columns

    def names(self, copy: str) -> list[str]:
        return [f"s{place}" for place in self.places[copy]]


def slots_of(copies: Mapping[str, tuple[Type, ...]]) -> Slots:
    """The fewest slots that hold a row of any copy.

    >>> from viewlet.schema import BIGINT, INTEGER
    >>> slots_of({"a": (BIGINT, INTEGER), "b": (INTEGER, INTEGER)}).places
    {'a': (0, 1), 'b': (1, 2)}
    """
    slots: list[Type] = []
    places = {}
    for name, types in copies.items():
        taken: list[int] = []
        for type_ in types:
            free = [i for i, slot in enumerate(slots) if slot == type_ and i not in taken]
            if not free:
                slots.append(type_)
            taken.append(free[0] if free else len(slots) - 1)
        places[name] = tuple(taken)
    return Slots(tuple(slots), places)


def route(
    grid: Grid,
    slots: Slots,
    relations: Mapping[str, Relation],
    sources: Mapping[str, DataFrame],
    *,
    letters: bool = False,
) -> DataFrame:
    """Every source's rows, once for each cell that they belong to. Each source is read once, copies or not.

    With ``letters``, a row that no cell could take is a letter instead, in a column of its own.
    """
    copies: dict[str, dict[int, Copy]] = {}
    for number, copy in enumerate(grid.copies):
        copies.setdefault(copy.relation, {})[number] = copy
    routed = [
        _routed(grid, slots, relations[name], its, with_derived(relations[name], sources[name]), letters)
        for name, its in copies.items()
        if name in sources
    ]
    return reduce(DataFrame.unionAll, routed)


def with_derived(relation: Relation, source: DataFrame) -> DataFrame:
    """The source with the relation's derived columns, which the tasks that read it compute."""
    if not relation.derived:
        return source
    given = {name: kind for name, kind in _given(source).items() if relation.column(name) is not None or name == OP}
    fields = [T.StructField(name, kind) for name, kind in given.items()]
    fields += [_field(column) for column in relation.derived]
    return source.select(*map(named, given)).mapInArrow(partial(_through_the_door, relation), T.StructType(fields))


def _through_the_door(relation: Relation, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    door = Door(relation)
    derived = arrow_schema(T.StructType([_field(column) for column in relation.derived]))
    for batch in batches:
        table = door.table(pa.Table.from_batches([batch]))
        for field in derived:
            place = table.column_names.index(field.name)
            table = table.set_column(place, field, table.column(place).cast(field.type))
        yield from table.to_batches()


def _field(column: Declared) -> T.StructField:
    return T.StructField(column.name, spark_type(column.type))


def without_the_obvious(grid: Grid, rows: DataFrame) -> DataFrame:
    """A column that always says the same costs as much as any other: it is left out."""
    return rows.drop(*(["cell"] if grid.cells == 1 else []), *(["copy"] if len(grid.copies) == 1 else []))


def _routed(
    grid: Grid, slots: Slots, relation: Relation, copies: Mapping[int, Copy], source: DataFrame, letters: bool
) -> DataFrame:
    op = _checked_op(source, relation) if grid.preaggregate else _op(source)  # a sum of ops tells nothing of each
    rows = [
        [cell.alias("cell"), F.lit(number).alias("copy"), op.alias(OP), *_filled(slots, relation, copy, source)]
        for number, copy in copies.items()
        for cell in _cells(grid.routing(copy), relation, _given(source))
    ]
    if letters:
        return _with_letters(slots, relation, copies, source, rows)
    if len(rows) == 1:
        return source.select(*rows[0])
    if len(copies) == 1:  # they differ by their cells alone
        cells = F.explode(F.array(*(row[0] for row in rows))).alias("cell")
        return source.select(cells, *rows[0][1:])
    several = F.explode(F.array(*(F.struct(*row) for row in rows))).alias("row")
    return source.select(several).select("row.*")


def _with_letters(
    slots: Slots, relation: Relation, copies: Mapping[int, Copy], source: DataFrame, rows: list[list[Column]]
) -> DataFrame:
    """A relation with derived columns has no letters: they are computed, and may fail, before a row is judged."""
    given, columns = _given(source), {name for copy in copies.values() for name in copy.columns}
    op = F.col(OP).cast("long") if OP in given else None
    why = F.lit(None).cast("string") if relation.derived else why_not(relation, columns, given, op)
    nobody = [F.lit(None).cast(spark_type(type_)).alias(f"s{place}") for place, type_ in enumerate(slots.types)]
    head = [F.lit(0).alias("cell"), F.lit(0).alias("copy"), F.lit(1).cast("long").alias(OP)]
    dead = F.struct(*head, *nobody, letter(relation, why, source).alias(DEAD))
    living = F.array(*(F.struct(*row, F.lit(None).cast("string").alias(DEAD)) for row in rows))
    judged = F.explode(F.when(why.isNull(), living).otherwise(F.array(dead))).alias("row")
    return source.select(judged).select("row.*")


def _filled(slots: Slots, relation: Relation, copy: Copy, source: DataFrame) -> list[Column]:
    """The columns of a copy in their slots, and nothing in the others."""
    given = _given(source)
    read = [c for c in relation.columns if c.name in copy.columns]
    slot_of = dict(zip(slots.places[copy.name], read, strict=True))

    def value(place: int, type_: Type) -> Column:
        if place not in slot_of:
            return F.lit(None).cast(spark_type(type_))
        return cell_value(slot_of[place], given[slot_of[place].name], relation)

    return [value(place, type_).alias(f"s{place}") for place, type_ in enumerate(slots.types)]


def _cells(routing: Routing, relation: Relation, given: Mapping[str, T.DataType]) -> list[Column]:
    """Σ coordinate × stride: a hash where the row has the dimension's column, every coordinate where it lacks it."""
    hashed: Column = F.lit(0)
    for term in routing.terms:
        column = relation.column(term.column)
        assert column is not None, f"{relation.name} is routed by {term.column}, which it does not have"
        value = cell_value(column, given[term.column], relation)
        coordinate = F.pmod(F.xxhash64(_hashable(value, term.type)), F.lit(term.share)).cast("int")
        hashed = hashed + coordinate * term.stride
    return [hashed if offset == 0 else hashed + offset for offset in routing.offsets]


def _hashable(column: Column, type_: Type) -> Column:
    """Equal values of a dimension hash alike, whatever the types of the columns that hold them."""
    common = column.cast(spark_type(type_))
    if type_.kind != "DOUBLE":
        return common
    return F.when(F.isnan(common), F.lit(float("nan"))).otherwise(common + F.lit(0.0))  # one NaN, and one zero


# -- sources ---------------------------------------------------------------------------------------------------------


def check_source(relation: Relation, source: DataFrame) -> None:
    """Refuse a DataFrame that lacks a column, or has one that its declared type cannot take without loss."""
    given = _given(source)
    if relation.column(OP) is not None:
        raise Error(f"{relation.name} has a column op, which says on Spark whether a row comes or goes: rename it")
    for column in relation.given:
        if column.name not in given:
            there = ", ".join(given)
            raise Error(f"the source of {relation.name} has no column {column.name}; it has {there}")
        if not takes(column.type, given[column.name]):
            raise Error(
                f"the source of {relation.name} has {column.name} as {given[column.name].simpleString()}, which "
                f"{column.type} does not take without loss: cast it in the DataFrame, or declare another type"
            )
    if OP in given and not isinstance(given[OP], T.IntegralType):
        kind = given[OP].simpleString()
        raise Error(f"the source of {relation.name} has op as {kind}; it is +1, -1 or another integer")


def events(relation: Relation, source: DataFrame) -> DataFrame:
    """The relation's columns and op, in one order for all sources of a relation."""
    return source.select(*(named(c.name) for c in relation.given), _checked_op(source, relation).alias(OP))


def cell_rows(relation: Relation, columns: Collection[str], source: DataFrame) -> DataFrame:
    """Some columns as cells get them, whatever their types in the source, and op."""
    given = _given(source)
    read = [cell_value(c, given[c.name], relation) for c in relation.given if c.name in columns or relation.derived]
    names = [value.alias(f"c{place}") for place, value in enumerate(read)]
    return source.select(*names, _checked_op(source, relation).alias(OP))


def _given(source: DataFrame) -> dict[str, T.DataType]:
    """Spark, like SQL, does not tell large letters from small ones."""
    return {f.name.lower(): f.dataType for f in source.schema.fields}


def _op(source: DataFrame) -> Column:
    """The task that takes rows to cells refuses those that are none: Spark would plan the question for every batch."""
    return (F.col(OP) if OP in _given(source) else F.lit(1)).cast("long")


def _checked_op(source: DataFrame, relation: Relation) -> Column:
    if OP not in _given(source):
        return _op(source)
    given = _op(source)
    what = F.coalesce(given.cast("string"), F.lit("NULL"))
    text = F.concat(F.lit(f"{relation.name}.op is "), what, F.lit("; it is +1 (insert), -1 (delete), or how often"))
    return F.when(given.between(-MOST_COPIES, MOST_COPIES), given).otherwise(F.raise_error(text).cast("long"))
