"""The calculus as text, and back: ``parse(q.text) == q`` and ``parse(pretty(q)) == q``.

::

    query  ::= factor ("*" factor)*
    factor ::= name "(" names ")"              R(a, b), and ΔR(a, b)
             | name "[" names "]" "[" names "]"   view[x][a, b]
             | "Sum" "[" names "]" "(" query ")"
             | ("Exists" | "M") "(" query ")"
             | "(" name ":=" query ")"
             | "(" query ("+" query)* ")"
             | "[" term comparison term "]"
             | "{" term "}" | constant | name
    term   ::= "(" term (infix term)+ ")" | operator "(" terms ")" | constant | name

Nodes print their names as they are, so ``Exists``, ``M`` and ``ΔR`` are no names for relations, nor ``TRUE``, ``FALSE``
and ``NULL`` for variables. Parsing goes through the constructors: what is not in normal form is brought into it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, TypeVar

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.functions.calendar import EPOCH, MICROSECONDS_PER_DAY
from viewlet.algebra.query import (
    PLAIN,
    Bind,
    Compare,
    Delta,
    Exists,
    Join,
    Materialize,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    View,
    join,
    sum_,
    union,
)
from viewlet.algebra.terms import (
    COMPARISONS,
    FALSE,
    INFIX,
    NULL,
    OPERATORS,
    TRUE,
    Const,
    Term,
    Var,
    date,
    number,
    op,
    string,
    timestamp,
)
from viewlet.errors import Error

T = TypeVar("T")

NAME = PLAIN.pattern
TOKEN = re.compile(
    rf"""(?P<space>\s+)
       | (?P<string>'(?:[^']|'')*')
       | (?P<quoted>"(?:[^"]|"")*")
       | (?P<number>-?[0-9]+(?:\.[0-9]+)?)
       | (?P<name>{NAME})
       | (?P<symbol>:=|\+=|<>|<=|>=|[-+*/=<>()\[\]{{}},;?!])""",
    re.VERBOSE,
)
CONSTANTS = {"TRUE": TRUE, "FALSE": FALSE, "NULL": NULL}


class ParseError(Error):
    """Text that is not what was expected at ``position``, shown under a caret."""

    def __init__(self, message: str, source: str, position: int) -> None:
        self.message = message
        self.position = position
        before = source[:position].split("\n")
        self.line, self.column = len(before), len(before[-1]) + 1
        line = source.split("\n")[self.line - 1]
        super().__init__(f"line {self.line}, column {self.column}: {message}\n  {line}\n  {' ' * (self.column - 1)}^")


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    position: int


def tokens(source: str) -> list[Token]:
    """Ends in a token of kind ``end``, so that looking ahead never falls off."""
    seen, position = list[Token](), 0
    while position < len(source):
        match = TOKEN.match(source, position)
        if match is None:
            raise ParseError(f"unexpected {source[position]!r}", source, position)
        if match.lastgroup and match.lastgroup != "space":
            seen.append(Token(match.lastgroup, match.group(), position))
        position = match.end()
    return [*seen, Token("end", "", len(source))]


class Reader:
    """Recursive descent; a method per line of the grammar. Bigger languages (the trigger program) read with it too."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokens(source)
        self.at = 0

    # -- tokens --------------------------------------------------------------------------------------------------------

    def peek(self, ahead: int = 0) -> str:
        """The text of a coming token; a string is never mistaken for a symbol, its quotes are part of it."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)].text

    def kind(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)].kind

    def next(self) -> str:
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        return token.text

    def label(self) -> str:
        """A name that SQL chose."""
        return self.next()[1:-1].replace('""', '"') if self.kind() == "quoted" else self.name()

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        raise ParseError(message, self.source, self.tokens[self.at if at is None else at].position)

    def take(self, *texts: str) -> bool:
        """Whether these tokens come next; if so they are read."""
        if any(self.peek(i) != text for i, text in enumerate(texts)):
            return False
        self.at += len(texts)
        return True

    def expect(self, *texts: str) -> None:
        for text in texts:
            if not self.take(text):
                self.fail(f"expected {text!r}, found {self.peek() or 'the end'!r}")

    def of_kind(self, kind: str, what: str) -> str:
        if self.kind() != kind:
            self.fail(f"expected {what}, found {self.peek() or 'the end'!r}")
        return self.next()

    def name(self) -> str:
        return self.of_kind("name", "a name")

    def string(self) -> str:
        return self.of_kind("string", "a string")[1:-1].replace("''", "'")

    def listed(self, item: Callable[[], T], opening: str, closing: str) -> tuple[T, ...]:
        """``opening item, item, … closing``"""
        self.expect(opening)
        items = list[T]()
        if not self.take(closing):
            items.append(item())
            while self.take(","):
                items.append(item())
            self.expect(closing)
        return tuple(items)

    def end(self) -> None:
        if self.kind() != "end":
            self.fail(f"expected the end, found {self.peek()!r}")

    # -- terms ---------------------------------------------------------------------------------------------------------

    def term(self) -> Term:
        start = self.at
        if self.take("("):
            return self.infix(start)
        if self.is_constant():
            return self.constant()
        name = self.name()
        if self.peek() != "(":
            return Var(name)
        if name not in OPERATORS - INFIX:
            self.fail(f"no such operator: {name}", start)
        args = self.listed(self.term, "(", ")")
        if not _takes(name, len(args)):
            self.fail(f"{name} does not take {len(args)} terms", start)
        return self.apply(start, name, args)

    def infix(self, start: int) -> Term:
        """``a op b)``; only ``and`` and ``or`` take more than two, and one pair of brackets has one operator."""
        args = [self.term()]
        name = self.peek()
        if name not in INFIX:
            self.fail(f"expected an operator, found {name or 'the end'!r}")
        self.next()
        args.append(self.term())
        while name in ("and", "or") and self.take(name):
            args.append(self.term())
        self.expect(")")
        return self.apply(start, name, tuple(args))

    def apply(self, start: int, name: str, args: tuple[Term, ...]) -> Term:
        try:
            return op(name, *args)
        except (TypeError, ValueError, ArithmeticError) as error:
            self.fail(f"cannot apply {name} to {', '.join(a.text for a in args)}: {error}", start)

    def is_constant(self) -> bool:
        if self.kind() in ("number", "string"):
            return True
        return self.peek() in CONSTANTS or (self.peek() in ("DATE", "TIMESTAMP") and self.kind(1) == "string")

    def constant(self) -> Const:
        start = self.at
        match self.kind(), self.peek():
            case "string", _:
                return string(self.string())
            case "number", _:
                return number(Fraction(self.next()))
            case _, "DATE" | "TIMESTAMP":
                kind = self.next()
                try:
                    moment = dt.datetime.fromisoformat(self.string())
                except ValueError as error:
                    self.fail(str(error), start)
                return _moment(kind, moment)
        return CONSTANTS[self.next()]

    # -- queries -------------------------------------------------------------------------------------------------------

    def query(self) -> Query:
        parts = [self.factor()]
        while self.take("*"):
            parts.append(self.factor())
        return parts[0] if len(parts) == 1 else join(*parts)  # join(DATE …) alone would make a number of it

    def factor(self) -> Query:
        start = self.at
        if self.is_constant():
            return Value(self.constant())
        match self.peek():
            case "(":
                return self.bracketed()
            case "[":
                return self.compare()
            case "{":
                self.next()
                term = self.term()
                self.expect("}")
                return Value(term)
        if self.kind() == "quoted":
            return Rel(self.label(), self.listed(self.name, "(", ")"))
        name = self.name()
        if name == "Δ" and self.kind() == "quoted":
            return Delta(self.label(), self.listed(self.name, "(", ")"))
        match self.peek():
            case "(":
                return self.applied(name)
            case "[":
                return self.indexed(name, start)
        return Value(Var(name))

    def bracketed(self) -> Query:
        """A binding, a quotient such as (1 / 3), or a union."""
        if self.kind(1) == "number" and self.peek(2) == "/":
            return Value(self.term())
        self.expect("(")
        if self.kind() == "name" and self.peek(1) == ":=":
            var = self.name()
            self.expect(":=")
            bound = self.query()
            self.expect(")")
            return Bind(var, bound)
        parts = [self.query()]
        while self.take("+"):
            parts.append(self.query())
        self.expect(")")
        return parts[0] if len(parts) == 1 else union(*parts)

    def compare(self) -> Query:
        self.expect("[")
        left = self.term()
        if self.peek() not in COMPARISONS:
            self.fail(f"expected a comparison, found {self.peek() or 'the end'!r}")
        comparison = self.next()
        right = self.term()
        self.expect("]")
        return Compare(comparison, left, right)

    def applied(self, name: str) -> Query:
        if name in ("Exists", "M"):
            self.expect("(")
            inner = self.query()
            self.expect(")")
            return Exists(inner) if name == "Exists" else Materialize(inner)
        columns = self.listed(self.name, "(", ")")
        return Delta(name[1:], columns) if name.startswith("Δ") else Rel(name, columns)

    def indexed(self, name: str, start: int) -> Query:
        names = self.listed(self.name, "[", "]")
        if name != "Sum" or self.peek() == "[":
            return View(name, names, self.listed(self.name, "[", "]"))
        self.expect("(")
        inner = self.query()
        self.expect(")")
        try:
            return sum_(names, inner)
        except ValueError as error:
            self.fail(str(error), start)


def _takes(name: str, arguments: int) -> bool:
    match name:
        case "coalesce":
            return arguments > 0
        case "in":
            return arguments > 1
        case "case":
            return arguments % 2 == 1
    return FUNCTIONS[name].fits(arguments) if name in FUNCTIONS else arguments == 1


def _moment(kind: str, moment: dt.datetime) -> Const:
    days = (moment.date() - EPOCH).days
    if kind == "DATE":
        return date(days)
    rest = moment - dt.datetime.combine(moment.date(), dt.time())
    return timestamp(days * MICROSECONDS_PER_DAY + rest // dt.timedelta(microseconds=1))


def parse(text: str) -> Query:
    """The query that prints as ``text``."""
    reader = Reader(text)
    query = reader.query()
    reader.end()
    return query


def parse_term(text: str) -> Term:
    """The term that prints as ``text``."""
    reader = Reader(text)
    term = reader.term()
    reader.end()
    return term


# -- over several lines ------------------------------------------------------------------------------------------------


def pretty(q: Query, width: int = 100, indent: int = 0) -> str:
    """``q.text``, broken where it does not fit; the first line is thought to start at column ``indent``."""
    if indent + len(q.text) <= width:
        return q.text
    inside = "\n" + " " * (indent + 2)
    outside = "\n" + " " * indent
    match q:
        case Join(parts):
            return (outside + "* ").join(pretty(part, width, indent + 2 * (i > 0)) for i, part in enumerate(parts))
        case Union(parts):
            broken = (inside + "+ ").join(pretty(part, width, indent + 4) for part in parts)
            return f"({inside}  {broken}{outside})"
        case Bind(var, inner):
            opening, closing = f"({var} :=", ")"
        case Sum(group, inner):
            opening, closing = f"Sum[{', '.join(sorted(group))}](", ")"
        case Exists(inner):
            opening, closing = "Exists(", ")"
        case Materialize(inner):
            opening, closing = "M(", ")"
        case _:
            return q.text
    return f"{opening}{inside}{pretty(inner, width, indent + 2)}{outside}{closing}"
