"""What is refused, by name, and the nearest thing that works."""

from __future__ import annotations

from sqlglot import exp

from viewlet.errors import SqlError
from viewlet.sql.source import Source

_AGGREGATES = "the aggregates are SUM, COUNT, AVG, MIN and MAX"
_FUNCTIONS = "the functions are SUM, COUNT, AVG, MIN, MAX, COALESCE, NULLIF, ABS and CASE"
_NODES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Window: ("a window function (OVER)", "compare with a correlated subquery: (SELECT SUM(…) FROM … WHERE …)"),
    exp.Filter: ("FILTER", "write SUM(CASE WHEN condition THEN value END)"),
    exp.Like: ("LIKE", "compare with =, IN, or a range: x >= 'ab' AND x < 'ac'"),
    exp.ILike: ("ILIKE", "compare with = or IN"),
    exp.SimilarTo: ("SIMILAR TO", "compare with = or IN"),
    exp.RegexpLike: ("a regular expression", "compare with = or IN"),
    exp.DPipe: ("||", "keep the parts as columns of their own"),
    exp.Mod: ("%", "the operators are + - * /"),
    exp.IntDiv: ("//", "the operators are + - * /"),
    exp.NullSafeEQ: ("IS NOT DISTINCT FROM", "write x = y OR (x IS NULL AND y IS NULL)"),
    exp.NullSafeNEQ: ("IS DISTINCT FROM", "write x <> y OR (x IS NULL) <> (y IS NULL)"),
    exp.Any: ("ANY", "use EXISTS (SELECT … WHERE comparison)"),
    exp.All: ("ALL", "use NOT EXISTS (SELECT … WHERE the opposite)"),
    exp.TryCast: ("TRY_CAST", "only casts that cannot fail work: CAST(x AS DOUBLE)"),
    exp.Interval: ("an INTERVAL on its own", "add it to a DATE or TIMESTAMP"),
    exp.Tuple: ("a row value (a, b)", "compare the columns one by one"),
    exp.Placeholder: ("a parameter", "write the value"),
    exp.Parameter: ("a parameter", "write the value"),
    exp.Distinct: ("DISTINCT with several arguments", "count one column: COUNT(DISTINCT x)"),
    exp.Rollup: ("ROLLUP", "write one view for each level"),
    exp.Cube: ("CUBE", "write one view for each grouping"),
    exp.GroupingSets: ("GROUPING SETS", "write one view for each grouping"),
    exp.Order: ("ORDER BY in an aggregate", "leave it out: a sum has no order"),
    exp.Star: ("* in an expression", "name the columns"),
}


_NO_POSITION = (exp.Max, exp.Min, exp.Any, exp.All, exp.Rollup, exp.Cube)
_JOINS = {
    "NATURAL": "name the columns: JOIN … ON a.x = b.x",
    "SEMI": "write WHERE EXISTS (SELECT …)",
    "ANTI": "write WHERE NOT EXISTS (SELECT …)",
    "ASOF": "join inner with a correlated subquery in ON",
    "POSITIONAL": "join on a column of both sides",
}
_OUTER_JOIN = "join inner, and add the rows without a partner by UNION ALL … WHERE NOT EXISTS (…)"


def refuse_join(source: Source, node: exp.Join) -> None:
    """Only inner joins."""
    words = " ".join(filter(None, (node.method, node.side, node.kind))).upper().split()
    if words in ([], ["INNER"], ["CROSS"]):
        return
    hint = next((_JOINS[word] for word in words if word in _JOINS), _OUTER_JOIN)
    raise source.unsupported(node, f"{' '.join(words)} JOIN", hint, words[0])


def refuse(source: Source, node: exp.Expr) -> SqlError:
    """The error for a node that no rule translates."""
    if type(node) in _NODES:
        construct, hint = _NODES[type(node)]
        return source.unsupported(node, construct, hint, _own_keyword(node))
    if isinstance(node, exp.Anonymous):
        return source.unsupported(node, f"the function {node.name.upper()}", _FUNCTIONS)
    if isinstance(node, exp.AggFunc):
        return source.unsupported(node, f"the aggregate {node.sql_name()}", _AGGREGATES)
    if isinstance(node, exp.Func):
        return source.unsupported(node, f"the function {node.sql_name()}", _FUNCTIONS)
    return source.unsupported(node, node.key.upper(), "use comparisons, + - * /, CASE, COALESCE, NULLIF and ABS")


def _own_keyword(node: exp.Expr) -> str:
    """sqlglot keeps no position for these: the word before their argument is theirs."""
    if isinstance(node, exp.TryCast):
        return "TRY_CAST"
    call = node.this if isinstance(node, (exp.Window, exp.Filter)) else node
    return call.key.upper() if isinstance(call, _NO_POSITION) else ""


def only(source: Source, node: exp.Expr, allowed: frozenset[str], hints: dict[str, tuple[str, str]]) -> None:
    """Refuse a node that says more than ``allowed``: a part that is not understood is never dropped."""
    for key, value in node.args.items():
        if not value or key in allowed:
            continue
        construct, hint = hints.get(key, (key.strip("_").upper(), "leave it out"))
        place = value[0] if isinstance(value, list) else value
        raise source.unsupported(place if isinstance(place, exp.Expr) else node, construct, hint, construct)
