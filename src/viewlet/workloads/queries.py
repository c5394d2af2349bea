"""The paper's twelve queries (Appendix A) and the two schemas they run on.

The text is the paper's; only names are added: an alias for each aggregate, and for SSB4's two columns called
``regionkey``. Eleven queries read the same in both dialects. Q22 does not: it asks for customers without orders by
``0 = (select sum(1) …)``, which holds only where SUM of nothing is 0. In standard SQL that sum is NULL and the view
would stay empty for ever, so there ``sum(1)`` is written ``count(*)``, which is what it means.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import sqlglot
from sqlglot import exp

from viewlet.schema import Dialect

FINANCE = """\
CREATE STREAM bids (
  t DOUBLE NOT NULL, id BIGINT NOT NULL, broker_id BIGINT NOT NULL, volume DOUBLE NOT NULL, price DOUBLE NOT NULL);
CREATE STREAM asks (
  t DOUBLE NOT NULL, id BIGINT NOT NULL, broker_id BIGINT NOT NULL, volume DOUBLE NOT NULL, price DOUBLE NOT NULL);
"""

TPCH = """\
CREATE STREAM customer (
  custkey BIGINT NOT NULL, name VARCHAR NOT NULL, nationkey BIGINT NOT NULL, acctbal DECIMAL(12,2) NOT NULL,
  mktsegment VARCHAR NOT NULL);
CREATE STREAM orders (
  orderkey BIGINT NOT NULL, custkey BIGINT NOT NULL, orderdate DATE NOT NULL, shippriority INTEGER NOT NULL);
CREATE STREAM lineitem (
  orderkey BIGINT NOT NULL, partkey BIGINT NOT NULL, suppkey BIGINT NOT NULL, quantity DECIMAL(12,2) NOT NULL,
  extendedprice DECIMAL(12,2) NOT NULL, discount DECIMAL(12,2) NOT NULL, shipdate DATE NOT NULL);
CREATE STREAM part (partkey BIGINT NOT NULL, type VARCHAR NOT NULL);
CREATE STREAM supplier (suppkey BIGINT NOT NULL, nationkey BIGINT NOT NULL);
CREATE STREAM partsupp (
  partkey BIGINT NOT NULL, suppkey BIGINT NOT NULL, availqty BIGINT NOT NULL, supplycost DECIMAL(12,2) NOT NULL);
CREATE TABLE nation (nationkey BIGINT NOT NULL, regionkey BIGINT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class WorkloadQuery:
    """A view that a workload keeps fresh: what tests and benchmarks need to know of it, whichever workload it is.

    ``relations`` are the streams and tables of ``schema`` that it reads; ``standard`` is its text for dialect 'sql'
    where that differs.
    """

    name: str
    schema: str
    relations: tuple[str, ...]
    text: str
    standard: str | None = None

    def select(self, dialect: Dialect = "sql") -> str:
        return self.standard if dialect == "sql" and self.standard is not None else self.text

    def sql(self, dialect: Dialect = "sql") -> str:
        return f"CREATE MATERIALIZED VIEW {self.name} AS\n{self.select(dialect)};\n"

    def script(self, dialect: Dialect = "sql") -> str:
        return self.schema + self.sql(dialect)

    def referee(self, dialect: Dialect = "sql") -> str:
        """The SELECT that a standard database runs to get the same answer."""
        return self.select(dialect) if dialect == "sql" else sum_of_nothing_is_zero(self.select(dialect))


class PaperQuery(WorkloadQuery):
    """One query of Appendix A."""

    __slots__ = ()


def sum_of_nothing_is_zero(select: str) -> str:
    """Dialect 'paper' in standard SQL: COALESCE(…, 0) around each SUM and AVG; in a group all may be NULL.

    >>> sum_of_nothing_is_zero("SELECT a, SUM(b) FROM r WHERE b < (SELECT AVG(c) FROM s) GROUP BY a")
    'SELECT a, COALESCE(SUM(b), 0) FROM r WHERE b < (SELECT COALESCE(AVG(c), 0) FROM s) GROUP BY a'
    """
    tree = sqlglot.parse_one(select, read="duckdb")
    for aggregate in reversed(list(tree.find_all(exp.Sum, exp.Avg))):  # what stands inside another first
        aggregate.replace(exp.Coalesce(this=aggregate.copy(), expressions=[exp.Literal.number(0)]))
    return tree.sql(dialect="duckdb")


_AXF = """\
SELECT b.broker_id, sum(a.volume-b.volume) AS imbalance
FROM   Bids b, Asks a
WHERE  b.broker_id = a.broker_id
  AND  (a.price-b.price > 1000 OR b.price-a.price > 1000)
GROUP BY b.broker_id"""

_BSP = """\
SELECT x.broker_id, sum(x.volume*x.price - y.volume*y.price) AS spread
FROM   Bids x, Bids y
WHERE  x.broker_id=y.broker_id AND x.t>y.t
GROUP BY x.broker_id"""

_BSV = """\
SELECT x.broker_id, sum(x.volume*x.price*y.volume*y.price*0.5) AS variance
FROM   Bids x, Bids y
WHERE  x.broker_id = y.broker_id GROUP BY x.broker_id"""

_MST = """\
SELECT b.broker_id, sum(a.price*a.volume - b.price*b.volume) AS spread
FROM   Bids b, Asks a
WHERE 0.25*(select sum(a1.volume) from Asks a1) >
   (select sum(a2.volume) from Asks a2 where a2.price>a.price)
  AND   0.25*(select sum(b1.volume) from Bids b1) >
   (select sum(b2.volume) from Bids b2 where b2.price>b.price)
GROUP BY b.broker_id"""

_PSP = """\
SELECT sum(a.price - b.price) AS spread FROM Bids b, Asks a
WHERE  b.volume>0.0001*(select sum(b1.volume) from Bids b1)
AND    a.volume>0.0001*(select sum(a1.volume) from Asks a1)"""

_VWAP = """\
SELECT sum(b1.price * b1.volume) AS vwap FROM Bids b1
WHERE  0.25 * (select sum(b3.volume) from Bids b3) >
       (select sum(b2.volume) from Bids b2
          where b2.price>b1.price)"""

_Q3 = """\
SELECT o.orderkey, o.orderdate, o.shippriority,
       sum(li.extendedprice * (1 - li.discount)) AS revenue
FROM   Customer c, Orders o, Lineitem li
WHERE  c.mktsegment = 'BUILDING'
  AND  o.custkey = c.custkey
  AND  li.orderkey = o.orderkey
  AND  o.orderdate < DATE('1995-03-15')
  AND  li.shipdate > DATE('1995-03-15')
GROUP BY o.orderkey, o.orderdate, o.shippriority"""

_Q11 = """\
SELECT ps.partkey, sum(ps.supplycost * ps.availqty) AS cost
FROM   Partsupp ps, Supplier s
WHERE  ps.suppkey = s.suppkey GROUP BY ps.partkey"""

_Q17 = """\
SELECT sum(l.extendedprice) AS revenue FROM Lineitem l, Part p
WHERE  p.partkey = l.partkey
AND    l.quantity < 0.005 * (select sum(l2.quantity)
          from Lineitem l2 where l2.partkey = p.partkey)"""

_Q18 = """\
SELECT c.custkey, sum(l1.quantity) AS quantity
FROM Customer c, Orders o, Lineitem l1
WHERE 1 <= (select sum(1) where
            100 < (select sum(l2.quantity) from Lineitem l2
                   where l1.orderkey = l2.orderkey))
AND c.custkey = o.custkey AND o.orderkey = l1.orderkey
GROUP BY c.custkey"""

_Q22 = """\
SELECT c1.nationkey, sum(c1.acctbal) AS balance FROM Customer c1
WHERE c1.acctbal <
   (select sum(c2.acctbal) from Customer c2 where c2.acctbal>0)
AND 0=(select sum(1) from Orders o where o.custkey=c1.custkey)
GROUP BY c1.nationkey"""

_SSB4 = """\
SELECT sn.regionkey AS supplier_region, cn.regionkey AS customer_region, p.type,
       sum(li.quantity) AS quantity
FROM   Customer c, Orders o, Lineitem li,
       Part p, Supplier s, Nation cn, Nation sn
WHERE  c.custkey = o.custkey
  AND  o.orderkey = li.orderkey
  AND  p.partkey = li.partkey
  AND  s.suppkey = li.suppkey
  AND  o.orderdate >= DATE('1997-01-01')
  AND  o.orderdate <  DATE('1998-01-01')
  AND  cn.nationkey = c.nationkey
  AND  sn.nationkey = s.nationkey
GROUP BY sn.regionkey, cn.regionkey, p.type"""

PAPER_QUERIES = MappingProxyType(
    {
        query.name: query
        for query in (
            PaperQuery("axf", FINANCE, ("bids", "asks"), _AXF),
            PaperQuery("bsp", FINANCE, ("bids",), _BSP),
            PaperQuery("bsv", FINANCE, ("bids",), _BSV),
            PaperQuery("mst", FINANCE, ("bids", "asks"), _MST),
            PaperQuery("psp", FINANCE, ("bids", "asks"), _PSP),
            PaperQuery("vwap", FINANCE, ("bids",), _VWAP),
            PaperQuery("q3", TPCH, ("customer", "orders", "lineitem"), _Q3),
            PaperQuery("q11", TPCH, ("partsupp", "supplier"), _Q11),
            PaperQuery("q17", TPCH, ("lineitem", "part"), _Q17),
            PaperQuery("q18", TPCH, ("customer", "orders", "lineitem"), _Q18),
            PaperQuery("q22", TPCH, ("customer", "orders"), _Q22, _Q22.replace("select sum(1)", "select count(*)")),
            PaperQuery("ssb4", TPCH, ("customer", "orders", "lineitem", "part", "supplier", "nation"), _SSB4),
        )
    }
)
