"""What becomes of the 99 questions of TPC-DS: what each keeps and costs, or why it is not taken.

``python -m bench.tpcds`` prints a row for each question: the maps that are kept, the cost class of an event, the CPU
seconds of the compiler, or the reason. ``--write docs/sql.md`` puts the table between its marks there.
"""

from __future__ import annotations

import argparse
import resource
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

import viewlet
from viewlet.loops.cost_class import program_cost_class
from viewlet.workloads.written import suite

MOST_SECONDS, MOST_MEGABYTES = 2.0, 500
PATIENCE = 5.0  # CPU seconds after which a compilation is given up
BEGIN, END = "<!-- python -m bench.tpcds --write docs/sql.md -->", "<!-- end of TPC-DS -->"


@dataclass(frozen=True)
class Outcome:
    """``reason``: why there is no program."""

    question: str
    seconds: float
    megabytes: float
    maps: int = 0
    cost_class: str = ""
    reason: str = ""

    def row(self) -> str:
        cells = (self.question, self.maps or "", self.cost_class, "" if self.reason else f"{self.seconds:.2f}")
        return f"| {' | '.join(map(str, cells))} | {self.reason} |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="*", default=list(suite("tpcds").questions), help="some of q1 to q99")
    parser.add_argument("--write", type=Path, help="a page with the marks between which the table goes")
    options = parser.parse_args(arguments)
    outcomes = []
    for outcome in _outcomes(options.questions):
        print(outcome.row(), f"{outcome.megabytes:.0f} MB", flush=True)
        outcomes.append(outcome)
    if options.write is not None:
        _write(options.write, outcomes)
    return 0


def _outcomes(questions: Sequence[str]) -> Iterator[Outcome]:
    """Each in a process of its own: what one leaves behind is no other's."""
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        yield from pool.imap(_outcome, questions)


class _TooLong(BaseException):
    """No error handler of the compiler takes it for one of its own."""


def _give_up(number: int, frame: FrameType | None) -> None:
    raise _TooLong


def _outcome(question: str) -> Outcome:
    tpcds = suite("tpcds")
    viewlet.compile(tpcds.schema)  # imports, too
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE, 0.1)  # again, where a callback of the collector swallowed it
    program, reason = None, ""
    try:
        program = viewlet.compile(tpcds.schema + tpcds.view(question))
    except viewlet.UnsupportedError as error:
        reason = str(error).splitlines()[0].partition(": ")[2]
    except _TooLong:
        reason = f"takes more than {PATIENCE:.0f} CPU seconds to compile"
    signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - start
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if program is None:
        return Outcome(question, seconds, megabytes, reason=reason)
    cost_class = program_cost_class(program, kinds="+-")
    return Outcome(question, seconds, megabytes, len(program.views), str(cost_class))


def _write(page: Path, outcomes: Sequence[Outcome]) -> None:
    head = ["| question | maps | an event costs | compile (CPU s) | why it is not taken |", "|---|---|---|---|---|"]
    before, rest = page.read_text("utf-8").split(BEGIN)
    table = "\n".join([*head, *(outcome.row() for outcome in outcomes)])
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
