"""Benchmarks as their authors wrote them: for each a schema, its questions, and rows that the questions ask about.

The other workloads of this package adapt such questions to what a stream processor needs. Here nothing is adapted: the
files ``*.sql`` beside this one hold what a user would bring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

SuiteName = Literal["tpch", "ssb", "clickbench", "nexmark", "tpcds"]
SUITES: tuple[SuiteName, ...] = ("tpch", "ssb", "clickbench", "nexmark")
"""Those of which every question is taken; of TPC-DS most are."""

_HEADING = re.compile(r"^-- query (\w+)$", re.MULTILINE)
_TUMBLE = re.compile(r"TABLE\(TUMBLE\(TABLE (\w+), DESCRIPTOR\((\w+)\), (INTERVAL '\d+' SECOND)\)\)")
_HOP = re.compile(r"TABLE\(HOP\(TABLE (\w+), DESCRIPTOR\((\w+)\), INTERVAL '(\d+)' SECOND, INTERVAL '(\d+)' SECOND\)\)")
_SESSION = re.compile(r"FROM (\w+) (\w+)\s+GROUP BY \2\.(\w+), SESSION\(\2\.(\w+), (INTERVAL '\d+' SECOND)\)")
_START = re.compile(r"SESSION_START\(([\w.]+), INTERVAL '\d+' SECOND\)")
_END = re.compile(r"SESSION_END\(([\w.]+), (INTERVAL '\d+' SECOND)\)")


@dataclass(frozen=True, slots=True)
class Suite:
    """A benchmark: CREATE statements, and its questions by name, each one SELECT."""

    name: SuiteName
    schema: str
    questions: Mapping[str, str]

    def view(self, question: str) -> str:
        """The statement that keeps one answer fresh. Its columns may have names of our own choice."""
        return f"CREATE MATERIALIZED VIEW {question} AS\n{self.questions[question]};\n"

    def referee(self, question: str) -> str:
        """The question for DuckDB, which has no TUMBLE, HOP and SESSION but can say what they mean."""
        return _in_islands(_HOP.sub(_hopping, _TUMBLE.sub(_tumbling, self.questions[question])))


@cache
def suite(name: SuiteName) -> Suite:
    """Read one benchmark's file."""
    schema, *parts = _HEADING.split(files(__name__).joinpath(f"{name}.sql").read_text())
    questions = {title: text.strip().removesuffix(";") for title, text in zip(parts[::2], parts[1::2], strict=True)}
    return Suite(name, schema, MappingProxyType(questions))


def _tumbling(match: re.Match[str]) -> str:
    table, column, size = match.groups()
    start = f"time_bucket({size}, {column})"
    return f"(SELECT *, {start} AS window_start, {start} + {size} AS window_end FROM {table})"


def _hopping(match: re.Match[str]) -> str:
    table, column, slide, size = match[1], match[2], int(match[3]), int(match[4])
    start = f"time_bucket(INTERVAL '{slide}' SECOND, {column}) - to_seconds({slide} * turn)"
    end = f"{start} + INTERVAL '{size}' SECOND"
    turns = f"range({size // slide}) turns(turn)"
    return f"(SELECT {table}.*, {start} AS window_start, {end} AS window_end FROM {table}, {turns})"


def _in_islands(question: str) -> str:
    """SESSION in GROUP BY: a row begins a session where the one before it is further away than the gap."""
    return _SESSION.sub(_islands, _END.sub(r"max(\1) + \2", _START.sub(r"min(\1)", question)))


def _islands(match: re.Match[str]) -> str:
    table, alias, key, column, gap = match.groups()
    over = f"OVER (PARTITION BY {key} ORDER BY {column})"
    begins = f"CASE WHEN {column} - lag({column}) {over} <= {gap} THEN 0 ELSE 1 END"
    numbered = f"SELECT *, sum(begins) {over} AS session FROM (SELECT *, {begins} AS begins FROM {table})"
    return f"FROM ({numbered}) {alias} GROUP BY {alias}.{key}, {alias}.session"
