-- Compile time was exponential in the number of aggregates of a grouped table in FROM.
CREATE MATERIALIZED VIEW v1 AS
SELECT k AS c1, SUM(a) AS c2, COUNT(a) AS c3, SUM(p) AS c4, COUNT(s) AS c5 FROM r GROUP BY k;
CREATE MATERIALIZED VIEW v2 AS
SELECT x.c1, x.c2, x.c3, x.c4, y.c2 AS c5, y.c4 AS c6, y.c5 AS c7 FROM v1 x, v1 y WHERE x.c1 = y.c1 AND x.c2 <= y.c4;
