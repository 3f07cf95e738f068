"""TLS for the tests' TDS server, in both of the protocol's ways, with a certificate that nobody's authority signed.

Source: [MS-TDS], sections 2.2.6.5 and 3.3.5.1: in TDS 7 the handshake travels in PRELOGIN packets and what follows is
encrypted as a whole; in TDS 8 (``strict``) TLS is spoken from the first byte.
"""

from __future__ import annotations

import datetime
import socket
import ssl
import struct
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HANDSHAKE_PACKET = 0x12
TLS_RECORD = 0x16
"""The first byte of a TLS handshake, where a TDS packet would have its kind."""


@cache
def self_signed() -> ssl.SSLContext:
    """Return a server's side with a certificate for 127.0.0.1 that it signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as directory:
        file = Path(directory) / "server.pem"
        file.write_bytes(key.private_bytes(*plain) + certificate.public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(file)
    context.set_alpn_protocols(["tds/8.0"])
    # Session tickets would come after the handshake, inside the packets of which the driver expects no more.
    context.num_tickets = 0
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def begins_with_tls(link: socket.socket) -> bool:
    """Tell whether a client speaks TLS from the first byte."""
    return link.recv(1, socket.MSG_PEEK) == bytes([TLS_RECORD])


@dataclass
class TlsLink:
    """A link whose bytes are encrypted; as much of a socket as the server uses."""

    link: socket.socket
    context: ssl.SSLContext
    in_packets: bool
    incoming: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)
    outgoing: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)

    def __post_init__(self) -> None:
        """Shake hands.

        Raises:
            EOFError: the client did not like the certificate, and went.
        """
        self.tls = self.context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._take()
            except ssl.SSLError as error:
                raise EOFError from error
            else:
                self._flush()
                self.in_packets = False
                return

    def recv(self, size: int) -> bytes:
        """Return some decrypted bytes, none at the end."""
        while True:
            try:
                return self.tls.read(size)
            except ssl.SSLWantReadError:
                self._take()
            except ssl.SSLError:
                return b""

    def sendall(self, data: bytes) -> None:
        """Send bytes, encrypted."""
        self.tls.write(data)
        self._flush()

    def shutdown(self, how: int) -> None:
        """End the link under TLS."""
        self.link.shutdown(how)

    def close(self) -> None:
        """Close the link."""
        self.link.close()

    def _flush(self) -> None:
        data = self.outgoing.read()
        if data and self.in_packets:
            data = struct.pack(">BBHHBB", HANDSHAKE_PACKET, 1, len(data) + 8, 0, 1, 0) + data
        if data:
            self.link.sendall(data)

    def _take(self) -> None:
        if self.in_packets:
            head = self._exactly(8)
            data = self._exactly(struct.unpack(">H", head[2:4])[0] - 8)
        else:
            data = self.link.recv(65536)
        if not data:
            raise EOFError
        self.incoming.write(data)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.link.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data
