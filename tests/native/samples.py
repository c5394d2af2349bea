"""Hand-written programs in the form that the emitter writes, and what Python must know of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.conformance import compiled_as_users_have_it
from viewlet.engines.native.bridge import NativeState
from viewlet.engines.native.build import find_compiler, open_module
from viewlet.program.encoding import Row
from viewlet.program.trigger import Program, Result, ResultColumn
from viewlet.rows.boundary import to_key
from viewlet.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    Column,
    Relation,
    Type,
    decimal,
)

HERE = Path(__file__).parent


def columns(*given: tuple[str, Type, bool]) -> tuple[Column, ...]:
    return tuple(Column(name, type_, nullable) for name, type_, nullable in given)


BIDS = Relation(
    "bids",
    columns(
        ("t", DOUBLE, False),
        ("id", BIGINT, False),
        ("broker_id", BIGINT, False),
        ("volume", DOUBLE, False),
        ("price", DOUBLE, False),
    ),
)
ORDERS = Relation(
    "orders",
    columns(
        ("id", BIGINT, False),
        ("customer", VARCHAR, True),
        ("price", decimal(12, 2), False),
        ("weight", decimal(38, 4), True),
        ("day", DATE, False),
        ("at", TIMESTAMP, True),
        ("paid", BOOLEAN, True),
        ("small", INTEGER, True),
        ("rate", DOUBLE, True),
    ),
)
PAYMENTS = Relation("payments", columns(("customer", VARCHAR, False), ("amount", decimal(12, 2), False)))
NATION = Relation("nation", columns(("key", BIGINT, False), ("name", VARCHAR, False)), static=True)


def result(name: str, relation: tuple[Column, ...]) -> Result:
    return Result(name, tuple(ResultColumn(c.name, c.type, c.nullable, None) for c in relation), None)  # type: ignore[arg-type]


CUSTOMERS = columns(("customer", VARCHAR, True), ("n", INTEGER, False), ("total", decimal(12, 2), False))
PROGRAMS = {
    "bsv": Program((BIDS,), (), (), (), "optimized"),
    "shop": Program(
        (ORDERS, PAYMENTS, NATION),
        (),
        (),
        (result("customers", CUSTOMERS), result("all_orders", ORDERS.columns)),
        "optimized",
    ),
}


def source(name: str) -> str:
    return (HERE / "sample" / f"{name}.cpp").read_text()


def opened(name: str, *, keep_tables: bool = True) -> NativeState:
    """A fresh state of a sample program; its rows that are not plain go the way that the engine's go."""
    if find_compiler() is None:
        pytest.skip("no C++ compiler")
    module = open_module(source(name), f"viewlet_native_{name}")
    relations = PROGRAMS[name].relations

    def convert(relation: int, row: object, number: int) -> Row:
        return to_key(relations[relation], row, number)

    return NativeState(module, PROGRAMS[name], convert, keep_tables=keep_tables)  # type: ignore[arg-type]


@pytest.fixture(autouse=True, scope="module")
def optimised() -> Iterator[None]:
    """The runtime as users have it, behind few programs."""
    with compiled_as_users_have_it():
        yield
