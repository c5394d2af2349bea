"""``check`` says whether views can be maintained, and at which cost, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

from viewlet.compilation import Dialect
from viewlet.compiler.script import compile_script
from viewlet.compiler.strategy import StrategyName
from viewlet.engines.native.emit.program import why_not_native
from viewlet.errors import SqlError, UnsupportedError, refusing_depth
from viewlet.loops.cost_class import program_cost_class, scan_warnings, tick_cost_class
from viewlet.program.graph import part_for
from viewlet.program.trigger import Program, Script
from viewlet.sql.heads import created
from viewlet.sql.source import Source, script_text
from viewlet.sql.translate import nothing, translate

ON_PYTHON = "kept fresh by generated Python, with all views of the script, since there is no machine code for it"


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why a view cannot be maintained, or is slow to maintain. ``str()`` gives it as a sentence.

    ``construct``, ``line`` and ``column`` say what was refused and where it stands. ``hint`` has another way to write
    it.
    """

    message: str
    construct: str = ""
    line: int | None = None
    column: int | None = None
    hint: str = ""

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}: " if self.line is not None else ""
        return f"{where}{self.message}" + (f" (hint: {self.hint})" if self.hint else "")


@dataclass(frozen=True, slots=True)
class ViewCheck:
    """The verdict of :func:`check` on one view.

    ``cost_class`` is the worst that one insert or delete can cost. It is None for a view that cannot be maintained.
    ``tick_class`` is what it costs to move the clock. It is None for a view without ``now()``.
    """

    view: str
    maintainable: bool
    cost_class: str | None
    findings: tuple[Finding, ...]
    tick_class: str | None = None


@dataclass(frozen=True, slots=True)
class _Statement:
    """``view`` is the name it gives a view, empty for a stream or table; ``words`` are its names and keywords."""

    start: int
    end: int
    view: str
    words: frozenset[str]


def check(script: str, *, strategy: StrategyName = "optimized", dialect: Dialect = "sql") -> list[ViewCheck]:
    """Say for each view of a script whether it can be maintained, at which cost, and what stands in the way.

    The views come in the order of the script. A refused view does not hide the others. A wrong CREATE STREAM or CREATE
    TABLE raises :class:`SqlError`.
    """
    script = script_text(script)
    statements = list(_statements(script))
    parsed, refused = _translate_the_rest(script, statements, dialect)
    with refusing_depth():
        program = compile_script(parsed, strategy)
    last = {s.view: s for s in statements if s not in refused}  # CREATE OR REPLACE takes the place of those before
    maintained = {r.name for r in program.results}
    slow = why_not_native(program)
    return [
        _maintainable(program, s.view, slow) if s not in refused else _refused(s, refused)
        for s in statements
        if s in refused or (s.view in maintained and s == last[s.view])
    ]


def _translate_the_rest(
    script: str, statements: list[_Statement], dialect: Dialect
) -> tuple[Script, dict[_Statement, list[SqlError]]]:
    """Blank out each refused view and try again, so that positions stay those of the user's text."""
    refused: dict[_Statement, list[SqlError]] = {}
    text = script
    while True:
        try:
            return translate(text, dialect), refused
        except SqlError as error:
            at = _offset(script, error)
            guilty = next((s for s in statements if s.start <= at <= s.end and s.view and s not in refused), None)
            if guilty is None:
                raise
            refused[guilty] = _all_refusals(text[: guilty.start], text[: guilty.end], dialect) or [error]
            text = text[: guilty.start] + re.sub(r"\S", " ", text[guilty.start : guilty.end]) + text[guilty.end :]


def _all_refusals(before: str, whole: str, dialect: Dialect) -> list[SqlError]:
    """All errors of the last view of a script whose other views are right. None if it is nested too deeply to tell."""
    try:
        return nothing(dialect).followed(before).refusals(whole)
    except RecursionError:
        return []


def _statements(script: str) -> Iterator[_Statement]:
    try:
        tokens = sqlglot.tokenize(script, read="duckdb")
    except sqlglot.TokenError:
        return  # an open quote: the translator says where
    chunk: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            chunk.append(token)
        elif chunk:
            yield _statement(chunk)
            chunk = []
    if chunk:
        yield _statement(chunk)


def _statement(tokens: list[Token]) -> _Statement:
    words = frozenset(t.text.lower() for t in tokens)
    return _Statement(tokens[0].start, tokens[-1].end + 1, _view_name(tokens), words)


def _view_name(tokens: list[Token]) -> str:
    if tokens[0].text.upper() != "CREATE":
        return ""
    try:
        head = created(Source(""), tokens)
    except SqlError:  # which the translator raises, too
        return ""
    return head.name if head.kind == "VIEW" else ""


def _offset(script: str, error: SqlError) -> int:
    if error.line is None or error.column is None:
        return -1
    return sum(len(line) + 1 for line in script.split("\n")[: error.line - 1]) + error.column - 1


def _maintainable(program: Program, view: str, slow: str) -> ViewCheck:
    """``slow``: why the script stays on generated Python, perhaps for another view."""
    part = part_for(program, view)
    findings = [Finding(warning) for warning in scan_warnings(part)]
    if slow:
        findings.append(Finding(f"{ON_PYTHON}: {why_not_native(part) or slow}"))
    return ViewCheck(view, True, program_cost_class(part, kinds="+-"), tuple(findings), tick_cost_class(part))


def _refused(statement: _Statement, refused: dict[_Statement, list[SqlError]]) -> ViewCheck:
    """A view over a refused view is refused for that reason alone: its other errors are not known."""
    errors = refused[statement]
    below = next((s.view for s in refused if s.start < statement.start and s.view in statement.words), None)
    if below is None:
        return ViewCheck(statement.view, False, None, tuple(map(_finding, errors)))
    first = errors[0]
    reason = Finding(f"it reads {below}, which cannot be maintained", line=first.line, column=first.column)
    return ViewCheck(statement.view, False, None, (reason,))


def _finding(error: SqlError) -> Finding:
    construct = error.construct if isinstance(error, UnsupportedError) else ""
    return Finding(error.message, construct, error.line, error.column, error.hint)
