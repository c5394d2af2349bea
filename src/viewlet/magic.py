"""``%load_ext viewlet``: scripts and questions in cells of a notebook."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from viewlet.database.asking import Answer
from viewlet.database.directory import connect
from viewlet.database.memory import Database
from viewlet.errors import Error
from viewlet.statements import pieces

DEFAULT = "db"


def load(shell: Any) -> None:
    """Give an IPython shell ``%%viewlet`` and ``%viewlet``."""

    def viewlet(line: str, cell: str | None = None) -> Answer | None:
        """``%%viewlet [NAME]``: run a script on the database NAME, and show what its last SELECT finds.

        Without NAME it is the database ``db``, or the only one that there is. Where there is none, ``db`` is a new one
        in memory. ``%viewlet SELECT …`` is the same in one line.
        """
        name, script = ("", line) if cell is None else (line.strip(), cell)
        try:
            return run(database(shell.user_ns, name), script, _display)
        except Error as error:
            raise error.with_traceback(None) from None  # what is wrong is in the cell, not in here

    shell.register_magic_function(viewlet, "line_cell")


def run(db: Database, script: str, show: Callable[[Answer], object]) -> Answer | None:
    """Statement after statement. ``show`` is given all answers but the last, which is returned."""
    last: Answer | None = None
    for piece in pieces(script):
        if not piece.is_question:
            db.execute(piece.text)
            continue
        if last is not None:
            show(last)
        last = db.sql(piece.text)
    return last


def database(names: MutableMapping[str, Any], name: str) -> Database:
    """By the name of a variable, or the one that is meant without a name."""
    if name:
        if not isinstance(given := names.get(name), Database):
            raise Error(f"{name} is no database: write {name} = viewlet.connect() before, or another name here")
        return given
    if isinstance(default := names.get(DEFAULT), Database):
        return default
    there = {n: value for n, value in names.items() if isinstance(value, Database) and not n.startswith("_")}
    if len({*map(id, there.values())}) > 1:
        raise Error(f"there are several databases: write %%viewlet and one of {', '.join(there)}")
    if there:
        return next(iter(there.values()))
    if DEFAULT in names:
        raise Error(f"{DEFAULT} is no database: write NAME = viewlet.connect() and %%viewlet NAME")
    names[DEFAULT] = connect()
    print(f"{DEFAULT} = viewlet.connect()")
    return names[DEFAULT]  # type: ignore[no-any-return]


def _display(answer: Answer) -> None:
    from IPython.display import display

    display(answer)
