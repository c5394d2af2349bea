"""Encrypted cells: what goes over the wire tells nothing, and only who has the run's own certificate is heard."""

from __future__ import annotations

import select
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from tests.spark.cell_driver import LOOPBACK, Driver, batch, gone, place_at
from viewlet.durable.chain import Address
from viewlet.errors import Error
from viewlet.spark.driver import encryption
from viewlet.spark.driver.encryption import check_encrypted, run_pem
from viewlet.spark.process import protocol
from viewlet.spark.process.client import Rows, apply, stop
from viewlet.spark.process.protocol import Message, UnreachableError, ask
from viewlet.spark.process.secret import Secret, new_pem
from viewlet.spark.process.server import Listener, Reply

PEM = new_pem()
SECRET = Secret("token", PEM)
MOMENT = 0.05  # seconds
connected = socket.create_connection
TELLTALE = b"nobody but the cell may read this"


class Careless(Secret):
    """Takes any certificate, or none."""

    def sealed(self, connection: socket.socket, *, is_server: bool) -> socket.socket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self.pem:
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(self.pem)
                file.flush()
                context.load_cert_chain(file.name)
        return context.wrap_socket(connection, server_side=is_server)


OTHERS = {
    "another certificate": Secret("token", new_pem()),
    "another certificate, and takes any": Careless("token", new_pem()),
    "no certificate, and takes any": Careless("token"),
    "no certificate": Secret("token"),
    "another token": Secret("another", PEM),
}


@dataclass
class Wire:
    """Hands on what clients and a server say, and keeps a copy.

    It is between the two, and neither notices (``tapped``), or it has a port of its own (``at_another_port``).
    """

    server: Address
    heard: bytearray = field(default_factory=bytearray)
    is_over: bool = False

    @contextmanager
    def tapped(self) -> Iterator[Address]:
        with self.at_another_port() as mine:

            def through_here(address: tuple[str, int], *given: Any) -> socket.socket:
                return connected(tuple(mine.to_json()) if Address(*address) == self.server else address, *given)

            with mock.patch.object(socket, "create_connection", through_here):
                yield self.server

    @contextmanager
    def at_another_port(self) -> Iterator[Address]:
        with socket.create_server((LOOPBACK, 0)) as listening:
            listening.settimeout(MOMENT)
            handing = threading.Thread(target=self._hand_on_all, args=(listening,))
            handing.start()
            try:
                yield Address(LOOPBACK, listening.getsockname()[1])
            finally:
                self.is_over = True
                handing.join()

    def _hand_on_all(self, listening: socket.socket) -> None:
        while not self.is_over:
            with suppress(TimeoutError), listening.accept()[0] as client, self._reached() as server:
                self._hand_on(client, server)

    def _reached(self) -> socket.socket:
        return connected((self.server.host, self.server.port))

    def _hand_on(self, client: socket.socket, server: socket.socket) -> None:
        """Until one of them has ended."""
        with suppress(ConnectionError):
            while True:
                for source in select.select([client, server], [], [])[0]:
                    if not (data := source.recv(1 << 16)):
                        return
                    self.heard += data
                    (server if source is client else client).sendall(data)


@contextmanager
def echoing(secret: Secret) -> Iterator[tuple[Address, list[Message]]]:
    """A server that answers with what it is told."""
    listener, heard, ends = Listener(LOOPBACK, secret), list[Message](), threading.Event()

    def answer(message: Message) -> Reply:
        heard.append(message)
        return Reply(message.header, message.buffers)

    serving = threading.Thread(target=listener.serve, args=(answer, lambda: not ends.is_set()))
    serving.start()
    try:
        yield listener.address, heard
    finally:
        ends.set()
        serving.join()
        listener.close()


# -- a server and its clients ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", [SECRET, Secret("token")], ids=["encrypted", "not encrypted"])
def test_what_is_said_is_to_be_read_off_the_wire_only_if_it_is_not_encrypted(secret: Secret) -> None:
    large = pa.py_buffer(TELLTALE * 100_000)  # many pieces of TLS's
    with echoing(secret) as (address, _), (wire := Wire(address)).tapped() as tapped:
        answer = ask(tapped, secret, {"do": "tell", "name": "telltale"}, [TELLTALE, large])
    assert [bytes(buffer) for buffer in answer.buffers] == [TELLTALE, large.to_pybytes()]
    assert len(wire.heard) > 2 * large.size
    seen = [text in wire.heard for text in (TELLTALE, b"telltale", secret.token.encode())]
    assert seen == ([False] * 3 if secret.pem else [True, True, False])


@pytest.mark.parametrize("kind", OTHERS)
def test_others_are_not_heard(kind: str) -> None:
    with echoing(SECRET) as (address, heard):
        with pytest.raises(UnreachableError):
            ask(address, OTHERS[kind], {"do": "tell"}, [TELLTALE])
        assert ask(address, SECRET, {"do": "tell"}).header == {"do": "tell"}, "the next one is"
    assert [message.header for message in heard] == [{"do": "tell"}]
    assert not heard[0].buffers


@pytest.mark.parametrize("kind", OTHERS)
def test_others_are_told_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has the port of a cell by now, and perhaps knows the token."""
    monkeypatch.setattr(protocol, "BUSY_SECONDS", 1.0)
    refused = pytest.raises(UnreachableError)
    with echoing(OTHERS[kind]) as (address, heard), (wire := Wire(address)).tapped() as tapped, refused:
        ask(tapped, SECRET, {"do": "tell"}, [TELLTALE])
    assert not heard
    assert TELLTALE not in wire.heard


@pytest.mark.parametrize("secret", [SECRET, Secret("token")], ids=["encrypted", "not encrypted"])
def test_who_has_a_port_that_a_cell_has_left_cannot_speak_to_another_cell(secret: Secret) -> None:
    """It hands on what a client proves to it, and would then know of both sides what it likes."""
    with echoing(secret) as (address, heard), (wire := Wire(address)).at_another_port() as left:
        with pytest.raises(UnreachableError):
            ask(left, secret, {"do": "tell"}, [TELLTALE])
        assert len(wire.heard) == 3 * protocol.CHALLENGE, "the server did not prove itself"
    assert not heard


def test_a_secret_is_not_shown() -> None:
    assert "PRIVATE KEY" in PEM
    assert repr(SECRET) == "Secret()"


# -- a cell ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encrypted", [True, False])
def test_rows_of_a_cell_are_to_be_read_off_the_wire_only_if_they_are_not_encrypted(
    tmp_path: Path, encrypted: bool
) -> None:
    driver = Driver(place_at(str(tmp_path), pem=PEM if encrypted else ""))
    answer = driver.go_on(2)
    with (wire := Wire(answer.address)).tapped() as tapped:
        name = Rows("names", 1, batch(("a", "name"), [(99, TELLTALE.decode())]))
        assert tapped == driver.ticket.address
        answer = apply(driver.ticket, [name])
        driver.commit(answer, [])
        driver.go_on(2)
    stop(driver.place.run, [answer.address])
    assert not answer.reloaded, "it was the same cell, through the wire"
    assert (TELLTALE in wire.heard, b'"request"' in wire.heard) == ((False,) * 2 if encrypted else (True,) * 2)


def test_a_run_with_another_certificate_goes_on(tmp_path: Path) -> None:
    """The cell of the run before is still there, and is no use: its address is passed over."""
    driver = Driver(place_at(str(tmp_path), pem=PEM))
    before = driver.go_on(3)
    for pem in (new_pem(), "", new_pem()):
        driver.place = place_at(str(tmp_path), pem=pem)
        answer = driver.go_on()
        assert answer.reloaded
        assert answer.pid != before.pid
        assert driver.go_on(2).pid == answer.pid
        stop(driver.place.run, [answer.address])
        gone(answer.pid)


# -- whether -----------------------------------------------------------------------------------------------------------


def test_cells_are_encrypted_where_spark_is_or_where_one_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real cluster that is encrypted is in tests/faults/test_cluster.py."""

    def answers(*settings: str, value: str = "true") -> list[bool]:
        session: Any = SimpleNamespace(conf=dict.fromkeys(settings, value))
        return [bool(run_pem(session, asked)) for asked in (None, True, False)]

    monkeypatch.setattr(encryption, "is_local", lambda _: False)
    assert answers() == answers("spark.authenticate") == [False, True, False]
    for setting in encryption.SPARKS:
        assert answers(setting) == answers(setting, value=" True") == [True, True, False], setting
        assert answers(setting, value="false") == [False, True, False], setting
    monkeypatch.setattr(encryption, "is_local", lambda _: True)
    assert answers(*encryption.SPARKS) == [False, True, False]
    with pytest.raises(Error, match=r"encrypted='yes': give True or False"):
        check_encrypted("yes")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(Error, match=r"^encrypted cells need the package cryptography: pip install 'viewlet\[spark\]'$"):
        new_pem()
