-- A sum that is 0 whatever happens has no delta: the cost strategy looked for its key all the same.
CREATE MATERIALIZED VIEW v1 AS
SELECT SUM(DISTINCT ABS(0.00)) AS c1 FROM q;
CREATE MATERIALIZED VIEW v2 AS
SELECT DISTINCT ABS(1.50) AS c1 FROM q;
CREATE MATERIALIZED VIEW v3 AS
SELECT COUNT(b.c1) AS c1 FROM v2 a, v2 b WHERE a.c1 > b.c1;
