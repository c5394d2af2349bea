"""One request after the other, of clients that have proved the token: what a keeper and its cells have in common.

Many clients prove themselves at once, beside each other and without a thread: this process forks. Only one that has
proved the token has a turn, so a stranger who says nothing, or says it slowly, delays nobody.
"""

from __future__ import annotations

import os
import random
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from viewlet.durable.chain import Address, Json
from viewlet.errors import Error
from viewlet.spark.process.protocol import (
    PROOF_SECONDS,
    PROVED,
    STALLED_SECONDS,
    Message,
    UnreachableError,
    challenge,
    described,
    receive,
    send,
    server_proof,
)
from viewlet.spark.process.secret import Secret

TICK = 0.5  # seconds between two looks at whether to go on
WAITING = 1024  # clients that may wait until this process looks at them
MOST_STRANGERS = 256  # that may be proving themselves; with one more, the first of them goes
ELSEWHERE = ("192.0.2.1", 9)  # an address for documentation; nothing is sent there
Ports = tuple[int, int]  # the first and the last


@dataclass(frozen=True)
class Reply:
    """``after`` is done when the client has its answer and is gone."""

    header: Json
    buffers: Sequence[Any] = ()
    after: Callable[[], None] | None = None


@dataclass
class _Stranger:
    """A client that has not proved the token yet."""

    connection: socket.socket
    until: float
    asked: bytes = field(default_factory=challenge)
    said: bytes = b""


class Listener:
    """A port that takes connections from clients that prove the token."""

    def __init__(self, host: str, secret: Secret, ports: Ports | None = None) -> None:
        self._secret = secret
        self._socket = _bound(host, ports)
        self._socket.setblocking(False)
        self._selector = selectors.PollSelector()  # others are shared with a process that is forked
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._strangers: dict[int, _Stranger] = {}  # by file descriptor, the first to come first
        self._proved: deque[tuple[socket.socket, bytes]] = deque()  # and what proves this side to it
        self.address = Address(host, self._socket.getsockname()[1])

    def close(self) -> None:
        """All that this process has of it; a process that it was forked from keeps its own."""
        strangers, proved = [s.connection for s in self._strangers.values()], [c for c, _ in self._proved]
        for connection in (*strangers, *proved, self._socket):
            connection.close()

    def serve(self, answer: Callable[[Message], Reply], go_on: Callable[[], bool]) -> None:
        while go_on():
            self._look()
            if self._proved:
                connection, proof = self._proved.popleft()
                with connection:
                    after = self._serve_one(connection, proof, answer)
                if after is not None:
                    after()

    def _serve_one(
        self, connection: socket.socket, proof: bytes, answer: Callable[[Message], Reply]
    ) -> Callable[[], None] | None:
        """A client that breaks off is of no consequence. It may have waited too long for its turn."""
        try:
            connection.settimeout(STALLED_SECONDS)
            connection.sendall(proof)
            sealed = self._secret.sealed(connection, is_server=True)
        except OSError:
            return None
        with sealed:
            try:
                message = receive(sealed)
            except (OSError, ValueError, UnreachableError):
                return None
            reply = _answered(answer, message)
            try:
                send(sealed, reply.header, reply.buffers)
            except OSError as error:
                say(f"the client went before its answer: {error}")
            return reply.after

    # -- clients that prove themselves --------------------------------------------------------------------------------

    def _look(self) -> None:
        """Hear all who have something to say. Somebody who waits for an answer is not kept waiting for others."""
        for key, _ in self._selector.select(0 if self._proved else TICK):
            if key.fileobj is self._socket:
                self._take_in()
            elif key.fd in self._strangers:
                self._hear(self._strangers[key.fd])
        now = time.monotonic()
        for stranger in [s for s in self._strangers.values() if s.until < now]:
            self._turn_away(stranger)

    def _take_in(self) -> None:
        with suppress(BlockingIOError, InterruptedError, ConnectionError):
            while True:
                connection, _ = self._socket.accept()
                connection.setblocking(False)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                stranger = _Stranger(connection, time.monotonic() + PROOF_SECONDS)
                self._strangers[connection.fileno()] = stranger
                self._selector.register(connection, selectors.EVENT_READ)
                if len(self._strangers) > MOST_STRANGERS:
                    self._turn_away(next(iter(self._strangers.values())))
                with suppress(OSError):  # then it is not there any more, which shows when it is heard
                    connection.send(stranger.asked)

    def _hear(self, stranger: _Stranger) -> None:
        try:
            more = stranger.connection.recv(PROVED - len(stranger.said))
        except OSError:
            more = b""
        stranger.said += more
        if not more:
            self._turn_away(stranger)
        elif len(stranger.said) == PROVED:
            self._judge(stranger)

    def _judge(self, stranger: _Stranger) -> None:
        proof = server_proof(self._secret.token, self.address, stranger.asked, stranger.said)
        if proof is None:
            self._turn_away(stranger)
            return
        self._forget(stranger)
        self._proved.append((stranger.connection, proof))

    def _turn_away(self, stranger: _Stranger) -> None:
        self._forget(stranger)
        stranger.connection.close()

    def _forget(self, stranger: _Stranger) -> None:
        self._selector.unregister(stranger.connection)
        del self._strangers[stranger.connection.fileno()]


def _bound(host: str, ports: Ports | None) -> socket.socket:
    """Any port, or one of a range: begun anywhere in it, since other cells look for theirs."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if ports is None:
        return socket.create_server((host, 0), family=family, backlog=WAITING)
    first, last = ports
    for port in random.sample(range(first, last + 1), last + 1 - first):
        with suppress(OSError):
            return socket.create_server((host, port), family=family, backlog=WAITING)
    raise Error(f"no port from {first} to {last} is free at {host}: each cell needs one, and so does each executor")


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
