"""The rows of views as files that other tools read, or as lines of JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet

from viewlet.errors import StorageError


class Format(str, Enum):
    parquet = "parquet"
    csv = "csv"
    jsonl = "jsonl"


def save(rows: pa.Table, directory: Path, view: str, format: Format) -> Path:
    """Write ``view.format``; readers find the file as it was before, or whole."""
    path = directory / f"{_file_name(view)}.{format.value}"
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _write(rows, unfinished, format)
        os.replace(unfinished, path)
    except (OSError, duckdb.IOException) as error:
        raise StorageError(f"{path} cannot be written: {error}") from error
    return path


def _write(rows: pa.Table, path: Path, format: Format) -> None:
    match format:
        case Format.parquet:
            pyarrow.parquet.write_table(rows, path)
        case Format.csv:
            with duckdb.connect() as connection:  # it writes lists, too, and tells NULL from an empty text
                connection.from_arrow(rows).write_csv(str(path), header=True)
        case Format.jsonl:
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in json_lines(rows))


def _file_name(view: str) -> str:
    """
    >>> _file_name("top_10"), _file_name("a/b"), _file_name(".x")
    ('top_10', 'a%2fb', '%2ex')
    """
    return re.sub(r"[^\w .-]|^\.", lambda match: f"%{ord(match[0]):02x}", view)


def json_lines(rows: pa.Table) -> Iterator[str]:
    """
    >>> list(json_lines(pa.table({"a": [1, None], "b": [0.5, math.nan]})))
    ['{"a": 1, "b": 0.5}', '{"a": null, "b": "NaN"}']
    """
    names = [json.dumps(name, ensure_ascii=False) for name in rows.column_names]
    for batch in rows.to_batches(max_chunksize=10_000):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield _object(names, row)


def _object(names: Sequence[str], row: Sequence[Any]) -> str:
    return f"{{{', '.join(f'{name}: {_text(value)}' for name, value in zip(names, row, strict=True))}}}"


def _text(value: Any) -> str:
    """A DECIMAL keeps all its digits. JSON has no number for NaN and infinities, and no dates: texts they become.

    So do bytes, in hexadecimal digits. An INTERVAL is its seconds, and a MAP a list of its keys and values.
    """
    match value:
        case Decimal():
            return f"{value:f}"
        case float() if not math.isfinite(value):
            return '"NaN"' if math.isnan(value) else f'"{"-" * (value < 0)}Infinity"'
        case dt.date() | dt.time():
            return f'"{value.isoformat()}"'
        case dt.timedelta():
            return _text(value.total_seconds())
        case bytes():
            return f'"{value.hex()}"'
        case list() | tuple():
            return f"[{', '.join(map(_text, value))}]"
        case dict():
            return _object([json.dumps(name, ensure_ascii=False) for name in value], list(value.values()))
        case _:
            return json.dumps(value, ensure_ascii=False)
