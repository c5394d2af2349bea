"""What the processes of one run know and nobody else: a token that they prove, and a key that encrypts what they say.

Key and certificate are the run's own, made by the driver at each start. Both sides of a connection show the same
certificate and take no other, so no authority is asked and nothing is negotiated.
"""

from __future__ import annotations

import socket
import ssl
import tempfile
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache

from viewlet.errors import Error

ALWAYS = datetime(2000, 1, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, tzinfo=timezone.utc)  # it ends with the run


@dataclass(frozen=True)
class Secret:
    """``pem`` is a private key and its certificate; "" where connections are not encrypted."""

    token: str = field(repr=False)
    pem: str = field(default="", repr=False)

    def sealed(self, connection: socket.socket, *, is_server: bool) -> socket.socket:
        """What goes over the connection from now on. OSError where the other side has another key, or none."""
        if not self.pem:
            return connection
        return _context(self.pem, is_server).wrap_socket(connection, server_side=is_server)


@lru_cache(maxsize=8)
def _context(pem: str, is_server: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the certificate is nobody's but this run's
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=pem)
    with tempfile.NamedTemporaryFile("w") as file:  # for this user alone; Python reads keys from files only
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
    if is_server:
        context.num_tickets = 0  # each connection is one request
    return context


def new_pem() -> str:
    """A private key that no other run has, and a certificate that it has signed itself."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as missing:
        raise Error("encrypted cells need the package cryptography: pip install 'viewlet[spark]'") from missing
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "viewlet")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), *ALWAYS)
    certificate = builder.sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return (private + certificate.public_bytes(pem)).decode()
