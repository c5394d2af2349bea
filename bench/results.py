"""What the benchmarks found: one flat list of measurements and the series and tables beside it, as a JSON file.

Everything that is shown (the report, the README's figures, the comparison of two runs) is read from such a file, so a
figure that nobody measured cannot be shown.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from viewlet.engines.native.build import find_compiler

FORMAT = 1
SEED = 1
PACKAGES = ("viewlet", "sqlglot", "pyarrow", "numpy", "duckdb", "pyspark")
ROOT = Path(__file__).parent.parent

Outcome = Literal["measured", "refused", "missing"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one contestant did in one experiment; checked against the referee's answer before it is written down."""

    experiment: str  # "figure-7", "figure-11", "latency", "peers", "spark", …
    query: str
    contestant: str
    value: float | None = None  # the best of the repetitions; None unless measured
    unit: str = "events/CPU s"
    outcome: Outcome = "measured"  # refused: it cannot maintain the query; missing: it could not be installed or run
    events: int = 0
    seconds: float = 0.0
    noise: float = 0.0  # (best - worst) / best of the repetitions
    repetitions: int = 1
    bounded: bool = False  # stopped by the clock before the end of the stream
    reached: float = 1.0  # the fraction of the stream that it took
    freshness: str = "every event"  # or "every 1,000 events", …
    rows_checked: int = 0  # rows of the answer that were compared with the referee's
    note: str = ""  # what a reader must know: why refused, how rewritten, what is not comparable

    @property
    def key(self) -> tuple[str, str, str]:
        return self.experiment, self.query, self.contestant


@dataclass(frozen=True, slots=True)
class Series:
    """A curve: what is measured on the way (figures 8 to 10), or for several sizes."""

    experiment: str
    query: str
    contestant: str
    x: str  # what the first numbers are: "fraction of the stream", "live orders", …
    y: str  # "events/CPU s", "MB", …
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of words: figures 3 and 6."""

    experiment: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    processor: str
    cores: int
    memory_gb: float
    system: str
    compiler: str

    @staticmethod
    def here() -> Machine:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return Machine(_processor(), cores, round(memory, 1), f"{platform.system()} {platform.machine()}", _compiler())


@dataclass(frozen=True, slots=True)
class About:
    """Where, when and how: what a reader needs to repeat it."""

    started: str
    command: str
    commit: str
    seed: int
    python: str
    versions: dict[str, str]
    machine: Machine
    load_before: float  # processes that wanted a core, in the minute before
    load_after: float = 0.0
    seconds: float = 0.0

    @staticmethod
    def now(command: Sequence[str]) -> About:
        return About(
            started=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
            command=" ".join(command),
            commit=_commit(),
            seed=SEED,
            python=platform.python_version(),
            versions={name: number for name in PACKAGES if (number := _version(name))},
            machine=Machine.here(),
            load_before=round(os.getloadavg()[0], 2),
        )


@dataclass(slots=True)
class Results:
    about: About
    measurements: list[Measurement] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # deviations from the paper and their reasons, limits of the run

    def add(self, items: Iterable[Measurement | Series | Grid | str]) -> None:
        for item in items:
            match item:
                case Measurement():
                    self.measurements.append(item)
                case Series():
                    self.series.append(item)
                case Grid():
                    self.grids.append(item)
                case str():
                    self.notes.append(item)

    def of(self, experiment: str) -> list[Measurement]:
        return [m for m in self.measurements if m.experiment == experiment]

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {"format": FORMAT, **dataclasses.asdict(self)}
        body = ",\n".join(f"{json.dumps(name)}: {_lines(value)}" for name, value in told.items())
        path.write_text(f"{{\n{body}\n}}\n", encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Results:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if told.get("format") != FORMAT:
            raise ValueError(f"{path} is no result file of format {FORMAT}, but of {told.get('format')}")
        about = dict(told["about"])
        about["machine"] = Machine(**about["machine"])
        return Results(
            About(**about),
            [Measurement(**m) for m in told["measurements"]],
            [Series(**{**s, "points": tuple(tuple(p) for p in s["points"])}) for s in told["series"]],
            [_grid(grid) for grid in told["grids"]],
            list(told["notes"]),
        )


def _lines(value: Any) -> str:
    """JSON with a line for each item of a list, so that two files can be told apart by any tool."""
    if not isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in value) + "\n]"


def _grid(told: dict[str, Any]) -> Grid:
    return Grid(**{**told, "columns": tuple(told["columns"]), "rows": tuple(map(tuple, told["rows"]))})


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _compiler() -> str:
    compiler = find_compiler()
    if compiler is None:
        return "none"
    told = subprocess.run([*compiler.command, "--version"], capture_output=True, text=True, check=False).stdout
    return told.splitlines()[0] if told else compiler.command[0]


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
