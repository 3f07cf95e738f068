"""Why a connection was not opened, where the server's or the driver's own words say too little: each with the way out.

SQL Server answers 4060 to a login whose database is offline, restoring, in single-user mode, dropped, or simply closed
to it; ``master`` tells which. What a driver says of a certificate is the TLS library's: neither host nor way out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

from dpone_provider.adapters.mssql.errors import MEANINGS, Meaning
from dpone_provider.domain.connection import Endpoint, TlsMode
from dpone_provider.domain.outcomes import Refused, refuse

NOT_OPENED: Final = frozenset(
    {4060, 4062, 4063, *(number for number, meaning in MEANINGS.items() if meaning is Meaning.DATABASE_STATE)}
)
"""Numbers that say that a database was not opened, and not why."""
_CERTIFICATE: Final = re.compile(
    r"certificate (verify failed|chain)|not trusted|subject name|host ?name mismatch", re.IGNORECASE
)
"""In the words of OpenSSL, or of Windows."""
_UNENCRYPTED: Final = "Encryption not supported"
"""What the driver says where it has to encrypt and the server does not."""
_AGAIN: Final = "; then run the same command again"
_WAYS: Final = MappingProxyType(
    {
        "OFFLINE": "have an administrator run ALTER DATABASE … SET ONLINE" + _AGAIN,
        "RESTORING": "finish the restore (RESTORE DATABASE … WITH RECOVERY)" + _AGAIN,
        "RECOVERING": "wait until it has recovered" + _AGAIN,
        "SINGLE_USER": "end who is in it, and ALTER DATABASE … SET MULTI_USER" + _AGAIN,
        "RESTRICTED_USER": "have an administrator run ALTER DATABASE … SET MULTI_USER" + _AGAIN,
    }
)
_LOG: Final = "read the server's error log and repair it" + _AGAIN


def of_database(endpoint: Endpoint, user: str, rows: Sequence[Sequence[Any]]) -> Refused:
    """Return why a login is not let into its database; ``rows`` are ``database_state``'s, from another database."""
    subject = f"{endpoint}, login {user}"
    if not rows:
        return refuse(
            "database_missing",
            subject,
            found=f"no database {endpoint.database} that this login may see",
            allowed="a database of that name on this server",
            next_command="correct the database in the URL or the environment file, or have an administrator restore it",
        )
    ((state, access),) = rows
    if state == "ONLINE" and access == "MULTI_USER":
        return refuse(
            "database_not_entered",
            subject,
            found=f"database {endpoint.database} is {state}, {access}, and has no user for the login",
            allowed="a login with a user in the database",
            next_command="have an administrator run the enrolment's script again, which creates it",
        )
    return refuse(
        "database_unavailable",
        subject,
        found=f"database {endpoint.database} is {state}, {access}",
        allowed="ONLINE, MULTI_USER",
        next_command=_WAYS.get(state if state != "ONLINE" else access, _LOG),
    )


def of_certificate(endpoint: Endpoint, words: str) -> Refused | None:
    """Return why a server is not trusted, where a driver's words are about its certificate; None otherwise.

    Also where encryption is not asked for: a server that demands it shows its certificate all the same. One that does
    not encrypt at all is no better.
    """
    if _UNENCRYPTED in words:
        return refuse(
            "encryption_not_offered",
            f"{endpoint}, TLS mode {endpoint.tls}",
            found=words,
            allowed="a server that encrypts its connections",
            next_command="let the server encrypt, or choose TLS mode disabled knowingly",
        )
    if endpoint.tls is TlsMode.TRUST or not _CERTIFICATE.search(words):
        return None
    return refuse(
        "certificate_not_trusted",
        f"{endpoint}, TLS mode {endpoint.tls}",
        found=words,
        allowed=f"a certificate for {endpoint.host} that an authority of this machine's store has signed",
        next_command="install the authority's certificate (Debian: /usr/local/share/ca-certificates, then"
        " update-ca-certificates), connect by the name that the certificate has, or choose TLS mode trust knowingly",
    )
