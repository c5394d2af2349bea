"""What a relation looks like: names, types, and what the user declared about its traffic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

Dialect = Literal["sql", "paper"]  # of a script: SUM of nothing is NULL, or 0 as in the paper
TypeName = Literal[
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "DOUBLE",
    "DECIMAL",
    "DATE",
    "TIMESTAMP",
    "VARCHAR",
    "LIST",
    "REAL",
    "TIME",
    "INTERVAL",
    "ENUM",
    "BLOB",
    "STRUCT",
    "MAP",
]
SIGNED: dict[TypeName, int] = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}  # integers, and their bits
UNSIGNED: dict[TypeName, int] = {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32}
BITS = SIGNED | UNSIGNED
HELD: dict[TypeName, TypeName] = {  # types whose values engines hold as those of another
    "REAL": "DOUBLE",  # each is a double
    "TIME": "BIGINT",  # microseconds since midnight
    "INTERVAL": "BIGINT",  # microseconds
    "ENUM": "INTEGER",  # its place among the values, from 0: places compare as the values do
    "BLOB": "VARCHAR",  # two small hexadecimal digits for each byte, which have the order of the bytes
    "LIST": "VARCHAR",  # see viewlet.program.nested; what LIST(x) gathers is no column of a relation
    "STRUCT": "VARCHAR",
    "MAP": "VARCHAR",
}
NESTED: tuple[TypeName, ...] = ("LIST", "STRUCT", "MAP")


@dataclass(frozen=True, slots=True)
class Type:
    """A SQL type; ``precision`` and ``scale`` only for DECIMAL.

    ``inner`` are the types inside: of the elements of a LIST, of the fields of a STRUCT, which have ``names``, of the
    keys and values of a MAP. ``zoned``: a TIMESTAMP WITH TIME ZONE, which is held as the TIMESTAMP of the same moment
    in UTC. ``uuid``: a UUID, which is held as its text in small letters, and goes by that. ``values`` are those of an
    ENUM.
    """

    kind: TypeName
    precision: int = 0
    scale: int = 0
    inner: tuple[Type, ...] = ()
    names: tuple[str, ...] = ()
    zoned: bool = False
    uuid: bool = False
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "ENUM":
            return "ENUM({})".format(", ".join("'{}'".format(value.replace("'", "''")) for value in self.values))
        if self.uuid:
            return "UUID"
        if self.zoned:
            return f"{self.kind} WITH TIME ZONE"
        if self.is_nested:
            return self._nested
        return f"DECIMAL({self.precision},{self.scale})" if self.kind == "DECIMAL" else self.kind

    @property
    def _nested(self) -> str:
        if self.kind == "LIST":
            return f"{self.inner[0]}[]"
        if self.kind == "MAP":
            return f"MAP({self.inner[0]}, {self.inner[1]})"
        fields = zip(self.names, self.inner, strict=True)
        return "STRUCT({})".format(", ".join('"{}" {}'.format(name.replace('"', '""'), t) for name, t in fields))

    @property
    def is_nested(self) -> bool:
        return bool(self.inner)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.kind in ("DOUBLE", "DECIMAL")

    @property
    def is_integer(self) -> bool:
        return self.kind in BITS

    @property
    def held(self) -> Type:
        """The type that the values of this one have in every engine."""
        if self.zoned or self.uuid:
            return Type(self.kind)
        return Type(HELD[self.kind]) if self.kind in HELD else self


BOOLEAN, INTEGER, BIGINT, DOUBLE = Type("BOOLEAN"), Type("INTEGER"), Type("BIGINT"), Type("DOUBLE")
DATE, TIMESTAMP, VARCHAR = Type("DATE"), Type("TIMESTAMP"), Type("VARCHAR")
TIMESTAMPTZ, UUID = Type("TIMESTAMP", zoned=True), Type("VARCHAR", uuid=True)
REAL, TIME, INTERVAL, BLOB = Type("REAL"), Type("TIME"), Type("INTERVAL"), Type("BLOB")


def list_of(element: Type) -> Type:
    return Type("LIST", inner=(element,))


def struct_of(fields: Mapping[str, Type]) -> Type:
    return Type("STRUCT", inner=tuple(fields.values()), names=tuple(fields))


def map_of(key: Type, value: Type) -> Type:
    return Type("MAP", inner=(key, value))


def enum(values: tuple[str, ...]) -> Type:
    return Type("ENUM", values=values)


def decimal(precision: int, scale: int) -> Type:
    return Type("DECIMAL", precision, scale)


@dataclass(frozen=True, slots=True)
class Column:
    """``derived``: no user gives it; it is this expression of DuckDB's over the columns of its row.

    ``default`` is a constant expression of DuckDB's, for rows that do not give the column.
    """

    name: str
    type: Type
    nullable: bool = True
    derived: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """A stream (changes at any time) or a static table (loaded once, gets no triggers)."""

    name: str
    columns: tuple[Column, ...]
    static: bool = False
    rate: Fraction = Fraction(1)  # events a second, relative to the other streams (§5.1)
    rows: int = 10_000  # expected live rows (§5.1)
    distinct: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))  # per column, where known
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # connector options, verbatim
    key: tuple[str, ...] = ()  # PRIMARY KEY: at most one row has the same values in these columns
    unique: tuple[tuple[str, ...], ...] = ()  # UNIQUE: the same of rows without a NULL in them
    of: str = ""  # the relation whose rows these are, once for each element of a list; no user changes them
    unnests: str = ""  # the list, as DuckDB computes it
    stored: bool = True  # else a stream keeps no rows, and deletes are trusted
    hot: Mapping[str, Fraction] = field(default_factory=lambda: MappingProxyType({}))  # per column: one value's rows

    @property
    def params(self) -> tuple[str, ...]:
        """The variables that hold the columns of an event's row: ``@price``, also for columns with other characters."""
        names: list[str] = []
        for column in self.columns:
            name = "@" + re.sub(r"\W", "_", column.name)
            while name in names:
                name += "_"
            names.append(name)
        return tuple(names)

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)

    @property
    def given(self) -> tuple[Column, ...]:
        """The columns that a row comes with. Derived columns stand behind them."""
        return tuple(c for c in self.columns if not c.derived)

    @property
    def derived(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.derived)

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """PRIMARY KEY, where there is one, then those of UNIQUE."""
        return ((self.key,) if self.key else ()) + self.unique

    @property
    def is_hidden(self) -> bool:
        """Whether no user knows it: rows of elements, and the clock."""
        return bool(self.of) or self.name == CLOCK.name

    @property
    def as_given(self) -> Relation:
        """The relation as its rows come: without derived columns."""
        return replace(self, columns=self.given) if self.derived else self


CLOCK = Relation("now()", (Column("at", TIMESTAMPTZ, nullable=False),), rate=Fraction(1, 1000), rows=1)
"""What now() reads in a script that has it: a stream of one row, which only ``db.tick`` changes."""
