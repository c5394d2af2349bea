"""JOIN: which rows of two sides meet, and which columns can be named afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from viewlet.algebra.query import Query, inputs, outputs
from viewlet.algebra.terms import op
from viewlet.sql.asof import Match, asof_join, matches_on
from viewlet.sql.expr import Expr, compared, holds, loose, merge
from viewlet.sql.expression import boolean, matched, unified
from viewlet.sql.outer_join import Rows, full_join, left_join, right_join, semi_join
from viewlet.sql.scope import Field, Names, Scope
from viewlet.sql.unsupported import join_words, only

Outer = Callable[[Rows, Rows, tuple[Query, ...], Names], Rows]
_OUTER: dict[str, Outer] = {"LEFT": left_join, "RIGHT": right_join, "FULL": full_join}
_PARTS = frozenset({"this", "on", "using", "kind", "side", "method"})


def is_comma(node: exp.Join) -> bool:
    """``FROM a, b``: what is joined to b is not joined to a."""
    return not any(node.args.get(part) for part in _PARTS - {"this"})


def joined(node: exp.Join, left: Rows, right: Rows, around: Scope) -> Rows:
    """The rows of ``left JOIN right``; the condition also sees ``around``, the tables before the last comma."""
    only(around.session.source, node, _PARTS, {})
    words = join_words(around.session.source, node)
    side, names = next((word for word in words if word in _OUTER), ""), around.session.names
    if side in ("RIGHT", "FULL"):
        _refuse_lateral(node, side, left, right, around)
        left = left.named(names)
    if side in ("LEFT", "FULL") or "ASOF" in words:
        right = right.named(names)
    pairs = [_pair(name, left, right, around) for name in _shared(node, left, right, around)]
    if "ASOF" in words:
        return _merged(asof_join(node, left, right, _asof(node, pairs, left, right, around), around), pairs, "", around)
    condition = _condition(node, pairs, around.adding(left.fields + right.fields), len(around.fields))
    if "SEMI" in words or "ANTI" in words:
        return semi_join(left, right, condition, names, "<>" if "SEMI" in words else "=")
    rows = _OUTER[side](left, right, condition, names) if side else left.beside(right).where(condition)
    return _merged(rows, pairs, side, around)


def _asof(node: exp.Join, pairs: list[_Pair], left: Rows, right: Rows, around: Scope) -> list[Match]:
    """The conditions of an ASOF JOIN; the last column of USING is the one that is not after that of the left."""
    fields = left.fields + right.fields
    if node.args.get("on") is not None:
        return matches_on(node, right, around.adding(fields))
    symbols = ["="] * (len(pairs) - 1) + [">="]
    sides = [matched(p.name, around, fields[p.left].expr, fields[p.right].expr) for p in pairs]
    return [Match(symbol, *pair) for symbol, pair in zip(symbols, sides, strict=False)]


def _refuse_lateral(node: exp.Join, side: str, left: Rows, right: Rows, around: Scope) -> None:
    if inputs(right.product) & outputs(left.product):
        message = f"the right side of a {side} JOIN cannot use columns of the left side"
        hint = "write LEFT JOIN, or leave the columns of the left side out of the right one"
        raise around.session.source.error(node.this, message, hint)


def _condition(node: exp.Join, pairs: list[_Pair], both: Scope, before: int) -> tuple[Query, ...]:
    fields = both.fields[before:]
    met = [compared("=", *matched(p.name, both, fields[p.left].expr, fields[p.right].expr)) for p in pairs]
    if node.args.get("on") is not None:
        met.append(boolean(node.args["on"], both))
    return merge(map(holds, met))


# -- USING and NATURAL -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pair:
    """A column of USING, and where the columns of both sides stand that it names."""

    name: exp.Expr
    left: int
    right: int


def _shared(node: exp.Join, left: Rows, right: Rows, around: Scope) -> list[exp.Expr]:
    """The columns of USING; for NATURAL those that both sides have."""
    if node.method.upper() != "NATURAL":
        return list(node.args.get("using") or ())
    theirs = {f.name for f in right.fields if f.is_in("")}
    names = dict.fromkeys(f.name for f in left.fields if f.is_in("") and f.name in theirs)
    if not names:
        message = "the sides of this NATURAL JOIN have no column in common"
        raise around.session.source.error(node.this, message, "write ON, or CROSS JOIN for all pairs")
    return [_placed(name, around.session.source.start(node.this)) for name in names]


def _placed(name: str, start: int) -> exp.Expr:
    identifier = exp.to_identifier(name, quoted=True)
    identifier.meta["start"] = start
    return identifier


def _pair(name: exp.Expr, left: Rows, right: Rows, around: Scope) -> _Pair:
    column = exp.Column(this=name.copy())
    mine, theirs = (replace(around, fields=rows.fields).own(column) for rows in (left, right))
    if mine is None or theirs is None:
        missing = "left" if mine is None else "right"
        hint = f"both sides need a column {name.name.lower()}; write ON"
        message = f"there is no column {name.name.lower()} on the {missing} side"
        raise around.session.source.error(name, message, hint)
    return _Pair(name, left.fields.index(mine), len(left.fields) + right.fields.index(theirs))


def _merged(rows: Rows, pairs: list[_Pair], side: str, around: Scope) -> Rows:
    """JOIN … USING (x): x and * mean one x, where that of the left stands; a table's name still gives its own."""
    fields = rows.fields
    hidden = {p.right for p in pairs} | ({p.left for p in pairs} if side in ("RIGHT", "FULL") else set())
    added = {p.left: Field("", fields[p.left].name, _one(p, fields, side, around)) for p in pairs if p.left in hidden}
    result: list[Field] = []
    for i, field in enumerate(fields):
        result += [added[i]] if i in added else []
        result.append(replace(field, merged=True) if i in hidden else field)
    return replace(rows, fields=tuple(result))


def _one(pair: _Pair, fields: tuple[Field, ...], side: str, around: Scope) -> Expr:
    """The column that a RIGHT or FULL JOIN … USING leaves: that of the side which has a row."""
    if side == "RIGHT":
        return fields[pair.right].expr
    parts, type_ = unified(pair.name, around, [fields[pair.left].expr, fields[pair.right].expr])
    return loose(op("coalesce", *(p.term for p in parts)), type_, True, parts)
