-- A row's DOUBLE was a float in the keys of a batch and exact everywhere else: 0.1 · y then had two values.
CREATE MATERIALIZED VIEW v1 AS
SELECT COUNT(DISTINCT y * 0.1) AS c1, SUM(DISTINCT y * 0.1) AS c2 FROM r;
CREATE MATERIALIZED VIEW v2 AS
SELECT k, COUNT(DISTINCT y * 0.1) AS c1 FROM t GROUP BY k;
