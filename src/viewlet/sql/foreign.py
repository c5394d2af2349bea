"""What scripts of other engines say beside SQL: taken out where it changes no row of a view, refused otherwise."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from viewlet.sql.source import Source

_TAIL = 8  # tokens: EMIT ON WINDOW CLOSE and the like stand at the end


def without_emit(source: Source, query: list[Token]) -> list[Token]:
    """EMIT CHANGES says what a view does here anyhow; results that come once, at the end of a window, do not exist."""
    for at in range(max(len(query) - _TAIL, 1), len(query)):
        if query[at].text.upper() != "EMIT" or query[at].token_type == TokenType.IDENTIFIER:
            continue
        words = " ".join(token.text.upper() for token in query[at:])
        if words == "EMIT CHANGES":
            return query[:at]
        if words.startswith(("EMIT FINAL", "EMIT ON WINDOW CLOSE")):
            hint = "leave it out: a view is fresh after every update, also while a window is open"
            raise source.unsupported(query[at], words, hint)
    return query


def without_watermarks(body: list[Token]) -> list[Token]:
    """No row is late here: ``WATERMARK FOR t AS …`` among the columns of a stream has nothing to say.

    So have NOT ENFORCED behind a PRIMARY KEY, which is enforced, and APPEND ONLY behind the columns.
    """
    kept: list[Token] = []
    depth = at = 0
    while at < len(body):
        word = body[at].text.upper()
        depth += (word == "(") - (word == ")")
        if depth == 1 and _words(body, at, 2) == ["WATERMARK", "FOR"] and kept and kept[-1].text in "(,":
            end = _end_of_part(body, at)
            if kept[-1].text == ",":
                kept.pop()
            at = end + (body[end].text == "," and kept[-1].text == "(")
        elif _words(body, at, 2) in (["NOT", "ENFORCED"], ["APPEND", "ONLY"]):
            at += 2
        else:
            kept.append(body[at])
            at += 1
    return kept


def _end_of_part(body: list[Token], at: int) -> int:
    """The comma or parenthesis that ends what begins at a token."""
    depth = 0
    for i in range(at, len(body)):
        depth += (body[i].text == "(") - (body[i].text == ")")
        if depth < 0 or (depth == 0 and body[i].text == ","):
            return i
    return len(body) - 1


def _words(tokens: list[Token], at: int, count: int) -> list[str]:
    ahead = tokens[at : at + count]
    return [token.text.upper() if token.token_type != TokenType.IDENTIFIER else "" for token in ahead]
