"""Figure 6: features of the workload, derived from the SQL of Appendix A."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlglot
from sqlglot import exp

from bench.paper.printed import FIGURE_6, Features
from bench.results import Grid
from viewlet.workloads.queries import PAPER_QUERIES

COLUMNS = (
    "query",
    "tables, join (=: equi, ×: cross)",
    "where clause beside the join",
    "group-bys",
    "subqueries / depth",
    "where the paper has another cell",
)
OPERATORS = {"∨": (exp.Or,), "=": (exp.EQ,), "<": (exp.LT, exp.GT, exp.LTE, exp.GTE)}
REASONS = {
    "where": "conditions that join two tables are left out here, all others are listed",
    "groups": "Appendix A has it so",
    "subqueries": "Appendix A has so many SELECTs inside",
}


def grid(queries: Sequence[str]) -> Grid:
    note = "Printed: the cell of the paper's Figure 6. Ours are derived from the SQL of Appendix A."
    return Grid("figure-6", "Features of the workload", COLUMNS, tuple(_row(name) for name in queries), note)


def _row(name: str) -> tuple[str, ...]:
    ours = features(PAPER_QUERIES[name].select("paper"))
    told = [
        f"{column}: printed {theirs}; {REASONS[column]}"
        for column, mine, theirs in zip(Features._fields, ours, FIGURE_6[name], strict=True)
        if mine != theirs
    ]
    return name, *ours, "; ".join(told)


def features(sql: str) -> Features:
    """Of the outer SELECT its tables and conditions; of all that is inside, how many SELECTs and how deep.

    >>> features("SELECT a, sum(b) FROM r, s WHERE r.k = s.k AND b < (SELECT sum(c) FROM t) GROUP BY a")
    Features(tables='2, =', where='<', groups='yes', subqueries='1 / 1')
    """
    query = sqlglot.parse_one(sql, read="duckdb")
    inside = [select for select in query.find_all(exp.Select) if select is not query]
    depth = max((len(list(_around(select))) for select in inside), default=0)
    groups = "yes" if query.args.get("group") else "no"
    return Features(_tables(query), _operators(query), groups, f"{len(inside)} / {depth}")


def _around(select: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs in which it stands."""
    while (outer := select.find_ancestor(exp.Select)) is not None:
        yield outer
        select = outer


def _tables(query: exp.Expr) -> str:
    count = sum(table.find_ancestor(exp.Select) is query for table in query.find_all(exp.Table))
    if count == 1:
        return "1"
    return f"{count}, {'=' if any(map(_joins, query.find_all(exp.EQ))) else '×'}"


def _operators(query: exp.Expr) -> str:
    parts = [part for part in _conjuncts(query.args.get("where")) if not _joins(part)]
    used = ["∧"] if len(parts) > 1 else []
    used += [mark for mark, kinds in OPERATORS.items() if any(_outside(part, kinds) for part in parts)]
    return ", ".join(used) or "none"


def _conjuncts(where: exp.Expr | None) -> list[exp.Expr]:
    if where is None:
        return []
    return list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]


def _outside(condition: exp.Expr, kinds: tuple[type[exp.Expr], ...]) -> bool:
    """Used in a condition, but not within a SELECT of its own."""
    home = condition.find_ancestor(exp.Select)
    return any(part.find_ancestor(exp.Select) is home for part in condition.find_all(*kinds))


def _joins(condition: exp.Expr) -> bool:
    """Equates columns of two tables of the SELECT that it stands in."""
    if not isinstance(condition, exp.EQ):
        return False
    left, right = condition.this, condition.expression
    here = {table.alias_or_name for table in _own_tables(condition)}
    sides = [side.table for side in (left, right) if isinstance(side, exp.Column)]
    return len(set(sides)) == 2 and here.issuperset(sides)


def _own_tables(condition: exp.Expr) -> list[exp.Table]:
    home = condition.find_ancestor(exp.Select)
    return [t for t in home.find_all(exp.Table) if t.find_ancestor(exp.Select) is home] if home else []
