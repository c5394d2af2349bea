-- A value picked by a group's own key, or by itself: the group was lost, and the statement could not be evaluated.
CREATE MATERIALIZED VIEW v1 AS
SELECT g.c1 FROM (SELECT ARG_MAX(x.k * 2, x.k) AS c1, x.k AS c2 FROM r x GROUP BY x.k) g;
CREATE MATERIALIZED VIEW v2 AS
SELECT DISTINCT g.c2 FROM (SELECT FIRST(x.s ORDER BY x.s DESC) AS c1, x.a + 1 AS c2 FROM r x GROUP BY x.a + 1) g;
