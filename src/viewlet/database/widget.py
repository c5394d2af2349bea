"""A view in a notebook that repaints itself when the view changes."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from viewlet.database.looking import Memory, Shape, Window
from viewlet.database.shown import column_texts
from viewlet.database.view import View
from viewlet.errors import Error
from viewlet.session.changes import Change

try:
    import anywidget
    import traitlets
except ImportError as missing:
    raise Error("a live view needs anywidget: pip install 'viewlet[notebook]'") from missing

EVERY = 0.1  # seconds between two paints, however many updates there were
SHARE = 0.1  # of the time that looks take at most
HERE = Path(__file__).parent


class LiveView(anywidget.AnyWidget):  # type: ignore[misc]  # it is optional, so nothing is known of it
    """At most ``most`` rows of a view. ``close()`` ends it.

    Updates only say that there was one. A thread of the widget looks and paints then, so a writer does not wait.
    """

    _esm = (HERE / "widget.js").read_text(encoding="utf-8")
    _css = (HERE / "widget.css").read_text(encoding="utf-8")
    painted = traitlets.Dict().tag(sync=True)

    def __init__(self, view: View, most: int) -> None:
        shape = Shape.of(view._result)
        self._view, self._most = view, most
        self._window, self._memory = Window(shape, view.first, view.__len__), Memory(shape)
        self._changed, self._over = threading.Event(), threading.Event()
        super().__init__(painted=self._blank())
        self._end = view.subscribe(self._tell, self._changed.set)
        self._paint()
        threading.Thread(target=self._follow, name=f"viewlet-{shape.name}", daemon=True).start()

    def __repr__(self) -> str:
        return f"<live {repr(self._view)[1:]}"

    def _repr_mimebundle_(self, **given: Any) -> Any:
        """Where nothing runs, as on a page that shows a saved notebook, a table of this moment takes its place."""
        shown, *more = super()._repr_mimebundle_(**given)
        return {**shown, "text/plain": repr(self), "text/html": self._view._repr_html_()}, *more

    def close(self) -> None:
        """It is told nothing more, and paints no more."""
        if not self._over.is_set():
            self._over.set()
            self._changed.set()
            self._end()
        super().close()

    def _tell(self, change: Change) -> None:
        if not self._changed.is_set():
            self._changed.set()

    def _follow(self) -> None:
        pause = EVERY
        while not self._over.wait(pause):
            self._changed.wait()
            self._changed.clear()
            if not self._over.is_set():
                start = time.monotonic()
                self._paint()
                pause = max(EVERY, (time.monotonic() - start) / SHARE)

    def _paint(self) -> None:
        try:
            self.painted = self._look()
        except Error as error:
            self.painted = {**self._blank(), "problem": str(error)}

    def _blank(self) -> dict[str, Any]:
        columns = self._window.shape.columns
        return {
            "name": self._window.shape.name,
            "columns": [column.name for column in columns],
            "numeric": [column.type.is_numeric for column in columns],
            "rows": [],
            "marks": [],
            "caption": "",
            "problem": "",
        }

    def _look(self) -> dict[str, Any]:
        shape, look = self._window.shape, self._window.look()
        rows, marks = look.rows[: self._most], self._memory.compared(look.rows)[: self._most]
        columns = [
            column_texts([row[place] for row in rows], column.type, is_key=place in shape.keys)
            for place, column in enumerate(shape.columns)
        ]
        texts = [
            [None if value is None else text for text, value in zip(shown, row, strict=True)]
            for shown, row in zip(zip(*columns, strict=True), rows, strict=True)
        ]
        return {**self._blank(), "rows": texts, "marks": marks, "caption": look.counted(len(rows))}
