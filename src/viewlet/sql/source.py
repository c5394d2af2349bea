"""Where things stand in the script: positions for every error."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from viewlet.errors import Error, SqlError, UnsupportedError
from viewlet.schema import Type

Place = exp.Expr | Token
MADE = "made"  # the mark of a node that stands for something else in the script
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_WORD = re.compile(r"[A-Za-z_]\w*")
_PLAIN = (exp.Binary, exp.Cast, exp.Case, exp.Array, exp.Struct)  # functions to sqlglot that no name is written for


BETWEEN_SCRIPTS = "\n;\n"


def before_the_next(scripts: str) -> str:
    """What stands before the next script, in the text of all."""
    return scripts + BETWEEN_SCRIPTS if scripts else ""


def script_text(script: object) -> str:
    """A script as given, without the byte order mark that some editors put in front."""
    if not isinstance(script, str):
        raise Error(f"a script is a str, not {type(script).__name__}")
    script = script.removeprefix("\ufeff")
    lone = re.search("[\ud800-\udfff]", script)
    if lone is not None:
        source = Source(re.sub("[\ud800-\udfff]", "\ufffd", script))  # what can be shown
        line, column = source.line_column(lone.start())
        message = f"{lone[0]!a} is half of a character"
        hint = "read the script as what it is encoded in, such as UTF-8"
        raise SqlError(message, source=source.text, line=line, column=column, hint=hint)
    return script


class Source:
    """A script's text, and the errors that point into it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.statement = 0  # where the statement begins that is being read
        self.tokens: Sequence[Token] = ()  # of the whole text
        self.types: dict[str, Type] = {}  # that CREATE TYPE defined
        self.noted: list[SqlError] | None = None  # where all that is refused is wanted, not only the first

    def refuse(self, error: SqlError) -> None:
        """Raise it; where all refusals are wanted, note it, and the caller goes on as if it were not there."""
        if self.noted is None:
            raise error
        self.noted.append(error)

    def error(self, place: Place, message: str, hint: str) -> SqlError:
        line, column = self.line_column(self.start(place))
        return SqlError(message, source=self.text, line=line, column=column, hint=hint)

    def unsupported(self, place: Place, construct: str, hint: str, keyword: str = "") -> UnsupportedError:
        """``keyword``: point at the last such word before ``place`` (sqlglot keeps no position of keywords)."""
        line, column = self.line_column(self.start(place, keyword))
        return UnsupportedError(construct, source=self.text, line=line, column=column, hint=hint)

    def start(self, place: Place, keyword: str = "") -> int:
        if isinstance(place, Token):
            return place.start
        node: exp.Expr | None = place
        while node is not None:
            starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
            if starts:
                return self._last_word(keyword, min(starts)) if keyword else min(starts)
            node = node.parent
        return self.statement

    def _last_word(self, word: str, before: int) -> int:
        places = [m.start() for m in re.finditer(rf"\b{re.escape(word)}\b", self.text[:before], re.IGNORECASE)]
        return places[-1] if places else before

    def called(self, node: exp.Expr) -> Token | None:
        """The name of the function that a node is a call of, as it is written; None where we wrote it ourselves."""
        if node.meta.get(MADE):
            return None
        at = self._token(node) if "start" in node.meta or _has_no_position(node) else None
        if at is None or self.tokens[at + 1 : at + 2] == [] or self.tokens[at + 1].token_type != TokenType.L_PAREN:
            return None
        return self.tokens[at] if _WORD.fullmatch(self.tokens[at].text) else None

    def _token(self, node: exp.Expr) -> int | None:
        """Where the node begins among the tokens; of some functions sqlglot keeps no position but their arguments'."""
        if "start" in node.meta:
            return bisect_left(self.tokens, node.meta["start"], key=lambda t: t.start)
        begins = [at for child in node.iter_expressions() if (at := self._token(child)) is not None]
        if not begins or not _has_no_position(node):
            return min(begins, default=None)
        return self._name_before(min(begins))

    def _name_before(self, at: int) -> int:
        """The word in front of the parenthesis that is open at a token."""
        depth = 0
        for i in range(at - 1, 0, -1):
            kind = self.tokens[i].token_type
            depth += (kind in _CLOSING) - (kind in _OPENING)
            if depth < 0 and _WORD.fullmatch(self.tokens[i - 1].text):
                return i - 1
            depth = max(depth, 0)
        return at

    def has_comma(self, called: Token) -> bool:
        """Whether the call of a function has a list of arguments."""
        at, depth = self.tokens.index(called), 0
        for token in self.tokens[at + 1 :]:
            kind = token.token_type
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth <= 0 or (depth == 1 and kind == TokenType.COMMA):
                return depth == 1
        return False

    def call(self, node: exp.Expr, names: Sequence[tuple[int, int, str]]) -> str:
        """The text of a function's call, with other names at some places, which come in their order."""
        name = self.called(node)
        assert name is not None, "not written as a call"
        at = bisect_left(self.tokens, name.start, key=lambda t: t.start)
        parts, end = list[str](), name.start
        for first, behind, instead in names:
            parts += [self.text[end:first], instead]
            end = behind
        return "".join([*parts, self.text[end : self.tokens[self._closing(at)].end + 1]])

    def has_word(self, word: str) -> bool:
        return any(token.text.upper() == word.upper() for token in self.tokens)

    def span(self, node: exp.Expr) -> str:
        """The text from the first to the last part of a node that has a position."""
        ends = [n.meta["end"] for n in node.walk() if "end" in n.meta]
        return self.text[self.start(node) : max(ends, default=-1) + 1]

    def calls(self, start: int) -> Iterator[str]:
        """The words from ``start`` to the end of the statement, each with what stands in brackets right after it."""
        for i in range(bisect_left(self.tokens, start, key=lambda t: t.start), len(self.tokens)):
            if self.tokens[i].token_type == TokenType.SEMICOLON:
                return
            yield self.text[self.tokens[i].start : self.tokens[self._closing(i)].end + 1]

    def _closing(self, i: int) -> int:
        """The last token of what begins at token ``i``: ``f``, ``f(…)``, ``t[]``."""
        depth, end = 0, i
        for j in range(i + 1, len(self.tokens)):
            kind = self.tokens[j].token_type
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth < 0 or (depth == 0 and kind not in _CLOSING):
                break
            end = j
        return end

    def line_column(self, offset: int) -> tuple[int, int]:
        """Both from 1."""
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def offset(self, line: int, column: int) -> int:
        lines = self.text.split("\n")
        return sum(len(text) + 1 for text in lines[: line - 1]) + column

    def unclosed(self) -> tuple[int, int]:
        """The quote or comment that runs to the end of the text: skip closed ones from the left."""
        closers = {"'": "'", '"': '"', "/*": "*/", "--": "\n"}
        at = 0
        while at < len(self.text):
            opener = next((o for o in closers if self.text.startswith(o, at)), "")
            if not opener:
                at += 1
                continue
            end = self.text.find(closers[opener], at + len(opener))
            if end < 0:
                break
            at = end + len(closers[opener])
        return self.line_column(min(at, max(len(self.text) - 1, 0)))


def _has_no_position(node: exp.Expr) -> bool:
    """A function that is parsed by a rule of its own: STRING_AGG, EXTRACT, TRIM, MIN, …"""
    return isinstance(node, exp.Func) and not isinstance(node, _PLAIN) and "start" not in node.meta


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The nearest known name, as a hint."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else otherwise
