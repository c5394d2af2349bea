"""What a job shows while it is at work: a live screen in a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from viewlet.cli.fitted import fitted
from viewlet.cli.pane import Pane
from viewlet.cli.shelves import arranged
from viewlet.cli.sparkline import History, Point, sparkline
from viewlet.database.looking import Window
from viewlet.database.shown import column_texts
from viewlet.errors import Error
from viewlet.jobs.run import Batches, Progress

PAINT_EVERY = 0.25  # seconds
RECENT = 3.0  # seconds: the rate on the screen covers the last three
IDLE = 1.0  # seconds without a batch, after which a job that reads on waits
SHOWN_ROWS = 3  # on a line
LAST_ROWS = 10  # of each view, when the job is over
NO_END = 1 << 20  # lines: what scrolls is not bound to the height of a terminal
HEAD = 4  # lines above the views, and one below
WIDEST_BARS = 40


class Screen:
    def __init__(self, run: Batches, console: Console, title: str) -> None:
        self.run, self.console = run, console
        self.last: Progress | None = None
        self.history = History()
        self._title, self._started = title, time.monotonic()
        self._batch_ended, self._batches = self._started, 0  # a job may go on from an earlier one's batches
        self._panes = {name: Pane(window.shape) for name, window in run.views.items()}

    @property
    def is_live(self) -> bool:
        return self.console.is_terminal and not self.console.is_dumb_terminal

    def show(self) -> None:
        """Until the job ends."""
        if self.is_live:
            self._live()
            return
        for progress in self.run.batches():
            self._note(progress)
            self._print(self._line(progress))

    def show_views(self) -> None:
        """When the job is over: what came of it."""
        if self.is_live:
            self._look()
            for pane in self._panes.values():
                pane.settle(LAST_ROWS)
            self.console.print(arranged(list(self._panes.values()), self.console.width, NO_END))
            self.console.print(self._summary())
            return
        for name, window in self.run.views.items():
            self._print(f"{name}: {first_rows(window)}")

    def _print(self, line: str) -> None:
        self.console.out(line, highlight=False)

    def _note(self, progress: Progress) -> None:
        now, before = time.monotonic(), self.last.rows if self.last else 0
        self.history.add(Point(progress.rows - before, now - self._batch_ended, progress.seconds))
        self.last, self._batch_ended = progress, now
        self._batches += 1

    # -- in a terminal -------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        """Batches come in this thread. Others look at the views and paint, also during a long batch or a long look."""
        over = threading.Event()
        first = self.frame(self.console.width, self.console.height)
        with Live(first, console=self.console, screen=True, auto_refresh=False) as live:
            threads = [threading.Thread(target=self._paint, args=(live, over.wait), name="viewlet-screen", daemon=True)]
            threads += [threading.Thread(target=self._watch, args=(over.wait,), name="viewlet-look", daemon=True)]
            try:
                for thread in threads:
                    thread.start()
                for progress in self.run.batches():
                    self._note(progress)
            finally:
                over.set()
                for thread in threads:
                    thread.join()

    def _paint(self, live: Live, is_over: Callable[[float], bool]) -> None:
        was_over = False
        while not was_over:  # the last batch is painted, too
            was_over = is_over(PAINT_EVERY)
            live.update(self.frame(self.console.width, self.console.height), refresh=True)

    def _watch(self, is_over: Callable[[float], bool]) -> None:
        """Look when there was a batch since the last look, and no more often than is cheap."""
        looked_at, pause = -1, 0.0
        while not is_over(max(pause, PAINT_EVERY)):
            batches = self.last.batches if self.last else 0
            is_due = batches != looked_at and (batches > 0 or self.run.is_endless)
            pause = self._look() / self.run.look_share if is_due else 0.0
            looked_at = batches if is_due else looked_at

    def _look(self) -> float:
        """How long it took."""
        start = time.monotonic()
        for name, window in self.run.views.items():
            try:
                self._panes[name].take(window.look())
            except Error as error:
                self._panes[name].fail(str(error))
        return time.monotonic() - start

    def frame(self, width: int, height: int) -> RenderableType:
        """All of the screen: where it stands, how fast it goes, the views, and how to stop it."""
        panes = arranged(list(self._panes.values()), width, height - HEAD - 1)
        return Group(*self._head(width), panes, self._foot(width))

    def _head(self, width: int) -> list[RenderableType]:
        elapsed = _clock(time.monotonic() - self._started)
        engine = "  ".join(filter(None, (self.last.engine, *_of_spark(self.last)))) if self.last else ""
        title = Text.assemble(("viewlet ", "bold cyan"), (self._title, "bold"), f"  {engine}", no_wrap=True)
        title.truncate(max(width - len(elapsed) - 1, 0), overflow="ellipsis", pad=True)
        return [title + Text(f" {elapsed}", style="dim"), self._bar(width), self._figures(width), Text()]

    def _bar(self, width: int) -> RenderableType:
        last = self.last
        if last is None:
            status, done, of = "waiting for the first batch", 0, 1
        elif self.run.is_endless:
            is_idle = time.monotonic() - self._batch_ended > IDLE
            status = f"batch {last.batches:,}  {'waits for rows' if is_idle else 'reads'}"
            done, of = last.batches, last.of
        else:
            status = f"batch {last.batches:,}/{last.of:,}  {100 * last.batches // max(last.of, 1)}%  {self._eta(last)}"
            done, of = last.batches, last.of
        line = Table.grid(padding=(0, 1, 0, 0), expand=True)
        line.add_column(ratio=1)
        line.add_column(no_wrap=True, justify="right")
        room = width - len(status) - 2
        bar = ProgressBar(of or 1, done, pulse=last is None) if room > 4 else Text()
        line.add_row(bar, Text(fitted(status, width)))
        return line

    def _eta(self, last: Progress) -> str:
        if last.batches >= last.of:
            return "done"
        each = (self._batch_ended - self._started) / self._batches
        return f"ETA {_clock((last.of - last.batches) * each)}"

    def _figures(self, width: int) -> RenderableType:
        """Bars have what the words leave."""
        now = self.history.recent(RECENT)
        rate, seconds = f"{now.rate:,.0f} rows/s", _milliseconds(self.last.seconds if self.last else 0)
        rows = f"{self.last.rows if self.last else 0:,} rows"
        words = len(f"rate  {rate}   batch  {seconds}   {rows}")
        bars = max(min((width - words - 4) // 2, WIDEST_BARS), 0)
        points = self.history.bars(bars) if bars else []
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append("rate ", "dim").append(_spaced([p.rate for p in points]), "green").append(f"{rate}   ")
        line.append("batch ", "dim").append(_spaced([p.slowest for p in points]), "magenta").append(f"{seconds}   ")
        return line.append(rows, "dim")

    def _foot(self, width: int) -> Text:
        if self.run.stop.asked:
            return Text(fitted("stops after this batch; Ctrl-C again does not wait for it", width), style="yellow")
        return Text(fitted("Ctrl-C stops after the batch at work", width), style="dim")

    def _summary(self) -> Text:
        seconds = self._batch_ended - self._started
        rows = self.last.rows if self.last else 0
        slowest = max((p.slowest for p in self.history.points), default=0.0)
        words = (
            f"{self._batches:,} batch{'' if self._batches == 1 else 'es'}, {rows:,} rows in {seconds:,.1f} s",
            f"{rows / max(seconds, 1e-9):,.0f} rows/s {sparkline([p.rate for p in self.history.bars(20)])}",
            f"slowest batch {_milliseconds(slowest)}",
        )
        return Text("  ".join(words), style="dim")

    # -- a line --------------------------------------------------------------------------------------------------------

    def _line(self, progress: Progress) -> str:
        rate = progress.rows / max(time.monotonic() - self._started, 1e-9)
        parts = [
            f"batch {progress.batches}/{progress.of}",
            f"{progress.rows:,} rows read",
            f"{rate:,.0f} rows/s",
            f"last batch {_milliseconds(progress.seconds)}",
            *_of_spark(progress),
            progress.engine,
        ]
        return "  ".join(part for part in parts if part)


def first_rows(window: Window) -> str:
    """A few rows on one line."""
    look = window.look()
    rows = look.rows[:SHOWN_ROWS]
    columns = [
        column_texts([row[place] for row in rows], column.type, is_key=place in window.shape.keys)
        for place, column in enumerate(window.shape.columns)
    ]
    shown = " | ".join(map(" ".join, zip(*columns, strict=True)))
    return f"{shown or 'empty'}{' | …' * (len(look.rows) > SHOWN_ROWS)}"


def _spaced(values: list[float]) -> str:
    return f"{sparkline(values)} " if values else ""


def _of_spark(progress: Progress) -> list[str]:
    cells = f"{progress.cells} cells" if progress.cells else ""
    return [cells, f"{progress.state_bytes / 1e6:,.1f} MB of state" if progress.state_bytes else ""]


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms"


def _clock(seconds: float) -> str:
    """
    >>> _clock(7.9), _clock(3725)
    ('0:00:07', '1:02:05')
    """
    return str(timedelta(seconds=int(seconds)))
