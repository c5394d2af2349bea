"""Functions of texts, which are sequences of code points; their meaning is DuckDB's."""

from __future__ import annotations

from viewlet.algebra.functions.base import Function
from viewlet.algebra.functions.case_mapping import lower, upper
from viewlet.algebra.functions.like import like, like_escape

LONGEST = 2**32 - 1  # bytes of a text, and the farthest place in one that SUBSTRING may name
SPACES = "\u0020\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def octets(text: str) -> int:
    """strlen"""
    return len(text.encode())


def character(code: int) -> str:
    """chr(n)"""
    if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        raise ValueError(f"no character has the number {code}")
    return chr(code)


def contains(text: str, part: str) -> bool:
    return part in text


def position(text: str, part: str) -> int:
    """From 1; 0 where it is not there."""
    return text.find(part) + 1


# -- parts -------------------------------------------------------------------------------------------------------------


def offset(place: int) -> int:
    """A place or a length that SUBSTRING takes."""
    if not -LONGEST - 1 <= place <= LONGEST:
        raise ValueError(f"{place} is beyond every text")
    return place


def substring(text: str, start: int, length: int) -> str:
    """From the character ``start``, from 1; below 0 from the end. A negative length goes to the left."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else -1
    low, high = sorted((first, first + length))
    return text[max(low, 0) : max(high, 0)]


def left(text: str, length: int) -> str:
    return text[:length]


def right(text: str, length: int) -> str:
    return text[max(len(text) - length, 0) :] if length >= 0 else text[-length:]


def split_part(text: str, separator: str, number: int) -> str:
    """Part ``number``, from 1; below 0 from the end; "" where there is none."""
    parts = text.split(separator) if separator else list(text)
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if number and 0 <= place < len(parts) else ""


# -- others ------------------------------------------------------------------------------------------------------------


def replace(text: str, part: str, by: str) -> str:
    return text.replace(part, by) if part else text


def repeat(text: str, times: int) -> str:
    if len(text) * times > LONGEST or octets(text) * times > LONGEST:
        raise ValueError(f"a text of {octets(text) * times} bytes is longer than 4 GB")
    return text * times


def lpad(text: str, length: int, padding: str) -> str:
    return _padding(text, length, padding) + text[: max(length, 0)]


def rpad(text: str, length: int, padding: str) -> str:
    return text[: max(length, 0)] + _padding(text, length, padding)


def _padding(text: str, length: int, padding: str) -> str:
    missing = length - len(text)
    if missing <= 0:
        return ""
    if not padding:
        raise ValueError(f"nothing is no padding for a text that is {missing} characters too short")
    return (padding * (missing // len(padding) + 1))[:missing]


HEADER, CASE_HEADER = "functions_text", "functions_case"
TEXT = (
    Function("starts_with", str.startswith, ("text", "text"), "boolean", HEADER),
    Function("ends_with", str.endswith, ("text", "text"), "boolean", HEADER),
    Function("contains", contains, ("text", "text"), "boolean", HEADER),
    Function("like", like, ("text", "text"), "boolean", HEADER),
    Function("like_escape", like_escape, ("text", "text", "text"), "boolean", HEADER, can_fail=True),
    Function("length", len, ("text",), "integer", HEADER),
    Function("octets", octets, ("text",), "integer", HEADER),
    Function("position", position, ("text", "text"), "integer", HEADER),
    Function("first_code", lambda text: ord(text[0]) if text else -1, ("text",), "integer", HEADER),
    Function("chr", character, ("integer",), "text", HEADER, can_fail=True),
    Function("concat", str.__add__, ("text", "text"), "text", HEADER),
    Function("offset", offset, ("integer",), "integer", HEADER, can_fail=True),
    Function("substring", substring, ("text", "integer", "integer"), "text", HEADER),
    Function("left", left, ("text", "integer"), "text", HEADER),
    Function("right", right, ("text", "integer"), "text", HEADER),
    Function("split_part", split_part, ("text", "text", "integer"), "text", HEADER),
    Function("replace", replace, ("text", "text", "text"), "text", HEADER),
    Function("repeat", repeat, ("text", "integer"), "text", HEADER, can_fail=True),
    Function("lpad", lpad, ("text", "integer", "text"), "text", HEADER, can_fail=True),
    Function("rpad", rpad, ("text", "integer", "text"), "text", HEADER, can_fail=True),
    Function("trim", str.strip, ("text", "text"), "text", HEADER),
    Function("ltrim", str.lstrip, ("text", "text"), "text", HEADER),
    Function("rtrim", str.rstrip, ("text", "text"), "text", HEADER),
    Function("upper", upper, ("text",), "text", CASE_HEADER),
    Function("lower", lower, ("text",), "text", CASE_HEADER),
)
