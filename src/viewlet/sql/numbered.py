"""The number by which QUALIFY chooses rows as a column: SELECT *, row_number() OVER (…) AS n … QUALIFY n <= k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewlet.sql.expr import Expr
from viewlet.sql.select_list import OutputColumn

MOST_NUMBERS = 64  # each is a case of its own in the program


@dataclass(frozen=True)
class Number:
    """A SELECT item that shows the number of its row; so many items stand ``behind`` it."""

    name: str
    behind: int

    def among(self, columns: Sequence[OutputColumn], expr: Expr) -> tuple[OutputColumn, ...]:
        """The other columns with it at its place."""
        place = len(columns) - self.behind
        return (*columns[:place], OutputColumn(self.name, expr), *columns[place:])


def split_number(tree: exp.Select, condition: exp.Expr) -> tuple[exp.Select, exp.Expr, Number | None]:
    """A query without the item that shows the window of its QUALIFY, the condition on that window, and the item."""
    named = [e for e in tree.expressions if isinstance(e, exp.Alias) and isinstance(e.this, exp.Window)]
    windows = {e.alias.lower(): e for e in named}
    node = condition.this.unnest()
    asked = node.this.unnest() if isinstance(node, (exp.Between, exp.Binary)) else None
    if isinstance(asked, exp.Column) and not asked.table and asked.name.lower() in windows:
        condition = condition.copy()
        condition.this.unnest().set("this", windows[asked.name.lower()].this.copy())
        asked = windows[asked.name.lower()].this
    items = [e for e in windows.values() if e.this == asked]
    if len(items) != 1 or len(tree.expressions) == 1:
        return tree, condition, None
    place = tree.expressions.index(items[0])
    if any(_is_star(e) for e in tree.expressions[place + 1 :]):
        return tree, condition, None
    bare = tree.copy()
    bare.set("expressions", [e for i, e in enumerate(bare.expressions) if i != place])
    return bare, condition, Number(items[0].alias.lower(), len(bare.expressions) - place)


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
