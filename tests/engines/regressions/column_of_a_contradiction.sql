-- COUNT is never NULL, so the WHERE is FALSE: the product became 0 and its columns had no variables any more.
CREATE MATERIALIZED VIEW v1 AS
SELECT x.k AS c1
FROM (SELECT a.k FROM q a JOIN (SELECT COUNT(*) AS n FROM q) b ON TRUE WHERE b.n IS NULL) x;
