"""viewlet: SQL views compiled into trigger programs that keep them fresh on every event."""

from typing import Any

from viewlet.check import ViewCheck, check
from viewlet.compilation import compile
from viewlet.database.directory import connect
from viewlet.database.memory import Database
from viewlet.database.view import View
from viewlet.errors import (
    CorruptError,
    DataError,
    Error,
    OutOfRangeError,
    OverflowError_,
    SqlError,
    StorageError,
    UnsupportedError,
)
from viewlet.program.trigger import Program

__version__ = "0.2.0"

__all__ = [
    "CorruptError",
    "DataError",
    "Database",
    "Error",
    "OutOfRangeError",
    "OverflowError_",
    "Program",
    "SqlError",
    "StorageError",
    "UnsupportedError",
    "View",
    "ViewCheck",
    "__version__",
    "check",
    "compile",
    "connect",
]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext viewlet`` in a notebook: then ``%%viewlet`` runs a script."""
    from viewlet.magic import load

    load(shell)
