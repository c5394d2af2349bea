"""Where the rows of a script's relations come from, as its WITH clauses say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from viewlet.errors import Error
from viewlet.schema import Relation

ORDER_BOOK_STREAMS = ("bids", "asks")
TPCH_RELATIONS = ("customer", "orders", "lineitem", "part", "supplier", "partsupp", "nation")


@dataclass(frozen=True)
class Files:
    """Rows in files, the oldest first, an ``op`` column among theirs where rows go as well as come.

    ``path`` is a directory, a file or a pattern.
    """

    format: Literal["parquet", "csv"]
    path: str
    files_per_batch: int = 1


@dataclass(frozen=True)
class OrderBook:
    """Generated: relations ``bids`` and ``asks`` of one stream."""

    events: int = 200_000
    events_per_batch: int = 20_000
    seed: int = 1
    live: int = 10_000
    brokers: int = 10
    path: str = ""  # where Spark writes the events; a directory of this process unless told


@dataclass(frozen=True)
class Tpch:
    """Generated: the relations of TPC-H, of one stream; ``nation`` is static."""

    events: int = 200_000
    events_per_batch: int = 20_000
    seed: int = 1
    live: int = 30_000
    scale: float = 0.01
    path: str = ""


Source = Files | OrderBook | Tpch
Make = Callable[[Relation, Mapping[str, Any]], Source]


def sources_of(relations: Iterable[Relation]) -> dict[str, Source]:
    return {relation.name: source_of(relation) for relation in relations}


def source_of(relation: Relation) -> Source:
    """
    >>> source_of(Relation("r", (), options={"connector": "parquet", "path": "r/"}))
    Files(format='parquet', path='r/', files_per_batch=1)
    """
    options = dict(relation.options)
    name = options.pop("connector", None)
    what = f"{'table' if relation.static else 'stream'} {relation.name}"
    if name is None:
        raise Error(f"{what} has no connector: add WITH (connector = 'parquet', path = '…') to its CREATE")
    known = _CONNECTORS.get(name)
    if known is None:
        raise Error(f"{what}: there is no connector {name!r}; there are: {', '.join(_CONNECTORS)}")
    make, types = known
    values = {option: _value(what, option, text, types, name) for option, text in options.items()}
    return make(relation, values)


def _value(what: str, option: str, text: str, types: Mapping[str, type], connector: str) -> Any:
    if option not in types:
        raise Error(f"{what}: connector {connector!r} has no option {option}; it has: {', '.join(types)}")
    type_ = types[option]
    try:
        value = type_(text)
    except ValueError:
        raise Error(f"{what}: option {option} is a number, not {text!r}") from None
    if type_ is not str and value <= 0 and option != "seed":
        raise Error(f"{what}: option {option} is more than zero, not {text}")
    return value


def _files(format: Literal["parquet", "csv"]) -> Make:
    def make(relation: Relation, options: Mapping[str, Any]) -> Source:
        if "path" not in options:
            raise Error(f"{relation.name}: connector {format!r} needs to know where: path = '…'")
        return Files(format, **options)

    return make


def _generated(kind: type[OrderBook] | type[Tpch], connector: str, names: tuple[str, ...]) -> Make:
    def make(relation: Relation, options: Mapping[str, Any]) -> Source:
        if relation.name not in names:
            raise Error(f"connector {connector!r} generates {', '.join(names)}; there is no {relation.name}")
        return kind(**options)

    return make


_FILE_OPTIONS: dict[str, type] = {"path": str, "files_per_batch": int}
_EVENT_OPTIONS: dict[str, type] = {"events": int, "events_per_batch": int, "seed": int, "live": int, "path": str}
_CONNECTORS: dict[str, tuple[Make, Mapping[str, type]]] = {
    "parquet": (_files("parquet"), _FILE_OPTIONS),
    "csv": (_files("csv"), _FILE_OPTIONS),
    "orderbook": (_generated(OrderBook, "orderbook", ORDER_BOOK_STREAMS), {**_EVENT_OPTIONS, "brokers": int}),
    "tpch": (_generated(Tpch, "tpch", TPCH_RELATIONS), {**_EVENT_OPTIONS, "scale": float}),
}
