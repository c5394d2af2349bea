"""Functions of texts, which are sequences of code points."""

from __future__ import annotations

from viewlet.algebra.functions.base import Function


def character(code: int) -> str:
    """chr(n)"""
    if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        raise ValueError(f"no character has the number {code}")
    return chr(code)


TEXT = (
    Function("chr", character, ("integer",), "text", "functions_text", can_fail=True),
    Function("starts_with", str.startswith, ("text", "text"), "boolean", "functions_text"),
    Function("length", len, ("text",), "integer", "functions_text"),
)
