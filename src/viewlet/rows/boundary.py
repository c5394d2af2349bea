"""Python values on one side, cells and scalars on the other, by column type; nothing inexact crosses in silence."""

from __future__ import annotations

import datetime as dt
import math
import numbers
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from typing import Any

from viewlet.algebra.evaluate import Key
from viewlet.algebra.functions.calendar import EPOCH, time_of_day
from viewlet.algebra.functions.numbers import nearest_single
from viewlet.algebra.terms import Scalar
from viewlet.errors import DataError, Error, OutOfRangeError
from viewlet.program.encoding import Row, decode, scale_of
from viewlet.program.encoding import Stored as Cell
from viewlet.program.limits import unscaled_range
from viewlet.program.trigger import Result, ResultColumn
from viewlet.rows.containers import UnfitError as UnfitError
from viewlet.rows.containers import container_cell, container_value
from viewlet.rows.containers import expected as _expected
from viewlet.schema import BITS, NESTED, Column, Relation, Type
from viewlet.schema import TypeName as Kind

MIDNIGHT = dt.datetime(1970, 1, 1)
ZONED_MIDNIGHT = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
MICROSECOND = dt.timedelta(microseconds=1)
A_DAY = 86_400_000_000  # microseconds
ALL_DIGITS = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
MISSING = ("NaTType", "NAType")  # how the rows of a pandas frame say NULL
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class WildError(DataError):
    """A NaN or an infinity for an engine that cannot take it; the native one can."""


def at_least(least: int, number: object, taker: str) -> int:
    """An argument that says how many, and says it right."""
    if isinstance(number, bool) or not isinstance(number, numbers.Integral) or number < least:
        raise Error(f"{taker} takes a whole number from {least} on, not {number!r}")
    return int(number)


# -- in: a value -------------------------------------------------------------------------------------------------------


def to_cell(value: object, type_: Type) -> Cell:
    """The cell that holds a Python value, or ``UnfitError``; None is for the caller to judge."""
    return None if value is None or type(value).__name__ in MISSING else _TO_CELL[type_.kind](value, type_)


def _container(value: object, type_: Type) -> Cell:
    return container_cell(value, type_, to_cell)


def to_scalar(value: object, type_: Type) -> Scalar:
    """The scalar that stands for a Python value."""
    cell = to_cell(value, type_)
    if is_wild(cell):
        raise wild(value)
    return decode(cell, scale_of(type_))


def is_wild(cell: Cell) -> bool:
    return isinstance(cell, float) and not math.isfinite(cell)


def wild(value: object) -> UnfitError:
    return UnfitError(f"{value!r}: NaN and infinities cannot be summed exactly; only the native engine takes them")


def _boolean(value: object, type_: Type) -> Cell:
    if not isinstance(value, bool):
        raise _expected("a bool", value, type_)
    return value


def _integer(value: object, type_: Type) -> Cell:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise _expected("an int", value, type_)
    whole = int(value)
    if not fits(whole, type_):
        raise UnfitError(f"{whole} does not fit {type_}")
    return whole


def _double(value: object, type_: Type) -> Cell:
    if not _is_int(value) and (isinstance(value, numbers.Rational) or not isinstance(value, numbers.Real)):
        raise _expected("a float or an int", value, type_)
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if _is_int(value) and number != value:
        raise UnfitError(f"{value} is not exactly a {type_}; convert it with float() if the nearest one is meant")
    return math.nan if math.isnan(number) else number + 0.0  # one NaN, and one zero


def _decimal(value: object, type_: Type) -> Cell:
    number = _number(value)
    if number is None or not number.is_finite():
        raise _expected("a Decimal, an int, a float or a numeral in a str", value, type_)
    if not -1000 < int(number.as_tuple().exponent) < 1000:  # or an integer of a billion digits would be made
        raise UnfitError(f"{value} does not fit {type_}")
    scaled = number.scaleb(type_.scale, ALL_DIGITS)
    units = int(scaled)
    if units != scaled:
        raise UnfitError(f"{value!r} has more than {type_.scale} digits after the point: it is no {type_}")
    if not fits(units, type_):
        raise UnfitError(f"{value} does not fit {type_}")
    return units


def _number(value: object) -> Decimal | None:
    """A float as the shortest decimal that reads as it, which is how it is written: 9.99 is 9.99."""
    match value:
        case Decimal():
            return value
        case str() | float():
            return _numeral(value)
        case numbers.Integral() if not isinstance(value, bool):
            return Decimal(int(value))
        case numbers.Real() if not isinstance(value, numbers.Rational):  # a float of another width
            return _numeral(str(value))
    return None


def _numeral(value: str | float) -> Decimal | None:
    try:
        text = value if isinstance(value, str) else float.__repr__(value)
        return None if "_" in text else Decimal(text)
    except InvalidOperation:
        return None


def _date(value: object, type_: Type) -> Cell:
    if isinstance(value, str):
        try:
            value = dt.date.fromisoformat(value if ISO_DATE.fullmatch(value) else "")
        except ValueError:
            raise UnfitError(f"{value!r} is no date of the form YYYY-MM-DD") from None
    if isinstance(value, dt.datetime):
        microseconds = _timestamp(value, type_)
        assert isinstance(microseconds, int)
        if microseconds % A_DAY:
            raise _expected("a datetime.date or a midnight", value, type_)
        return microseconds // A_DAY
    if not isinstance(value, dt.date):
        raise _expected("a datetime.date", value, type_)
    return (value - EPOCH).days


def _timestamp(value: object, type_: Type) -> Cell:
    if isinstance(value, str):
        if re.search(r"[.,]\d{7}", value):
            raise UnfitError(f"{value!r} is finer than the microseconds of {type_}")
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            raise UnfitError(f"{value!r} is no timestamp of the form YYYY-MM-DD HH:MM:SS") from None
    if not isinstance(value, dt.datetime):
        raise _expected("a datetime.datetime", value, type_)
    if value.tzinfo is not None and type_.zoned:
        value = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
    if value.tzinfo is not None:
        raise UnfitError(f"{value} has a time zone, {type_} has none; convert it to the one you mean and drop it")
    if getattr(value, "nanosecond", 0):
        raise UnfitError(f"{value} is finer than the microseconds of {type_}")
    microseconds: int = (value - MIDNIGHT) // MICROSECOND
    return microseconds


def _real(value: object, type_: Type) -> Cell:
    """The nearest REAL: a single-precision number is written with few digits, and most of those are no REAL."""
    number = _double(value, type_)
    assert isinstance(number, float)
    try:
        return nearest_single(number)
    except OverflowError:
        raise UnfitError(f"{value} does not fit {type_}") from None


def _time(value: object, type_: Type) -> Cell:
    if isinstance(value, str):
        microseconds = time_of_day(value)
        if microseconds is None:
            raise UnfitError(f"{value!r} is no time of the form HH:MM:SS, with six places at most")
        return microseconds
    if not isinstance(value, dt.time):
        raise _expected("a datetime.time", value, type_)
    if value.tzinfo is not None:
        raise UnfitError(f"{value} has a time zone, {type_} has none; convert it to the one you mean and drop it")
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _interval(value: object, type_: Type) -> Cell:
    """A length of time. Months have none: pandas' and Arrow's kinds of intervals may have some."""
    if getattr(value, "months", 0):
        raise UnfitError(f"{value}: a month has no length; give days and less")
    if isinstance(value, tuple) and len(value) == 3:  # Arrow's months, days and nanoseconds
        value = dt.timedelta(days=value[1]) + value[2] // 1000 * MICROSECOND if value[2] % 1000 == 0 else value
    if not isinstance(value, dt.timedelta):
        raise _expected("a datetime.timedelta", value, type_)
    if getattr(value, "nanoseconds", 0):
        raise UnfitError(f"{value} is finer than the microseconds of {type_}")
    microseconds: int = value // MICROSECOND
    if not fits(microseconds, type_.held):
        raise UnfitError(f"{value} does not fit {type_}")
    return microseconds


def _enum(value: object, type_: Type) -> Cell:
    if not isinstance(value, str):
        raise _expected("a str", value, type_)
    if value not in type_.values:
        raise UnfitError(f"{value!r} is no value of {type_}")
    return type_.values.index(value)


def _blob(value: object, type_: Type) -> Cell:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise _expected("bytes", value, type_)
    return bytes(value).hex()


def _varchar(value: object, type_: Type) -> Cell:
    if type_.uuid:
        return _uuid(value, type_)
    if not isinstance(value, str):
        raise _expected("a str", value, type_)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UnfitError(f"{value!r} is not valid Unicode") from None
    return str(value)


def _uuid(value: object, type_: Type) -> str:
    if not isinstance(value, (str, uuid.UUID)):
        raise _expected("a uuid.UUID or its text", value, type_)
    try:
        return str(uuid.UUID(str(value)))
    except ValueError:
        raise UnfitError(f"{value!r} is no UUID") from None


def _is_int(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def fits(unscaled: int, type_: Type) -> bool:
    low, high = unscaled_range(type_)
    return low <= unscaled <= high


_TO_CELL: dict[Kind, Callable[[object, Type], Cell]] = {
    "BOOLEAN": _boolean,
    **dict.fromkeys(BITS, _integer),
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "DATE": _date,
    "TIMESTAMP": _timestamp,
    "VARCHAR": _varchar,
    "REAL": _real,
    "TIME": _time,
    "INTERVAL": _interval,
    "ENUM": _enum,
    "BLOB": _blob,
    **dict.fromkeys(NESTED, _container),
}


# -- in: rows ----------------------------------------------------------------------------------------------------------


def to_key(relation: Relation, row: object, number: int = 0, *, takes_wild: bool = True) -> Row:
    """A row (tuple, list or dict) as cells of the relation; ``number`` is its place in the batch, from 0."""
    values = given_values(relation, row, number)
    return tuple([_cell(relation, c, v, number, takes_wild) for c, v in zip(relation.columns, values, strict=True)])


def is_one_row(data: object, relation: Relation | None = None) -> bool:
    """A dict is a row, and so is a tuple or list unless rows are what it holds; the empty list is no rows at all.

    A row may hold lists and dicts where columns of the relation are nested. Then it holds something else beside them,
    or it is a tuple, and not one of tuples.
    """
    if not isinstance(data, (tuple, list)):
        return isinstance(data, Mapping)
    nested = [isinstance(v, (tuple, list, Mapping)) for v in data]
    if relation is None or not any(column.type.is_nested for column in relation.columns):
        return data != [] and not any(nested)
    as_tuple = isinstance(data, tuple) and not all(isinstance(v, tuple) for v in data)
    return data != [] and (not all(nested) or (as_tuple and len(data) in (len(relation.given), len(relation.columns))))


def given_values(relation: Relation, row: object, number: int) -> Sequence[object]:
    """What a row gives, in the order of the columns."""
    names = [c.name for c in relation.columns]
    if isinstance(row, Mapping):
        for name in row:
            if name not in names:
                raise DataError(
                    f"no such column; there are {', '.join(names)}",
                    relation=relation.name,
                    row=number,
                    column=str(name),
                    value=row[name],
                )
        return [row[c.name] if c.derived else row.get(c.name) for c in relation.columns]  # those nobody leaves out
    if not isinstance(row, (tuple, list)):
        kind = type(row).__name__
        raise DataError(
            f"a row is a tuple, a list or a dict, not {row!r} ({kind})", relation=relation.name, row=number, value=row
        )
    if len(row) != len(names):
        raise DataError(
            f"{len(row)} values for {len(names)} columns ({', '.join(names)})",
            relation=relation.name,
            row=number,
            value=row,
        )
    return row


def _cell(relation: Relation, column: Column, value: object, number: int, takes_wild: bool) -> Cell:
    try:
        cell = to_cell(value, column.type)
        if cell is None and not column.nullable:
            raise UnfitError("NULL in a NOT NULL column")
    except UnfitError as unfit:
        raise DataError(str(unfit), relation=relation.name, row=number, column=column.name, value=value) from None
    if not takes_wild and is_wild(cell):
        raise WildError(str(wild(value)), relation=relation.name, row=number, column=column.name, value=value)
    return cell


# -- in: rows of the types that are meant, fast ------------------------------------------------------------------------

Encoder = Callable[[object], Row | None]


def encoder(relation: Relation) -> Encoder:
    """A function that makes cells of a row of exactly the types meant, or None for :func:`to_key` to judge.

    Its code is written out for the relation's columns, since it runs once for every event.
    """
    scope: dict[str, Any] = {"date": dt.date, "datetime": dt.datetime, "Decimal": Decimal, "inf": math.inf}
    scope |= {"UUID": uuid.UUID}
    scope |= {"NAMES": {c.name for c in relation.columns}, "MIDNIGHT": MIDNIGHT, "MICROSECOND": MICROSECOND}
    tests, cells = [], []
    for i, column in enumerate(relation.columns):
        test, cell = _fast_column(f"v{i}", column.type, scope)
        tests.append(f"({test} or v{i} is None)" if column.nullable else test)
        cells.append(f"None if v{i} is None else {cell}" if column.nullable and cell != f"v{i}" else cell)
    names = "".join(f"v{i}, " for i in range(len(cells)))
    fields = "".join(f"row[{c.name!r}], " for c in relation.columns)
    lines = [
        "def encode(row):",
        "    if type(row) is dict and row.keys() == NAMES:",
        f"        row = ({fields})",
        f"    if (type(row) is tuple or type(row) is list) and len(row) == {len(cells)}:",
        f"        ({names}) = row",
        f"        if {' and '.join(tests) or 'True'}:",
        "            try:",
        f"                return ({', '.join(cells)},)" if cells else "                return ()",
        "            except (ArithmeticError, TypeError, ValueError):",
        "                return None",
        "    return None",
    ]
    exec("\n".join(lines), scope)
    encode: Encoder = scope["encode"]
    return encode


def _fast_column(v: str, type_: Type, scope: dict[str, Any]) -> tuple[str, str]:
    """The test that a value is of the type meant, and then its cell, which may still raise."""
    match type_.kind:
        case "BOOLEAN":
            return f"type({v}) is bool", v
        case "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "UTINYINT" | "USMALLINT" | "UINTEGER":
            low, high = unscaled_range(type_)
            return f"type({v}) is int and {low} <= {v} <= {high}", v
        case "DOUBLE":
            return f"type({v}) is float and -inf < {v} < inf", f"{v} + 0.0"
        case "DECIMAL":
            # All digits and the greatest exponent that the type allows: whatever is lost on the way raises.
            exactly = Context(type_.precision, Emin=-1, Emax=type_.precision - 1, traps=[Inexact, InvalidOperation])
            scope[f"{v}_times"], scope[f"{v}_units"] = exactly.multiply, Decimal(10**type_.scale)
            scope[f"{v}_whole"], scope["numeral"] = exactly.to_integral_exact, _numeral
            number = f"{v} if type({v}) is Decimal else numeral({v})"
            kinds = f"(type({v}) is Decimal or type({v}) is float or type({v}) is str)"
            return kinds, f"int({v}_whole({v}_times({number}, {v}_units)))"
        case "DATE":
            return f"type({v}) is date", f"{v}.toordinal() - {EPOCH.toordinal()}"
        case "TIMESTAMP":
            return f"type({v}) is datetime and {v}.tzinfo is None", f"({v} - MIDNIGHT) // MICROSECOND"
        case "VARCHAR" if type_.uuid:
            return f"type({v}) is UUID", f"str({v})"
        case "VARCHAR":
            return f"type({v}) is str and {v}.isascii()", v
        case "REAL":
            scope["single"] = nearest_single
            return f"type({v}) is float and -inf < {v} < inf", f"single({v} + 0.0)"
        case "ENUM":
            scope[f"{v}_places"] = {value: place for place, value in enumerate(type_.values)}
            return f"type({v}) is str and {v} in {v}_places", f"{v}_places[{v}]"
        case "BLOB":
            return f"type({v}) is bytes", f"{v}.hex()"
        case "TIME" | "INTERVAL" | "LIST" | "STRUCT" | "MAP":
            return "False", v


# -- out ---------------------------------------------------------------------------------------------------------------


def to_python(view: str, column: ResultColumn, value: Scalar) -> Any:
    """The Python value of a result; one that its type cannot hold is an error, never another number."""
    try:
        return None if value is None else _FROM_SCALAR[column.type.kind](value, column.type)
    except OverflowError:
        raise OutOfRangeError(f"{view}.{column.name}: {value} no longer fits {column.type}") from None


def value_of(cell: Cell, type_: Type) -> Any:
    """The Python value of a cell."""
    if cell is None or isinstance(cell, float):
        return cell
    return _FROM_SCALAR[type_.kind](decode(cell, scale_of(type_)), type_)


def values_of(relation: Relation, row: Row) -> tuple[Any, ...]:
    return tuple([value_of(cell, column.type) for column, cell in zip(relation.columns, row, strict=True)])


def to_python_row(result: Result, row: Key) -> tuple[Any, ...]:
    return tuple([to_python(result.name, c, v) for c, v in zip(result.columns, row, strict=True)])


def _whole(value: Any, type_: Type) -> int:
    assert isinstance(value, int), f"{value} is no {type_}"
    if not fits(value, type_):
        raise OverflowError
    return value


def _scaled(value: Any, type_: Type) -> Decimal:
    """Sums and products have the scale that holds them; what does not (a quotient) is rounded half to even."""
    unscaled = round(Fraction(value) * 10**type_.scale)
    if not fits(unscaled, type_):
        raise OverflowError
    return Decimal(unscaled).scaleb(-type_.scale, Context(prec=type_.precision))


def _from_container(held: Any, type_: Type) -> Any:
    """Of a text the cells, of what LIST(x) gathered the scalars."""
    if isinstance(held, str):
        return container_value(held, type_, value_of)
    return container_value(held, type_, lambda v, t: _FROM_SCALAR[t.kind](v, t))


_FROM_SCALAR: dict[Kind, Callable[[Any, Type], Any]] = {
    "BOOLEAN": lambda v, t: bool(v),
    **dict.fromkeys(BITS, _whole),
    "DOUBLE": lambda v, t: float(v),
    "DECIMAL": _scaled,
    "DATE": lambda v, t: EPOCH + dt.timedelta(days=v),
    "TIMESTAMP": lambda v, t: (ZONED_MIDNIGHT if t.zoned else MIDNIGHT) + dt.timedelta(microseconds=v),
    "VARCHAR": lambda v, t: uuid.UUID(v) if t.uuid else v,
    **dict.fromkeys(NESTED, _from_container),
    "REAL": lambda v, t: float(v),
    "TIME": lambda v, t: (MIDNIGHT + dt.timedelta(microseconds=v)).time(),
    "INTERVAL": lambda v, t: dt.timedelta(microseconds=v),
    "ENUM": lambda v, t: t.values[v],
    "BLOB": lambda v, t: bytes.fromhex(v),
}
