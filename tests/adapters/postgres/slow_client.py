"""A client of PostgreSQL's protocol that logs in step by step, as slowly as a test wants."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import struct
from types import TracebackType
from typing import Self

from dpone_provider.domain.connection import Credential, Endpoint

PROTOCOL_3_0 = 196608
SASL, SASL_CONTINUE, SASL_FINAL, OK = 10, 11, 12, 0


class SlowClient:
    """Connects at once; sends its start packet and the rest of the SCRAM exchange when told."""

    def __init__(self, endpoint: Endpoint, credential: Credential) -> None:
        """Open the TCP connection and send nothing."""
        self._credential = credential
        self._database = endpoint.database
        self._socket = socket.create_connection((endpoint.host, endpoint.port), timeout=20)
        self._started = False

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up."""
        self._socket.close()

    def send_start_packet(self) -> None:
        """Say who wants in; from here on the server lists a login under way."""
        words = ("user", self._credential.user, "database", self._database)
        body = struct.pack("!i", PROTOCOL_3_0) + b"".join(word.encode() + b"\0" for word in words) + b"\0"
        self._socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self._started = True

    def finish(self) -> str:
        """Do the rest of the login; return ``in`` or ``refused``."""
        if not self._started:
            self.send_start_packet()
        try:
            return self._exchange()
        except ConnectionError:
            return "refused"

    def _exchange(self) -> str:
        self._expect(SASL)
        nonce = base64.b64encode(secrets.token_bytes(18)).decode()
        bare = f"n=,r={nonce}"
        first = f"n,,{bare}".encode()
        self._send(b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
        server_first = self._expect(SASL_CONTINUE).decode()
        parts = dict(part.split("=", 1) for part in server_first.split(","))
        without_proof = f"c=biws,r={parts['r']}"
        salted = hashlib.pbkdf2_hmac(
            "sha256",
            self._credential.password.reveal().encode(),
            base64.b64decode(parts["s"]),
            int(parts["i"]),
        )
        key = hmac.digest(salted, b"Client Key", "sha256")
        signed = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{server_first},{without_proof}".encode(), "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signed, strict=True))).decode()
        self._send(f"{without_proof},p={proof}".encode())
        self._expect(SASL_FINAL)
        self._expect(OK)
        while (kind := self._message()[0]) not in (b"Z", b"E"):
            pass
        return "in" if kind == b"Z" else "refused"

    def _send(self, body: bytes) -> None:
        self._socket.sendall(b"p" + struct.pack("!i", len(body) + 4) + body)

    def _expect(self, code: int) -> bytes:
        kind, body = self._message()
        if kind != b"R" or struct.unpack("!i", body[:4])[0] != code:
            raise ConnectionRefusedError(f"server said {kind!r}: {body!r}")
        return body[4:]

    def _message(self) -> tuple[bytes, bytes]:
        kind = self._read(1)
        (size,) = struct.unpack("!i", self._read(4))
        return kind, self._read(size - 4)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionAbortedError("the server hung up")
            data += more
        return data
