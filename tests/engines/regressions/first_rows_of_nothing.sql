-- Exists(0) gave no columns, and the first rows of what no row can be were not closed.
CREATE MATERIALIZED VIEW v1 AS
SELECT g.c1
FROM (SELECT DISTINCT MAX(x.k) AS c1 FROM r x GROUP BY CUBE (x.s) HAVING GROUPING(x.s) = 5) g
QUALIFY row_number() OVER (ORDER BY g.c1) <= 2;
