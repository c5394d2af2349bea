"""SQL text → calculus → trigger program: the two halves of the compiler, joined."""

from __future__ import annotations

from typing import Literal

from viewlet.compiler.script import compile_script
from viewlet.errors import refusing_depth
from viewlet.program.trigger import Program
from viewlet.sql.translate import translate

Dialect = Literal["sql", "paper"]


def compile(script: str, *, strategy: str = "optimized", dialect: Dialect = "sql", ordered: bool = True) -> Program:
    """The trigger program of a script of CREATE STREAM, CREATE TABLE and CREATE MATERIALIZED VIEW statements.

    Not ``ordered``: as in the paper, where an inequality is a scan.
    """
    with refusing_depth():
        return compile_script(translate(script, dialect), strategy, ordered=ordered)
