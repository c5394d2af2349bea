"""A cell on its way to another executor: a second process of it makes itself ready there, while the first one goes on.

Nobody waits for it. A task of each batch looks whether it is ready; the first to look opens it. It reads a snapshot and
logs, as after a loss, and says so in a note. From then on the driver sends its rows there, and it takes the few logs
that it lacks.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from viewlet.durable.chain import Address
from viewlet.errors import Error
from viewlet.spark.process.client import open_here
from viewlet.spark.process.process import directory_for, home_of, locked, owner
from viewlet.spark.process.protocol import UnreachableError, ask
from viewlet.spark.process.server import own_host
from viewlet.spark.process.ticket import Run, Standby, Ticket

SOON = 1.0  # seconds: who took longer to be ready lacks many logs by then, and takes them before it is switched to
ASKED = ""  # in a note, until the cell has said something


def here(run: Run) -> str:
    """This executor, as its cells call it."""
    return home_of(run.host or own_host(), owner())


def stand_by(ticket: Ticket, since: int) -> Standby | None:
    """Have the cell made ready on this executor; None while it is not. That it cannot be harms nothing."""
    try:
        directory = directory_for(ticket.run.id, owner())
        note = directory / f"{ticket.cell}-{since}.standby"
        with locked(directory):
            told = _told(note)
            is_mine = told is None or (told is not ASKED and _is_late(told))
            if is_mine:
                note.write_text(ASKED)
        if is_mine:
            _prepare(ticket, since, note)
            return None
        return Standby.from_json(json.loads(told)) if told else None
    except (Error, UnreachableError, OSError) as error:
        return Standby(ticket.cell, since, why=str(error) or type(error).__name__)


def _told(note: Path) -> str | None:
    """None where nobody has asked yet."""
    with suppress(FileNotFoundError):
        return note.read_text() or ASKED
    return None


def _is_late(told: str) -> bool:
    standby = Standby.from_json(json.loads(told))
    return not standby.why and standby.seconds > SOON


def _prepare(ticket: Ticket, since: int, note: Path) -> None:
    header = {"do": "prepare", "cell": ticket.cell, "since": since, "chain": ticket.chain().to_json()}
    ask(open_here(ticket), ticket.run.secret, {**header, "note": str(note)})


def leave(run: Run, cell: str, address: Address) -> None:
    """End the process that a cell was before it moved; another cell that has its port by now goes on."""
    with suppress(UnreachableError):
        ask(address, run.secret, {"do": "leave", "cell": cell})
