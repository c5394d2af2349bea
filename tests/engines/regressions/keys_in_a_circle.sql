-- A value picked by a group's own key, or by itself: the group was lost, and the statement could not be evaluated.
CREATE MATERIALIZED VIEW v1 AS
SELECT g.c1 FROM (SELECT ARG_MAX(x.k * 2, x.k) AS c1, x.k AS c2 FROM r x GROUP BY x.k) g;
CREATE MATERIALIZED VIEW v2 AS
SELECT DISTINCT g.c2 FROM (SELECT FIRST(x.s ORDER BY x.s DESC) AS c1, x.a + 1 AS c2 FROM r x GROUP BY x.a + 1) g;
-- A key that follows from another made a circle of the two.
CREATE MATERIALIZED VIEW v3 AS
SELECT g.c1, g.c2, g.c3 FROM (SELECT x.k + 1 AS c1, x.k AS c2, MIN(x.a) AS c3 FROM r x GROUP BY x.k + 1, x.k) g;
