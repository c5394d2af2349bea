"""Rows for one question of TPC-DS: its tables, with the constants that it compares their columns with.

A row of values that the 99 questions ask for would meet hardly one of them: most have five conditions and more. So
the values are read off the question. One in eight is another, so that conditions leave rows out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from random import Random

import duckdb
import sqlglot
from sqlglot import exp

from viewlet.compilation import compile
from viewlet.schema import Column, Relation
from viewlet.workloads.streams import Event
from viewlet.workloads.written import suite
from viewlet.workloads.written.rows import Draw, Pool, stream

OTHER, MISSING = 0.12, 0.04  # the shares of values that the question does not name, and of NULLs
_COMPARED = (exp.EQ, exp.NEQ, exp.In, exp.Between, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like)
_BEYOND: Mapping[type[exp.Expr], str] = {exp.GT: " + 1", exp.LT: " - 1"}
_KEYS = (1, 2)
_ANY: Mapping[str, tuple[object, ...]] = {
    "BOOLEAN": (False, True),
    "DATE": (dt.date(2000, 3, 1), dt.date(2001, 6, 5)),
    "VARCHAR": ("a", "b"),
    "DECIMAL": (Decimal("1.25"), Decimal("80.00"), Decimal("130.50"), Decimal("-7.75")),
}

_MORE: Mapping[str, Mapping[str, tuple[object, ...]]] = {  # where a condition is not one of columns and constants
    "q2": {"d_week_seq": (1, 54)},
    "q8": {"ca_zip": ("24128",), "s_zip": ("24900",)},
    "q16": {"cr_order_number": (9,)},
    "q39": {"inv_quantity_on_hand": (0, 0, 0, 90)},
    "q41": {"i_category": ("Women",), "i_color": ("powder",), "i_units": ("Ounce",), "i_size": ("medium",)},
    "q59": {"d_week_seq": (1, 53)},
    "q69": {"ws_bill_customer_sk": (2,), "cs_ship_customer_sk": (2,)},
    "q87": {"ws_bill_customer_sk": (2,), "cs_bill_customer_sk": (2,)},
    "q94": {"wr_order_number": (9,)},
}


def asked(question: str, seed: int, count: int, *, live: int = 3) -> Iterator[Event]:
    """Inserts, deletes and updates of the tables that the question reads; facts have more rows than dimensions."""
    relations = _relations(question)
    return stream(relations, _pools(question, relations), Random(seed), count, live)


@cache
def _tree(question: str) -> exp.Expr:
    return sqlglot.parse_one(suite("tpcds").questions[question], read="duckdb")


@cache
def _schema() -> tuple[Relation, ...]:
    return compile(suite("tpcds").schema).relations


def _relations(question: str) -> list[Relation]:
    names = {table.name for table in _tree(question).find_all(exp.Table)}
    return [relation for relation in _schema() if relation.name in names]


def _pools(question: str, relations: list[Relation]) -> dict[str, Pool]:
    constants = _constants(_tree(question))
    drawn = {c.name: _draw(c, constants.get(c.name, [])) for relation in relations for c in relation.columns}
    return {**drawn, **_MORE.get(question, {})}


def _draw(column: Column, constants: list[str]) -> Draw:
    others = _KEYS if column.name.endswith("_sk") else _ANY.get(column.type.kind, (1, 2, 7))
    values = [value for constant in constants if (value := _value(constant, column)) is not None]

    def draw(rng: Random) -> object:
        if column.nullable and rng.random() < MISSING:
            return None
        return rng.choice(values) if values and rng.random() > OTHER else rng.choice(others)

    return draw


def _value(constant: str, column: Column) -> object:
    """A constant as a value of the column; None where it is none, since only a part of the column is compared."""
    ((value,),) = duckdb.execute(f"SELECT TRY_CAST({constant} AS {column.type})").fetchall()
    return value


def _constants(tree: exp.Expr) -> dict[str, list[str]]:
    """For each column the constants that it is compared with, or with which what is made of it is."""
    aliases = {a.alias: a.this.name for a in tree.find_all(exp.Alias) if isinstance(a.this, exp.Column)}
    constants: dict[str, list[str]] = {}
    for node in tree.find_all(*_COMPARED):
        sides = [side for side in node.iter_expressions() if not side.find(exp.Query, exp.AggFunc)]
        named = [column.name for side in sides for column in side.find_all(exp.Column)]
        for side in sides if len(named) == 1 else []:
            if not side.find(exp.Column):
                name = aliases.get(named[0], named[0])
                constants.setdefault(name, []).append(f"{side.sql('duckdb')}{_BEYOND.get(type(node), '')}")
    return constants
