"""Two runs side by side: what changed by more than the noise of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.report.digits import amount, percent, times
from bench.report.ratios import SAME_POINT, Identity, identity, is_cut, is_printed, name_with_freshness, speed
from bench.results import About, Measurement, Results

Verdict = Literal["slower", "lost", "faster", "gained", "same"]
DIFFERENT_LOAD = 0.5  # of a core
WORSE: tuple[Verdict, ...] = ("slower", "lost")
STYLES: Mapping[Verdict, str] = MappingProxyType(
    {"slower": "bold red", "lost": "bold red", "faster": "green", "gained": "green", "same": ""}
)


@dataclass(frozen=True, slots=True)
class Change:
    """The same contestant in two runs."""

    before: Measurement
    after: Measurement
    threshold: float  # beyond the noise of both

    @property
    def speed(self) -> float | None:
        """How many times as fast it is now."""
        if not self.before.value or not self.after.value:
            return None
        return speed(self.after.value, self.before.value, self.before.unit)

    @property
    def margin(self) -> float:
        return self.before.noise + self.after.noise + self.threshold

    @property
    def verdict(self) -> Verdict:
        """``lost``: measured before, refused or missing now."""
        if self.speed is None:
            was, is_ = self.before.value is not None, self.after.value is not None
            return "same" if was == is_ else ("gained" if is_ else "lost")
        if max(self.speed, 1 / self.speed) - 1 <= self.margin:
            return "same"
        return "faster" if self.speed > 1 else "slower"


def compare(before: Results, after: Results, threshold: float) -> list[Change]:
    """What both runs measured: neither figures that the paper printed, nor ratios between contestants."""
    old, new = _by_key(before.measurements), _by_key(after.measurements)
    return [Change(old[key], new[key], threshold) for key in old if key in new]


def is_worse(changes: Iterable[Change]) -> bool:
    return any(change.verdict in WORSE for change in changes)


def only_in_one(before: Results, after: Results) -> tuple[int, int]:
    """How many measurements the first run has and the second does not, and the other way round."""
    old, new = _by_key(before.measurements), _by_key(after.measurements)
    return len(old.keys() - new.keys()), len(new.keys() - old.keys())


def _by_key(measurements: Iterable[Measurement]) -> dict[Identity, Measurement]:
    return {identity(m): m for m in measurements if not is_printed(m) and m.experiment != SAME_POINT}


# -- shown -------------------------------------------------------------------------------------------------------------


def show(before: Results, after: Results, changes: list[Change], console: Console) -> None:
    for warning in _warnings(before.about, after.about):
        console.print(warning, style="yellow", highlight=False)
    table = Table("experiment", "query", "contestant")
    for heading in ("before", "after", "times as fast", "margin"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for change in changes:
        table.add_row(*_cells(change), style=STYLES[change.verdict])
    console.print(table)
    counts = Counter(change.verdict for change in changes)
    told = [f"{counts[verdict]} {verdict}" for verdict in STYLES if counts[verdict]] or ["nothing in common"]
    lost, new = only_in_one(before, after)
    told += [f"{lost} only before"] * bool(lost) + [f"{new} only after"] * bool(new)
    console.print(", ".join(told), highlight=False)


def _cells(change: Change) -> list[Text]:
    before, after = change.before, change.after
    speed = change.speed
    words = [
        before.experiment,
        before.query,
        name_with_freshness(before),
        _value(before),
        _value(after),
        times(speed) if speed is not None else "",
        f"±{percent(change.margin)}",
        change.verdict if change.verdict != "same" else "",
    ]
    return list(map(Text, words))


def _value(measurement: Measurement) -> str:
    if measurement.value is None:
        return measurement.outcome
    noise = f" ({percent(measurement.noise)})" if measurement.repetitions > 1 else ""
    return f"{amount(measurement.value, measurement.unit)}{'†' * is_cut(measurement)} {measurement.unit}{noise}"


def _warnings(before: About, after: About) -> list[str]:
    """What makes a comparison say less than it seems to."""
    told = []
    if before.machine != after.machine:
        told.append("not the same machine or compiler: differences may be the machine's")
    if before.command != after.command:
        told.append(f"not the same command: {before.command}; {after.command}")
    if abs(before.load_before - after.load_before) > DIFFERENT_LOAD:
        told.append(f"not the same load before it: {before.load_before:.1f}, then {after.load_before:.1f}")
    return told
