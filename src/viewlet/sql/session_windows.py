"""SESSION as Flink writes it and session_window as Spark does, in words that a block of a query reads.

``GROUP BY person, SESSION(at, INTERVAL '30' MINUTE)`` becomes ``GROUP BY person, "session#".window_start``, and the
SELECT notes what its sessions are: their time, their gap and the other keys (``session`` among its parts). The end of a
session is its last row and the gap: ``max(at) + INTERVAL '30' MINUTE``. ``FROM SESSION(…)`` is a subquery with such a
note. A row that comes exactly the gap after the last one still belongs to its session, in Flink and in Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from viewlet.sql.interval import interval
from viewlet.sql.source import MADE, Source

SESSION = "session#"  # the table of the column that a block with sessions has more
START, END = "window_start", "window_end"
SHAPE = "write SESSION(TABLE clicks PARTITION BY person, DESCRIPTOR(at), INTERVAL '30' MINUTE)"
_GROUP = "write GROUP BY person, SESSION(at, INTERVAL '30' MINUTE), or Spark's session_window(at, '30 minutes')"
_ENDS = "write SESSION_START and SESSION_END with its time and its gap, or session_window.start and session_window.end"
_ONE_EACH = "write FROM SESSION(…) alone, GROUP BY all of its keys, window_start and window_end, and no *"
_CALLS = ("SESSION", "SESSION_WINDOW")
_PARTS = {"SESSION_START": START, "SESSION_END": END}
_SPARK = {"start": START, "end": END}
_LATER = ("expressions", "having", "qualify", "order")
_DUCKDB = Dialect.get_or_raise("duckdb")


# -- tokens ------------------------------------------------------------------------------------------------------------


def partition_last(source: Source, tokens: Sequence[Token]) -> list[Token]:
    """``SESSION(TABLE clicks PARTITION BY a, DESCRIPTOR(t), gap)`` as ``SESSION(TABLE clicks, DESCRIPTOR(t), gap, a)``.

    SESSION itself becomes a name, which may be called.
    """
    done = [_as_name(t) if _is_call(tokens, i) else t for i, t in enumerate(tokens)]
    for place in reversed([i for i in range(len(tokens)) if _is_call(tokens, i)]):
        done = _moved(source, done, place)
    return done


def _is_call(tokens: Sequence[Token], i: int) -> bool:
    return tokens[i].text.upper() == "SESSION" and [t.text for t in tokens[i + 1 : i + 2]] == ["("]


def closing(tokens: Sequence[Token], opening: int) -> int:
    """Where the parenthesis ends that begins at a token."""
    depth = 0
    for i in range(opening, len(tokens)):
        depth += (tokens[i].token_type == TokenType.L_PAREN) - (tokens[i].token_type == TokenType.R_PAREN)
        if depth == 0:
            return i
    return len(tokens) - 1


def _as_name(token: Token) -> Token:
    return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)


def _moved(source: Source, tokens: list[Token], place: int) -> list[Token]:
    end = closing(tokens, place + 1)
    places = {tokens[i].text.upper(): i for i in range(end, place, -1)}
    first, last = places.get("PARTITION BY"), places.get("DESCRIPTOR", 0)
    if first is None:
        return tokens
    comma = tokens[last - 1]
    if comma.text != ",":
        raise source.error(tokens[first], "this SESSION has other arguments", SHAPE)
    keys = [t for t in tokens[first + 1 : last - 1] if t.text not in "()"]
    return [*tokens[:first], comma, *tokens[last:end], comma, *keys, *tokens[end:]]


# -- trees -------------------------------------------------------------------------------------------------------------


def session_windows(source: Source, tree: exp.Expr) -> exp.Expr:
    """The query with every session window in the words of a block."""
    for node in list(tree.find_all(exp.Table)):
        if isinstance(node.this, exp.Anonymous) and node.this.name.upper() == "SESSION":
            written = _Function(source, node).written()
            written.set("alias", node.args.get("alias"))
            node.replace(written)
    for select in list(tree.find_all(exp.Select)):
        _Grouped(source, select).write()
    return tree


def gap_of(source: Source, node: exp.Expr) -> int:
    """Microseconds."""
    written: exp.Expr = node
    if isinstance(node, exp.Literal) and node.is_string:
        try:
            written = _select(f"SELECT INTERVAL '{node.name}'").expressions[0]
        except (ParseError, TokenError):
            raise source.error(node, f"the gap {node.name} is not understood", "write '30 minutes'") from None
        _at(written, node)
    if not isinstance(written, exp.Interval):
        raise source.unsupported(node, "a gap that is no constant INTERVAL", "write INTERVAL '30' MINUTE")
    span = interval(source, written)
    if span.months or span.microseconds <= 0:
        raise source.unsupported(node, "a gap of months, or of no length", "write days, hours, minutes or seconds")
    return span.microseconds


def _select(text: str) -> exp.Select:
    tree = _DUCKDB.parse(text)[0]
    assert isinstance(tree, exp.Select)
    return tree


def note(select: exp.Select, time: exp.Expr, gap: int, keys: Sequence[exp.Expr]) -> None:
    """What the sessions of the rows of a SELECT are."""
    parts = [time.copy(), exp.Literal.number(gap), *(key.copy() for key in keys)]
    select.set("session", exp.Tuple(expressions=parts))


def _start(place: exp.Expr) -> exp.Expr:
    return _at(exp.column(START, table=SESSION, quoted=True), place)


def _end(time: exp.Expr, gap: int, place: exp.Expr) -> exp.Expr:
    length = exp.Interval(this=exp.Literal.string(str(gap)), unit=exp.Var(this="MICROSECOND"))
    return _at(exp.Paren(this=exp.Add(this=exp.Max(this=time.copy()), expression=length)), place)


def _at(made: exp.Expr, place: exp.Expr) -> exp.Expr:
    """Errors point at the text that it stands for."""
    where = next((n.meta for n in place.walk() if "start" in n.meta), {})
    for node in made.walk():
        node.meta.update(where, **{MADE: True})
    return made


def _own(select: exp.Select, parts: Sequence[str]) -> Iterator[exp.Expr]:
    """The nodes of these parts, not those of queries in them."""
    for part in parts:
        value = select.args.get(part)
        for root in value if isinstance(value, list) else [value] if value is not None else []:
            yield from list(root.walk(prune=lambda n: isinstance(n, exp.Query)))


def _put(node: exp.Expr, made: exp.Expr, name: str) -> None:
    """In the place of a node; a whole item of SELECT gets a name."""
    is_item = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
    node.replace(exp.alias_(made, name) if is_item else made)


def _meant(select: exp.Select, node: exp.Expr) -> exp.Expr:
    """GROUP BY 1 means a SELECT item."""
    items = select.expressions
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal():
        item = items[int(node.name) - 1] if 1 <= int(node.name) <= len(items) else node
        return item.unalias() if isinstance(item, exp.Alias) else item
    return node


# -- GROUP BY person, SESSION(at, gap) ---------------------------------------------------------------------------------


class _Grouped:
    """A SELECT that may have a session window among the keys of its groups."""

    def __init__(self, source: Source, select: exp.Select) -> None:
        self.source, self.select = source, select

    def write(self) -> None:
        calls = [n for n in _own(self.select, ("group",)) if _name(n) in _CALLS]
        if not calls:
            self._refuse_others()
            return
        call = calls[0]
        group: exp.Expr = self.select.args["group"]
        is_key = any(call is key for key in group.expressions)
        if len(calls) > 1 or not is_key or any(group.args[p] for p in group.args if p != "expressions"):
            hint = "group by one session window and plain keys, and take the rest in a query around it"
            raise self.source.unsupported(call, "a session window among others, or among grouping sets", hint)
        if len(call.expressions) != 2:
            raise self.source.error(call, f"{_name(call)} has other arguments", _GROUP)
        time, gap = call.expressions[0], gap_of(self.source, call.expressions[1])
        keys = [_meant(self.select, key) for key in group.expressions if key is not call]
        note(self.select, time, gap, keys)
        for node in _own(self.select, _LATER):
            part = self._part(node, call)
            if part:
                made = _start(node) if part == START else _end(time, gap, node)
                _put(node, made, node.name if _is_spark(node) else part)
        call.replace(_start(call))

    def _part(self, node: exp.Expr, call: exp.Expr) -> str:
        """Which end of the session a node is; empty for another node."""
        if _is_spark(node) and _name(call) == "SESSION_WINDOW" and node.name.lower() in _SPARK:
            return _SPARK[node.name.lower()]
        if isinstance(node, exp.Column) and not node.table and node.name.upper() == _name(call) == "SESSION_WINDOW":
            raise self.source.unsupported(node, "a session window as a value", _ENDS)
        if not _name(node).startswith("SESSION_") and _name(node) not in _CALLS:
            return ""
        if _name(node) not in _PARTS:
            raise self.source.unsupported(node, f"{_name(node)} as a value", _ENDS)
        if len(node.expressions) != 2 or node.expressions[0] != call.expressions[0]:
            raise self.source.error(node, f"{_name(node)} is of another session window than GROUP BY has", _ENDS)
        if gap_of(self.source, node.expressions[1]) != gap_of(self.source, call.expressions[1]):
            raise self.source.error(node, f"{_name(node)} is of another session window than GROUP BY has", _ENDS)
        return _PARTS[_name(node)]

    def _refuse_others(self) -> None:
        for node in _own(self.select, (*_LATER, "where")):
            if _name(node) in (*_CALLS, *_PARTS):
                raise self.source.unsupported(node, f"{_name(node)} without one in GROUP BY", _GROUP)


def _name(node: exp.Expr) -> str:
    return str(node.this).upper() if isinstance(node, exp.Anonymous) and not isinstance(node.parent, exp.Table) else ""


def _is_spark(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.table.upper() == "SESSION_WINDOW"


# -- FROM SESSION(clicks, at, gap, person) -----------------------------------------------------------------------------


class _Function:
    """The table function: the columns of its table, window_start and window_end."""

    def __init__(self, source: Source, node: exp.Table) -> None:
        call = node.this
        if len(call.expressions) < 3 or not all(isinstance(a, exp.Column) for a in _but(call.expressions, 2)):
            raise source.error(node, "SESSION has other arguments", SHAPE)
        self.source = source
        self.node, self.table, self.time = node, call.expressions[0], call.expressions[1]
        self.gap, self.keys = gap_of(source, call.expressions[2]), call.expressions[3:]

    def written(self) -> exp.Expr:
        table = self.table.sql("duckdb")
        inner = _select(f'SELECT rows.*, "{SESSION}".{START} AS {START} FROM {table} AS rows')
        note(inner, self.time, self.gap, self.keys)
        if not self._ends_are_sums():
            self._refuse_ends()
        return _at(exp.Subquery(this=inner), self.node)

    def _refuse_ends(self) -> None:
        select = self.node.find_ancestor(exp.Select)
        for node in _own(select, (*_LATER, "where", "group")) if select is not None else ():
            star = isinstance(node, exp.Star) and not isinstance(node.parent, exp.AggFunc)
            if star or (isinstance(node, exp.Column) and node.name.lower() == END):
                construct = f"{'*' if star else END} where a group is not one session of SESSION(…)"
                raise self.source.unsupported(node if not star else self.node, construct, _ONE_EACH)

    def _ends_are_sums(self) -> bool:
        """Write window_end as max(at) + gap where each group is one session; else False, and nothing is written."""
        clause = self.node.parent
        select = clause.parent if isinstance(clause, exp.From) else None
        if not isinstance(select, exp.Select) or (group := select.args.get("group")) is None:
            return False
        if select.args.get("joins") or any(group.args[p] for p in group.args if p != "expressions"):
            return False
        keys = [(key, _meant(select, key)) for key in group.expressions]
        names = {meant.name.lower() for _, meant in keys if isinstance(meant, exp.Column)}
        ends = [n for n in _own(select, _LATER) if isinstance(n, exp.Column) and n.name.lower() == END]
        if not names >= {START, *(key.name.lower() for key in self.keys)}:
            return False
        if any(n.find_ancestor(exp.AggFunc) for n in ends):
            return False
        group.set("expressions", [key for key, meant in keys if meant.name.lower() != END])
        for node in ends:
            _put(node, _end(self.time, self.gap, node), END)
        return True


def _but(nodes: list[exp.Expr], place: int) -> list[exp.Expr]:
    return nodes[:place] + nodes[place + 1 :]
