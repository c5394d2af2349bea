-- The local variables of a domain were called like the variables of the auxiliary view that it restricts.
CREATE MATERIALIZED VIEW v1 AS
SELECT DISTINCT SUM(DISTINCT x2.k) AS c2 FROM r AS x1 JOIN t AS x2 ON x1.s = x2.s
WHERE NOT x2.x IN (SELECT x3.p FROM r AS x3) GROUP BY x1.s;
