-- The partition of a row without a partner is NULL, and the C++ that looked it up did not compile.
CREATE MATERIALIZED VIEW v1 AS SELECT x2.s AS c1, x1.b AS c2 FROM q x1 LEFT JOIN t x2 ON x1.k = x2.k QUALIFY rank() OVER (PARTITION BY x2.s ORDER BY x2.d DESC) <= 2;
