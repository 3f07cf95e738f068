"""SCRAM-SHA-256 verifiers made on our side, so that the server, and its log, never see a clear password.

Source: RFC 5803, and the format in which PostgreSQL keeps them in pg_authid.rolpassword
(``SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>``; documentation of pg_authid).
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from typing import Final

from dpone_provider.domain.secret import Secret

ITERATIONS: Final = 1
"""Iterations make guessing dearer, for passwords that people choose. A secret of 48 random letters and digits (285
bits) is out of any guesser's reach without them, and each costs at every login, and where the role is made: the server
tries the empty password then. PostgreSQL's default, 4,096, is 6 ms of the issuing transaction, 2 ms of every login."""
SALT_BYTES: Final = 16


def verifier(secret: Secret, salt: bytes) -> str:
    """Return the verifier of an ASCII password.

    Raises:
        ValueError: the password is not ASCII; SASLprep, which others would need, is not done here.
    """
    password = secret.reveal()
    if not password.isascii():
        raise ValueError("a generated password is made of ASCII letters and digits")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored_key = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    server_key = _keyed(salted, b"Server Key")
    return f"SCRAM-SHA-256${ITERATIONS}:{_base64(salt)}${_base64(stored_key)}:{_base64(server_key)}"


def _keyed(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
