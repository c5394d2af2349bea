"""Arrow in and out: batches of rows, batches of events, and a view as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.errors import DataError, Error
from viewlet.program.trigger import Result
from viewlet.schema import Type


def is_arrow(data: object) -> bool:
    """Arrow tables and batches, pandas and polars frames, and whatever else speaks the Arrow C data interface."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def as_table(data: Any, relation: str) -> pa.Table:
    """A frame's columns; the index of a pandas frame says nothing about the row and is left behind."""
    try:
        is_pandas = type(data).__module__.partition(".")[0] == "pandas"
        found = pa.Table.from_pandas(data, preserve_index=False) if is_pandas else pa.table(data)
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"not a table: {'; '.join(map(str, error.args))}", relation=relation, value=data) from error
    names = found.column_names
    if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
        raise DataError("the batch has two columns of this name", relation=relation, column=twice, value=data)
    return found


def batch(data: Any, relation: str) -> pa.RecordBatch:
    """All rows as one batch, which is copied only where it came in several."""
    table = as_table(data, relation).combine_chunks()
    columns = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def undone(events: pa.RecordBatch) -> pa.RecordBatch:
    """The events that take a batch of events back."""
    last_first = backwards(events)
    place = last_first.schema.get_field_index("op")
    opposite = pc.negate(last_first.column(place).cast(pa.int64()))
    return last_first.set_column(place, "op", opposite)


def backwards(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.take(pa.array(range(rows.num_rows - 1, -1, -1), pa.int64()))


def rows(data: Any, relation: str) -> Iterator[dict[str, Any]]:
    """The rows of a batch, each by column name."""
    table = as_table(data, relation)
    columns = [column.to_pylist() for column in table.columns]
    for values in zip(*columns, strict=True):
        yield dict(zip(table.column_names, values, strict=True))


def events(data: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(op, relation, row) of a batch with columns ``op``, ``relation``, and ``row`` or a struct for each relation."""
    table = as_table(data, "events")
    names = set(table.column_names)
    if not {"op", "relation"} <= names:
        raise Error(f"a batch of events has columns op and relation; this one has {', '.join(table.column_names)}")
    ops, relations = table["op"].to_pylist(), table["relation"].to_pylist()
    structs = {name: table[name].to_pylist() for name in names - {"op", "relation"}}
    for i, (op, relation) in enumerate(zip(ops, relations, strict=True)):
        column = "row" if "row" in structs else relation
        if column not in structs:
            raise Error(f"event {i} is for {relation}, but the batch has no column row and no column {relation}")
        yield op, relation, structs[column][i]


def schema(result: Result) -> pa.Schema:
    return pa.schema([pa.field(c.name, arrow_type(c.type), c.nullable) for c in result.columns])


def arrow_type(type_: Type) -> pa.DataType:
    match type_.kind:
        case "BOOLEAN":
            return pa.bool_()
        case "INTEGER":
            return pa.int32()
        case "BIGINT":
            return pa.int64()
        case "DOUBLE":
            return pa.float64()
        case "DECIMAL":
            return (pa.decimal128 if type_.precision <= 38 else pa.decimal256)(type_.precision, type_.scale)
        case "DATE":
            return pa.date32()
        case "TIMESTAMP":
            return pa.timestamp("us")
        case "VARCHAR":
            return pa.string()


def table(result: Result, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Rows of Python values, already checked against the types, as a table with the view's types."""
    target = schema(result)
    columns = list(zip(*rows, strict=True)) or [()] * len(target)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, target, strict=True)]
    return pa.Table.from_arrays(arrays, schema=target)


def from_struct(result: Result, rows: Any) -> pa.Table:
    """A struct array from elsewhere as a table with the view's schema."""
    found = pa.array(rows)
    return pa.Table.from_arrays(found.flatten(), schema=schema(result))


def frame(table: pa.Table) -> Any:
    """A pandas frame in which integers stay integers: a column that may hold NULL has pandas' nullable type."""
    import pandas

    nullable = {pa.int32(): pandas.Int32Dtype(), pa.int64(): pandas.Int64Dtype()}
    solid = {f.name: f.type.to_pandas_dtype() for f in table.schema if f.type in nullable and not f.nullable}
    return table.to_pandas(types_mapper=nullable.get).astype(solid)
