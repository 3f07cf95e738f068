"""What is made on our side for a login: its SID with our tag, and its password's hash.

Source of the tag: the design of the LOGON trigger, which tells our logins by ``SUBSTRING(SUSER_SID(), 1, 6)``. Source
of the hash: documentation of CREATE LOGIN … HASHED and of LOGINPROPERTY (``PasswordHashAlgorithm`` 2 and 3): a version
of two bytes, 0x0200, a salt of four, and the SHA-512 of the password in UTF-16LE followed by the salt.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from dpone_provider.domain.secret import Secret

TAG: Final = bytes.fromhex("64706F6E6501")
"""``dpone`` and a version; ``sql/mssql/020_gate.sql`` has it too."""
SID_BYTES: Final = 16
SALT_BYTES: Final = 4
_HASH_VERSION: Final = bytes.fromhex("0200")


def new_sid() -> bytes:
    """Return a SID that was never used: the tag and ten random bytes."""
    return TAG + secrets.token_bytes(SID_BYTES - len(TAG))


def sid_text(sid: bytes) -> str:
    """Return a SID as the ledger keeps it: as CONVERT(…, 2) of the server writes it, in lower case."""
    return sid.hex()


def sid_bytes(text: str) -> bytes:
    """Return the bytes of a SID as the ledger keeps it.

    Raises:
        ValueError: it is not one of ours.
    """
    found = bytes.fromhex(text)
    if len(found) != SID_BYTES or not found.startswith(TAG):
        raise ValueError("a SID of ours has 16 bytes and begins with the tag")
    return found


def password_hash(secret: Secret, salt: bytes) -> bytes:
    """Return what CREATE LOGIN … HASHED takes in place of a password.

    Raises:
        ValueError: the salt has another length than the server's.
    """
    if len(salt) != SALT_BYTES:
        raise ValueError("the salt has four bytes")
    return _HASH_VERSION + salt + hashlib.sha512(secret.reveal().encode("utf-16-le") + salt).digest()
