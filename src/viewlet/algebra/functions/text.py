"""Functions of texts, which are sequences of code points."""

from __future__ import annotations

from viewlet.algebra.functions.base import Function

TEXT = (
    Function("starts_with", str.startswith, ("text", "text"), "boolean", "functions_text"),
    Function("length", len, ("text",), "integer", "functions_text"),
)
