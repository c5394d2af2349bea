"""The rows that a file has got since it was read last."""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa

from viewlet.errors import DataError
from viewlet.jobs.file import is_compressed, read
from viewlet.jobs.position import Position
from viewlet.jobs.source import Files
from viewlet.schema import Relation

PIECE = 1 << 26  # bytes of CSV that make one update
SEALED = 1 << 12  # bytes at either end of what was read that must still be there
_QUOTED_OR_END = re.compile(rb'(?<![^,\r\n])"(?:[^"]|"")*(?:"|\Z)|\n')
PARQUET_END = b"PAR1"
SHORTER = "{file} has {size} bytes, of which {bytes} were read before: rows that were read are gone from it"
CHANGED = "{file} was written again after it was read, so nobody knows which of its rows are new: add new files instead"
HALF_ROW = "{file} ended within a row when it was read, and went on there: that row was taken as it stood then"


def next_piece(
    relation: Relation, source: Files, file: str, before: Position, grows: bool
) -> tuple[pa.Table, Position] | None:
    """Rows behind a position, and the position behind them; None where there are none yet.

    A file that ``grows`` may end within a row, which is then left for later.
    """
    with open(file, "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        _check_sealed(relation, file, opened, size, before)
        if source.format == "parquet" or is_compressed(file):
            return _whole(relation, source, file, opened, before, grows)
        return None if size == before.bytes else _lines(relation, source, file, opened, before, grows)


def _check_sealed(relation: Relation, file: str, opened: BinaryIO, size: int, before: Position) -> None:
    if size < before.bytes:
        raise DataError(SHORTER.format(file=file, size=size, bytes=before.bytes), relation=relation.name)
    if _seal(opened, before.bytes) != before.seal:
        raise DataError(CHANGED.format(file=file), relation=relation.name)


def _seal(opened: BinaryIO, end: int) -> int:
    """
    >>> import io
    >>> _seal(io.BytesIO(b"abc"), 0), _seal(io.BytesIO(b"abc"), 2) == _seal(io.BytesIO(b"abd"), 2)
    (0, True)
    """
    opened.seek(0)
    first = opened.read(min(SEALED, end))
    opened.seek(max(end - SEALED, 0))
    return zlib.crc32(opened.read(min(SEALED, end)), zlib.crc32(first))


# -- files that come whole ---------------------------------------------------------------------------------------------


def _whole(
    relation: Relation, source: Files, file: str, opened: BinaryIO, before: Position, grows: bool
) -> tuple[pa.Table, Position] | None:
    size = os.fstat(opened.fileno()).st_size
    if before.bytes:
        if size != before.bytes:
            raise DataError(CHANGED.format(file=file), relation=relation.name)
        return None
    if grows and not _is_complete(opened, size, source.format):
        return None
    table = pa.concat_tables(list(read(relation, source, file)) or [_empty(relation)])
    return table, replace(before, bytes=size, read_rows=len(table), seal=_seal(opened, size))


def _is_complete(opened: BinaryIO, size: int, format: str) -> bool:
    """Parquet ends with its name. Of what is compressed, nobody knows before it is unpacked."""
    opened.seek(max(size - len(PARQUET_END), 0))
    return size > 0 and (format != "parquet" or opened.read() == PARQUET_END)


def _empty(relation: Relation) -> pa.Table:
    return pa.table({column.name: pa.array([]) for column in relation.given})


# -- lines of CSV ------------------------------------------------------------------------------------------------------


def _lines(
    relation: Relation, source: Files, file: str, opened: BinaryIO, before: Position, grows: bool
) -> tuple[pa.Table, Position] | None:
    lines = _whole_lines(opened, before.bytes, grows)
    if not lines:
        return None
    if before.bytes and not _starts_a_row(opened, before.bytes, lines):
        raise DataError(HALF_ROW.format(file=file), relation=relation.name)
    header = _header(opened) if before.bytes else b""
    end = before.bytes + len(lines)
    try:
        pieces = list(read(relation, source, file, pa.py_buffer(header + lines)))
    except DataError as error:
        raise _in_file(error, before.read_rows) from error
    table = pa.concat_tables(pieces or [_empty(relation)])
    return table, replace(before, bytes=end, read_rows=before.read_rows + len(table), seal=_seal(opened, end))


def _whole_lines(opened: BinaryIO, start: int, grows: bool) -> bytes:
    """Rows up to about a piece; at the end of the file, all of it, unless it grows."""
    wanted = PIECE
    while True:
        opened.seek(start)
        data = opened.read(wanted)
        if len(data) < wanted and not grows:
            return data
        end = rows_end(data)
        if end or len(data) < wanted:
            return data[:end]
        wanted *= 2


def rows_end(data: bytes) -> int:
    """Behind the last line end that is in no quotes.

    >>> rows_end(b'1,a' + bytes([10]) + b'2,"b' + bytes([10]))
    4
    """
    end = 0
    for match in _QUOTED_OR_END.finditer(data):
        if match[0] == b"\n":
            end = match.end()
    return end


def _starts_a_row(opened: BinaryIO, at: int, lines: bytes) -> bool:
    opened.seek(at - 1)
    return opened.read(1) in (b"\n", b"\r") or lines[:1] in (b"\n", b"\r")


def _header(opened: BinaryIO) -> bytes:
    """The first line, as the file has it; a file that had none when it was read had no rows."""
    wanted = SEALED
    while True:
        opened.seek(0)
        data = opened.read(wanted)
        ends = (match.end() for match in _QUOTED_OR_END.finditer(data) if match[0] == b"\n")
        if (end := next(ends, 0)) or len(data) < wanted:
            return data[:end] if end else data + b"\n"
        wanted *= 2


def _in_file(error: DataError, rows: int) -> DataError:
    """The row by its number in the file."""
    row = None if error.row is None else error.row + rows
    return DataError(error.message, relation=error.relation, row=row, column=error.column, value=error.value)
