"""SQL's types on Spark: which type of Spark's a column has, and how its values become those that cells hold.

Cells know few types (:func:`viewlet.spark.pipeline.cell_type`). The tasks that read a source turn its values into
those: a TIME into microseconds, an ENUM into the place of its value. Cells turn them back when they show a view.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from inspect import signature

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from viewlet.program.limits import unscaled_range
from viewlet.rows.boundary import A_DAY
from viewlet.schema import Column as Declared
from viewlet.schema import Relation, Type, TypeName
from viewlet.spark.pipeline import cell_type

_SPARK_TYPES: dict[TypeName, T.DataType] = {
    "BOOLEAN": T.BooleanType(),
    "TINYINT": T.ByteType(),
    "SMALLINT": T.ShortType(),
    "INTEGER": T.IntegerType(),
    "BIGINT": T.LongType(),
    "UTINYINT": T.ShortType(),  # Spark has no unsigned ones: the narrowest that holds them
    "USMALLINT": T.IntegerType(),
    "UINTEGER": T.LongType(),
    "DOUBLE": T.DoubleType(),
    "DATE": T.DateType(),
    "TIMESTAMP": T.TimestampNTZType(),
    "VARCHAR": T.StringType(),
    "REAL": T.FloatType(),
    "TIME": T.TimeType(6),
    "INTERVAL": T.DayTimeIntervalType(),
    "ENUM": T.StringType(),
    "BLOB": T.BinaryType(),
}
_DIGITS: dict[type[T.DataType], int] = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 19}
_BITS: dict[type[T.DataType], int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32, T.LongType: 64}
_NOT_IN_A_UUID = "[-{}]"
_UUID = "^[0-9a-fA-F]{32}$"  # without those
_GROUPS = "^(.{8})(.{4})(.{4})(.{4})(.{12})$"


def spark_type(type_: Type) -> T.DataType:
    if type_.kind == "LIST":
        return T.ArrayType(spark_type(type_.inner[0]))
    if type_.zoned:
        return T.TimestampType()
    return T.DecimalType(type_.precision, type_.scale) if type_.kind == "DECIMAL" else _SPARK_TYPES[type_.kind]


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Points in time are of UTC: Spark 4.1 takes that for granted, later ones want to be told."""
    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)


def named(column: str) -> Column:
    """A column by its very name, whatever is in it."""
    return F.col(f"`{column.replace('`', '``')}`")


def takes(type_: Type, given: T.DataType) -> bool:
    """Whether a declared type takes a column of Spark's without loss; a single value may still not fit."""
    match type_.kind, given:
        case "DOUBLE", (T.FloatType() | T.DoubleType() | T.ByteType() | T.ShortType() | T.IntegerType()):
            return True
        case "REAL", (T.FloatType() | T.DoubleType() | T.ByteType() | T.ShortType()):
            return True  # the nearest, as everywhere
        case "DECIMAL", T.DecimalType():
            whole = given.precision - given.scale
            return given.scale <= type_.scale and whole <= type_.precision - type_.scale
        case "DECIMAL", T.IntegralType():
            return _DIGITS[type(given)] <= type_.precision - type_.scale
        case "TIMESTAMP", (T.TimestampNTZType() | T.TimestampType()):
            return True  # a moment for a TIMESTAMP as the session's time zone shows it
        case (("VARCHAR" | "ENUM"), (T.StringType() | T.CharType() | T.VarcharType())):
            return True
    if type_.is_integer:
        return isinstance(given, T.IntegralType)
    return type(given) is type(spark_type(type_)) and type_.kind != "DECIMAL"


def misfit(type_: Type, given: T.DataType, value: Column) -> Column | None:
    """Whether a value is none of its declared type, NULL if it is NULL; None where every value is one."""
    if type_.is_integer:
        low, high = unscaled_range(type_)
        bits = _BITS[type(given)] - 1
        return None if low <= -(2**bits) and high >= 2**bits - 1 else ~value.between(low, high)
    if type_.uuid:
        return ~F.regexp_replace(value, _NOT_IN_A_UUID, "").rlike(_UUID)
    if type_.kind == "ENUM":
        return ~value.isin(*type_.values)
    if type_.kind == "REAL" and isinstance(given, T.DoubleType):
        infinity = F.lit(float("inf"))
        return (F.abs(value) != infinity) & (F.abs(value.cast("float")) == infinity)
    return None


def cell_value(column: Declared, given: T.DataType, relation: Relation) -> Column:
    """The column as cells hold it. A value that does not fit stops the batch; Spark's own casts would wrap some."""
    value, target = named(column.name), spark_type(cell_type(column.type))
    held = _held(column.type, given, value).cast(target)
    wrong = misfit(column.type, given, value)
    if wrong is None:
        return held
    what = F.concat(
        F.lit(f"{relation.name}.{column.name}: "), value.cast("string"), F.lit(f" does not fit {column.type}")
    )
    return F.when(wrong, F.raise_error(what).cast(target)).otherwise(held)


def _held(type_: Type, given: T.DataType, value: Column) -> Column:
    if type_.uuid:
        digits = F.lower(F.regexp_replace(value, _NOT_IN_A_UUID, ""))
        return F.regexp_replace(digits, _GROUPS, "$1-$2-$3-$4-$5")
    if type_.zoned:
        return _in_utc(value) if isinstance(given, T.TimestampType) else value
    if type_.kind == "ENUM":
        return F.array_position(F.array(*map(F.lit, type_.values)), value) - 1
    return _HELD[type_.kind](value) if type_.kind in _HELD else value


def _in_utc(moment: Column) -> Column:
    """Spark's own casts go by the session's time zone, some of whose hours come twice."""
    seconds = F.unix_micros(moment).cast("decimal(20,0)") * F.lit("0.000001").cast("decimal(6,6)")
    return F.lit("1970-01-01").cast("timestamp_ntz") + F.make_dt_interval(secs=seconds.cast("decimal(18,6)"))


def _microseconds(length: Column) -> Column:
    """Of an interval, whose parts have one sign."""
    units = {"DAY": A_DAY, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
    parts = [(F.extract(F.lit(unit), length) * size).cast("long") for unit, size in units.items()]
    return parts[0] + parts[1] + parts[2] + parts[3]


_HELD: dict[TypeName, Callable[[Column], Column]] = {
    "REAL": lambda value: value.cast("float"),
    "TIME": lambda value: F.time_diff(F.lit("MICROSECOND"), F.lit(dt.time()), value),
    "INTERVAL": _microseconds,
    "BLOB": lambda value: F.lower(F.hex(value)),
}
