"""The pages are true: their code runs, their SQL means what DuckDB says, their commands and files exist."""

from __future__ import annotations

import contextlib
import datetime as dt
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import pytest
import typer

import viewlet
from tests.oracle.oracle import DuckOracle, Row, difference
from viewlet.cli.main import app
from viewlet.database.memory import ENGINES, Database
from viewlet.engines.native.build import find_compiler

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += [
    ROOT / "docs" / f"{name}.md"
    for name in (
        "api",
        "benchmarks",
        "cookbook",
        "deep",
        "durability",
        "errors",
        "from-scratch",
        "native",
        "notebooks",
        "ordered",
        "spark",
        "sql",
        "strategies",
        "workloads",
    )
]
NEEDS_COMPILER = pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler")
ON_SPARK = pytest.mark.xdist_group("spark")
RUN = [
    pytest.param(ROOT / "README.md", marks=ON_SPARK),
    pytest.param(ROOT / "docs" / "cookbook.md", marks=ON_SPARK),
    ROOT / "docs" / "deep.md",
    ROOT / "docs" / "durability.md",
    ROOT / "docs" / "errors.md",
    ROOT / "docs" / "from-scratch.md",
    pytest.param(ROOT / "docs" / "native.md", marks=NEEDS_COMPILER),
    ROOT / "docs" / "ordered.md",
    pytest.param(ROOT / "docs" / "spark.md", marks=ON_SPARK),
    ROOT / "docs" / "sql.md",
    ROOT / "docs" / "strategies.md",
    ROOT / "docs" / "workloads.md",
]
SHOWN = ("text", "cpp")  # the languages of what a block prints
SQL_PAGE = ROOT / "docs" / "sql.md"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block; ``follows`` is the block that ends just above it, with nothing but blank lines between."""

    language: str
    text: str
    line: int
    follows: Block | None


def blocks(page: str) -> list[Block]:
    blocks_: list[Block] = []
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        before = page[: match.start()]
        follows = blocks_[-1] if blocks_ and before.rstrip().endswith("```") else None
        blocks_.append(Block(match[1], match[2], before.count("\n") + 1, follows))
    return blocks_


def tables(page: str) -> Iterator[list[list[str]]]:
    """The tables of a page as rows of cells, the header first."""
    rows: list[list[str]] = []
    for line in [*page.splitlines(), ""]:
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            rows.append([cell.strip().replace("\\|", "|") for cell in cells])
        elif rows:
            yield [rows[0], *rows[2:]]
            rows = []


def columns(header: list[str]) -> list[list[str]]:
    """The rows of every table of the SQL page with this header."""
    return [row for table in tables(SQL_PAGE.read_text("utf-8")) if table[0] == header for row in table[1:]]


def name(path: Path) -> str:
    return path.name


# -- python ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", RUN, ids=name)
def test_python_runs_and_prints_what_is_shown(page: Path) -> None:
    """The blocks of a page in order; a ``text`` or ``cpp`` block right below one is what it prints, but for ``...``."""
    namespace: dict[str, object] = {}
    printed: dict[Block, str] = {}
    shown = 0
    for block in blocks(page.read_text("utf-8")):
        if block.language == "python":
            output = io.StringIO()
            code = compile("\n" * block.line + block.text, str(page), "exec")
            with contextlib.redirect_stdout(output):
                exec(code, namespace)
            printed[block] = output.getvalue()
        elif block.language in SHOWN and block.follows in printed:
            got = printed.pop(block.follows)
            same = doctest.OutputChecker().check_output(block.text, got, doctest.ELLIPSIS)
            assert same, f"{page.name}, line {block.line} shows\n{block.text}\nbut this was printed:\n{got}"
            shown += 1
    assert shown >= 3
    assert not any(printed.values()), "a block prints what the page does not show"


# -- sql ---------------------------------------------------------------------------------------------------------------

WORKS = [row[1] for row in columns(["works", "example"])]
REFUSED = columns(["refused", "example", "write instead"])
NOON = dt.datetime(2024, 1, 2, 12)
DATA: dict[str, list[Row]] = {
    "brokers": [("ann", "DE"), ("bob", None)],
    "bids": [
        (1, "ann", Decimal("10.50"), 4, 1.5, True, dt.date(2024, 1, 31), NOON),
        (2, "ann", Decimal("12.00"), 3, -2.0, False, dt.date(2024, 1, 2), NOON - dt.timedelta(hours=3)),
        (3, "bob", Decimal("9.99"), 12, 0.25, None, None, NOON + dt.timedelta(days=1)),
        (4, "bob", None, 2, None, True, dt.date(2023, 12, 31), None),
        (5, "cat", Decimal("7.00"), 7, 3.5, True, dt.date(2024, 1, 5), NOON),
        (6, "ann", Decimal("10.00"), None, 1.0, False, dt.date(2024, 2, 1), NOON),
    ],
    "asks": [
        (1, "ann", Decimal("12.00"), 5),
        (2, "ann", Decimal("9.99"), 2),
        (3, "bob", None, 9),
        (4, "dan", Decimal("7.00"), None),
    ],
}


def code(cell: str) -> str:
    """The first code in a cell."""
    match = CODE.search(cell)
    assert match is not None, cell
    return match[1]


@lru_cache
def schema() -> str:
    return next(block.text for block in blocks(SQL_PAGE.read_text("utf-8")) if block.language == "sql")


def database(selects: list[str], engine: str) -> Database:
    """Views ``example_0``, ``example_1``, … over the rows."""
    db = viewlet.connect(engine=engine, wait_native=True)
    views = (f"CREATE MATERIALIZED VIEW example_{i} AS {select};" for i, select in enumerate(selects))
    db.execute("\n".join([schema(), *views]))
    for relation, rows in DATA.items():
        db.insert(relation, rows)
    return db


@lru_cache
def referee() -> DuckOracle:
    oracle = DuckOracle(viewlet.compile(schema()).relations)
    for relation, rows in DATA.items():
        oracle.load(relation, rows)
    oracle.connection.execute("CREATE VIEW firm_bids AS SELECT id, broker, price FROM bids WHERE firm")
    return oracle


def agrees(select: str, meaning: str) -> None:
    for engine in ENGINES:
        if engine != "native":  # which takes all examples in one program: a compiler run for each would be minutes
            all_agree([select], [meaning], engine)


def all_agree(selects: list[str], meanings: list[str], engine: str) -> None:
    """After the inserts, and with half of the rows deleted again."""
    db = database(selects, engine)
    assert db.tier == engine
    for i, meaning in enumerate(meanings):
        expected = referee().rows(meaning)
        assert expected, "the example shows no row"
        assert difference(db.view(f"example_{i}").rows(), expected) is None, (engine, meaning)
    for relation in ("bids", "asks"):
        db.delete(relation, DATA[relation][::2])
    for i, meaning in enumerate(meanings):
        assert db.verify(f"example_{i}") == [], (engine, meaning)


@pytest.mark.parametrize("cell", WORKS)
def test_what_works_means_what_the_referee_says(cell: str) -> None:
    agrees(code(cell), code(cell))


@pytest.mark.parametrize("row", columns(["windows", "example", "means"]), ids=lambda r: r[0])
def test_windows_of_time_mean_what_the_page_says(row: list[str]) -> None:
    agrees(code(row[1]), code(row[2]))


@pytest.mark.parametrize("row", [r for r in REFUSED if not code(r[1]).startswith("CREATE")], ids=lambda r: r[0])
def test_what_is_refused_has_another_way(row: list[str]) -> None:
    refused = code(row[1])
    is_statement = refused.startswith("INSERT")
    script = schema() + (refused if is_statement else f"CREATE MATERIALIZED VIEW example AS {refused}")
    with pytest.raises(viewlet.UnsupportedError):
        viewlet.compile(script)
    if row[2].startswith("`SELECT"):
        agrees(code(row[2]), refused)
    elif not is_statement:
        referee().rows(refused)


@NEEDS_COMPILER
def test_all_of_it_means_the_same_natively() -> None:
    other_ways = [row for row in REFUSED if row[2].startswith("`SELECT")]
    selects = [*map(code, WORKS), *(code(row[2]) for row in other_ways)]
    all_agree(selects, [*map(code, WORKS), *(code(row[1]) for row in other_ways)], "native")


@pytest.mark.parametrize("row", [r for r in REFUSED if code(r[1]).startswith("CREATE")], ids=lambda r: r[0])
def test_statements_that_are_refused(row: list[str]) -> None:
    with pytest.raises(viewlet.UnsupportedError):
        viewlet.compile(schema() + code(row[1]))


def test_the_page_has_its_tables() -> None:
    assert len(WORKS) > 25
    assert len(REFUSED) > 10


# -- commands, files and names -----------------------------------------------------------------------------------------


def commands() -> list[str]:
    """The lines of ``console`` blocks without comments, and inline code that is a viewlet or make command."""
    all_commands: list[str] = []
    for page in PAGES:
        text = page.read_text("utf-8")
        lines = [line for b in blocks(text) if b.language == "console" for line in b.text.splitlines()]
        all_commands += [
            line.removeprefix("$ ").split(" # ")[0].split(" | ")[0].strip() for line in lines if line.strip()
        ]
        all_commands += re.findall(r"`((?:viewlet|make) [a-z][^`]*)`", text)
    return list(dict.fromkeys(all_commands))


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("viewlet ")])
def test_the_command_line_takes_the_command(command: str) -> None:
    """Parsed with all its options and choices, not run."""
    _, subcommand, *arguments = shlex.split(command.replace("…", ""))
    group = typer.main.get_command(app)
    known = group.commands[subcommand]  # type: ignore[attr-defined]
    known.make_context(subcommand, arguments or (["job.sql"] if subcommand in ("explain", "check") else []))


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("make ")])
def test_the_target_exists(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE)


def test_commands_are_found() -> None:
    listed = commands()
    assert {"make run", "make test"} <= set(listed)
    assert any(command.startswith("viewlet explain") for command in listed)


def existing(path: str) -> Path | None:
    """A file named in a page: from the top, or within the package."""
    return next((base / path for base in (ROOT, ROOT / "src" / "viewlet") if (base / path).exists()), None)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_are_named_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    prose = CODE.sub("", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    links = [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose) if "://" not in target]
    assert [link for link in links if not (page.parent / link).exists()] == []
    named = re.findall(r"`([\w./-]+(?:\.py|\.md|\.toml|\.txt|\.[ch]pp|/))`", text)
    assert [path for path in named if existing(path) is None] == []


PAPER_TABLE = [row for table in tables(ARCHITECTURE.read_text("utf-8")) if table[0][0] == "paper" for row in table[1:]]


@pytest.mark.parametrize("row", PAPER_TABLE, ids=lambda row: row[0])
def test_the_paper_table_leads_somewhere(row: list[str]) -> None:
    """The file exists and defines every name in the row."""
    file, *names = CODE.findall(row[1])
    path = existing(file)
    assert path is not None
    assert names
    source = path.read_text("utf-8")
    assert [n for n in names if not re.search(rf"^\s*(?:def|class) {n}\b|^{n}\b.*=", source, re.MULTILINE)] == []


def test_the_paper_table_covers_the_paper() -> None:
    assert len(PAPER_TABLE) > 12


# -- what the pages promise about themselves ---------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= 8_000


def test_the_glossary_is_short_and_its_words_have_one_meaning_each() -> None:
    (glossary,) = (table for table in tables(ARCHITECTURE.read_text("utf-8")) if table[0][0] == "word")
    words = [row[0] for row in glossary[1:]]
    assert len(words) == len(set(words))
    assert {"view", "map", "cell"} <= set(words)
    assert len(words) <= 30


def test_every_page_is_reachable_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"](docs/{page.name})" not in readme] == []


def test_both_pictures_show_the_same_thing() -> None:
    """They differ in their colours alone."""
    light, dark = (
        re.sub(r"#[0-9a-f]{6}", "", (ROOT / "docs" / "images" / f"overview-{name}.svg").read_text("utf-8"))
        for name in ("light", "dark")
    )
    assert light == dark


HARD = re.compile(r"\b(?:anew|[Ww]hoever|[Nn]or stands)\b")
SOURCES = sorted(path for path in (ROOT / "src" / "viewlet").rglob("*") if path.suffix in (".py", ".hpp", ".cpp"))
PLAIN = [*PAGES, ROOT / "docs" / "algebra.md", ROOT / "docs" / "rules.md"]


@pytest.mark.parametrize("page", PLAIN, ids=name)
def test_pages_are_in_plain_english(page: Path) -> None:
    """Words that make a sentence hard to follow."""
    prose = CODE.sub("", re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL))
    assert HARD.findall(prose) == []


@pytest.mark.parametrize("file", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src" / "viewlet")))
def test_docstrings_comments_and_messages_are_in_plain_english(file: Path) -> None:
    assert HARD.findall(file.read_text("utf-8")) == []
