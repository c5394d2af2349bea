-- The cost strategy chose a view cache whose missing entries were computed from the cache.
CREATE MATERIALIZED VIEW v1 AS
SELECT AVG(2.25) AS c1
FROM q a, u b
WHERE a.b = b.k AND b.k IN (SELECT c.k FROM q c WHERE c.k > b.k AND c.b = b.k);
CREATE MATERIALIZED VIEW v2 AS
SELECT AVG(2.25) AS c1
FROM q a, u b
WHERE a.b = b.k AND b.k IN (SELECT c.k FROM q c WHERE c.k >= b.k AND c.b = b.k);
