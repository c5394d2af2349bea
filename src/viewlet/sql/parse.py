"""Script text → statements: sqlglot's parser, and the two things it does not know (STREAM, free-form WITH options).

Both are taken out of the text by overwriting them with as many characters, so every position stays what the user sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from viewlet.errors import SqlError
from viewlet.sql import heads
from viewlet.sql.foreign import without_emit, without_watermarks
from viewlet.sql.heads import PLAIN_NAME, Head, Kind, is_name
from viewlet.sql.interval import check_intervals
from viewlet.sql.pivots import write_pivots_out
from viewlet.sql.selected_lists import unnest_in_from
from viewlet.sql.source import Source
from viewlet.sql.time_windows import time_windows, without_table_words

_DUCKDB = Dialect.get_or_raise("duckdb")
_CHANGES = (exp.Insert, exp.Update, exp.Delete, exp.TruncateTable)


@dataclass(frozen=True)
class Option:
    """``name = value`` of a WITH clause; ``token`` is where the value stands."""

    name: str
    value: str
    is_string: bool
    token: Token


@dataclass(frozen=True)
class Statement:
    """``tree`` is the CREATE TABLE of a stream or table, or a view's query; ``columns`` are a view's given names."""

    kind: Kind
    name: str
    place: Token
    tree: exp.Expr
    text: str
    options: tuple[Option, ...] = ()
    columns: tuple[str, ...] | None = None
    materialized: bool = True
    replaces: bool = False
    unless_there: bool = False


@dataclass(frozen=True)
class Drop:
    head: Head


@dataclass(frozen=True)
class Rename:
    """``column`` is empty where the stream, table or view itself gets the new name."""

    head: Head
    column: str
    new: str


@dataclass(frozen=True)
class Change:
    """INSERT, UPDATE, DELETE or TRUNCATE of rows of ``name``, as it is written; ``start`` is where that stands."""

    name: str
    place: Token
    tree: exp.Expr
    text: str
    start: int


AnyStatement = Statement | Drop | Rename | Change


def parse(source: Source, after: int = 0) -> Iterator[AnyStatement]:
    """The statements of a script but for the first ``after``, one at a time: an error never hides those before it."""
    source.tokens = _tokenize(source, source.text)
    for tokens in islice(_split(source.tokens), after, None):
        source.statement = tokens[0].start
        yield _parse_statement(source, tokens)


def only_changes(source: Source) -> bool:
    """Whether no statement of a script defines anything."""
    chunks = list(_split(_tokenize(source, source.text)))
    return bool(chunks) and all(map(heads.changes_rows, chunks))


def _tokenize(source: Source, text: str) -> list[Token]:
    try:
        return _DUCKDB.tokenize(text)
    except TokenError as error:
        line, column = source.unclosed()
        raise SqlError(
            "a quote or comment that is never closed",
            source=source.text,
            line=line,
            column=column,
            hint="close it; a quote inside a string is written twice: 'it''s'",
        ) from error


def _split(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    chunk: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            if chunk:
                yield chunk
            chunk = []
        else:
            chunk.append(token)
    if chunk:
        yield chunk


def _parse_statement(source: Source, tokens: list[Token]) -> AnyStatement:
    match heads.verb(source, tokens):
        case "CREATE":
            return _create(source, tokens, heads.created(source, tokens))
        case "DROP":
            return Drop(heads.dropped(source, tokens))
        case "ALTER":
            head = heads.altered(source, tokens)
            return Rename(head, *heads.renaming(source, tokens, head))
        case "CHANGE":
            return _change(source, tokens)


def _create(source: Source, tokens: list[Token], head: Head) -> Statement:
    text = source.text[tokens[0].start : tokens[-1].end + 1]
    tree: exp.Expr
    if head.kind == "TYPE":
        columns, options, tree = None, tuple[Option, ...](), _type(source, tokens, head)
    elif head.kind == "VIEW":
        columns, query = _view_head(source, tokens, head)
        query = check_intervals(source, without_emit(source, query))
        tree = time_windows(source, _tree(source, without_table_words(source, query), source.text))
        options = tuple[Option, ...]()
    else:
        first = _with_clause(tokens)
        columns, options = None, tuple(_options(source, tokens[first:]))
        body = without_watermarks(tokens[head.end : first])
        tree = _tree(source, [tokens[0], _as_table(tokens[1]), head.place, *body], source.text)
        if not isinstance(tree, exp.Create):
            hint = f"write CREATE {head.kind} {head.place.text} (column type, …)"
            raise source.error(head.place, f"{head.kind.lower()} {head.place.text} could not be read", hint)
    is_kept = head.kind != "VIEW" or head.materialized
    return Statement(
        head.kind, head.name, head.place, tree, text, options, columns, is_kept, head.replaces, head.optional
    )


def _type(source: Source, tokens: list[Token], head: Head) -> exp.DataType:
    """CREATE TYPE name AS type."""
    body = tokens[head.end + 1 :]
    hint = "write CREATE TYPE mood AS ENUM ('sad', 'happy'), AS STRUCT(a INTEGER), or AS another type"
    if not body or tokens[head.end].token_type != TokenType.ALIAS:
        raise source.error(head.place, f"type {head.place.text} could not be read", hint)
    try:
        return exp.DataType.build(source.text[body[0].start : body[-1].end + 1], dialect="duckdb", udt=True)
    except (ParseError, ValueError):
        raise source.error(body[0], f"type {head.place.text} could not be read", hint) from None


def _change(source: Source, tokens: list[Token]) -> Change:
    text = source.text[tokens[0].start : tokens[-1].end + 1]
    tree = _tree(source, tokens, source.text)
    target = tree.expressions[0] if isinstance(tree, exp.TruncateTable) else tree.this
    table = target.this if isinstance(target, exp.Schema) else target
    place = next((t for t in tokens if t.start == source.start(table)), tokens[0])
    if not isinstance(tree, (exp.Insert, exp.Update, exp.Delete, exp.TruncateTable)) or not isinstance(
        table, exp.Table
    ):
        raise source.error(place, f"this {tokens[0].text.upper()} could not be read", "name one stream or table")
    if tree.args.get("returning") is not None:
        raise source.unsupported(place, "RETURNING", "read a view over the table", "RETURNING")
    if table.db.lower() not in ("", "main") or table.catalog:
        raise source.unsupported(place, "a name with a schema", f"write just {table.name}")
    return Change(table.name.lower(), place, tree, text, tokens[0].start)


def _view_head(source: Source, tokens: list[Token], head: Head) -> tuple[tuple[str, ...] | None, list[Token]]:
    """The names in ``VIEW v (a, b) AS …``, and the tokens of the query."""
    name = head.place.text
    hint = f"write CREATE MATERIALIZED VIEW {name} AS SELECT … FROM …"
    end = next((i for i, t in enumerate(tokens) if t.token_type == TokenType.ALIAS), len(tokens))
    given, query = tokens[head.end : end], tokens[end + 1 :]
    if not query:
        raise source.error(head.place, f"view {name.lower()} has no query", hint)
    if not given:
        return None, query
    if given[0].token_type == TokenType.WITH:
        raise source.unsupported(given[0], "WITH options of a view", "leave them out: they say nothing of its rows")
    names = [part[0] for part in _commas(given[1:-1]) if len(part) == 1 and is_name(part[0])]
    if (given[0].text, given[-1].text) != ("(", ")") or 2 * len(names) + 1 != len(given):
        raise source.error(given[0], "AS was expected here", hint)
    return tuple(t.text.lower() for t in names), query


def _with_clause(tokens: list[Token]) -> int:
    """Where ``WITH ( … )`` at the end of a CREATE STREAM or TABLE begins; the end where there is none."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == TokenType.WITH:
            return i
    return len(tokens)


def _options(source: Source, clause: list[Token]) -> Iterator[Option]:
    """``WITH (name = value, …)``: names may be dotted, values are strings, numbers or words."""
    if not clause:
        return
    shape = "write WITH (name = value, …) with a string, number or word as value"
    if len(clause) < 3 or clause[1].text != "(" or clause[-1].text != ")":
        raise source.error(clause[0], "this WITH clause is not complete", shape)
    seen: set[str] = set()
    for part in _commas(clause[2:-1]):
        equals = next((i for i, t in enumerate(part) if t.token_type == TokenType.EQ), 0)
        value = part[equals + 1 :]
        signed = len(value) == 2 and value[0].text == "-" and value[1].token_type == TokenType.NUMBER
        if not equals or not (len(value) == 1 or signed):
            raise source.error(part[0] if part else clause[0], "this option is not name = value", shape)
        name = "".join(t.text for t in part[:equals]).lower()
        if name in seen:
            raise source.error(part[0], f"option {name} is given twice", "keep one of them")
        seen.add(name)
        is_string = value[-1].token_type == TokenType.STRING
        yield Option(name, "".join(t.text for t in value), is_string, value[0])


def _commas(tokens: list[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.COMMA:
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _as_table(word: Token) -> Token:
    """STREAM become TABLE, which sqlglot knows."""
    return Token(TokenType.TABLE, "TABLE", word.line, word.col, word.start, word.end)


def _tree(source: Source, tokens: list[Token], text: str) -> exp.Expr:
    try:
        tree = _DUCKDB.parser().parse(tokens, text)[0]
    except ParseError as error:
        raise _syntax_error(source, error) from error
    assert tree is not None
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() == "mad" and len(call.expressions) == 1:
            node = call.replace(Mad(this=call.expressions[0]))
            node.meta.update(call.meta)
    tree = write_pivots_out(source, tree)
    for select in list(tree.find_all(exp.Select)):
        _write_windows_out(source, select)
        unnest_in_from(source, select)
    return tree


def _write_windows_out(source: Source, select: exp.Select) -> None:
    """WINDOW w AS (…): each OVER w, and each OVER (w ORDER BY …), as what it stands for."""
    named = {w.name.lower(): w for w in select.args.get("windows") or ()}
    for window in [*named.values(), *select.find_all(exp.Window)]:
        if window.args.get("alias") and window.find_ancestor(exp.Select) is select:
            known = named.get(window.args["alias"].name.lower())
            if known is None or known is window:
                name = window.args["alias"].name
                raise source.error(window, f"there is no window {name}", "define it: WINDOW w AS (PARTITION BY …)")
            for part in ("partition_by", "order", "spec"):
                given = known.args.get(part)
                if given and not window.args.get(part):
                    window.set(part, [g.copy() for g in given] if isinstance(given, list) else given.copy())
            window.set("alias", None)
    select.set("windows", None)


class Mad(exp.Expression, exp.AggFunc):
    """MAD(x), for which sqlglot has no node of its own."""


def _syntax_error(source: Source, error: ParseError) -> SqlError:
    """sqlglot gives the place just after the word it stumbled over; we point at its first letter."""
    details = error.errors[0] if error.errors else {}
    word = str(details.get("highlight") or "")
    offset = source.offset(int(details.get("line") or 1), int(details.get("col") or 1)) - len(word)
    line, column = source.line_column(max(offset, 0))
    near = f" near {word!r}" if word.strip() else ""
    why = str(details.get("description") or error).rstrip(".").lower()
    hint = "check the spelling of the keywords, the commas and the parentheses before this place"
    hint += ', and put a name that is a keyword in quotes: "insert"'
    if "<token" in why and PLAIN_NAME.fullmatch(word):
        why, hint = f"a name was expected here, and {word} is a keyword", f'choose another name, or quote it: "{word}"'
    is_internal = "<token" in why or "<class" in why  # sqlglot's own account of what it has read
    message = f"syntax error{near}: {'something is missing' if is_internal else why}"
    return SqlError(message, source=source.text, line=line, column=column, hint=hint)
