"""Arrow in and out: batches of rows, batches of events, and a view as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Context, Decimal
from typing import Any, TypeVar
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.errors import DataError, Error
from viewlet.program.trigger import Result
from viewlet.rows.boundary import value_of
from viewlet.rows.containers import container_value
from viewlet.schema import REAL, Column, Relation, Type, TypeName

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
EVERY_DIGIT = Context(prec=100)


def is_arrow(data: object) -> bool:
    """Arrow tables and batches, pandas and polars frames, and whatever else speaks the Arrow C data interface."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def settled(data: Any, relation: str) -> Any:
    """What can be read only once, or is made while it is read, read: a list or a table in place of a stream."""
    library, kind = type(data).__module__.partition(".")[0], type(data).__name__
    if library in ("pandas", "polars") and kind == "Series":
        why = "a Series is one column: to_frame() makes a frame of it; the values of one row are tuple(series)"
        raise DataError(why, relation=relation, value=data)
    if isinstance(data, pa.RecordBatch):  # the fastest form: it goes in as it is
        _check_names(data, relation)
        return data
    if library == "polars" and kind == "LazyFrame":
        return as_table(data.collect(), relation)
    if is_arrow(data):
        return as_table(data, relation)
    return list(data) if isinstance(data, Iterator) else data


def as_table(data: Any, relation: str) -> pa.Table:
    """A frame's columns; the index of a pandas frame says nothing about the row and is left behind."""
    try:
        arrived = data if isinstance(data, pa.Table) else _table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"not a table: {'; '.join(map(str, error.args))}", relation=relation, value=data) from error
    _check_names(arrived, relation)
    return arrived


def _check_names(data: pa.Table | pa.RecordBatch, relation: str) -> None:
    names = data.schema.names
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError("the batch has two columns of this name", relation=relation, column=twice, value=data)


def _table(data: Any) -> pa.Table:
    is_pandas = type(data).__module__.partition(".")[0] == "pandas"
    return pa.Table.from_pandas(data, preserve_index=False) if is_pandas else pa.table(data)


def batch(data: Any, relation: str) -> pa.RecordBatch:
    """All rows as one batch, which is copied only where it came in several."""
    if isinstance(data, pa.RecordBatch):
        return data
    table = as_table(data, relation)
    try:
        columns = [_in_one(column) for column in table.columns]
    except pa.ArrowException as error:
        raise DataError(f"too much for one batch: {error}", relation=relation, value=data) from error
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    """Without the empty chunks, some of which Arrow cannot put together with others."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


# -- floats for what is no DOUBLE --------------------------------------------------------------------------------------

EVERY_INTEGER = 1 << 53  # below it a double says which integer was meant


class Schemas:
    """Of each relation the last schema whose batches go in as they are. Batches of one source share it."""

    def __init__(self) -> None:
        self._plain: dict[str, tuple[Relation, pa.Schema]] = {}

    def know(self, relation: Relation, schema: pa.Schema) -> bool:
        known = self._plain.get(relation.name)
        return known is not None and known[0] is relation and known[1].equals(schema)

    def fitted(self, table: Rows, relation: Relation) -> Rows:
        """See :func:`fitted`. ``table`` has no two columns of one name."""
        if self.know(relation, table.schema):
            return table
        after = fitted(table, relation)
        if after is table:
            self._plain[relation.name] = relation, table.schema
        return after


def fitted(table: Rows, relation: Relation) -> Rows:
    """Columns of floats as what they stand for in their columns, as far as each value alone would not say it.

    Moments with a time zone are as engines hold them: those of UTC.
    """
    for place, name in enumerate(table.column_names):
        column, given = relation.column(name), table.column(place)
        if column is not None and column.type.zoned and pa.types.is_timestamp(given.type) and given.type.tz:
            table = table.set_column(place, name, given.cast(pa.int64()).cast(pa.timestamp(given.type.unit)))
        if column is None or not pa.types.is_floating(given.type):
            continue
        if column.type.is_integer:
            table = table.set_column(place, name, _integers(relation, column, given.cast(pa.float64())))
        elif column.type == REAL and given.type != pa.float32():
            table = table.set_column(place, name, _singles(relation, column, given.cast(pa.float64())))
        elif column.type.kind == "DECIMAL" and given.type == pa.float32():
            table = table.set_column(place, name, given.cast(pa.string()))  # the shortest of their own width
    return table


def _singles(relation: Relation, column: Column, given: Any) -> Any:
    """The nearest REALs."""
    nearest = given.cast(pa.float32(), safe=False)
    is_beyond = pc.and_(pc.is_inf(nearest.cast(pa.float64())), pc.invert(pc.is_inf(given)))
    if (row := pc.index(is_beyond, True).as_py()) >= 0:
        value = given[row].as_py()
        raise DataError(f"{value} does not fit REAL", relation=relation.name, row=row, column=column.name, value=value)
    return nearest


def _integers(relation: Relation, column: Column, given: Any) -> Any:
    """How pandas and others hold integers some of which are missing: NaN is no number that an integer can be."""
    known = pc.if_else(pc.is_nan(given), pa.scalar(None, pa.float64()), given)
    is_one = pc.and_(pc.equal(pc.floor(known), known), pc.less(pc.abs(known), float(EVERY_INTEGER)))
    if (row := pc.index(is_one, False).as_py()) >= 0:
        value = given[row].as_py()
        lost = "it does not say which integer was meant" if value == value // 1 else "it is no integer"
        message = f"{column.type} takes integers, or floats that are; {value!r}: {lost}"
        raise DataError(message, relation=relation.name, row=row, column=column.name, value=value)
    return known.cast(pa.int64())


# -- rows and events ---------------------------------------------------------------------------------------------------


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


ZONED = pa.timestamp("us", "UTC")
_PLAIN: dict[TypeName, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "VARCHAR": pa.string(),
    "REAL": pa.float32(),
    "TIME": pa.time64("us"),
    "INTERVAL": pa.duration("us"),
    "ENUM": pa.string(),
    "BLOB": pa.binary(),
}


def arrow_type(type_: Type) -> pa.DataType:
    match type_.kind:
        case "DECIMAL":
            return (pa.decimal128 if type_.precision <= 38 else pa.decimal256)(type_.precision, type_.scale)
        case "TIMESTAMP":
            return ZONED if type_.zoned else pa.timestamp("us")
        case "LIST":
            return pa.list_(arrow_type(type_.inner[0]))
        case "STRUCT":
            return pa.struct([(n, arrow_type(t)) for n, t in zip(type_.names, type_.inner, strict=True)])
        case "MAP":
            return pa.map_(*map(arrow_type, type_.inner))
    return _PLAIN[type_.kind]


def held_array(type_: Type, cells: Sequence[Any]) -> pa.Array:
    """Cells of a type that is held as it is."""
    match type_.kind:
        case "DECIMAL":
            values = [None if cell is None else EVERY_DIGIT.scaleb(Decimal(cell), -type_.scale) for cell in cells]
            return pa.array(values, arrow_type(type_))
        case "DATE":
            return pa.array(cells, pa.int32()).cast(pa.date32())
        case "TIMESTAMP":
            return pa.array(cells, pa.int64()).cast(arrow_type(type_))
    return pa.array(cells, arrow_type(type_))


def made_of(type_: Type, held: pa.Array) -> pa.Array:
    """Values of a type, of the array in which an engine holds them (see :attr:`viewlet.schema.Type.held`)."""
    match type_.kind:
        case "REAL":
            return held.cast(pa.float32())
        case "TIMESTAMP" | "TIME" | "INTERVAL":
            return held.view(arrow_type(type_))
        case "ENUM":
            return pa.array(type_.values, pa.string()).take(held)
        case "BLOB":
            return pa.array([None if v is None else bytes.fromhex(v) for v in held.to_pylist()], pa.binary())
        case "LIST" | "STRUCT" | "MAP" if pa.types.is_string(held.type):
            values = [None if v is None else container_value(v, type_, value_of) for v in held.to_pylist()]
            return pa.array(written(values, type_), arrow_type(type_))
    return held


def table(result: Result, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Rows of Python values, already checked against the types, as a table with the view's types."""
    target = schema(result)
    columns = list(zip(*rows, strict=True)) or [()] * len(target)
    cells = [written(values, c.type) for values, c in zip(columns, result.columns, strict=True)]
    arrays = [pa.array(values, field.type) for values, field in zip(cells, target, strict=True)]
    return pa.Table.from_arrays(arrays, schema=target)


def written(values: Sequence[Any], type_: Type) -> Sequence[Any]:
    """Python values as Arrow takes them: a UUID is a text there, and a map a list of pairs."""
    if type_.is_nested:
        return [None if v is None else _written_inside(v, type_) for v in values]
    return [None if v is None else str(v) for v in values] if type_.uuid else values


def _written_inside(value: Any, type_: Type) -> Any:
    match type_.kind:
        case "STRUCT":
            parts = zip(type_.names, type_.inner, strict=True)
            return {name: written([value[name]], inner)[0] for name, inner in parts}
        case "MAP":
            keys, values = (
                written(list(part), t) for part, t in zip((value, value.values()), type_.inner, strict=True)
            )
            return list(zip(keys, values, strict=True))
    return written(value, type_.inner[0])


def listed(result: Result, table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table with the view's schema, as Python values; the opposite of :func:`written`."""
    columns = [column.to_pylist() for column in table.columns]
    for place, column in enumerate(result.columns):
        if column.type.uuid or column.type.is_nested:
            columns[place] = [None if v is None else _read(v, column.type) for v in columns[place]]
    return list(zip(*columns, strict=True))


def _read(value: Any, type_: Type) -> Any:
    if value is None or not (type_.is_nested or type_.uuid):
        return value
    match type_.kind:
        case "STRUCT":
            return {name: _read(value[name], inner) for name, inner in zip(type_.names, type_.inner, strict=True)}
        case "MAP":
            return {_read(k, type_.inner[0]): _read(v, type_.inner[1]) for k, v in value}
        case "LIST":
            return [_read(v, type_.inner[0]) for v in value]
    return UUID(value)


def from_struct(result: Result, rows: Any) -> pa.Table:
    """A struct array from elsewhere as a table with the view's schema."""
    target = schema(result)
    columns = zip(result.columns, pa.array(rows).flatten(), strict=True)
    arrays = [made_of(column.type, values) for column, values in columns]
    return pa.Table.from_arrays(arrays, schema=target)


def frame(table: pa.Table) -> Any:
    """A pandas frame in which integers stay integers: a column that may hold NULL has pandas' nullable type."""
    import pandas

    nullable = {
        pa.int8(): pandas.Int8Dtype(),
        pa.int16(): pandas.Int16Dtype(),
        pa.int32(): pandas.Int32Dtype(),
        pa.int64(): pandas.Int64Dtype(),
        pa.uint8(): pandas.UInt8Dtype(),
        pa.uint16(): pandas.UInt16Dtype(),
        pa.uint32(): pandas.UInt32Dtype(),
    }
    solid = {f.name: f.type.to_pandas_dtype() for f in table.schema if f.type in nullable and not f.nullable}
    return table.to_pandas(types_mapper=nullable.get).astype(solid)
