-- A branch of a union looped over x6.k, which the branch before had bound and a fused statement read afterwards.
CREATE MATERIALIZED VIEW v1 AS
SELECT x6.k AS c1, x6.x AS c2, x6.d AS c3, x7.k AS c4 FROM t x6 JOIN t x7 ON x6.d = x7.d WHERE (NOT EXISTS (SELECT 1 FROM (SELECT x9.k AS c1 FROM q x9 JOIN u x10 ON x9.b = x10.w) x8 WHERE x8.c1 >= x6.k) OR x7.s >= 'b');
