"""What may stand at the end of a query: ORDER BY, LIMIT, OFFSET and FETCH FIRST."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from viewlet.algebra.terms import Const
from viewlet.sql.expression import expression
from viewlet.sql.limited import first_value, is_plain, limited
from viewlet.sql.scope import Scope, Session
from viewlet.sql.top import of_distinct_on
from viewlet.sql.unsupported import only

PARTS = ("order", "limit", "offset")
MOST_ROWS = 2**63 - 1
_INSIDE = "write the inner query as a subquery: SELECT * FROM (SELECT … LIMIT 3) t ORDER BY …"
_WHOLE = "write a whole number of rows"


@dataclass(frozen=True)
class Ending:
    """``limit`` is None where all rows after the first ``offset`` are wanted."""

    order: tuple[exp.Ordered, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def is_cut(self) -> bool:
        return self.limit is not None or self.offset > 0


def split(tree: exp.Expr, session: Session) -> tuple[exp.Expr, Ending]:
    """A query without parentheses and ending, and its ending."""
    ending = _ending(tree, session)
    if isinstance(tree, exp.Select) and tree.args.get("distinct") and tree.args["distinct"].args.get("on"):
        tree = of_distinct_on(tree, session)
    if isinstance(tree, exp.Subquery):
        only(session.source, tree, frozenset({"this", *PARTS}), {})
        inner, first = split(tree.this, session)
        return inner, _both(tree, first, ending, session)
    if any(tree.args.get(part) for part in PARTS):
        tree = tree.copy()
        for part in PARTS:
            tree.set(part, None)
    return tree, ending


def without_ending(tree: exp.Expr, session: Session) -> exp.Expr:
    """A query inside another. Its order means nothing there; how many of its rows count does."""
    bare, ending = split(tree, session)
    return limited(bare, ending.order, ending.limit, ending.offset, session) if ending.is_cut else bare


def as_value(tree: exp.Expr, session: Session) -> tuple[exp.Expr, bool]:
    """The same of a query that is a value, and whether its LIMIT leaves one row at most."""
    bare, ending = split(tree, session)
    if not ending.is_cut:
        return bare, False
    is_first = ending.limit == 1 and not ending.offset
    if is_first and isinstance(bare, exp.Select) and len(bare.expressions) == 1 and is_plain(bare):
        return first_value(bare, ending.order, session), True
    return limited(bare, ending.order, ending.limit, ending.offset, session), (ending.limit or 2) <= 1


def without_first(tree: exp.Expr, session: Session) -> exp.Expr:
    """The same under EXISTS, where the first of some rows is as good as all."""
    bare, ending = split(tree, session)
    return bare if ending.limit and not ending.offset else without_ending(tree, session)


def _both(tree: exp.Expr, inner: Ending, outer: Ending, session: Session) -> Ending:
    """(SELECT … ORDER BY a) LIMIT 3: the rows may come in any order, so in that one."""
    if inner.is_cut and (outer.is_cut or outer.order):
        place, word = _cutting(tree.this)
        session.source.refuse(session.source.unsupported(place, f"{word} inside an ordered query", _INSIDE, word))
    if inner.is_cut:
        return inner
    return Ending(outer.order or inner.order, outer.limit, outer.offset)


def _cutting(tree: exp.Expr) -> tuple[exp.Expr, str]:
    """The first part that leaves rows out, and its keyword."""
    while isinstance(tree, exp.Subquery) and not (tree.args.get("limit") or tree.args.get("offset")):
        tree = tree.this
    place = tree.args.get("limit") or tree.args["offset"]
    assert isinstance(place, exp.Expr)
    return place, place.key.upper()


def _ending(tree: exp.Expr, session: Session) -> Ending:
    order, limit, offset = (tree.args.get(part) for part in PARTS)
    if order is not None:
        only(session.source, order, frozenset({"expressions"}), {})
    return Ending(
        tuple(order.expressions) if order is not None else (),
        _limit(limit, session) if limit is not None else None,
        _whole(offset.expression, offset, session) or 0 if offset is not None else 0,
    )


def _limit(node: exp.Expr, session: Session) -> int | None:
    source = session.source
    options = node.args.get("limit_options")
    if options is not None:
        hints = {
            "percent": ("a LIMIT in percent", "name a number of rows"),
            "with_ties": ("WITH TIES", "name a number of rows"),
        }
        for part, (construct, hint) in hints.items():
            if options.args.get(part):
                source.refuse(source.unsupported(node, construct, hint, node.key))
    if isinstance(node, exp.Fetch):
        only(source, node, frozenset({"direction", "count", "limit_options"}), {})
        return 1 if node.args.get("count") is None else _whole(node.args["count"], node, session)
    only(source, node, frozenset({"expression", "limit_options"}), {"expressions": ("LIMIT … BY", _WHOLE)})
    return _whole(node.expression, node, session)


def _whole(node: exp.Expr, clause: exp.Expr, session: Session) -> int | None:
    """A constant expression; LIMIT ALL and LIMIT NULL leave nothing out."""
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        return None
    term = expression(node, Scope(session)).term
    if isinstance(term, Const) and term.value is None:
        return None
    match term:
        case Const(int() | Fraction() as value, "number") if value == int(value) and 0 <= value <= MOST_ROWS:
            return int(value)
    source, word = session.source, clause.key.upper()
    source.refuse(source.unsupported(clause, f"{word} with anything but a whole number", _WHOLE, word))
    return None
