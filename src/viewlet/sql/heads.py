"""The first words of a statement: what it does, to which name, and under which conditions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from viewlet.sql.source import Source

Kind = Literal["STREAM", "TABLE", "VIEW", "TYPE"]
Verb = Literal["CREATE", "DROP", "ALTER", "CHANGE"]
KINDS: dict[str, Kind] = {"STREAM": "STREAM", "TABLE": "TABLE", "VIEW": "VIEW", "TYPE": "TYPE"}
PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_VERBS: dict[str, Verb] = {"CREATE": "CREATE", "DROP": "DROP", "ALTER": "ALTER"}
CHANGES = ("INSERT", "UPDATE", "DELETE", "TRUNCATE")  # the first words of statements that change rows
_SCHEMA = "main"
_STATEMENTS = (
    "CREATE STREAM, CREATE TABLE, CREATE [MATERIALIZED] VIEW, CREATE TYPE, DROP, ALTER … RENAME, INSERT, UPDATE, "
    "DELETE or TRUNCATE"
)
_INSTEAD = {"COPY": "read the file in Python, and hand its rows to db.insert(name, rows)"}
"""Of statements that people write, what to do instead."""
_A_NAME = 'a name is letters, digits and _, or anything in quotes: "a name"'
_OTHER_OBJECTS = {
    "SOURCE": "write CREATE STREAM name (column type, …) WITH (connector = '…')",
    "SINK": "listen to a view: db.view(…).subscribe(callback)",
    "INDEX": "leave it out: viewlet keeps the maps that its views need",
    "UNIQUE": "declare PRIMARY KEY or UNIQUE where the stream or table is created",
    "SCHEMA": "leave it out: there is one schema, main",
    "TEMP": "leave TEMP out: everything is in memory",
    "TEMPORARY": "leave TEMPORARY out: everything is in memory",
    "MACRO": "write the expression where it is used",
    "FUNCTION": "write the expression where it is used",
    "SEQUENCE": "number the rows before the insert",
}


@dataclass(frozen=True)
class Head:
    """``place`` is the name, and the token at ``end`` the first one behind it.

    ``optional``: IF NOT EXISTS of a CREATE, IF EXISTS of the others. ``replaces``: CREATE OR REPLACE.
    """

    kind: Kind
    place: Token
    end: int
    materialized: bool = False
    replaces: bool = False
    optional: bool = False

    @property
    def name(self) -> str:
        return self.place.text.lower()


def verb(source: Source, tokens: list[Token]) -> Verb:
    """What a statement does; others than the known ones are refused."""
    word = tokens[0].text.upper()
    if word in _VERBS:
        return _VERBS[word]
    if changes_rows(tokens):
        return "CHANGE"
    if word in ("SELECT", "WITH", "FROM", "VALUES"):
        hint = "ask it once with db.sql(…), or keep it fresh: CREATE MATERIALIZED VIEW name AS SELECT …"
        raise source.unsupported(tokens[0], "a SELECT outside a view", hint)
    raise source.unsupported(tokens[0], word, _INSTEAD.get(word, f"a statement is {_STATEMENTS}"))


def changes_rows(tokens: list[Token]) -> bool:
    """INSERT and its like, also after WITH queries, which are in parentheses."""
    depth = 0
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.text.upper() in (*CHANGES, "SELECT"):
            return token.text.upper() in CHANGES
        if token is tokens[0] and token.text.upper() != "WITH":
            return False
    return False


def created(source: Source, tokens: list[Token]) -> Head:
    """CREATE [OR REPLACE] {STREAM | TABLE | [MATERIALIZED] VIEW} [IF NOT EXISTS] name."""
    replaces = _words(tokens, 1, 2) == ["OR", "REPLACE"]
    at = 3 if replaces else 1
    materialized = _words(tokens, at, 1) == ["MATERIALIZED"]
    kind, at = _kind(source, tokens, at + materialized, "CREATE")
    if materialized and kind != "VIEW":
        raise source.unsupported(tokens[at - 1], f"CREATE MATERIALIZED {kind}", f"write CREATE {kind}")
    optional = _words(tokens, at, 3) == ["IF", "NOT", "EXISTS"]
    place, end = name_at(source, tokens, at + 3 * optional)
    return Head(kind, place, end, materialized, replaces, optional)


def dropped(source: Source, tokens: list[Token]) -> Head:
    """DROP {STREAM | TABLE | [MATERIALIZED] VIEW} [IF EXISTS] name [RESTRICT]."""
    head = _existing(source, tokens, "DROP")
    rest = _words(tokens, head.end, 2)
    if rest == ["CASCADE"]:
        raise source.unsupported(tokens[head.end], "CASCADE", "drop the views that read it first")
    if rest not in ([], ["RESTRICT"]):
        _refuse_rest(source, tokens[head.end], f"write DROP {head.kind} {head.place.text}, one name at a time")
    return head


def altered(source: Source, tokens: list[Token]) -> Head:
    """ALTER {STREAM | TABLE | [MATERIALIZED] VIEW} [IF EXISTS] name."""
    return _existing(source, tokens, "ALTER")


def _existing(source: Source, tokens: list[Token], verb: str) -> Head:
    materialized = _words(tokens, 1, 1) == ["MATERIALIZED"]
    kind, at = _kind(source, tokens, 1 + materialized, verb)
    optional = _words(tokens, at, 2) == ["IF", "EXISTS"]
    place, end = name_at(source, tokens, at + 2 * optional)
    return Head(kind, place, end, materialized, optional=optional)


def _kind(source: Source, tokens: list[Token], at: int, verb: str) -> tuple[Kind, int]:
    word = "".join(_words(tokens, at, 1))
    if word not in KINDS:
        place = tokens[min(at, len(tokens) - 1)]
        hint = _OTHER_OBJECTS.get(word, f"a statement is {_STATEMENTS}")
        raise source.unsupported(place, f"{verb} {word}".strip(), hint)
    return KINDS[word], at + 1


def renaming(source: Source, tokens: list[Token], head: Head) -> tuple[str, str]:
    """The column (or nothing) and its new name, of ALTER … RENAME [[COLUMN] a] TO b."""
    at = head.end
    if _words(tokens, at, 1) != ["RENAME"]:
        word = "".join(_words(tokens, at, 1))
        hint = "ALTER only renames; for other columns create another table, and move the rows"
        raise source.unsupported(tokens[min(at, len(tokens) - 1)], f"ALTER … {word}".strip(), hint)
    at += 1
    column = ""
    if _words(tokens, at, 1) != ["TO"]:
        at += _words(tokens, at, 1) == ["COLUMN"] and _words(tokens, at + 1, 1) != ["TO"]
        column, at = _plain_name_at(source, tokens, at), at + 1
    if _words(tokens, at, 1) != ["TO"]:
        _refuse_rest(source, tokens[min(at, len(tokens) - 1)], "write ALTER TABLE a RENAME TO b")
    new = _plain_name_at(source, tokens, at + 1)
    if len(tokens) > at + 2:
        _refuse_rest(source, tokens[at + 2], "end the statement here: the new name has no schema")
    return column, new


def _refuse_rest(source: Source, token: Token, hint: str) -> NoReturn:
    raise source.error(token, f"syntax error near {token.text!r}", hint)


def _plain_name_at(source: Source, tokens: list[Token], at: int) -> str:
    place = tokens[min(at, len(tokens) - 1)]
    if at >= len(tokens) or not is_name(place):
        raise source.error(place, "a name was expected here", _A_NAME)
    return place.text.lower()


def name_at(source: Source, tokens: list[Token], at: int) -> tuple[Token, int]:
    """The name that begins at a token, and where it ends; the schema ``main`` in front of it says nothing new."""
    _plain_name_at(source, tokens, at)
    if at + 2 < len(tokens) and tokens[at + 1].text == "." and tokens[at].text.lower() == _SCHEMA:
        at += 2
        _plain_name_at(source, tokens, at)
    if at + 2 < len(tokens) and tokens[at + 1].text == ".":
        raise source.unsupported(tokens[at], "a name with a schema", f"write just {tokens[at + 2].text}")
    return tokens[at], at + 1


def is_name(token: Token) -> bool:
    """A word, which may be a keyword elsewhere, or anything in double quotes."""
    if token.token_type == TokenType.STRING:
        return False
    return bool(PLAIN_NAME.fullmatch(token.text)) or (token.token_type == TokenType.IDENTIFIER and token.text != "")


def _words(tokens: list[Token], at: int, count: int) -> list[str]:
    """Keywords: in quotes they are names."""
    ahead = tokens[at : at + count]
    return [token.text.upper() if token.token_type != TokenType.IDENTIFIER else "" for token in ahead]
