"""Which statements of a script are questions, and which change something."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import tokenize
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

ASKED = ("SELECT", "WITH", "FROM", "VALUES", "(", "PIVOT", "UNPIVOT", "SUMMARIZE", "DESCRIBE")


@dataclass(frozen=True)
class Piece:
    """A SELECT, or other statements that follow each other: they are compiled together.

    ``text`` begins with as many empty lines as there are before it, so an error names the line of the script.
    """

    text: str
    is_question: bool


def pieces(script: str) -> list[Piece]:
    r"""
    >>> [piece.text for piece in pieces("CREATE STREAM r (a BIGINT);\nINSERT INTO r VALUES (1);\nSELECT 2")]
    ['CREATE STREAM r (a BIGINT);\nINSERT INTO r VALUES (1);', '\n\nSELECT 2']
    """
    spans: list[tuple[int, int, bool]] = []
    for start, end, word in _statements(script):
        is_question = word in ASKED
        if spans and not is_question and not spans[-1][2]:
            start = spans.pop()[0]
        spans.append((start, end, is_question))
    return [Piece("\n" * script.count("\n", 0, start) + script[start:end], asked) for start, end, asked in spans]


def _statements(script: str) -> list[tuple[int, int, str]]:
    """Where each begins and ends, and its first word."""
    try:
        tokens = tokenize(script, read="duckdb")
    except TokenError:  # the parser says where, and what
        return [(0, len(script), "?")]
    statements, first = [], None
    for token in tokens:
        first = first or token
        if token.token_type == TokenType.SEMICOLON:
            if first is not token:
                statements.append((first.start, token.end + 1, first.text.upper()))
            first = None
    if first is not None:
        statements.append((first.start, len(script), first.text.upper()))
    return statements


def first_word(text: str) -> str:
    """
    >>> first_word("-- why\\n select 1"), first_word(""), first_word("'")
    ('SELECT', '', '?')
    """
    try:
        tokens = tokenize(text, read="duckdb")
    except TokenError:
        return "?"
    return tokens[0].text.upper() if tokens else ""
