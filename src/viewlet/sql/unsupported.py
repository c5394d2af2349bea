"""What is refused, by name, and the nearest thing that works."""

from __future__ import annotations

from sqlglot import exp

from viewlet.errors import SqlError
from viewlet.sql.source import Source

_AGGREGATES = "the aggregates are SUM, COUNT, AVG, MIN, MAX, BOOL_AND, VARIANCE, ARG_MAX, FIRST and their like"
_BEFORE = "compute it before the insert, as a column of its own"
_PARTS = "the parts of a query are WITH, SELECT, FROM, WHERE, GROUP BY, HAVING and UNION ALL"
NODES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.SimilarTo: ("SIMILAR TO", _BEFORE),
    exp.RegexpLike: ("a regular expression", _BEFORE),
    exp.Placeholder: ("a parameter", "write the value"),
    exp.Parameter: ("a parameter", "write the value"),
    exp.Star: ("* in an expression", "name the columns"),
}


_EXPRESSIONS = "use comparisons, + - * /, CASE, COALESCE, NULLIF and ABS"
_WRAPPERS = (exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)  # around an aggregate
# what is written for a node; of several, the first that is there
_SPELLED: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Pow: ("**", "^"),
    exp.BitwiseAnd: ("&",),
    exp.BitwiseOr: ("|",),
    exp.BitwiseLeftShift: ("<<",),
    exp.BitwiseRightShift: (">>",),
    exp.BitwiseNot: ("~",),
    exp.Glob: ("GLOB",),
    exp.Collate: ("COLLATE",),
    exp.JSONExtract: ("->",),
    exp.JSONExtractScalar: ("->>",),
    exp.Bracket: ("a part in brackets: x[…]",),
    exp.Array: ("a list […]",),
    exp.Struct: ("a struct {…}",),
    exp.Dot: ("a field of a struct",),
    exp.AtTimeZone: ("AT TIME ZONE",),
    exp.WithinGroup: ("WITHIN GROUP",),
    exp.ByteString: ("E'…'",),
    exp.RawString: ("$$…$$",),
    exp.PositionalColumn: ("a column by its place (#)",),
}
_WORDS: dict[object, str] = {exp.Fetch: "FETCH", exp.Lock: "FOR"}  # of parts of a query
_NO_POSITION = (exp.Max, exp.Min, exp.Any, exp.All)
JOINS = {
    "POSITIONAL": "rows have no order: number them before the insert, and join by the number",
}


def join_words(source: Source, node: exp.Join) -> list[str]:
    """What stands before JOIN: its method, side and kind."""
    words = " ".join(filter(None, (node.method, node.side, node.kind))).upper().split()
    for word in words:
        if word in JOINS:
            source.refuse(source.unsupported(node, f"{' '.join(words)} JOIN", JOINS[word], words[0]))
    return words


def refuse(source: Source, node: exp.Expr) -> SqlError:
    """The error for a node that no rule translates, by the name that the user wrote."""
    entry = _by_place(node) or NODES.get(type(node))
    if entry is not None and not _is_respelled(source, node, entry[0]):
        return source.unsupported(node, *entry, _own_keyword(node))
    name = source.called(node)
    if name is not None:
        is_aggregate = isinstance(node.this if type(node) in _WRAPPERS else node, exp.AggFunc)
        kind, hint = ("aggregate", _AGGREGATES) if is_aggregate else ("function", _BEFORE)
        return source.unsupported(name, f"the {kind} {name.text.upper()}", hint)
    return source.unsupported(node, _spelled(source, node), _EXPRESSIONS)


def _spelled(source: Source, node: exp.Expr) -> str:
    known = _SPELLED.get(type(node), ())
    if len(known) > 1:
        known = tuple(sign for sign in known if sign in source.span(node))
    word = node.sql("duckdb")  # CURRENT_DATE and the like
    return known[0] if known else word if source.has_word(word) else "this expression"


def _is_respelled(source: Source, node: exp.Expr, construct: str) -> bool:
    """Written as a function (``mod(a, b)``) or by another sign (``a ~~ 'x'``)."""
    if not isinstance(node, exp.Binary):
        return False
    return source.called(node) is not None or (type(node) in _SPELLED and construct not in source.span(node).upper())


def _by_place(node: exp.Expr) -> tuple[str, str] | None:
    """Those whose other form depends on what they stand in: it is to be an equal one, NULLs included."""
    match node:
        case exp.Any():
            return "ANY", "compare with it: x < ANY (SELECT y …)"
        case exp.All():
            return "ALL", "compare with it: x < ALL (SELECT y …)"
        case exp.Tuple():
            return "a row value (a, b)", "row values are compared, with row values or by IN (SELECT …)"
    return None


def _own_keyword(node: exp.Expr) -> str:
    """sqlglot keeps no position for these: the word before their argument is theirs."""
    if isinstance(node, exp.TryCast):
        return "TRY_CAST"
    call = node.this if isinstance(node, exp.Window) else node
    return call.key.upper() if isinstance(call, _NO_POSITION) else ""


def only(source: Source, node: exp.Expr, allowed: frozenset[str], hints: dict[str, tuple[str, str]]) -> None:
    """Refuse a node that says more than ``allowed``: a part that is not understood is never dropped."""
    for key, value in node.args.items():
        if not value or key in allowed:
            continue
        place = value[0] if isinstance(value, list) else value
        written = _WORDS.get(type(place), _WORDS.get(key, key.strip("_").replace("_", " ").upper()))
        construct, hint = hints.get(key, (written, _PARTS))
        construct = written if type(place) in _WORDS else construct
        at = place if isinstance(place, exp.Expr) else node
        source.refuse(source.unsupported(at, construct, hint, construct))
