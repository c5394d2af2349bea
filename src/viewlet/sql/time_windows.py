"""TUMBLE and HOP: windows of time as Flink, Materialize and RisingWave write them, in the words that we translate.

A tumbling window is a derived column. ``FROM TUMBLE(bid, t, INTERVAL '10' SECOND)`` means::

    (SELECT *, time_bucket(INTERVAL '10' SECOND, t, epoch) AS window_start, window_start + … AS window_end FROM bid)

A row of a hopping window belongs to several windows. It is a UNION ALL of such queries, one for each of them. Windows
are counted from 1970-01-01, as in Flink. ``GROUP BY TUMBLE(t, size)`` with TUMBLE_START and TUMBLE_END works, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token

from viewlet.sql.interval import interval
from viewlet.sql.session_windows import closing, partition_last, session_windows
from viewlet.sql.source import MADE, Source

EPOCH = "TIMESTAMP '1970-01-01 00:00:00'"
MOST_WINDOWS = 64  # windows that one row may belong to
_DUCKDB = Dialect.get_or_raise("duckdb")
_SHAPES = {
    "TUMBLE": "write TUMBLE(table, column, INTERVAL '10' SECOND)",
    "HOP": "write HOP(table, column, INTERVAL '2' SECOND, INTERVAL '10' SECOND): how often a window begins, its size",
}
_GROUP_WINDOWS = ("TUMBLE", "TUMBLE_START", "TUMBLE_END", "DATE_BIN")
_WORDS = (*_SHAPES, "SESSION")


def without_table_words(source: Source, tokens: Sequence[Token]) -> list[Token]:
    """Flink's ``TABLE(TUMBLE(TABLE bid, DESCRIPTOR(t), …))`` as ``TUMBLE(bid, t, …)``, which our parser reads."""
    tokens, dropped = partition_last(source, tokens), set[int]()
    for i in range(len(tokens) - 3):
        words = [t.text.upper() for t in tokens[i : i + 4]]
        if words[0] == "TABLE" and words[1] == "(" and words[2] in _WORDS and words[3] == "(":
            dropped |= {i, i + 1, closing(tokens, i + 1)}
        if words[0] in _WORDS and words[1] == "(":
            dropped |= _inside(tokens, i + 1)
    return [t for i, t in enumerate(tokens) if i not in dropped]


def _inside(tokens: Sequence[Token], opening: int) -> set[int]:
    """TABLE before the name, and DESCRIPTOR with its parentheses."""
    dropped = {opening + 1} if tokens[opening + 1].text.upper() == "TABLE" else set()
    for i in range(opening, closing(tokens, opening)):
        if tokens[i].text.upper() == "DESCRIPTOR" and tokens[i + 1].text == "(":
            dropped |= {i, i + 1, closing(tokens, i + 1)}
    return dropped


def time_windows(source: Source, tree: exp.Expr) -> exp.Expr:
    """The query with every TUMBLE, HOP and SESSION written out."""
    tree = session_windows(source, tree)
    for node in list(tree.find_all(exp.Table)):
        if isinstance(node.this, exp.Anonymous) and str(node.this.this).upper() in _SHAPES:
            written = _positioned(_table(source, node), node)
            written.set("alias", node.args.get("alias"))
            node.replace(written)
    for call in list(tree.find_all(exp.Anonymous)):
        bucket = _group_window(source, call)
        if bucket is not None:
            call.replace(_positioned(bucket, call))
    return tree


def _table(source: Source, node: exp.Table) -> exp.Expr:
    call = node.this
    name, arguments = str(call.this).upper(), call.expressions
    if len(arguments) != (3 if name == "TUMBLE" else 4) or not isinstance(arguments[1], exp.Column):
        raise source.error(node, f"{name} has other arguments", _SHAPES[name])
    table, column = (a.sql("duckdb") for a in arguments[:2])
    step, size = _length(source, arguments[2]), _length(source, arguments[-1])
    if size % step:
        raise source.unsupported(node, "a window whose size is no multiple of its step", _SHAPES[name])
    if size // step > MOST_WINDOWS:
        raise source.unsupported(node, f"a row in more than {MOST_WINDOWS} windows", "let windows begin less often")
    starts = ", ".join(f"({_shifted(_start(column, step), -turn * step)})" for turn in range(size // step))
    end = _shifted("window_start", size)
    windows = f"{table} AS rows, LATERAL (VALUES {starts}) AS windows (window_start)"
    return _parsed(f"(SELECT rows.*, window_start, {end} AS window_end FROM {windows})")


def _group_window(source: Source, node: exp.Anonymous) -> exp.Expr | None:
    """TUMBLE(t, size) in GROUP BY, its TUMBLE_START and TUMBLE_END, and date_bin(size, t[, origin])."""
    name, arguments = str(node.this).upper(), node.expressions
    if name not in _GROUP_WINDOWS or len(arguments) not in (2, 3) or isinstance(node.parent, exp.Table):
        return None
    moment, length = arguments[:2] if name != "DATE_BIN" else arguments[1::-1]
    origin = arguments[2].sql("duckdb") if len(arguments) == 3 else EPOCH
    size = _length(source, length)
    start = _start(moment.sql("duckdb"), size, origin)
    return _parsed(_shifted(start, size) if name == "TUMBLE_END" else start)


def _length(source: Source, node: exp.Expr) -> int:
    """Microseconds."""
    if not isinstance(node, exp.Interval):
        raise source.error(node, "the length of a window is an INTERVAL", "write INTERVAL '10' SECOND")
    span = interval(source, node)
    if span.months or span.microseconds <= 0:
        raise source.unsupported(node, "a window of months, or of no length", "write days, hours, minutes or seconds")
    return span.microseconds


def _start(moment: str, size: int, origin: str = EPOCH) -> str:
    return f"time_bucket(INTERVAL '{size}' MICROSECOND, {moment}, {origin})"


def _shifted(moment: str, microseconds: int) -> str:
    sign = "+" if microseconds > 0 else "-"
    return f"{moment} {sign} INTERVAL '{abs(microseconds)}' MICROSECOND" if microseconds else moment


def _parsed(text: str) -> exp.Expr:
    tree = _DUCKDB.parse(f"SELECT {text}")[0]
    assert isinstance(tree, exp.Select)
    (item,) = tree.expressions
    assert isinstance(item, exp.Expr)
    return item.pop()


def _positioned(tree: exp.Expr, place: exp.Expr) -> exp.Expr:
    """Errors in the text that we wrote point at the text that stands for it."""
    where = next((n.meta for n in place.walk() if "start" in n.meta), {})
    for node in tree.walk():
        node.meta.update(where, **{MADE: True})
    return tree
