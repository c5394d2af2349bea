"""The clock of a database: now() is the moment that somebody told it last."""

from __future__ import annotations

import datetime as dt
from typing import Any

from viewlet.database.listening import Updating
from viewlet.errors import Error
from viewlet.rows.boundary import to_cell
from viewlet.schema import CLOCK


class Clock(Updating):
    """The part of a database that knows what time it is."""

    _moment: dt.datetime | None = None  # of the last tick

    def tick(self, moment: dt.datetime | None = None) -> None:
        """Set the clock that ``now()``, ``current_timestamp`` and ``current_date`` show in views, and refresh those.

        Without an argument it is the time of this machine. A moment without a time zone is one of UTC. The clock stands
        still between two calls. A view with ``now()`` in it starts at the moment of the last tick, or else of its
        definition. All rows that enter or leave the view by a tick do so in one update.
        """
        if moment is not None and not isinstance(moment, dt.datetime):
            raise Error(f"tick takes a datetime, not {moment!r}: db.tick(datetime(2026, 1, 31, 12, 30))")
        with self._turn.writing():
            self._moment = moment or dt.datetime.now(dt.timezone.utc)
            if CLOCK.name not in self._running.relations:
                return
            self._meanwhile(lambda session, shown: session.tick(shown), self._shown())

    def _wind(self) -> None:
        """The clock of a view that is the first with now() in it."""
        session = self._running
        if CLOCK.name in session.relations and not session.engine.table(CLOCK.name):
            self._moment = self._moment or dt.datetime.now(dt.timezone.utc)
            session.tick(self._shown())

    def _shown(self) -> Any:
        return to_cell(self._moment, CLOCK.columns[0].type)
