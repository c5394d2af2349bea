"""What a job shows while it is at work: a live screen in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from viewlet.jobs.run import Progress, Run

SHOWN_ROWS = 3
LOOK_EVERY = 2.0  # seconds: on Spark, looking at a view is a query of its own


@dataclass
class Screen:
    run: Run
    console: Console
    started: float = field(default_factory=time.monotonic)
    looked: float = 0.0
    first_rows: dict[str, str] = field(default_factory=dict)
    last: Progress | None = None

    def show(self) -> None:
        """Until the job ends."""
        if self.console.is_terminal:
            self._live()
        else:
            for progress in self.run.batches():
                self.last = progress
                self._print(self._line(progress))

    def show_views(self) -> None:
        for view in self.run.views:
            self._print(f"{view}: {self._first_rows(view)}")

    def _print(self, line: str) -> None:
        self.console.out(line, highlight=False)

    def _live(self) -> None:
        with Live(console=self.console, auto_refresh=False, transient=True) as screen:
            for progress in self.run.batches():
                self.last = progress
                if time.monotonic() - self.looked >= LOOK_EVERY:
                    self.first_rows = {view: self._first_rows(view) for view in self.run.views}
                    self.looked = time.monotonic()
                screen.update(Group(self._table(), Text(self._line(progress))), refresh=True)

    def _table(self) -> Table:
        table = Table("view", "fresh rows")
        for view, rows in self.first_rows.items():
            table.add_row(view, rows)
        return table

    def _first_rows(self, view: str) -> str:
        rows = self.run.rows(view, SHOWN_ROWS + 1)
        shown = " | ".join(" ".join(map(_value, row)) for row in rows[:SHOWN_ROWS])
        return f"{shown or 'empty'}{' | …' * (len(rows) > SHOWN_ROWS)}"

    def _line(self, progress: Progress) -> str:
        rate = progress.rows / max(time.monotonic() - self.started, 1e-9)
        parts = [
            f"batch {progress.batches}/{progress.of}",
            f"{progress.rows:,} rows read",
            f"{rate:,.0f} rows/s",
            f"last batch {1000 * progress.seconds:,.0f} ms",
            progress.cells and f"{progress.cells} cells",
            progress.state_bytes and f"{progress.state_bytes / 1e6:,.1f} MB of state",
            progress.engine,
        ]
        return "  ".join(str(part) for part in parts if part)


def _value(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
