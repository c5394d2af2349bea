-- v2 is r itself: another view's reads of r were served by v2, whose columns come in another order.
CREATE MATERIALIZED VIEW v1 AS
SELECT b.p AS c1, SUM(b.k) AS c2 FROM t a, r b GROUP BY b.p;
CREATE MATERIALIZED VIEW v2 AS
SELECT a.k AS c1, a.a AS c2, a.p AS c3, a.s AS c4 FROM r a;
