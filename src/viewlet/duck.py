"""DuckDB as this package uses it: what it computes depends on the row alone, not on the machine or the hour."""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from viewlet.errors import Error

_CONFIG: dict[str, Any] = {
    "threads": 1,
    "enable_external_access": "false",
}  # rows keep their order; no statement reads a file
_SETTINGS = (  # for all cursors: what SET alone says holds for one connection
    "SET GLOBAL python_enable_replacements = false",  # a name is never a Python variable
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL ieee_floating_point_ops = false",  # x / 0 is NULL, as it is to us
    "SET GLOBAL error_on_division_by_zero = false",
)
_OPENED = threading.local()
_FUNCTIONS: dict[str, Callable[..., Any]] = {}  # of Python, by name
_SIGNATURES: dict[str, dict[str, Any]] = {}  # of these


def opened() -> Any:
    """A new database in memory."""
    import duckdb  # a quarter of the time that it takes to import viewlet

    database = duckdb.connect(config=_CONFIG)
    for setting in _SETTINGS:
        database.execute(setting)
    return database


_database = cache(opened)


def cursor() -> Any:
    """A connection for one purpose, which its user closes."""
    return _database().cursor()


def connection() -> Any:
    """This thread's own."""
    if not hasattr(_OPENED, "connection"):
        _OPENED.connection = cursor()
    return _OPENED.connection


@atexit.register
def _close() -> None:
    """DuckDB complains at the end of a process of what still holds its objects."""
    for name in _FUNCTIONS:
        _database().remove_function(name)
    if hasattr(_OPENED, "connection"):
        _OPENED.connection.close()
        del _OPENED.connection
    if _database.cache_info().currsize:
        _database().close()
        _database.cache_clear()


def type_name(written: str) -> str:
    """A type as DuckDB calls it: INTEGER for INT."""
    import duckdb

    return str(duckdb.sqltype(written))


def create_function(name: str, function: Callable[..., Any], parameters: Sequence[str], returns: str) -> None:
    """Make a Python function one of DuckDB's, for the whole process. NULL in gives NULL out."""
    known = _FUNCTIONS.get(name.lower())
    if known is function:
        return
    if known is not None:
        raise Error(f"there is a function {name} already, and views may use it: choose another name")
    import duckdb

    try:
        _database().create_function(name, function, list(parameters), returns)
    except (duckdb.Error, TypeError) as error:
        raise Error(f"{name} is no function that a view can use: {first_line(error)}") from error
    _FUNCTIONS[name.lower()] = function
    _SIGNATURES[name.lower()] = {"parameters": list(parameters), "returns": returns}


def functions_in(script: str) -> dict[str, dict[str, Any]]:
    """The parameters and the type of each function of Python whose name is in a script."""
    words = set(re.findall(r"\w+", script.lower()))
    return {name: signature for name, signature in _SIGNATURES.items() if name in words}


def is_function(name: str) -> bool:
    return name.lower() in _FUNCTIONS


def first_line(error: Exception) -> str:
    """What DuckDB says is wrong, without where it stands in a text that no user wrote.

    What a row says of itself by ``error('…')`` is a whole sentence.
    """
    return str(error).split("\n")[0].removeprefix("Invalid Input Error: ")


def depends_on_more(text: str, aggregates: Collection[str] = ()) -> bool:
    """On the clock, on chance or on the session. Columns are quoted, so a word is a function or a keyword."""
    tokens = Dialect.get_or_raise("duckdb").tokenize(text)
    is_called = [after.token_type == TokenType.L_PAREN for after in tokens[1:]] + [False]
    words = (
        t.text.lower()
        for t, called in zip(tokens, is_called, strict=True)
        if t.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and (called or t.text.upper() != "UUID")
    )  # a UUID is a type as well
    return not not_of_the_row().isdisjoint(set(words) - set(aggregates))


@cache
def not_of_the_row() -> frozenset[str]:
    """The functions whose value depends on more than their arguments: on the clock, on chance, on other rows."""
    listed = connection().execute(
        "SELECT function_name FROM duckdb_functions() GROUP BY function_name "
        "HAVING bool_or(function_type IN ('macro', 'table_macro')) "
        "OR bool_or(function_type = 'scalar' AND stability <> 'CONSISTENT') "
        "OR (bool_or(function_type = 'aggregate') AND NOT bool_or(function_type = 'scalar'))"
    )
    names = {name for (name,) in listed.fetchall()}
    return frozenset(name for name in names if not name.startswith(_HARMLESS)) | _KEYWORDS


_HARMLESS: tuple[str, ...] = ("if",)
_HARMLESS += ("list_", "array_", "map_", "split_part", "nullif", "md5_number", "fdiv", "fmod", "date_add", "round_even")
_KEYWORDS = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "user"})
