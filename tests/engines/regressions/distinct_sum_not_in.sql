-- Two levels of deltas gave the rows of Δr names that were in use around them.
CREATE MATERIALIZED VIEW v1 AS
SELECT DISTINCT SUM(DISTINCT b.k) AS c1
FROM r a JOIN t b ON a.s = b.s
WHERE NOT b.x IN (SELECT c.p FROM r c)
GROUP BY a.s;
