"""LIKE: % stands for any text, _ for one character."""

from __future__ import annotations

import re
from functools import lru_cache

PERCENT, UNDERSCORE = b"%"[0], b"_"[0]


def like(text: str, pattern: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1 << 8)
def _compiled(pattern: str) -> re.Pattern[str]:
    signs = {"%": ".*", "_": "."}
    return re.compile("".join(signs.get(c) or re.escape(c) for c in pattern), re.DOTALL)


def like_escape(text: str, pattern: str, escape: str) -> bool:
    """The character after ``escape`` stands for itself. A pattern may end with it where nothing gets there."""
    sign = escape.encode()
    if len(sign) > 1:
        raise ValueError(f"{escape!r} is not one character of ASCII, by which LIKE could escape others")
    return _matches(text.encode(), pattern.encode(), sign[0] if sign else 0)


def _matches(text: bytes, pattern: bytes, escape: int) -> bool:
    """Where a part after % does not match, it is tried from the next byte on: only the last % matters."""
    i = j = 0
    star = start = -1  # behind the last %, and where its part was tried
    while True:
        if i < len(text) and j < len(pattern):
            sign = pattern[j]
            if sign == escape:
                if j + 1 == len(pattern):
                    raise ValueError("a pattern of LIKE ends with its escape character")
                if pattern[j + 1] == text[i]:
                    i, j = i + 1, j + 2
                    continue
            elif sign == UNDERSCORE:
                i, j = _next(text, i), j + 1
                continue
            elif sign == PERCENT:
                j = _behind(pattern, j)
                if j == len(pattern):
                    return True
                star, start = j, i
                continue
            elif sign == text[i]:
                i, j = i + 1, j + 1
                continue
        elif i == len(text) and _behind(pattern, j) == len(pattern):
            return True
        start += 1
        if star < 0 or start >= len(text):
            return False
        i, j = start, star


def _next(text: bytes, i: int) -> int:
    """The character after the one at ``i``."""
    i += 1
    while i < len(text) and text[i] & 0xC0 == 0x80:
        i += 1
    return i


def _behind(pattern: bytes, j: int) -> int:
    """Behind the % from ``j`` on."""
    while j < len(pattern) and pattern[j] == PERCENT:
        j += 1
    return j
