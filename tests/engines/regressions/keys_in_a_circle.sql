-- A value picked by a group's own key: the group was lost, and the statement could not be evaluated.
CREATE MATERIALIZED VIEW v1 AS
SELECT g.c1 FROM (SELECT ARG_MAX(x.k * 2, x.k) AS c1, x.k AS c2 FROM r x GROUP BY x.k) g;
-- A key that follows from another made a circle of the two.
CREATE MATERIALIZED VIEW v2 AS
SELECT g.c1, g.c2, g.c3 FROM (SELECT x.k + 1 AS c1, x.k AS c2, MIN(x.a) AS c3 FROM r x GROUP BY x.k + 1, x.k) g;
