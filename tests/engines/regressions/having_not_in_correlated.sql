-- The delta of the IN under HAVING was put before the aggregates whose values it takes.
CREATE MATERIALIZED VIEW v1 AS
SELECT g.c1, g.c2
FROM (SELECT a.x AS c1, COUNT(DISTINCT b.f) AS c2
      FROM t a JOIN q b ON TRUE
      GROUP BY a.x
      HAVING NOT COUNT(DISTINCT b.f) IN (SELECT 2 FROM r c WHERE c.p = a.x)) g;
