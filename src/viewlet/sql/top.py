"""The first rows of each group: QUALIFY row_number() or rank() OVER (PARTITION BY … ORDER BY …) <= k.

A row's rank is how many rows of its partition come before it, which is a sum like others: first the rows with an
earlier value of the first term of the ORDER BY, a range, and among those with the same value the rows that the further
terms put before it. A partition and a value are shared variables, by which NULL meets NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Exists, Query, Value, inputs, join, outputs, rename, sum_, union
from viewlet.algebra.terms import FALSE, ONE_TERM, TRUE, ZERO_TERM, Const, Term, Var, number, op
from viewlet.schema import BIGINT
from viewlet.sql.expr import Expr, merge, rounded, variable
from viewlet.sql.expression import expression
from viewlet.sql.grouping import bound
from viewlet.sql.numbered import MOST_NUMBERS, Number
from viewlet.sql.scope import Names, Scope, Session
from viewlet.sql.select_list import Block, OutputColumn, is_aggregating
from viewlet.sql.unsupported import only

_CONDITION = "the condition is row_number(), rank() or dense_rank() OVER (PARTITION BY … ORDER BY …) <= a whole number"
_CHOOSING = ("distinct", "group", "having", "qualify", "limit", "offset")
_OF_FROM = "write out what each term of DISTINCT ON and ORDER BY stands for, over the columns of FROM"
_PLAIN = "take the columns of the outer query out of it"
_SMALLER: dict[type[exp.Expr], int] = {exp.LTE: 0, exp.EQ: 0, exp.LT: -1}
_BOUNDS = ("expression", "low", "high")
_EVERY = 1 << 63  # more than there are rows


Counted = tuple[str, Query, Term]  # a count of rows, its variable, and what it adds to a rank


@dataclass(frozen=True)
class _Key:
    """A term that rows are ordered by, under a variable."""

    var: str
    nullable: bool
    descending: bool = False
    nulls_first: bool = False

    def precedes(self, other: str, this: str) -> Term:
        """Whether the value under ``other`` comes before that under ``this``; never NULL."""
        less = op(">" if self.descending else "<", Var(other), Var(this))
        if not self.nullable:
            return less
        first, second = (other, this) if self.nulls_first else (this, other)
        apart = op("and", op("is_null", Var(first)), op("not", op("is_null", Var(second))))
        both = op("or", op("is_null", Var(other)), op("is_null", Var(this)))
        return op("case", both, apart, less)


def split_qualify(tree: exp.Select) -> tuple[exp.Select, exp.Expr | None]:
    """A query without its QUALIFY, and that; of groups it stays, to be refused."""
    condition = tree.args.get("qualify")
    if condition is None or is_aggregating(tree):
        return tree, None
    bare = tree.copy()
    bare.set("qualify", None)
    return bare, condition


def of_distinct_on(tree: exp.Select, session: Session) -> exp.Select:
    """DISTINCT ON (a) … ORDER BY a, b: the first row of each a, which is QUALIFY row_number() OVER (…) = 1."""
    clause, order = tree.args["distinct"], tree.args.get("order")
    by = clause.args["on"].expressions or [clause.args["on"]]
    terms = [o.this for o in order.expressions] if order is not None else []
    refused = is_aggregating(tree) or tree.args.get("qualify")
    if refused or not all(_is_of_from(node, tree) for node in (*by, *terms)):
        source = session.source
        raise source.unsupported(clause, "DISTINCT ON with anything but expressions over FROM", _OF_FROM, "DISTINCT")
    window = exp.Window(this=exp.RowNumber(), partition_by=[node.copy() for node in by], over="OVER")
    window.set("order", order and order.copy())
    qualified = tree.copy()
    qualified.set("distinct", None)
    qualified.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))
    return qualified


def _is_of_from(node: exp.Expr, tree: exp.Select) -> bool:
    """Not a place, and no name that a SELECT item has for something else."""
    aliases = {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    names = [c for c in node.find_all(exp.Column) if not c.table]
    own = all(aliases.get(c.name.lower(), c) == c for c in names)
    return own and not isinstance(node.unnest(), (exp.Literal, exp.Null, exp.Boolean, exp.Var, exp.Neg))


def with_qualify(tree: exp.Select) -> exp.Select:
    """SELECT … FROM (SELECT …, row_number() OVER (…) AS n FROM …) WHERE n <= k, with QUALIFY inside instead."""
    inner = tree.args["from_"].this if tree.args.get("from_") is not None else None
    if not isinstance(inner, exp.Subquery) or not isinstance(inner.this, exp.Select) or tree.args.get("joins"):
        return tree
    numbered = [e for e in inner.this.expressions if isinstance(e, exp.Alias) and isinstance(e.this, exp.Window)]
    if len(numbered) != 1 or any(inner.this.args.get(part) for part in _CHOOSING) or not tree.args.get("where"):
        return tree
    return _moved(tree, numbered[0]) or tree


def _moved(tree: exp.Select, item: exp.Alias) -> exp.Select | None:
    """None where no condition bounds the number. Where nothing else uses it, it is no column of the subquery either."""
    conditions = list(tree.args["where"].this.flatten()) if isinstance(tree.args["where"].this, exp.And) else []
    conditions = conditions or [tree.args["where"].this]
    names = [c for c in tree.find_all(exp.Column) if c.name.lower() == item.alias.lower()]
    asked = [c for c in conditions if type(c) in _SMALLER and c.this in names]
    stars = [e for e in tree.expressions if e.find(exp.Star) and not e.find(exp.AggFunc)]
    if not asked:
        return None
    rest = [c.copy() for c in conditions if c is not asked[0]]
    moved = tree.copy()
    inner = moved.args["from_"].this.this
    if len(names) == 1 and not stars:
        inner.set("expressions", [e for e in inner.expressions if e != item])
    inner.set("qualify", exp.Qualify(this=type(asked[0])(this=item.this.copy(), expression=asked[0].expression.copy())))
    moved.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    return moved


def first_rows(
    condition: exp.Expr, from_where: Block, columns: Sequence[OutputColumn], names: Names, shown_number: Number | None
) -> tuple[tuple[Query, ...], tuple[OutputColumn, ...]]:
    """The factors and columns of a block with QUALIFY, ``shown_number`` among them where it is shown."""
    window, skipped, most = _condition(condition, from_where.scope)
    partition = [rounded(expression(node, from_where.scope)) for node in window.args.get("partition_by") or ()]
    order = list(window.args["order"].expressions) if window.args.get("order") else []
    terms = [rounded(expression(node.this, from_where.scope)) for node in order]
    product = join(*merge([from_where.factors, *(e.binds for e in (*(c.expr for c in columns), *partition, *terms))]))
    shown, product = _bound(names, product, [rounded(c.expr) for c in columns])
    groups, product = _bound(names, product, partition)
    values, product = _bound(names, product, terms)
    keys = [
        _Key(var, e.nullable, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))
        for var, e, node in zip(values, terms, order, strict=True)
    ]
    is_numbered = isinstance(window.this, exp.RowNumber)
    if is_numbered:
        keys += [_Key(var, c.expr.nullable) for var, c in zip(shown, columns, strict=True)]
    keys = [k for i, k in enumerate(keys) if k.var not in groups and k.var not in {o.var for o in keys[:i]}]
    rows = sum_({*shown, *groups, *values}, product)
    if inputs(rows):
        raise from_where.scope.session.source.unsupported(window, "the first rows of a correlated subquery", _PLAIN)
    ranked = Exists(sum_({*groups, *values}, product)) if isinstance(window.this, exp.DenseRank) else rows
    counts = _before(ranked, frozenset(groups), keys, names)
    exprs = [variable(var, c.expr.type, c.expr.nullable) for c, var in zip(columns, shown, strict=True)]
    others = [OutputColumn(c.name, e) for c, e in zip(columns, exprs, strict=True)]
    if shown_number is None:
        return _first(rows, counts, (skipped, most), is_numbered, names), tuple(others)
    if is_numbered and most - skipped > MOST_NUMBERS:
        construct = f"row_number() as a column of more than {MOST_NUMBERS} rows"
        raise from_where.scope.session.source.unsupported(window, construct, "ask for fewer rows")
    factors, rank = (_copies if is_numbered else _ranks)(rows, counts, (skipped, most), names)
    return factors, shown_number.among(others, Expr(rank, BIGINT, rank))


def first_of_each(
    rows: Query, groups: frozenset[str], columns: Sequence[tuple[str, bool]], names: Names
) -> tuple[Query, ...]:
    """The first row of each group, once, by its columns; with each of them stands whether it may be NULL."""
    keys = [_Key(var, nullable) for var, nullable in columns if var not in groups]
    return _first(rows, _before(rows, groups, keys, names), (0, 1), True, names)


def _bound(names: Names, product: Query, exprs: Sequence[Expr]) -> tuple[list[str], Query]:
    """Each expression under a variable."""
    variables = list[str]()
    for expr in exprs:
        var, product = bound(names, product, expr.term, "key")
        variables.append(var)
    return variables, product


def _first(
    rows: Query, counts: Sequence[Counted], wanted: tuple[int, int], is_numbered: bool, names: Names
) -> tuple[Query, ...]:
    """The rows that as many as ``wanted`` of their group come before: from the first number, below the second."""
    binds, (skipped, most), total = [Bind(var, q) for var, q, _ in counts], wanted, _total(counts)
    few = [Compare("<", total, number(most))] if most < _EVERY else []
    if not is_numbered:
        return (rows, *binds, *few, *([Compare(">=", total, number(skipped))] if skipped else []))
    if (skipped, most) == (0, 1):
        return (Exists(rows), *binds, *few)
    times = names.fresh("times")
    copy = names.apart([rows, rows], sorted(outputs(rows)))[1]
    end = op("+", total, Var(times))
    if skipped:
        few.append(Compare(">", end, number(skipped)))
    shown = op("-", _least(end, number(most)) if most < _EVERY else end, _greatest(total, number(skipped)))
    return (Exists(rows), *binds, Bind(times, copy), *few, Value(shown))


def _ranks(
    rows: Query, counts: Sequence[Counted], wanted: tuple[int, int], names: Names
) -> tuple[tuple[Query, ...], Term]:
    """The rows with their rank, which is shown."""
    return _first(rows, counts, wanted, False, names), op("+", _total(counts), ONE_TERM)


def _copies(
    rows: Query, counts: Sequence[Counted], wanted: tuple[int, int], names: Names
) -> tuple[tuple[Query, ...], Term]:
    """Each copy of a row with a number of its own: those from the first behind the rows before it."""
    binds, (skipped, most), total = [Bind(var, q) for var, q, _ in counts], wanted, _total(counts)
    place, times = Var(names.fresh("number")), Var(names.fresh("times"))
    copy = names.apart([rows, rows], sorted(outputs(rows)))[1]
    numbers = union(*(Bind(place.name, Value(number(i))) for i in range(skipped + 1, max(most, skipped + 1) + 1)))
    here = Compare("<", total, place), Compare("<=", place, op("+", total, times)), Compare("<=", place, number(most))
    return (Exists(rows), *binds, Bind(times.name, copy), numbers, *here), place


def _total(counts: Sequence[Counted]) -> Term:
    total: Term = ZERO_TERM
    for _, _, term in counts:
        total = op("+", total, term)
    return total


def _least(left: Term, right: Term) -> Term:
    return op("case", op("<", left, right), left, right)


def _greatest(left: Term, right: Term) -> Term:
    return left if right == ZERO_TERM else op("case", op("<", left, right), right, left)


def _before(rows: Query, groups: frozenset[str], keys: Sequence[_Key], names: Names) -> list[Counted]:
    """Counts of rows that come before one, each with its variable and what it adds to the rank."""
    if not keys:
        return []
    first, *others = keys
    counts = [_counted(rows, groups, first, names)]
    if first.nullable:
        counts.append(_nulls(rows, groups, first, names))
    if others:
        counts.append(_ties(rows, groups | {first.var}, others, names))
    return counts


def _apart(rows: Query, shared: frozenset[str], names: Names) -> tuple[Query, dict[str, str]]:
    """A copy of the rows that has only ``shared`` in common with them."""
    renamed = {v: names.fresh(v) for v in sorted(outputs(rows) - shared)}
    copy = names.apart([rows, rows], sorted(outputs(rows)))[1]
    return rename(copy, renamed), renamed


def _counted(rows: Query, groups: frozenset[str], key: _Key, names: Names) -> tuple[str, Query, Term]:
    copy, renamed = _apart(rows, groups, names)
    earlier = Compare(">" if key.descending else "<", Var(renamed[key.var]), Var(key.var))
    var = names.fresh("before")
    return var, sum_(groups, join(copy, earlier)), Var(var)


def _nulls(rows: Query, groups: frozenset[str], key: _Key, names: Names) -> tuple[str, Query, Term]:
    """NULLs last: before a NULL come all others; NULLs first: before others come all NULLs."""
    copy, renamed = _apart(rows, groups, names)
    counted = Compare("=", op("is_null", Var(renamed[key.var])), TRUE if key.nulls_first else FALSE)
    var, is_null = names.fresh("nulls"), op("is_null", Var(key.var))
    term = op("case", is_null, ZERO_TERM, Var(var)) if key.nulls_first else op("case", is_null, Var(var), ZERO_TERM)
    return var, sum_(groups, join(copy, counted)), term


def _ties(rows: Query, shared: frozenset[str], keys: Sequence[_Key], names: Names) -> tuple[str, Query, Term]:
    """Among rows that agree so far: the further terms, one after the other."""
    copy, renamed = _apart(rows, shared, names)
    test: Term = FALSE
    for key in reversed(keys):
        mine, other = key.var, renamed[key.var]
        test = op("case", key.precedes(other, mine), TRUE, key.precedes(mine, other), FALSE, test)
    var = names.fresh("ties")
    return var, sum_(shared, join(copy, Compare("=", test, TRUE))), Var(var)


def is_bounded_rank(clause: exp.Expr) -> bool:
    """Whether a QUALIFY names the rows that it chooses by their numbers alone."""
    node = clause.this.unnest()
    if type(node) not in {*_SMALLER, exp.GT, exp.Between}:
        return False
    window = node.this.unnest()
    is_rank = isinstance(window, exp.Window) and isinstance(window.this, (exp.RowNumber, exp.Rank, exp.DenseRank))
    return is_rank and not any(node.args[p].find(exp.Column, exp.Window) for p in _BOUNDS if node.args.get(p))


def _condition(clause: exp.Expr, scope: Scope) -> tuple[exp.Window, int, int]:
    """The window, and the rows that are wanted: how many come before the first of them, and before the next one."""
    node, source = clause.this.unnest(), scope.session.source
    window = node.this.unnest() if isinstance(node, (exp.Between, exp.Binary)) else None
    if not isinstance(window, exp.Window) or not isinstance(window.this, (exp.RowNumber, exp.Rank, exp.DenseRank)):
        raise source.unsupported(clause, "this QUALIFY", _CONDITION, "QUALIFY")
    only(source, window, frozenset({"this", "partition_by", "order", "over"}), {})
    only(source, window.this, frozenset(), {})
    skipped, most = _wanted(node, scope)
    if skipped is None or most is None:
        raise source.unsupported(clause, "this QUALIFY", _CONDITION, "QUALIFY")
    return window, max(skipped, 0), max(most, 0)


def _wanted(node: exp.Expr, scope: Scope) -> tuple[int | None, int | None]:
    """None where a bound is no whole number."""
    if isinstance(node, exp.Between):
        low, high = _whole(node.args["low"], scope), _whole(node.args["high"], scope)
        return None if low is None else low - 1, high
    if type(node) not in {*_SMALLER, exp.GT}:
        return None, None
    rank = _whole(node.expression, scope)
    if rank is None or isinstance(node, exp.GT):
        return rank, _EVERY
    return (rank - 1 if isinstance(node, exp.EQ) else 0), rank + _SMALLER[type(node)]


def _whole(node: exp.Expr, scope: Scope) -> int | None:
    match expression(node, scope).term:
        case Const(int() as value, "number"):
            return value
    return None
