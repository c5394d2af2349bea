"""``viewlet shell``: a prompt for a database, in memory or in a directory."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text
from sqlglot import tokenize
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from viewlet.cli.options import errors_as_messages
from viewlet.cli.pane import Pane
from viewlet.cli.shelves import arranged
from viewlet.database.directory import connect
from viewlet.database.handles import missing
from viewlet.database.looking import window
from viewlet.database.memory import Database
from viewlet.errors import Error
from viewlet.program.trigger import ResultColumn
from viewlet.schema import Column
from viewlet.statements import ASKED, first_word

EXAMPLES = """\
[bold]Examples[/bold]

viewlet shell [dim]# in memory, forgotten at the end[/dim]

viewlet shell data/ [dim]# a database that lasts; another process may not have it open[/dim]

viewlet shell data/ < report.sql [dim]# without a prompt; the first mistake ends it, with code 2 or 3[/dim]
"""
PROMPT, MORE = "viewlet> ", "    ...> "
SHOWN_ROWS = 40
HISTORY = 2000  # lines
WORDS = (
    "CREATE STREAM", "CREATE TABLE", "CREATE MATERIALIZED VIEW", "CREATE OR REPLACE", "DROP", "ALTER",
    "INSERT INTO", "UPDATE", "DELETE FROM", "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT",
)  # fmt: skip
HELP = """\
A statement ends with ; and may have several lines. SELECT is answered once, CREATE MATERIALIZED VIEW stays fresh.

\\d            what there is                \\explain VIEW        how it is kept fresh
\\d NAME       its columns                  \\watch VIEW [SECONDS] its rows, until Ctrl-C
\\timing       how long each takes, or not  \\q                   the end
"""
DirectoryArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[DIRECTORY]", help="Of a database that lasts. Without it the database is in memory."),
]


def shell_command(directory: DirectoryArgument = None) -> None:
    """Define streams and views, feed them and ask them, statement by statement."""
    is_terminal = sys.stdin.isatty()
    with errors_as_messages(), connect(None if directory is None else str(directory)) as database:
        shell = Shell(database, Console(highlight=False))
        if is_terminal:
            shell.converse(typed(shell.names))
        else:
            shell.follow(sys.stdin)


class Shell:
    """Takes lines, and answers once they make up a statement or a command."""

    def __init__(self, database: Database, console: Console) -> None:
        self._database, self._console = database, console
        self._is_timed = False
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "\\d": self._describe,
            "\\timing": self._time,
            "\\explain": self._explain,
            "\\watch": self._watch,
            "\\?": lambda given: self._console.print(HELP, markup=False),
        }

    def follow(self, lines: Iterable[str]) -> None:
        """Without a prompt: the first error ends it."""
        for text in statements(lines):
            if text == "\\q":
                return
            self._take(text)

    def converse(self, typed: Iterable[str]) -> None:
        """With one: an error is told, and the next statement may be right."""
        self._console.print("[dim]\\? for help, \\q to leave[/dim]")
        for text in typed:
            if text == "\\q":
                return
            try:
                self._take(text)
            except Error as error:
                self._console.print(Text(str(error), style="red"))
            except KeyboardInterrupt:
                self._console.print()

    def names(self) -> list[str]:
        """Streams, tables, views and their columns, for completion."""
        program = self._database.program
        tables = [(r.name, [c.name for c in r.given]) for r in program.relations]
        views = [(r.name, [c.name for c in r.columns]) for r in program.results]
        return sorted({word for name, columns in (*tables, *views) for word in (name, *columns)})

    def _take(self, text: str) -> None:
        start = time.perf_counter()
        if text.startswith("\\"):
            command, *given = text.split()
            self._commands.get(command, self._unknown)([*given] if command in self._commands else [command])
        elif first_word(text) in ASKED:
            answer = self._database.sql(text)
            self._console.print(_table(answer.columns, answer.rows()))
        else:
            self._database.execute(text)
        if self._is_timed:
            self._console.print(f"[dim]{1000 * (time.perf_counter() - start):.1f} ms[/dim]")

    # -- commands ------------------------------------------------------------------------------------------------------

    def _unknown(self, given: list[str]) -> None:
        raise Error(f"there is no command {given[0]}: \\? lists them")

    def _time(self, given: list[str]) -> None:
        self._is_timed = not self._is_timed

    def _describe(self, given: list[str]) -> None:
        database = self._database
        if not given:
            kinds = (("stream", database.streams), ("table", database.tables), ("view", database.views))
            unstored = {r.name for r in database.program.relations if not r.stored}
            rows = [
                (kind, name, "not stored" if name in unstored else len(handle))
                for kind, names in kinds
                for name, handle in names.items()
            ]
            self._console.print(_table(("kind", "name", "rows"), rows))
            return
        (name,) = _exactly(given, 1, "\\d NAME")
        if name in database.views:
            columns: Sequence[Column | ResultColumn] = database.program.result(name).columns
        else:
            relations = {**database.streams, **database.tables}
            if name not in relations:
                raise missing(name, "stream, table or view", [*relations, *database.views])
            columns = database.program.relation(name).given
        shown = [(c.name, str(c.type), "yes" if c.nullable else "no") for c in columns]
        self._console.print(_table(("column", "type", "NULL"), shown))

    def _explain(self, given: list[str]) -> None:
        (name,) = _exactly(given, 1, "\\explain VIEW")
        self._console.print(str(self._database.explain(name)), markup=False)

    def _watch(self, given: list[str]) -> None:
        try:
            name, pause = given[0], float(given[1] if len(given) > 1 else 1)
        except (IndexError, ValueError):
            raise Error("write \\watch VIEW, or \\watch VIEW SECONDS") from None
        watched = window(self._database, name)
        pane = Pane(watched.shape)
        with suppress(KeyboardInterrupt), Live(console=self._console, auto_refresh=False, transient=True) as screen:
            while True:
                pane.take(watched.look())
                screen.update(arranged([pane], self._console.width, self._console.height - 1), refresh=True)
                time.sleep(pause)


# -- lines -------------------------------------------------------------------------------------------------------------


def statements(lines: Iterable[str]) -> Iterator[str]:
    """Commands, which are a line each, and statements, which end with a semicolon. The last one needs none."""
    text = ""
    for line in lines:
        if not text.strip() and line.lstrip().startswith("\\"):
            yield line.strip()
            continue
        text += line if line.endswith("\n") else f"{line}\n"
        if is_whole(text):
            yield text.strip()
            text = ""
    if first_word(text):
        yield text.strip()


def is_whole(text: str) -> bool:
    """Whether a text ends with a semicolon that is in no quotes and no comment."""
    try:
        tokens = tokenize(text, read="duckdb")
    except TokenError:  # quotes, or a comment, that are still open
        return False
    return bool(tokens) and tokens[-1].token_type == TokenType.SEMICOLON


def typed(names: Callable[[], list[str]]) -> Iterator[str]:
    """The same as somebody types them, with history and completion where Python has readline."""
    with suppress(ImportError):
        _prepare(names)
    text = ""
    while True:
        try:
            line = input(MORE if text else PROMPT)
        except EOFError:
            print()
            return
        except KeyboardInterrupt:  # what was typed so far is forgotten
            print()
            text = ""
            continue
        text = f"{text}{line}\n" if text or line.strip() else ""
        if is_whole(text) or line.startswith("\\"):
            yield text.strip()
            text = ""


def _prepare(names: Callable[[], list[str]]) -> None:
    import atexit
    import readline

    def complete(start: str, number: int) -> str | None:
        words = [word for word in (*WORDS, *names()) if word.lower().startswith(start.lower())]
        return words[number] if number < len(words) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,()=<>")
    readline.parse_and_bind("tab: complete")
    history = history_file()
    with suppress(OSError):
        history.parent.mkdir(parents=True, exist_ok=True)
        history.touch(mode=0o600)
        readline.read_history_file(history)
        readline.set_history_length(HISTORY)
        atexit.register(readline.write_history_file, history)


def history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "viewlet" / "history"


# -- answers -----------------------------------------------------------------------------------------------------------


def _exactly(given: list[str], count: int, usage: str) -> list[str]:
    if len(given) != count:
        raise Error(f"write {usage}")
    return given


def _table(columns: Iterable[str], rows: Sequence[tuple[object, ...]]) -> Table:
    count = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"
    more = f"the first {SHOWN_ROWS} of {count}" if len(rows) > SHOWN_ROWS else count
    table = Table(box=box.SIMPLE_HEAD, caption=more, caption_justify="left")
    for column in columns:
        table.add_column(Text(column))
    for row in rows[:SHOWN_ROWS]:
        table.add_row(*(Text("NULL", style="dim") if cell is None else Text(str(cell)) for cell in row))
    return table
