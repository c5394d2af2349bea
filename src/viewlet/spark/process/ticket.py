"""What the driver tells a worker to do with a cell, and what comes back."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from viewlet.durable.chain import Address, Chain, File, Json, Log, Snapshot, Version
from viewlet.durable.store import Store
from viewlet.spark.process.secret import Secret

IDLE_SECONDS = 600.0


@dataclass(frozen=True)
class SharedObject:
    """A compiled program: the name that it goes by as a module, the digest of its C++, and the file."""

    module: str
    digest: str
    file: File


@dataclass(frozen=True)
class Artefact:
    """A program in the store. ``results`` and ``views`` are what it watches; ``objects`` has it by platform."""

    id: str
    text: File
    results: tuple[str, ...]
    views: tuple[str, ...]
    objects: Mapping[str, SharedObject]


@dataclass(frozen=True)
class Run:
    """One start of a query. Callers that know the secret use its cells; ``host`` "" binds an executor's own address.

    ``ports`` are the first and the last that cells may listen at; None: any.
    """

    store: str
    id: str
    secret: Secret
    host: str = ""
    idle: float = IDLE_SECONDS
    ports: tuple[int, int] | None = None


def new_run(
    store: Store, host: str = "", idle: float = IDLE_SECONDS, ports: tuple[int, int] | None = None, pem: str = ""
) -> Run:
    return Run(store.uri, secrets.token_hex(8), Secret(secrets.token_hex(32), pem), host, idle, ports)


@dataclass(frozen=True)
class Split:
    """Partial changes of a view go to one of ``parts`` merge cells, by the key columns at ``partition``."""

    view: str
    partition: tuple[int, ...]
    parts: int

    def to_json(self) -> list[Any]:
        return [self.view, list(self.partition), self.parts]

    @staticmethod
    def from_json(data: list[Any]) -> Split:
        view, partition, parts = data
        return Split(view, tuple(partition), parts)


@dataclass(frozen=True)
class Ticket:
    """One cell and one batch. The cell starts at a version, wherever it was; ``address`` is a hint.

    ``chain`` looks up what leads to the version. Only a cell that is at another one needs it. ``publish`` names the
    results whose changes and bases this cell writes: all that it watches, but for those that another cell finishes.
    ``absent`` has the relations whose deletes of what is not there become letters, and as what this cell tells of them.
    ``bounds`` has those with rows that expire: the column, and before which moment they do.
    """

    run: Run
    artefact: Artefact
    cell: str
    batch: int
    version: Version
    chain: Callable[[], Chain]
    address: Address | None = None
    publish: tuple[str, ...] = ()
    splits: tuple[Split, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What a cell is told of a ticket; ``attempt`` names what this attempt writes.

    A cell at the version that a request starts from knows the chain: it made the last part of it. So it is told the
    chain only when it says that it is behind.
    """

    batch: int
    attempt: str
    version: Version
    chain: Chain | None
    publish: tuple[str, ...]
    splits: tuple[Split, ...]
    absent: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def to_json(self) -> Json:
        return {
            "batch": self.batch,
            "attempt": self.attempt,
            "version": [self.version.batch, self.version.log],
            "chain": None if self.chain is None else self.chain.to_json(),
            "publish": list(self.publish),
            "splits": [split.to_json() for split in self.splits],
            "absent": dict(self.absent),
            "bounds": {name: list(bound) for name, bound in self.bounds.items()},
        }

    @staticmethod
    def from_json(data: Json) -> Request:
        splits = tuple(map(Split.from_json, data["splits"]))
        chain = None if data["chain"] is None else Chain.from_json(data["chain"])
        version = Version(*data["version"])
        publish, absent = tuple(data["publish"]), data["absent"]
        bounds = {name: (column, moment) for name, (column, moment) in data["bounds"].items()}
        return Request(data["batch"], data["attempt"], version, chain, publish, splits, absent, bounds)

    def is_again(self, other: Request) -> bool:
        """The same batch from the same start, for every caller."""
        mine = (self.batch, self.version, self.publish, self.splits)
        return mine == (other.batch, other.version, other.publish, other.splits)


@dataclass(frozen=True)
class Part:
    """Partial changes of a view for one merge cell: an Arrow stream of (weight, k0, k1, …, value)."""

    view: str
    part: int
    data: bytes


@dataclass(frozen=True)
class Answer:
    """A batch is in the cell and its log in the store.

    ``snapshot`` or ``merged`` was finished since the last answer. ``home`` is the cell's executor.
    """

    cell: str
    batch: int
    log: Log
    snapshot: Snapshot | None
    rows: int
    engine_seconds: float
    seconds: float
    reloaded: bool
    state_bytes: int
    address: Address
    engine: str
    pid: int
    merged: Log | None = None
    parts: tuple[Part, ...] = ()
    home: str = ""
    letters: tuple[str, ...] = ()  # of deletes that it left out

    def to_json(self) -> Json:
        """All but the parts."""
        plain = replace(self, parts=()).__dict__ | {"log": self.log.to_json(), "address": self.address.to_json()}
        made = {"snapshot": self.snapshot, "merged": self.merged}
        return plain | {name: None if one is None else one.to_json() for name, one in made.items()}

    @staticmethod
    def from_json(data: Json) -> Answer:
        snapshot = None if data["snapshot"] is None else Snapshot.from_json(data["snapshot"])
        merged = None if data["merged"] is None else Log.from_json(data["merged"])
        log, address = Log.from_json(data["log"]), Address.from_json(data["address"])
        lists = {"parts": (), "letters": tuple(data["letters"])}
        return Answer(**data | {"log": log, "address": address, "snapshot": snapshot, "merged": merged, **lists})


@dataclass(frozen=True)
class Standby:
    """A cell that was to make itself ready to move to an executor, and is, or cannot, for a reason.

    ``since`` is the batch in which the move was decided; ``seconds`` is what it took.
    """

    cell: str
    since: int
    address: Address | None = None
    engine: str = ""
    seconds: float = 0.0
    why: str = ""

    def to_json(self) -> Json:
        return self.__dict__ | {"address": self.address.to_json() if self.address else None}

    @staticmethod
    def from_json(data: Json) -> Standby:
        return Standby(**data | {"address": Address.from_json(data["address"]) if data["address"] else None})
