"""Partial changes of a view, split by the merge cell that sums them: a hash that is the same in every process.

NULL, -0.0 beside 0.0, and all NaN each have one hash, for as keys they are one value.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pyarrow as pa

ODD = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio
MIX = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
NULL_HASH = np.uint64(0x6E756C6C)
Words = Any  # an array of uint64


def split(batch: pa.RecordBatch, columns: tuple[int, ...], parts: int) -> dict[int, pa.RecordBatch]:
    """Part ↦ its rows, in their order; without columns all go to part 0. Empty parts are left out."""
    if not columns or parts == 1:
        return {0: batch} if batch.num_rows else {}
    places = part_of(batch, columns, parts)
    chosen = ((part, np.flatnonzero(places == part)) for part in np.unique(places).tolist())
    return {part: batch.take(pa.array(rows)) for part, rows in chosen}


def part_of(batch: pa.RecordBatch, columns: tuple[int, ...], parts: int) -> Words:
    """The part of each row: by all ``columns``, given by position."""
    total = np.zeros(batch.num_rows, np.uint64)
    for place in columns:
        total = _mixed(total + ODD + _hashes(batch.column(place)))
    return total % np.uint64(parts)


def _mixed(words: Words) -> Words:
    """The finaliser of SplitMix64: each bit of the input changes half of the output's."""
    words = (words ^ (words >> np.uint64(30))) * MIX[0]
    words = (words ^ (words >> np.uint64(27))) * MIX[1]
    return words ^ (words >> np.uint64(31))


def _hashes(column: pa.Array) -> Words:
    words = _texts(column) if pa.types.is_string(column.type) else _numbers(column)
    if column.null_count:
        words = np.where(column.is_null().to_numpy(zero_copy_only=False), NULL_HASH, words)
    return words


def _numbers(column: pa.Array) -> Words:
    if pa.types.is_floating(column.type):
        values = column.fill_null(0.0).to_numpy() + 0.0
        return _mixed(np.where(np.isnan(values), np.nan, values).view(np.uint64))
    if pa.types.is_decimal128(column.type):
        words = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, 2)
        own = words[column.offset : column.offset + len(column)]
        return _mixed(_mixed(own[:, 0]) + own[:, 1])
    values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return _mixed(values.view(np.uint64))


def _texts(column: pa.Array) -> Words:
    """Every text once: a batch names the same ones again and again."""
    coded = column.dictionary_encode()
    sums = [zlib.crc32(text.encode()) for text in coded.dictionary.to_pylist()]
    places = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return _mixed(np.array([*sums, 0], np.uint64))[places]
