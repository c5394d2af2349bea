"""Script text → statements: sqlglot's parser, and the two things it does not know (STREAM, free-form WITH options).

Both are taken out of the text by overwriting them with as many characters, so every position stays what the user sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from viewlet.errors import SqlError
from viewlet.sql.interval import check_intervals
from viewlet.sql.source import Source

_DUCKDB = Dialect.get_or_raise("duckdb")
Kind = Literal["STREAM", "TABLE", "VIEW"]
PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_STATEMENTS = "CREATE STREAM, CREATE TABLE or CREATE MATERIALIZED VIEW"


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


def parse(source: Source, after: int = 0) -> Iterator[Statement]:
    """The statements of a script but for the first ``after``, one at a time: an error never hides those before it."""
    source.tokens = _tokenize(source, source.text)
    for tokens in islice(_split(source.tokens), after, None):
        source.statement = tokens[0].start
        yield _parse_statement(source, tokens)


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


def _parse_statement(source: Source, tokens: list[Token]) -> Statement:
    kind = _kind(source, tokens)
    place = _name(source, tokens, 3 if kind == "VIEW" else 2)
    text = source.text[tokens[0].start : tokens[-1].end + 1]
    if kind == "VIEW":
        columns, query = _view_head(source, tokens)
        tree = _tree(source, check_intervals(source, query), source.text)
        return Statement(kind, place.text.lower(), place, tree, text, (), columns)
    first = _with_clause(tokens)
    options = tuple(_options(source, tokens[first:]))
    tree = _tree(source, [tokens[0], _as_table(tokens[1]), *tokens[2:first]], source.text)
    if not isinstance(tree, exp.Create):
        hint = f"write CREATE {kind} {place.text} (column type, …)"
        raise source.error(place, f"{kind.lower()} {place.text} could not be read", hint)
    return Statement(kind, place.text.lower(), place, tree, text, options)


def _kind(source: Source, tokens: list[Token]) -> Kind:
    match [t.text.upper() for t in tokens[:3]]:
        case ["CREATE", "STREAM", *_]:
            return "STREAM"
        case ["CREATE", "TABLE", *_]:
            return "TABLE"
        case ["CREATE", "MATERIALIZED", "VIEW"]:
            return "VIEW"
        case ["CREATE", "OR", *_]:
            raise source.unsupported(tokens[1], "CREATE OR REPLACE", "write CREATE: a name is defined once in a script")
        case ["CREATE", "VIEW", *_]:
            raise source.unsupported(tokens[1], "CREATE VIEW", "write CREATE MATERIALIZED VIEW")
        case ["CREATE", what, *_]:
            raise source.unsupported(tokens[1], f"CREATE {what}", f"a statement is {_STATEMENTS}")
        case ["SELECT" | "WITH", *_]:
            hint = "give it a name: CREATE MATERIALIZED VIEW name AS SELECT …"
            raise source.unsupported(tokens[0], "a SELECT outside a view", hint)
        case [word, *_]:
            raise source.unsupported(tokens[0], word, f"a statement is {_STATEMENTS}")
    raise AssertionError("a statement has at least one token")


def _name(source: Source, tokens: list[Token], at: int) -> Token:
    """The name that a CREATE defines."""
    words = [t.text.upper() for t in tokens[at : at + 3]]
    if words == ["IF", "NOT", "EXISTS"]:
        raise source.unsupported(tokens[at], "IF NOT EXISTS", "leave it out: a name is defined once in a script")
    if not words or not _is_name(tokens[at]):
        raise source.error(
            tokens[min(at, len(tokens) - 1)], "a name was expected here", "a name is letters, digits and _"
        )
    if len(words) == 3 and words[1] == ".":
        raise source.unsupported(tokens[at], "a name with a schema", f"write just {tokens[at + 2].text}")
    return tokens[at]


def _is_name(token: Token) -> bool:
    """A word, quoted or not (names are names of views in the trigger program too); many are keywords elsewhere."""
    return token.token_type != TokenType.STRING and bool(PLAIN_NAME.fullmatch(token.text))


def _view_head(source: Source, tokens: list[Token]) -> tuple[tuple[str, ...] | None, list[Token]]:
    """The names in ``VIEW v (a, b) AS …``, and the tokens of the query."""
    hint = f"write CREATE MATERIALIZED VIEW {tokens[3].text} AS SELECT … FROM …"
    end = next((i for i, t in enumerate(tokens) if t.token_type == TokenType.ALIAS), len(tokens))
    head, query = tokens[4:end], tokens[end + 1 :]
    if not query:
        raise source.error(tokens[3], f"view {tokens[3].text.lower()} has no query", hint)
    if not head:
        return None, query
    names = [part[0] for part in _commas(head[1:-1]) if len(part) == 1 and _is_name(part[0])]
    if (head[0].text, head[-1].text) != ("(", ")") or 2 * len(names) + 1 != len(head):
        raise source.error(head[0], "AS was expected here", hint)
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
    return tree


def _syntax_error(source: Source, error: ParseError) -> SqlError:
    """sqlglot gives the place just after the word it stumbled over; we point at its first letter."""
    found = error.errors[0] if error.errors else {}
    word = str(found.get("highlight") or "")
    offset = source.offset(int(found.get("line") or 1), int(found.get("col") or 1)) - len(word)
    line, column = source.line_column(max(offset, 0))
    near = f" near {word!r}" if word.strip() else ""
    why = str(found.get("description") or error).rstrip(".").lower()
    hint = "check the spelling of the keywords, the commas and the parentheses before this place"
    hint += ', and put a name that is a keyword in quotes: "insert"'
    if "<token" in why and PLAIN_NAME.fullmatch(word):
        why, hint = f"a name was expected here, and {word} is a keyword", f'choose another name, or quote it: "{word}"'
    is_internal = "<token" in why or "<class" in why  # sqlglot's own account of what it has read
    message = f"syntax error{near}: {'something is missing' if is_internal else why}"
    return SqlError(message, source=source.text, line=line, column=column, hint=hint)
