"""Who runs beside viewlet, how each is started, and what a reader must know of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from viewlet.workloads.queries import PAPER_QUERIES

BATCH = 1_000
EVERY_EVENT, EVERY_THOUSAND = "every event", f"every {BATCH:,} events"
QUERIES = ("q3", "q11", "bsv", "vwap", "q18")
OURS, JAVA, SERVER = "our own environment", "Java", "a PostgreSQL server"  # what peers need

WITHOUT_SELECT_WITHOUT_FROM = """\
SELECT c.custkey, sum(l1.quantity) AS quantity
FROM customer c, orders o, lineitem l1
WHERE 100 < (select sum(l2.quantity) from lineitem l2 where l1.orderkey = l2.orderkey)
AND c.custkey = o.custkey AND o.orderkey = l1.orderkey
GROUP BY c.custkey"""


@dataclass(frozen=True)
class Peer:
    """One contestant at one freshness; ``rewritten`` has the SQL of queries that it does not take as printed."""

    name: str
    worker: str
    note: str
    arguments: tuple[str, ...] = ()
    environment: str = OURS  # else the name of its requirements
    batch: int = 1
    patience: float = 1.0  # times the seconds of the settings
    rewritten: Mapping[str, str] = field(default_factory=dict)
    by_hand: Mapping[str, str] = field(default_factory=dict)  # how queries were written in another way in its own API
    inserts_only: bool = False
    also: tuple[str, ...] = ()  # what it needs besides its environment

    @property
    def needs(self) -> tuple[str, ...]:
        return self.environment, *self.also

    @property
    def freshness(self) -> str:
        return EVERY_EVENT if self.batch == 1 else f"every {self.batch:,} events"

    def sql(self, query: str) -> str:
        return self.rewritten.get(query) or lower_names(PAPER_QUERIES[query].referee())

    def told(self, query: str) -> str:
        how = self.by_hand.get(query) or ("without SELECT without FROM" if query in self.rewritten else "")
        return f"rewritten {how}; {self.note}" if how else self.note


def lower_names(sql: str) -> str:
    """To some peers Bids is not bids.

    >>> lower_names("SELECT x.id FROM Bids x WHERE x.name = 'BUILDING'")
    "SELECT x.id FROM bids x WHERE x.name = 'BUILDING'"
    """
    return re.sub(r"\b[A-Z][a-z]+\b", lambda name: name[0].lower(), sql)


def _evaluating(name: str, note: str, **options: Any) -> tuple[Peer, Peer]:
    told = f"evaluates anew, from the steady state on; {note}"
    each = Peer(name, "reevaluate", told, (name,), patience=0.75, **options)
    return each, replace(each, batch=BATCH, patience=0.5)


PEERS = (
    *_evaluating("duckdb", "one thread; rows go by a key of their own"),
    *_evaluating("sqlite", "in memory, indexed, decimals as doubles"),
    *_evaluating("postgresql", "no fsync, indexed; CPU of server and client", also=(SERVER,)),
    *_evaluating(
        "chdb",
        "tables in memory, deletes as mutations",
        environment="chdb",
        rewritten={"q18": WITHOUT_SELECT_WITHOUT_FROM},
    ),
    Peer(
        "pathway",
        "pathway_tables",
        "Table API, from the first event on; each event has a time of its own, replayed from memory; decimals as cents",
        environment="pathway",
        patience=3,
        by_hand={
            "vwap": "as all pairs, filtered, with worths in whole cents since its sums of doubles went stale",
            "q18": "as joins",
        },
    ),
    Peer(
        "flink",
        "flink_sql",
        "SQL, one task, mini-batches off, from the first event on; timed without writing its changes, "
        "which an untimed run over the same events wrote for the check; the start of a job is taken off",
        environment="flink",
        patience=24,
        rewritten={"q18": WITHOUT_SELECT_WITHOUT_FROM},
        also=(JAVA,),
    ),
    Peer(
        "spark-structured-streaming",
        "structured_streaming",
        "update mode, one task, inserts only: the stream without its deletes",
        batch=BATCH,
        inserts_only=True,
        also=(JAVA,),
    ),
)
