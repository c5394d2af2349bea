"""SQL text → calculus → trigger program: the two halves of the compiler, joined."""

from __future__ import annotations

from viewlet.compiler.script import compile_script
from viewlet.compiler.strategy import StrategyName
from viewlet.errors import refusing_depth
from viewlet.program.trigger import Program
from viewlet.schema import Dialect as Dialect
from viewlet.sql.translate import translate


def compile(
    script: str, *, strategy: StrategyName = "optimized", dialect: Dialect = "sql", ordered: bool = True
) -> Program:
    """Compile a script into its trigger program. Nothing runs, and no row is needed.

    ``script`` holds CREATE STREAM, CREATE TABLE and CREATE MATERIALIZED VIEW statements. ``strategy`` says what to keep
    besides the answers. In the dialect ``"paper"`` a SUM of no rows is 0, in ``"sql"`` it is NULL. ``ordered=False``
    answers every inequality by a scan, as the paper does.
    """
    with refusing_depth():
        return compile_script(translate(script, dialect), strategy, ordered=ordered)
