"""The rows of one file. Both engines read CSV here, so that a file means the same to both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from viewlet.errors import DataError, Error
from viewlet.jobs.source import Files
from viewlet.rows.arrow import arrow_type
from viewlet.schema import INTERVAL, Relation

OP = "op"
OPS = "it is +1 (insert), -1 (delete), or how often"
_PLACE = re.compile(r"(?:In CSV column #(\d+): |CSV parse error: )?(?:Row #(\d+): )?(.*)", re.DOTALL)
BLOCK = 1 << 20  # bytes of CSV that are parsed at a time, some 30 of which Arrow reads ahead; a row is shorter
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}  # what is compressed says so by its name


def read(relation: Relation, source: Files, file: str, content: pa.Buffer | None = None) -> Iterator[pa.Table]:
    """The relation's columns, and ``op`` where the file has it, in pieces: of CSV some rows at a time.

    So a small file that unpacks to a large one takes no more memory than others. Columns of CSV have the declared
    types. Those of Parquet keep their own: each value is checked when it is inserted, and a cast would round it before.
    """
    rows = 0
    try:
        for piece in _csv(relation, file, content) if source.format == "csv" else _parquet(file):
            yield _declared(relation, file, piece, rows)
            rows += piece.num_rows
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"{file} cannot be read: {error}", relation=relation.name) from error
    except OSError as error:
        raise unreadable(relation, file, error) from error


def unreadable(relation: Relation, file: str, error: OSError) -> DataError:
    return DataError(f"{file} cannot be read: {error.strerror or error}", relation=relation.name)


def _declared(relation: Relation, file: str, table: pa.Table, first: int) -> pa.Table:
    """``first`` is the number of its first row."""
    check_columns(relation, file, table.column_names)
    table = table.rename_columns([name.lower() for name in table.column_names])
    ops = [OP] if OP in table.column_names else []
    table = table.select([*(c.name for c in relation.given), *ops])
    _check_nulls(relation, file, table, first)
    return _with_checked_op(relation, file, table, first) if ops else table


def with_op(table: pa.Table) -> pa.Table:
    """Without one, every row comes."""
    if OP in table.column_names:
        return table
    return table.append_column(OP, pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))


def check_columns(relation: Relation, file: str, names: Iterable[str]) -> None:
    """Each column of the relation is there once, in large letters or small ones, as in SQL."""
    if relation.column(OP) is not None:
        raise Error(f"{relation.name} has a column op, which says in files whether a row comes or goes: rename it")
    folded = [name.lower() for name in names]
    for name in (*(c.name for c in relation.given), OP):
        if name not in folded and name != OP:
            there = ", ".join(names)
            raise DataError(f"{file} has no such column; it has {there}", relation=relation.name, column=name)
        if folded.count(name) > 1:
            raise DataError(f"{file} has two columns of this name", relation=relation.name, column=name)


def _csv(relation: Relation, file: str, content: pa.Buffer | None) -> Iterator[pa.Table]:
    """As RFC 4180 has it. An empty field is NULL, quoted or not, and nothing else is."""
    if length := next((c.name for c in relation.given if c.type == INTERVAL), None):
        hint = "declare it BIGINT, a number of seconds, or read Parquet"
        raise DataError(f"a CSV file has no INTERVALs: {hint}", relation=relation.name, column=length)
    if nested := next((c.name for c in relation.given if c.type.is_nested), None):
        hint = "declare it VARCHAR, and take it apart in the view (string_split, json_extract), or read Parquet"
        raise DataError(f"a CSV file has no lists, structs and maps: {hint}", relation=relation.name, column=nested)
    types = {c.name: arrow_type(c.type) for c in relation.given} | {OP: pa.int64()}
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    blocks = pyarrow.csv.ReadOptions(block_size=BLOCK, use_threads=False)  # one thread can tell where an error is
    header: list[str] = []
    try:
        with _opened(file, content) as stream:
            header = pyarrow.csv.open_csv(stream, blocks, parse).schema.names
        check_columns(relation, file, header)
        named = {name.lower(): name for name in header}
        asked = {named[name]: type_ for name, type_ in types.items() if name in named}
        convert = pyarrow.csv.ConvertOptions(
            column_types=asked, include_columns=list(asked), null_values=[""], strings_can_be_null=True
        )
        with _opened(file, content) as stream, pyarrow.csv.open_csv(stream, blocks, parse, convert) as reader:
            yield from (pa.Table.from_batches([batch]) for batch in reader)
    except pa.ArrowInvalid as error:
        raise _misfit(relation, file, header, str(error)) from error


def _misfit(relation: Relation, file: str, header: list[str], why: str) -> DataError:
    """Arrow counts columns from 0, and rows from 1, of which the header is the first."""
    place = _PLACE.match(why)
    assert place is not None
    column = header[int(place[1])].lower() if place[1] and header else None
    row = int(place[2]) - 2 if place[2] else None
    return DataError(f"{file} cannot be read: {place[3]}", relation=relation.name, column=column, row=row)


def is_compressed(file: str) -> bool:
    return Path(file).suffix in _COMPRESSIONS


def _opened(file: str, content: pa.Buffer | None) -> pa.NativeFile:
    return pa.input_stream(file if content is None else content, compression=_COMPRESSIONS.get(Path(file).suffix))


def _parquet(file: str) -> Iterator[pa.Table]:
    """What is in the file and nothing else: ``pyarrow.parquet.read_table`` finds columns in its path, too."""
    with pyarrow.parquet.ParquetFile(file) as opened:
        yield opened.read()


def _check_nulls(relation: Relation, file: str, table: pa.Table, first: int) -> None:
    for column in relation.given:
        if not column.nullable and table[column.name].null_count:
            row = first + pc.index(pc.is_null(table[column.name]), True).as_py()
            message = f"NULL in a NOT NULL column, in {file}"
            raise DataError(message, relation=relation.name, column=column.name, row=row)


def _with_checked_op(relation: Relation, file: str, table: pa.Table, first: int) -> pa.Table:
    given = table[OP]
    if not pa.types.is_integer(given.type):
        raise DataError(f"{file} has it as {given.type}; {OPS}", relation=relation.name, column=OP)
    if given.null_count:
        row = first + pc.index(pc.is_null(given), True).as_py()
        raise DataError(f"NULL in {file}; {OPS}", relation=relation.name, column=OP, row=row)
    return table.set_column(table.column_names.index(OP), OP, given.cast(pa.int64()))
