"""How a worker and a cell talk: proof of the run's token first, both ways, then messages: JSON and buffers.

The token itself is never sent. Each side sends a random challenge and answers the other's with its HMAC, so neither
a stranger at a cell's port nor a stranger behind a port that a cell has left learns anything or is told anything.
The proof is of one address: who has a port that a cell has left cannot hand on what it hears there to another cell.
Where the run's connections are encrypted, TLS begins after the proof: a stranger costs a cell no handshake.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from viewlet.durable.chain import Address, Json
from viewlet.errors import CorruptError, DataError, Error, OutOfRangeError
from viewlet.spark.process.secret import Secret

CHALLENGE = 32  # bytes, as many as the answers have
LONGEST_HEADER = 1 << 30
CONNECT_SECONDS = 5.0
PROOF_SECONDS = 5.0  # in which a client must have proved itself: it has nothing else to do
BUSY_SECONDS = (
    60.0  # in which a cell must be done with its last request; longer ones are opened again, which is as right
)
STALLED_SECONDS = 60.0  # without a byte from a client that is in the middle of its request
KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}  # notices a host that vanished in 25 s


class UnreachableError(Exception):
    """Nobody there who knows the token, or not the one who is meant: the cell must be opened elsewhere."""


class BehindError(Exception):
    """The cell is at another version than a request starts from, and was not told what leads to that one."""


@dataclass(frozen=True)
class Message:
    header: Json
    buffers: tuple[Any, ...] = ()


# -- messages ----------------------------------------------------------------------------------------------------------


def send(connection: socket.socket, header: Json, buffers: Sequence[Any] = ()) -> None:
    sizes = [memoryview(buffer).nbytes for buffer in buffers]
    text = json.dumps([header, sizes], separators=(",", ":")).encode()
    connection.sendall(len(text).to_bytes(4, "little") + text)
    for buffer in buffers:
        connection.sendall(buffer)


def receive(connection: socket.socket) -> Message:
    length = int.from_bytes(_exactly(connection, 4), "little")
    if length > LONGEST_HEADER:
        raise UnreachableError(f"a message whose header has {length} bytes")
    header, sizes = json.loads(bytes(_exactly(connection, length)))
    return Message(header, tuple(_exactly(connection, size) for size in sizes))


def _exactly(connection: socket.socket, size: int) -> pa.Buffer:
    """The next bytes, in memory that Arrow arrays may lie in."""
    buffer = pa.allocate_buffer(size)
    rest = memoryview(buffer).cast("B")
    while rest:
        count = connection.recv_into(rest)
        if not count:
            raise UnreachableError("the connection ended in the middle of a message")
        rest = rest[count:]
    return buffer


# -- proof of the token ------------------------------------------------------------------------------------------------


def prove_client(connection: socket.socket, token: str, server: Address) -> None:
    """What a client does first; UnreachableError where the other side does not know the token."""
    theirs, mine = _exactly(connection, CHALLENGE), os.urandom(CHALLENGE)
    connection.sendall(_proof(token, b"client", server, theirs) + mine)
    if not hmac.compare_digest(bytes(_exactly(connection, CHALLENGE)), _proof(token, b"server", server, mine)):
        raise UnreachableError("another process has the port now")


def challenge() -> bytes:
    """What a server says first."""
    return os.urandom(CHALLENGE)


PROVED = 2 * CHALLENGE  # bytes that a client sends then: its proof, and a challenge of its own


def server_proof(token: str, server: Address, mine: bytes, said: bytes) -> bytes | None:
    """What a server answers to that; None where the client does not know the token, or means another server."""
    proof, theirs = said[:CHALLENGE], said[CHALLENGE:]
    if not hmac.compare_digest(proof, _proof(token, b"client", server, mine)):
        return None
    return _proof(token, b"server", server, theirs)


def _proof(token: str, side: bytes, server: Address, challenge: Any) -> bytes:
    where = f" {server.host}:{server.port} ".encode()
    return hmac.digest(token.encode(), side + where + bytes(challenge), "sha256")


# -- a client's side ---------------------------------------------------------------------------------------------------


def ask(address: Address, secret: Secret, header: Json, buffers: Sequence[Any] = ()) -> Message:
    """One request and its answer. The answer takes as long as it takes; a peer that is gone is noticed."""
    try:
        with socket.create_connection((address.host, address.port), CONNECT_SECONDS) as connection:
            connection.settimeout(BUSY_SECONDS)
            _keep_alive(connection)
            prove_client(connection, secret.token, address)
            with secret.sealed(connection, is_server=False) as sealed:
                sealed.settimeout(None)
                send(sealed, header, buffers)
                answer = receive(sealed)
    except (OSError, ValueError) as error:
        raise UnreachableError(f"{address.host}:{address.port}: {error}") from error
    if "error" in answer.header:
        raise raised(answer.header["error"])
    return answer


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


# -- errors ------------------------------------------------------------------------------------------------------------

KINDS: dict[str, type[Error]] = {kind.__name__: kind for kind in (Error, OutOfRangeError, CorruptError)}


def described(error: BaseException) -> Json:
    """An error as a message's header; one that is no error of ours comes with where it happened."""
    if isinstance(error, DataError):
        where = {"relation": error.relation, "row": error.row, "column": error.column}
        return {"kind": "DataError", "message": error.message, **where, "value": repr(error.value)}
    if isinstance(error, UnreachableError | BehindError):
        return {"kind": "unreachable" if isinstance(error, UnreachableError) else "behind", "message": str(error)}
    if isinstance(error, Error):
        kind = next(known.__name__ for known in type(error).__mro__ if known.__name__ in KINDS)
        return {"kind": kind, "message": str(error)}
    text = "".join(traceback.format_exception(error))
    return {"kind": "Error", "message": f"a cell failed: {error!r}\n{text}"}


def raised(error: Json) -> Exception:
    """The error that was described."""
    if error["kind"] == "unreachable":
        return UnreachableError(error["message"])
    if error["kind"] == "behind":
        return BehindError(error["message"])
    if error["kind"] == "DataError":
        where = {"relation": error["relation"], "row": error["row"], "column": error["column"]}
        return DataError(error["message"], **where, value=error["value"])
    return KINDS[error["kind"]](error["message"])
