"""Functions of texts: their SQL and their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from viewlet.algebra.functions.text import LONGEST, SPACES
from viewlet.algebra.terms import Const, number, op, string
from viewlet.schema import BIGINT, BLOB, BOOLEAN, INTEGER, VARCHAR, Type
from viewlet.sql.expr import Expr, an, constant, loose, strict
from viewlet.sql.expression import expression, translates
from viewlet.sql.functions import arguments, named
from viewlet.sql.scope import Scope
from viewlet.sql.types import convert, string_literal
from viewlet.sql.unsupported import refuse

Wanted = Literal["text", "integer", "bigint", "offset"]
_INTEGERS: dict[Wanted, tuple[Type, ...]] = {
    "integer": (INTEGER,),
    "bigint": (INTEGER, BIGINT),
    "offset": (INTEGER, BIGINT),
}


@dataclass(frozen=True, slots=True)
class Signature:
    """A function of the calculus: what it gives, what DuckDB calls it, and the parts of its node with their types."""

    term: str
    type: Type
    names: tuple[str, ...]
    parts: dict[str, Wanted]


_TWO: dict[str, Wanted] = {"this": "text", "expression": "text"}
_PADDED: dict[str, Wanted] = {"this": "text", "expression": "integer", "fill_pattern": "text"}
_SIGNATURES: dict[type[exp.Expr], Signature] = {
    exp.StartsWith: Signature("starts_with", BOOLEAN, ("starts_with",), _TWO),
    exp.EndsWith: Signature("ends_with", BOOLEAN, ("ends_with",), _TWO),
    exp.Contains: Signature("contains", BOOLEAN, ("contains",), _TWO),
    exp.Length: Signature("length", BIGINT, ("length", "len", "char_length", "character_length"), {"this": "text"}),
    exp.StrPosition: Signature("position", BIGINT, ("strpos", "instr", "position"), {"this": "text", "substr": "text"}),
    exp.Unicode: Signature("first_code", INTEGER, ("unicode",), {"this": "text"}),
    exp.Upper: Signature("upper", VARCHAR, ("upper", "ucase"), {"this": "text"}),
    exp.Lower: Signature("lower", VARCHAR, ("lower", "lcase"), {"this": "text"}),
    exp.Left: Signature("left", VARCHAR, ("left",), {"this": "text", "expression": "offset"}),
    exp.Right: Signature("right", VARCHAR, ("right",), {"this": "text", "expression": "bigint"}),
    exp.Repeat: Signature("repeat", VARCHAR, ("repeat",), {"this": "text", "times": "bigint"}),
    exp.Replace: Signature(
        "replace", VARCHAR, ("replace",), {"this": "text", "expression": "text", "replacement": "text"}
    ),
    exp.SplitPart: Signature(
        "split_part", VARCHAR, ("split_part",), {"this": "text", "delimiter": "text", "part_index": "bigint"}
    ),
}
_CALLS = {
    "strlen": Signature("octets", BIGINT, (), {"this": "text"}),
    "ord": Signature("first_code", INTEGER, (), {"this": "text"}),
    "prefix": Signature("starts_with", BOOLEAN, (), _TWO),
    "suffix": Signature("ends_with", BOOLEAN, (), _TWO),
}
_FLAGS = frozenset({"is_left", "safe", "coalesce"})  # that say how sqlglot reads a call, not what it asks for


# -- arguments ---------------------------------------------------------------------------------------------------------


def argument(node: exp.Expr, scope: Scope, wanted: Wanted) -> Expr:
    """An argument, if DuckDB takes its type here."""
    value = expression(node, scope)
    if wanted == "text":
        return _text(node, scope, value)
    if value.type is None:
        return convert(value, BIGINT)
    if value.type.is_integer and value.type != BIGINT:  # DuckDB casts the others as well
        value = replace(value, type=BIGINT if value.type.kind == "UINTEGER" else INTEGER)
    if value.type not in _INTEGERS[wanted]:
        raise _mismatch(node, scope, value, str(_INTEGERS[wanted][-1]))
    return _offset(value) if wanted == "offset" else value


def _text(node: exp.Expr, scope: Scope, value: Expr) -> Expr:
    if value.type in (VARCHAR, None) or value.type.kind == "ENUM":
        return convert(value, VARCHAR)
    raise _mismatch(node, scope, value, "VARCHAR")


def _mismatch(node: exp.Expr, scope: Scope, value: Expr, wanted: str) -> Exception:
    source, said = scope.session.source, f"{an(value)} where {'an' if wanted == 'INTEGER' else 'a'} {wanted} belongs"
    if value.is_string_literal:  # which DuckDB reads as a number
        return source.unsupported(node, said, "write the number without quotes")
    if value.type is not None and value.type.is_nested:  # DuckDB's function of that name may take a list
        return source.unsupported(node, said, "write a function of lists, of the columns of one row")
    return source.error(node, said, f"write CAST(x AS {wanted})")


def _offset(place: Expr) -> Expr:
    """A place in a text: one beyond every text is refused when a row has it."""
    if place.type == INTEGER or (isinstance(place.term, Const) and _is_near(place.term.value)):
        return place
    return strict("offset", BIGINT, place)


def _is_near(value: object) -> bool:
    return isinstance(value, int) and -LONGEST - 1 <= value <= LONGEST


def _check(node: exp.Expr, scope: Scope, signature: Signature) -> None:
    """What DuckDB does not call so, or what is asked for beyond the signature, is refused."""
    source, more = scope.session.source, {k for k, v in node.args.items() if v and k not in _FLAGS}
    called = source.called(node)
    if more - signature.parts.keys() or (called and called.text.lower() not in signature.names):
        raise refuse(source, node)
    if called and called.text.lower() == "position" and source.has_comma(called):
        raise source.error(called, "POSITION takes no list of arguments", "write position(part IN text)")


@translates(*_SIGNATURES)
def _function(node: exp.Expr, scope: Scope) -> Expr:
    signature = _SIGNATURES[type(node)]
    _check(node, scope, signature)
    given = [node.args.get(part) for part in signature.parts]
    if None in given:
        raise refuse(scope.session.source, node)
    return _applied(signature, [n for n in given if n is not None], scope)


@named(*_CALLS)
def _named_function(node: exp.Expr, scope: Scope) -> Expr:
    signature = _CALLS[node.name.lower()]
    return _applied(signature, arguments(node, scope, len(signature.parts)), scope)


def _applied(signature: Signature, given: Sequence[exp.Expr], scope: Scope) -> Expr:
    wanted = zip(given, signature.parts.values(), strict=True)
    return strict(signature.term, signature.type, *(argument(n, scope, kind) for n, kind in wanted))


# -- those with a shape of their own -----------------------------------------------------------------------------------


@translates(exp.Ascii)
def _ascii(node: exp.Expr, scope: Scope) -> Expr:
    """0 for the empty text, where unicode gives -1."""
    code = strict("first_code", INTEGER, argument(node.this, scope, "text"))
    term = op("case", op("=", code.term, number(-1)), number(0), code.term)
    return loose(term, INTEGER, code.nullable, [code])


@translates(exp.Chr)
def _chr(node: exp.Expr, scope: Scope) -> Expr:
    called = scope.session.source.called(node)
    if len(node.expressions) != 1 or node.args.get("charset") or (called and called.text.lower() != "chr"):
        raise refuse(scope.session.source, node)
    return strict("chr", VARCHAR, argument(node.expressions[0], scope, "integer"))


@translates(exp.Substring)
def _substring(node: exp.Expr, scope: Scope) -> Expr:
    """substring(x, start, length), and substring(x FROM start FOR length)."""
    names, parts = ("substring", "substr"), ("this", "start", "length")
    _check(node, scope, Signature("substring", VARCHAR, names, dict.fromkeys(parts, "text")))
    start, length = node.args.get("start"), node.args.get("length")
    if start is None:
        raise refuse(scope.session.source, node)
    return strict(
        "substring",
        VARCHAR,
        argument(node.this, scope, "text"),
        argument(start, scope, "offset"),
        constant(number(LONGEST), BIGINT) if length is None else argument(length, scope, "offset"),
    )


@translates(exp.Pad)
def _pad(node: exp.Expr, scope: Scope) -> Expr:
    name = "lpad" if node.args.get("is_left") else "rpad"
    signature = Signature(name, VARCHAR, (name,), _PADDED)
    _check(node, scope, signature)
    if node.args.get("fill_pattern") is None:
        raise refuse(scope.session.source, node)
    return _applied(signature, [node.args[part] for part in _PADDED], scope)


_TRIMS = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


@translates(exp.Trim)
def _trim(node: exp.Expr, scope: Scope) -> Expr:
    """Spaces of every kind, or the given characters."""
    if node.args.get("collation"):
        raise refuse(scope.session.source, node)
    unwanted = string_literal(SPACES) if node.expression is None else argument(node.expression, scope, "text")
    return strict(_TRIMS[node.args.get("position") or ""], VARCHAR, argument(node.this, scope, "text"), unwanted)


# -- texts made of others ----------------------------------------------------------------------------------------------


def shown(node: exp.Expr, scope: Scope) -> Expr:
    """An operand of ||, which is cast to VARCHAR if it is none."""
    operand = expression(node, scope)
    if operand.type in (VARCHAR, None):
        return convert(operand, VARCHAR)
    return expression(exp.Cast(this=node.copy(), to=exp.DataType.build("VARCHAR")), scope)


@translates(exp.DPipe)
def _pipe(node: exp.Expr, scope: Scope) -> Expr:
    if all(expression(side, scope).type == BLOB for side in (node.this, node.expression)):
        raise scope.session.source.unsupported(node, "|| of BLOBs", "join the bytes of one stream or table")
    return strict("concat", VARCHAR, shown(node.this, scope), shown(node.expression, scope))


@translates(exp.Concat)
def _concat(node: exp.Expr, scope: Scope) -> Expr:
    """NULL counts as nothing."""
    joined = string_literal("")
    for part in node.expressions:
        joined = _joined(joined, _known(shown(part, scope)))
    return joined


@translates(exp.ConcatWs)
def _concat_ws(node: exp.Expr, scope: Scope) -> Expr:
    """A separator before each part that is not NULL, and then all behind the first one."""
    between, parts = argument(node.expressions[0], scope, "text"), node.expressions[1:]
    if not parts:
        raise refuse(scope.session.source, node)
    joined = string_literal("")
    for part in parts:
        joined = _joined(joined, _known(strict("concat", VARCHAR, between, shown(part, scope))))
    first = strict("+", BIGINT, strict("length", BIGINT, between), constant(number(1), INTEGER))
    return strict("substring", VARCHAR, joined, first, constant(number(LONGEST), BIGINT))


def _joined(left: Expr, right: Expr) -> Expr:
    return right if left.term == string("") else strict("concat", VARCHAR, left, right)


def _known(part: Expr) -> Expr:
    """COALESCE(x, '')"""
    if not part.nullable:
        return part
    return loose(op("coalesce", part.term, string("")), VARCHAR, False, [part])
