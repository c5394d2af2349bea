"""What runs in a Spark worker: a batch is handed to its cell, wherever that is, or to a new one here.

The address in a ticket is a hint. A cell that is gone, or cannot be reached, is opened at this executor's own keeper,
and makes itself again from the store; what the other one may still be doing has no effect.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.durable.chain import Address, Chain, Json
from viewlet.durable.store import Store
from viewlet.errors import Error
from viewlet.spark.process.artefact import packed
from viewlet.spark.process.events import Rows, log_parts, segments
from viewlet.spark.process.nursery import born
from viewlet.spark.process.process import LOOPBACK, NOTE, Process, Settings, directory_for, locked, owner, started
from viewlet.spark.process.protocol import BehindError, Message, UnreachableError, ask
from viewlet.spark.process.ticket import Answer, Artefact, Part, Request, Run, Split, Ticket, new_run

__all__ = [
    "Answer",
    "Artefact",
    "Part",
    "Rows",
    "Run",
    "Split",
    "Ticket",
    "apply",
    "apply_held",
    "hold",
    "new_run",
    "open_here",
    "part_rows",
    "stop",
]


def apply(ticket: Ticket, rows: Iterable[Rows]) -> Answer:
    """Have the cell take a batch: static rows first, inserts before the deletes that need them. Its errors are raised.

    The first answer of a cell has all rows of its results, also those of an aggregate over nothing: each cell must
    be asked once, rows or not. Later a cell without rows in a batch need not be.
    """
    buffers = [_packed(ticket, rows)]
    if ticket.address is not None:
        with suppress(UnreachableError):
            return _applied(ticket, ticket.address, _request(ticket), buffers)
    try:
        return _applied(ticket, open_here(ticket), _request(ticket, ticket.chain()), buffers)
    except UnreachableError as error:
        raise Error(f"cell {ticket.cell} ended while it applied batch {ticket.batch}: {error}") from error


def hold(ticket: Ticket, name: str, rows: Iterable[Rows]) -> None:
    """Leave some rows of a batch with its cell, which does nothing with them until :func:`apply_held`."""
    header = {"do": "hold", "cell": ticket.cell, "batch": ticket.batch, "name": name}
    ask(_known(ticket), ticket.run.secret, header, [_packed(ticket, rows)])


def apply_held(ticket: Ticket, names: Sequence[str]) -> Answer:
    """Have the cell take what it holds under these names as a batch, inserts first. UnreachableError if it cannot."""
    return _applied(ticket, _known(ticket), {**_request(ticket), "held": list(names)}, [])


def _applied(ticket: Ticket, address: Address, header: Json, buffers: list[bytes]) -> Answer:
    """A cell that is at another version is asked again, and told how to get to this one."""
    try:
        return _answer(ask(address, ticket.run.secret, header, buffers))
    except BehindError:
        told = {**header, **_request(ticket, ticket.chain())}
        return _answer(ask(address, ticket.run.secret, told, buffers))


def _known(ticket: Ticket) -> Address:
    if ticket.address is None:
        raise UnreachableError(f"nobody knows where cell {ticket.cell} is")
    return ticket.address


def _request(ticket: Ticket, chain: Chain | None = None) -> Json:
    attempt = secrets.token_hex(8)
    named = (ticket.publish, ticket.splits, ticket.absent, ticket.bounds)
    request = Request(ticket.batch, attempt, ticket.version, chain, *named)
    return {"do": "apply", "cell": ticket.cell, "request": request.to_json()}


def _packed(ticket: Ticket, rows: Iterable[Rows]) -> bytes:
    return b"".join(log_parts(ticket.batch, segments(rows)))


def _answer(message: Message) -> Answer:
    answer = Answer.from_json(message.header["answer"])
    parts = zip(message.header["parts"], message.buffers, strict=True)
    return replace(answer, parts=tuple(Part(view, part, bytes(data)) for (view, part), data in parts))


def part_rows(relation: str, parts: Iterable[bytes]) -> list[Rows]:
    """The partial changes that a merge cell gets of one view, as rows of its relation: what came before what went."""
    batches = [batch for data in parts for batch in pa.ipc.open_stream(pa.py_buffer(data))]
    came = [_rows(relation, 1, batch) for batch in batches]
    went = [_rows(relation, -1, batch) for batch in batches]
    return [rows for rows in [*came, *went] if rows.batch.num_rows]


def _rows(relation: str, weight: int, batch: pa.RecordBatch) -> Rows:
    chosen = batch.filter(pc.equal(batch.column(0), weight))
    return Rows(relation, weight, chosen.select(chosen.schema.names[1:]))


def stop(run: Run, addresses: Iterable[Address]) -> None:
    """End the cells at these addresses, and with the last of them their keepers."""
    for address in addresses:
        with suppress(UnreachableError):
            ask(address, run.secret, {"do": "stop"})


# -- this executor's keeper --------------------------------------------------------------------------------------------


def open_here(ticket: Ticket) -> Address:
    """By the keeper of this executor. The first task that needs it starts it.

    Who asks has found nobody where the ticket says that the cell is.
    """
    run, of = ticket.run, owner()
    directory = directory_for(run.id, of)
    artefact, buffers = packed(Store(run.store), ticket.artefact)
    gone = None if ticket.address is None else ticket.address.to_json()
    header = {"do": "open", "cell": ticket.cell, "artefact": artefact, "gone": gone}

    def opened(keeper: Address) -> Address:
        return Address.from_json(ask(keeper, run.secret, header, buffers).header["address"])

    with locked(directory):
        note = directory / NOTE
        with suppress(FileNotFoundError, UnreachableError):
            return opened(Address.from_json(json.loads(note.read_text())))
        keeper = _start(run, of, directory)
        note.write_text(json.dumps(keeper.to_json()))
        try:
            return opened(keeper)
        except UnreachableError as error:
            raise Error(f"cell {ticket.cell} cannot be opened: its keeper ended at once ({error})") from error


def _start(run: Run, of: Process, directory: Path) -> Address:
    """In a local session one run follows another, so that a nursery pays."""
    settings = Settings(str(directory), run.secret, run.host, run.store, run.idle, of.pid, of.started, run.ports)
    if run.host == LOOPBACK and (address := born(settings, of)) is not None:
        return address
    return Address.from_json(json.loads(started("viewlet.spark.process.keeper", asdict(settings))))
