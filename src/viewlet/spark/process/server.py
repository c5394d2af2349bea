"""One request after the other: what a keeper and its cells have in common."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from viewlet.durable.chain import Address, Json
from viewlet.spark.process.protocol import (
    PROOF_SECONDS,
    STALLED_SECONDS,
    Message,
    UnreachableError,
    described,
    prove_server,
    receive,
    send,
)

TICK = 0.5  # seconds between two looks at whether to go on
WAITING = 64  # clients that may wait for their turn
ELSEWHERE = ("192.0.2.1", 9)  # an address for documentation; nothing is sent there


@dataclass(frozen=True)
class Reply:
    """``after`` is done when the client has its answer and is gone."""

    header: Json
    buffers: Sequence[Any] = ()
    after: Callable[[], None] | None = None


class Listener:
    """A port that takes connections from clients that prove the token."""

    def __init__(self, host: str, token: str) -> None:
        self._token = token
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=WAITING)
        self._socket.settimeout(TICK)
        self.address = Address(host, self._socket.getsockname()[1])

    def close(self) -> None:
        self._socket.close()

    def serve(self, answer: Callable[[Message], Reply], go_on: Callable[[], bool]) -> None:
        while go_on():
            try:
                connection, _ = self._socket.accept()
            except (TimeoutError, InterruptedError):
                continue
            with connection:
                after = self._serve_one(connection, answer)
            if after is not None:
                after()

    def _serve_one(self, connection: socket.socket, answer: Callable[[Message], Reply]) -> Callable[[], None] | None:
        """A client that breaks off, or is none of ours, is of no consequence."""
        try:
            connection.settimeout(PROOF_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not prove_server(connection, self._token):
                return None
            connection.settimeout(STALLED_SECONDS)
            message = receive(connection)
        except (OSError, ValueError, UnreachableError):
            return None
        reply = _answered(answer, message)
        try:
            send(connection, reply.header, reply.buffers)
        except OSError as error:
            say(f"the client went before its answer: {error}")
        return reply.after


def _answered(answer: Callable[[Message], Reply], message: Message) -> Reply:
    try:
        return answer(message)
    except Exception as error:
        say(f"{type(error).__name__}: {error}")
        return Reply({"error": described(error)})


def say(sentence: str) -> None:
    """Into the keeper's log."""
    print(f"{os.getpid()}: {sentence}", file=sys.stderr, flush=True)


def own_host() -> str:
    """The address under which other executors reach this one."""
    if chosen := os.environ.get("SPARK_LOCAL_IP"):
        return chosen
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ELSEWHERE)
            return str(probe.getsockname()[0])
        except OSError:  # no way out of this machine: then nobody comes in either
            return "127.0.0.1"
