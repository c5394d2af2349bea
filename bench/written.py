"""What it takes to keep the answers of whole benchmarks fresh: TPC-H, SSB, ClickBench and Nexmark as they are written.

``python -m bench.written`` prints a row for each question: the maps that are kept, the cost class of an event, the CPU
seconds and the memory of the compiler up to C++, and how many events a second the native engine takes one by one
through the public API. The view is fresh after each. ``--write docs/sql.md`` puts the table between its marks there.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import viewlet
from viewlet.engines.native.emit.program import cpp_source
from viewlet.loops.cost_class import program_cost_class
from viewlet.workloads.streams import Event
from viewlet.workloads.written import SUITES, SuiteName, suite
from viewlet.workloads.written.rows import STATIC, events

BEFORE, TIMED = 2_000, 3_000  # events that make the database, and those that are timed
LIVE = 60
MOST_SECONDS, MOST_MEGABYTES = 2.0, 500
BEGIN, END = "<!-- python -m bench.written --write docs/sql.md -->", "<!-- end -->"


@dataclass(frozen=True)
class Measured:
    suite: SuiteName
    question: str
    maps: int
    cost_class: str
    seconds: float  # of the compiler, to C++
    megabytes: float
    refreshes: float  # a second

    def row(self) -> str:
        cells = (self.suite, self.question, self.maps, self.cost_class, f"{self.seconds:.2f}", f"{self.refreshes:,.0f}")
        return f"| {' | '.join(map(str, cells))} |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", default=SUITES, help=f"some of {', '.join(SUITES)}")
    parser.add_argument("--write", type=Path, help="a page with the marks between which the table goes")
    options = parser.parse_args(arguments)
    measured = []
    for compiled in _all(options.suites):
        print(compiled.row(), flush=True)
        measured.append(compiled)
    if options.write is not None:
        _write(options.write, measured)
    slow = [m for m in measured if m.seconds > MOST_SECONDS or m.megabytes > MOST_MEGABYTES]
    for m in slow:
        print(f"{m.suite} {m.question}: {m.seconds:.2f} s and {m.megabytes:.0f} MB to compile, which is too much")
    return bool(slow)


def _all(suites: Sequence[SuiteName]) -> Iterator[Measured]:
    """Each in a process of its own: what one leaves behind is no other's."""
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        questions = [(name, question) for name in suites for question in suite(name).questions]
        yield from pool.imap(_measured, questions)


def _measured(asked: tuple[SuiteName, str]) -> Measured:
    name, question = asked
    script = suite(name).schema + suite(name).view(question)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    program = viewlet.compile(script)
    cpp_source(program)
    seconds = time.process_time() - start
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    cost_class = program_cost_class(program, kinds="+-")
    return Measured(name, question, len(program.views), cost_class, seconds, megabytes, _refreshes(name, script))


def _refreshes(name: SuiteName, script: str) -> float:
    """Events of a second of CPU, one call each."""
    database = viewlet.connect(wait_native=True)
    database.execute(script)
    for relation, rows in STATIC[name].items():
        database.insert(relation, list(rows))
    stream = events(name, 1, BEFORE + TIMED, live=LIVE)
    database.apply(list(islice(stream, BEFORE)))
    return TIMED / _spent(database, list(islice(stream, TIMED)))


def _spent(database: viewlet.Database, timed: Sequence[Event]) -> float:
    start = time.process_time()
    for op, relation, row in timed:
        (database.insert if op == "+" else database.delete)(relation, row)
    return time.process_time() - start


def _write(page: Path, measured: Sequence[Measured]) -> None:
    head = [
        "| benchmark | question | maps | an event costs | compile (CPU s) | events a second |",
        "|---|---|---|---|---|---|",
    ]
    before, rest = page.read_text("utf-8").split(BEGIN)
    table = "\n".join([*head, *(m.row() for m in measured)])
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
