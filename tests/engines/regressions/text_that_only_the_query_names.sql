-- 'b' is in no row: the native engine forgot it with the rows, and showed another string.
CREATE MATERIALIZED VIEW v1 AS
SELECT x1.s AS c1, x2.k AS c2, x2.b AS c3 FROM t x1, q x2, r x3 WHERE x1.k < x2.k AND x2.b >= x3.k UNION ALL SELECT 'b' AS c1, SUM(DISTINCT x4.k) AS c2, (- COUNT(*)) AS c3 FROM u x4;
