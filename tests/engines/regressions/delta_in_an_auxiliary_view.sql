-- The bulk trigger's Δr stood inside a nested Exists and was about to be materialised.
CREATE MATERIALIZED VIEW v1 AS
SELECT b.p AS c1
FROM t a, r b
WHERE a.s = b.s AND b.k IN (SELECT c.a FROM r c JOIN u d ON TRUE);
