-- A greatest value that is a double and not a sum of them: the C++ did not compile.
CREATE MATERIALIZED VIEW v1 AS
SELECT x.c1, COUNT(*) AS c2 FROM (SELECT k, MAX(y * 0.1) AS c1 FROM r GROUP BY k) x GROUP BY x.c1;
CREATE MATERIALIZED VIEW v2 AS
SELECT r.k FROM r WHERE r.y * 0.1 = (SELECT MAX(t.y * 0.1) FROM t WHERE t.k = r.k);
CREATE MATERIALIZED VIEW v3 AS
SELECT MAX(x.c1) AS c1 FROM (SELECT k, MAX(y * 0.1) AS c1 FROM r GROUP BY k) x;
